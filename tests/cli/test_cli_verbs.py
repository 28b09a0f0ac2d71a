"""Every verb that the documentation names is on the command line."""

from __future__ import annotations

import re
from pathlib import Path

import typer.main

from privet.cli.main import app

DOCS = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))


def test_every_verb_in_the_docs_exists() -> None:
    group = typer.main.get_command(app)
    verbs = set(group.commands)  # type: ignore[attr-defined]
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCS)
    examples = "\n".join(re.findall(r"```[^`]*```|^ {4}[^\n]*", text, re.MULTILINE))
    named = set(re.findall(r"^\s*(?:\$ )?privet ([a-z]+) ", examples, re.MULTILINE))
    assert len(named) > 10
    assert {"learn", "apply", "serve", "share", "campaign", "lm", "words", "bench"} <= verbs
    assert named - verbs == set()
