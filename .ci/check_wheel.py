"""Checks a wheel as a stranger gets it: what is in it, and whether it runs in empty environments.

    python .ci/check_wheel.py dist/privet-0.1.0-py3-none-any.whl

One environment has what learning and collecting need (`privet[learn,exchange]`), the other what a
participant needs (`privet[participant]`), where PyTorch must be absent. The first learns a release
in a small demo, serves its campaign and takes part in it; the second applies the release, takes
part, and withdraws. Nothing of the repository is on either's path.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
WANTED = (
    "privet/py.typed",
    "privet/*.schema.json",
    "privet/*/templates/report.html",
    "privet/*/templates/report.css",
    "privet/*/templates/frontier.js",
    "privet/*/recipe*/*.toml",
    "privet/*/migrations/env.py",
    "privet/*/migrations/versions/*.py",
    "privet/*/pages/participant.html",
    "privet/*/pages/collector.html",
    "privet/*/pages/sbom.cdx.json",
    "privet/*/pages/static/NOTICES.txt",
    "privet/*/pages/static/vendor/*.wasm",
    "privet/*/pages/static/vendor/LICENSE.onnxruntime",
    "privet/*/pages/static/vendor/LICENSE.libsodium",
    "privet/*/pages/static/vendor/ThirdPartyNotices.onnxruntime.txt",
    "privet-*.dist-info/licenses/LICENSE",
)
PATIENCE = 1200
"""Seconds after which a command is given up."""


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def check(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(f"FAILED: {what}")


def contents(wheel: Path) -> None:
    """All files of the source are in the wheel, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        bill = next(name for name in sizes if name.endswith("sbom.cdx.json"))
        parts = json.loads(archive.read(bill))
        vendor = f"{bill.rpartition('/')[0]}/static/vendor"
        for file in (file for part in parts["components"] for file in part.get("components", ())):
            found = hashlib.sha256(archive.read(f"{vendor}/{file['name']}")).hexdigest()
            check(found == file["hashes"][0]["content"], f"{file['name']} is not the one billed")
    for pattern in WANTED:
        check(any(fnmatch(name, pattern) for name in sizes), f"{pattern} is not in the wheel")
    source = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "privet").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.name != ".gitignore"
    }
    shipped = {name for name in sizes if ".dist-info/" not in name}
    check(source <= shipped, f"not in the wheel: {sorted(source - shipped)[:5]}")
    check(shipped <= source, f"not in the source: {sorted(shipped - source)[:5]}")
    check(
        parts["metadata"]["component"]["version"] == wheel.name.split("-")[1],
        "the bill of materials is of another version: run  make web",
    )
    named = ", ".join(
        f"{part['name']} {part['version']} ({part['licenses'][0]['license']['id']})"
        for part in parts["components"]
        if "version" in part
    )
    megabytes = wheel.stat().st_size / 1e6
    say(f"{wheel.name}: {megabytes:.1f} MB, {len(sizes)} files, {sum(sizes.values()) / 1e6:.1f} MB")
    say(f"JavaScript in it: {named}")


