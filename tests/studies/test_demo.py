"""`privet demo --pictures` tells three stories, links their pages, and shows faces before and
after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from privet.adversaries.linear import Logistic
from privet.auditing.audit import audit
from privet.auditing.batteries import Battery
from privet.cli.main import app
from privet.evidence.figures import Audit
from privet.release.drawn_records import GRID, SHOWN
from privet.studies import demo as story


def _one_attacker(*words: Any, **options: Any) -> Audit:
    """An audit of what the demo audits, by one quick attacker."""
    release, data, tasks, _ = words
    battery = Battery((Logistic(strengths=(1e-1,)),), people=False, pools=False, curves=False)
    return audit(release, data, tasks, battery, progress=False, **options | {"rebuild": False})


def test_three_releases_are_learned_attacked_and_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = replace(story.drawing_veil(0), width=0.03, epochs=0.5)
    monkeypatch.setattr(story, "drawing_veil", lambda _: quick)
    monkeypatch.setattr(story, "audit", _one_attacker)
    folder = tmp_path / "demo"
    words = ["demo", "--pictures", "--records", "400", "--device", "cpu", "--out", str(folder)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    said = " ".join((result.output + capsys.readouterr().err).split())
    for title in ("TIPRDC. beard:", "Veil. beard:", "Hedge. beard:"):
        assert title in said
    assert said.count("Nothing is proved") == 2
    text = (folder / "report.html").read_text()
    for name in ("tiprdc", "veil"):
        assert f'<a href="{name}.html">its own report</a>' in text
        assert (folder / f"{name}.html").exists() and (folder / f"{name}.json").exists()
    drawn = (folder / "veil.html").read_text()
    assert "Before and after" in drawn and drawn.count("<figcaption>after</figcaption>") == SHOWN
    assert (folder / "veil" / GRID).read_bytes().startswith(b"\x89PNG")
