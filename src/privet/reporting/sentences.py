"""Figures to plain sentences, never stronger than the figures.

A reader remembers "61 times in 100", so that is what is written; the ends of an interval are
rounded outward, a number that was not measured is called that, and "not distinguishable from
guessing" is said only where `Figure.is_chance` holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from privet.evidence.figures import Audit, Figure, Finding, Reading, Rebuilt
from privet.evidence.formatting import (
    UNKNOWN,
    amount,
    explained,
    is_number,
    listed,
    measured,
    out_of,
    times,
)

_NOUNS = {"image": "pictures", "table": "rows", "text": "texts", "signal": "recordings"}

# An interval that reaches this far above chance cannot carry the words "not distinguishable"
# without a warning.
FEW = 0.1

# Tasks whose label alone is set beside the attacker; more would drown the sentence.
MOST_BASELINES = 3

TOO_FEW = "not measured, because too few test records have a label, or all have the same."


def records(audit: Audit) -> str:
    """What one record is called: pictures, rows, texts, recordings."""
    return _NOUNS.get(str(audit.data.get("modality")), "records")


def _explains(figure: Figure) -> bool:
    """Whether it is a share of variance explained, of which guessing explains none, and not a share
    of right answers."""
    return figure.chance <= 0


def short(figure: Figure, value: float | None = None) -> str:
    """The figure, or another value of its kind, in two words: '61 times', '31 %'.

    >>> short(Figure(0.57, 0.5, 0.6, 90, 0.5)), short(Figure(0.57, 0.5, 0.6, 90, 0.5), 0.001)
    ('57 times', 'under 1 time')
    """
    value = figure.value if value is None else value
    if _explains(figure):
        return explained(value)
    count = times(value, out_of(figure.chance))
    return f"{count} {'time' if count in ('1', 'under 1') else 'times'}"


def in_tries(figure: Figure) -> str:
    """'61 times in 100', '31 % explained'."""
    of = "explained" if _explains(figure) else f"in {out_of(figure.chance)}"
    return f"{short(figure)} {of}"


def does(figure: Figure) -> str:
    """'is right 61 times in 100 (between 59 and 63)', 'explains 31 % of the differences between
    people (between 27 and 35)'."""
    of = out_of(figure.chance) if not _explains(figure) else 100
    low, high = times(figure.low, of, "down"), times(figure.high, of, "up")
    if not _explains(figure):
        return f"is right {in_tries(figure)} (between {low} and {high})"
    ends = f"none and {high} %" if figure.low <= 0 else f"{low} and {high}"
    text = f"explains {explained(figure.value)} of the differences between people"
    return text if figure.high <= 0 else f"{text} (between {ends})"


def does_short(figure: Figure) -> str:
    """'is right 61 times', 'explains 31 %'."""
    return f"{'explains' if _explains(figure) else 'is right'} {short(figure)}"


def guessing(figure: Figure) -> str:
    """'; guessing is right 50 times', or ', not distinguishable from guessing (50)' with a warning
    where the interval is too wide for that to comfort anyone."""
    blind = "explains none" if _explains(figure) else f"is right {short(figure, figure.chance)}"
    if not figure.is_chance:
        return f"; guessing {blind}"
    of = out_of(figure.chance)
    share = ", which explains none" if _explains(figure) else f" ({times(figure.chance, of)})"
    text = f", not distinguishable from guessing{share}"
    if figure.high - figure.chance <= FEW:
        return text
    rows = "1 record" if figure.n == 1 else f"{figure.n:,} records"
    end = explained(figure.high, "up") if _explains(figure) else times(figure.high, of, "up")
    # People count there, however many records they have.
    whose = " of few people" if "over people" in figure.interval else ""
    return f"{text}, but with {rows}{whose} tested it could also be {end}"


