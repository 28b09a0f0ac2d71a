"""What the provider's own models answer on raw records and on what a release makes of them; nothing
is trained here.

How often a service is still right, how sure the model of the private attribute is per true value,
whether people are still identified, and whether a model that learned against the release still
works on unfiltered records. It says nothing about adversaries that learn: those are an audit's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from privet.core import json_values
from privet.data.dataset import Array, Dataset
from privet.methods.services.service import Service
from privet.nets.convolutions import prepare
from privet.release.release import Release
from privet.train.feed import Feed

# Bins of the histograms of a probability.
BINS = 20
# Records by which it is measured how far released records lie from raw ones, and from a second
# release.
COMPARED_RECORDS = 512
# Services with their roles: utility; private: the model that played, in the end; given: the model
# of a private attribute as it came.
Roles = Sequence[tuple[str, Service]]


@dataclass(frozen=True)
class ProbabilityHistogram:
    """How much probability a model gives to one value (`asked` of ServiceAnswers), among the
    records whose true value is `value`: records per bin, from probability 0 to 1."""

    value: str
    raw: tuple[int, ...]
    released: tuple[int, ...]


@dataclass(frozen=True)
class ServiceAnswers:
    """One model's answers about one attribute, on raw and on released records of one part.

    `raw` and `released` hold accuracy, balanced and, of more than five classes, top_5: shares of
    the `n` records whose value is known. `agree` is the share of all records for which the first
    answer is the same on both. `asked` is the value whose probability is shown: the second of two;
    of more, "the true value"; empty where there is no `sureness`.
    """

    attribute: str
    role: str
    part: str
    n: int
    raw: dict[str, float]
    released: dict[str, float]
    agree: float
    asked: str = ""
    sureness: tuple[ProbabilityHistogram, ...] = ()


@dataclass(frozen=True)
class Identification:
    """One raw record of each person is in a gallery; the others, the probes, are to find it by the
    likeness of a service's scores. `raw` and `released` hold top_1 and top_5: shares of probes."""

    attribute: str
    part: str
    people: int
    probes: int
    raw: dict[str, float]
    released: dict[str, float]


@dataclass(frozen=True)
class ServiceEvaluation:
    """All that the provider's models answer about one part.

    `change` is the mean absolute difference of released and raw records, in the network's scale,
    and `spread` the same of two releases of the same record: 0 where the release is deterministic,
    or has learned to be.
    """

    part: str
    answers: tuple[ServiceAnswers, ...]
    identified: tuple[Identification, ...]
    change: float
    spread: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> ServiceEvaluation:
        plain = json_values.finite(value)
        return json_values.read(ServiceEvaluation, plain, "outcomes")  # type: ignore[no-any-return]


