"""Certificates, comparisons, language models and private words: the first screen of each page
answers the five people that its template names."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import example_pages
import pytest

from privet.reporting.page import render_certificate


def first_screen(page: str) -> str:
    """The words from the title to the end of the first section with a verdict, without what is
    drawn."""
    start = page.index("<h1>")
    end = page.index("</section>", page.index('class="first"'))
    part = re.sub(r"<svg.*?</svg>", " ", page[start:end], flags=re.S)
    words = html.unescape(re.sub(r"<[^>]+>", " ", part)).replace("\u00a0", " ")
    return " ".join(words.split())


CERTIFICATE = [
    # How well can anybody guess this of me?
    r"balanced accuracy above 64\.5 % on average over people; guessing blindly has 50\.0 %",
    # Is that enough?
    r"beard … not proved beard is not certified at the goal: the bound of 64\.5 %",
    # Of what adversary, how sure?
    r"who sees one release of one record and knows nothing else about the person.*99 % confidence",
    # Does that hold for me too?
    r"hair = red, the worst certified group.*73\.1 %",
    # Who says so?
    r"claimed by whoever ran this certification, checked by nobody else",
]
FRONTIER = [
    # Which release do I take?
    r"Of these, Hedge budget 0\.58 is the most useful",
    # Is any of them enough?
    r"✓ held beard is held by 2 of 4 releases",
    # What does that cost me?
    r"most useful for smiling: 81\.5 % \(78\.5 to 84\.5\)",
    # Against which goal, on whom?
    r"people nobody learned from.*goal of at most 58\.6 %.*Nobody stated a goal",
    # Is anything missing?
    r"9 of 11 cells are done, 1 failed, 1 not reached yet",
]
LANGUAGE = [
    # Which model do I hand out?
    r"triplet:1 remembers less than plain at about the same perplexity",
    # Does it remember what I wrote?
    r"never planted, whose exposure is 1\.44 bits.*none \S+ readable 9\.0 \(8\.0",
    # Does it still predict?
    r"Lower is better in every column.*Predicts: perplexity",
    # What leaves?
    r"What leaves is the model itself",
    # Does it serve me too?
    r"Worst group: perplexity above the mean",
]
WORDS = [
    # Can they tell who I am from this?
    r"✓ held At epsilon 1, sex is held: 48\.0 to 52\.0 % balanced accuracy",
    # Which epsilon do I take?
    r"! at risk At epsilon 40, sex is at risk",
    # Against which goal?
    r"goal is at most 56 %.*Nobody stated a goal",
    # Is the text still of use?
    r"Tasks still possible, higher is better Epsilon 1: topic 30\.0 %",
    # Does epsilon promise that?
    r"Epsilon itself promises nothing about an attribute",
]


@pytest.mark.parametrize(
    ("page", "answers"),
    [
        (example_pages.PAGES["certificate"], CERTIFICATE),
        (example_pages.frontier, FRONTIER),
        (example_pages.language, LANGUAGE),
        (example_pages.words_attacked, WORDS),
    ],
    ids=["certificate", "frontier", "language", "words"],
)
def test_five_people_find_their_answer(page: Callable[[], str], answers: list[str]) -> None:
    said = first_screen(page())
    for answer in answers:
        assert re.search(answer, said), f"{answer} is not in: {said}"


def test_a_certificate_without_a_goal_gets_no_word() -> None:
    page = first_screen(render_certificate(example_pages.certification(None)))
    assert "held" not in page and "not proved" not in page
    met = first_screen(render_certificate(example_pages.certification(0.65)))
    assert "✓ held beard is held: the certified bound of 64.5 %" in met
