"""No sentence with a figure is written anywhere else than in the table of sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "privet"
COUNTED = re.compile(r"\btimes in\b|\bin 100\b|\bin \{of\}|times in 1|above \{|at most \{")
# Where a number of tries is no figure of a sentence: it explains what an option or a measure is.
ALLOWED = {
    "reporting/measures.py": "share of those who have it",
    "auditing/gate.py": " in 100",
    "evidence/power.py": "smallest balanced accuracy",
}


def texts(path: Path) -> Iterator[str]:
    """Strings of a module that are no docstring; of a formatted one, its parts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        id(n.body[0].value)
        for n in ast.walk(tree)
        if isinstance(n, holders) and n.body and isinstance(n.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_modules_write_no_such_sentence() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        allowed = ALLOWED.get(path.relative_to(PACKAGE).as_posix())
        for text in texts(path):
            if COUNTED.search(text) and not (allowed and allowed in text):
                pytest.fail(f"{path.name}: {text!r} belongs in sentences.toml")


def test_templates_and_the_browsers_words_write_none() -> None:
    pages = [*(PACKAGE / "reporting" / "templates").iterdir()]
    for path in [*pages, *(ROOT / "web" / "static").glob("*.js"), *(ROOT / "web").glob("*.html")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\d+ times|\btimes in\b|\bin 100\b(?!&rdquo;)", text), path.name
