"""Records and games to be timed: those of TIPRDC, hedge and gap, as `learn` sets them up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import privet
from learning_parts.bench import Bench
from privet.data.attribute_codes import code
from privet.data.dataset import Array, Attribute, Dataset
from privet.data.schema import Inputs
from privet.data.splitting import assign
from privet.methods.gap import GAP, GAPNetworks
from privet.methods.hedge import Hedge, HedgeNetworks
from privet.methods.tiprdc import TIPRDC, TIPRDCNetworks
from privet.train.feed import Feed
from privet.train.game import Phase, Run


@cache
def loaded(spec: str) -> Dataset:
    return privet.load(spec, progress=False)


def run_data(bench: Bench) -> str:
    return bench.data or ("portraits:400" if bench.small else "portraits:20000")


def pictures(bench: Bench, n: int, size: tuple[int, int]) -> tuple[Array, Array]:
    """n pictures of this size, uint8 (n, 3, height, width), and a private value each: the data
    set's, stretched."""
    return stretched(bench.data or f"portraits:{400 if bench.small else 4000}", n, size)


@cache
def stretched(spec: str, n: int, size: tuple[int, int]) -> tuple[Array, Array]:
    data = loaded(spec)
    name = "Male" if "Male" in data.attributes else "beard"
    rows = np.arange(min(n, len(data)))
    made = np.empty((n, 3, *size), np.uint8)
    for start in range(0, n, 256):
        some = rows[np.arange(start, min(start + 256, n)) % len(rows)]
        x = torch.from_numpy(np.ascontiguousarray(data.records[data.rows[some]])).float()
        made[start : start + 256] = (
            torch.nn.functional.interpolate(x, size, mode="bilinear")
            .round()
            .clamp(0, 255)
            .byte()
            .numpy()
        )
    return made, np.asarray(data.labels[name])[rows[np.arange(n) % len(rows)]]


def dataset(records: Any, labels: Mapping[str, Array], modality: Any = "image") -> Dataset:
    import pandas as pd

    coded = {name: code(name, pd.Series(column)) for name, column in labels.items()}
    n = len(next(iter(labels.values())))
    part, notes = assign(n, None, None, 0)
    attributes: dict[str, Attribute] = {name: attribute for name, (attribute, _) in coded.items()}
    columns = {name: column for name, (_, column) in coded.items()}
    return Dataset(
        "benchmark",
        modality,
        records,
        attributes,
        columns,
        part,
        np.arange(n),
        "benchmark",
        None,
        notes,
    )


@dataclass
class Work:
    """A phase to be timed, with what it needs."""

    modules: Mapping[str, nn.Module]
    phase: Phase
    feed: Feed
    batch: int
    players: Any = None

    def weights(self) -> Tensor:
        """Of all networks, one after the other."""
        return torch.cat(
            [
                p.detach().float().flatten().cpu()
                for module in self.modules.values()
                for p in module.parameters()
            ]
        )


def apart(found: Tensor, wanted: Tensor) -> float:
    """The largest difference, over the largest number wanted."""
    return float((found - wanted).abs().max() / wanted.abs().max())


def tiprdc(
    bench: Bench, size: tuple[int, int], batch: int, seed: int = 0, n: int | None = None
) -> Work:
    """The game of TIPRDC, as `learn` sets it up."""
    found = pictures(bench, n or 3 * batch, size)
    method = TIPRDC(width=bench.width, batch=batch, seed=seed)
    problem = method.problem(
        dataset(found[0], {"u": found[1]}), ["u"], [], [], Run(device=bench.device.type)
    )
    torch.manual_seed(seed)
    networks = TIPRDCNetworks(problem, method)
    feed = Feed(Inputs(found[0]), {"u": found[1].astype(np.int64)}, bench.device)
    return Work(networks.modules(), networks.play(1, method.lr, fused=True), feed, batch, networks)


def hedge_work(bench: Bench, modality: str) -> Work:
    records, u, y = some_records(bench, modality)
    method = Hedge(width=0.05 if bench.small else 0.5, batch=32 if bench.small else 256)
    problem = method.problem(
        dataset(records, {"u": u, "y": y}, modality),
        ["u"],
        ["y"],
        [],
        Run(device=bench.device.type),
    )
    torch.manual_seed(0)
    networks = HedgeNetworks(problem, method)
    networks.judge = dict  # type: ignore[method-assign,assignment]
    return Work(networks.modules(), networks.play(), problem.feed(), method.batch, networks)


def gap_work(bench: Bench, modality: str) -> Work:
    records, u, y = some_records(bench, modality)
    method = GAP(
        width=0.05 if bench.small else 0.5, batch=32 if bench.small else 128, itr_d=3, itr_g=3
    )
    problem = method.problem(
        dataset(records, {"u": u, "y": y}, modality),
        ["u"],
        ["y"],
        [],
        Run(device=bench.device.type),
    )
    torch.manual_seed(0)
    networks = GAPNetworks(problem, method)
    return Work(networks.modules(), networks.phases()[-1], networks.feed, method.batch, networks)


def some_records(bench: Bench, modality: str) -> tuple[Any, Array, Array]:
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 600 if bench.small else 2048
    if modality == "image":
        x, u = pictures(bench, n, bench.square)
        return x, u, rng.integers(0, 2, n)
    u, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    numbers = rng.standard_normal((n, 14)).astype(np.float32)
    numbers[:, 0] += u
    numbers[:, 1] += y
    return pd.DataFrame(numbers, columns=[f"c{i}" for i in range(14)]), u, y
