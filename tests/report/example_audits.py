"""Small made-up audits to render: the figures are invented, their layout is the real one."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import replace
from typing import Any

from PIL import Image, ImageDraw, ImageFilter

from privet.evidence.figures import Audit, Figure, Finding, Reading, Rebuilt

NAN = math.nan


def figure(value: float, n: int = 2000, chance: float = 0.5, better: str = "lower") -> Figure:
    half = 1.96 * math.sqrt(max(value * (1 - value), 0.25 / n) / n)
    return Figure(value, max(0.0, value - half), min(1.0, value + half), n, chance, "share", better)  # type: ignore[arg-type]


def finding(name: str, value: float, source: str = "released", chance: float = 0.5, n: int = 2000, better: str = "lower") -> Finding:
    plain = figure(min(1.0, value + 0.04), n, chance + 0.08, better)
    auc = min(1.0, value + 0.05) if chance == 0.5 else None
    return Finding(name, source, value, plain, figure(value, n, chance, better), auc, 12.5)  # type: ignore[arg-type]


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
SMILING = reading("smiling", "utility", {"logistic regression": 0.84, "network": 0.883}, {"logistic regression": 0.89, "network": 0.921})


def face(seed: int, blurred: bool) -> str:
    """A drawn face as a PNG in base64."""
    picture = Image.new("RGB", (32, 32), [(206, 222, 232), (232, 219, 203), (213, 228, 208)][seed % 3])
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


def audit(readings: tuple[Reading, ...] = (BEARD, SMILING), rebuilt: Rebuilt | None = None, **release: Any) -> Audit:
    card: dict[str, Any] = {
        "method": "TIPRDC",
        "settings": {"budget": 0.9, "width": 64, "steps": 4000, "noise": "gaussian"},
        "private": [r.attribute for r in readings if r.role == "private"],
        "seed": 7,
        "sha256": "9f2c4e" + "0" * 58,
        "in_game": {"beard": {"accuracy": 0.56, "balanced": 0.523, "n": 2000, "part": "select"}},
        "command": "privet learn tiprdc --data portraits --private beard --budget 0.9 --seed 7 --out hedge",
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
    return Audit({**card, **release}, data, "standard", readings, rebuilt, limits, 252.4)


def pictures(n: int = 8) -> Rebuilt:
    return Rebuilt("PSNR in dB", 14.23, 4000, tuple(face(i, False) for i in range(n)), tuple(face(i, True) for i in range(n)))


def texts() -> Rebuilt:
    return Rebuilt(
        "share of words rebuilt",
        0.231,
        400,
        ("My sister <b>runs</b> the bakery on Elm Street & bakes at night.", "We met in the spring of 1998."),
        ("the sister in the store on the street and at the time .", "we was in the house of the year ."),
    )


def other(method: str, beard: float, smiling: float, **settings: Any) -> Audit:
    """Another audit of the same attributes, to compare with."""
    one = audit((reading("beard", "private", {"network": beard}, {}), reading("smiling", "utility", {"network": smiling}, {})))
    return replace(one, release={**one.release, "method": method, "settings": {**one.release["settings"], **settings}})


def unmeasured() -> Reading:
    """No test record had a label."""
    empty = Figure(NAN, 0.0, 1.0, 0, 0.5)
    void = Finding("network", "released", NAN, empty, empty, NAN, 0.0)
    return Reading("beard", "private", ("no", "yes"), (void,), (replace(void, source="raw"),), 0, 0)
