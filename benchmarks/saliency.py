"""What a model looks at: U-Noise's maps in three sizes beside Grad-CAM, occlusion, integrated
gradients and chance, on the same frozen model.

    python benchmarks/saliency.py --data pets96.parquet --task mask --private cat --out DIR
    python benchmarks/saliency.py --data pets96.parquet --out DIR --levels 64 128 256 512 1024 \\
        --c 0.001 0.003 0.01 0.03 0.1 0.3 1 3 --around --loud 4 --seconds 150
    python benchmarks/saliency.py --record DIR/saliency.json --topic unoise-pets96-published

Teaches one model (a U-Net for a mask, a residual network for a class) on *fit*, and learns noise
maps of every size for it, with c chosen on *select*. Of *test* pictures the share of pixels that
each way finds most important is kept, or deleted, the rest is obscured, and the model asked again.
Writes saliency.json after every part, then saliency.html and maps.png, to DIR. The last line makes
a results file of saliency.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from memory import machine
from saliency_parts.explainers import explainers
from saliency_parts.grid import around, best, closed, tried, whole
from saliency_parts.methods import (
    Comparison,
    Importance,
    at_random,
    compare,
    margin,
    of_map,
)
from saliency_parts.page import draw
from saliency_parts.record import record
from torch import Tensor

import privet
from privet.core.errors import PrivetError
from privet.core.files import write_text
from privet.core.progress import console
from privet.data.dataset import Dataset
from privet.methods.method import Problem
from privet.methods.services.service import Service
from privet.methods.unoise import UNoise, UNoiseNetworks
from privet.nets.convolutions import prepare
from privet.nets.device import place
from privet.nets.unet import SIZES, NoiseMap, UNet
from privet.train.game import Game, Run


def main() -> int:
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("--data")
    words.add_argument(
        "--schema", type=Path, help="a layout file, for example with  size = [48, 48]"
    )
    words.add_argument("--task", default="mask")
    words.add_argument("--private", default="cat")
    words.add_argument("--out", type=Path, help="a folder; of --record, a results file")
    words.add_argument("--sizes", nargs="*", choices=list(SIZES), default=list(SIZES))
    words.add_argument("--only", choices=["unoise"], help="leave out the other ways")
    words.add_argument(
        "--c",
        type=float,
        nargs="+",
        default=[UNoise.c],
        help="of several, each size takes the one best on select",
    )
    words.add_argument(
        "--around",
        action="store_true",
        help="the first size tries every c, the others those around its best",
    )
    words.add_argument(
        "--levels",
        type=int,
        nargs="+",
        help="channels per level of the model for a mask, instead of --width; published: 64..1024",
    )
    words.add_argument("--loud", type=float, default=UNoise.loud)
    words.add_argument("--width", type=float, default=UNoise.width)
    words.add_argument("--lessons", type=float, default=UNoise.lessons)
    words.add_argument("--epochs", type=float, default=UNoise.epochs)
    words.add_argument("--rough", type=float, default=UNoise.rough)
    words.add_argument("--pictures", type=int, default=200, help="of the test part")
    words.add_argument("--examples", type=int, default=6, help="pictures on the page")
    words.add_argument("--device", default="auto")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--seconds", type=float, default=1e9, help="no c is tried after these")
    words.add_argument("--record", type=Path, nargs="+", help="saliency.json, one of each seed")
    words.add_argument("--add", action="store_true", help="more seeds for the results file")
    words.add_argument("--topic", help="of the results file")
    words.add_argument("--machine", help="of the results file")
    said = words.parse_args()
    try:
        if said.record:
            record(said.record, said.topic, said.machine, said.out, said.add)
            return 0
        if not said.data or not said.out:
            words.error("--data and --out are needed")
        told = Measurement(said).run()
    except PrivetError as error:
        console.print(str(error), highlight=False, soft_wrap=True)
        return 2
    sys.stdout.write(json.dumps(told, indent=2) + "\n")
    return 0


@dataclass
class Pictures:
    """A few pictures of a part, prepared, and what is true of them."""

    few: Dataset
    x: Tensor
    truth: Tensor

    @classmethod
    def of(cls, problem: Problem, part: str, said: argparse.Namespace) -> Pictures:
        all_of_it = problem.view(part)
        order = np.random.default_rng(said.seed).permutation(len(all_of_it))
        few = all_of_it.take(np.sort(order[: said.pictures]))
        x = prepare(torch.from_numpy(problem.schema.inputs(few)[:]).to(problem.device))
        return cls(few, x, torch.as_tensor(few.labels[said.task]).to(problem.device))


@dataclass
class Measurement:
    """One frozen model, and every way to say what it looks at; what is known is written as it
    comes."""

    said: argparse.Namespace
    learned: dict[str, dict[str, Any]] = field(default_factory=dict)
    found: Comparison | None = None
    maps: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        said = self.said
        self.before, self.started = machine(), time.monotonic()
        said.out.mkdir(parents=True, exist_ok=True)
        self.data = privet.load(said.data, said.schema)
        self.how = Run(device=said.device)
        names = ("loud", "width", "lessons", "epochs", "rough", "seed")
        self.asked = {name: getattr(said, name) for name in names}
        self.problem = UNoise(**self.asked).problem(
            self.data, [said.private], [said.task], [], self.how
        )
        torch.manual_seed(said.seed)
        self.service = self.teach()
        some = torch.from_numpy(self.problem.schema.inputs(self.problem.view())[:1000])
        self.grey = prepare(some).mean((0, 2, 3)).to(self.problem.device)
        self.test = Pictures.of(self.problem, "test", said)
        self.select = Pictures.of(self.problem, "select", said)

    def run(self) -> dict[str, Any]:
        said = self.said
        self.add({"chance": at_random(said.seed)})
        if said.only is None:
            for name, ask in explainers(self.service, self.test.x, self.grey).items():
                self.add({name: ask})
        last: float | None = None
        for size in said.sizes:
            if self.learned and self.is_late():
                break
            last, veil = self.choose(size, last if said.around else None)
            self.add({f"U-Noise {size}": of_map(veil)})
        assert self.found is not None
        draw(said.out, self.found, self.maps, self.test, self.grey, said.examples)
        short = {
            f"{c.name}, {c.order}, {c.fill}": [
                round(v, 3) for v in (c.area.value, c.area.low, c.area.high)
            ]
            for c in self.found.curves
        }
        return {
            "raw": round(self.found.raw.value, 4),
            "n": self.found.raw.n,
            "areas": short,
            "seconds_per_picture": dict(self.found.seconds),
            "learned": self.learned,
        }

    def is_late(self) -> bool:
        return time.monotonic() - self.started > self.said.seconds

    def choose(self, size: str, last: float | None) -> tuple[float, NoiseMap]:
        """The c that is best on *select*, near that of the last size if there is one, and its
        map."""
        grid, area, best_yet = sorted(self.said.c), {}, []

        def measure(c: float) -> float:
            torch.manual_seed(self.said.seed)
            method = UNoise(size=size, c=c, **self.asked)
            networks = UNoiseNetworks(self.problem, method, [self.service])
            self.play(networks, [networks.drown()])
            seen, _ = self.compared(
                {"own": of_map(networks.veil)}, self.select, fills=["noise"], orders=["insertion"]
            )
            found = seen.curves[0].area
            best_yet.append((found.value, c, networks))
            best_yet[:] = [max(best_yet, key=lambda one: one[0])]
            self.learned[size] = {"areas": {**area, c: found.value}}
            self.write(f"{size}, c {c:g}: area {found.value:.3f} on select")
            return found.value

        values = whole(grid) if last is None else around(grid, last, area)
        tried(values, measure, area, self.is_late)
        _, c, networks = best_yet[0]
        assert c == best(area)
        self.learned[size] = {
            "c": c,
            "area": area[c],
            "areas": dict(sorted(area.items())),
            "closed": closed(area),
            **networks.judge(self.problem.feed("select")),
        }
        return c, networks.veil

    def add(self, ways: Mapping[str, Importance]) -> None:
        """Curves of one more way on *test*."""
        found, maps = self.compared(ways, self.test)
        self.maps |= maps
        if self.found is not None:
            curves = (*self.found.curves, *found.curves)
            found = replace(
                self.found, curves=curves, seconds={**self.found.seconds, **found.seconds}
            )
        self.found = found
        self.write(", ".join(ways))

    def compared(
        self, ways: Mapping[str, Importance], on: Pictures, **only: Any
    ) -> tuple[Comparison, dict[str, Tensor]]:
        taught = f"{len(self.problem.view()):,} other pictures"
        note = (
            f"The model and each of U-Noise's maps were learned from {taught}; the other ways need"
            " no learning of their own."
        )
        return compare(
            ways,
            self.service,
            on.x,
            on.truth,
            self.grey,
            data=self.data.name,
            loud=self.said.loud,
            people=on.few.people,
            notes=[note],
            seed=self.said.seed,
            **only,
        )

    def write(self, news: str) -> None:
        """Everything so far."""
        seconds = round(time.monotonic() - self.started, 1)
        console.print(f"[{seconds} s] {news}", highlight=False, markup=False, soft_wrap=True)
        assert self.found is not None
        told = {
            "settings": {
                k: [str(v)] if isinstance(v, Path) else v for k, v in vars(self.said).items()
            },
            "machine": self.before,
            "seconds": seconds,
            "learned_on_select": self.learned,
            "margins": self.margins(self.found),
            "comparison": asdict(self.found),
        }
        write_text(self.said.out / "saliency.json", json.dumps(told, indent=1) + "\n")

    def margins(self, found: Comparison) -> dict[str, Any]:
        """How far every map of U-Noise is ahead of every other way."""
        by = {(c.name, c.order, c.fill): c for c in found.curves}
        others = [name for name in found.seconds if not name.startswith("U-Noise")]
        return {
            f"{name} over {other}, {order}, {fill}": asdict(
                margin(one, by[other, order, fill], self.test.few.people)
            )
            for (name, order, fill), one in by.items()
            for other in others
            if name.startswith("U-Noise")
        }

    def teach(self) -> Service:
        method = UNoise(**self.asked)
        own = [] if self.said.levels is None else [self.published()]
        networks = UNoiseNetworks(self.problem, method, own)
        self.play(networks, networks.teach())
        place(networks.services[0].module, self.problem.device)
        return networks.services[0]

    def published(self) -> Service:
        """A U-Net with the channels of --levels, not yet taught."""
        (task,) = self.problem.utility
        if task.kind != "mask":
            raise PrivetError("--levels are those of a model for a mask; use --width for a class.")
        shape = [size for size in self.problem.schema.shape if size is not None]
        return Service(task, UNet(shape, 1, self.said.levels))

    def play(self, networks: UNoiseNetworks, phases: list[Any]) -> None:
        method, problem = networks.method, self.problem
        identity = method.identity(problem)
        modules = networks.modules()
        Game(modules, phases, problem.feed(), method.batch, method.seed, identity).play(self.how)


if __name__ == "__main__":
    sys.exit(main())
