"""Figures to plain sentences, never stronger than the figures.

A reader remembers "61 times in 100", so that is what is written; the ends of an interval are rounded outward, a number
that was not measured is called that, and "not distinguishable from guessing" is said only where `Figure.is_chance` holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from privet.evidence.figures import Audit, Figure, Reading, Rebuilt

UNKNOWN = "not measured"
"""Stands where a number is missing, infinite or not a number."""

_NOUNS = {"image": "pictures", "table": "rows", "text": "texts", "signal": "recordings"}

FEW = 0.1
"""An interval that reaches this far above chance cannot carry the words "not distinguishable" without a warning."""

Way = Literal["nearest", "down", "up"]


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def times(value: float, of: int = 100, way: Way = "nearest") -> str:
    """How often in `of` tries.

    >>> times(0.0123, of=1000), times(0.2899999, way="down"), times(0.29, way="down"), times(0.2901, way="up")
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
    tenths = math.floor(exact) if way == "down" else math.ceil(exact) if way == "up" else math.floor(exact + 0.5)
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


def records(audit: Audit) -> str:
    """What one record is called: pictures, rows, texts, recordings."""
    return _NOUNS.get(str(audit.data.get("modality")), "records")


def measured(figure: Figure) -> bool:
    return figure.n > 0 and all(is_number(v) for v in (figure.value, figure.low, figure.high))


def _often(figure: Figure, of: int) -> str:
    """'right 61 times in 100 (between 59 and 63)'."""
    count = times(figure.value, of)
    unit = "time" if count in ("1", "under 1") else "times"
    return f"right {count} {unit} in {of} (between {times(figure.low, of, 'down')} and {times(figure.high, of, 'up')})"


def _guessing(figure: Figure, of: int) -> str:
    count = times(figure.chance, of)
    return f"guessing is right {count} {'time' if count in ('1', 'under 1') else 'times'}"


def _not_more(figure: Figure, of: int) -> str:
    """'not distinguishable from guessing (50)', and a warning where the interval is too wide for that to comfort anyone."""
    text = f"not distinguishable from guessing ({times(figure.chance, of)})"
    if figure.high - figure.chance > FEW:
        rows = "1 record" if figure.n == 1 else f"{figure.n:,} records"
        text += f", but with {rows} tested it could also be {times(figure.high, of, 'up')}"
    return text


def private_sentence(reading: Reading, noun: str = "records") -> str:
    """What an attacker still reads, for anyone; the attribute's name is set before it.

    >>> from privet.evidence.figures import Finding
    >>> def found(v, source="released"):
    ...     figure = Figure(value=v, low=v - 0.0201, high=v + 0.019, n=2000, chance=0.5)
    ...     return Finding("mlp", source, v, figure, figure, None, 1.0)
    >>> beard = Reading("beard", "private", ("no", "yes"), (found(0.61),), (found(0.97, "raw"),), 0, 0)
    >>> print(private_sentence(beard, "pictures").replace("; ", ";\\n"))
    the only attacker is right 61 times in 100 (between 58 and 63);
    guessing is right 50 times;
    on the raw pictures it is right 97 times.
    >>> print(private_sentence(replace(beard, released=(found(0.51), found(0.5)), raw=())))
    the best of 2 attackers is right 51 times in 100 (between 48 and 53), not distinguishable from guessing (50).
    """
    if not reading.released:
        return "no attacker was run, so nothing is known about it."
    figure = reading.worst.balanced
    if not measured(figure):
        return "not measured, because there were too few test records with a label."
    of, tried = out_of(figure.chance), len(reading.released)
    text = f"the {'only attacker' if tried == 1 else f'best of {tried} attackers'} is {_often(figure, of)}"
    text += f", {_not_more(figure, of)}" if figure.is_chance else f"; {_guessing(figure, of)}"
    if reading.raw and measured(raw := reading.reference.balanced):
        if raw.is_chance:
            text += f"; on the raw {noun} nothing beyond guessing was found either ({times(raw.value, of)}), so nothing was hidden"
        else:
            text += f"; on the raw {noun} {'it' if tried == 1 else 'the best'} is right {times(raw.value, of)} times"
    return text + "."


def utility_sentence(reading: Reading) -> str:
    """What the release is still good for; the task's name is set before it."""
    if not reading.released:
        return "no model was trained on the release, so nothing is known about it."
    figure = reading.worst.balanced
    if not measured(figure):
        return "not measured, because there were too few test records with a label."
    of = out_of(figure.chance)
    text = f"a model trained on the release is {_often(figure, of)}"
    if figure.is_chance:
        text += f", {_not_more(figure, of)}"
    if reading.raw and measured(raw := reading.reference.balanced):
        text += f"; on raw data {times(raw.value, of)}"
    if not figure.is_chance:
        text += f"; {_guessing(figure, of)}"
    return text + "."


def sentence(reading: Reading, noun: str = "records") -> str:
    return private_sentence(reading, noun) if reading.role == "private" else utility_sentence(reading)


def score(reading: Reading) -> tuple[str, int] | None:
    """The one number to set large, and in how many tries it counts; None where there is none."""
    if not reading.released or not measured(figure := reading.worst.balanced):
        return None
    of = out_of(figure.chance)
    return times(figure.value, of).replace("over ", ">").replace("under ", "<"), of


