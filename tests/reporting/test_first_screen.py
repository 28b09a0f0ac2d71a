"""The first screen of a report answers five people in ten seconds; the template names them."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import example_audits as example
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.evidence.figures import Audit, Figure
from privet.evidence.what_leaves import WhatLeaves
from privet.reporting.figure_axis import WIDEST, Scale, figure_axis, marks, name_spots
from privet.reporting.first_screen import SIGNS, leaves_sentence, questions
from privet.reporting.page import render


def first_screen(audit: Audit) -> str:
    """The words of the page up to the second heading below the verdict, without what is drawn."""
    page = render(audit)
    part = page[page.index("<h1>") : page.index('<h2 id="sharing">')]
    part = re.sub(r"<svg.*?</svg>", " ", part, flags=re.S)
    words = html.unescape(re.sub(r"<[^>]+>", " ", part)).replace("\u00a0", " ")
    return " ".join(words.split())


@pytest.mark.parametrize(
    "asked",
    [
        # A participant: what leaves my phone?
        r"What leaves\. Of each picture, a list of numbers in place of the picture",
        # A data protection officer: may this be shared?
        r"beard ! at risk",
        # An engineer: against which goal, and how far from it?
        r"58\.\d to 63\.\d % balanced accuracy, and that may be more than the goal of at most"
        r" 59\.4 %.*Nobody stated a goal",
        # A researcher: is it still of use?
        r"Still useful for smiling: 91 % of what raw pictures give beyond guessing is kept",
        # Somebody of a minority: does that hold for me too?
        r"Most readable group: gender = male",
    ],
)
def test_five_people_find_their_answer(asked: str) -> None:
    assert re.search(asked, first_screen(example.full()))


def test_a_word_is_never_told_by_colour_alone() -> None:
    for word, sign in SIGNS.items():
        assert word and sign
    assert len(set(SIGNS.values())) == len(SIGNS)


def test_which_way_is_better_is_said_on_every_axis() -> None:
    page = render(example.audit())
    assert page.count("lower is better") >= 2 and page.count("higher is better") >= 2


def test_no_group_that_was_not_looked_at_is_kept_quiet() -> None:
    assert "No groups of people were looked at." in first_screen(example.audit())


def test_what_leaves_names_columns_and_ties() -> None:
    leaves = WhatLeaves(kept=("job",), asked=("hat",), records=None, linked_by=("person",))
    said = leaves_sentence(replace(example.audit(), leaves=leaves))
    assert "with job and hat beside it" in said and "by a pseudonym" in said


def test_what_was_not_measured_is_called_that() -> None:
    asked = {one.title: one.answers for one in questions(example.bare())}
    assert asked["Singling out"] == asked["Linking"] == ["Not measured in this audit."]
    assert "beard" in asked["Inferring"][0]
    full = {one.title: one.answers for one in questions(example.full())}
    assert "Of 280 people" in full["Singling out"][0]


SHARES = st.floats(0.0, 1.0)


@given(st.tuples(SHARES, SHARES, SHARES).map(sorted), SHARES, SHARES, SHARES, st.booleans())
def test_no_name_covers_another_or_leaves_the_axis(
    ends: list[float], raw: float, goal: float, bound: float, is_small: bool
) -> None:
    width = 330 if is_small else 640
    low, value, high = ends
    scale = Scale(
        Figure(value, low, high, 900, 0.5), 0.5, Figure(raw, raw, raw, 900, 0.5), goal, bound
    )
    texts = [mark.text for mark in marks(scale, is_small)]
    spots = name_spots([(mark.at * width, mark.text) for mark in marks(scale, is_small)], width, 13)
    for at, (spot, text) in enumerate(zip(spots, texts, strict=True)):
        assert spot.left >= 0 and spot.right <= width + 1e-6
        assert spot.right - spot.left >= WIDEST * 13 * len(text) - 1e-6
        for other in spots[:at]:
            assert spot.row != other.row or spot.left >= other.right or other.left >= spot.right
    drawn = figure_axis(scale, width)
    assert all(f">{html.escape(text)}<" in drawn for text in texts)


def test_marks_stand_in_the_order_of_their_values() -> None:
    scale = Scale(Figure(0.57, 0.55, 0.6, 900, 0.5), 0.5, Figure(0.9, 0.88, 0.92, 900, 0.5), 0.62)
    drawn = figure_axis(scale)
    at = {
        name: float(x)
        for x, name in re.findall(r'class="name (?:\w+)" x="([\d.]+)".*?>(\w+)', drawn)
    }
    assert at["guessing"] < at["goal"] < at["raw"]
