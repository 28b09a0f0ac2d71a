"""Sentences are never stronger than the figures behind them."""

from __future__ import annotations

import re
from dataclasses import replace

import example_audits as example
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.evidence.figures import Figure, Rebuilt
from privet.report import words

SHARES = st.floats(0, 1)
unhurried = settings(deadline=None)  # a busy machine is no failure


@unhurried
@given(SHARES, st.sampled_from([100, 1000, 10000]))
def test_rounding_outward_contains_the_number(value: float, of: int) -> None:
    low, high = int(words.times(value, of, "down")), int(words.times(value, of, "up"))
    assert low / of <= value + 1e-9 and value <= high / of + 1e-9
    assert high - low <= 1
    middle = words.times(value, of)
    assert middle in (f"over {of - 1}", "under 1") or low <= int(middle) <= high


@unhurried
@given(SHARES)
def test_only_certainty_is_called_100_or_0(value: float) -> None:
    said = words.times_in_100(value)
    assert (said == "100") <= (value > 1 - 1e-8)
    assert (said == "0") <= (value < 1e-8)


@unhurried
@given(st.tuples(SHARES, SHARES, SHARES).map(sorted), st.integers(1, 10**6), st.sampled_from([0.5, 1 / 3, 0.01, 1 / 700]))
def test_sentence_agrees_with_its_figure(ends: list[float], n: int, chance: float) -> None:
    low, value, high = ends
    figure = Figure(value, low, high, n, chance)
    one = replace(example.BEARD.released[0], balanced=figure)
    reading = replace(example.BEARD, released=(one,), best=0)
    said = words.private_sentence(reading)
    assert ("not distinguishable from guessing" in said) == figure.is_chance
    found = re.search(r"in (\d+) \(between (\d+) and (\d+)\)", said)
    assert found is not None
    of, least, most = map(int, found.groups())
    assert least / of <= low + 1e-9 and high <= most / of + 1e-9
    if figure.is_chance and high > chance + words.FEW + 1e-9:
        assert "tested it could also be" in said, "a wide interval is no comfort"


@unhurried
@given(st.floats(0, 2), st.sampled_from(["down", "up"]))
def test_percent_rounds_outward(value: float, way: words.Way) -> None:
    said = float(words.percent(value, way)) / 100
    assert said <= value + 1e-9 if way == "down" else said >= value - 1e-9


def test_one_attacker_is_not_called_the_best_of_one() -> None:
    alone = replace(example.BEARD, released=example.BEARD.released[:1], best=0)
    assert words.private_sentence(alone).startswith("the only attacker is right 55 times")


def test_what_raw_data_does_not_show_is_not_counted_as_hidden() -> None:
    never = example.reading("mood", "private", {"network": 0.5}, {"network": 0.505})
    assert "nothing was hidden" in words.private_sentence(never)


def test_useless_release_is_called_useless() -> None:
    useless = example.reading("smiling", "utility", {"network": 0.5}, {"network": 0.92})
    assert "not distinguishable from guessing (50)" in words.utility_sentence(useless)


def test_many_values_are_counted_in_more_tries() -> None:
    person = example.reading("person", "private", {"network": 0.012}, {"network": 0.9}, tuple(map(str, range(300))))
    assert "12 times in 1000" in words.private_sentence(person)
    assert words.score(person) == ("12", 1000)


def test_unmeasured_is_said_not_invented() -> None:
    assert "not measured" in words.private_sentence(example.unmeasured())
    assert words.score(example.unmeasured()) is None
    assert "no attacker was run" in words.private_sentence(replace(example.BEARD, released=()))
    assert words.rebuilt_sentence(Rebuilt("PSNR in dB", float("inf"), 3)) == "PSNR in dB: not measured."


def test_negative_variance_is_explained() -> None:
    assert "below 0" in words.rebuilt_sentence(Rebuilt("share of variance explained", -0.2, 10))


def test_names_tell_compared_audits_apart() -> None:
    audits = [example.audit(), example.other("TIPRDC", 0.6, 0.8, budget=0.5), example.other("GAP", 0.6, 0.8)]
    assert [words.called(a, audits) for a in audits] == ["TIPRDC budget 0.9", "TIPRDC budget 0.5", "GAP"]
    seeds = [example.audit(seed=1), example.audit(seed=2)]
    assert [words.called(a, seeds) for a in seeds] == ["TIPRDC seed 1", "TIPRDC seed 2"]
