"""Plots of groups and of risk put each figure where its number says."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import example_audits as example
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.evidence.figures import Figure, Group, Risk
from privet.reporting import audit_plots as plots

SHARES = st.floats(0, 1)
unhurried = settings(deadline=None)  # a busy machine is no failure


def numbers(svg: ElementTree.Element, kind: str, attribute: str) -> list[float]:
    return [
        float(e.attrib[attribute].rstrip("%"))
        for e in svg.iter()
        if e.attrib.get("class", "").split()[:1] == [kind]
    ]


@unhurried
@given(
    st.lists(st.tuples(SHARES, SHARES, SHARES).map(sorted), min_size=1, max_size=5),
    st.sampled_from([0.5, 0.1, 0.0]),
)
def test_a_scale_holds_all_it_was_made_for(ends: list[list[float]], chance: float) -> None:
    figures = [Figure(value, low, high, 100, chance) for low, value, high in ends]
    axis = plots.group_axis(figures)
    assert axis.low < axis.high and len(axis.written(5)) >= 2
    for figure in figures:
        assert (
            axis.low <= figure.low + 1e-6 and figure.high <= axis.high + 1e-6 and axis.low <= chance
        )
        svg = ElementTree.fromstring(str(plots.group_row(figure, axis, figures[0])))
        (dot,), (overall,) = numbers(svg, "dot", "cx"), numbers(svg, "overall", "x1")
        low, high = min(numbers(svg, "whisker", "x1")), max(numbers(svg, "whisker", "x2"))
        place = round(3 + 94 * axis.share(figures[0].value), 2)
        assert 0 <= low <= dot <= high <= 100 and overall == place


def test_a_better_read_group_is_further_right() -> None:
    axis = plots.group_axis([example.figure(0.5), example.figure(0.9)])
    spots = [axis.share(v) for v in (0.5, 0.6, 0.7, 0.9)]
    assert spots == sorted(spots) and len(set(spots)) == 4


def test_nothing_is_drawn_of_what_was_not_measured() -> None:
    void = Figure(example.NAN, 0.0, 1.0, 0, 0.5)
    svg = str(plots.group_row(void, plots.group_axis([void]), void))
    assert "dot" not in svg and "whisker" not in svg and "overall" not in svg and "nan" not in svg


def test_groups_differ_only_where_their_intervals_part() -> None:
    near = [Group("g", "a", example.figure(0.60, 100)), Group("g", "b", example.figure(0.65, 100))]
    far = [
        *near,
        Group("g", "c", example.figure(0.95, 100)),
        Group("g", "d", Figure(example.NAN, 0, 1, 0, 0.5)),
    ]
    assert plots.widest(near) is None and plots.widest([]) is None
    apart = plots.widest(far)
    assert apart is not None and [g.value for g in apart] == ["a", "c"]


@unhurried
@given(st.lists(st.integers(0, 1000), min_size=10, max_size=10))
def test_bars_are_as_tall_as_their_counts(counts: list[int]) -> None:
    risk = Risk(tuple(i / 10 for i in range(11)), tuple(counts), example.figure(0.1, 100, 0.0))
    drawn = str(plots.risk_histogram(risk))
    if not sum(counts):
        assert drawn == ""
        return
    svg = ElementTree.fromstring(drawn)
    heights = numbers(svg, "bin", "height")
    assert len(heights) == 10 and all(
        abs(h - 130 * c / max(counts)) < 0.06 for h, c in zip(heights, counts, strict=True)
    )
    lefts, widths = numbers(svg, "bin", "x"), numbers(svg, "bin", "width")
    assert (
        lefts == sorted(lefts)
        and min(lefts) >= 0
        and max(x + w for x, w in zip(lefts, widths, strict=True)) <= 100
    )
    assert f"{counts[0]:,})" in svg.attrib["aria-label"]


def test_odd_bins_do_not_break_the_histogram() -> None:
    assert plots.risk_histogram(Risk((), (), example.figure(0.1))) == ""
    uneven = Risk((0.0, 0.9, 1.0), (3, 1, 7), example.figure(0.1))
    assert str(plots.risk_histogram(uneven)).count('class="bin') == 2
    assert 'class="bin sure"' in str(plots.risk_histogram(replace(uneven, counts=(3, 1))))
