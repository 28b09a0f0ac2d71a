"""Milliseconds a browser takes to release one 64 x 64 picture, in float and in int8, by the runtime
that Privet's pages carry.

    python benchmarks/browser.py                               untrained TIPRDC and hedge at full width
    python benchmarks/browser.py --release DIR --int8 DIR      two releases of yours
    python benchmarks/browser.py --methods veil blend          picture to picture, at three widths

Both graphs run in one page of headless Chromium and take turns; the ratio is float's time over
int8's in one turn. One WASM thread, and as many as there are cores where the page is cross-origin
isolated. Beside it the processor's milliseconds of all of Chromium for a picture, which other work
on the machine hardly changes. Random pictures: what is in a picture changes nothing. Needs playwright, psutil, Chromium and the
built pages (make web).
"""

from __future__ import annotations

import argparse
import http.server
import json
import shutil
import statistics
import sys
import tempfile
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from loading import spread

import privet
from privet.benchmarking.cases import extractor, hedge
from privet.benchmarking.ratios import machine
from privet.core.progress import console
from privet.data.portraits.source import portraits
from privet.data.schema import ImageSchema
from privet.nets import registry as nets
from privet.release.int8 import quantise
from privet.release.noise import Noise
from privet.release.release import Release

# What stands beside each other.
FORMS = ("float", "int8")
# Methods that draw pictures, with the numbers of their codes, and widths that are measured.
DRAWING = {"veil": 128, "blend": 24}
WIDTHS = (1.0, 0.5, 0.25)
VENDOR = Path(privet.__file__).parent / "exchange" / "pages" / "static" / "vendor"
QUIET = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PAGE = """<!doctype html><script type="module">
import * as ort from "./ort.wasm.min.mjs";
ort.env.wasm.wasmPaths = { mjs: "./ort-wasm-simd-threaded.mjs", wasm: "./ort-wasm-simd-threaded.wasm" };
window.measure = async ({ names, shape, noise, threads, turns, runs }) => {
  ort.env.wasm.numThreads = threads;
  const picture = new Uint8Array(shape.reduce((a, b) => a * b)).map((_, i) => (i * 2654435761) >>> 24);
  const feeds = { x: new ort.Tensor("uint8", picture, [1, ...shape]) };
  if (noise) feeds.noise = new ort.Tensor("float32", new Float32Array(noise.reduce((a, b) => a * b)), [1, ...noise]);
  const sessions = [];
  for (const name of names) sessions.push(await ort.InferenceSession.create(name, { executionProviders: ["wasm"] }));
  window.again = async (i) => { for (let k = 0; k < runs; k++) await sessions[i].run(feeds); };
  const taken = names.map(() => []);
  for (let turn = -1; turn < turns; turn++)
    for (const [i, session] of sessions.entries()) {
      const start = performance.now();
      for (let k = 0; k < runs; k++) await session.run(feeds);
      if (turn >= 0) taken[i].push((performance.now() - start) / runs);
    }
  return { taken, isolated: globalThis.crossOriginIsolated };
};
window.ready = true;
</script>"""


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("--release", type=Path, help="a float release of pictures")
    words.add_argument("--int8", type=Path, help="the same by  privet export --int8")
    words.add_argument(
        "--methods", nargs="+", default=["tiprdc", "hedge"], choices=["tiprdc", "hedge", *DRAWING]
    )
    words.add_argument("--turns", type=int, default=5)
    words.add_argument("--runs", type=int, default=10, help="pictures a turn")
    given = words.parse_args()
    before, result = machine(), {}
    with tempfile.TemporaryDirectory(prefix="privet-browser-") as name:
        folder = Path(name)
        pairs = (
            {"given": (given.release, given.int8)}
            if given.release and given.int8
            else made(folder, given.methods)
        )
        for file in (
            "ort.wasm.min.mjs",
            "ort-wasm-simd-threaded.mjs",
            "ort-wasm-simd-threaded.wasm",
        ):
            shutil.copy(VENDOR / file, folder / file)
        (folder / "page.html").write_text(PAGE, encoding="utf-8")
        for method, two in pairs.items():
            for form, release in zip(FORMS, two, strict=True):
                shutil.copy(release / "release.onnx", folder / f"{method}-{form}.onnx")
            for threads in (1, before["cores"]):
                key = f"{method}, {threads} thread{'s' * (threads > 1)}"
                result[key] = in_chromium(
                    folder, method, Release.load(two[0]), threads, given.turns, given.runs
                )
                console.print(key, json.dumps(result[key]), highlight=False)
    sys.stdout.write(json.dumps({**result, "machine": before}, indent=2) + "\n")
    return 0


