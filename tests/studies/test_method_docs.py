"""docs/methods and docs/compare.md say what is there: commands parse, settings exist and have the
defaults that the tables give."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path

import pytest
import typer

from privet.cli import main as cli
from privet.methods.registry import METHODS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    path.stem: path.read_text(encoding="utf-8") for path in sorted((DOCS / "methods").glob("*.md"))
}
WORDS = {"yes": True, "true": True, "no": False, "false": False, "": ""}


def page_of(name: str) -> str:
    return PAGES.get(name, PAGES["baselines"])


def commands() -> list[str]:
    texts = [*PAGES.values(), (DOCS / "compare.md").read_text(encoding="utf-8")]
    blocks = [
        line
        for text in texts
        for line in re.sub(r"\\\n\s*", "", text).splitlines()
        if line.startswith("    privet ")
    ]
    return sorted({line.partition("#")[0].strip() for line in blocks})


@pytest.mark.parametrize("line", commands())
def test_commands_parse(line):
    """Verb, options and arguments exist; settings of `--set` belong to the method."""
    _, verb, *words = shlex.split(line)
    command = typer.main.get_command(cli.app).commands[verb]
    given = command.make_context(verb, words).params
    if verb == "learn":
        fields = {field.name for field in dataclasses.fields(METHODS[given["method"]])}
        assert {word.partition("=")[0] for word in given["settings"] or ()} <= fields


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_is_described_with_its_default(name):
    defaults = {
        field.name: field.default
        for field in dataclasses.fields(METHODS[name])
        if field.name != "seed"
    }
    found: dict[str, str] = {}
    for line in re.findall(r"^\| (`[^\n]*) \|$", page_of(name), re.M) if name in PAGES else ():
        keys, values = (
            [part.strip() for part in line.split(" | ")][:2] if " | " in line else ("", "")
        )
        named = re.findall(r"`(\w+)`", keys)
        found |= {
            key: value
            for key, value in zip(named, (v.strip() for v in values.split(",")), strict=False)
            if key not in found
        }
    inherited = PAGES["hedge"] if name == "codebook" else ""
    for key, default in defaults.items():
        assert f"`{key}`" in page_of(name) + inherited, f"{key} is not described"
        if key in found and re.fullmatch(r"[\w.\u2212-]*", found[key]):
            said = WORDS.get(found[key], found[key].replace("\u2212", "-"))
            assert said == default or (
                isinstance(default, int | float) and float(said) == default
            ), f"{key} is {default}, not {said}"


@pytest.mark.parametrize("name", METHODS)
def test_every_page_says_which_published_method_it_is_closest_to(name):
    assert re.search(r"losest (published|to)|(19|20)\d\d", page_of(name)), "no source is named"
    assert "privet learn" in page_of(name)
