"""Figures to plain sentences, never stronger than the figures.

The words are those of the table of sentences (evidence/sentences.toml); here is decided which of
them may be said. Ends of intervals are rounded outward, a number that was not measured is called
that, and "not distinguishable from guessing" is said only where every value against the rest is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit, ClassScore, Figure, Finding, Reading, Rebuilt
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
from privet.evidence.sentences import say

_NOUNS = {"image": "pictures", "table": "rows", "text": "texts", "signal": "recordings"}

# An interval that reaches this far above chance cannot carry the words "not distinguishable"
# without a warning.
FEW = 0.1

# Tasks whose label alone is set beside the attacker; more would drown the sentence.
MOST_BASELINES = 3

# Single values that are named as readable; more would drown the sentence.
MOST_CLASSES = 3

# Values whose most frequent one is this much more frequent than the others on average get the
# accuracy at the real frequencies beside the balanced one.
UNEQUAL = 0.02

# Figures by people and by records that differ by less are one figure.
ALIKE = 0.01


def records(audit: Audit) -> str:
    """What one record is called: pictures, rows, texts, recordings."""
    return _NOUNS.get(str(audit.data.get("modality")), "records")


def _explains(figure: Figure) -> bool:
    """Whether it is a share of variance explained, of which guessing explains none, and not a share
    of right answers."""
    return figure.chance <= 0


def counted(value: float, of: int = 100) -> str:
    """
    >>> counted(0.57), counted(0.001), counted(0.0123, of=1000)
    ('57 times', 'under 1 time', '12 times')
    """
    count = times(value, of)
    return f"{count} {'time' if count in ('1', 'under 1') else 'times'}"


def short(figure: Figure, value: float | None = None) -> str:
    """The figure, or another value of its kind, in two words: '61 times', '31 %'.

    >>> short(Figure(0.57, 0.5, 0.6, 90, 0.5)), short(Figure(0.57, 0.5, 0.6, 90, 0.5), 0.001)
    ('57 times', 'under 1 time')
    """
    value = figure.value if value is None else value
    return explained(value) if _explains(figure) else counted(value, out_of(figure.chance))


def in_tries(figure: Figure) -> str:
    """'61 times in 100', '31 % explained'."""
    if _explains(figure):
        return f"{short(figure)} explained"
    return say("tries", times=short(figure), of=out_of(figure.chance))


def equally(values: Sequence[str] | int) -> str:
    """Which values are equally frequent in a balanced figure.

    >>> equally(("no", "yes")), equally(6)
    ('both values', 'all 6 values')
    """
    count = values if isinstance(values, int) else len(values)
    return "both values" if count == 2 else f"all {count:,} values"


def fields_of(figure: Figure) -> dict[str, object]:
    """Fields that the sentences about right answers share."""
    of = out_of(figure.chance)
    low, high = times(figure.low, of, "down"), times(figure.high, of, "up")
    return {"times": counted(figure.value, of), "of": of, "low": low, "high": high}


def _interval(figure: Figure) -> str:
    """Of a share of variance."""
    if figure.high <= 0:
        return ""
    high = times(figure.high, 100, "up")
    if figure.low <= 0:
        return say("between", low="none", high=f"{high} %")
    return say("between", low=times(figure.low, 100, "down"), high=high)


def right_or_explained(figure: Figure) -> str:
    """'right 61 times in 100 (between 59 and 63)', 'explains 31 % of the differences ...'."""
    if not measured(figure):
        return UNKNOWN
    if _explains(figure):
        return f"explains {explained(figure.value)}{_interval(figure)}"
    return say("right_other", **fields_of(figure))


def does_short(figure: Figure) -> str:
    """'is right 61 times', 'explains 31 %'."""
    if _explains(figure):
        return say("explains", share=short(figure))
    return say("is_right", times=short(figure))


def guessing(figure: Figure, readable: bool = False) -> str:
    """'; guessing is right 50 times', or ', not distinguishable from guessing (50)' with a warning
    where the interval is too wide for that to comfort anyone.

    Parameters:
        figure: What was found.
        readable: Whether something was read in spite of an interval that reaches chance.
    """
    if _explains(figure):
        text = say("as_guessing_number" if figure.is_chance else "guessing_number")
    elif readable or not figure.is_chance:
        return say("guessing", blind=short(figure, figure.chance))
    else:
        text = say("as_guessing", blind=times(figure.chance, out_of(figure.chance)))
    if not figure.is_chance or figure.high - figure.chance <= FEW:
        return text
    rows = "1 record" if figure.n == 1 else f"{figure.n:,} records"
    # People count there, however many records they have.
    whose = " of few people" if "over people" in figure.interval else ""
    of = out_of(figure.chance)
    end = explained(figure.high, "up") if _explains(figure) else times(figure.high, of, "up")
    return text + say("could_be", rows=rows + whose, high=end)


def _miss(finding: Finding) -> str:
    """How far a guessed number is from the true one, and the best guess without any data."""
    if not _explains(finding.score) or not measured(finding.plain):
        return ""
    blind = finding.plain.chance
    also = say("guessing_misses", blind=amount(blind)) if is_number(blind) else ""
    return say("misses", miss=amount(finding.plain.value)) + also


def seen(finding: Finding, noun: str = "records") -> str:
    """What the attacker looked at.

    >>> figure = Figure(0.83, 0.8111, 0.849, 2000, 0.5)
    >>> often = Finding("mlp", "averaged", 0.8, figure, figure, None, 1.0, releases=16)
    >>> seen(often)
    'the average of 16 releases of the same record'
    >>> seen(replace(often, source="pooled", records=5), "pictures")
    '5 released pictures of a person together'
    """
    single, beside = noun.removesuffix("s"), listed(finding.columns) or "the columns kept"
    pooled = f"all released {noun} of a person together"
    if finding.records > 1:
        pooled = f"{finding.records:,} released {noun} of a person together"
    return {
        "averaged": f"the average of {finding.releases:,} releases of the same record",
        "rebuilt": f"one rebuilt {single}",
        "raw": f"one raw {single}",
        "pooled": pooled,
        "kept columns": f"{beside} beside the release, without it",
        "released and kept": f"one released {single} with {beside}",
    }.get(finding.source, f"one released {single}")


def readable_classes(reading: Reading) -> list[ClassScore]:
    """The values that are told from the rest beyond chance, the most readable first."""
    scores = [c for c in reading.classes if measured(c.score) and not c.score.is_chance]
    return sorted(scores, key=lambda c: -c.score.value)


def single_value(reading: Reading) -> ClassScore | None:
    """The value to set first: the most readable one, where the mean over all values is guessing."""
    classes = readable_classes(reading)
    if len(reading.values) <= 2 or not classes or not reading.headline.score.is_chance:
        return None
    return classes[0]


def as_guessing(reading: Reading) -> bool:
    """Whether "not distinguishable from guessing" may be said: the interval of the headline reaches
    chance, and so does that of every value against the rest. Of more than two values without a
    figure for each, nobody knows."""
    figure = reading.headline.score
    if not measured(figure) or not figure.is_chance or not reading.is_guessing:
        return False
    return reading.is_number or len(reading.values) <= 2 or bool(reading.classes)


def classes_sentence(reading: Reading) -> str:
    """Which values are read although the mean over all is not, and which are too rare to judge."""
    said = []
    if len(reading.values) > 2:
        classes = readable_classes(reading)[:MOST_CLASSES]
        read = [say("class_read", value=c.value, **fields_of(c.score)) for c in classes]
        said += [f"{'. '.join(read)}."] if read else []
    rare = [f"{c.value} ({c.people:,})" for c in reading.classes if c.rare]
    if rare:
        said.append(f"{say('classes_rare', names=listed(rare))}.")
    return " ".join(said)


def _real_frequencies(reading: Reading) -> str:
    """Accuracy with the values as frequent as they are; empty where they are equally frequent."""
    plain = reading.headline.plain
    if reading.is_number or not measured(plain) or not is_number(plain.chance):
        return ""
    if plain.chance < 1 / max(len(reading.values), 1) + UNEQUAL:
        return ""
    of = out_of(reading.headline.score.chance)
    fields = {"times": counted(plain.value, of), "of": of, "blind": times(plain.chance, of)}
    return f"{say('real_frequencies', **fields)}."


def _by_people(reading: Reading) -> str:
    """The figure in which every person weighs the same; empty where people have one record."""
    figure = reading.evidence.get("balanced_by_people")
    if figure is None or not measured(figure):
        return ""
    if abs(figure.value - reading.headline.score.value) < ALIKE:
        return ""
    return f"{say('by_people', **fields_of(figure))}."


def _visible(reading: Reading) -> str:
    """The smallest leak that the audit could have seen; empty where it does not say."""
    least = reading.evidence.get("smallest_visible")
    if least is None or not is_number(least.value):
        return ""
    of = out_of(reading.headline.score.chance)
    text = explained(least.value, "up")
    if not _explains(reading.headline.score):
        text = say("tries", times=f"{times(least.value, of, 'up')} times", of=of)
    return say("visible", least=text)


def private_sentence(reading: Reading, noun: str = "records") -> str:
    """What an attacker still reads, for anyone; the attribute's name is set before it.

    >>> def found(v, source="released"):
    ...     figure = Figure(value=v, low=v - 0.0201, high=v + 0.019, n=2000, chance=0.5)
    ...     return Finding("mlp", source, v, figure, figure, None, 1.0)
    >>> released, raw = (found(0.61),), (found(0.97, "raw"),)
    >>> beard = Reading("beard", "private", ("no", "yes"), released, raw, 0, 0)
    >>> print(private_sentence(beard, "pictures").replace("; ", ";\\n").replace(" (", "\\n("))
    from one released picture the only attacker is right 61 times in 100
    (between 58 and 63) where both values are equally frequent;
    guessing is right 50 times. On the raw pictures it is right 97 times.
    >>> text = private_sentence(replace(beard, released=(found(0.51),), raw=()))
    >>> print(text.replace(" where", "\\nwhere"))
    from one released record the only attacker is right 51 times in 100 (between 48 and 53)
    where both values are equally frequent, not distinguishable from guessing (50).

    >>> miss = Figure(7.12, 6.8, 7.4, 2000, 9.81, unit="years", measure="mean absolute error")
    >>> share = Figure(0.31, 0.275, 0.349, 2000, 0.0)
    >>> released = (replace(found(0.3), score=share, plain=miss),)
    >>> age = Reading("age", "private", (), released, (), 0, 0)
    >>> print(private_sentence(age).replace("; ", ";\\n").replace(" (", "\\n("))
    from one released record the only attacker explains 31 % of the differences between people
    (between 27 and 35);
    guessing explains none;
    it misses by 7.12 on average, guessing by 9.81.
    """
    return " ".join(filter(None, told(reading, noun)))


def told(reading: Reading, noun: str = "records") -> tuple[str, str]:
    """What an attacker still reads in one sentence, and what is to be known beside it."""
    if not reading.released:
        return say("no_attacker"), ""
    figure, tried = reading.headline.score, len(reading.released)
    if not measured(figure):
        return say("too_few"), ""
    who = "the only attacker" if tried == 1 else f"the best of {tried} attackers"
    what = {"seen": seen(reading.headline, noun), "who": who}
    hidden = as_guessing(reading)
    if _explains(figure):
        text = say("found_number", share=explained(figure.value), **what) + _interval(figure)
    else:
        text = say("found", values=equally(reading.values), **what, **fields_of(figure))
    text += guessing(figure, readable=not hidden)
    if hidden:
        text += _visible(reading)
    elif figure.is_chance and not readable_classes(reading):
        text += say("classes_unknown")
    text += f"{_miss(reading.headline)}."
    classes = classes_sentence(reading)
    if single_value(reading) is not None:
        # The mean over all values would comfort falsely.
        text, classes = f"{classes[0].lower()}{classes[1:]}", f"{text[0].upper()}{text[1:]}"
    more = (classes, _real_frequencies(reading), _by_people(reading), _on_raw(reading, noun, tried))
    return text, " ".join(filter(None, more))


def _on_raw(reading: Reading, noun: str, tried: int) -> str:
    if not reading.raw or not measured(raw := reading.reference.score):
        return ""
    if raw.is_chance:
        return f"{say('nothing_hidden', noun=noun, share=short(raw).partition(' time')[0])}."
    who = "it" if tried == 1 else "the best"
    return f"{say('on_raw', noun=noun, who=who, does=does_short(raw))}."


def utility_sentence(reading: Reading) -> str:
    """What the release is still good for; the task's name is set before it."""
    if not reading.released:
        return say("no_model")
    figure = reading.worst.score
    if not measured(figure):
        return say("too_few")
    if _explains(figure):
        text = say("task_found_number", share=explained(figure.value)) + _interval(figure)
    else:
        text = say("task_found", values=equally(reading.values), **fields_of(figure))
    text += guessing(figure) + _miss(reading.worst)
    if not reading.raw or not measured(reading.reference.score):
        return f"{text}."
    raw = say("on_raw", noun="data", who="it", does=does_short(reading.reference.score))
    return f"{text}. {raw}."


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
    parts = [say("baseline", name=name, does=does_short(f)) for name, f in known]
    text = "; ".join(parts[:MOST_BASELINES])
    return f"K{text[1:]}." if text else ""


