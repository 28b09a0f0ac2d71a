"""Methods that aim at a certified bound: --target sets it, other methods say that they have none,
and the demo says what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from privet import METHODS
from privet.cli import main as cli
from privet.core.errors import PrivetError
from privet.evidence.figures import Audit, Certified, Figure, Finding, Reading
from privet.reporting.page import render
from privet.studies.demo import in_words
from small import small


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    raw = small("table", 300)
    frame = raw.records.drop(columns="colour")
    for name in ("u", "y"):
        frame[name] = np.array(["no", "yes"])[raw.labels[name]]
    path = tmp_path_factory.mktemp("room") / "people.csv"
    frame.to_csv(path, index=False)
    return path


def learn(people: Path, method: str, *words: str) -> Any:
    out = people.parent / "r"
    args = [
        "learn",
        method,
        "--data",
        str(people),
        "--private",
        "u",
        "--device",
        "cpu",
        "--out",
        str(out),
        *words,
    ]
    return CliRunner().invoke(cli.app, args), out


def test_target_is_the_plain_name_of_the_dial(people: Path) -> None:
    result, out = learn(
        people,
        "codebook",
        "--target",
        "0.77",
        "--set",
        "epochs=1",
        "--set",
        "width=0.05",
        "--set",
        "batch=32",
    )
    assert result.exit_code == 0, result.output
    assert json.loads((out / "card.json").read_text())["settings"]["target"] == 0.77


def test_a_target_and_a_budget_are_one_thing(people: Path) -> None:
    for name in ("hedge", "veil"):
        result, _ = learn(people, name, "--target", "0.6", "--budget", "0.6")
        assert isinstance(result.exception, PrivetError)
        assert "give one of them" in str(result.exception)


def test_a_method_without_a_dial_has_no_target(people: Path) -> None:
    for name in [name for name, method in METHODS.items() if not method.dial]:
        result, _ = learn(people, name, "--target", "0.6")
        assert isinstance(result.exception, PrivetError), name


def _audit(title: str, bound: float | None) -> Audit:
    def read(name: str, role: Any, value: float) -> Reading:
        figure, raw = (Figure(v, v - 0.02, v + 0.02, 900, 0.5) for v in (value, 0.9))
        found = [
            Finding("mlp", source, 0.8, f, f, None, 1.0)
            for source, f in (("released", figure), ("raw", raw))
        ]
        return Reading(name, role, ("no", "yes"), tuple(found[:1]), tuple(found[1:]), 0, 0)

    one = Certified(
        "beard",
        ("no", "yes"),
        bound,
        None,
        (),
        None,
        0.5,
        0.1,
        0.99,
        (80, 140),
        1,
        0.4,
        1,
        "smoothed",
        "it is so",
    )
    card = {"method": title.lower(), "title": title, "private": ["beard"], "settings": {}}
    return Audit(
        card,
        {},
        "quick",
        (read("beard", "private", 0.61), read("hat", "utility", 0.87)),
        (),
        1.0,
        certificates=(one,),
    )


def test_the_demo_says_what_was_read_and_what_is_proved() -> None:
    proved, not_proved = in_words(_audit("Hedge", 0.631)), in_words(_audit("TIPRDC", None))
    read = "Hedge. beard: from one released record the only attacker is right 61 times in 100"
    assert proved.startswith(read)
    assert "can guess beard with a balanced accuracy above 63.1 % on average over people" in proved
    assert "hat: a model trained on the release is right 87 times in 100" in proved
    assert "Nothing is proved" in not_proved and "No adversary" not in not_proved


def test_a_compared_audit_has_its_own_page() -> None:
    page = render(_audit("Hedge", 0.631), [_audit("TIPRDC", None)], ["tiprdc.html"])
    assert '<a href="tiprdc.html">its own report</a>' in page
    assert "its own report" not in render(_audit("Hedge", 0.631), [_audit("TIPRDC", None)])


def test_a_target_below_guessing_is_refused(people: Path) -> None:
    result, _ = learn(people, "hedge", "--target", "0.4")
    assert isinstance(result.exception, PrivetError) and "cannot be met" in str(result.exception)
