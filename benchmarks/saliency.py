"""What a model looks at: U-Noise's maps in three sizes beside Grad-CAM, occlusion and chance, on
the same frozen model.

    python benchmarks/saliency.py --data pets96.parquet --task mask --private cat --out DIR

Teaches one model (a U-Net for a mask, a residual network for a class) on *fit*, learns a noise map
of every size for it, keeps the share of pixels of *test* pictures that each way finds most
important, obscures the rest, and asks the model again. Writes saliency.json and saliency.html to
DIR. Grad-CAM and occlusion need captum; without it, or with --only unoise, they are left out and
the page says so.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from memory import machine
from saliency_parts.methods import (
    Importance,
    at_random,
    compare,
    grad_cam,
    margin,
    obscure,
    occlusion,
    of_map,
    ranks,
)
from saliency_parts.page import KEPT, render, strip

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
from privet.nets.unet import SIZES, UNet
from privet.train.game import Game, Run


def main() -> int:
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("--data", required=True)
    words.add_argument(
        "--schema", type=Path, help="a layout file, for example with  size = [48, 48]"
    )
    words.add_argument("--task", default="mask")
    words.add_argument("--private", default="cat")
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--sizes", nargs="*", choices=list(SIZES), default=list(SIZES))
    words.add_argument("--only", choices=["unoise"], help="leave out what needs captum")
    words.add_argument(
        "--c",
        type=float,
        nargs="+",
        default=[UNoise.c],
        help="of several, each size takes the one best on select",
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
    try:
        told = measure(words.parse_args())
    except PrivetError as error:
        console.print(str(error), highlight=False, soft_wrap=True)
        return 2
    sys.stdout.write(json.dumps(told, indent=2) + "\n")
    return 0


def measure(said: argparse.Namespace) -> dict[str, Any]:
    before, started = machine(), time.monotonic()
    said.out.mkdir(parents=True, exist_ok=True)
    data, run = privet.load(said.data, said.schema), Run(device=said.device)
    asked = {"loud": said.loud, "width": said.width, "lessons": said.lessons, "epochs": said.epochs}
    asked |= {"rough": said.rough, "seed": said.seed}
    first = UNoise(**asked)
    problem = first.problem(data, [said.private], [said.task], [], run)
    torch.manual_seed(said.seed)
    service = teach(problem, first, run)
    ways: dict[str, Importance] = {}
    learned = {}
    grey = (
        prepare(torch.from_numpy(problem.schema.inputs(problem.view())[:1000]))
        .mean((0, 2, 3))
        .to(problem.device)
    )
    for size in said.sizes:
        tries = []
        for c in said.c:
            torch.manual_seed(said.seed)
            networks = UNoiseNetworks(problem, UNoise(size=size, c=c, **asked), [service])
            play(networks, [networks.drown()], problem, run)
            few, x, truth = some(problem, "select", said)
            seen, _ = compare(
                {"own": of_map(networks.veil)},
                service,
                x,
                truth,
                grey,
                data=data.name,
                loud=said.loud,
                people=few.people,
            )
            area = next(curve.area.value for curve in seen.curves if curve.fill == "noise")
            tries.append((area, c, networks))
        area, c, networks = max(tries, key=lambda one: one[0])
        learned[size] = {
            "c": c,
            "area": area,
            "areas": {c: area for area, c, _ in tries},
            **networks.judge(problem.feed("select")),
        }
        ways[f"U-Noise {size}"] = of_map(networks.veil)

    few, x, truth = some(problem, "test", said)
    taught = f"{len(problem.view()):,} other pictures"
    notes = [
        f"The model and each of U-Noise's maps were learned from {taught}; the other ways need no"
        " learning of their own."
    ]
    if said.only is None:
        try:
            ways |= explainers(service, x, grey)
        except PrivetError as error:
            notes.append(f"Grad-CAM and occlusion are left out: {error}")
    else:
        notes.append("Grad-CAM and occlusion are left out, as asked.")
    ways["chance"] = at_random(said.seed)
    found, maps = compare(
        ways,
        service,
        x,
        truth,
        grey,
        data=data.name,
        loud=said.loud,
        people=few.people,
        notes=notes,
        seed=said.seed,
    )

    strips = []
    with torch.inference_mode():
        for at in range(min(said.examples, len(x))):
            one = slice(at, at + 1)
            kept = {
                name: obscure(x[one], ranks(m[one]), KEPT, "grey", grey)[0].cpu().numpy()
                for name, m in maps.items()
            }
            mask = truth[at].cpu().numpy() if service.attribute.kind == "mask" else None
            strips.append(
                strip(
                    x[at].cpu().numpy(),
                    mask,
                    {name: m[at].cpu().numpy() for name, m in maps.items()},
                    kept,
                )
            )
    write_text(said.out / "saliency.html", render(found, strips))
    by = {(c.name, c.fill): c for c in found.curves}
    ahead = {
        f"{name} over {other}, {fill}": asdict(margin(by[name, fill], by[other, fill], few.people))
        for name, fill in by
        for other in maps
        if name.startswith("U-Noise") and not other.startswith("U-Noise")
    }
    told = {
        "settings": {k: str(v) if isinstance(v, Path) else v for k, v in vars(said).items()},
        "machine": before,
        "seconds": round(time.monotonic() - started, 1),
        "learned_on_select": learned,
        "margins": ahead,
        "comparison": asdict(found),
    }
    write_text(said.out / "saliency.json", json.dumps(told, indent=1) + "\n")
    short = {
        f"{c.name}, {c.fill}": [round(v, 3) for v in (c.area.value, c.area.low, c.area.high)]
        for c in found.curves
    }
    return {
        "raw": round(found.raw.value, 4),
        "n": found.raw.n,
        "areas": short,
        "seconds_per_picture": dict(found.seconds),
        "learned": learned,
    }


def some(
    problem: Problem, part: str, said: argparse.Namespace
) -> tuple[Dataset, torch.Tensor, torch.Tensor]:
    """A few pictures of a part, prepared, and what is true of them."""
    all_of_it = problem.view(part)
    few = all_of_it.take(
        np.sort(np.random.default_rng(said.seed).permutation(len(all_of_it))[: said.pictures])
    )
    x = prepare(torch.from_numpy(problem.schema.inputs(few)[:]).to(problem.device))
    return few, x, torch.as_tensor(few.labels[said.task]).to(problem.device)


def teach(problem: Problem, method: UNoise, run: Run) -> Service:
    networks = UNoiseNetworks(problem, method)
    play(networks, networks.teach(), problem, run)
    place(networks.services[0].module, problem.device)
    return networks.services[0]


def play(networks: UNoiseNetworks, phases: list[Any], problem: Problem, run: Run) -> None:
    method = networks.method
    Game(
        networks.modules(),
        phases,
        problem.feed(),
        method.batch,
        method.seed,
        method.identity(problem),
    ).play(run)


def explainers(service: Service, x: torch.Tensor, grey: torch.Tensor) -> dict[str, Importance]:
    """captum's ways: squares of an eighth of the shorter side, moved by half of it."""
    window = max(2, min(x.shape[2:]) // 8)
    squares = occlusion(service, window, max(1, window // 2), grey)
    if isinstance(service.module, UNet):
        last = service.module.up[-1]
        return {
            "Grad-CAM": grad_cam(service, service.module.deepest),
            "Grad-CAM, last layer": grad_cam(service, last),
            "occlusion": squares,
        }
    return {
        "Grad-CAM": grad_cam(service, service.module.get_submodule("body")),
        "occlusion": squares,
    }


if __name__ == "__main__":
    sys.exit(main())
