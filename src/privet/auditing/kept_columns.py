"""Columns that leave beside the released records: what they tell alone, and together with them.

`privet apply --keep income` writes the income of everybody beside z. Whoever gets the file sees
both, so both are attacked: the columns alone, each and all of them, and the released record with
all of them. A column becomes numbers: a value in every place of a category (its most frequent
values), a number as it is, and whether it is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from privet.adversaries.adversary import Adversary, Tick, silent
from privet.adversaries.linear import Logistic
from privet.adversaries.mlp import MLP
from privet.adversaries.released import Released
from privet.adversaries.trees import Boosting
from privet.adversaries.vector_records import VectorRecords
from privet.auditing.attribute_attack import AttackTarget, Parts, run_adversary, strongest
from privet.core.errors import PrivetError
from privet.data.dataset import Array, Dataset
from privet.evidence.figures import Finding, Source

# Most values of a category that get a column of their own.
MOST_VALUES = 60

ALONE: tuple[Adversary, ...] = (Logistic(strengths=(1e-2,)), Boosting())
TOGETHER: tuple[Adversary, ...] = (
    Boosting(),
    MLP(shapes=((128,),), rates=(3e-3, 1e-2), decays=(1e-2,), whites=(False,), epochs=10),
)


def check_kept(data: Dataset, keep: Sequence[str], private: Sequence[str]) -> tuple[str, ...]:
    """The columns, each once, or a sentence why one cannot be judged."""
    for name in keep:
        if name in private:
            raise PrivetError(
                f"The release hides '{name}', so it cannot be kept beside released records."
            )
        if data.attribute(name).kind == "mask":
            raise PrivetError(f"'{name}' is a mask, and only classes and numbers can be kept.")
    return tuple(dict.fromkeys(keep))


def read_kept(
    target: AttackTarget,
    keep: Sequence[str],
    seed: int = 0,
    tick: Tick = silent,
) -> list[Finding]:
    """What the kept columns read of the attribute: with the released record, all of them, each.

    Parameters:
        target: The released records and the attribute.
        keep: The columns.
        seed: Of everything that is random.
        tick: Is called with the share of the work that is done.
    """
    sets = dict.fromkeys([tuple(keep), *((name,) for name in keep)])
    findings = [_read(target, tuple(keep), True, seed)]
    for done, columns in enumerate(sets):
        findings.append(_read(target, columns, False, seed))
        tick((done + 2) / (len(sets) + 1))
    return findings


def _read(target: AttackTarget, columns: tuple[str, ...], together: bool, seed: int) -> Finding:
    name = target.attribute.name
    parts: Parts = _with_columns(target.parts, columns, name, together)
    source: Source = "released and kept" if together else "kept columns"
    beside = target._replace(parts=parts, source=source, columns=columns)
    adversaries = [
        adversary
        for adversary in (TOGETHER if together else ALONE)
        if adversary.suits(parts["attack"].view, target.attribute)
    ]
    tries = [run_adversary(adversary, beside, seed, silent).finding for adversary in adversaries]
    return tries[strongest(tries)]


def _with_columns(
    parts: Parts, columns: Sequence[str], name: str, together: bool
) -> dict[str, Released]:
    """The columns as numbers, beside the vectors of released records where `together`."""
    learned = parts["attack"].data
    made: dict[str, VectorRecords] = {}
    for part, seen in parts.items():
        device = seen.feed.device
        rows = np.concatenate([column_numbers(seen.data, learned, one) for one in columns], axis=1)
        beside = torch.as_tensor(rows, dtype=torch.float32, device=device)

        def draw(seen: Released = seen, beside: torch.Tensor = beside) -> torch.Tensor:
            return torch.cat([seen.vectors(), beside], dim=1) if together else beside

        noisy = together and seen.fresh_noise
        labels = {name: seen.labels(name)}
        made[part] = VectorRecords(draw, labels, seen.people, device, made.get("attack"), noisy)
    return dict(made)


def column_numbers(data: Dataset, learned: Dataset, name: str) -> Array:
    """A column of `data` as numbers (n, width), in the way learned on `learned`."""
    labels, known = data.labels[name], learned.labels[name]
    if not data.attributes[name].is_class:
        missing, middle = ~np.isfinite(labels), known[np.isfinite(known)]
        filled = np.where(missing, middle.mean() if len(middle) else 0.0, labels)
        return np.stack([filled, missing], axis=1).astype(np.float64)
    values, counts = np.unique(known[known >= 0], return_counts=True)
    frequent = values[np.argsort(-counts, kind="stable")[:MOST_VALUES]]
    columns = [labels == value for value in frequent]
    return np.stack([*columns, labels < 0, ~np.isin(labels, frequent)], axis=1).astype(np.float64)
