"""Figures to plain sentences, never stronger than the figures.

A reader remembers "61 times in 100", so that is what is written; the ends of an interval are
rounded outward, a number that was not measured is called that, and "not distinguishable from
guessing" is said only where `Figure.is_chance` holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

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

FEW = 0.1
"""An interval that reaches this far above chance cannot carry the words "not distinguishable"
without a warning."""

MOST_BASELINES = 3
"""Tasks whose label alone is set beside the attacker; more would drown the sentence."""

TOO_FEW = "not measured, because too few test records have a label, or all have the same."


def records(audit: Audit) -> str:
    """What one record is called: pictures, rows, texts, recordings."""
    return _NOUNS.get(str(audit.data.get("modality")), "records")


def _so_many(count: str) -> str:
    """
    >>> _so_many("57"), _so_many("under 1")
    ('57 times', 'under 1 time')
    """
    return f"{count} {'time' if count in ('1', 'under 1') else 'times'}"


def does(reading: Reading, figure: Figure) -> str:
    """'is right 61 times in 100 (between 59 and 63)', 'explains 31 % of the differences between
    people (between 27 and 35)'."""
    if not reading.is_number:
        of = out_of(figure.chance)
        between = f"between {times(figure.low, of, 'down')} and {times(figure.high, of, 'up')}"
        return f"is right {_so_many(times(figure.value, of))} in {of} ({between})"
    text = f"explains {explained(figure.value)} of the differences between people"
    if figure.high <= 0:
        return text
    if figure.low <= 0:
        return f"{text} (between none and {explained(figure.high, 'up')})"
    return f"{text} (between {times(figure.low, way='down')} and {times(figure.high, way='up')})"


def short(reading: Reading, figure: Figure) -> str:
    """The same in two words: '61 times', '31 %'."""
    return (
        explained(figure.value)
        if reading.is_number
        else _so_many(times(figure.value, out_of(figure.chance)))
    )


def in_tries(reading: Reading, figure: Figure) -> str:
    """'61 times in 100', '31 % explained'."""
    return f"{short(reading, figure)} {'explained' if reading.is_number else f'in {out_of(figure.chance)}'}"


def _does_short(reading: Reading, figure: Figure) -> str:
    return f"{'explains' if reading.is_number else 'is right'} {short(reading, figure)}"


def _guessing(reading: Reading, figure: Figure) -> str:
    return (
        "guessing explains none"
        if reading.is_number
        else f"guessing is right {_so_many(times(figure.chance, out_of(figure.chance)))}"
    )


def _not_more(reading: Reading, figure: Figure) -> str:
    """'not distinguishable from guessing (50)', and a warning where the interval is too wide for
    that to comfort anyone."""
    of = out_of(figure.chance)
    text = "not distinguishable from guessing" + (
        ", which explains none" if reading.is_number else f" ({times(figure.chance, of)})"
    )
    if figure.high - figure.chance > FEW:
        rows = "1 record" if figure.n == 1 else f"{figure.n:,} records"
        end = explained(figure.high, "up") if reading.is_number else times(figure.high, of, "up")
        whose = (
            " of few people" if "over people" in figure.interval else ""
        )  # people count there, however many records they have
        text += f", but with {rows}{whose} tested it could also be {end}"
    return text


def _miss(reading: Reading, finding: Finding) -> str:
    """How far a guessed number is from the true one, beside the best guess without any data."""
    if not reading.is_number or not measured(finding.plain):
        return ""
    text = f"; it misses by {amount(finding.plain.value)} on average"
    return text + (
        f", guessing by {amount(finding.plain.chance)}" if is_number(finding.plain.chance) else ""
    )


def private_sentence(reading: Reading, noun: str = "records") -> str:
    """What an attacker still reads, for anyone; the attribute's name is set before it.

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

    >>> miss = Figure(7.12, 6.8, 7.4, 2000, 9.81, unit="years", measure="mean absolute error")
    >>> age = Finding("mlp", "released", 0.3, Figure(0.31, 0.275, 0.349, 2000, 0.0), miss, None, 1.0)
    >>> print(private_sentence(Reading("age", "private", (), (age,), (), 0, 0)).replace("; ", ";\\n"))
    the only attacker explains 31 % of the differences between people (between 27 and 35);
    guessing explains none;
    it misses by 7.12 on average, guessing by 9.81.
    """
    if not reading.released:
        return "no attacker was run, so nothing is known about it."
    figure, tried = reading.worst.score, len(reading.released)
    if not measured(figure):
        return TOO_FEW
    text = f"the {'only attacker' if tried == 1 else f'best of {tried} attackers'} {does(reading, figure)}"
    text += (
        f", {_not_more(reading, figure)}" if figure.is_chance else f"; {_guessing(reading, figure)}"
    )
    text += _miss(reading, reading.worst)
    if reading.raw and measured(raw := reading.reference.score):
        if raw.is_chance:
            found = (
                explained(raw.value)
                if reading.is_number
                else times(raw.value, out_of(figure.chance))
            )
            text += f"; on the raw {noun} nothing beyond guessing was found either ({found}), so nothing was hidden"
        else:
            text += f"; on the raw {noun} {'it' if tried == 1 else 'the best'} {_does_short(reading, raw)}"
    return text + "."


