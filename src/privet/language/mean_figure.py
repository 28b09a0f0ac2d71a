"""A mean over people or canaries as a figure with its interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from privet.data.dataset import Array
from privet.evidence.figures import Figure
from privet.evidence.person_intervals import bootstrap_people


def mean_figure(
    values: Array,
    person: Array,
    measure: str,
    *,
    over: str = "authors",
    chance: float = 0.0,
    confidence: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
    unseen: tuple[float, float] | None = None,
    **about: Any,
) -> Figure:
    """The mean of `values` (n,), with an interval from samples of whole people.

    Parameters:
        values, person: One value per record, and whose record it is.
        measure, chance: What the mean is, and its value by chance.
        over: What people are called in the description of the interval.
        bounds, unseen: Of the mean, and of a person who was not drawn, as in `bootstrap_people`.
        about: Other fields of the figure.
    """
    sums = np.c_[values, np.ones(len(values))]
    low, high = bootstrap_people(
        person, sums, lambda s: s[:, 0] / s[:, 1], confidence, bounds=bounds, unseen=unseen
    )
    interval = f"bootstrap over {over} {100 * confidence:.4g} %"
    about = {"interval": interval, "measure": measure, **about}
    return Figure(float(values.mean()), low, high, len(values), chance, **about)
