"""Cloak: which features does the service need? The others are suppressed.

    min over mu, rho of   -log(mean sigma^2) + weight * mean over tasks CE(f(x + r), y),    f frozen
    r = unit * (mu + sigma xi),   xi ~ N(0, I) fresh for every record,   sigma = floor + (1 + tanh rho) / 2 * (most - floor)

A feature that bears much noise is not needed. The share `suppression` with the largest sigma is
then replaced by 0, by its noise alone, or by constants that are learned for the frozen f; the
others keep the noise they bear. In black-box form all of this is learned with a substitute of
another design, and the service itself is only asked afterwards.

Mireshghallah, Taram, Jalali, Elthakeb, Tullsen and Esmaeilzadeh, "Not all features are equal:
discovering essential features for preserving prediction privacy", WWW 2021, arXiv:2003.12154:
equation 7, and section 3 for the three kinds of suppression. `unit` is 1 there, and here for
pictures and signals; of a table it is the deviation of a value on *fit*, or every rare category
would seem needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError, unknown
from privet.data.dataset import Array, Attribute, Dataset, Modality
from privet.data.schema import TableSchema
from privet.methods.collaborative import model_files
from privet.methods.method import Method, Problem
from privet.methods.services.service import Service, new_service, provided_service, teaching_phase
from privet.nets import plan as nets
from privet.nets.convolutions import prepare
from privet.nets.mask import Cover, Keep, Spread, feature_names, groups, kept, members
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Batch, Feed
from privet.train.game import Game, Move, Phase, Player, Run

KINDS = ("zero", "noise", "constant")
BY = ("auto", "place", "channel", "value")
WIDEST = 1024
"""Values whose covariance is still worth computing."""


@dataclass(kw_only=True)
class Cloak(Method):
    suppression: float = 0.8
    """Share of the features (see `by`) that are suppressed, rounded down."""
    kind: str = "constant"
    """What stands in their place: zero, noise (their own, alone) or constant (learned)."""
    noisy: bool = True
    """Whether the features that are kept get the noise they bear."""
    by: str = "auto"
    """A feature is a place (pixel, moment, column of a table), a channel, or a value; auto: a
    channel of signals, else a place."""
    weight: float = 20.0
    """lambda: of the tasks' loss against the noise."""
    most: float = 1.5
    """Largest sigma."""
    floor: float = 0.01
    """Smallest sigma."""
    start: float = 0.0
    """rho at first: 0 is half the largest sigma, from where only what is needed comes down;
    published code starts at about -3, near 0."""
    utility_model: str = ""
    """The service, as an ONNX file, or NAME=FILE with commas for several tasks; empty: it is taught
    here first."""
    black_box: bool = False
    """Learn with a substitute, and only ask the service."""
    lessons: float = 10.0
    """Epochs in which a service that was not brought learns."""
    epochs: float = 10.0
    """Epochs in which noise is learned."""
    constants: float = 5.0
    """Epochs in which constants are learned."""
    width: float = 0.25
    """Size of services that are taught here."""
    batch: int = 128
    lr: float = 0.02
    """Adam's, of the noise and the constants."""

    name: ClassVar[str] = "cloak"
    title: ClassVar[str] = "Cloak"
    tasks: ClassVar[Literal["none", "optional", "needed"]] = "needed"
    modalities: ClassVar[tuple[Modality, ...]] = ("image", "table", "signal")
    instead: ClassVar[str] = "a word bears no noise; choose a method for texts, such as hedge"
    numbers: ClassVar[bool] = True
    dial: ClassVar[str] = "suppression"
    sweep: ClassVar[tuple[float, ...]] = (0.5, 0.8, 0.9, 0.95, 0.99)

    def __post_init__(self) -> None:
        if not 0 <= self.suppression < 1:
            raise PrivetError(
                f"The suppression of cloak is a share from 0 to below 1, such as 0.9, not {self.suppression:g}."
            )
        if self.kind not in KINDS:
            raise unknown("kind of suppression", self.kind, KINDS)
        if self.by not in BY:
            raise unknown("feature", self.by, BY)
        if not 0 < self.floor < self.most:
            raise PrivetError(
                f"Cloak's noise lies between floor and most, and {self.floor:g} is not below {self.most:g} or not above 0."
            )
        self.within(start=(-8, 8))
        self.within(
            weight=(0, inf),
            lessons=(0, inf),
            epochs=(0, inf),
            constants=(0, inf),
            width=(0.01, inf),
            batch=(2, inf),
            lr=(1e-9, inf),
        )

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
        """Services that somebody else made, by task, tried on records."""
        files = model_files(self.utility_model, problem.utility, "utility_model")
        return {
            task.name: provided_service(files[task.name], problem, task)
            for task in problem.utility
            if task.name in files
        }

    def learn(self, problem: Problem, run: Run) -> Release:
        torch.manual_seed(self.seed)
        networks = CloakNetworks(problem, self)
        identity = f"{self.identity(problem)} {[service.sha256 for service in networks.served]}"
        game = Game(
            networks.modules(), networks.phases(), networks.feed, self.batch, self.seed, identity
        )
        game.play(run)
        release = networks.release()
        release.card |= networks.judge(release) | {"history": game.history}
        return release


