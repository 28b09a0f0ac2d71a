"""ServiceEvaluation: what the provider's own models answer on raw records and on what a release makes of
them; nothing is trained here.

How often a service is still right, how sure the model of the private attribute is per true value,
whether people are still identified, and whether a model that learned against the release still
works on unfiltered records. It says nothing about adversaries that learn: those are an audit's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from privet.data.dataset import Array, Dataset
from privet.methods.services.service import Service
from privet.nets.convolutions import prepare
from privet.release.release import Release
from privet.train.feed import Feed

BINS = 20
"""Of the histograms of a probability."""
FEW = 512
"""Records by which it is measured how far released records lie from raw ones, and from a second
release."""


@dataclass(frozen=True)
class ProbabilityHistogram:
    """How much probability a model gives to one value (`asked` of ServiceAnswers), among the records whose
    true value is `value`."""

    value: str
    raw: tuple[int, ...]
    released: tuple[int, ...]
    """Records per bin, from probability 0 to 1."""


@dataclass(frozen=True)
class ServiceAnswers:
    """One model's answers about one attribute."""

    attribute: str
    role: str
    """utility; private: the model that played, in the end; given: the model of a private attribute
    as it came."""
    part: str
    n: int
    raw: dict[str, float]
    released: dict[str, float]
    """accuracy, balanced and, of more than five classes, top_5: shares of the records whose value
    is known."""
    agree: float
    """Share of all records for which the first answer is the same on both."""
    asked: str = ""
    """Of two values the second; of more, "the true value". Empty where sureness is not asked
    for."""
    sureness: tuple[ProbabilityHistogram, ...] = ()


@dataclass(frozen=True)
class Identification:
    """One raw record of each person stands in a gallery; the others are to find it by the likeness
    of a service's scores."""

    attribute: str
    part: str
    people: int
    probes: int
    raw: dict[str, float]
    released: dict[str, float]
    """top_1 and top_5: shares of probes."""


