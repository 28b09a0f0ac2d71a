"""Sentences are never stronger than the figures behind them."""

from __future__ import annotations

import re
from dataclasses import replace

import example_audits as example
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.evidence import formatting as numbers
from privet.evidence.figures import Fairness, Figure, People, Rebuilt
from privet.reporting import measures, sections
from privet.reporting import sentences as words

SHARES = st.floats(0, 1)
VOID = Figure(float("nan"), 0.0, 1.0, 0, 0.5)
unhurried = settings(deadline=None)  # a busy machine is no failure


@unhurried
@given(SHARES, st.sampled_from([100, 1000, 10000]))
def test_rounding_outward_contains_the_number(value: float, of: int) -> None:
    low, high = int(numbers.times(value, of, "down")), int(numbers.times(value, of, "up"))
    assert low / of <= value + 1e-9 and value <= high / of + 1e-9
    assert high - low <= 1
    middle = numbers.times(value, of)
    assert middle in (f"over {of - 1}", "under 1") or low <= int(middle) <= high


@unhurried
@given(SHARES)
def test_only_certainty_is_called_100_or_0(value: float) -> None:
    said = numbers.times_in_100(value)
    assert (said == "100") <= (value > 1 - 1e-8)
    assert (said == "0") <= (value < 1e-8)


@unhurried
@given(
    st.tuples(SHARES, SHARES, SHARES).map(sorted),
    st.integers(1, 10**6),
    st.sampled_from([0.5, 1 / 3, 0.01, 1 / 700]),
)
def test_sentence_agrees_with_its_figure(ends: list[float], n: int, chance: float) -> None:
    low, value, high = ends
    figure = Figure(value, low, high, n, chance)
    one = replace(example.BEARD.released[0], score=figure)
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
def test_percent_rounds_outward(value: float, way: numbers.Way) -> None:
    said = float(numbers.percent(value, way)) / 100
    assert said <= value + 1e-9 if way == "down" else said >= value - 1e-9


@unhurried
@given(st.tuples(*[st.floats(-1, 1)] * 3).map(sorted), st.integers(1, 10**6))
def test_sentence_about_a_number_agrees_with_its_figure(ends: list[float], n: int) -> None:
    low, value, high = ends
    figure = Figure(value, low, high, n, 0.0, measure="share of variance explained")
    reading = replace(
        example.AGE, released=(replace(example.AGE.worst, score=figure),), best=0, raw=()
    )
    said = words.private_sentence(reading)
    assert ("not distinguishable from guessing" in said) == figure.is_chance
    assert ("explains none of" in said) == (value <= 0)
    found = re.search(r"\(between (none|\d+) and (\d+)", said)
    assert (found is None) == (high <= 0)
    if found is not None:
        assert (found[1] == "none") == (low <= 0)
        assert found[1] == "none" or int(found[1]) / 100 <= low + 1e-9
        assert high <= int(found[2]) / 100 + 1e-9


@unhurried
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_amounts_round_outward(value: float, like: float) -> None:
    down, up = (float(numbers.amount(value, way, like).replace(",", "")) for way in ("down", "up"))
    assert down <= value + 1e-7 and value <= up + 1e-7


def test_the_best_of_what_tasks_give_away_is_said_first() -> None:
    many = {f"task t{i}": example.figure(0.5 + i / 100) for i in range(6)} | {
        "prior": example.figure(0.5),
        "task void": VOID,
    }
    said = words.baseline_sentence(replace(example.BEARD, baselines=many))
    assert (
        said == "Knowing only t5 is right 55 times; knowing only t4 is right 54 times; "
        "knowing only t3 is right 53 times."
    )
    assert (
        words.baseline_sentence(example.BEARD)
        == words.baseline_sentence(replace(example.BEARD, baselines={"task void": VOID}))
        == ""
    )
    assert (
        words.baseline_sentence(
            replace(example.AGE, baselines={"task t": Figure(0.04, 0.02, 0.06, 9, 0.0)})
        )
        == "Knowing only t explains 4 %."
    )


def test_only_other_ways_beyond_doubt_join_the_headline() -> None:
    near, far = (
        example.finding("network", 0.62, "rebuilt"),
        replace(example.finding("network", 0.8, "averaged"), releases=4),
    )
    assert words.louder(replace(example.BEARD, others=(near, far, replace(far, score=VOID)))) == [
        "From the average of 4 releases of the same record: "
        "right 80 times in 100 (between 78 and 82), balanced."
    ]
    assert words.louder(example.unmeasured()) == []