class CloakNetworks:
    """The services, and the noise that they bear."""

    def __init__(self, problem: Problem, method: Cloak) -> None:
        self.problem, self.method, self.feed = problem, method, problem.feed()
        self.groups = groups(problem.schema, method.by).to(problem.device)
        self.members = members(self.groups)
        self.features = len(self.members)
        brought = method.brought(problem)
        self.served = [
            brought.get(task.name) or new_service(problem, task, method.width)
            for task in problem.utility
        ]
        self.guides = (
            [substitute(problem, task, method.width) for task in problem.utility]
            if method.black_box
            else self.served
        )
        own = [service for service in self.served if service.attribute.name not in brought]
        self.taught = [*own, *self.guides] if method.black_box else own
        mean, deviation = moments(self.feed)
        unit = (
            deviation.clamp(min=0.01)
            if isinstance(problem.schema, TableSchema)
            else torch.ones_like(mean)
        )
        self.cover = Cover(mean, unit, (method.floor, method.most), method.start)
        self.steady = not brought  # nobody knows what a model that was brought does in between
        self._keep: Tensor | None = None

    def modules(self) -> dict[str, nn.Module]:
        services = {id(s.module): s.module for s in (*self.served, *self.guides)}
        return {"cover": self.cover, "services": nn.ModuleList(services.values())}

    def phases(self) -> list[Phase]:
        m = self.method
        phases = [teaching_phase(service, m.lessons, jitter=True) for service in self.taught]
        noise, constants = (
            Player("noise", self.cover.noise, self.bear, m.lr),
            Player("constants", self.cover.instead, self.replace, m.lr),
        )
        phases.append(Phase("learning noise", m.epochs, [noise], steady=self.steady))
        if m.kind == "constant" and m.suppression > 0:
            phases.append(Phase("learning constants", m.constants, [constants], steady=self.steady))
        return phases

    def bear(self, batch: Batch) -> Move:
        """Equation 7: as much noise as the tasks bear."""
        loss, right = self.serve(self.cover(prepare(batch.x)), batch.labels)
        spread = self.borne().square().mean()
        return Move(
            -spread.log() + self.method.weight * loss,
            {"task loss": loss, "right": right, "noise": spread.sqrt()},
        )

    def replace(self, batch: Batch) -> Move:
        """Constants that serve the tasks best in place of what is suppressed."""
        x = prepare(batch.x)
        kept = self.cover(x).detach() if self.method.noisy else x
        loss, right = self.serve(torch.where(self.keep, kept, self.cover.constants()), batch.labels)
        return Move(loss, {"task loss": loss, "right": right})

    def borne(self) -> Tensor:
        """The noise that each feature bears."""
        return self.cover.borne(self.members)

    def serve(self, x: Tensor, labels: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Mean loss of the services that guide, and how often they are right."""
        losses, right = [], []
        for service in self.guides:
            truth, scores = labels[service.attribute.name], service(x)
            known = (truth >= 0).sum().clamp(min=1)
            losses.append(F.cross_entropy(scores, truth, ignore_index=-1, reduction="sum") / known)
            right.append((scores.argmax(1) == truth).sum() / known)
        return torch.stack(losses).mean(), torch.stack(right).mean()

    @property
    def keep(self) -> Tensor:
        """Which values are kept; it follows from sigma, which is no longer learned when it is asked
        for."""
        if self._keep is None:
            self._keep = kept(self.borne().detach(), self.groups, self.method.suppression)
        return self._keep

    @torch.no_grad()
    def release(self) -> Release:
        m, cover, schema = self.method, self.cover, self.problem.schema
        module = Spread(Keep(schema.shape)).to(self.feed.device)
        assert isinstance(module.body, Keep)
        module.body.keep.copy_(self.keep)
        module.body.sigma.copy_(cover.sigma())
        noisy = (self.keep & m.noisy) | (~self.keep & (m.kind == "noise"))
        location = torch.where(noisy, cover.unit * cover.noise.mu, 0.0)
        if m.kind == "constant":
            location = torch.where(self.keep, location, cover.constants())
        module.fill(location, torch.where(noisy, cover.unit * cover.sigma(), 0.0))
        shape = tuple(size or 0 for size in schema.shape)
        return Release(
            schema,
            ("cloak", {}),
            module,
            Noise("gaussian", shape, 1.0) if bool(noisy.any()) else None,
            {"form": "record"},
        )

    def judge(self, release: Release) -> dict[str, Any]:
        """What was suppressed, how the services do on people not learned from, and the bound on
        what is left."""
        feed, borne = self.problem.feed("select"), self.borne().detach().cpu()
        gone = self.features - len(torch.unique(self.groups[self.keep]))
        services: dict[str, Any] = {
            s.attribute.name: {"source": s.source, **asked(s, release, feed, self.method)}
            for s in self.served
        }
        if self.method.black_box:
            for s in self.guides:
                services[s.attribute.name]["substitute"] = asked(s, release, feed, self.method)
        said: dict[str, Any] = {
            "services": services,
            "suppressed": {
                "features": gone / self.features,
                "values": float((~self.keep).double().mean()),
                "of": self.features,
            },
            "sigma": {
                name: float(torch.quantile(borne, q))
                for name, q in (("least", 0.0), ("median", 0.5), ("most", 1.0))
            },
            "information": bound(release, self.feed),
        }
        names = feature_names(self.problem.schema, self.method.by)
        if names:
            stays = {int(g) for g in torch.unique(self.groups[self.keep])}
            order = torch.argsort(borne, stable=True).tolist()
            said["needed"] = [
                {"feature": names[g], "sigma": round(float(borne[g]), 4), "kept": g in stays}
                for g in order
            ]
        return said


def substitute(problem: Problem, attribute: Attribute, width: float) -> Service:
    """A service of another design than `new_service`'s: plain convolutions or layers, after TIPRDC's
    tables."""
    plan = nets.plan(problem.schema)
    front: Any = plan.extractor(width)
    return Service(
        attribute,
        nn.Sequential(front, plan.classifier(front.shape, attribute.classes, width)),
        "substitute",
    )


def moments(feed: Feed) -> tuple[Tensor, Tensor]:
    """Mean and deviation of every value, in the network's scale."""
    total, square = 0.0, 0.0  # type: Any, Any
    for batch in feed.batches(pieces(feed)):
        x = prepare(batch.x).double()
        total, square = total + x.sum(0), square + x.square().sum(0)
    mean = total / len(feed)
    return mean.float().contiguous(), (square / len(feed) - mean.square()).clamp(
        min=0
    ).sqrt().float().contiguous()


def pieces(feed: Feed, size: int = 512) -> list[Array]:
    return [np.arange(start, min(start + size, len(feed))) for start in range(0, len(feed), size)]


@torch.no_grad()
def asked(service: Service, release: Release, feed: Feed, method: Method) -> dict[str, Any]:
    """How often a service is right about raw and about released records of people that nothing was
    learned from."""
    torch.manual_seed(method.seed)
    right, n = [0, 0], 0
    for batch in feed.batches(pieces(feed)):
        truth = batch.labels[service.attribute.name]
        n += int((truth >= 0).sum())
        for place, x in enumerate((prepare(batch.x), release.forward(batch.x))):
            right[place] += int((service(x).argmax(1) == truth).sum())
    return {"raw": right[0] / max(n, 1), "released": right[1] / max(n, 1), "n": n, "part": "select"}


@torch.no_grad()
def bound(release: Release, feed: Feed) -> dict[str, Any]:
    """Upper bound in bits on what a release tells of a record: `gaussian_bound` on the values that
    it still tells of."""
    from privet.evidence.information import (
        gaussian_bound,  # with half of scipy, which nobody else here waits for
    )

    module = release.module
    assert isinstance(module, Spread)
    told = module.told.flatten()
    if int(told.sum()) > WIDEST:
        return {"bound_bits": None, "note": f"Not computed for more than {WIDEST} values."}
    rows = np.concatenate(
        [
            module.body(b.x).float().flatten(1).cpu().numpy()[:, told.numpy()]
            for b in feed.batches(pieces(feed))
        ]
    )
    scales = module.scales.flatten().cpu().numpy()[told.numpy()]
    found = gaussian_bound(np.cov(rows.T.astype(np.float64)).reshape(2 * scales.shape), scales)
    if not np.isfinite(found.value):
        return {
            "bound_bits": None,
            "note": "There is none: a value that is kept varies and gets no noise.",
        }
    return {"bound_bits": found.value, "note": found.limit}