def utility_sentence(reading: Reading) -> str:
    """What the release is still good for; the task's name is set before it."""
    if not reading.released:
        return "no model was trained on the release, so nothing is known about it."
    figure = reading.worst.score
    if not measured(figure):
        return TOO_FEW
    text = f"a model trained on the release {does(reading, figure)}"
    if figure.is_chance:
        text += f", {_not_more(reading, figure)}"
    if reading.raw and measured(raw := reading.reference.score):
        text += f"; on raw data {explained(raw.value) if reading.is_number else times(raw.value, out_of(figure.chance))}"
    if not figure.is_chance:
        text += f"; {_guessing(reading, figure)}"
    return text + _miss(reading, reading.worst) + "."


def sentence(reading: Reading, noun: str = "records") -> str:
    return (
        utility_sentence(reading) if reading.role == "utility" else private_sentence(reading, noun)
    )


def baseline_sentence(reading: Reading) -> str:
    """What is known to those who never see the release, only the label of a task; empty where
    nothing was measured.

    >>> task = {"task smiling": Figure(0.571, 0.55, 0.59, 2000, 0.5), "prior": Figure(0.5, 0.5, 0.5, 2000, 0.5)}
    >>> baseline_sentence(Reading("beard", "private", ("no", "yes"), (), (), 0, 0, baselines=task))
    'Knowing only smiling is right 57 times.'
    """
    known = [
        (key.removeprefix("task "), f)
        for key, f in reading.baselines.items()
        if key.startswith("task ") and measured(f)
    ]
    known.sort(key=lambda pair: -pair[1].value)
    parts = [
        f"{'Knowing' if i == 0 else 'knowing'} only {name} {_does_short(reading, f)}"
        for i, (name, f) in enumerate(known)
    ]
    return "; ".join(parts[:MOST_BASELINES]) + "." if parts else ""


def other_sentence(reading: Reading, finding: Finding, noun: str = "records") -> str:
    """What was read in another way than from one released record.

    >>> figure = Figure(0.83, 0.8111, 0.849, 2000, 0.5)
    >>> often = Finding("mlp", "averaged", 0.8, figure, figure, None, 1.0, releases=16)
    >>> other_sentence(Reading("beard", "private", ("no", "yes"), (), (), 0, 0), often)
    'From the average of 16 releases of the same record: right 83 times in 100 (between 81 and 85).'
    """
    ways = {
        "averaged": f"the average of {finding.releases:,} releases of the same record",
        "rebuilt": f"rebuilt {noun}",
        "raw": f"raw {noun}",
    }
    found = does(reading, finding.score).removeprefix("is ") if measured(finding.score) else UNKNOWN
    return f"From {ways.get(finding.source, 'one release')}: {found}."


def louder(reading: Reading, noun: str = "records") -> list[str]:
    """The other ways that beat the headline beyond doubt: a headline that left them out would
    comfort falsely."""
    if not reading.released or not measured(reading.worst.score):
        return []
    beaten = [
        f for f in reading.others if measured(f.score) and f.score.low > reading.worst.score.high
    ]
    return [other_sentence(reading, f, noun) for f in beaten]


def highest_sentence(reading: Reading) -> str:
    """The highest figure of a table, with an interval that counts how many there were to pick it
    from."""
    figure = reading.evidence.get("highest_of_all")
    if figure is None or not measured(figure) or len(reading.released) < 2:
        return ""
    found = does(reading, figure).removeprefix("is ")
    return f"The highest on the test part, with a wider interval because it was picked for being the highest: {found}."


def score(reading: Reading) -> tuple[str, str] | None:
    """The one number to set large, and what it counts; None where there is none."""
    if not reading.released or not measured(figure := reading.worst.score):
        return None
    of = 100 if reading.is_number else out_of(figure.chance)
    big = times(figure.value, of).replace("over ", ">").replace("under ", "<")
    return (f"{big} %", "explained") if reading.is_number else (big, f"in {of}")


class InGame(NamedTuple):
    """The adversary inside the method's training beside the one that came after it, by the same
    measure."""

    attribute: str
    own: float
    measure: str
    n: object
    part: object
    after: Figure | None

    @property
    def mark(self) -> Figure | None:
        """The training's figure on the scale of the later one; it has no interval, so none is
        drawn."""
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
        reading = next(
            (
                r
                for r in audit.private
                if r.attribute == attribute and r.released and not r.is_number
            ),
            None,
        )
        after = (
            getattr(reading.worst, "score" if key == "balanced" else "plain") if reading else None
        )
        measure = "balanced accuracy" if key == "balanced" else "plain accuracy"
        after = after if after is not None and measured(after) else None
        found.append(
            InGame(
                str(attribute),
                float(figures[key]),
                measure,
                figures.get("n"),
                figures.get("part"),
                after,
            )
        )
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
    """The data the release was learned on, where the card says that it was not the data of this
    audit."""
    card = audit.release.get("data")
    learned = card if isinstance(card, Mapping) else {}
    known = learned.get("fingerprint") and audit.data.get("fingerprint")
    return (
        str(learned.get("name") or "other data")
        if known and learned["fingerprint"] != audit.data["fingerprint"]
        else None
    )


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
    >>> settings(Audit({"settings": {"budget": 0.9, "name": None}}, {}, "quick", (), (), 0.0))
    [('budget', '0.9'), ('name', 'none')]
    """
    return [
        (str(key), "none" if value is None else str(value))
        for key, value in _settings(audit).items()
    ]


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
