"""Cloak: which features does the service need? The others are suppressed.

    min over mu, rho of   -log(mean sigma^2) + weight * mean over tasks CE(f(x + r), y),    f frozen
    r = unit * (mu + sigma xi),   xi ~ N(0, I) fresh for every record
    sigma = floor + (1 + tanh rho) / 2 * (most - floor)

A feature that bears much noise is not needed. The share `suppression` with the largest sigma is
then replaced by 0, by its noise alone, or by constants that are learned for the frozen f; the
others keep the noise they bear. In black-box form all of this is learned with a substitute of
another design, taught on other people than the service, and the service itself is only asked
afterwards.

Mireshghallah, Taram, Jalali, Elthakeb, Tullsen and Esmaeilzadeh, "Not all features are equal:
discovering essential features for preserving prediction privacy", WWW 2021, arXiv:2003.12154:
equation 7, and section 3 for the three kinds of suppression. `unit` is 1 there, and here for
pictures and signals; of a table it is the deviation of a value on *fit*, or every rare category
would seem needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privet.core.errors import refuse
from privet.data.dataset import Array, Attribute
from privet.data.schema import TableSchema
from privet.evidence.figures import Figure
from privet.methods.halves import halves
from privet.methods.known_labels import accuracy, accuracy_on_both, cross_entropy
from privet.methods.method import NUMERIC, Method, Problem, at_least, choices_of, ranges_of
from privet.methods.services.service import (
    Service,
    model_files,
    new_service,
    provided_service,
    teaching_phase,
)
from privet.nets import plan as nets
from privet.nets.convolutions import prepare
from privet.nets.mask import Cover, Keep, Spread, feature_names, groups, kept, members
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Batch, Feed
from privet.train.game import Move, Phase, Player, Run

# Values whose covariance is still worth computing.
MOST_VALUES = 1024


@dataclass(kw_only=True)
class Cloak(Method):
    """Suppresses the features of a record that a given service does not need.

    Noise is learned that is as large as a frozen service bears. The features that bear most are
    replaced; the others are released with their noise. The service is provided as an ONNX file, or
    taught here first from the task's labels. The private attribute is not learned from.

    Parameters:
        suppression: Share of the features (see `by`) that are suppressed, rounded down; below 1.
        kind: What stands in their place: zero, noise (their own, alone) or constant (learned).
        noisy: Whether the features that are kept get the noise they bear.
        by: A feature is a place (pixel, moment, column of a table), a channel, or a value; auto: a
            channel of signals, else a place.
        weight: lambda: weight of the tasks' loss against the noise.
        most: Largest sigma.
        floor: Smallest sigma.
        start: rho at first: 0 is half the largest sigma, from where only what is needed comes down;
            published code starts at about -3, near 0.
        utility_model: The service, as an ONNX file, or NAME=FILE with commas for several tasks;
            empty: it is taught here first.
        black_box: Learn with a substitute, taught on one half of the people, and only ask the
            service, taught on the other half or provided.
        lessons: Epochs in which a service that was not provided is taught.
        epochs: Epochs in which noise is learned.
        constants: Epochs in which constants are learned.
        width: Factor on the layer sizes of services that are taught here.
        batch: Records per step.
        lr: Learning rate of Adam for the noise and the constants.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> quick = {"width": 0.05, "lessons": 1, "epochs": 1, "constants": 1}
        >>> method = privet.Cloak(suppression=0.5, **quick)
        >>> release = method.fit(data, "beard", "smiling", run=privet.Run(progress=False))
        >>> release.card["suppressed"]["features"]
        0.5

    Notes:
        What the service needs is released, also where it shows the private attribute. Features that
        are kept without noise (`noisy=False`) are released as they are.
    """

    suppression: float = 0.8
    kind: str = "constant"
    noisy: bool = True
    by: str = "auto"
    weight: float = 20.0
    most: float = 1.5
    floor: float = 0.01
    start: float = 0.0
    utility_model: str = ""
    black_box: bool = False
    lessons: float = 10.0
    epochs: float = 10.0
    constants: float = 5.0
    width: float = 0.25
    batch: int = 128
    lr: float = 0.02

    name = "cloak"
    title = "Cloak"
    tasks = "needed"
    modalities = NUMERIC
    instead = "a word bears no noise; choose a method for texts, such as hedge"
    numbers = True
    dial = "suppression"
    sweep = (0.5, 0.8, 0.9, 0.95, 0.99)
    choices = choices_of(
        kind=("zero", "noise", "constant"), by=("auto", "place", "channel", "value")
    )
    ranges = ranges_of(start=(-8, 8), weight=at_least(0), constants=at_least(0))

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse(
            (
                not 0 <= self.suppression < 1,
                (
                    "The suppression of cloak is a share from 0 to below 1, such as 0.9, not "
                    f"{self.suppression:g}."
                ),
            ),
            (
                not 0 < self.floor < self.most,
                (
                    f"Cloak's noise lies between floor and most, and {self.floor:g} is not below "
                    f"{self.most:g} or not above 0."
                ),
            ),
        )

    def accept(self, problem: Problem) -> Problem:
        self.provided(problem)
        return problem

    def provided(self, problem: Problem) -> dict[str, Service]:
        """Services that somebody else made, by task, tried on records."""
        files = model_files(self.utility_model, problem.utility, "utility_model")
        return {
            task.name: provided_service(files[task.name], problem, task)
            for task in problem.utility
            if task.name in files
        }

    def learn(self, problem: Problem, run: Run) -> Release:
        networks = CloakNetworks(problem, self)
        history = self.game(
            problem,
            networks.modules(),
            networks.phases(),
            self.batch,
            [service.sha256 for service in networks.served],
        ).play(run)
        release = networks.release()
        release.card |= networks.judge(release) | {"history": history}
        return release


class CloakNetworks:
    """The services, and the noise that they bear."""

    def __init__(self, problem: Problem, method: Cloak) -> None:
        self.problem, self.method, self.feed = problem, method, problem.feed()
        self.groups = groups(problem.schema, method.by).to(problem.device)
        self.members = members(self.groups)
        provided = method.provided(problem)
        self.served = self.guides = [
            provided.get(task.name) or new_service(problem, task, method.width)
            for task in problem.utility
        ]
        self.taught = [s for s in self.served if s.attribute.name not in provided]
        # Whom the service learned from, and who learns the release: others, in black-box form.
        self.service_records: Array | None = None
        self.own_records: Array | None = None
        if method.black_box:
            self.guides = [substitute(problem, task, method.width) for task in problem.utility]
            self.service_records, self.own_records = halves(problem.view().people, method.seed)
        mean, deviation = moments(self.feed)
        table = isinstance(problem.schema, TableSchema)
        unit = deviation.clamp(min=0.01) if table else torch.ones_like(mean)
        self.cover = Cover(mean, unit, (method.floor, method.most), method.start)
        self.steady = not provided  # nobody knows what a provided model does in between
        self._keep: Tensor | None = None

    def modules(self) -> dict[str, nn.Module]:
        services = {id(s.module): s.module for s in (*self.served, *self.guides)}
        return {"cover": self.cover, "services": nn.ModuleList(services.values())}

    def phases(self) -> list[Phase]:
        m = self.method
        lessons = [(service, self.service_records) for service in self.taught]
        if m.black_box:
            lessons += [(guide, self.own_records) for guide in self.guides]
        phases = [
            teaching_phase(service, m.lessons, jitter=True, records=records)
            for service, records in lessons
        ]
        noise = Player("noise", self.cover.noise, self.bear, m.lr, records=self.own_records)
        phases.append(Phase("learning noise", m.epochs, [noise], steady=self.steady))
        if m.kind == "constant" and m.suppression > 0:
            constants = Player(
                "constants", self.cover.instead, self.replace, m.lr, records=self.own_records
            )
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
        x = self.cover(x).detach() if self.method.noisy else x
        loss, right = self.serve(torch.where(self.keep, x, self.cover.constants()), batch.labels)
        return Move(loss, {"task loss": loss, "right": right})

    def borne(self) -> Tensor:
        """The noise that each feature bears."""
        return self.cover.borne(self.members)

    def serve(self, x: Tensor, labels: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Mean loss of the services that guide, and how often they are right."""
        pairs = [(service(x), labels[service.attribute.name]) for service in self.guides]
        loss = torch.stack([cross_entropy(*pair) for pair in pairs]).mean()
        return loss, torch.stack([accuracy(*pair) for pair in pairs]).mean()

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
        body = Keep(schema.shape).to(self.feed.device)
        body.keep.copy_(self.keep)
        body.sigma.copy_(cover.sigma())
        noisy = (self.keep & m.noisy) | (~self.keep & (m.kind == "noise"))
        location = torch.where(noisy, cover.unit * cover.noise.mu, 0.0)
        if m.kind == "constant":
            location = torch.where(self.keep, location, cover.constants())
        module = Spread(body).to(self.feed.device)
        module.fill(location, torch.where(noisy, cover.unit * cover.sigma(), 0.0))
        law = Noise("gaussian", body.shape, 1.0) if bool(noisy.any()) else None
        return Release(schema, ("cloak", {}), module, law, {"form": "record"})

    def judge(self, release: Release) -> dict[str, Any]:
        """What was suppressed, how the services do on people not learned from, and the bound on
        what is left."""
        borne = self.borne().detach().cpu()
        stays = {int(group) for group in torch.unique(self.groups[self.keep])}
        services = {
            s.attribute.name: {
                "source": s.source,
                **self._figures(s, release),
                "fairness": self._fairness(s, release),
            }
            for s in self.served
        }
        if self.method.black_box:
            for s in self.guides:
                services[s.attribute.name]["substitute"] = self._figures(s, release)
        quantiles = {"least": 0.0, "median": 0.5, "most": 1.0}
        card: dict[str, Any] = {
            "services": services,
            "suppressed": {
                "features": (len(borne) - len(stays)) / len(borne),
                "values": float((~self.keep).double().mean()),
                "of": len(borne),
            },
            "sigma": {name: float(torch.quantile(borne, q)) for name, q in quantiles.items()},
            "information": information_bound(release, self.feed),
        }
        names = feature_names(self.problem.schema, self.method.by)
        if names:
            order = torch.argsort(borne, stable=True).tolist()
            card["needed"] = [
                {"feature": names[g], "sigma": round(float(borne[g]), 4), "kept": g in stays}
                for g in order
            ]
        return card

    def _fairness(self, service: Service, release: Release) -> dict[str, Any]:
        """How differently the frozen service treats groups of each private attribute, on raw and on
        released records of *select*."""
        from privet.evidence.fairness import fairness  # SciPy is slow to import

        torch.manual_seed(self.method.seed)
        view, feed = self.problem.view("select"), self.problem.feed("select")
        released, raw = (
            torch.cat([service(change(b.x)).argmax(1).cpu() for b in feed.in_order()]).numpy()
            for change in (release.forward, prepare)
        )
        found = {}
        for by in (a for a in self.problem.private if a.is_class):
            task, groups = service.attribute, view.labels[by.name]
            truth, people = view.labels[task.name], view.people
            gaps = fairness(
                task.name, by.name, truth, released, raw, groups, by.values, people, task.classes
            )
            found[by.name] = {
                name: {key: _interval(figure) for key, figure in figures.items()}
                for name, figures in (("raw", gaps.raw), ("released", gaps.released))
            }
        return found | {"part": "select"} if found else {}

    def _figures(self, service: Service, release: Release) -> dict[str, Any]:
        torch.manual_seed(self.method.seed)
        return accuracy_on_both(
            self.problem.feed("select"),
            service.attribute,
            lambda x: service(prepare(x)),
            lambda x: service(release.forward(x)),
        )


