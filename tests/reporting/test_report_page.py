"""The page as a browser gets it: whole, closed to the network, escaped, and saying what the figures
say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import is_dataclass, replace
from html.parser import HTMLParser

import example_audits as example
import pytest

from privet.evidence import formatting as numbers
from privet.evidence.figures import Audit, Fairness, Figure, Group, People, Rebuilt, Risk
from privet.reporting import measures
from privet.reporting import sentences as words
from privet.reporting.page import render

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
    "usual": example.audit(rebuilt=(example.pictures(2),)),
    "texts": example.audit(rebuilt=(example.texts(),)),
    "no utility": example.audit((example.BEARD,)),
    "no private": example.audit((example.SMILING,)),
    "nothing": example.audit(()),
    "several": example.audit(
        tuple(
            example.reading(f"private {i}", "private", {"network": 0.6}, {"network": 0.9})
            for i in range(5)
        )
        + tuple(
            example.reading(f"task {i}", "utility", {"network": 0.8}, {"network": 0.9})
            for i in range(2)
        )
    ),
    "no raw": example.audit((replace(example.BEARD, raw=()), replace(example.SMILING, raw=()))),
    "no released": example.audit((replace(example.BEARD, released=()), example.SMILING)),
    "many classes": example.audit(
        (
            example.reading("person", "private", {"network": 0.012}, {"network": 0.9}, MANY),
            example.SMILING,
        )
    ),
    "one record": example.audit(
        (
            example.reading("beard", "private", {"network": 1.0}, {"network": 0.0}, n=1),
            example.SMILING,
        )
    ),
    "not measured": example.audit(
        (example.unmeasured(), example.SMILING), rebuilt=(Rebuilt("PSNR in dB", example.NAN, 0),)
    ),
    "not measured, no task": example.audit((example.unmeasured(),)),
    "empty card": Audit({}, {}, "quick", (example.BEARD,), (), 0.0),
    "bare vectors": example.bare(),
    "full": example.full(),
    "numbers": example.audit((example.AGE, example.INCOME)),
    "a number and a task": example.audit((example.AGE, example.SMILING)),
    "a number alone": example.audit((example.BEARD, example.AGE)),
    "numbers below guessing": example.audit(
        (replace(example.AGE, released=(example.guessed("ridge", -0.2),), best=0), example.INCOME)
    ),
    "nothing counted": example.nothing_counted(),
    "read back": Audit.from_json(example.full().to_json()),
    "odd card": replace(
        example.audit(
            in_game={"beard": None, "age": {"n": 3}, "gone": {"accuracy": 0.5}},
            settings=None,
            private="beard",
            seed=0,
        ),
        data={
            "parts": {"fit": {"records": 5}, "test": {"records": 5, "people": None}},
            "fingerprint": "",
        },
        seconds=example.NAN,
    ),
}


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Audit:
    return CASES[request.param]


def test_page_is_whole_and_says_no_nonsense(case: Audit) -> None:
    html = render(case)
    page = Page(html)
    assert not re.search(r"\b(nan|inf|None|undefined)\b", page.text), (
        "a missing number is called missing"
    )
    for _, attrs in page.tags:
        assert not any(re.search(r"\bnan\b", value or "") for value in attrs.values())
    for reading in case.readings:
        noun = words.records(case)
        first, beside = words.sentence(reading, noun), ""
        if reading.role == "private":
            first, beside = words.told(reading, noun)
        assert f"{reading.attribute}: {first}" in page.text and beside in page.text
    identifiers = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(identifiers) == len(set(identifiers))
    assert all(attrs.get("aria-labelledby") in identifiers for attrs in page.all("section"))


def test_page_reaches_nothing_outside_itself(case: Audit) -> None:
    html = render(case)
    page = Page(html)
    policy = next(
        attrs["content"]
        for attrs in page.all("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert (
        policy is not None
        and policy.startswith("default-src 'none'")
        and "script-src" not in policy
    )
    assert (
        not page.all("script")
        and not page.all("link")
        and not page.all("iframe")
        and not page.all("a")
    )
    assert all(
        (attrs["src"] or "").startswith("data:image/png;base64,") for attrs in page.all("img")
    )
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
        assert (
            decorative
            or (attrs.get("role") in ("img", "group") and attrs.get("aria-label"))
            or not attrs.get("class")
        )


def spoiled(audit: Audit) -> Audit:
    """The same with a nasty word wherever a later section takes one from outside."""
    figure = replace(example.figure(0.6), measure=NASTY, note=NASTY, unit=NASTY, interval=NASTY)
    other = replace(example.finding(NASTY, 0.9, "averaged"), title=NASTY)
    groups = (
        Group(NASTY, NASTY, example.figure(0.6)),
        Group(NASTY, NASTY + "2", example.figure(0.9)),
    )
    risk = Risk((0.0, 0.5, 1.0), (4, 6), figure)
    more = {
        "baselines": {f"task {NASTY}": figure},
        "evidence": {NASTY: figure},
        "groups": groups,
        "risk": risk,
        "others": (other,),
    }
    return replace(
        audit,
        readings=tuple(replace(r, **more) for r in audit.readings),
        rebuilt=tuple(replace(r, decoder=NASTY, figures={NASTY: figure}) for r in audit.rebuilt),
        undeclared=(
            replace(example.reading(NASTY + "u", "undeclared", {NASTY: 0.9}, {NASTY: 0.9})),
        ),
        people=(People("membership", NASTY, {NASTY: figure}, {NASTY: figure}, NASTY),),
        fairness=(Fairness(NASTY, NASTY, {NASTY: figure}, {NASTY: figure}, groups),),
        information={NASTY: figure},
    )


def test_every_word_from_outside_is_escaped() -> None:
    nasty = example.audit(
        (
            replace(
                example.reading(NASTY, "private", {NASTY: 0.6}, {NASTY: 0.9}), values=(NASTY, "b")
            ),
            example.reading(NASTY + "task", "utility", {NASTY: 0.8}, {NASTY: 0.9}),
        ),
        rebuilt=(Rebuilt(NASTY, 0.5, 10, (NASTY, 'iVBORw0KGgo" onerror="x'), (NASTY, NASTY)),),
        method=NASTY,
        settings={NASTY: NASTY},
        command=NASTY,
        sha256=NASTY,
        seed=NASTY,
        in_game={NASTY: {"balanced": 0.5, "n": NASTY, "part": NASTY}},
    )
    nasty = spoiled(nasty)
    data = {
        "name": NASTY,
        "modality": NASTY,
        "fingerprint": NASTY,
        "parts": {NASTY: {"records": NASTY, "people": NASTY}},
    }
    nasty = replace(nasty, battery=NASTY, limits=(NASTY,), data=data)
    for html in (
        render(nasty),
        render(nasty, [nasty, example.audit()]),
        render(replace(nasty, readings=nasty.private)),
    ):
        page = Page(html)
        assert not page.all("script") and not page.all("img")
        assert "alert('x')</script>" not in html
        assert page.text.count(NASTY) > 40


def test_sentences_of_the_page_agree_with_the_figures() -> None:
    text = Page(render(CASES["usual"])).text
    assert (
        "beard: from one released picture the best of 3 attackers is right 61 times in 100 "
        "(between 58 and 64) where both values are equally frequent; guessing is right 50 times."
        in text
    )
    assert "On the raw pictures the best is right 97 times." in text
    assert (
        "smiling: a model trained on the release is right 88 times in 100 (between 86 and 90) "
        "where both values are equally frequent; guessing is right 50 times. On the raw data it is "
        "right 92 times." in text
    )
    assert (
        "the method's own adversary is right 52 times in 100, "
        "the strongest one trained afterwards 61 times (balanced accuracy)." in text
    )
    assert "privet learn tiprdc --data portraits" in text and "4 min 12 s" in text


def test_every_finding_has_a_row_and_the_chosen_ones_are_marked() -> None:
    page = Page(render(CASES["usual"]))
    for reading in CASES["usual"].readings:
        for finding in (*reading.released, *reading.raw):
            assert numbers.percent(finding.score.value) in page.text
            assert numbers.between(finding.plain) in page.text
            assert numbers.percent(finding.plain.chance) in page.text
    assert sum(text.strip() in ("strongest", "best") for text in page.texts) == 4, (
        "released and raw, for each of two attributes"
    )


def test_every_limit_and_part_is_named() -> None:
    audit = CASES["usual"]
    text = Page(render(audit)).text
    assert all(limit in text for limit in audit.limits)
    assert all(part in text for part in audit.data["parts"])
    assert "No limits were recorded" in Page(render(replace(audit, limits=()))).text


@pytest.mark.parametrize(
    "told",
    [
        {"weights": "9f2c4e" + 58 * "0", "graph": 64 * "1"},
        {"graph": "9f2c4e" + 58 * "0"},
        "9f2c4e" + 58 * "0",
    ],
)
def test_the_release_is_named_by_its_hash(told: object) -> None:
    assert "Release 9f2c4e000000 SHA-256" in Page(render(example.audit(sha256=told))).text


def test_rebuilt_records_come_in_pairs_with_a_warning() -> None:
    page = Page(render(example.audit(rebuilt=(example.pictures(3),))))
    assert len(page.all("img")) == 6
    assert "real records" in page.text
    uneven = Rebuilt(
        "PSNR in dB", 14.0, 9, example.pictures(3).originals, example.pictures(3).rebuilt[:2]
    )
    assert len(Page(render(example.audit(rebuilt=(uneven,)))).all("img")) == 4
    words_only = Page(render(example.audit(rebuilt=(example.texts(),))))
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
    unrelated = example.audit(
        (example.reading("age", "private", {"network": 0.6}, {}),), method="Elsewhere"
    )
    page = Page(render(example.audit(), [*others, unrelated]))
    assert (
        "TIPRDC budget 0.99" in page.text
        and "TIPRDC budget 0.9 " in page.text
        and "GAP" in page.text
    )
    assert "Elsewhere" not in page.text
    assert "this report" in page.text


SECTIONS = [
    "certified",
    "rebuilt",
    "people",
    "undeclared",
    "everyone",
    "fairness",
    "information",
    "limits",
]


def sections_of(page: Page) -> set[str | None]:
    return {attrs.get("aria-labelledby") for attrs in page.all("section")}


def test_a_section_stands_only_where_there_is_something() -> None:
    full = CASES["full"]
    assert sections_of(Page(render(full))) >= set(SECTIONS)
    for name in ("rebuilt", "people", "undeclared", "fairness"):
        assert name not in sections_of(Page(render(replace(full, **{name: ()}))))
    assert "information" not in sections_of(Page(render(replace(full, information={}))))
    plain = Page(render(example.audit()))
    assert not plain.all("details") and not sections_of(plain) & {
        "rebuilt",
        "people",
        "undeclared",
        "fairness",
        "information",
    }
    for heading in ("Other ways", "Group by group", "Record by record", "More about"):
        assert heading in Page(render(full)).text and heading not in plain.text


def figures(value: object) -> list[Figure]:
    """Every figure inside a value."""
    if isinstance(value, Figure):
        return [value]
    inner = (
        vars(value).values()
        if is_dataclass(value)
        else value.values()
        if isinstance(value, dict)
        else value
    )
    return (
        [f for one in inner for f in figures(one)]
        if isinstance(inner, Iterable) and not isinstance(inner, str)
        else []
    )


def test_every_figure_of_the_later_sections_is_on_the_page() -> None:
    audit = CASES["full"]
    text = Page(render(audit)).text
    parts = [
        audit.rebuilt,
        audit.people,
        audit.fairness,
        *(r.evidence for r in audit.readings),
        *(r.groups for r in audit.readings),
    ]
    shown = [
        f
        for part in parts
        for f in figures(part)
        if f.measure != "highest balanced accuracy of 3 adversaries, picked on test"
    ]
    assert len(shown) > 30
    for figure in shown:
        ways = {measures.value(figure, key).removesuffix(" %") for key in ("", "f1")}
        assert any(way in text for way in ways), figure
        ends = {measures.ends(figure, key) for key in ("", "f1")}
        assert any(end in text for end in ends), figure


def test_the_headline_keeps_no_worse_way_quiet() -> None:
    page = Page(render(CASES["full"])).text
    head = page[: page.index("Privacy against utility")]
    assert (
        "From the average of 16 releases of the same record: "
        "right 83 times in 100 (between 81 and 85), balanced." in head
    )
    assert "From rebuilt pictures" not in head, "it is below the headline"
    assert "Knowing only smiling is right 57 times; knowing only glasses is right 51 times." in head
    assert "right 62 times in 100 (between 58 and 66)" in page, (
        "the highest of all, with its wider interval"
    )


def test_undeclared_attributes_are_ranked_and_the_rest_unfolds() -> None:
    shuffled = replace(CASES["full"], undeclared=CASES["full"].undeclared[::-1])
    html = render(shuffled)
    section = html[html.index('id="undeclared"') : html.index('id="everyone"')]
    names = [
        name.strip() for name in re.findall(r'<th role="rowheader" scope="row">([^<]+)', section)
    ]
    assert names[:3] == ["glasses", "hat", "hair colour"] and len(names) == 20
    assert (
        section[: section.index("<details>")].count('scope="row"') == 12
        and "<summary>8 more</summary>" in section
    )
    assert names.index("weight") < names.index("hair style"), (
        "31 % of the way above none is further than 34 in 100 among ten values"
    )


def test_decoders_stand_side_by_side_where_they_got_the_same_originals() -> None:
    first, second = CASES["full"].rebuilt
    assert len(Page(render(example.audit(rebuilt=(first, second)))).all("img")) == 18
    apart = replace(second, originals=second.originals[::-1])
    assert len(Page(render(example.audit(rebuilt=(first, apart)))).all("img")) == 24
    blind = replace(second, originals=(), rebuilt=())
    assert len(Page(render(example.audit(rebuilt=(first, blind)))).all("img")) == 12


def test_points_say_their_exact_values_to_mouse_and_keyboard() -> None:
    page = Page(render(CASES["usual"]))
    spots = [attrs for attrs in page.all("g") if attrs.get("class") == "spot"]
    assert spots and all(attrs["tabindex"] == "0" for attrs in spots)
    assert "this release; beard: 61.1 (58.9 to 63.3); smiling: 88.3 (86.8 to 89.8)" in [
        attrs["aria-label"] for attrs in spots
    ]


def test_numbers_are_explained_and_not_called_right() -> None:
    page = Page(render(replace(CASES["numbers"], release={}))).text
    assert (
        "the best of 2 attackers explains 31 % of the differences between people "
        "(between 27 and 35)" in page
    )
    assert (
        "times in 100" not in page and "AUC" not in page and "balanced accuracy" not in page.lower()
    )
    assert "8.14 years" in page and "9.80 years" in page


def test_what_was_not_counted_is_not_called_hidden() -> None:
    page = Page(render(CASES["nothing counted"])).text
    assert (
        "not distinguishable" not in page
        and "could be told from guessing" not in page
        and "read alike" not in page
    )
    assert page.count("not measured") > 20


def test_page_stays_small() -> None:
    assert len(render(example.audit())) < 68_000
    assert len(render(CASES["several"])) < 170_000
    assert len(render(replace(CASES["full"], rebuilt=()))) < 150_000


def test_what_is_certified_stands_beside_what_was_found() -> None:
    full = CASES["full"]
    page = Page(render(full)).text
    head = page[: page.index("Privacy against utility")]
    assert (
        "No adversary who sees one release of one record and knows nothing else about the person "
        "can guess beard with a balanced accuracy above 64.5 % on average over people; "
        "guessing blindly has 50.0 % (99 % confidence for "
        "this statement by itself; claimed by whoever ran this audit, checked by nobody else)."
        in head
    ), "rounded up"
    section = page[page.index("What no adversary can beat") :]
    for said in (
        "64.5",
        "73.1",
        "61.1",
        "Not certified: one of its values has fewer than two people.",
        "beard and age",
        "at most 0.289 bits",
    ):
        assert said in section, said
    assert "did better than that" not in page
    plain = Page(render(example.audit())).text
    assert "ertified" not in plain and "No adversary" not in plain, (
        "nothing is said where nothing was tried"
    )


def test_a_certificate_that_an_attacker_beat_is_not_relied_on() -> None:
    full = CASES["full"]
    low = replace(full.certificates[0], bound=example.BEARD.worst.score.low - 0.001)
    assert "did better than that" in Page(render(replace(full, certificates=(low,)))).text


def test_why_nothing_is_certified_is_one_line() -> None:
    refused = replace(
        example.certificates()[3], attribute="beard", reason="the release adds no noise"
    )
    page = Page(render(replace(example.audit(), certificates=(refused,)))).text
    assert page.count("Not certified: the release adds no noise.") == 1