def rebuilt_sentence(rebuilt: Rebuilt, noun: str = "records") -> str:
    """How close a decoder came, and what the number means.

    >>> rebuilt_sentence(Rebuilt("share of words rebuilt", 0.231, 400), "texts")
    'Share of words rebuilt: 23 in 100, over 400 test texts.'
    >>> print(rebuilt_sentence(Rebuilt("PSNR in dB", 14.21, 400), "pictures"))
    PSNR in dB: 14.2, over 400 test pictures. Higher is closer to the original; ordinary compressed pictures reach 30 to 50 dB.
    """
    measure = rebuilt.measure.strip()
    measure = measure[:1].upper() + measure[1:]
    over = f"over {rebuilt.n:,} test {noun}" if rebuilt.n != 1 else f"over 1 test record ({noun})"
    if rebuilt.n < 1 or not is_number(rebuilt.value):
        return f"{measure}: {UNKNOWN}."
    if measure.lower().startswith("psnr"):
        meaning = "Higher is closer to the original; ordinary compressed pictures reach 30 to 50 dB."
        return f"{measure}: {rebuilt.value:.1f}, {over}. {meaning}"
    if measure.lower().startswith("share"):
        if rebuilt.value < 0:  # variance explained can be negative: worse than the mean
            return f"{measure}: below 0, {over}: the decoder does worse than the same answer for every record."
        return f"{measure}: {times_in_100(rebuilt.value)} in 100, {over}."
    return f"{measure}: {number(float(rebuilt.value))}, {over}."


class InGame(NamedTuple):
    """The adversary inside the method's training beside the one that came after it, by the same measure."""

    attribute: str
    own: float
    measure: str
    n: object
    part: object
    after: Figure | None

    @property
    def mark(self) -> Figure | None:
        """The training's figure on the scale of the later one; it has no interval, so none is drawn."""
        return self.after and replace(self.after, value=self.own, low=self.own, high=self.own)


def in_game(audit: Audit) -> list[InGame]:
    """What the method's own adversary reached, where the card kept it."""
    kept = audit.release.get("in_game")
    found = []
    for attribute, figures in kept.items() if isinstance(kept, Mapping) else ():
        if not isinstance(figures, Mapping):
            continue
        key = next((k for k in ("balanced", "accuracy") if is_number(figures.get(k))), None)
        if key is None:
            continue
        reading = next((r for r in audit.private if r.attribute == attribute and r.released), None)
        after = getattr(reading.worst, key) if reading else None
        measure = "balanced accuracy" if key == "balanced" else "plain accuracy"
        after = after if after is not None and measured(after) else None
        found.append(InGame(str(attribute), float(figures[key]), measure, figures.get("n"), figures.get("part"), after))
    return found


def gap_sentence(game: InGame) -> str:
    """How far the method's own picture was from what came after.

    >>> gap_sentence(InGame("beard", 0.52, "balanced accuracy", 900, "select", Figure(0.61, 0.59, 0.63, 2000, 0.5)))
    "the method's own adversary is right 52 times in 100, the strongest one trained afterwards 61 times."
    """
    of = out_of(game.after.chance) if game.after else 100
    text = f"the method's own adversary is right {times(game.own, of)} times in {of}"
    if game.after is None:
        return f"{text}; {UNKNOWN} afterwards."
    return f"{text}, the strongest one trained afterwards {times(game.after.value, of)} times."


def learned_elsewhere(audit: Audit) -> str | None:
    """The data the release was learned on, where the card says that it was not the data of this audit."""
    card = audit.release.get("data")
    learned = card if isinstance(card, Mapping) else {}
    known = learned.get("fingerprint") and audit.data.get("fingerprint")
    return str(learned.get("name") or "other data") if known and learned["fingerprint"] != audit.data["fingerprint"] else None


def method(audit: Audit) -> str:
    """The method as its authors write it, where the card says so."""
    return str(audit.release.get("title") or audit.release.get("method") or "an unnamed method")


def called(audit: Audit, among: Sequence[Audit] = ()) -> str:
    """A short name that tells this audit from the others: the method, then what differs."""
    name = method(audit)
    rivals = [a for a in among if method(a) == name]
    mine = _settings(audit)
    differing = [k for k in mine if any(_settings(a).get(k) != mine[k] for a in rivals)]
    extra = [f"{k} {mine[k]}" for k in differing[:2]]
    if not extra and any(a.release.get("seed") != audit.release.get("seed") for a in rivals):
        extra = [f"seed {audit.release.get('seed')}"]
    return " ".join([name, *extra])


def _settings(audit: Audit) -> dict[str, Any]:
    settings = audit.release.get("settings")
    return dict(settings) if isinstance(settings, Mapping) else {}


def settings(audit: Audit) -> list[tuple[str, str]]:
    """
    >>> settings(Audit({"settings": {"budget": 0.9, "name": None}}, {}, "quick", (), None, (), 0.0))
    [('budget', '0.9'), ('name', 'none')]
    """
    return [(str(key), "none" if value is None else str(value)) for key, value in _settings(audit).items()]


def intervals(audit: Audit) -> str:
    """Which kinds of interval the page shows.

    A figure names its own, so a page that mixes kinds says so.
    """
    kinds = {f.balanced.interval for r in audit.readings for f in (*r.released, *r.raw)}
    return listed(sorted(kinds)) or "no"
