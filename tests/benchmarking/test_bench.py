"""`privet bench`: ratios of two things that take turns, and a check that can fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privet.benchmarking import ratios as bench
from privet.benchmarking.cases import CASES
from privet.benchmarking.ratios import Case, Ratio, check, measure, read_stored, save, store
from privet.cli.main import app
from privet.core.errors import PrivetError

STORED = Path(__file__).parents[2] / "benchmarks" / "ratios.json"


class Clock:
    """Time that passes only when work is done."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[str] = []

    def case(self, name: str, ours: list[float], reference: float) -> Case:
        """Ours takes the listed seconds one after the other, the last of them from then on."""
        left = [ours[0], *ours]  # the first is for warming up

        def work(who: str, seconds: float) -> None:
            self.log.append(who)
            self.now += seconds

        def own() -> None:
            work("ours", left.pop(0) if len(left) > 1 else left[0])

        return Case(
            name,
            "ours",
            "the reference",
            lambda folder: (own, lambda: work("reference", reference)),
        )


@pytest.fixture
def clock(monkeypatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(bench.time, "process_time", lambda: found.now)
    return found


def _ratio(value: float, name: str = "step") -> Ratio:
    return Ratio(name, "ours", "the reference", (value, value, value), (1.0, value))


def test_a_ratio_is_the_references_time_over_ours(clock):
    found = measure(clock.case("a", [2.0, 4.0, 1.0], 4.0), turns=3)
    assert found.values == (2.0, 1.0, 4.0) and found.median == 2.0
    assert "2.00 times (1.00 to 4.00) the speed of the reference" in found.line


def test_the_two_take_turns_and_change_places(clock):
    measure(clock.case("a", [1.0], 1.0), turns=4)
    turns = clock.log[2:]
    assert (
        len(turns) == 8
        and [turns[i : i + 2] for i in range(0, 8, 2)]
        == [["ours", "reference"], ["reference", "ours"]] * 2
    )


def test_more_turns_are_taken_where_the_first_are_not_enough(clock):
    found = measure(
        clock.case("a", [9.0, 9.0, 1.0], 1.0), turns=3, enough=lambda ratio: ratio.median > 0.5
    )
    assert len(found.values) == 7 and found.median == 1.0
    assert len(measure(clock.case("b", [1.0], 1.0), turns=3).values) == 3


@pytest.mark.parametrize(
    "value,slow", [(1.0, False), (0.7, False), (0.66, True), (0.1, True), (5.0, False)]
)
def test_a_made_up_slow_ratio_is_found(value, slow):
    assert bool(check([_ratio(value)], {"step": 1.0, "other": 9.0})) is slow
    assert not check([_ratio(value)], {"other": 9.0})


def test_what_is_said_of_a_slow_ratio_has_the_numbers():
    (line,) = check([_ratio(0.5)], {"step": 1.2})
    assert (
        line
        == "step is slower than it was: 0.50 times the speed of the reference, where 1.20 is stored"
        " and 0.80 the limit."
    )


@pytest.mark.parametrize("seconds,code", [(1.0, 0), (1.4, 0), (1.6, 1)])
def test_the_command_ends_with_the_code_of_the_check(clock, tmp_path, monkeypatch, seconds, code):
    monkeypatch.setattr(
        "privet.benchmarking.bench.CASES", {"step": clock.case("step", [seconds], 1.0)}
    )
    (tmp_path / "ratios.json").write_text('{"ratios": {"step": 1.0}}')
    said = CliRunner().invoke(
        app,
        ["bench", "--check", str(tmp_path / "ratios.json"), "--out", str(tmp_path / "bench.json")],
    )
    assert said.exit_code == code and ("slower than it was" in said.output) == bool(code)
    told = json.loads((tmp_path / "bench.json").read_text())
    assert (
        told["ratios"][0]["ratio"] == pytest.approx(1 / seconds, abs=1e-4)
        and told["machine"]["torch"]
    )


def test_ratios_are_kept_beside_those_of_other_cases(tmp_path):
    path = tmp_path / "ratios.json"
    store(path, [_ratio(2.0, "a"), _ratio(3.0, "b")])
    store(path, [_ratio(4.0, "b")])
    assert read_stored(path, ["a", "b"]) == {"a": 2.0, "b": 4.0}
    save(tmp_path / "bench.json", [_ratio(2.0)])
    assert json.loads((tmp_path / "bench.json").read_text())["ratios"][0]["turns"] == [
        2.0,
        2.0,
        2.0,
    ]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"ratios": 3}',
        '{"ratios": {"a": "fast"}}',
        '{"ratios": {"gone": 1.0}}',
        '{"ratios": {"a": 0}}',
    ],
)
def test_stored_ratios_that_check_nothing_are_refused(tmp_path, content):
    (tmp_path / "ratios.json").write_text(content)
    with pytest.raises(PrivetError):
        read_stored(tmp_path / "ratios.json", ["a"])
    with pytest.raises(PrivetError, match="Cannot read"):
        read_stored(tmp_path / "absent.json", ["a"])


def test_an_unknown_case_is_named():
    said = CliRunner().invoke(app, ["bench", "pakcing"])
    assert isinstance(said.exception, PrivetError) and "did you mean 'packing'" in str(
        said.exception
    )


@pytest.mark.skipif(
    not STORED.exists(), reason="there are no stored ratios beside this installation"
)
def test_every_case_is_stored():
    assert set(read_stored(STORED, list(CASES))) == set(CASES)