def other_sentence(finding: Finding, noun: str = "records") -> str:
    """What was read in another way than from one released record.

    >>> figure = Figure(0.83, 0.8111, 0.849, 2000, 0.5)
    >>> often = Finding("mlp", "averaged", 0.8, figure, figure, None, 1.0, releases=16)
    >>> print(other_sentence(often).replace(": ", ":\\n"))
    From the average of 16 releases of the same record:
    right 83 times in 100 (between 81 and 85), balanced.
    """
    return say("other_way", seen=seen(finding, noun), does=right_or_explained(finding.score))


def louder(reading: Reading, noun: str = "records") -> list[str]:
    """The other ways that beat the headline beyond doubt: a headline that left them out would
    comfort falsely."""
    if not reading.released or not measured(reading.headline.score):
        return []
    beaten = [
        f for f in reading.others if measured(f.score) and f.score.low > reading.headline.score.high
    ]
    return [other_sentence(f, noun) for f in beaten]


def in_game_sentence(share: float, measure: str, after: Figure | None) -> str:
    """What the method's own adversary reached, beside the strongest trained afterwards."""
    of = out_of(after.chance) if after else 100
    fields = {"share": counted(share, of), "of": of, "measure": f"{measure} accuracy"}
    if after is None:
        return say("in_game_alone", **fields)
    return say("in_game", after=counted(after.value, of), **fields)


