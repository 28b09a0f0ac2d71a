"""No sentence with a figure is written anywhere else than in the table of sentences."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from privet.evidence.formatting import times_in_100
from privet.evidence.sentences import say

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
        assert not re.search(r"\d+ times|\btimes in\b|\bin 100\b(?!&rdquo;|,\d)", text), path.name


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a published result."""
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return found


def of_the_demo() -> str:
    (hedge,) = [row for row in rows("demo") if row["release"] == "Hedge"]
    fields = {key: hedge[key] for key in ("attackers", "beard", "hat")}
    return say("readme_demo", bound=hedge["certified"], group=hedge["worst_group"], **fields)


def of_the_gap() -> str:
    (beard,) = [row for row in rows("tiprdc-portraits") if row["attribute"] == "beard (private)"]
    after, claimed = times_in_100(beard["release"]["value"] / 100), beard["in_game"]
    return say("readme_gap", after=after, claimed=f"{claimed:.0f}")


@pytest.mark.parametrize(
    ("page", "said"), [("README.md", (of_the_demo, of_the_gap)), ("docs/index.md", (of_the_demo,))]
)
def test_the_first_page_says_what_the_table_says_of_published_figures(
    page: str, said: tuple[Callable[[], str], ...]
) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    for sentence in said:
        assert sentence() in text
        text = text.replace(sentence(), "")
    assert not re.search(r"\d+ times|\bin 100\b", text), "a figure that the table does not have"
