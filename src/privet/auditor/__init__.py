"""Audit: let adversaries loose on a release, and keep what they found.

Adversaries and task models learn from *attack*, the strongest is chosen on *select*, and every figure is counted on *test*:
people that neither the release nor its attackers have seen.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from privet.adversaries import MLP, Adversary, Linear, Network, Released
from privet.adversaries.decoder import Decoder
from privet.data.dataset import PARTS, Attribute, Dataset
from privet.device import pick
from privet.errors import PrivetError, unknown
from privet.evidence.figures import Audit, Finding, Reading
from privet.evidence.leakage import balanced_accuracy, class_weights, guess, measure
from privet.progress import bar
from privet.release import Release


@dataclass(frozen=True)
class Battery:
    """Which adversaries, how large and how long."""

    adversaries: tuple[Adversary, ...]
    decoder: Decoder


BATTERIES: dict[str, Battery] = {
    "quick": Battery(
        (
            Linear(epochs=5, least=120),
            MLP(epochs=6, least=200, width=0.25),
            Network(epochs=6, least=150, batch=64, rates=(3e-3,), width=0.25),
        ),
        Decoder(epochs=4, width=0.125),
    ),
    "standard": Battery((Linear(), MLP(), Network()), Decoder(epochs=15)),
}
"""quick: a minute on two cores; standard: the published sizes, for a GPU or for patience."""


def audit(
    release: Release, data: Dataset, utility: Sequence[str] = (), battery: str = "quick",
    *, seed: int = 0, device: str = "auto", progress: bool = True, rebuild: bool = True, raw_from: Audit | None = None,
) -> Audit:  # fmt: skip
    """Attack `release` on `data`; also train models for the tasks in `utility`, on released and on raw records.

    What adversaries read from raw records does not depend on the release: `raw_from` takes those findings from an earlier
    audit of the same data.
    """
    if battery not in BATTERIES:
        raise unknown("battery", battery, BATTERIES)
    started, where, chosen = time.monotonic(), pick(device), BATTERIES[battery]
    private = release.private
    both = set(private) & set(utility)
    if both:
        raise PrivetError(f"The release hides '{min(both)}', so it cannot be audited as a task as well.")
    attributes = [*data.require_classes(private, "private", "attack"), *data.require_classes(utility, "utility", "attack")]
    wanted = {attribute.name: attribute for attribute in attributes}
    data.require_records("attack", "select", "test")
    inputs = _inputs(release)
    known = _known(raw_from, data, battery, inputs, {name: "private" if name in private else "utility" for name in wanted})
    sources = {"released": _see(release, data, list(wanted), where)}
    if not known:
        sources["raw"] = _see(Release.identity(release.schema), data, list(wanted), where)

    readings = []
    with bar("attacking", 100 * len(wanted) * len(sources) * len(chosen.adversaries), progress) as tick:
        done = 0

        def count(text: str) -> Callable[[float], None]:
            base = done
            return lambda share: tick(base + round(100 * share), text)

        for name, attribute in wanted.items():
            role: Literal["private", "utility"] = "private" if name in private else "utility"
            found: dict[str, list[Finding]] = {"released": [], "raw": known.get(name, [])}
            for source, parts in sources.items():
                for adversary in chosen.adversaries:
                    say = count(f"{adversary.name} reads {name} from {source} records")
                    found[source].append(_attack(adversary, parts, attribute, role, source, seed, say))
                    done += 100
            strongest = {source: int(np.argmax([f.select for f in findings])) for source, findings in found.items()}
            released, raw = tuple(found["released"]), tuple(found["raw"])
            readings.append(Reading(name, role, attribute.values, released, raw, strongest["released"], strongest["raw"]))

    seen = sources["released"]
    rebuild = rebuild and release.network[0] != "identity"  # of raw records there is nothing to rebuild
    rebuilt = chosen.decoder.attack(seen["attack"], seen["test"], release.schema, seed, progress) if rebuild else None
    kept = ("method", "title", "settings", "private", "seed", "in_game", "data", "sha256", "command")
    card = {key: release.card.get(key) for key in kept}
    sizes = {part: {"records": len(view), "people": len(np.unique(view.people))} for part in PARTS for view in (data.part(part),)}
    about = {"name": data.name, "modality": data.modality, "fingerprint": data.fingerprint, "input": inputs, "parts": sizes}
    return Audit(
        card, about, battery, tuple(readings), rebuilt, _limits(release, data, chosen, utility), round(time.monotonic() - started, 1)
    )


def _inputs(release: Release) -> str:
    """Names what the release takes of a record: raw figures of another choice of columns are other figures."""
    return hashlib.sha256(json.dumps(release.schema.to_json(), sort_keys=True).encode()).hexdigest()


def _known(earlier: Audit | None, data: Dataset, battery: str, inputs: str, roles: dict[str, str]) -> dict[str, list[Finding]]:
    """Raw findings of an earlier audit, if it was of the same data and inputs, with the same battery, and knows all these attributes."""
    if earlier is None:
        return {}
    same = (earlier.data.get("fingerprint"), earlier.data.get("input"), earlier.battery) == (data.fingerprint, inputs, battery)
    if not same:
        raise PrivetError("The audit to take raw figures from was of other data or inputs, or with another battery.")
    known = {reading.attribute: list(reading.raw) for reading in earlier.readings if reading.role == roles.get(reading.attribute)}
    absent = [name for name in roles if not known.get(name)]
    if absent:
        raise PrivetError(f"The audit to take raw figures from says nothing of '{absent[0]}' as {roles[absent[0]]} on raw records.")
    return known


def _see(release: Release, data: Dataset, names: list[str], device: torch.device) -> dict[str, Released]:
    return {part: Released(release, data.part(part), names, device) for part in ("attack", "select", "test")}


def _attack(
    adversary: Adversary, parts: dict[str, Released], attribute: Attribute, role: Literal["private", "utility"],
    source: str, seed: int, tick: Callable[[float], None],
) -> Finding:  # fmt: skip
    """One adversary on one attribute. Thresholds are chosen on *select*: a model that always says the majority reads nothing."""
    started = time.monotonic()
    trained = adversary.attack(parts["attack"], parts["select"], attribute, seed, tick)
    truth, probabilities = {}, {}
    for part in ("select", "test"):
        labels = parts[part].labels(attribute.name)
        truth[part], probabilities[part] = labels[labels >= 0], trained.probabilities(parts[part])[labels >= 0]
    weights = class_weights(truth["select"], probabilities["select"])
    on_select = balanced_accuracy(truth["select"], guess(probabilities["select"], weights))
    better: Literal["lower", "higher"] = "lower" if role == "private" else "higher"
    plain, _, area = measure(truth["test"], probabilities["test"].argmax(1), probabilities["test"], attribute.classes, better)
    _, balanced, _ = measure(truth["test"], guess(probabilities["test"], weights), probabilities["test"], attribute.classes, better)
    seen: Literal["released", "raw"] = "released" if source == "released" else "raw"
    return Finding(adversary.name, seen, on_select, plain, balanced, area, round(time.monotonic() - started, 2))


def _limits(release: Release, data: Dataset, battery: Battery, utility: Sequence[str]) -> tuple[str, ...]:
    test = data.part("test")
    people = len(np.unique(test.people))
    said = [
        f"{len(battery.adversaries)} kinds of attacker were tried. A stronger one may read more: "
        "these figures bound the leak from below, not from above.",
        "The figures hold for people like those in the test part of this data set, not for anyone else.",
        f"Only the declared attributes were attacked ({', '.join(release.private) or 'none'}); others may still be readable.",
    ]
    if people < len(test):
        said.append(
            f"The {len(test):,} test records come from {people:,} people; "
            "intervals count records as independent and are a little too narrow."
        )
    columns = {column.name for column in getattr(release.schema, "columns", ())}
    for name in utility:
        if name in columns:
            said.append(f"The task '{name}' is itself a column that the release takes: it is copied rather than predicted.")
    if release.noise is None:
        said.append("The release is deterministic: it adds no noise, so nothing about it can be certified.")
    return tuple(said)
