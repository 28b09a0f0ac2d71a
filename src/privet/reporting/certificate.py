"""A certificate for people: its sentences, and the picture of what more or less noise would
give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

from markupsafe import Markup

from privet.evidence.certificate.gaussian import Certificate, sentence
from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit, Certified, Reading
from privet.evidence.formatting import amount, measured, percent
from privet.reporting.label_placement import shorten
from privet.reporting.plot import Axis, Plot, Point

# Certificates of one attribute by the number of releases that are seen.
ByReleases = dict[int, Certified]


def by_attribute(certificates: Sequence[Certified]) -> dict[str, ByReleases]:
    """In the order of the audit: the private attributes, then all of them at once; those with a
    word on one release."""
    attributes: dict[str, ByReleases] = {}
    for one in certificates:
        attributes.setdefault(one.attribute, {})[one.releases] = one
    return {name: releases for name, releases in attributes.items() if 1 in releases}


def bound_sentence(one: Certified) -> str:
    """The bound in one sentence; shares are rounded up.

    >>> known = 0.15, 0.55, 0.027, 0.99, (900, 900), 2, 0.4, 1, "smoothed"
    >>> bound_sentence(Certified("sex", ("f", "m"), 0.577, 0.6, (0.5, 0.5), *known))
    'No adversary can guess it with a balanced accuracy above 57.7 % (99 % confidence).'
    """
    if one.bound is None:
        return f"Not certified: {one.reason or 'no reason was kept'}."
    ranges = one.note.startswith("What is guessed is which range")
    what = f"which of {len(one.values)} ranges it lies in" if ranges else "it"
    bound = f"a balanced accuracy above {percent(one.bound, 'up')} %"
    return f"No adversary can guess {what} with {bound} ({100 * one.confidence:.10g} % confidence)."


def headline(audit: Audit, reading: Reading) -> str:
    """The second sentence about a private attribute; empty where it is not certified, which the
    section below says once. Where an attacker beat the certificate beyond chance, a proof's
    assumption does not hold here, and that is said."""
    one = by_attribute(audit.certificates).get(reading.attribute, {}).get(1)
    if one is None or one.bound is None or reading.role != "private":
        return ""
    text = bound_sentence(one)
    score = reading.worst.score if reading.released and not reading.is_number else None
    if score is None or not measured(score) or score.low <= one.bound:
        return text
    return (
        f"{text} But an attacker did better than that, so the certificate does not hold for this "
        "release: do not rely on it."
    )


def participant_sentence(one: Certified) -> str:
    """The certificate in plain words for participants, with what else is to be known."""
    text = sentence(Certificate(**{f.name: getattr(one, f.name) for f in fields(Certificate)}))
    return f"{text} {one.note}".strip()


def repeated_sentence(releases: ByReleases) -> str:
    """What several releases of the same record allow; empty where there is nothing to add.

    >>> known = 0.15, 0.55, 0.027, 0.99, (900, 900), 2, 0.4, 1, "smoothed"
    >>> one, four, many = (
    ...     Certified("sex", ("f", "m"), bound, 0.6, (0.5, 0.5), *known)
    ...     for bound in (0.5, 0.7, None)
    ... )
    >>> print(repeated_sentence({1: one, 4: four, 16: many}).replace(": ", ":\\n"))
    With several releases of the same record, each with fresh noise:
    4 releases, at most 70.0 %; 16 releases, not certified.
    """
    parts = [
        f"{number} releases, "
        + ("not certified" if one.bound is None else f"at most {percent(one.bound, 'up')} %")
        for number, one in sorted(releases.items())
        if number > 1
    ]
    if releases[1].bound is None or not parts:
        return ""
    head = "With several releases of the same record, each with fresh noise"
    return f"{head}: {'; '.join(parts)}."


def noise(one: Certified) -> float | None:
    """How strong the noise of a release is: its deviation; of symbols, the share that is
    replaced."""
    return one.sigma if one.flip is None else one.flip


def target_sentence(certification: Certification) -> str:
    """Whether noise chosen on other people did what it was chosen for; empty where none was
    chosen."""
    if certification.target is None:
        return ""
    noisy = [one for one in certification.certificates if noise(one) is not None][:1]
    what = f"Noise of {amount(noise(noisy[0]) if noisy else None)}"
    if noisy and noisy[0].flip is not None:
        what = f"Replacing {percent(noisy[0].flip)} % of the symbols"
    wanted = f"for a bound of {percent(certification.target)} %"
    text = f"{what} was chosen on the select part, {wanted}"
    if certification.met:
        return f"{text}: the test part meets it."
    return (
        f"{text}, and the test part does NOT meet it. The figures above are what holds; no other "
        "noise was tried on the test part."
    )


def noise_plot(
    certification: Certification, attribute: str, width: int = 720, height: int = 400
) -> Markup:
    """Noise across, right answers up: the certified bound falls with noise, and so does the use of
    the release."""
    lines = noise_lines(certification, attribute)
    chances = [chance for *_, chance in lines]
    lowest = min([*chances, *(point.y for _, _, line, _ in lines for point in line)])
    y = Axis(max(math.floor(10 * lowest - 0.2) / 10, -0.1), 1, "right answers, %", factor=100)
    x = _noise_axis(certification)
    plot = Plot(x, y, width, height, names=156 if width >= 600 else 106)
    plot.axes()
    for used in [n for n in map(noise, certification.certificates) if n is not None][:1]:
        if x.low <= used <= x.high:
            plot.level("overall", x=used, name="this release")
    for name, role, line, chance in lines:
        plot.level(f"chance {role}", y=chance)
        plot.line(line, role)
        last = line[-1]
        plot.name(last.x, last.y, shorten(name, 22 if width >= 600 else 15), f"note {role}")
    said = (f"{name}: {'; '.join(point.title for point in line)}." for name, _, line, _ in lines)
    return plot.svg(" ".join(said))


def _noise_axis(certification: Certification) -> Axis:
    sigmas = [step.sigma for step in certification.curve]
    if any(one.flip is not None for one in certification.certificates):
        return Axis(0.0, sigmas[-1], "share replaced at random", ticks=(0.0, 0.3, 0.6, 0.9))
    title = "noise: its standard deviation"
    return Axis(sigmas[0], sigmas[-1], title, scale=math.log, ticks=sigmas)


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
