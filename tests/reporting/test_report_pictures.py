"""Drawings put each figure where its number says."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import example_audits as example
import pytest

from privet.evidence.figures import Figure
from privet.reporting import pictures
from privet.reporting.label_placement import Box, place


def drawn(markup: str) -> ElementTree.Element:
    return ElementTree.fromstring(str(markup))


def shares(svg: ElementTree.Element, kind: str, attribute: str) -> list[float]:
    return [
        float(e.attrib[attribute].rstrip("%")) for e in svg.iter() if e.attrib.get("class") == kind
    ]


def test_gauge_is_ordered_like_its_figure() -> None:
    svg = drawn(
        pictures.gauge(
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
    svg = drawn(pictures.gauge(Figure(value, 0.0, 1.0, 1, chance), "utility"))
    for element in svg.iter():
        for name in ("x", "x1", "x2", "cx", "width"):
            if element.attrib.get(name, "").endswith("%"):
                assert 0 <= float(element.attrib[name].rstrip("%")) <= 100


def test_more_private_is_further_right_and_more_useful_further_up() -> None:
    audit = example.audit()
    shown = pictures.points(audit, (), "beard", "smiling")
    svg = drawn(pictures.plane(audit.private[0], audit.utility[0], shown))
    spots = {
        e.attrib["class"].split()[1]: e.attrib
        for e in svg.iter("circle")
        if e.attrib["class"].startswith("point")
    }
    assert float(spots["release"]["cx"]) > float(spots["raw"]["cx"])
    assert float(spots["release"]["cy"]) > float(spots["raw"]["cy"]), (
        "the raw data serves the task better, so it is higher"
    )
    assert any(e.attrib.get("class") == "head" for e in svg.iter()), (
        "an arrow leads from one to the other"
    )
    assert re.search(
        r"this release: worst attacker on beard right 61 times", svg.attrib["aria-label"]
    )


@pytest.mark.parametrize("size", [(720, 430), (360, 370)])
def test_everything_drawn_is_inside_the_picture(size: tuple[int, int]) -> None:
    others = [example.other("GAP", x / 10, y / 10) for x in (3, 5, 10) for y in (1, 5, 10)]
    audit = example.audit()
    shown = pictures.points(audit, others, "beard", "smiling")
    svg = drawn(pictures.plane(audit.private[0], audit.utility[0], shown, *size))
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
        for p in pictures.points(
            example.audit((example.unmeasured(), example.SMILING)), (), "beard", "smiling"
        )
    ] == []


def test_names_keep_off_each_other() -> None:
    points = [(100.0 + 30 * i, 100.0 + 7 * (i % 3), f"name {i}") for i in range(6)]
    labels = place(points, [], Box(0, 0, 400, 200), 13, 10)
    boxes = []
    for label in labels:
        wide = 7 * len(label.text)
        left = label.x - {"start": 0, "middle": wide / 2, "end": wide}[label.anchor]
        boxes.append(Box(left, label.y - 9, left + wide, label.y))
    assert all(a.overlap(b) == 0 for i, a in enumerate(boxes) for b in boxes[:i])