def evaluate_services(
    release: Release,
    data: Dataset,
    services: Roles,
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
    attributes = {service.attribute.name for _, service in services}

    def feed(part: str) -> Feed:
        view = data.part(part)
        labels = {name: view.labels[name] for name in attributes}
        return Feed(release.schema.inputs(view), labels, device)

    identifying = [pair for pair in services if pair[1].attribute.kind == "identity"]
    others = [pair for pair in services if pair[1].attribute.kind != "identity"]
    answers = []
    for where, some in ((part, others), ("fit", identifying)):
        if some:
            answers += _answers(release, feed(where), some, where, batch)
    identified = [
        _identification(release, feed(part), service, part, seed, batch)
        for _, service in identifying
    ]
    with torch.inference_mode():
        x = feed(part).batch(np.arange(min(COMPARED_RECORDS, len(data.part(part))))).x
        first, second = release.forward(x), release.forward(x)
        change, spread = (first - prepare(x)).abs().mean(), (first - second).abs().mean()
    found = tuple(one for one in identified if one is not None)
    return ServiceEvaluation(part, tuple(answers), found, float(change), float(spread))


@torch.inference_mode()
def _answers(
    release: Release, feed: Feed, services: Roles, part: str, batch: int
) -> list[ServiceAnswers]:
    rows: list[list[tuple[Tensor, ...]]] = [[] for _ in services]
    for records in feed.in_order(batch):
        raw, released = prepare(records.x), release.forward(records.x)
        for row, (_, service) in zip(rows, services, strict=True):
            truth = records.labels[service.attribute.name]
            row.append((truth, *_read(service, raw, truth), *_read(service, released, truth)))
    return [
        _count(
            service,
            role,
            part,
            *(torch.cat(column).cpu().numpy() for column in zip(*row, strict=True)),
        )
        for row, (role, service) in zip(rows, services, strict=True)
    ]


def _read(service: Service, x: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """The first answers, best first, and the probability of what is asked for."""
    scores = service(x)
    asked = torch.ones_like(truth) if service.attribute.classes == 2 else truth.clamp(min=0)
    probability = scores.softmax(1).gather(1, asked.unsqueeze(1)).squeeze(1)
    return scores.topk(min(5, scores.shape[1]), dim=1).indices, probability


def _count(
    service: Service,
    role: str,
    part: str,
    truth: Array,
    raw: Array,
    raw_probability: Array,
    released: Array,
    released_probability: Array,
) -> ServiceAnswers:
    attribute, known = service.attribute, truth >= 0
    asked, histograms = "", tuple[ProbabilityHistogram, ...]()
    if role != "utility":
        asked = attribute.values[1] if attribute.classes == 2 else "the true value"
        histograms = tuple(
            ProbabilityHistogram(
                value,
                _histogram(raw_probability[truth == code]),
                _histogram(released_probability[truth == code]),
            )
            for code, value in enumerate(attribute.values)
            if (truth == code).any()
        )
    shares = partial(_shares, truth=truth[known], classes=attribute.classes)
    return ServiceAnswers(
        attribute.name,
        role,
        part,
        int(known.sum()),
        shares(raw[known]),
        shares(released[known]),
        float((raw[:, 0] == released[:, 0]).mean()) if len(raw) else 0.0,
        asked,
        histograms,
    )


def _shares(answers: Array, truth: Array, classes: int) -> dict[str, float]:
    from privet.evidence.leakage import accuracy, balanced_accuracy  # SciPy is slow to import

    if not len(truth):
        return {}
    first = answers[:, 0]
    shares = {"accuracy": accuracy(truth, first), "balanced": balanced_accuracy(truth, first)}
    if classes > 5:
        shares["top_5"] = float((answers == truth[:, None]).any(1).mean())
    return shares


def _histogram(probability: Array) -> tuple[int, ...]:
    return tuple(np.histogram(probability, BINS, (0.0, 1.0))[0].tolist())


@torch.inference_mode()
def _identification(
    release: Release, feed: Feed, service: Service, part: str, seed: int, batch: int
) -> Identification | None:
    """Ranked by the cosine of scores less the gallery's mean scores: every model has scores, and
    few show what is behind them."""
    names = feed.labels[service.attribute.name].cpu().numpy()
    order = np.random.default_rng(seed).permutation(len(names))
    order = order[names[order] >= 0]
    people, first, counts = np.unique(names[order], return_index=True, return_counts=True)
    several = np.isin(names[order], people[counts > 1])
    gallery = order[first[counts > 1]]
    probes = np.setdiff1d(order[several], gallery)
    if len(gallery) < 2:
        return None

    def scores(index: Array, raw: bool) -> Tensor:
        parts = [index[start : start + batch] for start in range(0, len(index), batch)]
        form = prepare if raw else release.forward
        return torch.cat([service(form(records.x)) for records in feed.batches(parts)])

    known = scores(gallery, True)
    centre = known.mean(0)
    wanted = torch.as_tensor(np.searchsorted(names[gallery], names[probes]), device=known.device)

    def shares(raw: bool) -> dict[str, float]:
        probed = F.normalize(scores(probes, raw) - centre, dim=1)
        likeness = probed @ F.normalize(known - centre, dim=1).T
        right = likeness.topk(min(5, len(gallery)), dim=1).indices == wanted.unsqueeze(1)
        top_1, top_5 = right[:, 0].float().mean(), right.any(1).float().mean()
        return {"top_1": float(top_1), "top_5": float(top_5)}

    name, found = service.attribute.name, len(gallery)
    return Identification(name, part, found, len(probes), shares(True), shares(False))
