"""Every script in examples runs, on little data, and shows what it says."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privet.adversaries.linear import Logistic
from privet.auditing.batteries import BATTERIES, Battery

EXAMPLES = Path(__file__).parents[1] / "examples"


def main_of(name: str) -> Callable[..., Any]:
    main: Callable[..., Any] = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]
    return main


def test_every_script_has_a_test_and_a_line() -> None:
    scripts = {path.stem for path in EXAMPLES.glob("*.py")}
    tests = Path(__file__).read_text(encoding="utf-8")
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert len(scripts) == 7
    assert all(f'main_of("{name}")' in tests and f"`{name}.py`" in listed for name in scripts)


def test_a_drawn_table_is_one_that_can_be_read(tmp_path: Path) -> None:
    main_of("draw_people")(tmp_path / "people.csv", 50)
    assert len((tmp_path / "people.csv").read_text().splitlines()) == 51


@pytest.fixture
def one_attacker(monkeypatch: pytest.MonkeyPatch) -> None:
    """For scripts that audit on the way to something else: the battery is of one model."""
    brief = Battery((Logistic(strengths=(0.1,)),), reread=False, name="quick")
    monkeypatch.setitem(BATTERIES, "quick", brief)


@pytest.mark.usefixtures("one_attacker")
def test_a_recipient_learns_from_a_shared_table(tmp_path: Path) -> None:
    # Always the commoner income is right for 58 in 100.
    assert main_of("share_a_table")(tmp_path, people=3000, epochs=15) > 0.64
    assert "sex" not in (tmp_path / "shared.csv").read_text().splitlines()[0]


def test_a_spread_is_found_in_their_vectors(tmp_path: Path) -> None:
    assert main_of("audit_theirs")(tmp_path, people=1200) > 0.65
    assert (tmp_path / "audit" / "report.html").exists()


@pytest.mark.usefixtures("one_attacker")
def test_a_gate_tells_little_noise_from_much() -> None:
    gate = main_of("gate")
    assert not gate(people=1200, sigma=0.01)


def test_a_linear_reader_no_longer_names_the_writer(tmp_path: Path) -> None:
    writer, topic = main_of("embeddings")(tmp_path, texts=1500)
    assert writer < 0.62 < 0.9 < topic


def test_a_pipeline_serves_its_task() -> None:
    assert main_of("sklearn_pipeline")(people=3000, epochs=15) > 0.64


def test_photos_leave_as_photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVET_HOME", str(tmp_path / "home"))
    shared = main_of("photos_with_veil")(tmp_path, portraits=60, epochs=1)
    assert (shared / "album 1" / "6.png").exists() and (shared / "released.json").exists()
    assert (tmp_path / "release" / "drawn.png").exists()
