"""Sentences of the sections below the headlines: rebuilt records, people, undeclared attributes,
fairness."""

from __future__ import annotations

from privet.evidence.figures import Audit, Fairness, Group, People, Reading, Rebuilt
from privet.evidence.formatting import (
    UNKNOWN,
    above,
    between,
    is_number,
    listed,
    measured,
    number,
    percent,
    times_in_100,
)
from privet.evidence.sentences import say
from privet.reporting import sentences
from privet.reporting.audit_plots import known, widest

_GAPS = {
    "demographic_parity_difference": "gives an answer",
    "equalized_odds_difference": "is right or wrong",
}


def rebuilt_sentence(rebuilt: Rebuilt, noun: str = "records") -> str:
    """How close a decoder came, and what the number means.

    >>> rebuilt_sentence(Rebuilt("share of words rebuilt", 0.231, 400), "texts")
    'Share of words rebuilt: 23 in 100, over 400 test texts.'
    """
    measure = rebuilt.measure.strip()
    measure = measure[:1].upper() + measure[1:]
    over = f"over {rebuilt.n:,} test {noun}" if rebuilt.n != 1 else f"over 1 test record ({noun})"
    value, said = rebuilt.value, number(float(rebuilt.value))
    if rebuilt.n < 1 or not is_number(value):
        return f"{measure}: {UNKNOWN}."
    if measure.lower().startswith("psnr"):
        return say("rebuilt_psnr", measure=measure, value=f"{value:.1f}", over=over)
    if measure.lower().startswith("share") and value < 0:
        # Variance explained can be negative.
        return say("rebuilt_worse", measure=measure, over=over)
    if measure.lower().startswith("share"):
        return say("rebuilt_share", measure=measure, value=times_in_100(value), over=over)
    return say("rebuilt", measure=measure, value=said, over=over)


def people_sentence(people: People, noun: str = "records") -> str:
    """What an attack on people found, for anyone.

    >>> from privet.evidence.figures import Figure
    >>> found = {"top_1": Figure(0.611, 0.5511, 0.669, 280, 1 / 280)}
    >>> again = People("re-identification", "cosine", found)
    >>> print(people_sentence(again, "pictures").replace(" for ", " for\\n"))
    Of 280 people, one other picture is enough to find the right person first for
    61 % (between 55 and 67); guessing finds 0.4 %.
    >>> found = {"balanced_accuracy": Figure(0.52, 0.47, 0.57, 400, 0.5)}
    >>> said = people_sentence(People("membership", "boosting", found))
    >>> print(said.replace(" is ", " is\\n").replace(", not", ",\\nnot"))
    An attacker who guesses whether a person was in the training data is
    right 52 times in 100 (between 47 and 57) where members and others are equally frequent,
    not distinguishable from guessing (50).
    """
    if people.attack == "raw vector":
        return _raw_vector_sentence(people, noun)
    key = "top_1" if people.attack == "re-identification" else "balanced_accuracy"
    first, raw, five = people.figures.get(key), people.raw.get(key), people.figures.get("top_5")
    if first is None or not measured(first):
        what = "can be found again" if key == "top_1" else "were in the training data"
        return f"Whether people {what}: {UNKNOWN}."
    if key == "top_1":
        low, high = times_in_100(first.low, "down"), times_in_100(first.high, "up")
        chance = ", not distinguishable from guessing" if first.is_chance else ""
        text = say(
            "found_again",
            n=f"{first.n:,}",
            noun=noun.removesuffix("s"),
            share=times_in_100(first.value),
            low=low,
            high=high,
            chance=chance,
            blind=percent(first.chance),
        )
        if five is not None and measured(five):
            text += say("first_five", share=times_in_100(five.value))
    else:
        said = "member" if people.attack == "membership" else "member_by_similarity"
        text = say(said, **sentences.fields_of(first)) + sentences.guessing(first)
    if raw is not None and measured(raw):
        share = f"{times_in_100(raw.value)} %" if key == "top_1" else sentences.short(raw)
        text += say("from_raw", noun=noun, share=share)
    return f"{text}."


def _raw_vector_sentence(people: People, noun: str) -> str:
    first, alone = (people.figures.get(key) for key in ("top_1", "top_1_without_release"))
    if first is None or not measured(first):
        return f"Whether the release of a raw vector can be found: {UNKNOWN}."
    text = say(
        "raw_vector_found",
        n=f"{round(1 / first.chance):,}" if first.chance > 0 else f"{first.n:,}",
        noun=noun,
        share=times_in_100(first.value),
        low=times_in_100(first.low, "down"),
        high=times_in_100(first.high, "up"),
        chance=", not distinguishable from guessing" if first.is_chance else "",
        blind=percent(first.chance),
    )
    if alone is not None and measured(alone):
        text += say("raw_vector_alone", share=times_in_100(alone.value))
    return f"{text}."


