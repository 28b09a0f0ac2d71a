"""What a service looks at, as a page: curves of its success on the pixels kept, a table of areas,
and pictures."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from jinja2 import ChoiceLoader, FileSystemLoader
from markupsafe import Markup
from PIL import Image
from sources_parts.pictures import sheet
from torch import Tensor

from privet.core.files import write_text
from privet.data.dataset import Array
from privet.evidence.formatting import percent
from privet.reporting.label_placement import Box
from privet.reporting.page import jinja
from saliency_parts.methods import Comparison, Curve, obscure, ranks

FILLED = {"noise": "the rest drowned in noise", "grey": "the rest painted grey"}
KEEPS = {"insertion": "the most important kept", "deletion": "the least important kept"}
COLOURS = 9
"""Of lines, in saliency.html."""
KEPT = 0.3
"""Share of pixels in the pictures of what is kept."""


class Cell(NamedTuple):
    caption: str
    png: str
    """In base64."""


class Row(NamedTuple):
    """One way in the table: its areas in the order of the panels, and its time."""

    name: str
    colour: int
    curves: list[Curve]
    seconds: str


def draw(
    out: Path,
    found: Comparison,
    maps: Mapping[str, Tensor],
    test: Any,
    grey: Tensor,
    examples: int,
) -> None:
    """saliency.html, and maps.png with the same pictures: a column each, a line for every way."""
    x, truth = test.x[:examples], test.truth[:examples].cpu().numpy()
    maps = {name: one[:examples] for name, one in maps.items()}
    strips = []
    for at in range(len(x)):
        one = slice(at, at + 1)
        kept = {
            name: obscure(x[one], ranks(m[one]), KEPT, "grey", grey)[0].cpu().numpy()
            for name, m in maps.items()
        }
        mask = truth[at] if truth.ndim == 3 else None
        own = {name: m[at].cpu().numpy() for name, m in maps.items()}
        strips.append(strip(x[at].cpu().numpy(), mask, own, kept))
    write_text(out / "saliency.html", render(found, strips))
    lines = [("picture", _bytes(x.cpu().numpy()))]
    if truth.ndim == 3:
        lines.append(("mask", _coloured(truth)))
    lines += [
        (name, _coloured(np.stack([_stretched(one) for one in m.cpu().numpy()])))
        for name, m in maps.items()
    ]
    sheet(out / "maps.png", lines)


def _coloured(grey: Array) -> Array:
    """(n, height, width) in [0, 1] to bytes (n, 3, height, width)."""
    return np.repeat((255 * grey).astype(np.uint8)[:, None], 3, axis=1)


def render(found: Comparison, strips: Sequence[Sequence[Cell]] = ()) -> str:
    """The page. It shows the pictures in `strips`, one row each."""
    names = list(found.seconds)
    kinds = list(dict.fromkeys((one.order, one.fill) for one in found.curves))
    titles = [f"{KEEPS[order]}, {FILLED[fill]}" for order, fill in kinds]
    rows = [
        Row(
            name,
            place % COLOURS,
            [c for kind in kinds for c in of_kind(found.curves, kind) if c.name == name],
            _time(found.seconds[name]),
        )
        for place, name in enumerate(names)
    ]
    panels = [
        (title, picture(of_kind(found.curves, kind), names, found.measure))
        for title, kind in zip(titles, kinds, strict=True)
    ]
    env = jinja()
    here = FileSystemLoader(Path(__file__).parent)
    page = env.overlay(loader=ChoiceLoader([here, cast(Any, env.loader)])).get_template(
        "saliency.html"
    )
    return page.render(
        found=found,
        rows=rows,
        titles=titles,
        panels=panels,
        strips=strips,
        kept=f"{100 * KEPT:.0f}",
    )


def of_kind(curves: Sequence[Curve], kind: tuple[str, str]) -> list[Curve]:
    """Those of one order and fill."""
    return [one for one in curves if (one.order, one.fill) == kind]


def picture(
    curves: Sequence[Curve], names: Sequence[str], measure: str, width: int = 440, height: int = 340
) -> Markup:
    """Share of pixels kept across, success up; a way has the same colour everywhere."""
    frame = Box(44, 30, width - 14, height - 48)
    values = [figure.value for one in curves for figure in one.scores]
    tenths = 1 if min(values) >= 0.5 else 2
    low = tenths * math.floor(10 * min(values) / tenths) / 10

    def across(share: float) -> float:
        return round(frame.left + share * (frame.right - frame.left), 1)

    def up(value: float) -> float:
        return round(
            frame.bottom
            - (min(max(value, low), 1.0) - low) / (1 - low + 1e-9) * (frame.bottom - frame.top),
            1,
        )

    rule = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format
    text = Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format
    parts = []
    for tick in range(round(10 * low), 11, tenths):
        parts.append(rule("grid", frame.left, frame.right, up(tick / 10), up(tick / 10)))
        parts.append(text("tick", frame.left - 9, up(tick / 10) + 4, "end", str(10 * tick)))
    parts += [
        text("tick", across(t / 10), frame.bottom + 18, "middle", str(10 * t))
        for t in range(0, 11, 2)
    ]
    for one in curves:
        colour = f"way{names.index(one.name) % COLOURS}"
        spots = [
            (across(s), up(f.value), s, f) for s, f in zip(one.shares, one.scores, strict=True)
        ]
        parts.append(
            Markup('<path class="curve {}" d="{}"/>').format(
                colour, "M" + "L".join(f"{x} {y}" for x, y, _, _ in spots)
            )
        )
        dot = Markup(
            '<circle class="dot {}" cx="{}" cy="{}" r="3"><title>{}</title></circle>'
        ).format
        for x, y, share, f in spots:
            said = (
                f"{one.name}, {percent(share)} % kept: {measure} {percent(f.value)}"
                f" ({percent(f.low)} to {percent(f.high)})"
            )
            parts.append(dot(colour, x, y, said))
    parts.append(text("axis", 2, 14, "start", f"{measure}, %"))
    parts.append(text("axis", frame.right, height - 8, "end", "pixels kept, %"))
    whole = Markup('<svg class="plane" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return whole.format(width, height, told(curves, measure), Markup("").join(parts))


def told(curves: Sequence[Curve], measure: str) -> str:
    """The picture in words, for those who do not see it."""
    return " ".join(
        f"{c.name}: mean {measure} {percent(c.area.value)} %, {percent(c.scores[0].value)} % at the"
        " fewest."
        for c in curves
    )


def strip(
    x: Array, truth: Array | None, maps: Mapping[str, Array], kept: Mapping[str, Array]
) -> list[Cell]:
    """One picture's row: the original in [-1, 1], its mask if it has one, every way's map, and what
    it keeps, obscured elsewhere."""
    cells = [Cell("original", png(_bytes(x)))]
    if truth is not None:
        cells.append(Cell("mask", png(255 * truth.astype(np.uint8)[None])))
    for name, one in maps.items():
        cells += [
            Cell(name, png(_bytes(2 * _stretched(one)[None] - 1))),
            Cell(f"{name}: {100 * KEPT:.0f} % kept", png(_bytes(kept[name]))),
        ]
    return cells


def png(picture: Array) -> str:
    """uint8 (channels, height, width) as PNG in base64."""
    buffer = io.BytesIO()
    Image.fromarray(picture.transpose(1, 2, 0).squeeze()).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def _bytes(x: Array) -> Array:
    return np.clip(np.round((x + 1) * 127.5), 0, 255).astype(np.uint8)


def _stretched(importance: Array) -> Array:
    low, high = float(importance.min()), float(importance.max())
    return np.asarray((importance - low) / max(high - low, 1e-9))


def _time(seconds: float) -> str:
    """
    >>> _time(0.00231), _time(1.204)
    ('2.3 ms', '1.2 s')
    """
    return f"{1000 * seconds:.2g} ms" if seconds < 0.1 else f"{seconds:.2g} s"