class Environment:
    """A virtual environment with the wheel and some of its extras in it."""

    def __init__(self, folder: Path, wheel: Path, extras: str) -> None:
        self.folder = folder
        self.extras = extras
        self.home = folder / "home"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.home.mkdir()
        start = time.monotonic()
        self.run("python", "-m", "pip", "install", "--quiet", f"{wheel}[{extras}]")
        seconds = time.monotonic() - start
        size = sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))
        say(f"privet[{extras}]: {size / 1e6:.0f} MB on disk, installed in {seconds:.0f} s")

    @property
    def variables(self) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        own = {"PRIVET_HOME": str(self.home / "data"), "PRIVET_CACHE": str(self.home / "cache")}
        return {**plain, **own, "PYTHONNOUSERSITE": "1", "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}

    def run(self, program: str, *words: object, code: int = 0) -> str:
        """What a program of this environment writes; its exit code has to be `code`."""
        done = subprocess.run(
            [str(self.folder / "bin" / program), *map(str, words)],
            cwd=self.home,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        command = " ".join(map(str, (program, *words)))
        check(done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}")
        return done.stdout

    def privet(self, *words: object, code: int = 0) -> str:
        start = time.monotonic()
        written = self.run("privet", *words, code=code)
        say(f"[{self.extras}] privet {words[0]} ...: {time.monotonic() - start:.0f} s")
        return written

    @contextlib.contextmanager
    def serving(self, data: Path) -> Iterator[str]:
        """The address of a collector."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [self.folder / "bin" / "privet", "serve", "--data", data, "--port", str(port)]
        url = f"http://127.0.0.1:{port}"
        with (self.home / "serve.log").open("wb") as log:
            server = subprocess.Popen(
                words, cwd=self.home, env=self.variables, stdout=log, stderr=log
            )
        try:
            for _ in range(600):
                with contextlib.suppress(urllib.error.URLError, OSError):
                    fetch(f"{url}/healthz")
                    break
                check(server.poll() is None, (self.home / "serve.log").read_text())
                time.sleep(0.1)
            yield url
        finally:
            server.terminate()
            server.wait(60)


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return bytes(answer.read())


def page(url: str, link: str) -> None:
    """The participant's page comes from the wheel with all that it loads, as its hashes say."""
    html = fetch(link.split("#")[0]).decode()
    pinned = re.findall(r'(?:src|href)="(/static/[^"]+)" integrity="sha256-([^"]+)"', html)
    check(len(pinned) > 5, f"the page loads nothing:\n{html[:500]}")
    for path, wanted in pinned:
        found = b64encode(hashlib.sha256(fetch(url + path)).digest()).decode()
        check(found == wanted, f"{path} is not the file that the page names")
    runtime = fetch(f"{url}/static/vendor/ort-wasm-simd-threaded.wasm")
    check(runtime[:4] == b"\0asm", "there is no runtime for the browser")
    say(f"The page, the {len(pinned)} files it names and its runtime ({len(runtime):,} bytes) come")


def story(wheel: Path, folder: Path) -> None:
    whole = Environment(folder / "whole", wheel, "learn,exchange")
    light = Environment(folder / "light", wheel, "participant")
    version = whole.run("python", "-c", "import privet; print(privet.__version__)").strip()
    check(version == wheel.name.split("-")[1], f"the package says it is {version}")
    for package in ("torch", "sklearn", "fastapi"):
        light.run("python", "-c", f"import {package}", code=1)

    demo = folder / "demo"
    whole.privet("demo", "--records", 400, "--out", demo)
    check((demo / "report.html").stat().st_size > 50_000, "the demo wrote no report")
    photos = folder / "photos"
    draw = (
        "import sys, numpy, pathlib; from PIL import Image; rng = numpy.random.default_rng(0)\n"
        "folder = pathlib.Path(sys.argv[1]); folder.mkdir()\n"
        "for i in range(3): Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype='uint8'))"
        ".save(folder / f'{i}.png')"
    )
    light.run("python", "-c", draw, photos)

    released = light.privet("apply", demo / "hedge", photos, "--out", folder / "released.parquet")
    check("Released:" in released, released)
    rows = "import sys, pandas; print(len(pandas.read_parquet(sys.argv[1])))"
    check(light.run("python", "-c", rows, folder / "released.parquet").strip() == "3", "3 records")

    with whole.serving(folder / "collector") as url:
        mine = folder / "campaign"
        about = ("--title", "Hats", "--purpose", "To see hats.", "--who", "A test")
        where = ("--token", folder / "collector" / "operator.token", "--server", url)
        asked = ("--label", "hat=yes,no", "--out", mine)
        whole.privet("campaign", "create", demo / "hedge", *about, *where, *asked)
        link = json.loads((mine / "campaign.json").read_text())["link"]
        page(url, link)
        for environment in (whole, light):
            dry = environment.privet("share", link, photos, "--label", "hat=no", "--dry-run")
            check("Nothing was sent." in dry, dry)
            # The campaign has no certificate, so no bound covers three records of a person.
            words = ("share", link, photos, "--label", "hat=no", "--yes")
            refused = environment.privet(*words, code=2)
            check("Nothing was sent: no bound covers" in refused, refused)
            sent = environment.privet(*words, "--beyond-certificate")
            check("Sent 3." in sent, sent)
        shown = whole.privet("campaign", "show", mine)
        check("6 records of 2 people" in shown, shown)
        light.privet("withdraw", "--all")
        shown = whole.privet("campaign", "show", mine)
        check("3 records of 1 people" in shown, shown)
        whole.privet("campaign", "export", mine, "--out", folder / "export")

    data = ("--data", "portraits:400", "--private", "beard", "--out", folder / "none")
    refused = light.privet("learn", "hedge", *data, code=2)
    check("pip install 'privet[learn]'" in refused and refused.count("\n") == 1, refused)
    refused = light.privet("serve", "--data", folder / "none", code=2)
    check("pip install 'privet[exchange]'" in refused and refused.count("\n") == 1, refused)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Check a wheel in empty environments.")
    parser.add_argument("wheel", type=Path)
    given = parser.parse_args()
    contents(given.wheel)
    with tempfile.TemporaryDirectory(prefix="privet-wheel-") as temporary:
        story(given.wheel.resolve(), Path(temporary))
    say("The wheel runs in empty environments.")
