"""Service: a model that exists before the release and must go on working, or a model of the private
attribute that its owner lends.

A service takes records in the network's own scale, which is also the form in which releases that
keep a record's form come out: pictures as floats in [-1, 1], rows and windows standardised by their
schema. It gives one score per class. Once taught, or brought, it is frozen: it passes gradients on
and learns nothing, unless a game makes it a player.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError
from privet.data.dataset import Attribute
from privet.data.schema import ImageSchema, Schema, SignalSchema, TableSchema
from privet.methods.method import Problem
from privet.methods.services import onnx_torch
from privet.nets.code import REACH, body
from privet.nets.convolutions import prepare
from privet.nets.resnet import Jitter
from privet.release.foreign import beside_card
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player

TRIED = 32
"""Records that a brought model is tried on."""
LEAST = 1e-30
"""Probabilities below this count as this, where a model gives probabilities and scores are
wanted."""


@dataclass(frozen=True)
class Service:
    attribute: Attribute
    module: nn.Module
    """Records in the network's scale to (n, classes) scores."""
    source: str = "trained here"
    sha256: str = ""
    """Of the ONNX file, or of the weights of the torch module, that was brought."""

    def __call__(self, x: Tensor) -> Tensor:
        """Scores; the module answers as it would in use, whatever the game around it does."""
        self.module.eval()
        scores: Tensor = self.module(x)
        return scores.float()

    def copy(self) -> Service:
        """The same model with weights of its own."""
        return replace(self, module=copy.deepcopy(self.module))


def new_service(
    problem: Problem, attribute: Attribute, width: float = 0.25, dropout: float = 0.1
) -> Service:
    """A service of our own for one attribute, to be taught by `teaching_phase` first."""
    return Service(attribute, body(problem.schema, attribute.classes, width, dropout))


def teaching_phase(
    service: Service, epochs: float, lr: float = 1e-3, jitter: bool = False
) -> Phase:
    """The phase of a game in which a service learns its attribute from raw records; `jitter`
    mirrors and shifts pictures."""

    def learn(batch: Batch) -> Move:
        service.module.train()
        x = prepare(batch.x)
        if jitter and x.dim() == 4:
            x = Jitter(max(1, round(REACH * min(x.shape[2:]))))(x)
        scores = service.module(x).float()
        truth = batch.labels[service.attribute.name]
        loss = F.cross_entropy(scores, truth, ignore_index=-1)
        right = ((scores.argmax(1) == truth) & (truth >= 0)).sum() / (truth >= 0).sum().clamp(min=1)
        return Move(torch.nan_to_num(loss), {f"{service.attribute.name} right": right})

    return Phase(
        f"teaching {service.attribute.name}",
        epochs,
        [Player("service", service.module, learn, lr, decay=1e-2)],
        steady=True,
    )


def provided_service(
    model: nn.Module | str | Path,
    problem: Problem,
    attribute: Attribute,
    card: Mapping[str, Any] | None = None,
) -> Service:
    """A model that somebody else made, after trying it on records of *fit*: a torch module, or the
    path of an ONNX file.

    `card` says how it takes records and what it gives; for an ONNX file it may also be the JSON
    file of the same name beside it:

        {"input": {"range": [0, 1], "mean": [...], "std": [...], "layout": "NHWC"},      pictures; default of ONNX files: [0, 1]
         "input": {"units": "raw"},                       rows and windows in the data's own units, not standardised
         "output": {"kind": "probabilities", "classes": ["female", "male"]}}              default: seen from what it gives

    A torch module takes records in the network's scale by default. It is copied: the original is
    never changed.
    """
    some = problem.schema.inputs(problem.view().take(slice(TRIED)))
    x = prepare(torch.from_numpy(np.ascontiguousarray(some[:])))
    if isinstance(model, nn.Module):
        about = dict(card or {})
        named, inner = type(model).__name__, copy.deepcopy(model).cpu().float()
        source, sha256 = f"torch module {named}", _digest(inner)
        taking = ProvidedModel(inner, problem.schema, about.get("input", {}), (-1.0, 1.0), named)
    else:
        path = Path(model)
        about = dict(card) if card is not None else beside_card(path, None)
        converted, graph, sha256 = onnx_torch.read(path)
        named, source = path.name, f"ONNX file {path.name}"
        taking = ProvidedModel(converted, problem.schema, about.get("input", {}), (0.0, 1.0), named)
        _same_shape(converted.shape, taking.prepared(x), named)
        onnx_torch.check(converted, graph, taking.prepared(x), named)
    taking.settle(x, attribute, about.get("output", {}))
    return Service(attribute, taking.eval(), source, sha256)


