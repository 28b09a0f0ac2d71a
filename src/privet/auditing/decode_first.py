"""The attacker who decodes first: records are rebuilt from released ones, and then read.

An adversary on a code sees numbers in an order that means nothing to it. What a decoder makes of
them looks like a record again, and whoever learned to read records can read it: on codes of faces
from which perceptrons read almost nothing, a network on decoded faces did. Two kinds of reader:

- those taught on raw records of *attack*, as they are;
- one of them taught on rebuilt records of *attack*; a network starts from what it learned on raw
  ones.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from privet.adversaries.adversary import Adversary, Tick, Trained, silent
from privet.adversaries.network_training import NetworkAdversary, TrainedNetwork
from privet.auditing.attribute_attack import (
    AttackResult,
    AttackTarget,
    Parts,
    judge_trained,
    quickest_as_good,
    run_adversary,
)
from privet.evidence.figures import Finding

# How many of the strongest readers of raw records are tried on rebuilt ones.
RAW_READERS = 3


class RawReaders(NamedTuple):
    """Adversaries that have learned to read one attribute from raw records.

    Parameters:
        parts: The raw records.
        results: Of every adversary on them.
    """

    parts: Parts
    results: Sequence[AttackResult]


def read_rebuilt(
    target: AttackTarget,
    raw: RawReaders,
    more: Sequence[Adversary] = (),
    seed: int = 0,
    tick: Tick = silent,
) -> list[AttackResult]:
    """What is read from rebuilt records.

    Parameters:
        target: The rebuilt records and the attribute.
        raw: Who reads it from raw records.
        more: Other adversaries, to be taught on rebuilt records.
        seed: Of everything that is random.
        tick: Is called with the share of the work that is done.
    """
    strongest = sorted(raw.results, key=lambda one: -one.finding.select)[:RAW_READERS]
    results = [_as_taught(one, target, raw.parts) for one in strongest]
    taught = [] if not strongest else [_taught_further(raw.results, target, seed, tick)]
    others = [adversary for adversary in more if adversary not in [r.adversary for r in taught]]
    taught += [run_adversary(adversary, target, seed, tick) for adversary in others]
    return results + [_called(one, "taught on rebuilt records") for one in taught]


def raw_readers_needed(findings: Sequence[Finding], people: int) -> list[int]:
    """The places of those adversaries on raw records that `read_rebuilt` makes use of, where an
    earlier audit says how well each of them read."""
    order = sorted(range(len(findings)), key=lambda i: -findings[i].select)
    return sorted({*order[:RAW_READERS], quickest_as_good(findings, people)})


def _as_taught(reader: AttackResult, target: AttackTarget, raw: Parts) -> AttackResult:
    """A reader of raw records on rebuilt ones, as it is; its threshold is chosen anew."""
    started = time.monotonic()
    parts = {name: part.with_vectors_like(raw["attack"]) for name, part in target.parts.items()}
    result = judge_trained(reader.trained, reader.adversary, target._replace(parts=parts), started)
    return _called(result, "taught on raw records")


def _taught_further(
    readers: Sequence[AttackResult], target: AttackTarget, seed: int, tick: Tick
) -> AttackResult:
    people = len(np.unique(target.parts["select"].people))
    reader = readers[quickest_as_good([one.finding for one in readers], people)]
    adversary, trained = reader.adversary, reader.trained
    if not isinstance(adversary, NetworkAdversary) or not isinstance(trained, TrainedNetwork):
        return run_adversary(adversary, target, seed, tick)
    started, start = time.monotonic(), trained.net.state_dict()
    seen, select = target.parts["attack"], target.parts["select"]
    tries: list[tuple[float, Trained]] = [
        adversary.train(rate, seen, select, target.attribute, seed, start, tick)
        for rate in adversary.rates
    ]
    best = max(tries, key=lambda result: result[0])[1]
    return judge_trained(best, adversary, target, started)


def _called(result: AttackResult, how: str) -> AttackResult:
    title = f"{result.finding.called}, {how}"
    return result._replace(finding=replace(result.finding, title=title))
