"""Service: a model that exists before the release and must go on working, or a model of the private
attribute that its owner provides.

A service takes records in the network's own scale, which is also the form in which releases that
keep a record's form come out: pictures as floats in [-1, 1], rows and windows standardised by their
schema. It gives one score per class. Once taught, or provided, it is frozen: it passes gradients on
and learns nothing, unless a game makes it a player.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privet.core.errors import PrivetError, first_line, refuse
from privet.data.dataset import Array, Attribute
from privet.data.schema import ImageSchema, Schema, SignalSchema, TableSchema
from privet.methods.known_labels import accuracy, cross_entropy
from privet.methods.method import Problem
from privet.nets.code import REACH, body
from privet.nets.convolutions import prepare
from privet.nets.resnet import Jitter
from privet.release.foreign import beside_card
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player

# Records that a provided model is tried on.
TRIED_RECORDS = 32
# Probabilities below this count as this, where a model gives probabilities and scores are wanted.
LEAST_PROBABILITY = 1e-30


@dataclass(frozen=True)
class Service:
    """A model of one attribute: records in the network's scale to scores (n, classes).

    `source` says where it comes from, and `sha256` is the hash of the ONNX file, or of the weights
    of the torch module, that was provided.
    """

    attribute: Attribute
    module: nn.Module
    source: str = "trained here"
    sha256: str = ""

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
    service: Service,
    epochs: float,
    lr: float = 1e-3,
    jitter: bool = False,
    records: Array | None = None,
) -> Phase:
    """The phase of a game in which a service learns its attribute from raw records, or from those
    at the positions `records`; `jitter` mirrors and shifts pictures."""
    name = service.attribute.name

    def learn(batch: Batch) -> Move:
        service.module.train()
        x = prepare(batch.x)
        if jitter and x.dim() == 4:
            x = Jitter(max(1, round(REACH * min(x.shape[2:]))))(x)
        scores, truth = service.module(x).float(), batch.labels[name]
        return Move(cross_entropy(scores, truth), {f"{name} right": accuracy(scores, truth)})

    player = Player("service", service.module, learn, lr, records=records, decay=1e-2)
    return Phase(f"teaching {name}", epochs, [player], steady=True)


def model_files(words: str, attributes: Sequence[Attribute], key: str) -> dict[str, str]:
    """Which file serves which attribute, from the setting `key`.

    >>> model_files("a.onnx", [Attribute("sex", "binary")], "privacy_model")
    {'sex': 'a.onnx'}
    >>> model_files("sex=a.onnx, race=b.onnx", [], "privacy_model")
    {'sex': 'a.onnx', 'race': 'b.onnx'}
    """
    files = {}
    for word in filter(None, (word.strip() for word in words.split(","))):
        name, equals, file = word.partition("=")
        if not equals and len(attributes) != 1:
            raise PrivetError(
                f"There are several attributes, so say which one {word} is for:  --set "
                f"{key}=NAME={word}."
            )
        files[name if equals else attributes[0].name] = file if equals else word
    return files


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

        {"input": {"range": [0, 1], "mean": [...], "std": [...], "layout": "NHWC"},
         "output": {"kind": "probabilities", "classes": ["female", "male"]}}

    `range` is that of pictures, [0, 1] unless said otherwise for ONNX files. Rows and windows are
    standardised; `"input": {"units": "raw"}` gives them in the data's own units. What `output` does
    not say is seen from what the model gives. A torch module takes records in the network's scale
    by default. It is copied: the original is never changed.
    """
    some = problem.schema.inputs(problem.view().take(slice(TRIED_RECORDS)))
    x = prepare(torch.from_numpy(np.ascontiguousarray(some[:])))
    if isinstance(model, nn.Module):
        about = dict(card or {})
        name, inner = type(model).__name__, copy.deepcopy(model).cpu().float()
        source, sha256 = f"torch module {name}", _digest(inner)
        provided = ProvidedModel(inner, problem.schema, about, (-1.0, 1.0), name)
    else:
        from privet.methods.services import onnx_torch  # needed for foreign models only

        path = Path(model)
        about = dict(card) if card is not None else beside_card(path, None)
        converted, graph, sha256 = onnx_torch.read(path)
        name, source = path.name, f"ONNX file {path.name}"
        provided = ProvidedModel(converted, problem.schema, about, (0.0, 1.0), name)
        _check_shape(converted.shape, provided.prepared(x), name)
        onnx_torch.check(converted, graph, provided.prepared(x), name)
    provided.settle(x, attribute)
    return Service(attribute, provided.eval(), source, sha256)