class ProvidedModel(nn.Module):
    """A brought model: records from the network's scale to what it takes, and its answers to one
    score per class."""

    low: Tensor
    wide: Tensor
    order: Tensor

    def __init__(
        self, inner: nn.Module, schema: Schema, given: Any, usual: tuple[float, float], named: str
    ) -> None:
        super().__init__()
        if not isinstance(given, dict):
            raise PrivetError(f'"input" in the card of {named} must be a table of settings.')
        self.inner, self.named, self.kind, self.last = (
            inner,
            named,
            "scores",
            given.get("layout") == "NHWC",
        )
        shape = (1, -1, *(1,) * (len(schema.shape) - 1))
        try:
            if isinstance(schema, ImageSchema):
                bottom, top = given.get("range", usual)
                scale, start = (top - bottom) / 2, bottom + (top - bottom) / 2
            else:
                scale, start = _units(schema) if given.get("units") == "raw" else (1.0, 0.0)
            mean, std = (
                np.asarray(given.get(key, usually), np.float64)
                for key, usually in (("mean", 0.0), ("std", 1.0))
            )
            wide = torch.as_tensor(np.asarray(scale / std), dtype=torch.float32).reshape(shape)
            low = torch.as_tensor(np.asarray((start - mean) / std), dtype=torch.float32).reshape(
                shape
            )
            torch.broadcast_to(
                low * wide, (1, *(1 if size is None else size for size in schema.shape))
            )
        except (TypeError, ValueError, RuntimeError):
            raise PrivetError(
                f'"input" in the card of {named} must hold a range of two numbers, and a mean and std per channel.'
            ) from None
        self.register_buffer("wide", wide)
        self.register_buffer("low", low)
        self.register_buffer("order", torch.zeros(0, dtype=torch.int64))

    def prepared(self, x: Tensor) -> Tensor:
        x = x * self.wide + self.low
        return x.permute(0, 2, 3, 1).contiguous() if self.last and x.dim() == 4 else x

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.inner(self.prepared(x)).float()
        given = given.unsqueeze(1) if given.dim() == 1 else given
        if self.kind == "probabilities":
            given = torch.cat([1 - given, given], 1) if given.shape[1] == 1 else given
            given = given.clamp(min=LEAST).log()
        elif given.shape[1] == 1:
            # One score s for the second of two classes: 0 and s have the same softmax as sigmoid(s)
            # says.
            given = torch.cat([torch.zeros_like(given), given], 1)
        return given[:, self.order] if len(self.order) else given

    @torch.no_grad()
    def settle(self, x: Tensor, attribute: Attribute, output: Any) -> None:
        """Try the model on records: does it take them, how many classes does it know, are its
        answers scores or probabilities?"""
        if not isinstance(output, dict):
            raise PrivetError(f'"output" in the card of {self.named} must be a table of settings.')
        self.inner.eval()
        try:
            found = self.inner(self.prepared(x))
        except Exception as error:
            size = " x ".join(map(str, self.prepared(x).shape[1:]))
            why = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            raise PrivetError(f"{self.named} does not take records of {size} ({why}).") from None
        if (
            not isinstance(found, Tensor)
            or found.dim() not in (1, 2)
            or len(found) != len(x)
            or not bool(torch.isfinite(found).all())
        ):
            raise PrivetError(f"{self.named} must give one row of finite scores per record.")
        found = found.reshape(len(x), -1).float()
        classes = 2 if found.shape[1] == 1 else found.shape[1]
        if classes != attribute.classes:
            raise PrivetError(
                f"{self.named} knows {classes} classes, and '{attribute.name}' has {attribute.classes}."
            )
        named = [str(value) for value in output.get("classes", attribute.values)]
        if sorted(named) != sorted(attribute.values):
            shown = ", ".join(attribute.values[:8])
            raise PrivetError(
                f"The card of {self.named} names other classes than '{attribute.name}' has ({shown})."
            )
        self.order = torch.tensor(
            [named.index(value) for value in attribute.values]
            if named != list(attribute.values)
            else []
        ).long()
        sums = (found.sum(1) - 1).abs().max() < 1e-3 or found.shape[1] == 1
        likely = (
            "probabilities" if bool((found >= 0).all() & (found <= 1).all() & sums) else "scores"
        )
        self.kind = str(output.get("kind", likely))
        if self.kind not in ("scores", "probabilities"):
            raise PrivetError(
                f"The card of {self.named} calls its answers '{self.kind}': they are scores or probabilities."
            )


def _units(schema: Schema) -> tuple[Any, Any]:
    """Spread and mean by which rows or windows were standardised, per column or channel."""
    if isinstance(schema, SignalSchema):
        return np.asarray(schema.std), np.asarray(schema.mean)
    assert isinstance(schema, TableSchema)
    scale = [
        1.0 if column.values else column.std
        for column in schema.columns
        for _ in range(column.size)
    ]
    start = [
        0.0 if column.values else column.mean
        for column in schema.columns
        for _ in range(column.size)
    ]
    return np.asarray(scale), np.asarray(start)


def _same_shape(shape: list[int | None], x: Tensor, named: str) -> None:
    if len(shape) != x.dim() or any(
        size is not None and size != have
        for size, have in zip(shape[1:], x.shape[1:], strict=False)
    ):
        wanted = " x ".join("any" if size is None else str(size) for size in shape[1:])
        raise PrivetError(
            f"{named} takes records of {wanted}, and these are {' x '.join(map(str, x.shape[1:]))}."
        )


def _digest(module: nn.Module) -> str:
    """SHA-256 over the names and values of a module's weights."""
    found = hashlib.sha256()
    for name, value in module.state_dict().items():
        found.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        found.update(value.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()