def test_attacks_on_people_are_not_stronger_than_their_figures() -> None:
    again = People(
        "re-identification", "cosine", {"top_1": Figure(0.01, 0.001, 0.03, 280, 1 / 280)}
    )
    assert "not distinguishable from guessing" in sections.people_sentence(
        again, "texts"
    ) and "one other text is" in sections.people_sentence(again, "texts")
    member = People(
        "membership", "boosting", {"balanced_accuracy": Figure(0.7, 0.66, 0.74, 900, 0.5)}
    )
    assert (
        "70 times in 100 (between 66 and 74) where members and others are equally frequent; "
        "guessing is right 50 times." in sections.people_sentence(member)
    )
    for attack in ("re-identification", "membership"):
        assert "not measured" in sections.people_sentence(
            People(attack, "none", {"top_1": VOID, "balanced_accuracy": VOID})
        )


def test_undeclared_sentence_counts_what_is_readable() -> None:
    def read(*values: float) -> str:
        tried = tuple(
            example.reading(f"a{i}", "undeclared", {"network": v}, {}) for i, v in enumerate(values)
        )
        return sections.undeclared_sentence(replace(example.audit(), undeclared=tried))

    assert read(0.5, 0.51).startswith(
        "2 other attributes were tried, and none could be told from guessing by the small"
    )
    assert read(0.5, 0.7, 0.9).startswith(
        "Of 3 other attributes, 2 can be read beyond guessing: "
        "above all a2 (90 times in 100) and a1"
    )
    void = replace(example.unmeasured(), role="undeclared")
    assert "too few test records" in sections.undeclared_sentence(
        replace(example.audit(), undeclared=(void,))
    )


def test_one_attacker_is_not_called_the_best_of_one() -> None:
    alone = replace(example.BEARD, released=example.BEARD.released[:1], best=0)
    assert words.private_sentence(alone).startswith(
        "from one released record the only attacker is right 55 times"
    )


def test_what_raw_data_does_not_show_is_not_counted_as_hidden() -> None:
    never = example.reading("mood", "private", {"network": 0.5}, {"network": 0.505})
    assert "nothing was hidden" in words.private_sentence(never)


def test_useless_release_is_called_useless() -> None:
    useless = example.reading("smiling", "utility", {"network": 0.5}, {"network": 0.92})
    assert "not distinguishable from guessing (50)" in words.utility_sentence(useless)


def test_many_values_are_counted_in_more_tries() -> None:
    person = example.reading(
        "person", "private", {"network": 0.012}, {"network": 0.9}, tuple(map(str, range(300)))
    )
    assert "12 times in 1000" in words.private_sentence(person)
    assert words.score(person) == ("12", "in 1000, balanced")


def test_unmeasured_is_said_not_invented() -> None:
    assert "not measured" in words.private_sentence(example.unmeasured())
    assert words.score(example.unmeasured()) is None
    assert "no attacker was run" in words.private_sentence(replace(example.BEARD, released=()))
    assert (
        sections.rebuilt_sentence(Rebuilt("PSNR in dB", float("inf"), 3))
        == "PSNR in dB: not measured."
    )


def test_negative_variance_is_explained() -> None:
    assert "below 0" in sections.rebuilt_sentence(Rebuilt("share of variance explained", -0.2, 10))


def test_names_tell_compared_audits_apart() -> None:
    audits = [
        example.audit(),
        example.other("TIPRDC", 0.6, 0.8, budget=0.5),
        example.other("GAP", 0.6, 0.8),
    ]
    assert [words.called(a, audits) for a in audits] == [
        "TIPRDC budget 0.9",
        "TIPRDC budget 0.5",
        "GAP",
    ]
    seeds = [example.audit(seed=1), example.audit(seed=2)]
    assert [words.called(a, seeds) for a in seeds] == ["TIPRDC seed 1", "TIPRDC seed 2"]


def test_one_value_among_the_test_records_is_no_measurement() -> None:
    same = Figure(0.5, 0.0, 1.0, 300, 0.5, interval="the whole range")
    reading = replace(example.BEARD, released=(replace(example.BEARD.worst, score=same),), best=0)
    assert "not measured" in words.private_sentence(reading) and words.score(reading) is None
    gap = {"demographic_parity_difference": replace(same, value=0.0, chance=0.0)}
    assert sections.fairness_sentence(Fairness("smiling", "gender", gap, {})) == "not measured."
    assert measures.value(same) == "not measured" and measures.ends(same) == ""


def test_only_what_holds_for_most_figures_is_said_once() -> None:
    figures = {
        key: replace(example.figure(0.6), note=f"Of all. {note}".strip())
        for key, note in (("a", ""), ("b", "Of b. Here."), ("c", "Of c."))
    }
    shared, rest = measures.notes(figures)
    assert (shared, rest) == ("Of all.", {"a": "", "b": "Of b. Here.", "c": "Of c."})
    assert measures.notes({"a": figures["b"]}) == ("", {"a": "Of all. Of b. Here."})
