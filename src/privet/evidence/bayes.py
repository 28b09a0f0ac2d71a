"""What the best guess gains from a release: Bayes leakage and Bayes security of a channel, and
figures of a given attack.

A *joint* table has one row per value of the secret and one column per output of the release, with
counts or shares as entries; p(x, y) below is the table divided by its sum. `confusion(truth,
guesses, k)` is one: there the outputs are an adversary's guesses. Over an empty table nothing is
known, and the answer is None, never 0.

Counted tables err high: the best guess is picked for each output on the same records that it is
scored on. With outputs that occur once each, any release looks as if it gave everything away. Few
outputs and many records, or known shares.

Source, where no other is named: Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi and Smith, The
science of quantitative information flow, Springer (2020), chapters 4 and 5.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privet.evidence import Array
from privet.evidence.leakage import accuracy, as_codes, chance, confusion

Labels = npt.ArrayLike


def prior_vulnerability(joint: npt.ArrayLike) -> float | None:
    """How often the best guess without the release is right: max_x p(x).

    >>> prior_vulnerability([[2, 1], [0, 1]])
    0.75
    """
    table = _shares(joint)
    return None if table is None else float(table.sum(1).max())


def posterior_vulnerability(joint: npt.ArrayLike) -> float | None:
    """How often the best guess that sees the release is right: sum_y max_x p(x, y). One minus it is
    the Bayes risk.

    >>> posterior_vulnerability([[2, 1], [0, 1]])
    0.75
    >>> posterior_vulnerability([[3, 0], [0, 1]])
    1.0
    """
    table = _shares(joint)
    return None if table is None else float(table.max(0).sum())


def additive_leakage(joint: npt.ArrayLike) -> float | None:
    """By how much the release raises the best guess: sum_y max_x p(x, y) - max_x p(x), in [0, 1).

    Under a lopsided prior it may be 0 although the release depends on the secret, as in the first
    example: no output makes the rarer value the better guess. `bayes_security` sees that.

    >>> additive_leakage([[2, 1], [0, 1]])
    0.0
    >>> additive_leakage([[3, 0], [0, 1]])
    0.25
    """
    table = _shares(joint)
    # An output's best is at least the entry in the row of the best prior guess: below 0 is
    # rounding.
    return None if table is None else max(float(table.max(0).sum() - table.sum(1).max()), 0.0)


def multiplicative_leakage(joint: npt.ArrayLike) -> float | None:
    """How many times as often the best guess is right: sum_y max_x p(x, y) / max_x p(x), from 1 to
    the number of secrets.

    >>> multiplicative_leakage([[1, 0], [0, 1]])
    2.0
    """
    table = _shares(joint)
    return None if table is None else max(float(table.max(0).sum() / table.sum(1).max()), 1.0)


def min_entropy_leakage(joint: npt.ArrayLike) -> float | None:
    """Loss of min-entropy in bits: log2 of `multiplicative_leakage`, from 0 to log2 of the number
    of secrets.

    Source: Smith, On the foundations of quantitative information flow, FoSSaCS (2009), 288-302.

    >>> min_entropy_leakage([[1, 0], [0, 1]])
    1.0
    """
    times = multiplicative_leakage(joint)
    return None if times is None else float(np.log2(times))


def bayes_security(joint: npt.ArrayLike) -> float | None:
    """beta*: the lowest ratio, over all priors, of the Bayes risk to the risk of guessing blindly;
    1 is safe, 0 is none.

    It is reached where two secrets are equally likely and all others excluded. With C the rows of
    the table, each divided by its sum, and tv the total variation, half the sum of absolute
    differences::

        beta* = min over priors p of (1 - sum_y max_x p(x) C(x, y)) / (1 - max_x p(x))
              = 1 - max over a, b of tv(C_a, C_b)

    It does not depend on how common the secrets are. Values that never occur are left out; None
    where fewer than two do.

    Source: Chatzikokolakis, Cherubin, Palamidessi and Troncoso, Bayes security: a not so average
    metric, CSF (2023), arXiv:2011.03396.

    >>> round(bayes_security([[90, 10], [2, 8]]), 6)
    0.3
    """
    rows = _channel(joint)
    if rows is None:
        return None
    apart = max(float(abs(rows[a + 1 :] - rows[a]).sum(1).max()) for a in range(len(rows) - 1))
    return min(max(1 - apart / 2, 0.0), 1.0)


def uniform_bayes_security(joint: npt.ArrayLike) -> float | None:
    """The same ratio at one prior only, all k secrets equally likely: Bayes risk divided by 1 - 1 /
    k.

    With C as in `bayes_security`: (1 - sum_y max_x C(x, y) / k) / (1 - 1 / k). For two secrets it
    is beta*; for more it is at least beta*, since one pair that is easy to tell apart is averaged
    with the others.

    >>> uniform_bayes_security([[1, 0], [0, 1]]), round(
    ...     uniform_bayes_security([[2, 0], [0, 2], [0, 1]]), 6
    ... )
    (0.0, 0.5)
    """
    rows = _channel(joint)
    if rows is None:
        return None
    risk = 1 - rows.max(0).sum() / len(rows)
    return min(max(float(risk / (1 - 1 / len(rows))), 0.0), 1.0)


def advantage(truth: Labels, guesses: Labels) -> float | None:
    """Accuracy minus that of always saying the commonest value: negative where the adversary does
    worse than that.

    Source: Yeom, Giacomelli, Fredrikson and Jha, Privacy risk in machine learning, CSF (2018),
    268-282.

    >>> advantage([0, 1, 1, 1], [0, 1, 1, 1]), advantage([1, 1], [1, 1])
    (0.25, 0.0)
    """
    codes = as_codes(truth)
    right = accuracy(codes, guesses)
    return right - chance(codes, int(codes.max()) + 1)[0] if len(codes) else None


def f1(truth: Labels, guesses: Labels | None = None) -> float | None:
    """Macro F1: the mean over classes of 2 TP / (2 TP + FP + FN).

    Takes labels and guesses, or a confusion matrix alone. As in scikit-learn the mean is over the
    classes that are present or guessed, so a class that is guessed and never there counts as 0.

    Source: van Rijsbergen, Information retrieval, 2nd ed. (1979), chapter 7.

    >>> round(f1([0, 1, 1, 1], [0, 1, 1, 0]), 4)
    0.7333
    """
    if guesses is None:
        table = np.asarray(truth)
        assert table.ndim == 2 and table.shape[0] == table.shape[1], (
            f"A confusion matrix is square, this is {table.shape}."
        )
    else:
        truth, guesses = as_codes(truth), as_codes(guesses)
        table = confusion(
            truth, guesses, 1 + int(max(truth.max(initial=0), guesses.max(initial=0)))
        )
    seen = table.sum(0) + table.sum(1)  # 2 TP + FP + FN
    return float((2 * table.diagonal()[seen > 0] / seen[seen > 0]).mean()) if seen.any() else None


def tpr_at(truth: Labels, score: npt.ArrayLike, fpr: float = 0.01) -> float | None:
    """Share of class 1 found by the best threshold that wrongly flags at most a share `fpr` of
    class 0.

    No curve is drawn between thresholds: with fewer than 1 / `fpr` records of class 0 not one may
    be flagged. A score that knows nothing reaches `fpr` or less. None where a class is absent.

    Source: Carlini, Chien, Nasr, Song, Terzis and Tramer, Membership inference attacks from first
    principles, S&P (2022).

    >>> tpr_at([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), tpr_at(
    ...     [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], fpr=0.5
    ... ), tpr_at([1], [0.3])
    (0.5, 1.0, None)
    """
    codes, scores = as_codes(truth), np.asarray(score, dtype=np.float64)
    assert codes.shape == scores.shape, (
        f"{codes.shape} labels do not go with {scores.shape} scores."
    )
    assert codes.max(initial=0) <= 1, (
        f"A rate of true positives is for two classes, but a label is {codes.max()}."
    )
    assert np.isfinite(scores).all(), "A score is not a finite number."
    assert 0 <= fpr <= 1, f"A share lies between 0 and 1, {fpr} does not."
    negatives, positives = np.sort(scores[codes == 0])[::-1], scores[codes == 1]
    if not len(negatives) or not len(positives):
        return None
    allowed = int(fpr * len(negatives) + 1e-9)  # 0.29 * 100 is a little less than 29
    return 1.0 if allowed >= len(negatives) else float((positives > negatives[allowed]).mean())


def _shares(joint: npt.ArrayLike) -> Array | None:
    """The table divided by its sum; None where that is 0."""
    table = np.asarray(joint, dtype=np.float64)
    assert table.ndim == 2, (
        f"A joint table has secrets as rows and outputs as columns, not the shape {table.shape}."
    )
    assert np.isfinite(table).all() and (table >= 0).all(), (
        "The entries of a joint table are finite and not negative."
    )
    total = table.sum()
    return table / total if total > 0 else None


def _channel(joint: npt.ArrayLike) -> Array | None:
    """Rows p(y | x) of the secrets that occur; None where fewer than two do."""
    table = _shares(joint)
    if table is None:
        return None
    rows = table[table.sum(1) > 0]
    return rows / rows.sum(1, keepdims=True) if len(rows) > 1 else None
