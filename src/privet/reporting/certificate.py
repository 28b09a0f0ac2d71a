"""A certificate for people: its sentences, and the picture of what more or less noise would
give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

from markupsafe import Markup

from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit, Certified, Reading
from privet.evidence.formatting import amount, is_number, listed, measured, out_of, percent, times
from privet.reporting.label_placement import shorten
from privet.reporting.plot import Axis, Plot, Point

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


def noise_plot(
    certification: Certification, attribute: str, width: int = 720, height: int = 400
) -> Markup:
    """Noise across, right answers up: the certified bound falls with noise, and so does the use of
    the release."""
    lines = noise_lines(certification, attribute)
    sigmas = [step.sigma for step in certification.curve]
    lowest = min([*(chance for *_, chance in lines), *(p.y for *_, line, _ in lines for p in line)])
    y = Axis(max(math.floor(10 * lowest - 0.2) / 10, -0.1), 1, "right answers, %", factor=100)
    if any(one.flip is not None for one in certification.certificates):
        x = Axis(0.0, sigmas[-1], "share replaced at random", ticks=(0.0, 0.3, 0.6, 0.9))
    else:
        title = "noise: its standard deviation"
        x = Axis(sigmas[0], sigmas[-1], title, scale=math.log, ticks=sigmas)
    plot = Plot(x, y, width, height, names=156 if width >= 600 else 106)
    plot.axes()
    used = next((n for one in certification.certificates if (n := noise(one)) is not None), None)
    if used is not None and x.low <= used <= x.high:
        plot.level("overall", x=used, name="this release")
    for name, role, line, chance in lines:
        plot.level(f"chance {role}", y=chance)
        plot.line(line, role)
        last = line[-1]
        plot.name(last.x, last.y, shorten(name, 22 if width >= 600 else 15), f"note {role}")
    said = (f"{name}: {'; '.join(point.title for point in line)}." for name, _, line, _ in lines)
    return plot.svg(" ".join(said))


def noise_lines(
    certification: Certification, attribute: str
) -> list[tuple[str, str, list[Point], float]]:
    """Name, role, points and chance of every line: the certified bound of one attribute, hollow at
    the top where nothing is certified, and every task that was measured."""
    one = next(c for c in certification.certificates if c.attribute == attribute)
    bounds = []
    for step in certification.curve:
        most = step.bounds[attribute]
        said = "not certified" if most is None else f"at most {percent(most, 'up')} %"
        title = f"noise {amount(step.sigma)} {said}"
        bounds.append(Point(step.sigma, 1.0 if most is None else most, title, hollow=most is None))
    lines = [(f"{attribute}, at most", "private", bounds, one.chance)]
    for task, first in certification.curve[0].utility.items():
        points = [
            Point(s.sigma, f.value, f"noise {amount(s.sigma)} {percent(f.value)} %", f.low, f.high)
            for s in certification.curve
            if measured(f := s.utility[task])
        ]
        if points:
            lines.append((task, "utility", points, first.chance))
    return lines


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
