"""Whether the model for a task treats groups alike: demographic parity and equalised odds.

With g the groups, y the true value and c what the model says::

    demographic parity difference   max over c of (max over g - min over g of P(c | g))
    equalised odds difference       max over y and c of (max over g - min over g of P(c | y, g))

For two classes these are fairlearn's `demographic_parity_difference` and
`equalized_odds_difference`, and the tests compare them. They are a few lines here because the
machines that run audits need not have fairlearn.

The largest of several differences is never quite 0, however fair the model. The intervals know
that: each pair of groups gets its own for the difference with its sign, at the confidence that
makes all of them hold at once, and the largest absolute difference lies between the largest of the
lower ends and the largest of the upper ends.

Sources: Agarwal, Beygelzimer, Dudik, Langford and Wallach, A reductions approach to fair
classification, ICML (2018); Hardt, Price and Srebro, Equality of opportunity in supervised
learning, NeurIPS (2016).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from privet.evidence import Array
from privet.evidence.figures import Fairness, Figure, Group
from privet.evidence.leakage import accuracy_figure
from privet.evidence.person_intervals import affordable, best_of, by_content, draw, ends

LEAST = 20


def fairness(
    task: str,
    by: str,
    truth: Array,
    guesses_released: Array,
    guesses_raw: Array | None,
    group: Array,
    values: tuple[str, ...],
    person: Array,
    classes: int | None = None,
) -> Fairness:
    """Both differences for the model on released and on raw records, and its accuracy in each group
    on released ones.

    Labels, guesses and groups are codes; records whose label or group is missing (-1) are left out.
    Without `classes` there are as many as the codes show.

    >>> truth, group = np.arange(400) % 2, np.arange(400) // 2 % 2
    >>> found = fairness(
    ...     "smiling",
    ...     "sex",
    ...     truth,
    ...     np.where(group == 1, truth, 1),
    ...     truth,
    ...     group,
    ...     ("a", "b"),
    ...     np.arange(400),
    ... )
    >>> {name: figure.value for name, figure in found.released.items()}
    {'demographic_parity_difference': 0.5, 'equalized_odds_difference': 1.0}
    >>> found.raw["demographic_parity_difference"].value, [
    ...     (rate.value, rate.score.value) for rate in found.rates
    ... ]
    (0.0, [('a', 0.5), ('b', 1.0)])
    """
    there = (np.asarray(truth) >= 0) & (np.asarray(group) >= 0)
    truth, group, person = (
        np.asarray(truth)[there],
        np.asarray(group)[there],
        np.asarray(person)[there],
    )
    seen = (
        [truth, guesses_released] if guesses_raw is None else [truth, guesses_released, guesses_raw]
    )
    classes = (
        max(2, 1 + max(int(np.max(codes, initial=0)) for codes in seen))
        if classes is None
        else classes
    )

    def both(guesses: Array) -> dict[str, Figure]:
        said = np.asarray(guesses)[there]
        return {
            "demographic_parity_difference": _largest(
                np.zeros_like(truth), said, group, person, classes, "demographic parity difference"
            ),
            "equalized_odds_difference": _largest(
                truth, said, group, person, classes, "equalised odds difference"
            ),
        }

    released = np.asarray(guesses_released)[there]
    rates = tuple(
        Group(by, value, accuracy_figure(truth[own], released[own], classes, "higher", person[own]))
        for code, value in enumerate(values)
        for own in (group == code,)
        if own.sum() >= LEAST
    )
    return Fairness(
        task, by, both(guesses_released), {} if guesses_raw is None else both(guesses_raw), rates
    )


def _largest(
    given: Array, guesses: Array, group: Array, person: Array, classes: int, measure: str
) -> Figure:
    """The largest difference between two groups in how often the model says something, among
    records of one `given` value."""
    names, place = np.unique(person, return_inverse=True)
    # Of two classes, saying one less often is saying the other more often: one of them is enough.
    said = np.arange(classes == 2, classes)
    every = [(y, (given == y) & (group == g)) for y in np.unique(given) for g in np.unique(group)]
    cells = [(y, own) for y, own in every if own.sum() >= LEAST]
    pairs = [(i, j) for i, j in combinations(range(len(cells)), 2) if cells[i][0] == cells[j][0]]
    note = f"Groups of fewer than {LEAST} records are left out."
    if not pairs:
        note += " Fewer than two are left."
        return Figure(
            0.0, 0.0, 1.0, len(given), 0.0, interval="the whole range", measure=measure, note=note
        )
    cell = np.full(len(given), -1)
    for i, (_, own) in enumerate(cells):
        cell[own] = i
    # Per cell and person: records, then how many of them the model says each class of.
    width = 1 + len(said)
    counted, heard = np.flatnonzero(cell >= 0), np.flatnonzero((cell >= 0) & np.isin(guesses, said))
    rows = np.concatenate(
        [cell[counted] * width, cell[heard] * width + 1 + guesses[heard] - said[0]]
    )
    whose = np.concatenate([place[counted], place[heard]])
    sums = csr_array((np.ones(len(rows)), (rows, whose)), shape=(len(cells) * width, len(names)))
    sums = sums[:, by_content(place, len(names), cell, guesses)]
    left, right = np.array(pairs).T

    def differences(weights: Array) -> Array:
        totals = (sums @ weights.T).T.reshape(len(weights), len(cells), width)
        with np.errstate(
            divide="ignore", invalid="ignore"
        ):  # a draw may hold nobody of a group: nan says so
            shares = totals[:, :, 1:] / totals[:, :, :1]
        return np.asarray((shares[:, left] - shares[:, right]).reshape(len(weights), -1))

    values = differences(np.ones((1, len(names))))[0]
    size = max(len(names), len(pairs) * len(said))
    found = draw(differences, len(names), affordable(size), size=size)
    people = [len(np.unique(place[own])) for _, own in cells]
    fewest = np.repeat([min(people[i], people[j]) for i, j in pairs], len(said))
    each = [
        ends(column, float(value), int(few), best_of(len(values)), bounds=(-1.0, 1.0))
        for column, value, few in zip(found.T, values, fewest, strict=True)
    ]
    low = max(max(low, -high, 0.0) for low, high in each)
    high = max(max(high, -low) for low, high in each)
    kind = "bootstrap over people 95 %" + (
        f", for all {len(each)} differences at once" if len(each) > 1 else ""
    )
    return Figure(
        float(abs(values).max()),
        low,
        high,
        len(given),
        0.0,
        interval=kind,
        measure=measure,
        note=note,
    )
