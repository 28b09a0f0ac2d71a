"""Collaborative sanitizers: a release in the record's own form that keeps a provider's services
working and blinds its privacy model.

    min_S  (1 - alpha) KL(P(y|x) || P(y|S(x))) + alpha KL(P(u) || P(u|S(x)))
    adversarial also:  min_p  CE(u, p(x)) + CE(u, p(S(x)))

P(y|.) and P(u|.) = p are models that the provider has: brought, or trained here on raw records
first. P(u) is the share of each value in *fit*. *Plug-and-play*: only S learns. *Adversarial*: the
privacy model learns too, and must keep working on unfiltered records. S is deterministic, or
*stochastic*: it takes noise beside the record. Several tasks or private attributes: means.

Sapiro, Bertran, Martinez, Papadaki, Rodrigues and Qiu, "Let's collaborate: a different paradigm for
privacy"; in full: Bertran and others, "Learning to collaborate for user-controlled privacy", arXiv
1805.07410 (2018).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError, unknown
from privet.data.dataset import Attribute, Dataset, Modality
from privet.methods.method import Method, Problem
from privet.methods.services.evaluation import ServiceEvaluation, evaluate_services
from privet.methods.services.service import Service, new_service, provided_service, teaching_phase
from privet.nets.convolutions import prepare
from privet.nets.sanitizer import Sanitizer
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Batch
from privet.train.game import Game, Move, Phase, Player, Run

Model = nn.Module | str | Path


@dataclass(kw_only=True)
class Collaborative(Method):
    alpha: float = 0.9
    """0 keeps the services' answers only, 1 only blinds the privacy model."""
    stochastic: bool = False
    """Noise beside the record, fresh for every release."""
    adversarial: bool = True
    """Whether the privacy model learns too."""
    utility_model: str = ""
    """An ONNX file, or NAME=FILE with commas for several tasks; empty: trained here."""
    privacy_model: str = ""
    """The same for the private attributes."""
    lessons: float = 10.0
    """Epochs in which a model that was not brought learns, before the game."""
    epochs: float = 20.0
    """Epochs of the game."""
    moves: int = 2
    """Moves of the privacy model per move of S, where it learns."""
    width: float = 0.5
    """Factor on the layers of S."""
    service: float = 0.25
    """Factor on the layers of models that are trained here."""
    batch: int = 128
    lr: float = 1e-3

    name: ClassVar[str] = "collaborative"
    title: ClassVar[str] = "Collaborative sanitizer"
    tasks: ClassVar[Literal["none", "optional", "needed"]] = "needed"
    modalities: ClassVar[tuple[Modality, ...]] = ("image", "table", "signal")
    instead: ClassVar[str] = (
        "a sanitizer gives records of the same form, and words have no gradient; choose hedge or tiprdc"
    )
    dial: ClassVar[str] = "alpha"
    sweep: ClassVar[tuple[float, ...]] = (0.1, 0.5, 0.9, 0.99)

    def __post_init__(self) -> None:
        self.within(
            alpha=(0, 1),
            lessons=(0, inf),
            epochs=(0, inf),
            width=(0.01, inf),
            service=(0.01, inf),
            batch=(2, inf),
            lr=(1e-9, inf),
        )
        self.within(moves=(1, inf))
        self.models: dict[str, tuple[Model, Mapping[str, Any] | None]] = {}

    def given(
        self, models: Mapping[str, Model], cards: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Collaborative:
        """The same method with models that the provider brings, by the name of their attribute;
        `cards` as for `services.provided_service`.

        >>> Collaborative(alpha=0.5).given({"income": nn.Linear(12, 2)}).models["income"][0]
        Linear(in_features=12, out_features=2, bias=True)
        """
        given = copy.copy(self)
        given.models = {
            **self.models,
            **{name: (model, (cards or {}).get(name)) for name, model in models.items()},
        }
        return given

    def problem(
        self,
        data: Dataset,
        private: Sequence[str],
        utility: Sequence[str],
        without: Sequence[str],
        run: Run,
    ) -> Problem:
        """Models that do not fit the data are refused here, before anything is learned."""
        problem = super().problem(data, private, utility, without, run)
        self.brought(problem)
        return problem

    def brought(self, problem: Problem) -> dict[str, Service]:
        """The models that somebody else made, by attribute, tried on records."""
        known = {attribute.name: attribute for attribute in (*problem.private, *problem.utility)}
        models = dict(self.models)
        for words, attributes, key in (
            (self.utility_model, problem.utility, "utility_model"),
            (self.privacy_model, problem.private, "privacy_model"),
        ):
            for name, file in model_files(words, attributes, key).items():
                models[name] = (file, None)
        absent = next((name for name in models if name not in known), None)
        if absent is not None:
            raise unknown("private attribute or task of this release", absent, known)
        return {
            name: provided_service(model, problem, known[name], card)
            for name, (model, card) in models.items()
        }

    def learn(self, problem: Problem, run: Run) -> Release:
        torch.manual_seed(self.seed)
        networks = CollaborativeNetworks(problem, self)
        phases = [*networks.lessons(), networks.play()]
        identity = f"{self.identity(problem)} {[service.sha256 for service in networks.services]}"
        game = Game(networks.modules(), phases, problem.feed(), self.batch, self.seed, identity)
        game.play(run)
        noise = (
            Noise("gaussian", Sanitizer.noise_shape(problem.schema), 1.0)
            if self.stochastic
            else None
        )
        network = ("sanitizer", {"width": self.width, "stochastic": self.stochastic})
        release = Release(problem.schema, network, networks.sanitizer, noise, {"form": "record"})
        found = evaluate_services(release, problem.data, networks.asked(), "select", self.seed)
        release.card |= {
            "services": networks.said(),
            "in_game": _in_game(found),
            "outcomes": found.to_json(),
            "history": game.history,
        }
        return release


class CollaborativeNetworks:
    """The sanitizer S, the services it keeps working, and the privacy models as they came and as
    they play."""

    def __init__(self, problem: Problem, method: Collaborative) -> None:
        self.method, self.noise = (
            method,
            Sanitizer.noise_shape(problem.schema) if method.stochastic else None,
        )
        brought = method.brought(problem)
        # Services first: the same seed then gives the same services to every variant of the method.
        models = [
            brought.get(a.name) or new_service(problem, a, method.service)
            for a in (*problem.utility, *problem.private)
        ]
        self.utility, self.private = models[: len(problem.utility)], models[len(problem.utility) :]
        self.given = [service.copy() for service in self.private]
        self.to_teach = [service for service in models if service.attribute.name not in brought]
        self.sanitizer = Sanitizer(problem.schema, method.width, method.stochastic)
        self.priors = [
            _prior(problem, attribute).to(problem.device) for attribute in problem.private
        ]

    @property
    def services(self) -> list[Service]:
        return [*self.utility, *self.private]

    def modules(self) -> dict[str, nn.Module]:
        groups = {"utility": self.utility, "private": self.private, "given": self.given}
        named = {
            f"{role} {place}": one.module
            for role, group in groups.items()
            for place, one in enumerate(group)
        }
        return {"sanitizer": self.sanitizer, **named}

    def asked(self) -> list[tuple[str, Service]]:
        """Whose answers are reported, and in which role."""
        given = [("given", service) for service in self.given] if self.method.adversarial else []
        return [
            *(("utility", s) for s in self.utility),
            *(("private", s) for s in self.private),
            *given,
        ]

    def said(self) -> dict[str, dict[str, str]]:
        roles = [*("utility" for _ in self.utility), *("private" for _ in self.private)]
        return {
            s.attribute.name: {
                "role": role,
                "source": s.source,
                **({"sha256": s.sha256} if s.sha256 else {}),
            }
            for role, s in zip(roles, self.services, strict=True)
        }

    def lessons(self) -> list[Phase]:
        """One phase per model that was not brought; what a privacy model was before the game is
        kept as it ends its lessons."""
        return [
            replace(teaching_phase(s, self.method.lessons, jitter=True), after=self._keep)
            for s in self.to_teach
        ]

    def _keep(self) -> dict[str, float]:
        for kept, service in zip(self.given, self.private, strict=True):
            kept.module.load_state_dict(service.module.state_dict())
        return {}

    def play(self) -> Phase:
        m = self.method
        players = [Player("sanitizer", self.sanitizer, self.sanitize, m.lr)]
        if m.adversarial:
            both = nn.ModuleList([service.module for service in self.private])
            players.append(Player("privacy model", both, self.defeat, m.lr, steps=m.moves))
        steady = len(self.to_teach) == len(
            self.services
        )  # nobody knows what a model that was brought does in between
        return Phase(
            "sanitizing",
            m.epochs,
            players,
            schedule=lambda done: 0.5 * (1 + math.cos(math.pi * done)) + 1e-3,
            steady=steady,
        )

    def release(self, x: Tensor) -> Tensor:
        noise = None if self.noise is None else torch.randn(len(x), *self.noise, device=x.device)
        return self.sanitizer(x, noise)  # type: ignore[no-any-return]

    def sanitize(self, batch: Batch) -> Move:
        """S's loss: the services' answers as they were, the privacy model's as if nothing were
        known."""
        x, alpha = prepare(batch.x), self.method.alpha
        z = self.release(x)
        with torch.no_grad():
            before = [F.log_softmax(service(x), dim=1) for service in self.utility]
        kept = torch.stack(
            [
                F.kl_div(
                    F.log_softmax(service(z), dim=1), wanted, log_target=True, reduction="batchmean"
                )
                for service, wanted in zip(self.utility, before, strict=True)
            ]
        ).mean()
        hidden = torch.stack(
            [
                F.kl_div(
                    F.log_softmax(service(z), dim=1),
                    prior.expand(len(z), -1),
                    reduction="batchmean",
                )
                for service, prior in zip(self.private, self.priors, strict=True)
            ]
        ).mean()
        return Move((1 - alpha) * kept + alpha * hidden, {"utility KL": kept, "private KL": hidden})

    def defeat(self, batch: Batch) -> Move:
        """The privacy model's loss. It answers as in use, with the statistics it came with: that is
        the model S must fool."""
        x = prepare(batch.x)
        with torch.no_grad():
            z = self.release(x)
        losses = [
            _cross_entropy(s(seen), batch.labels[s.attribute.name])
            for s in self.private
            for seen in (x, z)
        ]
        return Move(
            2 * torch.stack(losses).mean(),
            {"private CE raw": losses[0], "private CE released": losses[1]},
        )


def _cross_entropy(scores: Tensor, truth: Tensor) -> Tensor:
    """Over the records whose value is known; 0 where there are none."""
    return F.cross_entropy(scores, truth, ignore_index=-1, reduction="sum") / (
        truth >= 0
    ).sum().clamp(min=1)


def _prior(problem: Problem, attribute: Attribute) -> Tensor:
    labels = torch.as_tensor(problem.view().labels[attribute.name])
    counts = torch.bincount(labels[labels >= 0], minlength=attribute.classes)
    return counts / counts.sum()


def model_files(words: str, attributes: Sequence[Attribute], key: str) -> dict[str, str]:
    """Which file serves which attribute.

    >>> model_files("a.onnx", [Attribute("sex", "binary")], "privacy_model"), model_files(
    ...     "sex=a.onnx", [], "privacy_model"
    ... )
    ({'sex': 'a.onnx'}, {'sex': 'a.onnx'})
    """
    found = {}
    for word in filter(None, (word.strip() for word in words.split(","))):
        name, equals, file = word.partition("=")
        if not equals and len(attributes) != 1:
            raise PrivetError(
                f"There are several attributes, so say which one {word} is for:  --set {key}=NAME={word}."
            )
        found[name if equals else attributes[0].name] = file if equals else word
    return found


def _in_game(found: ServiceEvaluation) -> dict[str, Any]:
    """What the game's own privacy model reads, in the words of an audit."""
    return {
        a.attribute: {
            "accuracy": a.released["accuracy"],
            "balanced": a.released["balanced"],
            "n": a.n,
            "part": a.part,
        }
        for a in found.answers
        if a.role == "private" and a.released
    }
