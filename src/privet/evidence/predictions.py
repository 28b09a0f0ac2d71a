"""From an adversary's answers on *select* and *test* to the figures of an audit.

Everything that is chosen (a threshold, which pair of values is told apart best, how sure to be) is
chosen on *select*, and everything that is reported is counted on *test*. A figure that takes a
maximum on the records it is counted on, as the plain formulas of Bayes leakage do, never stands at
zero, and its interval would never reach it.

Answers are probabilities (n, classes), or guesses (n,) of a number. Records without a label (-1,
NaN) are dropped here. An answer that is not finite counts as the guess of somebody who has not
looked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privet.core.errors import PrivetError
from privet.evidence import Array
from privet.evidence.attack_details import of_classes
from privet.evidence.attribute import Attribute
from privet.evidence.figures import Direction, Figure
from privet.evidence.leakage import (
    balanced_accuracy,
    balanced_figure,
    class_weights,
    guess,
    measure,
)
from privet.evidence.person_intervals import best_of
from privet.evidence.regression import (
    close_figure,
    error_figure,
    explained,
    explained_figure,
    likeliest,
    rank_figure,
)


def judge(
    truth_select: Array,
    answers_select: Array,
    truth_test: Array,
    answers_test: Array,
    person_test: Array,
    attribute: Attribute,
    better: Direction,
) -> tuple[float, Figure, Figure, Figure | None]:
    """Score on *select*, then on *test* the score, the plain figure and AUC, as a `Finding` holds
    them.

    Of classes: balanced accuracy at the threshold that is best on *select*, accuracy of the
    likeliest class, AUC. Of a number: share of variance explained, mean absolute error beside that
    of the median of *select*, no AUC.

    >>> truth, sex = np.array([0, 1] * 20), Attribute("sex", "binary", ("a", "b"))
    >>> on_select, score, plain, auc = judge(
    ...     truth, np.eye(2)[truth], truth, np.eye(2)[truth], np.arange(40), sex, "lower"
    ... )
    >>> on_select, score.value, plain.value, auc.value
    (1.0, 1.0, 1.0, 1.0)
    """
    truth_select, answers_select, _ = _kept(
        truth_select, answers_select, np.zeros(len(truth_select)), attribute
    )
    truth, answers, person = _kept(truth_test, answers_test, person_test, attribute)
    if attribute.is_class:
        weights = _weights(truth_select, answers_select)
        told = len(np.unique(truth_select)) > 1
        on_select = (
            balanced_accuracy(truth_select, guess(answers_select, weights))
            if told
            else 1 / attribute.classes
        )
        return on_select, *measure(
            truth, guess(answers, weights), answers, attribute.classes, better, person=person
        )
    middle = _middle(truth_select, truth)
    score = explained_figure(truth, answers, person, better)
    return (
        explained(truth_select, answers_select),
        score,
        error_figure(truth, answers, person, better, middle),
        None,
    )


def evidence_of(
    truth_select: Array,
    answers_select: Array,
    truth_test: Array,
    answers_test: Array,
    person_test: Array,
    attribute: Attribute,
    better: Direction,
    adversaries: int = 1,
) -> dict[str, Figure]:
    """More about one adversary, the strongest of so many on *select*; strongest.py and numbers.py
    say what each figure is.

    >>> truth, sex = np.array([0, 1] * 200), Attribute("sex", "binary", ("a", "b"))
    >>> found = evidence_of(
    ...     truth, np.eye(2)[truth], truth, np.eye(2)[truth], np.arange(400), sex, "lower", 3
    ... )
    >>> {  # doctest: +NORMALIZE_WHITESPACE
    ...     name: round(figure.value, 3)
    ...     for name, figure in found.items()
    ... }
    {'f1': 1.0, 'tpr_at_fpr_1_percent': 1.0, 'advantage': 0.5, 'additive_leakage': 0.5,
     'multiplicative_leakage': 2.0, 'min_entropy_leakage': 1.0, 'bayes_security': 0.0,
     'usable_bits': 1.0}
    """
    truth_select, answers_select, _ = _kept(
        truth_select, answers_select, np.zeros(len(truth_select)), attribute
    )
    truth, answers, person = _kept(truth_test, answers_test, person_test, attribute)
    whose = (
        f"Of the strongest of {adversaries} adversaries on select."
        if adversaries > 1
        else "Of this adversary."
    )
    if attribute.is_class:
        weights = _weights(truth_select, answers_select)
        return of_classes(
            truth_select, answers_select, truth, answers, person, weights, better, whose
        )
    return {
        "within_10_percent": close_figure(
            truth, answers, person, better, likeliest(truth_select if len(truth_select) else truth)
        ),
        "rank_correlation": rank_figure(truth, answers, person, better),
    }


def highest_of(
    truth: Array, guesses: Sequence[Array], person: Array, classes: int, better: Direction = "lower"
) -> Figure:
    """The highest balanced accuracy on *test* of several adversaries, picked there: a worst case,
    with room for the picking.

    Each gets an interval of the confidence that makes all of them hold at once (`best_of`,
    Bonferroni); then the highest value lies between the highest lower end and the highest upper
    end.

    >>> truth = np.array([0, 1] * 30)
    >>> figure = highest_of(truth, [truth, 1 - truth, np.zeros(60, int)], np.arange(60), 2)
    >>> figure.value, figure.measure
    (1.0, 'highest balanced accuracy of 3 adversaries, picked on test')
    """
    if not guesses:
        raise PrivetError("The highest of no adversaries does not exist: run at least one.")
    there = truth >= 0
    each = [
        balanced_figure(
            truth[there], said[there], classes, better, person[there], best_of(len(guesses))
        )
        for said in guesses
    ]
    first = each[0]
    return Figure(
        max(figure.value for figure in each),
        max(figure.low for figure in each),
        max(figure.high for figure in each),
        first.n,
        first.chance,
        better=better,
        interval=(
            f"{first.interval}, 95 % for all {len(each)} at once"
            if len(each) > 1
            else first.interval
        ),
        measure=f"highest balanced accuracy of {len(each)} adversaries, picked on test",
        note=first.note,
    )


def guesses_of(
    truth_select: Array, answers_select: Array, answers_test: Array, attribute: Attribute
) -> Array:
    """Codes that an adversary says on *test*, at the threshold that is best on *select*.

    >>> truth, sex = np.array([0, 0, 0, 1]), Attribute("sex", "binary", ("a", "b"))
    >>> guesses_of(
    ...     truth,
    ...     np.array([[0.9, 0.1], [0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]),
    ...     np.array([[0.6, 0.4], [0.9, 0.1]]),
    ...     sex,
    ... )
    array([1, 0])
    """
    truth, answers, _ = _kept(truth_select, answers_select, np.zeros(len(truth_select)), attribute)
    table = np.where(
        np.isfinite(answers_test).all(1, keepdims=True), answers_test, 1 / attribute.classes
    )
    return guess(table, _weights(truth, answers))


def _weights(truth_select: Array, answers_select: Array) -> Array:
    """Where *select* holds one value, a threshold learned there would say nothing else: then all
    values weigh the same."""
    classes = answers_select.shape[1]
    return (
        class_weights(truth_select, answers_select)
        if len(np.unique(truth_select)) > 1
        else np.full(classes, 1 / classes)
    )


def _kept(
    truth: Array, answers: Array, person: Array, attribute: Attribute
) -> tuple[Array, Array, Array]:
    """Records that have a label, with answers that are finite."""
    truth, answers, person = (
        np.asarray(truth),
        np.asarray(answers, dtype=np.float64),
        np.asarray(person),
    )
    if not (attribute.is_class or attribute.kind == "number"):
        raise PrivetError(
            f"'{attribute.name}' is a {attribute.kind}: only classes and numbers can be judged."
        )
    expected = (len(truth), attribute.classes) if attribute.is_class else (len(truth),)
    assert answers.shape == expected, (
        f"Answers about '{attribute.name}' have the shape {expected}, not {answers.shape}."
    )
    assert len(person) == len(truth), f"{len(truth)} labels do not go with {len(person)} people."
    there = truth >= 0 if attribute.is_class else np.isfinite(truth)
    truth, answers, person = truth[there], answers[there], person[there]
    if attribute.is_class:
        answers = np.where(
            np.isfinite(answers).all(1, keepdims=True), answers, 1 / max(attribute.classes, 1)
        )
        return truth.astype(np.int64), answers, person
    return (
        truth.astype(np.float64),
        np.where(np.isfinite(answers), answers, np.median(truth) if len(truth) else 0.0),
        person,
    )


def _middle(select: Array, test: Array) -> float:
    known = select if len(select) else test
    return float(np.median(known)) if len(known) else 0.0
