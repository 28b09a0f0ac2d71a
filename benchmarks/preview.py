"""The live preview of the participant's page: pictures a second in Chromium, by release and by
threads, and where a picture's time goes.

    python benchmarks/preview.py                                    releases of 64 x 64 pictures that nothing was learned for
    python benchmarks/preview.py --releases hedge --threads 2       a release of one's own

The page is opened with Chromium's fake camera (320 x 240). The goal is 10 pictures a second on two
cores; the exit code is 1 where a release misses it with every number of threads. Needs a machine
that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).parents[1] / "tests" / "exchange"))

from browsing import CAMERA, CHROMIUM, QUIET, READY, WEB, built, in_page, site
from memory import machine
from playwright.sync_api import sync_playwright

from privet.core.progress import console
from privet.data.schema import ImageSchema
from privet.exchange.owner import campaigns
from privet.nets import registry as nets
from privet.release.noise import Noise
from privet.release.release import Release

GOAL = 10.0

PARTS = """
  const [{ open }, { encode, grab }, { Release }, { drawNumbers, drawPicture }] =
    await Promise.all(['campaign', 'picture', 'runtime', 'view'].map(load));
  const campaign = await open(given[0], () => {});
  const release = await Release.open(campaign.graph, campaign.card);
  const source = new OffscreenCanvas(320, 240);
  const context = source.getContext('2d');
  const canvas = document.createElement('canvas');
  const times = { grab: [], encode: [], run: [], draw: [] };
  const timed = async (part, action) => {
    const started = performance.now();
    const made = await action();
    times[part].push(performance.now() - started);
    return made;
  };
  for (let i = 0; i < 30; i++) {
    context.fillStyle = `hsl(${12 * i} 50% 50%)`;
    context.fillRect(i, i, 200, 150);
    const pixels = await timed('grab', () => grab(source, 320, 240));
    const x = await timed('encode', () => encode(pixels, campaign.card.input));
    const z = await timed('run', () => release.run(x));
    await timed('draw', () => (drawPicture(canvas, x, campaign.card.input), drawNumbers(canvas, z)));
  }
  const middle = (list) => list.sort((a, b) => a - b)[list.length >> 1];
  return Object.fromEntries(Object.entries(times).flatMap(([part, list]) => [[part, middle(list)], [`least ${part}`, list[0]]]));
"""
"""Milliseconds of each part of a frame, the middle and the least of thirty."""


def say(line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def preview(options: argparse.Namespace) -> bool:
    """What the participant's page shows live: pictures a second, and what a picture's time goes
    to."""
    if CHROMIUM is None or not (WEB / "node_modules").is_dir():
        raise SystemExit("The preview needs Chromium, and  make web.")
    found: dict[str, Any] = {"machine": machine(), "releases": {}}
    with tempfile.TemporaryDirectory(prefix="privet-preview-") as place, sync_playwright() as play:
        folder = Path(place)
        releases = {path.name: path for path in options.releases} or dict(untrained(folder))
        with site(folder, built(folder / "pages")) as running:
            started = play.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *CAMERA])
            for name, release in releases.items():
                terms = campaigns.Terms(name, "To measure.", "Nobody")
                made = campaigns.create(
                    running.url,
                    release,
                    folder / f"of-{name}",
                    terms,
                    running.operator,
                    folder / "owner.key",
                )
                found["releases"][name] = {}
                for threads in options.threads:
                    page = started.new_context(service_workers="block").new_page()
                    page.add_init_script(
                        "Object.defineProperty(Navigator.prototype, 'hardwareConcurrency', { get:"
                        f" () => {threads} }})"
                    )
                    page.goto(made.link.text)
                    page.wait_for_selector(READY, timeout=120_000)
                    page.click("#camera")
                    page.wait_for_selector("body[data-rate]", timeout=60_000)
                    time.sleep(options.warm)
                    rates = []
                    for _ in range(options.turns):
                        time.sleep(2.5)
                        rates.append(float(page.evaluate("document.body.dataset.rate")))
                    page.click("#stop")
                    parts = in_page(page, PARTS, made.link.campaign)
                    result = {
                        "per_second": rates,
                        "ms": {part: round(ms, 1) for part, ms in parts.items()},
                    }
                    found["releases"][name][f"{threads} threads"] = result
                    say(
                        f"{name}, {threads} threads: {statistics.median(rates):.1f}/s ({min(rates)}"
                        f" to {max(rates)}); ms {result['ms']}"
                    )
                    page.context.close()
            started.close()
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    best = (
        max(statistics.median(one["per_second"]) for one in each.values())
        for each in found["releases"].values()
    )
    return all(rate >= GOAL for rate in best)


def untrained(folder: Path) -> Iterator[tuple[str, Path]]:
    """Releases of 64 x 64 pictures in their full size, and one in a quarter; nothing was learned,
    which takes as long to run."""
    torch.manual_seed(0)
    schema, noise = ImageSchema(3, 64, 64), Noise("gaussian", (8,), 0.4)
    for name, network, width in (
        ("tiprdc", "extractor", 1.0),
        ("hedge-quarter", "hedge", 0.25),
        ("hedge", "hedge", 1.0),
    ):
        settings = (
            {"width": width}
            if network == "extractor"
            else {"width": width, "dims": 8, "sigma": 0.4}
        )
        law = None if network == "extractor" else noise
        card = {"method": name, "settings": settings, "private": ["nothing"]}
        Release(schema, (network, settings), nets.build(network, schema, settings), law, card).save(
            folder / name
        )
        yield name, folder / name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--releases", nargs="+", type=Path, default=[])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--turns", type=int, default=4, help="looks at the rate, 2.5 seconds apart")
    parser.add_argument(
        "--warm",
        type=float,
        default=8.0,
        help="seconds before the first look, in which a browser translates the runtime",
    )
    sys.exit(0 if preview(parser.parse_args()) else 1)


if __name__ == "__main__":
    main()