def _interval(figure: Figure) -> dict[str, float]:
    return {"value": figure.value, "low": figure.low, "high": figure.high}


def substitute(problem: Problem, attribute: Attribute, width: float) -> Service:
    """A service of another design than `new_service`'s: plain convolutions or layers, after
    TIPRDC's tables."""
    plan = nets.plan(problem.schema)
    front: Any = plan.extractor(width)
    module = nn.Sequential(front, plan.classifier(front.shape, attribute.classes, width))
    return Service(attribute, module, "substitute")


def moments(feed: Feed) -> tuple[Tensor, Tensor]:
    """Mean and deviation of every value, in the network's scale."""
    total: Any = 0.0
    square: Any = 0.0
    for batch in feed.in_order():
        x = prepare(batch.x).double()
        total, square = total + x.sum(0), square + x.square().sum(0)
    mean = total / len(feed)
    deviation = (square / len(feed) - mean.square()).clamp(min=0).sqrt()
    return mean.float().contiguous(), deviation.float().contiguous()


@torch.no_grad()
def information_bound(release: Release, feed: Feed) -> dict[str, Any]:
    """Upper bound in bits on what a release tells of a record: `gaussian_bound` on the values that
    it still tells of."""
    from privet.evidence.information import gaussian_bound  # SciPy is slow to import

    module = release.module
    assert isinstance(module, Spread)
    told = module.told.flatten()
    if int(told.sum()) > MOST_VALUES:
        return {"bound_bits": None, "note": f"Not computed for more than {MOST_VALUES} values."}
    rows = [module.body(b.x).float().flatten(1)[:, told].cpu().numpy() for b in feed.in_order()]
    scales = module.scales.flatten()[told].cpu().numpy()
    covariance = np.cov(np.concatenate(rows).T.astype(np.float64))
    bound = gaussian_bound(covariance.reshape(2 * scales.shape), scales)
    if not np.isfinite(bound.value):
        return {
            "bound_bits": None,
            "note": "There is none: a value that is kept varies and gets no noise.",
        }
    return {"bound_bits": bound.value, "note": bound.limit}
