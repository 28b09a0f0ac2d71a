"""Answers that are changed at random before they leave, where the campaign asks for it so.

The chance is a function of the campaign's secret key, the question and the true answer: who answers
the same question the same way for ten records tells the same ten times, so that nobody can average
(a permanent randomised response: Erlingsson, Pihur and Korolova, CCS 2014). The page does the same
(web/static/randomised.js).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from privet.evidence.randomised_answers import told_answer
from privet.exchange.protocol.envelope import Labels
from privet.exchange.protocol.manifest import Label

TAG = b"privet answer 1\0"


def told_labels(labels: Labels, asked: Sequence[Label], key: bytes, campaign: str) -> Labels:
    """What is told of these answers."""
    questions = {label.name: label for label in asked if label.epsilon is not None}
    return {
        name: _told(questions[name], str(answer), key, campaign)
        if name in questions and answer in questions[name].values
        else answer
        for name, answer in labels.items()
    }


def _told(label: Label, answer: str, key: bytes, campaign: str) -> str:
    assert label.epsilon is not None
    place = label.values.index(answer)
    uniform = chance(key, campaign, label.name, answer)
    return label.values[told_answer(place, len(label.values), label.epsilon, uniform)]


def chance(key: bytes, campaign: str, name: str, answer: str) -> float:
    """A number between 0 and 1 that only who has the key knows.

    >>> 0 < chance(bytes(32), "c", "smiling", "yes") < 1
    True
    """
    parts = b"".join(
        len(text.encode()).to_bytes(4, "little") + text.encode()
        for text in (campaign, name, answer)
    )
    digest = hashlib.blake2b(TAG + parts, key=key, digest_size=16).digest()
    return ((int.from_bytes(digest[:8], "little") >> 12) + 0.5) * 2.0**-52
