"""Cloak's maps of four tasks at three shares of suppression, with VGG-16 as the frozen service; and
what attackers read of other attributes from pictures that were masked for one task.

    python benchmarks/cloak_maps.py --data celeba64.parquet --out DIR
    python benchmarks/cloak_maps.py --record DIR/cloak_maps.json --topic cloak-vgg16

For each task VGG-16 is taught on *fit* and frozen, the noise that it bears is learned once, and
constants for each share. The service is asked on *test*. After each of them this writes to DIR:
cloak_maps.json; maps.png, the maps alone; faces.png, the same on faces, which are records of people
and must not be passed on; maps.npz, from which both can be drawn again. Attackers are those of
sources_parts/readers.py, their convolutional network being VGG-16 of half the width.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cloak_parts import pictures
from cloak_parts.record import record
from cloak_parts.vgg import CloakedVgg
from memory import machine
from sources_parts import readers
from sources_parts.learned import Bench, Learned

import privet
from privet.core.errors import PrivetError
from privet.core.files import write_text
from privet.core.progress import console
from privet.data.dataset import Array
from privet.data.schema_file import Layout
from privet.evidence.leakage import accuracy, balanced_accuracy
from privet.evidence.person_intervals import accuracy_over_people, balanced_over_people
from privet.methods.cloak import Cloak
from privet.methods.method import Problem
from privet.methods.services.service import Service
from privet.nets.convolutions import prepare
from privet.release.release import Release
from privet.train.game import Run

TASKS = ("Smiling", "Eyeglasses", "Black_Hair", "Male")
SHARES = (0.8, 0.956, 0.99)
FACE = 4
"""Which person of *test* is drawn."""


def main() -> int:
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("--data")
    words.add_argument("--out", type=Path, help="a folder")
    words.add_argument("--tasks", nargs="+", default=list(TASKS))
    words.add_argument("--shares", type=float, nargs="+", default=list(SHARES))
    words.add_argument("--attacked", default="Smiling", help="whose masked pictures are attacked")
    words.add_argument("--size", type=int, default=64, help="of pictures; 64 and up suit VGG-16")
    words.add_argument("--width", type=float, default=1.0, help="1 is VGG-16 itself")
    words.add_argument("--lessons", type=float, default=10.0)
    words.add_argument("--epochs", type=float, default=10.0)
    words.add_argument("--constants", type=float, default=3.0)
    words.add_argument("--reading", type=int, default=16, help="epochs of attackers; 0: none")
    words.add_argument("--reader", type=float, default=0.5, help="width of attackers")
    words.add_argument("--device", default="auto")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument(
        "--seconds", type=float, default=1e9, help="no task and no attack begins after these"
    )
    words.add_argument("--record", type=Path, nargs="+", help="cloak_maps.json, one of each seed")
    words.add_argument("--add", action="store_true", help="more seeds for the results file")
    words.add_argument("--topic", default="cloak-vgg16", help="of the results file")
    words.add_argument("--machine", help="of the results file")
    said = words.parse_args()
    try:
        if said.record:
            record(said.record, said.topic, said.machine, said.out, said.add)
        elif not said.data or not said.out:
            words.error("--data and --out are needed")
        else:
            Maps(said).run()
    except PrivetError as error:
        console.print(str(error), highlight=False, soft_wrap=True)
        return 2
    return 0


@dataclass
class Maps:
    """Everything that is known so far, written as it comes."""

    said: argparse.Namespace
    rows: list[dict[str, Any]] = field(default_factory=list)
    attackers: list[dict[str, Any]] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        said = self.said
        self.before, self.started = machine(), time.monotonic()
        said.out.mkdir(parents=True, exist_ok=True)
        self.data = privet.load(said.data, Layout(size=(said.size, said.size)), progress=False)
        self.how = Run(progress=False, device=said.device)

    def run(self) -> None:
        said = self.said
        attacked: list[tuple[float, Release]] = []
        for task in said.tasks:
            if self.is_late():
                break
            networks = self.learn(task)
            for share in said.shares:
                release = networks.suppress(share, self.how)
                self.add(networks, share, release)
                if task == said.attacked:
                    attacked.append((share, release))
        if said.reading:
            self.attack(attacked)

    def is_late(self) -> bool:
        return time.monotonic() - self.started > self.said.seconds

    def learn(self, task: str) -> CloakedVgg:
        """The service of a task, and the noise it bears."""
        said = self.said
        method = Cloak(
            suppression=min(said.shares),
            lessons=said.lessons,
            epochs=said.epochs,
            constants=said.constants,
            width=said.width,
            seed=said.seed,
        )
        private = next(name for name in (*said.tasks, *TASKS) if name != task)
        torch.manual_seed(said.seed)
        networks = CloakedVgg(method.problem(self.data, [private], [task], [], self.how), method)
        networks.learn(self.how)
        return networks

    def add(self, networks: CloakedVgg, share: float, release: Release) -> None:
        (service,) = networks.served
        name = service.attribute.name
        figures = asked(networks.problem, service, release, self.said.seed)
        self.rows.append({"task": name, "suppression": share, **figures})
        body = release.module.body
        self.arrays[f"{name} sigma"] = body.sigma.mean(0).cpu().numpy()
        self.arrays[f"{name} {share:g}"] = body.keep.any(0).cpu().numpy()
        raw, released = (100 * figures[kind]["value"] for kind in ("raw", "released"))
        self.write(f"{name}, {100 * share:g} % suppressed: {raw:.1f} -> {released:.1f} %")

    def attack(self, releases: list[tuple[float, Release]]) -> None:
        """What is read of the other attributes: of raw pictures, and of those of each release."""
        said = self.said
        others = [task for task in said.tasks if task != said.attacked]
        device = next(iter(releases))[1].module.location.device if releases else None
        if not others or device is None:
            return
        bench = Bench.of(self.data, others, [], said.out, device)
        shape = tuple(bench.raw["test"].shape[1:])
        nothing = torch.nn.Identity()
        raw = Learned(nothing, prepare, shape, True, False)
        masked = [
            (share, Learned(one.module, one.forward, shape, True, True)) for share, one in releases
        ]
        # The published share first, since time may run out.
        masked.sort(key=lambda one: abs(one[0] - SHARES[1]))
        for share, learned in [*masked, (None, raw)]:
            if self.is_late():
                break
            torch.manual_seed(said.seed)
            found = readers.asked(bench, learned, said.reading, said.reader)
            self.attackers.append({"suppression": share, **found})
            worst = {
                name: round(one["worst"]["value"], 1) for name, one in found["private"].items()
            }
            self.write(f"read where {share} is suppressed: {worst}")
        for left in (*said.out.glob("raw-*.pt"), *said.out.glob("raw-*.lock")):
            left.unlink()

    def write(self, news: str) -> None:
        """Everything so far, and the pictures."""
        said, seconds = self.said, round(time.monotonic() - self.started, 1)
        console.print(f"[{seconds} s] {news}", highlight=False, markup=False, soft_wrap=True)
        test = self.data.part("test")
        sizes = ", ".join(f"{part} {len(self.data.part(part)):,}" for part in ("fit", "attack"))
        told = {
            "settings": {k: str(v) if isinstance(v, Path) else v for k, v in vars(said).items()},
            "machine": self.before,
            "seconds": seconds,
            "data": f"{self.data.name} at {said.size} x {said.size}: {sizes}, test {len(test):,}",
            "n": len(test),
            "rows": self.rows,
            "attackers": self.attackers,
        }
        write_text(said.out / "cloak_maps.json", json.dumps(told, indent=1) + "\n")
        np.savez_compressed(said.out / "maps.npz", **self.arrays)
        self.draw()

    def draw(self) -> None:
        """maps.png and faces.png."""
        said = self.said
        face = self.data.part("test").take(slice(FACE, FACE + 1)).records[0].transpose(1, 2, 0)
        heads = [f"{100 * share:g} % suppressed" for share in said.shares]
        maps: dict[str, list[tuple[str, Array]]] = {}
        faces: dict[str, list[tuple[str, Array]]] = {}
        for row in self.rows:
            name, share = row["task"], row["suppression"]
            sigma, keep = self.arrays[f"{name} sigma"], self.arrays[f"{name} {share:g}"]
            lost = 100 * (row["raw"]["value"] - row["released"]["value"])
            words = f"{100 * row['released']['value']:.1f} %, {lost:+.1f} lost"
            maps.setdefault(name, [("noise borne", pictures.heat(sigma))])
            maps[name].append((words, pictures.kept(sigma, keep)))
            faces.setdefault(name, [("picture", face)])
            faces[name].append((words, pictures.masked(face, keep)))
        pictures.board(said.out / "maps.png", ["needed: light", *heads], maps)
        pictures.board(said.out / "faces.png", ["", *heads], faces)


@torch.no_grad()
def asked(problem: Problem, service: Service, release: Release, seed: int) -> dict[str, Any]:
    """The frozen service on raw and on released pictures of *test*, with intervals over people."""
    torch.manual_seed(seed)
    name, view = service.attribute.name, problem.view("test")
    both = [
        torch.stack([service(prepare(b.x)).argmax(1), service(release.forward(b.x)).argmax(1)], 1)
        for b in problem.feed("test").in_order()
    ]
    known = view.labels[name] >= 0
    truth, people = view.labels[name][known], view.people[known]
    guesses = torch.cat(both).cpu().numpy()[known]
    figures: dict[str, Any] = {
        "n": int(known.sum()),
        "frequent": float(np.bincount(truth).max() / len(truth)),
    }
    for place, kind in enumerate(("raw", "released")):
        own = guesses[:, place]
        low, high = accuracy_over_people(people, truth, own)
        figures[kind] = {"value": accuracy(truth, own), "low": low, "high": high}
        low, high = balanced_over_people(people, truth, own)
        figures[f"{kind}_balanced"] = {
            "value": balanced_accuracy(truth, own),
            "low": low,
            "high": high,
        }
    return figures


if __name__ == "__main__":
    sys.exit(main())