def search_sentences(audit: Audit) -> list[str]:
    """What a search of released vectors still finds: with released queries, and with raw ones.

    >>> from privet.evidence.figures import Figure
    >>> from types import SimpleNamespace
    >>> kept = {"recall_at_10": Figure(0.81, 0.7911, 0.829, 1000, 0.004, better="higher")}
    >>> print(search_sentences(SimpleNamespace(retrieval=kept))[0].replace(" (", "\\n("))
    Of the 10 records that a search of raw vectors finds, a search of released ones finds 81 %
    (between 79 and 83), with queries released too; a ranking at random finds 0.4 %.
    """
    said = []
    for key, figure in audit.retrieval.items():
        name, _, rest = key.partition("_at_")
        if name == "recall" and measured(figure):
            k, _, raw = rest.partition("_")
            sentence = say(
                "search_kept",
                k=k,
                share=times_in_100(figure.value),
                low=times_in_100(figure.low, "down"),
                high=times_in_100(figure.high, "up"),
                how="with raw queries" if raw else "with queries released too",
                blind=percent(figure.chance),
            )
            said.append(f"{sentence}.")
    return said


def word_sentences(rebuilt: Rebuilt) -> list[str]:
    """Of every chosen word, how well it is told whether it was in a text."""
    figures = [(key[5:], one) for key, one in rebuilt.figures.items() if key[:5] == "word "]
    return [
        f"{say('word_found', word=word, **sentences.fields_of(one))}{sentences.guessing(one)}."
        for word, one in figures
        if measured(one)
    ]


def one_by_one(audit: Audit) -> list[str]:
    """The attacks on chosen words, by their titles: these have sentences, and no table."""
    return [one.decoder for one in audit.rebuilt if any(key[:5] == "word " for key in one.figures)]


def ranked(audit: Audit) -> list[Reading]:
    """Undeclared attributes that were tried, the furthest above chance first."""
    tried = [r for r in audit.undeclared if r.released]
    return sorted(tried, key=lambda r: -above(r.worst.score))


def readable(audit: Audit) -> list[Reading]:
    """Those of them that are read beyond guessing."""
    return [r for r in ranked(audit) if measured(r.worst.score) and not r.worst.score.is_chance]


def undeclared_sentence(audit: Audit) -> str:
    """How much else can be read, the worst three by name."""
    tried, legible = [r for r in ranked(audit) if measured(r.worst.score)], readable(audit)
    if not tried:
        return (
            "Attributes you did not list were tried, but too few test records have a label, or all "
            "have the same."
        )
    several = len(tried) > 1
    if not legible:
        were = "attributes were" if several else "attribute was"
        return say("undeclared_none", n=f"{len(tried):,}", were=were)
    named = listed([f"{r.attribute} ({sentences.in_tries(r.worst.score)})" for r in legible[:3]])
    return say(
        "undeclared_some",
        n=f"{len(tried):,}",
        attributes="attributes" if several else "attribute",
        legible=f"{len(legible):,}",
        named=named,
    )


def fairness_sentence(one: Fairness) -> str:
    """Whether the model for a task treats groups differently, and the model on raw data; the names
    are set before it.

    >>> from privet.evidence.figures import Figure
    >>> gap = {"demographic_parity_difference": Figure(0.121, 0.1, 0.14, 900, 0.0)}
    >>> raw = {"demographic_parity_difference": Figure(0.083, 0.06, 0.1, 900, 0.0)}
    >>> print(fairness_sentence(Fairness("smiling", "gender", gap, raw)).replace(" (", "\\n("))
    it gives an answer up to 12.1 points more often in one group than in another
    (on raw data 8.3).
    """
    parts = []
    for key, verb in _GAPS.items():
        figure, raw = one.released.get(key), one.raw.get(key)
        if figure is not None and measured(figure):
            also = say("fair_raw", points=percent(raw.value)) if raw and measured(raw) else ""
            parts.append(say("fair_gap", verb=verb, points=percent(figure.value)) + also)
    return f"{'; '.join(parts) or UNKNOWN}."


def found_groups_sentence(reading: Reading) -> str:
    """Which group is read best and which least, or that they may be read alike."""
    apart = widest(reading.groups)
    if apart is None:
        return say("groups_alike") if len(known(reading.groups)) > 1 else ""
    least, most = apart
    return say(
        "group_apart",
        best=f"{most.by} = {most.value}",
        most=percent(most.score.value),
        worst=f"{least.by} = {least.value}",
        least=percent(least.score.value),
    )


def sure_sentence(reading: Reading, noun: str = "records") -> str:
    """How often the strongest attacker is right and sure."""
    figure = reading.risk.sure if reading.risk else None
    if figure is None or not measured(figure):
        return f"How sure the attacker is: {UNKNOWN}."
    who = "model" if reading.role == "utility" else "attacker"
    return say("sure", share=percent(figure.value), noun=noun, between=between(figure), who=who)


def as_groups(reading: Reading) -> list[Group]:
    """Every value against the rest, as rows of a table of groups."""
    return [
        Group(f"{one.people:,} people{', too few to judge' if one.rare else ''}", value, one.score)
        for one in reading.classes
        for value in (one.value,)
    ]