class ProvidedModel(nn.Module):
    """A model that was provided, with records in the network's scale and one score per class.

    `card` is that of `provided_service`, `scale` the range of pictures where it names none, and
    `name` is used in sentences about the model.
    """

    low: Tensor
    wide: Tensor
    order: Tensor

    def __init__(
        self,
        inner: nn.Module,
        schema: Schema,
        card: Mapping[str, Any],
        scale: tuple[float, float],
        name: str,
    ) -> None:
        super().__init__()
        given, self.answers = (card.get(key, {}) for key in ("input", "output"))
        wrong = "in the card of {} must be a table of settings."
        refuse(
            (not isinstance(given, dict), f'"input" {wrong.format(name)}'),
            (not isinstance(self.answers, dict), f'"output" {wrong.format(name)}'),
        )
        self.inner, self.name, self.kind = inner, name, "scores"
        self.channels_last = given.get("layout") == "NHWC"
        try:
            wide, low = _input_scale(schema, given, scale)
        except (TypeError, ValueError, RuntimeError):
            raise PrivetError(
                f'"input" in the card of {name} must hold a range of two numbers, and a mean and '
                "std per channel."
            ) from None
        self.register_buffer("wide", wide)
        self.register_buffer("low", low)
        self.register_buffer("order", torch.zeros(0, dtype=torch.int64))

    def prepared(self, x: Tensor) -> Tensor:
        """Records in the model's own scale and layout."""
        x = x * self.wide + self.low
        last = self.channels_last and x.dim() == 4
        return x.permute(0, 2, 3, 1).contiguous() if last else x

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.inner(self.prepared(x)).float()
        scores = scores.unsqueeze(1) if scores.dim() == 1 else scores
        if self.kind == "probabilities":
            scores = torch.cat([1 - scores, scores], 1) if scores.shape[1] == 1 else scores
            scores = scores.clamp(min=LEAST_PROBABILITY).log()
        elif scores.shape[1] == 1:
            # One score s for the second of two classes: 0 and s have the same softmax as sigmoid(s)
            # says.
            scores = torch.cat([torch.zeros_like(scores), scores], 1)
        return scores[:, self.order] if len(self.order) else scores

    @torch.no_grad()
    def settle(self, x: Tensor, attribute: Attribute) -> None:
        """Try the model on records: does it take them, how many classes does it know, are its
        answers scores or probabilities?"""
        answers = self._try(x)
        single = answers.shape[1] == 1
        classes = 2 if single else answers.shape[1]
        names = [str(value) for value in self.answers.get("classes", attribute.values)]
        sums_to_one = single or bool((answers.sum(1) - 1).abs().max() < 1e-3)
        likely = bool((answers >= 0).all() & (answers <= 1).all()) and sums_to_one
        self.kind = str(self.answers.get("kind", "probabilities" if likely else "scores"))
        refuse(
            (
                classes != attribute.classes,
                (
                    f"{self.name} knows {classes} classes, and '{attribute.name}' has "
                    f"{attribute.classes}."
                ),
            ),
            (
                sorted(names) != sorted(attribute.values),
                (
                    f"The card of {self.name} names other classes than '{attribute.name}' has "
                    f"({', '.join(attribute.values[:8])})."
                ),
            ),
            (
                self.kind not in ("scores", "probabilities"),
                (
                    f"The card of {self.name} calls its answers '{self.kind}': they are scores or "
                    "probabilities."
                ),
            ),
        )
        if names != list(attribute.values):
            self.order = torch.tensor([names.index(value) for value in attribute.values])

    def _try(self, x: Tensor) -> Tensor:
        """The model's answers, (n, outputs)."""
        self.inner.eval()
        try:
            answers = self.inner(self.prepared(x))
        except Exception as error:
            size = " x ".join(map(str, self.prepared(x).shape[1:]))
            raise PrivetError(
                f"{self.name} does not take records of {size} ({first_line(error)})."
            ) from None
        rows = isinstance(answers, Tensor) and answers.dim() in (1, 2) and len(answers) == len(x)
        if not rows or not bool(torch.isfinite(answers).all()):
            raise PrivetError(f"{self.name} must give one row of finite scores per record.")
        return answers.reshape(len(x), -1).float()  # type: ignore[no-any-return]


def _input_scale(
    schema: Schema, given: Mapping[str, Any], usual: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    """Factor and offset from the network's scale to the model's, to be broadcast over records."""
    factor: Any = 1.0
    offset: Any = 0.0
    if isinstance(schema, ImageSchema):
        bottom, top = given.get("range", usual)
        factor, offset = (top - bottom) / 2, bottom + (top - bottom) / 2
    elif given.get("units") == "raw" and isinstance(schema, SignalSchema):
        factor, offset = np.asarray(schema.std), np.asarray(schema.mean)
    elif given.get("units") == "raw":
        assert isinstance(schema, TableSchema)
        units = [
            (1.0, 0.0) if column.values else (column.std, column.mean)
            for column in schema.columns
            for _ in range(column.size)
        ]
        factor, offset = np.asarray(units).T
    mean, std = (np.asarray(given.get(k, v), np.float64) for k, v in (("mean", 0.0), ("std", 1.0)))
    shape = (1, -1, *(1,) * (len(schema.shape) - 1))
    wide, low = (
        torch.as_tensor(np.asarray(value), dtype=torch.float32).reshape(shape)
        for value in (factor / std, (offset - mean) / std)
    )
    torch.broadcast_to(low * wide, (1, *(1 if size is None else size for size in schema.shape)))
    return wide, low


def _check_shape(shape: list[int | None], x: Tensor, name: str) -> None:
    pairs = zip(shape[1:], x.shape[1:], strict=False)
    if len(shape) != x.dim() or any(size not in (None, have) for size, have in pairs):
        wanted = " x ".join("any" if size is None else str(size) for size in shape[1:])
        raise PrivetError(
            f"{name} takes records of {wanted}, and these are {' x '.join(map(str, x.shape[1:]))}."
        )


def _digest(module: nn.Module) -> str:
    """SHA-256 over the names and values of a module's weights."""
    digest = hashlib.sha256()
    for name, value in module.state_dict().items():
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