def _miss(finding: Finding) -> str:
    """How far a guessed number is from the true one, and the best guess without any data."""
    if not _explains(finding.score) or not measured(finding.plain):
        return ""
    blind = finding.plain.chance
    also = f", guessing by {amount(blind)}" if is_number(blind) else ""
    return f"; it misses by {amount(finding.plain.value)} on average{also}"


def private_sentence(reading: Reading, noun: str = "records") -> str:
    """What an attacker still reads, for anyone; the attribute's name is set before it.

    >>> def found(v, source="released"):
    ...     figure = Figure(value=v, low=v - 0.0201, high=v + 0.019, n=2000, chance=0.5)
    ...     return Finding("mlp", source, v, figure, figure, None, 1.0)
    >>> released, raw = (found(0.61),), (found(0.97, "raw"),)
    >>> beard = Reading("beard", "private", ("no", "yes"), released, raw, 0, 0)
    >>> print(private_sentence(beard, "pictures").replace("; ", ";\\n"))
    the only attacker is right 61 times in 100 (between 58 and 63);
    guessing is right 50 times;
    on the raw pictures it is right 97 times.
    >>> text = private_sentence(replace(beard, released=(found(0.51),), raw=()))
    >>> print(text.replace("from ", "from\\n"))
    the only attacker is right 51 times in 100 (between 48 and 53), not distinguishable from
    guessing (50).

    >>> miss = Figure(7.12, 6.8, 7.4, 2000, 9.81, unit="years", measure="mean absolute error")
    >>> share = Figure(0.31, 0.275, 0.349, 2000, 0.0)
    >>> released = (replace(found(0.3), score=share, plain=miss),)
    >>> age = Reading("age", "private", (), released, (), 0, 0)
    >>> print(private_sentence(age).replace("; ", ";\\n"))
    the only attacker explains 31 % of the differences between people (between 27 and 35);
    guessing explains none;
    it misses by 7.12 on average, guessing by 9.81.
    """
    if not reading.released:
        return "no attacker was run, so nothing is known about it."
    figure, tried = reading.worst.score, len(reading.released)
    if not measured(figure):
        return TOO_FEW
    who = "only attacker" if tried == 1 else f"best of {tried} attackers"
    text = f"the {who} {does(figure)}{guessing(figure)}{_miss(reading.worst)}"
    if not reading.raw or not measured(raw := reading.reference.score):
        return f"{text}."
    said = f"{'it' if tried == 1 else 'the best'} {does_short(raw)}"
    if raw.is_chance:
        share = short(raw).partition(" time")[0]
        said = f"nothing beyond guessing was found either ({share}), so nothing was hidden"
    return f"{text}; on the raw {noun} {said}."


def utility_sentence(reading: Reading) -> str:
    """What the release is still good for; the task's name is set before it."""
    if not reading.released:
        return "no model was trained on the release, so nothing is known about it."
    figure = reading.worst.score
    if not measured(figure):
        return TOO_FEW
    text = f"a model trained on the release {does(figure)}{guessing(figure)}{_miss(reading.worst)}"
    if not reading.raw or not measured(reading.reference.score):
        return f"{text}."
    return f"{text}; on raw data it {does_short(reading.reference.score)}."


def sentence(reading: Reading, noun: str = "records") -> str:
    return (
        utility_sentence(reading) if reading.role == "utility" else private_sentence(reading, noun)
    )


def baseline_sentence(reading: Reading) -> str:
    """What is known to those who never see the release, only the label of a task; empty where
    nothing was measured.

    >>> task = {"task smiling": Figure(0.571, 0.55, 0.59, 2000, 0.5)}
    >>> baseline_sentence(Reading("beard", "private", ("no", "yes"), (), (), 0, 0, baselines=task))
    'Knowing only smiling is right 57 times.'
    """
    tasks = {k.removeprefix("task "): f for k, f in reading.baselines.items() if k[:5] == "task "}
    known = sorted(
        ((name, f) for name, f in tasks.items() if measured(f)), key=lambda pair: -pair[1].value
    )
    parts = [f"knowing only {name} {does_short(f)}" for name, f in known]
    text = "; ".join(parts[:MOST_BASELINES])
    return f"K{text[1:]}." if text else ""


