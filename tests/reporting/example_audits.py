"""Small made-up audits to render: the figures are invented, their layout is the real one."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import replace
from typing import Any

from PIL import Image, ImageDraw, ImageFilter

from privet.evidence.figures import (
    Audit,
    Certified,
    Fairness,
    Figure,
    Finding,
    Group,
    People,
    Reading,
    Rebuilt,
    Risk,
)

NAN = math.nan


def figure(value: float, n: int = 2000, chance: float = 0.5, better: str = "lower") -> Figure:
    half = 1.96 * math.sqrt(max(value * (1 - value), 0.25 / n) / n)
    return Figure(value, max(0.0, value - half), min(1.0, value + half), n, chance, "share", better)  # type: ignore[arg-type]


def finding(
    name: str,
    value: float,
    source: str = "released",
    chance: float = 0.5,
    n: int = 2000,
    better: str = "lower",
) -> Finding:
    plain = figure(min(1.0, value + 0.04), n, chance + 0.08, better)
    auc = (
        replace(figure(min(1.0, value + 0.05), n, 0.5, better), measure="AUC")
        if chance == 0.5
        else None
    )
    return Finding(
        name,
        source,
        value,
        figure(value, n, chance, better),
        replace(plain, measure="accuracy"),
        auc,
        12.5,
    )  # type: ignore[arg-type]


def reading(
    name: str,
    role: str,
    released: dict[str, float],
    raw: dict[str, float],
    values: tuple[str, ...] = ("no", "yes"),
    n: int = 2000,
) -> Reading:
    chance, better = 1 / len(values), "lower" if role == "private" else "higher"
    given = tuple(finding(k, v, "released", chance, n, better) for k, v in released.items())
    plain = tuple(finding(k, v, "raw", chance, n, better) for k, v in raw.items())
    best = max(range(len(given)), key=lambda i: given[i].select, default=0)
    best_raw = max(range(len(plain)), key=lambda i: plain[i].select, default=0)
    return Reading(name, role, values, given, plain, best, best_raw)  # type: ignore[arg-type]


BEARD = reading(
    "beard",
    "private",
    {"logistic regression": 0.552, "network": 0.611, "boosted trees": 0.587},
    {"logistic regression": 0.91, "network": 0.968, "boosted trees": 0.934},
)
SMILING = reading(
    "smiling",
    "utility",
    {"logistic regression": 0.84, "network": 0.883},
    {"logistic regression": 0.89, "network": 0.921},
)


def face(seed: int, blurred: bool) -> str:
    """A drawn face as a PNG in base64."""
    picture = Image.new(
        "RGB", (32, 32), [(206, 222, 232), (232, 219, 203), (213, 228, 208)][seed % 3]
    )
    draw = ImageDraw.Draw(picture)
    skin = [(226, 178, 140), (150, 98, 66), (241, 205, 178), (190, 134, 96)][seed % 4]
    hair = [(52, 36, 28), (120, 72, 30), (30, 30, 34)][seed % 3]
    draw.ellipse((7, 3, 25, 20), fill=hair)
    draw.ellipse((8, 6, 24, 29), fill=skin)
    if seed % 2:
        draw.chord((8, 8, 24, 29), 10, 170, fill=hair)
    draw.point([(13, 15), (14, 15), (19, 15), (18, 15)], fill=(30, 24, 24))
    draw.arc((12, 17, 20, 24), 20, 160, fill=(150, 40, 50))
    if blurred:
        picture = picture.filter(ImageFilter.GaussianBlur(3))
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode()


def audit(
    readings: tuple[Reading, ...] = (BEARD, SMILING),
    rebuilt: tuple[Rebuilt, ...] = (),
    **release: Any,
) -> Audit:
    card: dict[str, Any] = {
        "method": "TIPRDC",
        "settings": {"budget": 0.9, "width": 64, "steps": 4000, "noise": "gaussian"},
        "private": [r.attribute for r in readings if r.role == "private"],
        "seed": 7,
        "sha256": {"weights": "9f2c4e" + "0" * 58, "graph": "1" * 64},
        "in_game": {"beard": {"accuracy": 0.56, "balanced": 0.523, "n": 2000, "part": "select"}},
        "command": "privet learn tiprdc --data portraits --private beard --budget 0.9 --out hedge",
    }
    parts = {
        "fit": {"records": 8000, "people": 2000},
        "attack": {"records": 6000, "people": 1500},
        "select": {"records": 2000, "people": 500},
        "test": {"records": 4000, "people": 1000},
    }
    data = {"name": "portraits", "modality": "image", "fingerprint": "ab12" * 16, "parts": parts}
    limits = (
        "Only the attackers listed here were run. A stronger one may read more.",
        "Attributes that nobody declared may still be readable: glasses was found at 93 in 100.",
        "The figures hold for people like those in the data, not for every population.",
    )
    return Audit({**card, **release}, data, "standard", readings, limits, 252.4, rebuilt)


def pictures(n: int = 8) -> Rebuilt:
    return Rebuilt(
        "PSNR in dB",
        14.23,
        4000,
        tuple(face(i, False) for i in range(n)),
        tuple(face(i, True) for i in range(n)),
    )


def texts() -> Rebuilt:
    return Rebuilt(
        "share of words rebuilt",
        0.231,
        400,
        (
            "My sister <b>runs</b> the bakery on Elm Street & bakes at night.",
            "We met in the spring of 1998.",
        ),
        (
            "the sister in the store on the street and at the time .",
            "we was in the house of the year .",
        ),
    )


def other(method: str, beard: float, smiling: float, **settings: Any) -> Audit:
    """Another audit of the same attributes, to compare with."""
    one = audit(
        (
            reading("beard", "private", {"network": beard}, {}),
            reading("smiling", "utility", {"network": smiling}, {}),
        )
    )
    return replace(
        one,
        release={
            **one.release,
            "method": method,
            "settings": {**one.release["settings"], **settings},
        },
    )


def unmeasured() -> Reading:
    """No test record had a label."""
    empty = Figure(NAN, 0.0, 1.0, 0, 0.5)
    void = Finding("network", "released", NAN, empty, empty, empty, 0.0)
    return Reading("beard", "private", ("no", "yes"), (void,), (replace(void, source="raw"),), 0, 0)


def guessed(
    name: str,
    value: float,
    source: str = "released",
    n: int = 2000,
    better: str = "lower",
    half: float = 0.04,
) -> Finding:
    """A finding about a number: share of variance explained, and years missed on average."""
    explained = Figure(
        value,
        value - half,
        min(1.0, value + half),
        n,
        0.0,
        "share",
        better,
        "bootstrap 95 %",
        "share of variance explained",
    )  # type: ignore[arg-type]
    miss = 9.8 * math.sqrt(1 - min(max(value, 0.0), 0.99))
    other = "higher" if better == "lower" else "lower"
    missed = Figure(
        miss,
        miss - 0.31,
        miss + 0.31,
        n,
        9.8,
        "years",
        other,
        "bootstrap 95 %",
        "mean absolute error",
    )  # type: ignore[arg-type]
    return Finding(name, source, value, explained, missed, None, 3.0)  # type: ignore[arg-type]


AGE = Reading(
    "age",
    "private",
    (),
    (guessed("ridge", 0.24), guessed("network", 0.31)),
    (guessed("network", 0.62, "raw"),),
    1,
    0,
)
INCOME = Reading(
    "income",
    "utility",
    (),
    (guessed("ridge", 0.55, better="higher"),),
    (guessed("ridge", 0.61, "raw", better="higher"),),
    0,
    0,
)


def evidence() -> dict[str, Figure]:
    """More about the strongest adversary, one of each unit."""
    boot = "bootstrap over people 95 %"
    return {
        "highest_of_all": Figure(
            0.618,
            0.58,
            0.655,
            2000,
            0.5,
            measure="highest balanced accuracy of 3 adversaries, picked on test",
        ),
        "f1": Figure(0.604, 0.581, 0.626, 2000, 0.41, interval=boot, measure="F1"),
        "tpr_at_fpr_1_percent": Figure(
            0.043,
            0.021,
            0.071,
            2000,
            0.01,
            interval=boot,
            measure="true positives at 1 % false ones",
        ),
        "advantage": Figure(-0.004, -0.03, 0.02, 2000, 0.0, interval=boot, measure="advantage"),
        "multiplicative_leakage": Figure(
            1.07, 1.0, 1.12, 2000, 1.0, "ratio", interval=boot, measure="multiplicative leakage"
        ),
        "bayes_security": Figure(
            0.778,
            0.73,
            0.82,
            2000,
            1.0,
            "share",
            "higher",
            boot,
            "Bayes security",
            "Of this adversary's guesses: another may leave less.",
        ),
        "usable_bits": Figure(
            0.0341, 0.021, 0.0478, 2000, 0.0, "bits", interval=boot, measure="usable information"
        ),
        "something_new": Figure(
            0.5, 0.5, 0.5, 2000, 0.0, "nats", interval="", measure="a measure of next year"
        ),
        "knn_bits": Figure(NAN, NAN, NAN, 0, 0.0, "bits", interval="", measure="k-NN estimate"),
    }


def groups() -> tuple[Group, ...]:
    return (
        Group("gender", "female", figure(0.55, 900)),
        Group("gender", "male", figure(0.671, 1100)),
        Group("skin tone", "light", figure(0.62, 1500)),
        Group("skin tone", "dark, and a rather long name of a group", figure(0.58, 140)),
        Group("skin tone", "unknown", Figure(NAN, 0.0, 1.0, 0, 0.5)),
    )


def undeclared(count: int = 20) -> tuple[Reading, ...]:
    """Attributes nobody named, from plain to see to hidden; among them a number and one with ten
    values."""
    names = [
        "glasses",
        "hat",
        "hair colour",
        "background",
        "young",
        "earrings",
        "lipstick",
        "bangs",
        "necktie",
        "pale skin",
    ]
    found = [
        reading(
            f"{names[i % 10]} {i // 10 or ''}".strip(),
            "undeclared",
            {"network": 0.93 - 0.44 * i / count},
            {"network": 0.96 - 0.02 * i},
        )
        for i in range(count - 2)
    ]
    ten = reading(
        "hair style", "undeclared", {"network": 0.34}, {"network": 0.71}, tuple("abcdefghij")
    )
    return (*found, ten, replace(AGE, attribute="weight", role="undeclared"))


def certificates() -> tuple[Certified, ...]:
    """One attribute that is certified, one that is not, and both at once; seen once and more
    often."""
    two = ("no", "yes")
    beard = Certified(
        "beard",
        two,
        0.6442,
        0.66,
        (0.48, 0.52),
        0.2884,
        0.61,
        0.0342,
        0.99,
        (960, 1040),
        2,
        0.4,
        1,
        "smoothed",
    )
    often = [replace(beard, bound=b, releases=k) for k, b in ((4, 0.731), (16, None))]
    why = "one of its values has fewer than two people"
    age = Certified(
        "age",
        ("below 30", "from 30"),
        None,
        None,
        (),
        None,
        NAN,
        NAN,
        0.99,
        (1, 9),
        2,
        0.4,
        1,
        "smoothed",
        why,
    )
    four = ("no, below 30", "yes, below 30", "no, from 30", "yes, from 30")
    both = replace(
        beard,
        attribute="beard and age",
        values=four,
        bound=0.41,
        people=(500, 400, 560, 540),
        prior=(0.25,) * 4,
        note="A note.",
    )
    return (beard, *often, age, both)


def full() -> Audit:
    """Everything an audit can hold."""
    boot = "bootstrap over people 95 %"
    task = {"prior": figure(0.5), "task smiling": figure(0.571), "task glasses": figure(0.512)}
    often = replace(finding("network", 0.83, "averaged"), releases=16, title="a network")
    again = finding("network", 0.6, "rebuilt")
    risk = Risk(
        tuple(i / 10 for i in range(11)),
        (20, 60, 160, 300, 420, 460, 300, 160, 80, 40),
        figure(0.021, 2000, 0.0),
    )
    beard = replace(
        BEARD,
        baselines=task,
        evidence=evidence(),
        groups=groups(),
        risk=risk,
        others=(often, again),
    )
    pictures_of = {
        "psnr": Figure(14.23, 14.02, 14.41, 4000, 11.87, "dB", "lower", boot, "PSNR"),
        "ssim": Figure(0.312, 0.301, 0.322, 4000, 0.204, "share", "lower", boot, "SSIM"),
        "ms_ssim": Figure(
            0.401,
            0.391,
            0.412,
            4000,
            0.25,
            "share",
            "lower",
            boot,
            "MS-SSIM",
            "Three scales instead of five: the pictures are small.",
        ),
    }
    first = replace(pictures(6), decoder="residual decoder", figures=pictures_of)
    second = replace(
        first,
        decoder="reversed extractor",
        value=13.1,
        rebuilt=tuple(face(i + 1, True) for i in range(6)),
    )
    people = (
        People(
            "re-identification",
            "whitened cosine",
            {"top_1": figure(0.61, 280, 1 / 280), "top_5": figure(0.82, 280, 5 / 280)},
            {"top_1": figure(0.98, 280, 1 / 280), "top_5": figure(0.99, 280, 5 / 280)},
            "One picture of each person is known, another one is looked up.",
        ),
        People(
            "membership",
            "gradient boosting",
            {
                "auc": replace(figure(0.52, 1000), measure="AUC"),
                "balanced_accuracy": figure(0.513, 1000),
                "tpr_at_fpr_1_percent": figure(0.012, 1000, 0.01),
            },
        ),
    )
    gap, odds = "demographic_parity_difference", "equalized_odds_difference"
    fair = Fairness(
        "smiling",
        "gender",
        {
            gap: replace(figure(0.121, 2000, 0.0), measure="demographic parity difference"),
            odds: figure(0.154, 2000, 0.0),
        },
        {gap: figure(0.083, 2000, 0.0)},
        tuple(
            Group("gender", v, figure(x, n, 0.52, "higher"))
            for v, x, n in (("female", 0.9, 900), ("male", 0.846, 1100))
        ),
    )
    information = {
        "infonce": Figure(
            4.31,
            4.31,
            4.31,
            512,
            0.0,
            "bits",
            interval="",
            measure="InfoNCE",
            note="Lower bound; it cannot show more than 9 bits.",
        ),
        "gaussian_bound": Figure(
            math.inf,
            math.inf,
            math.inf,
            128,
            0.0,
            "bits",
            interval="",
            measure="Cloak's bound",
            note="Some coordinates get no noise: no end.",
        ),
    }
    whole = audit((beard, AGE, SMILING, INCOME), (first, second))
    return replace(
        whole,
        undeclared=undeclared(),
        people=people,
        fairness=(fair,),
        information=information,
        certificates=certificates(),
    )


def bare() -> Audit:
    """Vectors handed over without the data they came from: nothing raw, nothing rebuilt, nothing
    known of the method."""
    found = replace(
        reading("beard", "private", {"network": 0.61}, {}), baselines={"prior": figure(0.5)}
    )
    data = {
        "name": "vectors.npy",
        "modality": "table",
        "parts": {"test": {"records": 2000, "people": 2000}},
    }
    return Audit(
        {},
        data,
        "quick",
        (found, reading("smiling", "utility", {"network": 0.88}, {})),
        ("Only vectors were given.",),
        3.0,
    )


def nothing_counted() -> Audit:
    """Every section, and no figure in it: each n is 0."""
    void = Figure(NAN, 0.0, 1.0, 0, 0.5)
    same = Figure(
        0.5, 0.0, 1.0, 300, 0.5, interval="the whole range", note="Only one value occurs."
    )
    empty = unmeasured()
    number = replace(AGE, released=(replace(AGE.worst, score=void, plain=void),), raw=(), best=0)
    beard = replace(
        empty,
        baselines={"task smiling": void},
        evidence={"highest_of_all": void, "f1": void, "usable_bits": replace(same, unit="bits")},
        groups=(Group("gender", "male", void), Group("gender", "female", same)),
        risk=Risk((0.0, 0.5, 1.0), (0, 0), void),
        others=(
            replace(empty.worst, source="averaged", releases=4),
            replace(empty.worst, source="rebuilt"),
        ),
    )
    return replace(
        audit(
            (beard, number, replace(SMILING, released=(), raw=())),
            (Rebuilt("PSNR in dB", NAN, 0, figures={"psnr": replace(void, unit="dB")}),),
        ),
        undeclared=(
            replace(empty, attribute="glasses", role="undeclared"),
            replace(empty, attribute="hat", role="undeclared", released=()),
        ),
        people=(
            People("re-identification", "none", {"top_1": void}, {"top_1": void}),
            People("membership", "none", {}),
        ),
        fairness=(
            Fairness(
                "smiling",
                "gender",
                {"demographic_parity_difference": same},
                {},
                (Group("gender", "male", void),),
            ),
        ),
        information={"infonce": replace(void, unit="bits", interval="")},
    )
