"""How much of an attribute was read: accuracy, balanced accuracy and AUC, beside chance and with
their intervals.

Labels are int64 codes 0..k-1 and probabilities are floats (n, k) whose rows sum to one. A label of
-1 means missing: the caller drops those records first. A figure over no records at all is 0.0 here,
and its interval is (0, 1).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from privet.evidence import Array
from privet.evidence.figures import Figure
from privet.evidence.intervals import balanced_interval, clopper_pearson
from privet.evidence.person_intervals import accuracy_over_people, balanced_over_people
from privet.evidence.roc import auc_over_people

Labels = npt.ArrayLike


def accuracy(truth: Labels, guesses: Labels) -> float:
    """Share of records guessed right; 0.0 of no records.

    >>> accuracy([0, 1, 1, 1], [0, 1, 1, 0])
    0.75
    """
    truth, guesses = _pair(truth, guesses)
    return float((truth == guesses).mean()) if len(truth) else 0.0


def confusion(truth: Labels, guesses: Labels, classes: int) -> npt.NDArray[np.int64]:
    """How often each class (row) was taken for each class (column).

    >>> confusion([0, 1, 1, 1], [0, 1, 1, 0], 2)
    array([[1, 0],
           [1, 2]])
    """
    truth, guesses = _pair(truth, guesses)
    top = max(int(truth.max(initial=-1)), int(guesses.max(initial=-1)))
    assert top < classes, f"A label is {top}, but there are only {classes} classes."
    return np.bincount(truth * classes + guesses, minlength=classes**2).reshape(classes, classes)


def balanced_accuracy(truth: Labels, guesses: Labels | None = None) -> float:
    """Mean over the classes that are present of the share of that class guessed right; 0.0 of no
    records.

    Takes labels and guesses, or a confusion matrix alone.

    >>> balanced_accuracy([0, 1, 1, 1, 1], [0, 1, 1, 1, 0]), balanced_accuracy([[1, 0], [1, 3]])
    (0.875, 0.875)
    """
    if guesses is None:
        table = np.asarray(truth)
        assert table.ndim == 2 and table.shape[0] == table.shape[1], (
            f"A confusion matrix is square, this is {table.shape}."
        )
    else:
        truth, guesses = _pair(truth, guesses)
        table = confusion(
            truth, guesses, 1 + int(max(truth.max(initial=0), guesses.max(initial=0)))
        )
    sizes = table.sum(1)
    present = sizes > 0
    return float((table.diagonal()[present] / sizes[present]).mean()) if present.any() else 0.0


def auc(truth: Labels, scores: npt.ArrayLike) -> float | None:
    """Area under the ROC curve: how often a record of the class gets a higher score than one of
    another class.

    From ranks r (ties get their mean rank), with n1 records in the class and n0 outside it::

        AUC = (sum of r over the class - n1 (n1 + 1) / 2) / (n1 n0)

    `scores` is (n,) for class 1 of two, or probabilities (n, k): for k = 2 the second column
    counts, for more it is the mean over the classes that are present, each against the rest. None
    where fewer than two classes are present.

    Source: Hanley and McNeil, The meaning and use of the area under a ROC curve, Radiology 143
    (1982), 29-36.

    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), auc([1, 1], [0.3, 0.4])
    (0.75, None)
    """
    truth, scores = as_codes(truth), _numbers(scores)
    assert len(truth) == len(scores), f"{len(truth)} labels do not go with {len(scores)} scores."
    columns = scores.shape[1] if scores.ndim == 2 else 2
    assert truth.max(initial=0) < columns, (
        f"A label is {truth.max()}, but the scores know only {columns} classes."
    )
    present = np.unique(truth)
    if len(present) < 2:
        return None
    if columns == 2:
        scores, present = (scores[:, 1] if scores.ndim == 2 else scores)[:, None], np.array([1])
    else:
        scores = scores[:, present]
    ranks, member = rankdata(scores, axis=0), truth[:, None] == present
    inside = member.sum(0)
    above = (ranks * member).sum(0) - inside * (inside + 1) / 2
    return float((above / (inside * (len(truth) - inside))).mean())


def best_threshold(truth: Labels, score: npt.ArrayLike) -> float:
    """The threshold t for which saying 1 where score > t has the highest balanced accuracy, to be
    learned on *select*.

    Thresholds lie halfway between neighbouring scores, or beyond the ends (always 0, always 1); of
    several best ones the middle one is taken. 0.5 where there are no records.

    >>> best_threshold([0, 0, 1, 1], [0.1, 0.3, 0.5, 0.9])
    0.4
    """
    truth, score = as_codes(truth), _numbers(score)
    assert score.shape == truth.shape, f"{truth.shape} labels do not go with {score.shape} scores."
    assert truth.max(initial=0) <= 1, (
        f"A threshold is for two classes, but a label is {truth.max()}."
    )
    if not len(truth):
        return 0.5
    values, place = np.unique(score, return_inverse=True)
    # Of each class, how many have a score at or below each value; before the first value, none.
    zeros, ones = (
        np.cumsum([0, *np.bincount(place[truth == c], minlength=len(values))]) for c in (0, 1)
    )
    recalls = [zeros / zeros[-1]] if zeros[-1] else []
    recalls += [1 - ones / ones[-1]] if ones[-1] else []
    balanced = np.mean(recalls, axis=0)
    best = np.flatnonzero(balanced >= balanced.max() - 1e-12)
    at = int(best[(len(best) - 1) // 2])
    if at == 0:
        return float(np.nextafter(values[0], -np.inf))
    if at == len(values):
        return float(values[-1])
    middle = values[at - 1] / 2 + values[at] / 2
    return float(
        middle if middle < values[at] else values[at - 1]
    )  # the halves of two close floats may round up


def class_weights(truth: Labels, probabilities: npt.ArrayLike) -> Array:
    """Weights for `guess`, learned on *select*, that make balanced accuracy and not accuracy the
    target.

    A model that knows p(c | x) under a prior q(c) has the best balanced accuracy where it says
    argmax p(c | x) / q(c). For two classes the weights are `best_threshold`. For more, the prior is
    whichever of these does best on *select*: none, the shares of the labels, the mean of the
    probabilities. A class that *select* does not have keeps weight 1 and is not lifted.

    >>> class_weights([0, 0, 0, 1], [[0.9, 0.1], [0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]).round(2)
    array([0.7, 0.3])
    """
    truth, table = as_codes(truth), as_probabilities(probabilities)
    assert len(truth) == len(table), (
        f"{len(truth)} labels do not go with {len(table)} rows of probabilities."
    )
    classes = table.shape[1]
    assert truth.max(initial=0) < classes, (
        f"A label is {truth.max()}, but the probabilities know only {classes} classes."
    )
    if not len(truth):
        return np.full(classes, 1 / classes)
    if classes == 2:
        threshold = min(max(best_threshold(truth, table[:, 1]), 0.0), 1.0)
        return np.array([1 - threshold, threshold])
    shares = np.bincount(truth, minlength=classes) / len(truth)
    priors = [np.ones(classes), shares, np.where(shares > 0, table.mean(0), 0)]
    candidates = [np.where(prior > 0, prior, 1.0) for prior in priors]
    return max(candidates, key=lambda weights: balanced_accuracy(truth, guess(table, weights)))


def guess(probabilities: npt.ArrayLike, weights: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The class with the highest probability / weight; of equals the first.

    >>> guess([[0.9, 0.1], [0.6, 0.4]], [0.7, 0.3])
    array([0, 1])
    """
    table, weights = as_probabilities(probabilities), _numbers(weights)
    assert weights.shape == table.shape[1:], (
        f"{weights.shape} weights do not go with {table.shape} probabilities."
    )
    assert (weights >= 0).all() and weights.sum() > 0, "Weights are not negative, and not all zero."
    if len(weights) == 2:
        # The same, without dividing: a threshold may be 0 or 1, and is met to the last digit.
        return np.asarray(table[:, 1] > weights[1] / weights.sum(), dtype=np.int64)
    assert (weights > 0).all(), "With more than two classes every weight is positive."
    return np.asarray((table / weights).argmax(1), dtype=np.int64)


def chance(truth: Labels, classes: int) -> tuple[float, float]:
    """Accuracy of always saying the commonest class, and balanced accuracy of any guess that looks
    at no data.

    The second is one over the number of classes present. Without records both are 1 / `classes`.

    >>> chance([0, 1, 1, 1], 3)
    (0.75, 0.5)
    """
    truth = as_codes(truth)
    assert truth.max(initial=-1) < classes, (
        f"A label is {truth.max()}, but there are only {classes} classes."
    )
    if not len(truth):
        return 1 / classes, 1 / classes
    sizes = np.bincount(truth)
    return float(sizes.max() / len(truth)), float(1 / np.count_nonzero(sizes))


def measure(
    truth: Labels,
    guesses: Labels,
    probabilities: npt.ArrayLike | None,
    classes: int,
    better: Literal["lower", "higher"],
    confidence: float = 0.95,
    person: npt.ArrayLike | None = None,
) -> tuple[Figure, Figure, Figure | None]:
    """Balanced accuracy of guesses, accuracy of the likeliest class, and AUC on *test*, as an audit
    reports them.

    Without `probabilities` the accuracy is that of the guesses, and there is no AUC. Intervals are
    Clopper-Pearson's where every record is a person of its own, else people are drawn anew. Without
    records, or of one class only, nothing can be read: then balanced accuracy stands at 1 /
    `classes` with the interval (0, 1), and there is no AUC.

    >>> probabilities = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> balanced, plain, area = measure([0, 0, 1, 1], [0, 0, 1, 0], probabilities, 2, "lower")
    >>> plain.value, plain.chance, round(plain.low, 3), plain.is_chance, balanced.value, area.value
    (0.75, 0.5, 0.194, True, 0.75, 1.0)
    """
    codes = as_codes(truth)
    people = np.arange(len(codes)) if person is None else np.asarray(person)
    said = guesses if probabilities is None else as_probabilities(probabilities).argmax(1)
    balanced = balanced_figure(codes, guesses, classes, better, people, confidence)
    plain = accuracy_figure(codes, said, classes, better, people, confidence)
    found = (
        None if probabilities is None else auc_over_people(people, codes, probabilities, confidence)
    )
    if found is None:
        return balanced, plain, None
    kind = f"bootstrap over people {100 * confidence:g} %"
    area = Figure(
        found.value, *found.interval, len(codes), 0.5, better=better, interval=kind, measure="AUC"
    )
    return balanced, plain, area


def accuracy_figure(
    truth: Labels,
    guesses: Labels,
    classes: int,
    better: Literal["lower", "higher"],
    person: Array,
    confidence: float = 0.95,
) -> Figure:
    """Accuracy beside that of always saying the commonest class.

    >>> figure = accuracy_figure([0, 1, 1, 1], [0, 1, 1, 0], 2, "lower", np.arange(4))
    >>> figure.value, figure.chance, figure.interval
    (0.75, 0.75, 'Clopper-Pearson 95 %')
    """
    codes, said = _pair(truth, guesses)
    commonest, n = chance(codes, classes)[0], len(codes)
    right, percent = int((codes == said).sum()), f"{100 * confidence:g} %"
    if len(np.unique(person)) == n:
        kind, (low, high) = f"Clopper-Pearson {percent}", clopper_pearson(right, n, confidence)
    else:
        kind, (low, high) = (
            f"bootstrap over people {percent}",
            accuracy_over_people(person, codes, said, confidence),
        )
    return Figure(
        right / n if n else commonest,
        low,
        high,
        n,
        commonest,
        better=better,
        interval=kind,
        measure="accuracy",
    )


def balanced_figure(
    truth: Labels,
    guesses: Labels,
    classes: int,
    better: Literal["lower", "higher"],
    person: Array,
    confidence: float = 0.95,
) -> Figure:
    """Balanced accuracy beside chance; at chance where fewer than two classes occur, since then
    there is nothing to tell.

    >>> figure = balanced_figure([0, 1, 1, 1], [0, 1, 1, 0], 2, "lower", np.array([5, 5, 6, 6]))
    >>> round(figure.value, 3), figure.chance, figure.interval
    (0.833, 0.5, 'bootstrap over people 95 %')
    """
    table = confusion(truth, guesses, classes)
    n, sizes, percent = int(table.sum()), table.sum(1), f"{100 * confidence:g} %"
    if np.count_nonzero(sizes) < 2:
        note = (
            "Only one value occurs: there is nothing to tell apart."
            if n
            else "There are no records."
        )
        return Figure(
            1 / classes,
            0.0,
            1.0,
            n,
            1 / classes,
            better=better,
            interval="the whole range",
            note=note,
        )
    if len(np.unique(person)) == n:
        kind = f"Clopper-Pearson per class, combined, {percent}"
        low, high = balanced_interval(table.diagonal().tolist(), sizes.tolist(), confidence)
    else:
        kind, (low, high) = (
            f"bootstrap over people {percent}",
            balanced_over_people(person, truth, guesses, confidence),
        )
    return Figure(
        balanced_accuracy(table),
        low,
        high,
        n,
        chance(truth, classes)[1],
        better=better,
        interval=kind,
    )


def as_codes(labels: Labels) -> Array:
    codes = np.asarray(labels)
    assert codes.ndim == 1, f"Labels are one row of codes, not of shape {codes.shape}."
    assert codes.size == 0 or codes.dtype.kind in "iub", (
        f"Labels are whole numbers, not {codes.dtype}."
    )
    codes = codes.astype(np.int64)
    assert codes.min(initial=0) >= 0, "A label is missing (-1): drop those records before counting."
    return codes


def _pair(truth: Labels, guesses: Labels) -> tuple[Array, Array]:
    left, right = as_codes(truth), as_codes(guesses)
    assert len(left) == len(right), f"{len(left)} labels do not go with {len(right)} guesses."
    return left, right


def _numbers(numbers: npt.ArrayLike) -> Array:
    array = np.asarray(numbers, dtype=np.float64)
    assert np.isfinite(array).all(), "A score is not a finite number."
    return array


def as_probabilities(probabilities: npt.ArrayLike) -> Array:
    table = _numbers(probabilities)
    assert table.ndim == 2, (
        f"Probabilities are a table of records by classes, not of shape {table.shape}."
    )
    assert (table >= 0).all(), "A probability is negative."
    assert (abs(table.sum(1) - 1) < 1e-3).all(), "The probabilities of a record do not sum to one."
    return table
