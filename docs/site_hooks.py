"""What `make docs` adds to mkdocs: the API reference, the repository's own pages, the
tutorials, and two checks.

The reference has a page for every room of the package that a public name comes from. Links to files
outside of docs/ become plain names in the site, and fail where there is no such file. A page that
loads something from another host fails too.
"""

from __future__ import annotations

import json
import logging
import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

import griffe
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
log = logging.getLogger("mkdocs.hooks")
"""A warning makes a strict build fail, after all pages were looked at."""
OWN = {name: name.lower() for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
"""Pages that lie beside the README, and where they are in the site."""
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
LOADED = re.compile(
    r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["']?((?:\w+:)?//[^"'\s>]+)"""
)


def on_files(files: Files, config: Any) -> Files:
    """Add what is not written in docs/."""
    rooms = _public()
    pages = {f"api/{room}.md": _room(room, names) for room, names in rooms.items()}
    pages["api/index.md"] = _index(rooms)
    for notebook in sorted((ROOT / "docs" / "tutorials").glob("*.ipynb")):
        pages[f"tutorials/{notebook.stem}.md"] = _notebook(notebook)
    for name, target in OWN.items():
        pages[target] = (ROOT / name).read_text(encoding="utf-8")
    pages["favicon.svg"] = (ROOT / "web" / "static" / "leaf.svg").read_text(encoding="utf-8")
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def _notebook(path: Path) -> str:
    """A notebook as Markdown: its texts, and its cells of code."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = [
        text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
        for cell in cells
        if (text := "".join(cell["source"]))
    ]
    parts.append(f"*This page is the notebook `docs/tutorials/{path.name}`; CI runs it.*")
    return "\n\n".join(parts) + "\n"


def on_config(config: Any) -> Any:
    """List the pages of the reference below its index."""
    for entry in config["nav"]:
        if "Reference" in entry:
            entry["Reference"] += [{room.capitalize(): f"api/{room}.md"} for room in _public()]
    return config


def on_page_markdown(markdown: str, page: Any, **_other: Any) -> str:
    """Links to what is no page of the site: to another page where there is one, else a name."""
    back = {target: name for name, target in OWN.items()}
    own = page.file.src_uri
    here = "" if own in back else posixpath.join("docs", posixpath.dirname(own))

    def replace(match: re.Match[str]) -> str:
        text, path, anchor = match[1], match[2], match[3] or ""
        target = posixpath.normpath(posixpath.join(here, path))
        if here and target.startswith("docs/"):
            return match[0]
        if not (ROOT / target).exists():
            log.warning("%s: there is no %s", own, target)
        if target in OWN or target.startswith("docs/"):
            site = OWN.get(target, target.removeprefix("docs/"))
            return f"[{text}]({posixpath.relpath(site, posixpath.dirname(own) or '.')}{anchor})"
        return f"{text} (`{target}`)" if text.strip("`") != target else f"`{target}`"

    return markdown if own.startswith("api/") else LINK.sub(replace, markdown)


def on_post_page(output: str, page: Any, **_other: Any) -> str:
    """Nothing is loaded from elsewhere."""
    for address in LOADED.findall(output):
        log.warning("%s loads %s", page.file.src_uri, address)
    return output


class Examples(griffe.Extension):
    """Examples in docstrings become blocks of code; to Markdown `>>>` is a quotation."""

    def on_object(self, *, obj: griffe.Object, **_other: Any) -> None:
        if obj.docstring is not None:
            parts = re.split(r"\n{2,}", obj.docstring.value)
            fenced = (
                f"```pycon\n{part}\n```" if part.startswith(">>>") else part for part in parts
            )
            obj.docstring.value = "\n\n".join(fenced)


@cache
def _package() -> Any:
    return griffe.load("privet", search_paths=[ROOT / "src"], allow_inspection=False)


@cache
def _public() -> dict[str, list[str]]:
    """The public names of `privet` by the room they come from, in the order of `__all__`."""
    package = _package()
    rooms: dict[str, list[str]] = {}
    for name in package.exports or []:
        member = package.members.get(str(name))
        if member is not None and member.is_alias and not str(name).startswith("_"):
            rooms.setdefault(member.target_path.split(".")[1], []).append(str(name))
    if not rooms:
        raise PluginError("privet has no public names that can be read from its source")
    return rooms


def _room(room: str, names: list[str]) -> str:
    parts = [f"::: privet.{name}" for name in names]
    return "\n\n".join([f"# {room.capitalize()}", *parts]) + "\n"


def _index(rooms: dict[str, list[str]]) -> str:
    lines = ["# Reference", "", "All names that `import privet` has.", ""]
    for room, names in rooms.items():
        lines += [f"## {room.capitalize()}", "", "| name | |", "|---|---|"]
        for name in names:
            lines.append(f"| [`privet.{name}`]({room}.md#privet.{name}) | {_first(name)} |")
        lines.append("")
    return "\n".join(lines)


def _first(name: str) -> str:
    """The first paragraph of a docstring."""
    docstring = _package()[name].final_target.docstring
    text = " ".join(docstring.value.split("\n\n")[0].split()) if docstring else ""
    return text.replace("|", "\\|")
