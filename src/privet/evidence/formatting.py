"""Numbers as people read them: rounded, intervals outward, and what is missing is called
missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from privet.evidence.figures import Figure

# Stands where a number is missing, infinite or not a number.
UNKNOWN = "not measured"

Way = Literal["nearest", "down", "up"]


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def times(value: float, of: int = 100, way: Way = "nearest") -> str:
    """How often in `of` tries.

    >>> times(0.0123, of=1000), times(0.2899999, way="down"), times(0.29, way="down"), times(
    ...     0.2901, way="up"
    ... )
    ('12', '28', '29', '30')
    >>> times(0.9973), times(0.0001), times(1.0), times(float("nan"))
    ('over 99', 'under 1', '100', 'not measured')
    """
    if not is_number(value):
        return UNKNOWN
    exact = round(min(max(value, 0.0), 1.0) * of, 7)  # 0.29 * 100 is 28.999999999999996
    if way == "down":
        return str(math.floor(exact))
    if way == "up":
        return str(math.ceil(exact))
    if of - 0.5 <= exact < of:
        return f"over {of - 1}"
    if 0 < exact < 0.5:
        return "under 1"
    return str(math.floor(exact + 0.5))


def times_in_100(value: float, way: Way = "nearest") -> str:
    """
    >>> times_in_100(0.5873), times_in_100(0.5873, "down"), times_in_100(0.5873, "up")
    ('59', '58', '59')
    """
    return times(value, 100, way)


def out_of(chance: float) -> int:
    """In how many tries to count, so that guessing among many values is still a whole number.

    >>> out_of(0.5), out_of(1 / 200), out_of(1 / 5000)
    (100, 1000, 10000)
    """
    if not is_number(chance) or chance >= 0.02:
        return 100
    return 1000 if chance >= 0.002 else 10000


def percent(value: float, way: Way = "nearest") -> str:
    """For tables: one decimal, without the sign.

    >>> percent(0.6119), percent(0.6119, "down"), percent(0.6112, "up"), percent(float("nan"))
    ('61.2', '61.1', '61.2', 'not measured')
    """
    if not is_number(value):
        return UNKNOWN
    exact = round(value * 1000, 7)
    tenths = (
        math.floor(exact)
        if way == "down"
        else math.ceil(exact)
        if way == "up"
        else math.floor(exact + 0.5)
    )
    return f"{tenths / 10:.1f}"


def between(figure: Figure) -> str:
    """The interval for tables, rounded outward.

    >>> between(Figure(value=0.6, low=0.5911, high=0.6301, n=9, chance=0.5))
    '59.1 to 63.1'
    """
    if not (is_number(figure.low) and is_number(figure.high)):
        return UNKNOWN
    return f"{percent(figure.low, 'down')} to {percent(figure.high, 'up')}"


def number(value: object, digits: int = 2) -> str:
    """
    >>> number(0.6449), number(12345), number(None), number(float("inf")), number("many")
    ('0.64', '12,345', 'not measured', 'not measured', 'many')
    """
    if isinstance(value, str):
        return value
    if value is None or not is_number(value):
        return UNKNOWN
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def duration(seconds: float) -> str:
    """
    >>> duration(3.21), duration(252), duration(7384), duration(float("nan"))
    ('3.2 s', '4 min 12 s', '2 h 3 min', 'not measured')
    """
    if not is_number(seconds):
        return UNKNOWN
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def listed(names: Sequence[str], most: int = 6) -> str:
    """
    >>> listed(["beard"]), listed(["beard", "age"]), listed("abcdefgh", most=3)
    ('beard', 'beard and age', 'a, b, c and 5 more')
    """
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(part for part in (", ".join(names[:-1]), "".join(names[-1:])) if part)


def empty(figure: Figure) -> bool:
    """Whether there was nothing to count: no records, or only one value among them, so that
    anything is possible."""
    return figure.n < 1 or figure.interval == "the whole range"


def measured(figure: Figure) -> bool:
    """
    >>> measured(Figure(0.5, 0.4, 0.6, 90, 0.5)), measured(
    ...     Figure(0.5, 0.0, 1.0, 90, 0.5, interval="the whole range")
    ... )
    (True, False)
    """
    return not empty(figure) and all(is_number(v) for v in (figure.value, figure.low, figure.high))


def amount(value: object, way: Way = "nearest", like: float | None = None) -> str:
    """A number of any size, three digits of it; an end of an interval takes as many decimals as its
    middle (`like`).

    >>> amount(7.1249), amount(0.03127), amount(1234.5), amount(0.0), amount(7.1249, "up"), amount(
    ...     0.5, like=7.1249
    ... )
    ('7.12', '0.0313', '1,235', '0', '7.13', '0.50')
    """
    if not isinstance(value, int | float) or not is_number(value):
        return UNKNOWN
    size = abs(value if like is None else like)
    digits = min(max(2 - math.floor(math.log10(size)), 0), 6) if is_number(size) and size > 0 else 0
    exact = round(value * 10**digits, 7)
    whole = (
        math.floor(exact)
        if way == "down"
        else math.ceil(exact)
        if way == "up"
        else math.floor(exact + 0.5)
    )
    return f"{whole / 10**digits + 0.0:,.{digits}f}"


def explained(value: float, way: Way = "nearest") -> str:
    """A share of variance: the mean of everyone explains none of it, and a guess that is worse than
    the mean no less.

    >>> explained(0.314), explained(-0.02), explained(0.003), explained(float("nan"))
    ('31 %', 'none', 'under 1 %', 'not measured')
    """
    if not is_number(value):
        return UNKNOWN
    return f"{times_in_100(value, way)} %" if value > 0 else "none"


def above(figure: Figure) -> float:
    """How far above chance, as a share of the way from chance to never wrong: for putting different
    attributes in order.

    >>> above(Figure(0.75, 0.7, 0.8, 100, 0.5)), above(Figure(0.4, 0.3, 0.5, 100, 0.2)), above(
    ...     Figure(0.9, 0, 1, 0, 0.5)
    ... )
    (0.5, 0.25, -inf)
    """
    if not measured(figure) or not is_number(figure.chance):
        return -math.inf
    return round((figure.value - figure.chance) / max(1 - figure.chance, 1e-9), 12)
