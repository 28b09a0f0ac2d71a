"""Builds the exchange's pages into the package: `make web`, or `npm install` here and then
`python build.py`.

What is written by others is copied from node_modules only if it has the SHA-256 in
third-party.json. Every file gets a hash that the browser checks: scripts and styles by `integrity`
in the page, everything by the service worker, the runtime where it is fetched. Licences are copied
with what they are for, and sbom.cdx.json lists all parts (a bill of materials in CycloneDX's
format).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.util
import json
import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGES = ROOT / "src" / "privet" / "exchange" / "pages"
WASM = "vendor/ort-wasm-simd-threaded.wasm"
PAGES_OF = ("participant.html", "collector.html")
PARTICIPANT = "/c/page"
"""Where the worker fetches the participant's page, which is the same for every campaign."""
KEPT = (".js", ".mjs", ".wasm", ".css", ".svg")
BUNDLED = {"onnxruntime-web": ("onnxruntime-common",)}
"""Packages inside the file of another one, as that file's source map says."""
SENTENCES = ROOT / "src" / "privet" / "evidence" / "sentences.toml"
GRAPH_RULES = ROOT / "src" / "privet" / "release" / "graph_rules.json"
SAID = re.compile(r"""\bsay\(\s*(?:[^"'()]*\? *)?["'](\w+)["'](?: *: *["'](\w+)["'])?""")
"""A sentence of the table by its name, or one of two: say("a"), say(test ? "a" : "b")."""
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
        (static / "sentences.js").write_text(sentences(static), encoding="utf-8")
        (static / "graph_rules.js").write_text(graph_rules(), encoding="utf-8")
        for page in PAGES_OF:
            (new / page).write_text(
                _page((HERE / page).read_text(encoding="utf-8"), static), encoding="utf-8"
            )
        _worker(new)
        bill = json.dumps(materials(modules, static / "vendor"), indent=2)
        (new / "sbom.cdx.json").write_text(bill + "\n", encoding="utf-8")
        (new / ".gitignore").write_text("*\n", encoding="utf-8")
        if out.exists():
            shutil.rmtree(out)
        new.rename(out)
    return sorted(path for path in out.rglob("*") if path.is_file())


def sentences(static: Path) -> str:
    """The module with those sentences of Python's table that words.js says."""
    table = tomllib.loads(SENTENCES.read_text(encoding="utf-8"))
    words = (static / "words.js").read_text(encoding="utf-8")
    names = sorted({name for match in SAID.findall(words) for name in match if name})
    if missing := [name for name in names if name not in table]:
        raise SystemExit(f"words.js says '{missing[0]}', which is not in {SENTENCES.name}.")
    texts = {name: table[name]["text"] for name in names}
    return f"export const SENTENCES = {json.dumps(texts, indent=2, ensure_ascii=False)};\n"


def graph_rules() -> str:
    """The module with what a graph may be, as Python's verifier reads it."""
    rules = json.loads(GRAPH_RULES.read_text(encoding="utf-8"))
    return f"export const RULES = {json.dumps(rules)};\n"


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
                f"There is no {source}: run  npm install --ignore-scripts --no-package-lock  "
                f"in {HERE} first."
            )
        content = source.read_bytes()
        if hashlib.sha256(content).hexdigest() != wanted:
            raise SystemExit(
                f"{source} is not the file that third-party.json names: it is not used."
            )
        if source.name == "libsodium-wrappers.mjs":
            # A browser knows no packages, and an import map would have to be inline, which the
            # policy forbids.
            content = content.replace(b'from"libsodium"', b'from"./libsodium.mjs"')
        short = f"LICENSE.{name.split('/')[0]}" if source.name == "LICENSE" else source.name
        (target / short).write_bytes(content)
    # The npm package has no licence file. The Python package of the same project has all of them.
    runtime = importlib.util.find_spec("onnxruntime")
    if runtime is None or runtime.origin is None:
        raise SystemExit(
            "The licences of ONNX Runtime are copied from the Python package onnxruntime: "
            "install it first."
        )
    shutil.copy(Path(runtime.origin).with_name("LICENSE"), target / "LICENSE.onnxruntime")
    notices = Path(runtime.origin).with_name("ThirdPartyNotices.txt")
    shutil.copy(notices, target / "ThirdPartyNotices.onnxruntime.txt")


def materials(modules: Path, vendor: Path) -> dict[str, Any]:
    """A bill of materials: the JavaScript in the wheel, and the Python packages that pip adds.

    The former are there with version, licence and the SHA-256 of every file, the latter with what
    pyproject.toml asks for: their versions are chosen where Privet is installed.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = (ROOT / "src" / "privet" / "core" / "version.py").read_text(encoding="utf-8")
    version = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    assert version is not None
    this = f"pkg:pypi/{project['name']}@{version[1]}"
    files: dict[str, list[Path]] = {}
    for name in json.loads((HERE / "third-party.json").read_text(encoding="utf-8")):
        copy = vendor / Path(name).name
        files.setdefault(name.split("/")[0], []).extend([copy] if copy.suffix else [])
    scripts = [
        _script(modules, name, files.get(name, []))
        for package in files
        for name in (package, *BUNDLED.get(package, ()))
    ]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    asked = [
        _asked(requirement, extra)
        for extra, requirements in groups.items()
        for requirement in requirements
        if extra not in ("dev", "docs") and not requirement.startswith("privet[")
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": this,
                "name": project["name"],
                "version": version[1],
                "description": project["description"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": this,
            }
        },
        "components": scripts + asked,
        "dependencies": [{"ref": this, "dependsOn": [part["bom-ref"] for part in scripts + asked]}],
    }


def _script(modules: Path, name: str, files: list[Path]) -> dict[str, Any]:
    about = json.loads((modules / name / "package.json").read_text(encoding="utf-8"))
    parts = [
        {
            "type": "file",
            "bom-ref": f"{name}/{path.name}",
            "name": path.name,
            "hashes": [
                {"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}
            ],
        }
        for path in files
    ]
    this = f"pkg:npm/{name}@{about['version']}"
    return {
        "type": "library",
        "bom-ref": this,
        "name": name,
        "version": about["version"],
        "licenses": [{"license": {"id": about["license"]}}],
        "purl": this,
        "scope": "required",
        **({"components": parts} if parts else {}),
    }


def _asked(requirement: str, extra: str) -> dict[str, Any]:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None, requirement
    purl = f"pkg:pypi/{match[0].lower().replace('_', '-')}"
    properties = {"privet:requirement": requirement, **({"privet:extra": extra} if extra else {})}
    return {
        "type": "library",
        "bom-ref": f"{purl}#{extra}" if extra else purl,
        "name": match[0],
        "purl": purl,
        "scope": "optional" if extra else "required",
        "properties": [{"name": key, "value": value} for key, value in properties.items()],
    }


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
    """Everything that a module imports, and what that imports; and what the runtime imports when
    it starts."""
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
    size = sum(path.stat().st_size for path in written) / 1e6
    sys.stdout.write(f"{len(written)} files, {size:.1f} MB:  {given.out}\n")
