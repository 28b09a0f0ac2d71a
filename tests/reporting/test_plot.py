"""Drawings put each figure where its number says."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import example_audits as example
import pytest

from privet.evidence.figures import Figure
from privet.reporting import audit_plots
from privet.reporting.label_placement import Box, beside_point, place
from privet.reporting.plot import Axis, Plot, Point, round_numbers


def drawn(markup: str) -> ElementTree.Element:
    return ElementTree.fromstring(str(markup))


def shares(svg: ElementTree.Element, kind: str, attribute: str) -> list[float]:
    return [
        float(e.attrib[attribute].rstrip("%")) for e in svg.iter() if e.attrib.get("class") == kind
    ]


def test_gauge_is_ordered_like_its_figure() -> None:
    svg = drawn(
        audit_plots.gauge(
            Figure(0.61, 0.59, 0.63, 2000, 0.5), "private", Figure(0.97, 0.96, 0.98, 2000, 0.5)
        )
    )
    (chance,), (dot,), (ring,) = (
        shares(svg, "chance", "x1"),
        shares(svg, "dot", "cx"),
        shares(svg, "ring", "cx"),
    )
    low, high = min(shares(svg, "whisker", "x1")), max(shares(svg, "whisker", "x2"))
    assert 0 < chance < low < dot < high < ring < 100


@pytest.mark.parametrize("value", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("chance", [1.0, 0.5, 0.001])
def test_gauge_never_leaves_its_place(value: float, chance: float) -> None:
    svg = drawn(audit_plots.gauge(Figure(value, 0.0, 1.0, 1, chance), "utility"))
    for element in svg.iter():
        for name in ("x", "x1", "x2", "cx", "width"):
            if element.attrib.get(name, "").endswith("%"):
                assert 0 <= float(element.attrib[name].rstrip("%")) <= 100


def test_more_private_is_further_left_and_more_useful_further_up() -> None:
    audit = example.audit()
    shown = audit_plots.alternatives(audit, (), "beard", "smiling")
    svg = drawn(audit_plots.plane(audit.private[0], audit.utility[0], shown))
    spots = {
        e.attrib["class"].split()[1]: e.attrib
        for e in svg.iter("circle")
        if e.attrib["class"].startswith("point")
    }
    assert float(spots["release"]["cx"]) < float(spots["raw"]["cx"])
    assert float(spots["release"]["cy"]) > float(spots["raw"]["cy"]), (
        "the raw data serves the task better, so it is higher"
    )
    assert any(e.attrib.get("class") == "head" for e in svg.iter()), (
        "an arrow leads from one to the other"
    )
    said = "this release: beard: 61.1 (58.9 to 63.3), smiling: 88.3"
    assert said in svg.attrib["aria-label"]


@pytest.mark.parametrize("size", [(720, 430), (360, 370)])
def test_everything_drawn_is_inside_the_picture(size: tuple[int, int]) -> None:
    others = [example.other("GAP", x / 10, y / 10) for x in (3, 5, 10) for y in (1, 5, 10)]
    audit = example.audit()
    shown = audit_plots.alternatives(audit, others, "beard", "smiling")
    svg = drawn(audit_plots.plane(audit.private[0], audit.utility[0], shown, *size))
    for element in svg.iter():
        for name, end in (
            ("x", size[0]),
            ("x1", size[0]),
            ("x2", size[0]),
            ("cx", size[0]),
            ("cy", size[1]),
            ("y1", size[1]),
        ):
            assert 0 <= float(element.attrib.get(name, 0)) <= end


def test_no_picture_without_a_measured_release() -> None:
    assert [
        p.kind
        for p in audit_plots.alternatives(
            example.audit((example.unmeasured(), example.SMILING)), (), "beard", "smiling"
        )
    ] == []


def test_names_keep_off_each_other() -> None:
    spots = [(100.0 + 30 * i, 100.0 + 7 * (i % 3), f"name {i}") for i in range(6)]
    names = [beside_point(text, x, y, 13) for x, y, text in spots]
    places = place(names, [], Box(0, 0, 400, 200), 13)
    boxes = [at.box(name.text, 13) for name, at in zip(names, places, strict=True)]
    assert all(a.overlap(b) == 0 for i, a in enumerate(boxes) for b in boxes[:i])


def texts(svg: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [e for e in svg.iter("text") if e.attrib["class"].split()[:1] == [kind]]


def test_a_name_keeps_off_the_line_it_would_lie_in() -> None:
    plot = Plot(Axis(0, 1), Axis(0, 1))
    plot.level("chance", y=0.5)
    plot.name(0.5, 0.49, "below")
    plot.name(0.5, 0.51, "above")
    svg = drawn(plot.svg("two names"))
    level = float(next(e for e in svg.iter("line")).attrib["y1"])
    bases = [float(e.attrib["y"]) for e in texts(svg, "name")]
    assert len(bases) == 2
    for base in bases:
        assert base + 3 < level or base - 11 > level


def test_numbers_of_an_axis_never_touch() -> None:
    ticks = [1, 1.1, 1.2, 5, 9.9, 10]
    plot = Plot(Axis(1, 10, ticks=ticks), Axis(0, 1), 300, 200)
    plot.axes()
    found = texts(drawn(plot.svg("x")), "tick")
    places = sorted(float(e.attrib["x"]) for e in found if e.attrib["text-anchor"] == "middle")
    assert len(places) == 3 and min(b - a for a, b in pairwise(places)) > 20


def test_a_hollow_point_is_no_part_of_the_line() -> None:
    plot = Plot(Axis(0, 2), Axis(0, 1))
    plot.line([Point(0, 1, hollow=True), Point(1, 0.5), Point(2, 0.4, "<last>", 0.3, 0.5)], "s0")
    svg = drawn(plot.svg("a line"))
    (path,) = [e.attrib["d"] for e in svg.iter("path")]
    assert path.count("L") == 1 and len(shares(svg, "ring", "cx")) == 1
    assert len(shares(svg, "dot", "cx")) == 2 and len(shares(svg, "whisker", "x1")) == 1
    assert [e.text for e in svg.iter("title")] == ["<last>"], "escaped, and read back as it was"


def test_numbers_of_an_axis_are_round() -> None:
    assert round_numbers(0, 0.0123, 5) == [0.0, 0.005, 0.01]
