"""Sources at their own operating point: plans that can be resumed, results that are only
counted."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import sources
from sources_parts import record
from sources_parts.learned import Draws, Learned, distortion
from tables import Study, read

PLANS = Path(sources.__file__).parent / "sources_parts"


@pytest.mark.parametrize("plan", ["plan", "second_plan", "third_plan"])
def test_every_row_of_a_plan_has_a_name_of_its_own(plan: str) -> None:
    rows = json.loads((PLANS / f"{plan}.json").read_text())
    slugs = [sources.slug(rows, job) for job in sources.jobs(rows)]
    assert len(set(slugs)) == len(slugs) > 15
    tried = [sources.slug(rows, job) for job in sources.jobs(sources.small(rows))]
    assert set(tried) <= set(slugs)


def test_releases_are_drawn_anew_only_where_they_are_noisy() -> None:
    raw = {"test": torch.randint(0, 256, (6, 3, 8, 8), dtype=torch.uint8)}
    plain = Learned(torch.nn.Identity(), lambda x: x.float() / 127.5 - 1, (3, 8, 8), True, False)
    noisy = Learned(
        torch.nn.Identity(), lambda x: torch.randn(x.shape), (3, 8, 8), True, noisy=True
    )
    assert not torch.equal(Draws(noisy, raw)("test"), Draws(noisy, raw)("test"))
    draws = Draws(plain, raw)
    assert draws("test") is draws("test")
    assert torch.equal(draws("test", mirrored=True), draws("test").flip(3))
    assert distortion(draws, raw)["distortion"] < 1e-6
    half = Learned(torch.nn.Identity(), lambda x: torch.zeros(x.shape), (3, 8, 8), True, False)
    black = {"test": torch.zeros_like(raw["test"])}
    assert distortion(Draws(half, black), black)["distortion"] == pytest.approx(0.5)


def row(seed: int, value: float, **settings: Any) -> dict[str, Any]:
    figure = {"value": value, "low": value - 1, "high": value + 1, "plain": value, "select": value}
    return {
        "key": f"gap-{seed}",
        "kind": "gap",
        "settings": {"penalty": 0.6, "seed": seed, **settings},
        "question": {"size": 32},
        "in_game": {"Smiling": {"balanced": value / 100}},
        "private": {
            "Smiling": {
                "attackers": {"table 1": figure},
                "worst": {"by": "table 1", **figure},
                "from fit": figure,
            }
        },
        "tasks": {"Male": figure},
        "distortion": 0.031,
        "psnr": 27.0,
        "n": {"test": 4400},
    }


def test_results_are_means_over_seeds_of_what_was_counted(tmp_path: Path) -> None:
    rows = [row(0, 80.0), row(1, 84.0), row(0, 70.0, guarded=True), {"failed": "x", "kind": "gap"}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    record.record([path], tmp_path, "a machine", None)
    study = read(tmp_path / "sources-gap.json")
    plain, guarded = study.rows
    assert plain["worst"] == {"value": 82, "low": 81, "high": 83, "seeds": [80, 84]}
    assert (plain["runs"], guarded["runs"]) == (2, 1) and guarded["game"].startswith(
        "guarded cross entropy, λ 0.3,"
    )


def recorded(folder: Path, *rows: dict[str, Any], **how: Any) -> Study:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    record.record([path], folder, how.pop("machine", None), how.pop("commit", None), **how)
    return read(folder / "sources-gap.json")


def test_adding_rows_later_gives_what_recording_them_at_once_gives(tmp_path: Path) -> None:
    first = [row(0, 80.0), row(0, 70.0, guarded=True)]
    later = [row(2, 85.1), row(1, 84.0), row(0, 60.0, form="variation")]
    at_once = recorded(tmp_path, *first, later[1], later[0], later[2], machine="m", commit="a, b")
    recorded(tmp_path, *first, machine="m", commit="a")
    added = recorded(tmp_path, *later, commit="b", add=True)
    assert added == at_once
    assert added.rows[0]["worst"]["seeds"] == [80, 84, Decimal("85.1")]
    noted = recorded(tmp_path, row(1, 71.0, guarded=True), add=True, notes=["One more."])
    assert noted.notes == [*at_once.notes, "One more."] and noted.commit == "a, b"


def test_a_seed_that_is_there_is_not_counted_twice(tmp_path: Path) -> None:
    recorded(tmp_path, row(0, 80.0), row(1, 84.0))
    with pytest.raises(ValueError, match=r"Seed 1 .* already"):
        recorded(tmp_path, row(1, 84.0), row(2, 85.0), add=True)


def test_rows_of_other_records_or_without_a_figure_are_not_joined(tmp_path: Path) -> None:
    recorded(tmp_path, row(0, 80.0))
    with pytest.raises(ValueError, match="other n"):
        recorded(tmp_path, {**row(1, 80.0), "n": {"test": 10}}, add=True)
    with pytest.raises(ValueError, match="in_game"):
        recorded(tmp_path, {**row(1, 80.0), "in_game": {}}, add=True)