def other_sentence(finding: Finding, noun: str = "records") -> str:
    """What was read in another way than from one released record.

    >>> figure = Figure(0.83, 0.8111, 0.849, 2000, 0.5)
    >>> often = Finding("mlp", "averaged", 0.8, figure, figure, None, 1.0, releases=16)
    >>> other_sentence(often)
    'From the average of 16 releases of the same record: right 83 times in 100 (between 81 and 85).'
    """
    ways = {
        "averaged": f"the average of {finding.releases:,} releases of the same record",
        "rebuilt": f"rebuilt {noun}",
        "raw": f"raw {noun}",
    }
    said = does(finding.score).removeprefix("is ") if measured(finding.score) else UNKNOWN
    return f"From {ways.get(finding.source, 'one release')}: {said}."


def louder(reading: Reading, noun: str = "records") -> list[str]:
    """The other ways that beat the headline beyond doubt: a headline that left them out would
    comfort falsely."""
    if not reading.released or not measured(reading.worst.score):
        return []
    beaten = [
        f for f in reading.others if measured(f.score) and f.score.low > reading.worst.score.high
    ]
    return [other_sentence(f, noun) for f in beaten]


def score(reading: Reading) -> tuple[str, str] | None:
    """The one number to set large, and what it counts; None where there is none."""
    if not reading.released or not measured(figure := reading.worst.score):
        return None
    of = 100 if reading.is_number else out_of(figure.chance)
    big = times(figure.value, of).replace("over ", ">").replace("under ", "<")
    return (f"{big} %", "explained") if reading.is_number else (big, f"in {of}")


def in_game_share(card: Mapping[str, Any], attribute: str) -> tuple[str, float] | None:
    """What the method's own adversary reached, where the card says so: the measure's key and the
    share, balanced accuracy where there is one."""
    known = card.get("in_game")
    figures = known.get(attribute) if isinstance(known, Mapping) else None
    for key in ("balanced", "accuracy"):
        if isinstance(figures, Mapping) and is_number(figures.get(key)):
            return key, float(figures[key])
    return None


def in_game(
    audit: Audit,
) -> list[tuple[str, float, dict[str, Any], Figure | None, Figure | None]]:
    """Of every attribute that the card has it of: its name, the share of right answers of the
    adversary inside the method's training, what else the card says about that, the same as a figure
    without an interval, and the figure of the strongest adversary trained afterwards by the same
    measure."""
    shown = []
    figures = audit.release.get("in_game")
    for attribute, about in figures.items() if isinstance(figures, Mapping) else ():
        if (known := in_game_share(audit.release, attribute)) is not None:
            key, share = known
            read = [r for r in audit.private if r.attribute == attribute and r.released]
            worst = [reading.worst for reading in read if not reading.is_number]
            scores = (one.score if key == "balanced" else one.plain for one in worst)
            after = next(filter(measured, scores), None)
            mark = after and replace(after, value=share, low=share, high=share)
            shown.append((str(attribute), share, {**about, "measure": key}, mark, after))
    return shown


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


def intervals(audit: Audit) -> str:
    """Which kinds of interval the page shows.

    A figure names its own, so a page that mixes kinds says so.
    """
    kinds = {f.score.interval for r in audit.readings for f in (*r.released, *r.raw)} - {""}
    return listed(sorted(kinds)) or "no"


def inversion_sentences(found: Sequence[Rebuilt]) -> list[str]:
    """Which words were read from embeddings, in a sentence for each attack that tried."""
    return [
        f"{one.decoder[0].upper()}{one.decoder[1:]}: told with an F1 of {f1.value:.3f} "
        f"({f1.low:.3f} to {f1.high:.3f}); the same words for every text give {f1.chance:.3f}."
        for one in found
        if (f1 := one.figures.get("f1_words")) is not None
    ]
