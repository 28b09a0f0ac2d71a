"""More about the adversary that was strongest on *select*: F1, the tail of its curve, Bayes
leakage, usable bits.

Replies, pairs of values and calibration are learned on *select*; see answers.py for why. Intervals
draw people anew.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.special import xlogy

from privet.evidence import Array
from privet.evidence.bayes import tpr_at
from privet.evidence.calibration import calibrated
from privet.evidence.figures import Direction, Figure
from privet.evidence.leakage import confusion, guess
from privet.evidence.person_intervals import affordable, by_content, draw, ends
from privet.evidence.regression import OTHER
from privet.evidence.roc import tpr_over_people

FPR = 0.01


def of_classes(
    truth_select: Array,
    answers_select: Array,
    truth: Array,
    answers: Array,
    person: Array,
    weights: Array,
    better: Direction,
    whose: str,
) -> dict[str, Figure]:
    """Every figure by its name. `weights` make guesses of answers (`leakage.guess`), `whose` is a
    sentence for the notes.

    Where fewer than two values occur on *test* each stands at chance, and its interval is all that
    is possible.
    """
    classes, guesses, n = answers.shape[1], guess(answers, weights), len(truth)
    learned = confusion(truth_select, guess(answers_select, weights), classes)
    present = np.unique(truth)
    told = len(present) > 1
    lower = f"{whose} A lower bound of the leak: a better adversary may read more."
    about = f"Of this adversary's guesses; the best reply to each was learned on select. {lower}"
    entropy = float(np.log2(classes))
    # Per measure: chance, what its values lie between, unit, direction, measure in words, note.
    described: dict[str, tuple[float, tuple[float, float], str, Direction, str, str]] = {
        "f1": (
            1 / (len(present) if told else classes),
            (0.0, 1.0),
            "share",
            better,
            "macro F1",
            whose,
        ),
        "tpr_at_fpr_1_percent": (
            FPR,
            (0.0, 1.0),
            "share",
            better,
            "true positives at 1 % false positives",
            whose,
        ),
        "advantage": (
            0.0,
            (-1.0, 1.0),
            "share",
            better,
            "accuracy above the commonest value's share",
            whose,
        ),
        "additive_leakage": (0.0, (0.0, 1.0), "share", better, "additive Bayes leakage", about),
        "multiplicative_leakage": (
            1.0,
            (1.0, float(classes)),
            "times",
            better,
            "multiplicative Bayes leakage",
            about,
        ),
        "min_entropy_leakage": (0.0, (0.0, entropy), "bits", better, "min-entropy leakage", about),
        "bayes_security": (
            1.0,
            (0.0, 1.0),
            "share",
            OTHER[better],
            "Bayes security",
            (
                "Of this adversary's guesses; the two values that it tells apart best on select."
                f" {whose} An upper bound: a better adversary may leave less."
            ),
        ),
        "usable_bits": (
            0.0,
            (0.0, entropy),
            "bits",
            better,
            "usable information",
            f"After calibration on select. {lower}",
        ),
    }
    found: dict[str, tuple[float, float, float]] = {}
    if told:
        found = _from_sums(
            truth,
            guesses,
            answers.argmax(1),
            calibrated(truth_select, answers_select, answers),
            person,
            learned,
        )
        column = _column(truth_select, answers_select, present)
        rate = tpr_over_people(person, (truth == column).astype(np.int64), answers[:, column], FPR)
        if rate is not None:
            found["tpr_at_fpr_1_percent"] = (rate.value, *rate.interval)
            said = (
                f"{whose} The threshold is that of the test records, so with fewer than 100 of the"
                " other class none may be flagged."
            )
            if classes > 2:
                said += " Of the value for which it is highest on select, against the rest."
            described["tpr_at_fpr_1_percent"] = (*described["tpr_at_fpr_1_percent"][:5], said)

    figures = {}
    for name, (level, (least, most), unit, direction, words, note) in described.items():
        if name in found:
            value, low, high = (float(np.clip(number, least, most)) for number in found[name])
            figures[name] = Figure(
                value,
                low,
                high,
                n,
                level,
                unit,
                direction,
                "bootstrap over people 95 %",
                words,
                note,
            )
        else:
            note = "Nothing can be told apart: fewer than two values occur among the test records."
            figures[name] = Figure(
                level, least, most, n, level, unit, direction, "the whole range", words, note
            )
    return figures


def _from_sums(
    truth: Array, guesses: Array, plain: Array, probabilities: Array, person: Array, learned: Array
) -> dict[str, tuple[float, float, float]]:
    """Value and interval of every measure that is a function of sums over records, from one set of
    draws.

    The sums are the joint table of truth and guess, the plain answers that are right, and the
    log-loss. With T the table in shares, x(y) the reply to guess y that is best on *select*, and a,
    b, Y the two values and the guesses that speak for a rather than b by which *select* tells
    values apart best::

        macro F1      mean of 2 T_cc / (row c + column c) over classes that occur or are guessed
        advantage     share of plain answers that are right - share of the commonest value
        posterior     sum over y of T[x(y), y];  additive = posterior - prior,
                      multiplicative = posterior / prior
        security      1 - (sum over y in Y of T[a, y] / row a - T[b, y] / row b)
        usable bits   entropy of the rows + mean log2 of the probability of the truth

    Guessing at random with the frequencies of the values has macro F1 of 1 / classes, and no guess
    without data has more. Sources: bayes.py and information.py, whose formulas these are where
    reply and pair are known.
    """
    classes, n = len(learned), len(truth)
    sizes = np.bincount(truth, minlength=classes)
    # A guess that select does not have is answered by the commonest value there, and so is one that
    # leaves it open.
    reply = (
        (learned + 1e-6 * learned.sum(1, keepdims=True)).argmax(0)
        if learned.any()
        else np.arange(classes)
    )
    a, b, speaks = _pair_told_apart(learned, np.flatnonzero(sizes))
    commonest, smooth = int(sizes.argmax()), 1e-6
    bits = np.log2((1 - smooth) * probabilities[np.arange(n), truth] + smooth / classes)

    names, place = np.unique(person, return_inverse=True)
    cells = classes**2
    rows = np.concatenate([truth * classes + guesses, np.full(n, cells), np.full(n, cells + 1)])
    sums = csr_array(
        (np.concatenate([np.ones(n), plain == truth, bits]), (rows, np.tile(place, 3))),
        shape=(cells + 2, len(names)),
    )
    sums = sums[:, by_content(place, len(names), truth, guesses, plain, bits)]

    def statistics(drawn: Array) -> Array:
        totals = (sums @ drawn.T).T
        table, right, logs = (
            totals[:, :cells].reshape(-1, classes, classes),
            totals[:, cells],
            totals[:, cells + 1],
        )
        all_, counted, said = table.sum((1, 2)), table.sum(2), table.sum(1)
        seen = counted + said
        with np.errstate(
            divide="ignore", invalid="ignore"
        ):  # a draw may hold nobody of a value: nan says so
            each = np.where(
                seen > 0, 2 * table.diagonal(axis1=1, axis2=2) / np.where(seen > 0, seen, 1), 0
            )
            prior = counted[:, commonest] / all_
            posterior = table[:, reply, np.arange(classes)].sum(1) / all_
            apart = (table[:, a, speaks].sum(1) / counted[:, a]) - (
                table[:, b, speaks].sum(1) / counted[:, b]
            )
            shares = counted / all_[:, None]
            usable = logs / all_ - xlogy(shares, shares).sum(1) / np.log(2)
            found = np.stack(
                [
                    each.sum(1) / (seen > 0).sum(1),
                    right / all_ - prior,
                    posterior - prior,
                    posterior / prior,
                    apart,
                    usable,
                ],
                axis=1,
            )
        return np.where(np.isfinite(found), found, np.nan)

    values = statistics(np.ones((1, len(names))))[0]
    size = max(n, cells)
    found = draw(statistics, len(names), affordable(size), size=size)
    fewest = min(len(np.unique(place[truth == c])) for c in np.unique(truth))
    top = float(np.log2(classes))
    everyone = len(names)
    limits = [
        (fewest, (0.0, 1.0)),
        (everyone, (-1.0, 1.0)),
        (everyone, (-1.0, 1.0)),
        (everyone, (0.0, float(classes))),
        (fewest, (-1.0, 1.0)),
        (everyone, (-top, top)),
    ]
    f1, advantage, additive, times, apart, usable = (
        (float(value), *ends(column, float(value), people, bounds=bounds))
        for value, column, (people, bounds) in zip(values, found.T, limits, strict=True)
    )
    return {
        "f1": f1,
        "advantage": advantage,
        "additive_leakage": additive,
        "multiplicative_leakage": times,
        "min_entropy_leakage": (_bits(times[0]), _bits(times[1]), _bits(times[2])),
        "bayes_security": (1 - max(apart[0], 0.0), 1 - apart[2], 1 - max(apart[1], 0.0)),
        "usable_bits": usable,
    }


def _pair_told_apart(table: Array, present: Array) -> tuple[int, int, Array]:
    """Of the values that occur, the two with the largest total variation in a table of counts, and
    what speaks for the first.

    >>> _pair_told_apart(np.array([[8, 2, 0], [2, 8, 0], [0, 5, 5]]), np.arange(3))
    (2, 0, array([1, 2]))
    """
    known = present[table[present].sum(1) > 0]
    if len(known) < 2:  # nothing was learned: the guess of a value speaks for it
        return int(present[1]), int(present[0]), present[1:2]
    rows = table[known] / table[known].sum(1, keepdims=True)
    farthest = [abs(rows[: i + 1] - rows[i]).sum(1) for i in range(len(known))]
    first = int(np.argmax([apart.max() for apart in farthest[1:]])) + 1
    second = int(farthest[first][:first].argmax())
    return int(known[first]), int(known[second]), np.flatnonzero(rows[first] > rows[second])


def _column(truth: Array, answers: Array, present: Array) -> int:
    """Of the values that occur, the one whose rate of true positives is highest on *select*; of two
    values the second."""
    if answers.shape[1] == 2:
        return 1
    rates = [tpr_at((truth == c).astype(np.int64), answers[:, c], FPR) for c in present]
    return int(present[np.argmax([-1.0 if rate is None else rate for rate in rates])])


def _bits(times: float) -> float:
    return float(np.log2(max(times, 1.0)))
