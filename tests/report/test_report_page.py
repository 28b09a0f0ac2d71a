"""The page as a browser gets it: whole, closed to the network, escaped, and saying what the figures say."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import example_audits as example
import pytest

from privet.evidence.figures import Audit, Rebuilt
from privet.report import render, words

VOID = {"meta", "img", "br", "link", "col", "input", "hr"}
NASTY = "<script>alert('x')</script> & \"quoted\""


class Page(HTMLParser):
    """What is on a page: tags opened and closed in order, attributes, and the text people read."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) == len(dict(attrs)), f"an attribute twice in {tag}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts)).replace(" :", ":").replace(" ,", ",")

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


MANY = tuple(f"person {i}" for i in range(300))

CASES: dict[str, Audit] = {
    "usual": example.audit(rebuilt=example.pictures(2)),
    "texts": example.audit(rebuilt=example.texts()),
    "no utility": example.audit((example.BEARD,)),
    "no private": example.audit((example.SMILING,)),
    "nothing": example.audit(()),
    "several": example.audit(
        tuple(example.reading(f"private {i}", "private", {"network": 0.6}, {"network": 0.9}) for i in range(5))
        + tuple(example.reading(f"task {i}", "utility", {"network": 0.8}, {"network": 0.9}) for i in range(2))
    ),
    "no raw": example.audit((replace(example.BEARD, raw=()), replace(example.SMILING, raw=()))),
    "no released": example.audit((replace(example.BEARD, released=()), example.SMILING)),
    "many classes": example.audit((example.reading("person", "private", {"network": 0.012}, {"network": 0.9}, MANY), example.SMILING)),
    "one record": example.audit((example.reading("beard", "private", {"network": 1.0}, {"network": 0.0}, n=1), example.SMILING)),
    "not measured": example.audit((example.unmeasured(), example.SMILING), rebuilt=Rebuilt("PSNR in dB", example.NAN, 0)),
    "not measured, no task": example.audit((example.unmeasured(),)),
    "bare": Audit({}, {}, "quick", (example.BEARD,), None, (), 0.0),
    "odd card": replace(
        example.audit(in_game={"beard": None, "age": {"n": 3}, "gone": {"accuracy": 0.5}}, settings=None, private="beard", seed=0),
        data={"parts": {"fit": {"records": 5}, "test": {"records": 5, "people": None}}, "fingerprint": ""},
        seconds=example.NAN,
    ),
}


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Audit:
    return CASES[request.param]


def test_page_is_whole_and_says_no_nonsense(case: Audit) -> None:
    html = render(case)
    page = Page(html)
    assert not re.search(r"\b(nan|inf|None|undefined)\b", page.text), "a missing number is called missing"
    for _, attrs in page.tags:
        assert not any(re.search(r"\bnan\b", value or "") for value in attrs.values())
    for reading in case.readings:
        assert f"{reading.attribute}: {words.sentence(reading, words.records(case))}" in page.text
    identifiers = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(identifiers) == len(set(identifiers))
    assert all(attrs.get("aria-labelledby") in identifiers for attrs in page.all("section"))


def test_page_reaches_nothing_outside_itself(case: Audit) -> None:
    html = render(case)
    page = Page(html)
    policy = next(attrs["content"] for attrs in page.all("meta") if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none'") and "script-src" not in policy
    assert not page.all("script") and not page.all("link") and not page.all("iframe") and not page.all("a")
    assert all((attrs["src"] or "").startswith("data:image/png;base64,") for attrs in page.all("img"))
    assert not re.search(r"https?://|url\(|@import|javascript:", html)
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)


