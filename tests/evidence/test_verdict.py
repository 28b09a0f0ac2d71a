"""The boundaries of the verdict, where goals come from, and what must not be called held."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.core.errors import PrivetError
from privet.evidence.figures import Audit, Figure, Finding, Group, Reading
from privet.evidence.verdict import check_goal, goal_of, judge, overall, verdict, verdicts
from privet.evidence.what_leaves import WhatLeaves

SHARES = st.floats(0, 1)


def figure(value: float, half: float = 0.02, n: int = 2000) -> Figure:
    return Figure(value, value - half, value + half, n, 0.5)


def finding(value: float, source: str = "released", **more: int) -> Finding:
    return Finding("mlp", source, value, figure(value), figure(value), None, 1.0, **more)  # type: ignore[arg-type]


def reading(value: float, raw: float | None = 0.9, others: tuple[Finding, ...] = ()) -> Reading:
    before = () if raw is None else (finding(raw, "raw"),)
    return Reading("sex", "private", ("f", "m"), (finding(value),), before, 0, 0, others=others)


def audit(one: Reading, **more: object) -> Audit:
    return Audit({}, {}, "quick", (one,), (), 1.0, **more)  # type: ignore[arg-type]


@given(st.tuples(SHARES, SHARES, SHARES).map(sorted), SHARES, st.none() | SHARES)
def test_a_word_follows_from_the_ends_of_the_interval(
    ends: list[float], goal: float, bound: float | None
) -> None:
    low, value, high = ends
    word = judge(Figure(value, low, high, 100, 0.5), goal, bound)
    proved = bound is not None and bound <= goal
    assert (word == "readable") == (low > goal)
    assert (word == "held") == (low <= goal and (high <= goal or proved))
    assert (word == "at risk") == (low <= goal < high and not proved)


@given(st.tuples(SHARES, SHARES, SHARES).map(sorted), SHARES, SHARES)
def test_a_stricter_goal_is_never_easier(ends: list[float], first: float, second: float) -> None:
    low, value, high = ends
    one = Figure(value, low, high, 100, 0.5)
    strict, lax = sorted((first, second))
    order = ["readable", "at risk", "held"]
    assert order.index(judge(one, strict)) <= order.index(judge(one, lax))


def test_an_end_on_the_wrong_side_of_the_value_comforts_nobody() -> None:
    assert judge(Figure(0.7, 0.4, 0.5, 100, 0.5), 0.6) == "at risk"


@pytest.mark.parametrize(
    "nothing",
    [
        None,
        Figure(float("nan"), 0, 1, 0, 0.5),
        Figure(0.5, 0, 1, 9, 0.5, interval="the whole range"),
    ],
)
def test_what_was_not_counted_is_not_called_held(nothing: Figure | None) -> None:
    assert judge(nothing, 0.9) == "not measured"


def test_goals_are_stated_or_the_releases_own_or_between_guessing_and_raw() -> None:
    one = reading(0.55)
    assert goal_of(audit(one, goals={"sex": 0.7}), one).share == 0.7
    card = {"settings": {"target": 0.64}}
    assert goal_of(Audit(card, {}, "quick", (one,), (), 1.0), one).origin == "release"
    assert goal_of(audit(one), one).share == 0.58
    bare = reading(0.55, raw=None)
    assert goal_of(audit(bare), bare).share == 0.6
    # Raw records hardly tell it: a goal that no audit could tell from guessing helps nobody.
    dull = reading(0.5, raw=0.52)
    assert goal_of(audit(dull), dull).share == 0.525


def test_a_target_of_another_kind_of_setting_is_no_goal() -> None:
    one = reading(0.55)
    for target in (True, "0.6", float("nan"), 0.5, 1.0, 40):
        made = Audit({"settings": {"target": target}}, {}, "quick", (one,), (), 1.0)
        assert goal_of(made, one).origin == "raw", target


def test_records_of_a_person_that_leave_together_are_judged_together() -> None:
    one = reading(0.55, others=(finding(0.8, "pooled", records=5),))
    assert verdict(audit(one, goals={"sex": 0.6}), one).word == "held"
    tied = WhatLeaves(records=5, linked_by=("person",))
    assert verdict(audit(one, goals={"sex": 0.6}, leaves=tied), one).word == "readable"


def test_columns_that_leave_and_were_not_attacked_are_no_comfort() -> None:
    one, beside = reading(0.55), WhatLeaves(kept=("job",))
    assert verdict(audit(one, goals={"sex": 0.6}, leaves=beside), one).word == "not measured"
    with_job = Finding(**{**vars(finding(0.7, "released and kept")), "columns": ("job",)})
    both = reading(0.55, others=(with_job,))
    assert verdict(audit(both, goals={"sex": 0.6}, leaves=beside), both).word == "readable"


def test_a_group_that_is_read_makes_it_a_risk() -> None:
    one = reading(0.55)
    groups = (Group("job", "sales", figure(0.66)), Group("job", "clergy", figure(0.61)))
    judged = verdict(
        audit(one, goals={"sex": 0.6}),
        Reading(**{**vars(one), "groups": groups}),
    )
    assert judged.word == "at risk"
    assert judged.among is not None and judged.among.name == "job = sales"


def test_the_worst_word_is_the_audits() -> None:
    held, read = reading(0.52), reading(0.8)
    both = Audit({}, {}, "quick", (held, read), (), 1.0, goals={"sex": 0.6})
    assert [one.word for one in verdicts(both)] == ["held", "readable"]
    assert overall(verdicts(both)) == "readable"
    assert overall(()) == "not measured"


@pytest.mark.parametrize("goal", [-0.1, 1.0, 60, 0.5, 0.4])
def test_a_goal_that_cannot_be_meant_is_refused(goal: float) -> None:
    with pytest.raises(PrivetError):
        check_goal("sex", goal, 0.5)