@dataclass(frozen=True)
class ServiceEvaluation:
    part: str
    answers: tuple[ServiceAnswers, ...]
    identified: tuple[Identification, ...]
    change: float
    """Mean absolute difference of released and raw records, in the network's scale."""
    spread: float
    """The same of two releases of the same record: 0 where the release is deterministic, or has
    learned to be."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> ServiceEvaluation:
        answers = tuple(
            ServiceAnswers(
                **{
                    **a,
                    "sureness": tuple(
                        ProbabilityHistogram(s["value"], tuple(s["raw"]), tuple(s["released"]))
                        for s in a["sureness"]
                    ),
                }
            )
            for a in value["answers"]
        )
        identified = tuple(Identification(**i) for i in value["identified"])
        return ServiceEvaluation(
            value["part"], answers, identified, value["change"], value["spread"]
        )


def evaluate_services(
    release: Release,
    data: Dataset,
    services: Sequence[tuple[str, Service]],
    part: str = "test",
    seed: int = 0,
    batch: int = 256,
) -> ServiceEvaluation:
    """What `services`, pairs of a role and a model, answer about the people of one part.

    A model that names people knows those of *fit*, so its answers are counted there, in sample; on
    `part` it is asked by a gallery.
    """
    device = next((t.device for t in release.module.state_dict().values()), torch.device("cpu"))
    for _, service in services:
        service.module.to(device)
    torch.manual_seed(seed)
    names = {service.attribute.name for _, service in services}

    def feed(view: Dataset) -> Feed:
        return Feed(
            release.schema.inputs(view), {name: view.labels[name] for name in names}, device
        )

    own, found = (
        [(role, service) for role, service in services if service.attribute.kind == "identity"],
        [],
    )
    others = [(role, service) for role, service in services if service.attribute.kind != "identity"]
    view = data.part(part)
    for where, some in ((part, others), ("fit", own)):
        if some:
            found += _answers(
                release, feed(view if where == part else data.part(where)), some, where, batch
            )
    identified = [
        i
        for _, service in own
        if (i := _identified(release, view, feed(view), service, part, seed, batch)) is not None
    ]
    with torch.inference_mode():
        x = feed(view).batch(np.arange(min(FEW, len(view)))).x
        first, second = release.forward(x), release.forward(x)
        change, spread = (
            float((first - prepare(x)).abs().mean()),
            float((first - second).abs().mean()),
        )
    return ServiceEvaluation(part, tuple(found), tuple(identified), change, spread)


@torch.inference_mode()
def _answers(
    release: Release, feed: Feed, services: Sequence[tuple[str, Service]], part: str, batch: int
) -> list[ServiceAnswers]:
    seen: list[list[tuple[Tensor, ...]]] = [[] for _ in services]
    for one in feed.batches(_parts(len(feed), batch)):
        raw, released = prepare(one.x), release.forward(one.x)
        for rows, (_, service) in zip(seen, services, strict=True):
            truth = one.labels[service.attribute.name]
            rows.append((truth, *_read(service, raw, truth), *_read(service, released, truth)))
    return [
        _counted(
            service,
            role,
            part,
            *(torch.cat(column).cpu().numpy() for column in zip(*rows, strict=True)),
        )
        for rows, (role, service) in zip(seen, services, strict=True)
    ]


def _read(service: Service, x: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """The first answers, best first, and the probability of what is asked for."""
    scores = service(x)
    asked = torch.ones_like(truth) if service.attribute.classes == 2 else truth.clamp(min=0)
    sure = scores.softmax(1).gather(1, asked.unsqueeze(1)).squeeze(1)
    return scores.topk(min(5, scores.shape[1]), dim=1).indices, sure


def _counted(
    service: Service,
    role: str,
    part: str,
    truth: Array,
    raw: Array,
    raw_sure: Array,
    released: Array,
    released_sure: Array,
) -> ServiceAnswers:
    attribute = service.attribute
    known = truth >= 0
    asked, sureness = "", tuple[ProbabilityHistogram, ...]()
    if role != "utility":
        asked = attribute.values[1] if attribute.classes == 2 else "the true value"
        sureness = tuple(
            ProbabilityHistogram(
                value, _histogram(raw_sure[truth == code]), _histogram(released_sure[truth == code])
            )
            for code, value in enumerate(attribute.values)
            if (truth == code).any()
        )
    before, after = (
        _shares(first[known], truth[known], attribute.classes) for first in (raw, released)
    )
    agree = float((raw[:, 0] == released[:, 0]).mean()) if len(raw) else 0.0
    return ServiceAnswers(
        attribute.name, role, part, int(known.sum()), before, after, agree, asked, sureness
    )


def _shares(first: Array, truth: Array, classes: int) -> dict[str, float]:
    if not len(truth):
        return {}
    right = first[:, 0] == truth
    counts = np.bincount(truth)
    recalls = np.bincount(truth, weights=right)[counts > 0] / counts[counts > 0]
    found = {"accuracy": float(right.mean()), "balanced": float(recalls.mean())}
    return found | (
        {"top_5": float((first == truth[:, None]).any(1).mean())} if classes > 5 else {}
    )


def _histogram(probability: Array) -> tuple[int, ...]:
    return tuple(np.histogram(probability, BINS, (0.0, 1.0))[0].tolist())


@torch.inference_mode()
def _identified(
    release: Release, view: Dataset, feed: Feed, service: Service, part: str, seed: int, batch: int
) -> Identification | None:
    """Ranked by the cosine of scores less the gallery's mean scores: every model has scores, and
    few show what is behind them."""
    names = view.labels[service.attribute.name]
    order = np.random.default_rng(seed).permutation(len(names))
    order = order[names[order] >= 0]
    people, first, counts = np.unique(names[order], return_index=True, return_counts=True)
    several = np.isin(names[order], people[counts > 1])
    gallery = order[first[counts > 1]]
    probes = np.setdiff1d(order[several], gallery)
    if len(gallery) < 2:
        return None

    def scores(index: Array, raw: bool) -> Tensor:
        seen = feed.batches(index[at] for at in _parts(len(index), batch))
        return torch.cat(
            [service(prepare(one.x) if raw else release.forward(one.x)) for one in seen]
        )

    known = scores(gallery, True)
    centre = known.mean(0)
    wanted = torch.as_tensor(np.searchsorted(names[gallery], names[probes]), device=known.device)

    def found(raw: bool) -> dict[str, float]:
        alike = (
            F.normalize(scores(probes, raw) - centre, dim=1) @ F.normalize(known - centre, dim=1).T
        )
        first = alike.topk(min(5, len(gallery)), dim=1).indices == wanted.unsqueeze(1)
        return {
            "top_1": float(first[:, 0].float().mean()),
            "top_5": float(first.any(1).float().mean()),
        }

    return Identification(
        service.attribute.name, part, len(gallery), len(probes), found(True), found(False)
    )


def _parts(n: int, batch: int) -> list[Array]:
    return [np.arange(start, min(start + batch, n)) for start in range(0, n, batch)]
