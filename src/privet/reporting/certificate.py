"""A certificate for people: its sentences, and the picture of what more or less noise would
give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import NamedTuple

from markupsafe import Markup

from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit, Certified, Reading
from privet.evidence.formatting import amount, is_number, listed, measured, out_of, percent, times
from privet.reporting.label_placement import Box, shorten

Own = dict[int, Certified]
"""Certificates of one attribute by the number of releases that are seen."""


def by_attribute(certificates: Sequence[Certified]) -> dict[str, Own]:
    """In the order of the audit: the private attributes, then all of them at once; those with a
    word on one release."""
    found: dict[str, Own] = {}
    for one in certificates:
        found.setdefault(one.attribute, {})[one.releases] = one
    return {name: own for name, own in found.items() if 1 in own}


def of(audit: Audit, attribute: str) -> Certified | None:
    """The certificate of an attribute where one release of a record is seen."""
    return next(
        (c for c in audit.certificates if c.attribute == attribute and c.releases == 1), None
    )


def short(one: Certified) -> str:
    """One sentence to stand beside what was found; shares are rounded up.

    >>> short(Certified("sex", ("f", "m"), 0.577, 0.6, (0.5, 0.5), 0.15, 0.55, 0.027, 0.99, (900, 900), 2, 0.4, 1, "smoothed"))
    'No adversary can be right more than 58 times in 100 (99 % confidence).'
    """
    if one.bound is None:
        return f"Not certified: {one.reason or 'no reason was kept'}."
    tries = out_of(one.chance)
    what = (
        f" about which of {len(one.values)} ranges it lies in"
        if one.note.startswith("What is guessed is which range")
        else ""
    )
    return f"No adversary can be right{what} more than {times(one.bound, tries, 'up')} times in {tries} ({sure(one)} confidence)."


def sure(one: Certified) -> str:
    """
    >>> sure(Certified("sex", (), None, None, (), None, 0, 0, 0.995, (), 2, 0.4, 1, "smoothed"))
    '99.5 %'
    """
    return f"{100 * one.confidence:.10g} %"


def headline(audit: Audit, reading: Reading) -> str:
    """The second sentence about a private attribute; empty where it is not certified, which the
    section below says once."""
    one = of(audit, reading.attribute) if reading.role == "private" else None
    return (
        ""
        if one is None or one.bound is None
        else " ".join(part for part in (short(one), doubt(reading, one)) if part)
    )


def doubt(reading: Reading | None, one: Certified) -> str:
    """What to say where an attacker beat the certificate beyond chance: then a proof's assumption
    does not hold here."""
    if reading is None or one.bound is None or reading.is_number or not reading.released:
        return ""
    found = reading.worst.score
    if not measured(found) or found.low <= one.bound:
        return ""
    return "But an attacker did better than that, so the certificate does not hold for this release: do not rely on it."


def long(one: Certified) -> str:
    """The certificate in plain words for participants, with what else is to be known."""
    from privet.evidence.certificate.gaussian import Certificate, sentence

    text = sentence(Certificate(**{f.name: getattr(one, f.name) for f in fields(Certificate)}))
    return f"{text} {one.note}".strip()


def repeated(own: Own) -> str:
    """What several releases of the same record allow; empty where there is nothing to add.

    >>> one = Certified("sex", ("f", "m"), 0.577, 0.6, (0.5, 0.5), 0.15, 0.55, 0.027, 0.99, (900, 900), 2, 0.4, 1, "smoothed")
    >>> from dataclasses import replace
    >>> repeated({1: one, 4: replace(one, bound=0.7, releases=4), 16: replace(one, bound=None, releases=16)})
    'Who sees 4 releases of the same record, each with fresh noise: at most 70 times in 100; 16 releases: not certified.'
    """
    if own[1].bound is None:
        return ""
    parts = []
    for k, one in sorted(own.items()):
        if k > 1:
            tries = out_of(one.chance)
            parts.append(
                (
                    k,
                    "not certified"
                    if one.bound is None
                    else f"at most {times(one.bound, tries, 'up')} times in {tries}",
                )
            )
    if not parts:
        return ""
    first, *rest = parts
    text = f"Who sees {first[0]} releases of the same record, each with fresh noise: {first[1]}"
    return "; ".join([text, *(f"{k} releases: {said}" for k, said in rest)]) + "."


def noise(one: Certified | None) -> float | None:
    """How strong the noise of a release is: its deviation; of symbols, the share that is
    replaced."""
    return None if one is None else one.sigma if one.flip is None else one.flip


def exactness(proved: Sequence[Certified]) -> str:
    """What the figures were computed from, for a footnote."""
    if all(one.flip is not None for one in proved):
        return (
            f"Computed from how often each of {proved[0].d} symbols occurs among people of each value, and from how often one is "
            "replaced at random: over a finite alphabet the best adversary's answers can be gone through one by one."
        )
    return "Computed for real numbers; releases are rounded to a grid, so that the last digits of stored numbers show nothing more."


def target_sentence(found: Certification) -> str:
    """Whether noise chosen on other people did what it was chosen for; empty where none was
    chosen."""
    if found.target is None:
        return ""
    own = next((c for c in found.certificates if noise(c) is not None), None)
    flip = None if own is None else own.flip
    what = (
        f"Noise of {amount(noise(own))}"
        if flip is None
        else f"Replacing {percent(flip)} % of the symbols"
    )
    text = f"{what} was chosen on the select part, for a bound of {percent(found.target)} %"
    if found.met:
        return f"{text}: the test part meets it."
    return f"{text}, and the test part does NOT meet it. The figures above are what holds; no other noise was tried on the test part."


class Line(NamedTuple):
    name: str
    role: str
    """private or utility."""
    points: list[tuple[float, float | None, str]]
    """Noise, share of right answers (None: not certified), and what to say when it is pointed
    at."""
    chance: float


def lines(found: Certification, attribute: str) -> list[Line]:
    """The certified bound of one attribute, and every task, along the noise levels."""
    one = next(c for c in found.certificates if c.attribute == attribute)
    bound: list[tuple[float, float | None, str]] = []
    for step in found.curve:
        most = step.bounds[attribute]
        bound.append(
            (
                step.sigma,
                most,
                "not certified" if most is None else f"at most {percent(most, 'up')} %",
            )
        )
    shown = [Line(f"{attribute}, at most", "private", bound, one.chance)]
    for task in found.curve[0].utility:
        figures = [(s.sigma, s.utility[task]) for s in found.curve]
        points: list[tuple[float, float | None, str]] = [
            (s, f.value, f"{percent(f.value)} %") for s, f in figures if measured(f)
        ]
        if points:
            shown.append(Line(task, "utility", points, figures[0][1].chance))
    return shown


def picture(found: Certification, attribute: str, width: int = 720, height: int = 400) -> Markup:
    """Noise across, right answers up: the certified bound falls with noise, and so does the use of
    the release."""
    shown = lines(found, attribute)
    sigmas = [s.sigma for s in found.curve]
    frame = Box(44, 40, width - (170 if width >= 600 else 120), height - 48)
    low = min(
        [
            *(line.chance for line in shown),
            *(v for line in shown for _, v, _ in line.points if v is not None),
        ]
    )
    low = max(math.floor(10 * low - 0.2) / 10, -0.1)

    replaced = any(c.flip is not None for c in found.certificates)

    def across(sigma: float) -> float:
        share = (
            sigma / sigmas[-1]
            if replaced
            else math.log(sigma / sigmas[0]) / (math.log(sigmas[-1] / sigmas[0]) or 1.0)
        )
        return round(frame.left + 10 + share * (frame.right - frame.left - 20), 1)

    def up(value: float) -> float:
        return round(
            frame.bottom
            - (min(max(value, low), 1.0) - low) / (1 - low) * (frame.bottom - frame.top),
            1,
        )

    rule = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format
    text = Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format
    parts: list[Markup] = []
    step = 1 if low > 0.35 else 2
    for tick in range(round(10 * low), 11):
        if tick % step == 0:
            parts.append(rule("grid", frame.left, frame.right, up(tick / 10), up(tick / 10)))
            parts.append(text("tick", frame.left - 9, up(tick / 10) + 4, "end", str(10 * tick)))
    ticks = [0.0, 0.3, 0.6, 0.9] if replaced else sigmas[:: 2 if width >= 600 else 4]
    parts += [text("tick", across(s), frame.bottom + 18, "middle", f"{s:.2g}") for s in ticks]
    own = next((noise(c) for c in found.certificates if noise(c) is not None), None)
    if own is not None and (0 if replaced else sigmas[0]) <= own <= sigmas[-1]:
        parts.append(rule("overall", across(own), across(own), frame.top, frame.bottom))
        parts.append(text("name release", across(own), frame.top - 8, "middle", "this release"))
    ends = _apart(
        [up(line.points[-1][1] if line.points[-1][1] is not None else 1.0) for line in shown],
        17,
        frame,
    )
    for line, end in zip(shown, ends, strict=True):
        parts.append(
            rule(f"chance {line.role}", frame.left, frame.right, up(line.chance), up(line.chance))
        )
        known = [(across(s), up(v)) for s, v, _ in line.points if v is not None]
        path = "M" + "L".join(f"{x} {y}" for x, y in known) if known else ""
        parts.append(Markup('<path class="curve {}" d="{}"/>').format(line.role, path))
        for s, v, said in line.points:
            dot = Markup('<circle class="{}" cx="{}" cy="{}" r="4.5"><title>{}</title></circle>')
            kind = f"{'ring' if v is None else 'dot'} {line.role}"
            parts.append(
                dot.format(
                    kind,
                    across(s),
                    up(1.0 if v is None else v),
                    f"noise {amount(s)}, {line.name}: {said}",
                )
            )
        parts.append(
            text(
                f"note {line.role}",
                frame.right + 2,
                round(end + 4, 1),
                "start",
                shorten(line.name, 22 if width >= 600 else 15),
            )
        )
    parts.append(text("axis", 2, 16, "start", "right answers, %"))
    parts.append(
        text(
            "axis",
            frame.right,
            height - 8,
            "end",
            "share replaced at random" if replaced else "noise: its standard deviation",
        )
    )
    whole = Markup('<svg class="plane" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return whole.format(width, height, _told(shown), Markup("").join(parts))


def _told(shown: Sequence[Line]) -> str:
    """The picture in words, for those who do not see it."""
    return " ".join(
        f"{line.name}: {'; '.join(f'noise {amount(s)} {said}' for s, _, said in line.points)}."
        for line in shown
    )


def _apart(places: Sequence[float], least: float, frame: Box) -> list[float]:
    """Heights for names, near their lines and not on each other.

    >>> _apart([50.0, 52.0, 90.0], 10, Box(0, 0, 100, 100))
    [50.0, 60.0, 90.0]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    found, last = dict.fromkeys(order, 0.0), frame.top - least
    for i in order:
        found[i] = last = max(places[i], last + least)
    over = max(last - frame.bottom, 0.0)
    return [found[i] - over for i in range(len(places))]


def bits(one: Certified) -> str:
    return "" if one.bits is None or not is_number(one.bits) else amount(one.bits, "up")


def people(one: Certified) -> str:
    """
    >>> people(Certified("sex", ("f", "m"), 0.5, 0.5, (), 0.1, 0.5, 0.1, 0.9, (900, 1200), 2, 0.4, 1, "smoothed"))
    '900 f and 1,200 m'
    """
    if len(one.values) > 4 or any("," in value for value in one.values):
        return f"{sum(one.people):,} people, {len(one.values)} values or combinations of them"
    return listed([f"{n:,} {value}" for n, value in zip(one.people, one.values, strict=False)])