def made(folder: Path, methods: list[str]) -> dict[str, tuple[Path, Path]]:
    """Networks at their published width that have learned nothing, for 64 x 64 pictures; scales
    from random pictures."""
    pairs = {}
    for method in methods:
        if method in DRAWING:
            makers = {f"{method}-{w:g}": partial(drawing, method, width=w) for w in WIDTHS}
        else:
            maker = {"tiprdc": extractor, "hedge": hedge}[method]
            makers = {method: partial(maker, ImageSchema(3, 64, 64))}
        for name, make in makers.items():
            path = make(folder / name)
            release = Release.load(path)
            quantise(
                release, replace(portraits(100, progress=False), records=release.schema.random(100))
            ).save(folder / f"{name}-8")
            pairs[name] = (path, folder / f"{name}-8")
    return pairs


def drawing(method: str, folder: Path, width: float) -> Path:
    """A release that gives pictures and has learned nothing."""
    schema = ImageSchema(3, 64, 64)
    settings = {"classes": [2], "dims": DRAWING[method], "width": width, "output": "record"}
    network = nets.build(method, schema, settings)
    noise = Noise("gaussian", (DRAWING[method],), 1.0)
    card = {"method": method, "private": [], "form": "record"}
    Release(schema, (method, settings), network, noise, card).save(folder)
    return folder


def in_chromium(
    folder: Path,
    method: str,
    release: Release,
    threads: int,
    turns: int,
    runs: int,
) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Isolated, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=found, args=list(QUIET))
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/page.html")
            page.wait_for_function("window.ready === true")
            told = page.evaluate(
                "words => window.measure(words)",
                {
                    "names": [f"{method}-{form}.onnx" for form in FORMS],
                    "shape": list(release.schema.shape),
                    "noise": None if release.noise is None else list(release.noise.shape),
                    "threads": threads,
                    "turns": turns,
                    "runs": runs,
                },
            )
            processor = {}
            for place, form in enumerate(FORMS):
                before = processor_seconds()
                page.evaluate("place => window.again(place)", place)
                processor[form] = round(1000 * (processor_seconds() - before) / runs, 1)
            version = browser.version
            browser.close()
    finally:
        server.shutdown()
    plain, small = told["taken"]
    medians = {
        f"{form}_ms": round(statistics.median(taken), 1)
        for form, taken in zip(FORMS, (plain, small), strict=True)
    }
    return {
        **medians,
        "processor_ms": processor,
        "float_over_int8": spread([a / b for a, b in zip(plain, small, strict=True)]),
        "bytes": {form: (folder / f"{method}-{form}.onnx").stat().st_size for form in FORMS},
        "cross_origin_isolated": told["isolated"],
        "chromium": version,
    }


def processor_seconds() -> float:
    """What everything that this process has started has used of the processor so far."""
    import psutil

    times = [one.cpu_times() for one in psutil.Process().children(recursive=True)]
    return sum(one.user + one.system for one in times)


class Isolated(http.server.SimpleHTTPRequestHandler):
    """Files with the headers that let a page use threads."""

    extensions_map = {  # noqa: RUF012
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, *words: object) -> None:
        """Nothing."""


if __name__ == "__main__":
    sys.exit(main())