def highest_sentence(figure: Figure) -> str:
    """The highest of all on *test*."""
    return say("highest", does=right_or_explained(figure))


def curve_sentence(reading: Reading) -> str:
    """Whether the strongest attacker still gains from more records; empty without a curve."""
    points = [point for point in reading.curve if measured(point.score)]
    if len(points) < 2:
        return ""
    before, last = points[-2], points[-1]
    fields = {"fewer": f"{before.records:,}", "more": f"{last.records:,}"}
    gain = reading.evidence.get("gain_of_last_doubling")
    gained, sure = last.score.value - before.score.value, last.score.value > before.score.high
    if gain is not None and measured(gain):
        gained, sure = gain.value, gain.low > 0
    if not sure:
        return say("learned_out", **fields)
    return say("still_learning", points=f"{100 * gained:.1f}", **fields)


def looks_sentence(result: Audit | Certification) -> str:
    """How often *test* was looked at before; empty where that is not known, or where this is the
    first time."""
    if not result.looks:
        return ""
    return say("looks", times="once" if result.looks == 1 else f"{result.looks:,} times")


def score(reading: Reading) -> tuple[str, str] | None:
    """The one number to set large, and what it counts; None where there is none."""
    if not reading.released or not measured(figure := reading.headline.score):
        return None
    if (one := single_value(reading)) is not None:
        return _large(one.score.value), say("large_value", of=100, value=one.value)
    of = 100 if reading.is_number else out_of(figure.chance)
    if reading.is_number:
        return _large(figure.value), say("large_number")
    return _large(figure.value, of), say("large", of=of)


def _large(value: float, of: int = 100) -> str:
    return times(value, of).replace("over ", ">").replace("under ", "<")


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
        say(
            "inverted",
            attack=f"{one.decoder[0].upper()}{one.decoder[1:]}",
            f1=f"{f1.value:.3f}",
            low=f"{f1.low:.3f}",
            high=f"{f1.high:.3f}",
            chance=f"{f1.chance:.3f}",
        )
        for one in found
        if (f1 := one.figures.get("f1_words")) is not None
    ]
