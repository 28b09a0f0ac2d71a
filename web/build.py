"""Builds the exchange's pages into the package: `make web`, or `npm install` here and then `python build.py`.

What is written by others is copied from node_modules only if it has the SHA-256 in third-party.json. Every file gets a hash that the
browser checks: scripts and styles by `integrity` in the page, everything by the service worker, the runtime where it is fetched.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGES = HERE.parent / "src" / "privet" / "exchange" / "pages"
WASM = "vendor/ort-wasm-simd-threaded.wasm"
PAGES_OF = ("participant.html", "collector.html")
PARTICIPANT = "/c/page"
"""Where the worker fetches the participant's page, which is the same for every campaign."""
KEPT = (".js", ".mjs", ".wasm", ".css", ".svg")
IMPORT = re.compile(r"""(?:from|import)\s*["'](\./[^"']+)["']""")


def build(modules: Path, out: Path) -> list[Path]:
    """Write the pages to the folder `out`; the files that were written."""
    with tempfile.TemporaryDirectory(dir=_parent(out)) as temporary:
        new = Path(temporary) / "pages"
        shutil.copytree(HERE / "static", new / "static")
        _vendor(modules, new / "static" / "vendor")
        static = new / "static"
        (static / "built.js").write_text(
            f'export const RUNTIME = "{integrity(static / WASM)}";\n', encoding="utf-8"
        )
        for page in PAGES_OF:
            (new / page).write_text(
                _page((HERE / page).read_text(encoding="utf-8"), static), encoding="utf-8"
            )
        _worker(new)
        (new / ".gitignore").write_text("*\n", encoding="utf-8")
        if out.exists():
            shutil.rmtree(out)
        new.rename(out)
    return sorted(path for path in out.rglob("*") if path.is_file())


def integrity(path: Path) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()


def _parent(out: Path) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    return out.parent


def _vendor(modules: Path, target: Path) -> None:
    target.mkdir()
    for name, wanted in json.loads((HERE / "third-party.json").read_text(encoding="utf-8")).items():
        source = modules / name
        if not source.is_file():
            raise SystemExit(
                f"There is no {source}: run  npm install --ignore-scripts --no-package-lock  in {HERE} first."
            )
        content = source.read_bytes()
        if hashlib.sha256(content).hexdigest() != wanted:
            raise SystemExit(
                f"{source} is not the file that third-party.json names: it is not used."
            )
        if source.name == "libsodium-wrappers.mjs":
            # A browser knows no packages, and an import map would have to be inline, which the policy forbids.
            content = content.replace(b'from"libsodium"', b'from"./libsodium.mjs"')
        short = f"LICENSE.{name.split('/')[0]}" if source.name == "LICENSE" else source.name
        (target / short).write_bytes(content)


def _page(text: str, static: Path) -> str:
    """The page with the hash of its style and of every module that its script imports."""
    entry = re.search(r'<script type="module" src="/static/([^"]+)"', text)
    assert entry is not None
    lines = "".join(
        f'<link rel="modulepreload" href="/static/{name}">\n' for name in _imports(static, entry[1])
    )
    text = text.replace("<script type=", f"{lines}<script type=", 1)
    return re.sub(
        r'((?:src|href)="/static/([^"]+\.(?:m?js|css))")>',
        lambda m: f'{m[1]} integrity="{integrity(static / m[2])}">',
        text,
    )


def _imports(static: Path, entry: str) -> list[str]:
    """Everything that a module imports, and what that imports; and what the runtime imports when it starts."""
    found: dict[str, None] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop(0)
        for other in IMPORT.findall((static / name).read_text(encoding="utf-8")):
            path = (
                (static / name)
                .parent.joinpath(other)
                .resolve()
                .relative_to(static.resolve())
                .as_posix()
            )
            if path not in found:
                found[path] = None
                waiting.append(path)
    if "vendor/ort.wasm.min.mjs" in found:
        found["vendor/ort-wasm-simd-threaded.mjs"] = None
    return list(found)


def _worker(new: Path) -> None:
    """The service worker, which knows the hash of every file but its own."""
    worker = new / "static" / "sw.js"
    kept = [
        path
        for path in sorted((new / "static").rglob("*"))
        if path.suffix in KEPT and path != worker
    ]
    files = {f"/{path.relative_to(new).as_posix()}": integrity(path) for path in kept}
    files[PARTICIPANT] = integrity(new / "participant.html")
    named = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]
    text = worker.read_text(encoding="utf-8")
    text = re.sub(
        r"const FILES = \{\};.*", lambda _: f"const FILES = {json.dumps(files, indent=2)};", text
    )
    worker.write_text(
        text.replace('const BUILD = "";', f'const BUILD = "{named}";'), encoding="utf-8"
    )


if __name__ == "__main__":
    words = argparse.ArgumentParser(description="Build the exchange's pages into the package.")
    words.add_argument(
        "--modules",
        type=Path,
        default=HERE / "node_modules",
        help="where npm installed what package.json names",
    )
    words.add_argument(
        "--out", type=Path, default=PAGES, help="folder for the pages; it is replaced"
    )
    given = words.parse_args()
    written = build(given.modules, given.out)
    sys.stdout.write(
        f"{len(written)} files, {sum(path.stat().st_size for path in written) / 1e6:.1f} MB:  {given.out}\n"
    )
