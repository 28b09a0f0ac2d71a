"""applicants: a drawn table for the small sizes of recipes, since no table comes with Privet.

    hours, trade      men work 5 hours more in the mean, and in other trades
    income is high    where  0.35 (schooling - 12) + 0.06 (hours - 38) + 0.03 (age - 40)
                             + logistic noise > 0.6

So sex can be read in part, income in part, and neither says all of the other.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

_TRADES = ("care", "office", "building")
# Shares of those in the first trade, and in the first two.
_WOMEN, _MEN = (0.5, 0.88), (0.15, 0.5)


def applicants(n: int, seed: int = 0) -> pd.DataFrame:
    """n people of whom a lender knows age, schooling, hours, trade and town.

    >>> applicants(3)["trade"].isin(["care", "office", "building"]).all()
    np.True_
    """
    rng = np.random.default_rng(seed)
    man = rng.permutation(np.arange(n) % 2)
    age = rng.integers(20, 66, n)
    schooling = np.clip(rng.normal(12.5, 2.5, n).round(), 8, 18).astype(int)
    hours = np.clip(rng.normal(36 + 5 * man, 7).round(), 8, 70).astype(int)
    trade = (rng.random(n)[:, None] > np.where(man[:, None] == 1, _MEN, _WOMEN)).sum(1)
    score = (
        0.35 * (schooling - 12) + 0.06 * (hours - 38) + 0.03 * (age - 40) + rng.logistic(0, 0.5, n)
    )
    return pd.DataFrame(
        {
            "age": age,
            "schooling": schooling,
            "hours": hours,
            "trade": np.array(_TRADES)[trade],
            "town": np.array(("north", "south", "east", "west"))[rng.integers(0, 4, n)],
            "sex": np.where(man == 1, "male", "female"),
            "income": np.where(score > 0.6, "high", "low"),
        }
    )
