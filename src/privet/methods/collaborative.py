"""Collaborative sanitizers: a release in the record's own form that keeps a provider's services
working and blinds its privacy model.

    min_S  (1 - alpha) KL(P(y|x) || P(y|S(x))) + alpha KL(P(u) || P(u|S(x)))
    adversarial also:  min_p  CE(u, p(x)) + CE(u, p(S(x)))

P(y|.) and P(u|.) = p are models that the provider has: provided, or trained here on raw records
first. P(u) is the share of each value in *fit*. *Plug-and-play*: only S learns. *Adversarial*: the
privacy model learns too, and must keep working on unfiltered records. S is deterministic, or
*stochastic*: it takes noise beside the record. Several tasks or private attributes: means.

Sapiro, Bertran, Martinez, Papadaki, Rodrigues and Qiu, "Let's collaborate: a different paradigm for
privacy"; in full: Bertran and others, "Learning to collaborate for user-controlled privacy", arXiv
1805.07410 (2018).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import unknown
from privet.data.dataset import Attribute
from privet.methods.known_labels import cross_entropy
from privet.methods.method import NUMERIC, Method, Problem, at_least, ranges_of
from privet.methods.services.evaluation import evaluate_services
from privet.methods.services.segmentation import cosine
from privet.methods.services.service import (
    Service,
    model_files,
    new_service,
    provided_service,
    teaching_phase,
)
from privet.nets.convolutions import prepare
from privet.nets.sanitizer import Sanitizer
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player, Run

# A torch module, or the path of an ONNX file.
Model = nn.Module | str | Path
# How a model takes records and what it gives: see `services.service.provided_service`.
Card = Mapping[str, Any] | None


@dataclass(kw_only=True)
class Collaborative(Method):
    """A sanitizer that keeps a provider's services working and blinds its privacy model.

    It returns a record of the same form. The services' answers to it stay as they were, and the
    model of the private attribute answers with the shares that its values have among all people.
    The models are the provider's own (ONNX files, or torch modules by `with_models`), or trained
    here first.

    Parameters:
        models: Models from `with_models`, with their cards, by attribute; not part of the settings.
        alpha: Weight of privacy: 0 only keeps the services' answers, 1 only blinds the privacy
            model.
        stochastic: Whether the sanitizer gets noise beside the record, fresh for every release.
        adversarial: Whether the privacy model learns too.
        utility_model: The service, as an ONNX file, or NAME=FILE with commas for several tasks;
            empty: trained here.
        privacy_model: The same for the private attributes.
        lessons: Epochs in which a model that was not provided is taught, before the game.
        epochs: Epochs of the game.
        moves: Moves of the privacy model per move of the sanitizer, where it learns.
        width: Factor on the layer sizes of the sanitizer.
        service: Factor on the layer sizes of models that are trained here.
        batch: Records per step.
        lr: Learning rate of Adam in the game; it falls along a cosine.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> method = privet.Collaborative(width=0.1, service=0.1, lessons=1, epochs=1)
        >>> release = method.fit(data, "beard", "smiling", run=privet.Run(progress=False))
        >>> release.card["services"]["smiling"]
        {'role': 'utility', 'source': 'trained here'}

    Notes:
        Only the provider's model is blinded: other adversaries may read what it no longer does.
    """

    alpha: float = 0.9
    stochastic: bool = False
    adversarial: bool = True
    utility_model: str = ""
    privacy_model: str = ""
    lessons: float = 10.0
    epochs: float = 20.0
    moves: int = 2
    width: float = 0.5
    service: float = 0.25
    batch: int = 128
    lr: float = 1e-3

    name = "collaborative"
    title = "Collaborative sanitizer"
    tasks = "needed"
    modalities = NUMERIC
    instead = (
        "a sanitizer gives records of the same form, and words have no gradient; choose hedge or "
        "tiprdc"
    )
    dial = "alpha"
    sweep = (0.1, 0.5, 0.9, 0.99)
    ranges = ranges_of(alpha=(0, 1), service=at_least(0.01), moves=at_least(1))
    models = cast(Mapping[str, tuple[Model, Card]], MappingProxyType({}))
    __sklearn_clone__ = copy.copy

    def with_models(
        self, models: Mapping[str, Model], cards: Mapping[str, Card] = MappingProxyType({})
    ) -> Collaborative:
        """The same method with models that the provider has, by the name of their attribute;
        `cards` as for `provided_service`.

        >>> method = Collaborative(alpha=0.5).with_models({"income": nn.Linear(12, 2)})
        >>> method.models["income"][0]
        Linear(in_features=12, out_features=2, bias=True)
        """
        method = copy.copy(self)
        added = {name: (model, cards.get(name)) for name, model in models.items()}
        method.models = {**self.models, **added}
        return method

    def accept(self, problem: Problem) -> Problem:
        self.provided(problem)
        return problem

    def provided(self, problem: Problem) -> dict[str, Service]:
        """The models that somebody else made, by attribute, tried on records."""
        known = {attribute.name: attribute for attribute in (*problem.private, *problem.utility)}
        files = {
            **model_files(self.utility_model, problem.utility, "utility_model"),
            **model_files(self.privacy_model, problem.private, "privacy_model"),
        }
        models = {**self.models, **{name: (file, None) for name, file in files.items()}}
        for name in models:
            if name not in known:
                raise unknown("private attribute or task of this release", name, known)
        return {
            name: provided_service(model, problem, known[name], card)
            for name, (model, card) in models.items()
        }

    def learn(self, problem: Problem, run: Run) -> Release:
        networks = CollaborativeNetworks(problem, self)
        phases = [*networks.lessons(), networks.play()]
        models = [service.sha256 for service in networks.services]
        history = self.game(problem, networks.modules(), phases, self.batch, models).play(run)
        law = Noise("gaussian", networks.noise, 1.0) if networks.noise else None
        network = ("sanitizer", {"width": self.width, "stochastic": self.stochastic})
        release = Release(problem.schema, network, networks.sanitizer, law, {"form": "record"})
        roles = networks.roles()
        evaluation = evaluate_services(release, problem.data, roles, "select", self.seed)
        release.card |= {
            "services": networks.sources(),
            "in_game": {
                a.attribute: {
                    "accuracy": a.released["accuracy"],
                    "balanced": a.released["balanced"],
                    "n": a.n,
                    "part": a.part,
                }
                for a in evaluation.answers
                if a.role == "private" and a.released
            },
            "outcomes": evaluation.to_json(),
            "history": history,
        }
        return release


class CollaborativeNetworks:
    """The sanitizer S, the services it keeps working, and the privacy models as they came and as
    they play."""

    def __init__(self, problem: Problem, method: Collaborative) -> None:
        self.method = method
        self.noise = Sanitizer.noise_shape(problem.schema) if method.stochastic else None
        provided = method.provided(problem)
        # Services first: the same seed then gives the same services to every variant of the method.
        self.services = [
            provided.get(a.name) or new_service(problem, a, method.service)
            for a in (*problem.utility, *problem.private)
        ]
        tasks = len(problem.utility)
        self.utility, self.private = self.services[:tasks], self.services[tasks:]
        self.given = [service.copy() for service in self.private]
        self.to_teach = [s for s in self.services if s.attribute.name not in provided]
        self.sanitizer = Sanitizer(problem.schema, method.width, method.stochastic)
        self.priors = [
            _prior(problem, attribute).to(problem.device) for attribute in problem.private
        ]

    def modules(self) -> dict[str, nn.Module]:
        roles = {"utility": self.utility, "private": self.private, "given": self.given}
        named = {
            f"{role} {place}": one.module
            for role, services in roles.items()
            for place, one in enumerate(services)
        }
        return {"sanitizer": self.sanitizer, **named}

    def roles(self) -> list[tuple[str, Service]]:
        """Whose answers are reported, and in which role."""
        roles = {"utility": self.utility, "private": self.private}
        if self.method.adversarial:
            roles["given"] = self.given
        return [(role, service) for role, services in roles.items() for service in services]

    def sources(self) -> dict[str, dict[str, str]]:
        """Where each model comes from, for the card."""
        return {
            s.attribute.name: {
                "role": role,
                "source": s.source,
                **({"sha256": s.sha256} if s.sha256 else {}),
            }
            for role, s in self.roles()
            if role != "given"
        }

    def lessons(self) -> list[Phase]:
        """One phase per model that was not provided; what a privacy model was before the game is
        kept as it ends its lessons."""
        return [
            replace(teaching_phase(s, self.method.lessons, jitter=True), after=self._copy_private)
            for s in self.to_teach
        ]

    def _copy_private(self) -> dict[str, float]:
        for given, service in zip(self.given, self.private, strict=True):
            given.module.load_state_dict(service.module.state_dict())
        return {}

    def play(self) -> Phase:
        m = self.method
        players = [Player("sanitizer", self.sanitizer, self.sanitize, m.lr)]
        if m.adversarial:
            models = nn.ModuleList([service.module for service in self.private])
            players.append(Player("privacy model", models, self.defeat, m.lr, steps=m.moves))
        return Phase(
            "sanitizing",
            m.epochs,
            players,
            schedule=lambda done: cosine(done) + 1e-3,
            # Nobody knows what a provided model does in between.
            steady=len(self.to_teach) == len(self.services),
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
                F.kl_div(_log(service, z), wanted, log_target=True, reduction="batchmean")
                for service, wanted in zip(self.utility, before, strict=True)
            ]
        ).mean()
        hidden = torch.stack(
            [
                F.kl_div(_log(service, z), prior.expand(len(z), -1), reduction="batchmean")
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
            cross_entropy(s(seen), batch.labels[s.attribute.name])
            for s in self.private
            for seen in (x, z)
        ]
        figures = {"private CE raw": losses[0], "private CE released": losses[1]}
        return Move(2 * torch.stack(losses).mean(), figures)


def _log(service: Service, x: Tensor) -> Tensor:
    """Logarithms of the probabilities that a service gives."""
    return F.log_softmax(service(x), dim=1)


def _prior(problem: Problem, attribute: Attribute) -> Tensor:
    labels = torch.as_tensor(problem.view().labels[attribute.name])
    counts = torch.bincount(labels[labels >= 0], minlength=attribute.classes)
    return counts / counts.sum()
