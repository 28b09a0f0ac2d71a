"""Pictures of a certificate: what more or less noise would give, and what holds at every prior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from privet.evidence.certificate.values import Certification
from privet.evidence.figures import AllPriors, PriorPoint
from privet.evidence.formatting import amount, measured, percent
from privet.reporting.certificate import noise
from privet.reporting.label_placement import shorten
from privet.reporting.plot import Axis, Plot, Point


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


def roc_plot(priors: AllPriors, width: int = 400, height: int = 340) -> Markup:
    """False positives across, at most so many true positives up; the diagonal is guessing.

    Between two points holds what holds at the right one: a line between them would lie below what
    is certified.
    """
    points = sorted(priors.roc, key=lambda point: point.at)
    ends = [*points, PriorPoint(1.0, 1.0)]
    steps = [(0.0, ends[0].bound), (ends[0].at, ends[0].bound)]
    for left, right in pairwise(ends):
        steps += [(left.at, right.bound), (right.at, right.bound)]
    plot = _at_most("false positives, %", "true positives, at most, %", 0.0, width, height)
    plot.segment("chance", (0, 1), (0, 1))
    plot.name(0.7, 0.7, "guessing", "note")
    return _stepped(plot, points, steps)


def posterior_plot(priors: AllPriors, width: int = 400, height: int = 340) -> Markup:
    """Probability of a value after a release across, at most so many releases up. Between two
    points holds what holds at the left one."""
    points = sorted(priors.posterior, key=lambda point: point.at)
    steps: list[tuple[float, float]] = []
    for left, right in pairwise([*points, PriorPoint(1.0, points[-1].bound)] if points else []):
        steps += [(left.at, left.bound), (right.at, left.bound)]
    low = points[0].at if points else 0.5
    across = "probability of the value afterwards, %"
    return _stepped(_at_most(across, "releases, at most, %", low, width, height), points, steps)


def _at_most(across: str, up: str, low: float, width: int, height: int) -> Plot:
    x, y = Axis(low, 1, across, factor=100), Axis(0, 1, up, factor=100)
    plot = Plot(x, y, width, height)
    plot.axes(5)
    return plot


def _stepped(
    plot: Plot, points: Sequence[PriorPoint], steps: Sequence[tuple[float, float]]
) -> Markup:
    titles = [f"at {percent(p.at)} % at most {percent(p.bound, 'up')} %" for p in points]
    with plot.group(css="private"):
        if steps:
            plot.path("curve", steps)
        for point, title in zip(points, titles, strict=True):
            plot.point("dot", point.at, point.bound, title, radius=2.5)
    return plot.svg("; ".join(titles))
