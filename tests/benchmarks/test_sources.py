"""Sources at their own operating point: plans that can be resumed, results that are only
counted."""

from __future__ import annotations

import gc
import json
import sys
import weakref
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import sources
from sources_parts import record
from sources_parts.joined import joined, with_seeds
from sources_parts.learned import Draws, Learned, distortion
from sources_parts.recorded import Lessons, UnreadGame
from sources_parts.services import among_five, balanced, held_out
from tables import Study, read

from privet.data.schema import Inputs
from privet.train.feed import Batch, Feed
from privet.train.game import Game, Move, Phase, Player, Run

PLANS = Path(sources.__file__).parent / "sources_parts"


@pytest.mark.parametrize("plan", ["plan", "second_plan", "third_plan", "fourth_plan", "fifth_plan"])
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
    return read(folder / f"sources-{rows[0]['kind']}.json")


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


def game(seed: int, alpha: float, kept: float) -> dict[str, Any]:
    """A row of a collaborative game."""
    one = row(seed, 80.0, alpha=alpha, adversarial=True)
    del one["settings"]["penalty"]
    pair = {"raw": 90.0, "released": kept}
    male = {**pair, "as it came": 55.0, "before": 94.0}
    spread = [[0.05] * 20, [0.0] * 19 + [1.0]]
    answers = dict.fromkeys(("before", "raw", "released"), spread)
    services = {"Smiling": pair, "person": pair, "person, new pictures": pair, "Male": male}
    return {
        **one,
        "kind": "collaborative",
        "in_game": {"Male": {"balanced": kept / 100}},
        "facts": {"services": services, "answers": {"Male": answers}},
        "n": {"test": 4400, "select": 2000},
    }


def test_collaborative_games_show_services_before_and_after_and_how_answers_are_spread(
    tmp_path: Path,
) -> None:
    raw = {**row(0, 95.0, form="raw"), "kind": "collaborative", "facts": {}, "in_game": {}}
    raw["n"] = {"test": 4400, "select": 2000}
    rows = [game(0, 0.9, 60.0), game(1, 0.9, 70.0), game(0, 0.5, 85.0), raw]
    first, half, most = recorded(tmp_path, *rows, add=True).rows
    assert (first["game"], half["alpha"], most["alpha"]) == (
        "raw pictures",
        Decimal("0.5"),
        Decimal("0.9"),
    )
    assert most["service"][1] == {"value": 65, "seeds": [60, 70]} and most["runs"] == 2
    assert most["unfiltered"][0]["value"] == 94
    answers = read(tmp_path / "sources-collaborative-answers.json").rows
    assert len(answers) == 2 + 2 * 4 and answers[0]["from_10_to_30"] == 20
    steps = [key for key in answers[0] if key.startswith("from_")]
    assert all(sum(line[key] for key in steps) == 100 for line in answers)


def test_the_service_that_knows_people_is_asked_about_pictures_that_it_never_saw() -> None:
    people = np.random.default_rng(0).integers(0, 50, 300)
    out = held_out(people)
    assert np.unique(people[out]).tolist() == np.unique(people[~out]).tolist()
    assert len(people[out]) == len(np.unique(people[out]))
    truth = torch.as_tensor(people)
    right = torch.nn.functional.one_hot(truth, 50).float()
    assert among_five(right, truth) == balanced(right, truth) == 100
    assert among_five(-right, truth) == balanced(-right, truth) == 0


def test_seeds_that_come_later_join_every_row_or_none() -> None:
    def rows(*values: float) -> list[dict[str, Any]]:
        return [{"way": f"way {v:g}", "area": v, "kept": [v, 1.0]} for v in values]

    def name(line: dict[str, Any]) -> str:
        return str(line["way"])

    there = {"seeds": 1, "rows": rows(1, 2), "notes": ["old"]}
    other = [{**line, "area": line["area"] + 1.0} for line in rows(1, 2)]
    study = with_seeds(there, {"rows": other, "notes": ["new"]}, {1: other}, name)
    assert study["rows"][0]["area"] == {"value": 1.5, "seeds": [1, 2.0]}
    assert study["rows"][1]["kept"] == [2, 1.0]
    assert (study["seeds"], study["notes"]) == (2, ["old", "new"])
    with pytest.raises(ValueError, match="way 2"):
        with_seeds(there, {"rows": other[:1], "notes": []}, {1: other[:1]}, name)
    lists = [{"game": "a", "kept": [1.0]}], [({"runs": 1}, {1: {"game": "a", "kept": [1.0, 2.0]}})]
    with pytest.raises(ValueError, match="kept"):
        joined(lists[0], lists[1], lambda line: line.get("game", "a"))


def test_a_game_that_is_read_at_the_end_is_the_game() -> None:
    """The same weights and the same last figures, epochs that are no multiple of a batch too."""
    played = []
    for kind in (Game, UnreadGame.of):
        torch.manual_seed(0)
        first, second = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
        labels = {"u": np.arange(50) % 2}
        x = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
        feed = Feed(Inputs(x), labels, torch.device("cpu"))

        def objective(net: torch.nn.Module) -> Callable[[Batch], Move]:
            def loss(batch: Batch) -> Move:
                lost = torch.nn.functional.cross_entropy(net(batch.x), batch.labels["u"])
                return Move(lost, {"lost": lost})

            return loss

        players = [
            Player("first", first, objective(first), steps=2, records=np.arange(3, 40)),
            Player("second", second, objective(second)),
        ]
        phases = [Phase("none", 0, players), Phase("some", 260, players, steady=True)]
        game: Any = Game({"first": first, "second": second}, phases, feed, 7, 1, "x")
        game = game if kind is Game else UnreadGame.of(game)
        history = game.play(Run(progress=False, device="cpu"))
        played.append((history[-1], first.weight, second.weight))
    (plain, *weights), (unread, *others) = played
    assert plain == unread
    assert all(torch.equal(a, b) for a, b in zip(weights, others, strict=True))


def test_lessons_learn_and_leave_nothing_in_a_circle() -> None:
    torch.manual_seed(0)
    x, net = torch.randn(64, 3), torch.nn.Linear(3, 1)
    wanted = x.sum(1, keepdim=True)
    steady, plain = (
        Lessons(net, lambda i: (net(x[i]) - wanted[i]).square().mean(), 0.1, 0, x.device, steady)
        for steady in (True, False)
    )
    for step in range(200):
        (steady if step % 2 else plain).step(torch.randint(0, 64, (16,)), 1 - step / 200)
    assert float((net(x) - wanted).detach().square().mean()) < 1e-2
    gone = weakref.ref(steady)
    gc.disable()
    del steady
    gc.enable()
    assert gone() is None
