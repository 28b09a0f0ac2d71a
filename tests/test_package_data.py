"""Every file beside the modules is named in pyproject.toml, or the wheel would lack it."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "privet"


def test_every_file_that_is_no_module_gets_into_the_wheel() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    patterns = tools["setuptools"]["package-data"]["privet"]
    named = {path for pattern in patterns for path in PACKAGE.glob(pattern)}
    present = {
        path
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc") and path.name != ".gitignore"
    }
    assert PACKAGE / "py.typed" in present and present <= named, present - named
