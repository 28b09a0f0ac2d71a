"""A certified bound in one sentence: what the adversary sees and knows, how sure it is, who says
so."""

from __future__ import annotations

from privet.evidence.figures import Certified
from privet.evidence.formatting import listed, percent
from privet.evidence.sentences import say


def seen(one: Certified, knowing: bool = True) -> str:
    """What the adversary of a certificate sees and, where `knowing`, knows.

    >>> known = 0.15, 0.55, 0.027, 0.99, (900, 900), 2, 0.4, 1, "smoothed"
    >>> seen(Certified("sex", ("f", "m"), 0.577, 0.6, (0.5, 0.5), *known, given=("income",)))
    'one release of one record and knows income'
    """
    if one.per == "person":
        several = one.records > 1
        text = say("seen_person_of", records=f"{one.records:,}") if several else say("seen_person")
    elif one.records > 1:
        text = say("seen_records", records=f"{one.records:,}")
    elif one.releases > 1:
        text = say("seen_releases", releases=f"{one.releases:,}")
    else:
        text = say("seen_record")
    if not knowing:
        return text
    return text + (say("and_knows", given=listed(one.given)) if one.given else say("knows_nothing"))


def sure(one: Certified) -> str:
    """How sure the bound is, and of how many statements together.

    >>> known = 0.15, 0.55, 0.027, 0.99, (900, 900), 2, 0.4, 1, "smoothed"
    >>> old = Certified("sex", ("f", "m"), 0.577, 0.6, (0.5, 0.5), *known)
    >>> sure(old)
    '99 % confidence for this statement by itself'
    """
    share = f"{100 * one.confidence:.10g}"
    if one.statements > 1:
        return say("sure_together", sure=share, statements=f"{one.statements:,}")
    return say("sure_alone" if one.statements == 1 else "sure_each", sure=share)


def claimed(who: str = "whoever ran this") -> str:
    """By whom it is said, where nobody else has signed it."""
    return say("claimed", who=who)


def signed(who: str, key: str) -> str:
    """In whose name it was signed, and the fingerprint of the key."""
    return say("signed", who=who, key=key)


def changed() -> str:
    """That its signature is not that of its content."""
    return say("changed")


def guessed(one: Certified) -> str:
    """What the adversary guesses: the attribute, or a range that it lies in."""
    if one.note.startswith("What is guessed is which range"):
        return f"which of {len(one.values)} ranges {one.attribute} lies in"
    return one.attribute


def bound_sentence(one: Certified, by: str = "") -> str:
    """The bound in one sentence; shares are rounded up.

    >>> known = 0.15, 0.55, 0.027, 0.99, (900, 900), 2, 0.4, 1, "smoothed"
    >>> one = Certified("sex", ("f", "m"), 0.577, 0.6, (0.5, 0.5), *known, statements=3)
    >>> print(bound_sentence(one).replace("; ", ";\\n").replace(" can", "\\ncan"))
    No adversary who sees one release of one record and knows nothing else about the person
    can guess sex with a balanced accuracy above 57.7 % on average over people;
    guessing blindly has 50.0 % (99 % confidence for all 3 statements together;
    claimed by whoever ran this, checked by nobody else).
    """
    if one.bound is None:
        return say("not_certified", reason=one.reason or "no reason was kept")
    return say(
        "certified",
        seen=seen(one),
        what=guessed(one),
        bound=percent(one.bound, "up"),
        over=one.weighing,
        blind=percent(one.chance),
        sure=sure(one),
        by=by or claimed(),
    )