def test_page_can_be_read_without_seeing_it(case: Audit) -> None:
    page = Page(render(case))
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == len(page.all("main")) == 1
    assert all(attrs.get("scope") for attrs in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(attrs.get("alt") for attrs in page.all("img"))
    for attrs in page.all("svg"):
        decorative = attrs.get("aria-hidden") == "true"
        assert decorative or (attrs.get("role") == "img" and attrs.get("aria-label")) or not attrs.get("class")


def test_every_word_from_outside_is_escaped() -> None:
    nasty = example.audit(
        (
            replace(example.reading(NASTY, "private", {NASTY: 0.6}, {NASTY: 0.9}), values=(NASTY, "b")),
            example.reading(NASTY + "task", "utility", {NASTY: 0.8}, {NASTY: 0.9}),
        ),
        rebuilt=Rebuilt(NASTY, 0.5, 10, (NASTY, 'iVBORw0KGgo" onerror="x'), (NASTY, NASTY)),
        method=NASTY,
        settings={NASTY: NASTY},
        command=NASTY,
        sha256=NASTY,
        seed=NASTY,
        in_game={NASTY: {"balanced": 0.5, "n": NASTY, "part": NASTY}},
    )
    data = {"name": NASTY, "modality": NASTY, "fingerprint": NASTY, "parts": {NASTY: {"records": NASTY, "people": NASTY}}}
    nasty = replace(nasty, battery=NASTY, limits=(NASTY,), data=data)
    for html in (render(nasty), render(nasty, [nasty, example.audit()]), render(replace(nasty, readings=nasty.private))):
        page = Page(html)
        assert not page.all("script") and not page.all("img")
        assert "alert('x')</script>" not in html
        assert page.text.count(NASTY) > 15


def test_sentences_of_the_page_agree_with_the_figures() -> None:
    text = Page(render(CASES["usual"])).text
    assert "beard: the best of 3 attackers is right 61 times in 100 (between 58 and 64); guessing is right 50 times;" in text
    assert "on the raw pictures the best is right 97 times." in text
    assert "smiling: a model trained on the release is right 88 times in 100 (between 86 and 90); on raw data 92;" in text
    assert "the method's own adversary is right 52 times in 100, the strongest one trained afterwards 61 times." in text
    assert "privet learn tiprdc --data portraits" in text and "4 min 12 s" in text


def test_every_finding_has_a_row_and_the_chosen_ones_are_marked() -> None:
    page = Page(render(CASES["usual"]))
    for reading in CASES["usual"].readings:
        for finding in (*reading.released, *reading.raw):
            assert words.percent(finding.balanced.value) in page.text
            assert words.between(finding.accuracy) in page.text
            assert words.percent(finding.accuracy.chance) in page.text
    assert sum(text.strip() in ("strongest", "best") for text in page.texts) == 4, "released and raw, for each of two attributes"


def test_every_limit_and_part_is_named() -> None:
    audit = CASES["usual"]
    text = Page(render(audit)).text
    assert all(limit in text for limit in audit.limits)
    assert all(part in text for part in audit.data["parts"])
    assert "No limits were recorded" in Page(render(replace(audit, limits=()))).text


def test_rebuilt_records_come_in_pairs_with_a_warning() -> None:
    page = Page(render(example.audit(rebuilt=example.pictures(3))))
    assert len(page.all("img")) == 6
    assert "real records" in page.text
    uneven = Rebuilt("PSNR in dB", 14.0, 9, example.pictures(3).originals, example.pictures(3).rebuilt[:2])
    assert len(Page(render(example.audit(rebuilt=uneven))).all("img")) == 4
    words_only = Page(render(example.audit(rebuilt=example.texts())))
    assert not words_only.all("img") and "My sister <b>runs</b> the bakery" in words_only.text
    assert "decoder" not in Page(render(example.audit())).text


def test_in_game_section_only_where_something_was_kept() -> None:
    assert "inside the method" in Page(render(example.audit())).text
    for empty in ({}, None, {"beard": {}}):
        assert "inside the method" not in Page(render(example.audit(in_game=empty))).text


def test_data_the_release_was_not_learned_on_is_named() -> None:
    same = example.audit(data={"name": "portraits", "fingerprint": "ab12" * 16})
    assert "neither the release nor the attackers had seen" in Page(render(same)).text
    other = example.audit(data={"name": "faces", "fingerprint": "cd34" * 16})
    text = Page(render(other)).text
    assert "learned on other data (faces)" in text and "neither the release" not in text


def test_compared_audits_join_the_picture_and_its_table() -> None:
    others = [example.other("TIPRDC", 0.55, 0.80, budget=0.99), example.other("GAP", 0.64, 0.86)]
    unrelated = example.audit((example.reading("age", "private", {"network": 0.6}, {}),), method="Elsewhere")
    page = Page(render(example.audit(), [*others, unrelated]))
    assert "TIPRDC budget 0.99" in page.text and "TIPRDC budget 0.9 " in page.text and "GAP" in page.text
    assert "Elsewhere" not in page.text
    assert "this report" in page.text


def test_page_stays_small() -> None:
    assert len(render(example.audit())) < 60_000
    assert len(render(CASES["several"])) < 150_000
