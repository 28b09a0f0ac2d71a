"""Collaborative sanitizers in four pictures, drawn from the cards of several releases: one per
alpha and variant.

The trade-off between the provider's own models; how sure the privacy model is, per true value;
whether people are still identified; and the privacy model on unfiltered records. Drawn like
pictures.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup

from privet.core.errors import PrivetError
from privet.evidence.formatting import percent
from privet.methods.services.evaluation import ServiceAnswers, ServiceEvaluation
from privet.reporting.label_placement import Box

VARIANTS = (
    "plug-and-play, deterministic",
    "plug-and-play, stochastic",
    "adversarial, deterministic",
    "adversarial, stochastic",
)
_DASH = ("7 4", "2 3", "none", "10 3 2 3")

_RULE = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format
_TEXT = Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format


@dataclass(frozen=True)
class Shown:
    """One release of a sweep."""

    alpha: float
    variant: str
    outcomes: ServiceEvaluation

    def of(self, attribute: str, role: str) -> ServiceAnswers | None:
        return next(
            (a for a in self.outcomes.answers if a.attribute == attribute and a.role == role), None
        )


class Spot(NamedTuple):
    x: float
    y: float
    said: str


class Strip(NamedTuple):
    """A row of the picture of sureness."""

    name: str
    counts: tuple[int, ...]


def shown(cards: Sequence[Mapping[str, Any]]) -> list[Shown]:
    """What the cards of collaborative releases say, by variant and alpha."""
    found = []
    for card in cards:
        if card.get("method") != "collaborative" or "outcomes" not in card:
            raise PrivetError("This page is drawn from the cards of collaborative releases only.")
        settings = card["settings"]
        words = (
            "adversarial" if settings["adversarial"] else "plug-and-play",
            "stochastic" if settings["stochastic"] else "deterministic",
        )
        found.append(
            Shown(
                float(settings["alpha"]),
                ", ".join(words),
                ServiceEvaluation.from_json(card["outcomes"]),
            )
        )
    if not found:
        raise PrivetError("There is no release to draw: give the cards of some.")
    return sorted(found, key=lambda one: (VARIANTS.index(one.variant), one.alpha))


def page(cards: Sequence[Mapping[str, Any]]) -> str:
    """One HTML page with the four pictures of all releases; `cards` are those of releases of the
    same data and attributes."""
    from privet.reporting.page import jinja

    among, first = shown(cards), cards[0]
    words = {
        (tuple(card["private"]), tuple(card["utility"]), card["data"]["name"]) for card in cards
    }
    if len(words) > 1:
        raise PrivetError(
            "These releases hide or keep different attributes, or are of different data: draw a page for each."
        )
    private, utility = list(first["private"]), list(first["utility"])
    tasks = [name for name in utility if among[0].of(name, "utility") is not None]
    return (
        jinja()
        .get_template("collaborative.html")
        .render(
            releases=among,
            data_name=str(first["data"]["name"]),
            hidden=private,
            services={name: said for card in cards for name, said in card["services"].items()},
            part=among[0].outcomes.part,
            tradeoffs=[
                (name, task, tradeoff(among, name, task)) for name in private for task in tasks
            ],
            sureness=[
                (title, picture)
                for name in private
                for title, picture in certainty(among, name, "released")
            ],
            identified=identification(among),
            unfiltered=[
                (title, picture)
                for name in private
                for title, picture in certainty(among, name, "raw")
            ],
            rows=[
                (one, _private(one, name), _given(one, name), name)
                for one in among
                for name in private
            ],
            draw=percent,
        )
    )


def tradeoff(among: Sequence[Shown], private: str, task: str) -> Markup:
    """The provider's privacy model across (right is more private), its service up; one line per
    variant, a point per alpha."""
    points: dict[str, list[Spot]] = {}
    raw: Spot | None = None
    counted = ""
    for one in among:
        hidden, kept = _private(one, private), one.of(task, "utility")
        if hidden is None or kept is None or not hidden.released or not kept.released:
            continue
        key, counted = (
            ("top_5", "among its first five, %")
            if "top_5" in kept.released
            else ("balanced", "balanced, %")
        )
        x, y = hidden.released["balanced"], kept.released[key]
        said = (
            f"{one.variant}, alpha {one.alpha:g}: {private} {percent(x)} %, {task} {percent(y)} %"
        )
        points.setdefault(one.variant, []).append(Spot(x, y, said))
        before = (_given(one, private) or hidden).raw["balanced"]
        raw = Spot(
            before,
            kept.raw[key],
            f"raw records: {private} {percent(before)} %, {task} {percent(kept.raw[key])} %",
        )
    if raw is None:
        return Markup("")
    spots = [*(spot for own in points.values() for spot in own), raw]
    return _plane(
        points,
        [raw],
        spots,
        f"Privacy model on {private}, balanced, %",
        f"Service for {task}, {counted}",
        flipped=True,
    )


def identification(among: Sequence[Shown]) -> list[tuple[str, Markup]]:
    """Top-5 over alpha: people of *fit* by name, in sample, and unknown people by a gallery of raw
    records."""
    found = []
    for task in [
        a.attribute for a in among[0].outcomes.answers if a.role == "utility" and "top_5" in a.raw
    ]:
        named = [
            (one, answers) for one in among if (answers := one.of(task, "utility")) is not None
        ]
        rows = [(one, answers.raw["top_5"], answers.released["top_5"]) for one, answers in named]
        found.append(
            (
                f"{task}, by name, {named[0][1].part} part",
                _over_alpha(rows, f"Right {task} among the first 5, %"),
            )
        )
    for task in [i.attribute for i in among[0].outcomes.identified]:
        looked = [(one, i) for one in among for i in one.outcomes.identified if i.attribute == task]
        rows = [(one, i.raw["top_5"], i.released["top_5"]) for one, i in looked]
        first = looked[0][1]
        title = f"{task}, {first.probes:,} records against a gallery of {first.people:,} people, {first.part} part"
        found.append((title, _over_alpha(rows, "Right person among the first 5, %")))
    return found


def certainty(among: Sequence[Shown], private: str, source: str) -> list[tuple[str, Markup]]:
    """Per variant and true value: the probability the privacy model gives, from 0 to 1 across, a
    row per alpha.

    `source` is released or raw. On raw records a model that did not learn is the same in every row,
    and is drawn once.
    """
    found = []
    for variant in dict.fromkeys(one.variant for one in among):
        own = [one for one in among if one.variant == variant]
        first = _private(own[0], private)
        if first is None or (source == "raw" and variant.startswith("plug")):
            continue
        for place, value in enumerate(first.sureness):
            rows = []
            given = _given(own[0], private) or first
            rows.append(
                Strip("raw" if source == "released" else "as given", given.sureness[place].raw)
            )
            for one in own:
                answers = _private(one, private)
                if answers is not None:
                    rows.append(
                        Strip(f"\u03b1 {one.alpha:g}", getattr(answers.sureness[place], source))
                    )
            found.append((f"{variant}: {private} is {value.value}", _strips(rows, first.asked)))
    return found


def _private(one: Shown, name: str) -> ServiceAnswers | None:
    return one.of(name, "private")


def _given(one: Shown, name: str) -> ServiceAnswers | None:
    return one.of(name, "given")


def _over_alpha(rows: Sequence[tuple[Shown, float, float]], title: str) -> Markup:
    points: dict[str, list[Spot]] = {}
    for one, _, value in rows:
        points.setdefault(one.variant, []).append(
            Spot(one.alpha, value, f"{one.variant}, alpha {one.alpha:g}: {percent(value)} %")
        )
    raw = max(before for _, before, _ in rows)
    ends = [Spot(at, raw, f"raw records: {percent(raw)} %") for at in (0.0, 1.0)]
    spots = [*(spot for own in points.values() for spot in own), *ends]
    return _plane(points, ends[:1], spots, "alpha", title, flipped=False, level=raw)


def _plane(
    lines: Mapping[str, Sequence[Spot]],
    raw: Sequence[Spot],
    spots: Sequence[Spot],
    across: str,
    up: str,
    *,
    flipped: bool,
    level: float | None = None,
    width: int = 720,
    height: int = 380,
) -> Markup:
    """Lines through points, with axes in percent up and in percent (or, not flipped, in alpha)
    across."""
    frame = Box(44, 40, width - 14, height - 78)
    x_low, x_high = _ends([s.x for s in spots])
    y_low, y_high = _ends([s.y for s in spots])

    def x_at(value: float) -> float:
        share = (value - x_low) / (x_high - x_low)
        return round(
            frame.left + 8 + (1 - share if flipped else share) * (frame.right - frame.left - 16), 1
        )

    def y_at(value: float) -> float:
        return round(
            frame.bottom - (value - y_low) / (y_high - y_low) * (frame.bottom - frame.top), 1
        )

    parts = []
    for tick in _tenths(x_low, x_high):
        parts += [_RULE("grid", x_at(tick), x_at(tick), frame.top, frame.bottom)]
        parts += [
            _TEXT(
                "tick",
                x_at(tick),
                frame.bottom + 18,
                "middle",
                f"{tick * 100:.0f}" if flipped else f"{tick:g}",
            )
        ]
    for tick in _tenths(y_low, y_high):
        parts += [_RULE("grid", frame.left, frame.right, y_at(tick), y_at(tick))]
        parts += [_TEXT("tick", frame.left - 9, y_at(tick) + 4, "end", f"{tick * 100:.0f}")]
    if level is not None:
        parts.append(_RULE("overall", frame.left, frame.right, y_at(level), y_at(level)))
        parts.append(_TEXT("name release", frame.right - 4, y_at(level) - 7, "end", "raw records"))
    dot = Markup('<circle class="point {}" cx="{}" cy="{}" r="5"><title>{}</title></circle>').format
    curve = Markup('<path class="curve utility" d="{}" stroke-dasharray="{}"/>').format
    key = Markup(
        '<line class="curve utility" x1="{}" x2="{}" y1="{}" y2="{}" stroke-dasharray="{}"/>'
    ).format
    for place, (variant, own) in enumerate(lines.items()):
        dash = _DASH[VARIANTS.index(variant)]
        parts.append(curve("M" + "L".join(f"{x_at(s.x)} {y_at(s.y)}" for s in own), dash))
        left, down = (
            frame.left + (place % 2) * (frame.right - frame.left) / 2,
            height - 22 + 18 * (place // 2),
        )
        parts += [
            key(left, left + 34, down - 4, down - 4, dash),
            _TEXT("tick", left + 42, down, "start", variant),
        ]
        parts += [dot("release", x_at(s.x), y_at(s.y), s.said) for s in own]
    if level is None:
        parts += [dot("raw", x_at(s.x), y_at(s.y), s.said) for s in raw]
    parts.append(_TEXT("axis utility", 2, 14, "start", up))
    parts.append(
        _TEXT(
            "axis private",
            frame.right,
            frame.bottom + 36,
            "end",
            f"{across}; more private \u2192" if flipped else across,
        )
    )
    told = "; ".join(s.said for own in lines.values() for s in own)
    whole = Markup('<svg class="plane" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return whole.format(width, height, told, Markup("").join(parts))


def _strips(rows: Sequence[Strip], asked: str, tall: int = 26) -> Markup:
    """Rows of cells, the darker the more records: a histogram per row."""
    parts, told, left = [], [], 16.0
    cell = Markup(
        '<rect class="{}" x="{}%" y="{}" width="{}%" height="{}" fill-opacity="{}"><title>{}</title></rect>'
    ).format
    text = Markup('<text class="tick" x="{}%" y="{}" text-anchor="{}">{}</text>').format
    for place, row in enumerate(rows):
        total, bins, top = max(sum(row.counts), 1), len(row.counts), place * (tall + 5)
        parts.append(text(left - 2, top + tall / 2 + 4, "end", row.name))
        for at, count in enumerate(row.counts):
            wide = (98 - left) / bins
            said = f"{row.name}: {percent(count / total)} % of records get {at * 100 / bins:.0f} to {(at + 1) * 100 / bins:.0f} %"
            parts.append(
                cell(
                    "dot",
                    round(left + at * wide, 2),
                    top,
                    round(wide - 0.25, 2),
                    tall,
                    round((count / total) ** 0.5, 3),
                    said,
                )
            )
        mean = sum(count * (at + 0.5) for at, count in enumerate(row.counts)) / total / bins
        told.append(f"{row.name}: on average {percent(mean)} %")
    floor = len(rows) * (tall + 5) + 12
    parts += [
        text(left + (98 - left) * at, floor, anchor, f"{at * 100:.0f} %")
        for at, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))
    ]
    parts.append(text(left, floor + 18, "start", f"probability given to: {asked}"))
    whole = Markup(
        '<svg class="histogram private" width="100%" height="{}" role="img" aria-label="{}">{}</svg>'
    )
    return whole.format(floor + 24, "; ".join(told), Markup("").join(parts))


def _ends(values: Sequence[float], room: float = 0.02) -> tuple[float, float]:
    """A scale around the values, at least a tenth wide.

    >>> _ends([0.5, 0.52])
    (0.46, 0.56)
    """
    low, high = min(values) - room, max(values) + room
    middle = (low + high) / 2
    return round(min(low, middle - 0.05), 6), round(max(high, middle + 0.05), 6)


def _tenths(low: float, high: float) -> list[float]:
    """
    >>> _tenths(0.46, 0.56), _tenths(0.0, 1.0)
    ([0.46, 0.48, 0.5, 0.52, 0.54, 0.56], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    """
    step = next(s for s in (2, 5, 10, 20) if (high - low) * 100 / s <= 6 or s == 20)
    first = -(-round(low * 100, 6) // step)
    return [t * step / 100 for t in range(int(first), int(round(high * 100, 6) // step) + 1)]
