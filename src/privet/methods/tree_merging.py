"""Merging the leaves of a tree into fewer symbols, until they tell little of the private values.

    V  =  (1 / k) sum over symbols of  max_a P_a(symbol)

falls where two leaves are merged in which different values are the more frequent. The next pair is
the one that lowers the excess of V over what is allowed most, for what the task loses by it (its
entropy given the symbol). Two leaves of one symbol cannot be told apart by anybody, so merging
never tells more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privet.data.dataset import Array

# Added to what the task loses: pairs that lose nothing come in the order of what they gain.
SMALL_LOSS = 1e-6


def success(table: Array) -> Array:
    """Balanced accuracy of the best adversary, from shares (symbols, k) of each value's records.

    >>> float(success(np.array([[0.5, 0.5], [0.5, 0.5]])))
    0.5
    """
    return np.asarray(table.max(-1).sum(-1) / table.shape[-1])


def entropies(table: Array) -> Array:
    """Entropy of a task's value within each symbol, in nats, weighed by the symbol's mass:
    (..., symbols, classes) to (..., symbols)."""
    whole = table.sum(-1, keepdims=True)
    share = table / np.maximum(whole, 1e-300)
    return np.asarray(-(table * np.log(np.maximum(share, 1e-300))).sum(-1))


def merges(
    private: Sequence[Array], tasks: Sequence[Array], allowed: Sequence[float], stop: float
) -> list[Array]:
    """The symbol of every leaf before the first merge and after each one, until V is `stop` below
    what is allowed of every attribute, or two symbols are left.

    `private` and `tasks` hold, per attribute, the mass (leaves, classes) of each value in each
    leaf; a private value's masses sum to 1.
    """
    symbol = np.arange(len(private[0]))
    laws, answers = [table.copy() for table in private], [table.copy() for table in tasks]
    history = [symbol.copy()]
    limits = [limit - stop for limit in allowed]
    while len(laws[0]) > 2:
        values = [success(table) for table in laws]
        if all(value <= limit for value, limit in zip(values, limits, strict=True)):
            break
        gain, lost = np.zeros((len(laws[0]),) * 2), np.zeros((len(laws[0]),) * 2)
        for table, value, limit in zip(laws, values, limits, strict=True):
            pairs = (table[:, None] + table[None]).max(-1)
            drop = (table.max(-1)[:, None] + table.max(-1)[None] - pairs) / table.shape[-1]
            gain += np.minimum(drop, max(float(value) - limit, 0.0))
        for table in answers:
            apart = entropies(table)
            lost += entropies(table[:, None] + table[None]) - apart[:, None] - apart[None]
        worth = np.where(np.triu(np.ones_like(gain), 1) > 0, gain / (lost + SMALL_LOSS), -1.0)
        first, second = np.unravel_index(int(worth.argmax()), worth.shape)
        if worth[first, second] <= 0:
            break
        for tables in (laws, answers):
            for place, table in enumerate(tables):
                table[first] += table[second]
                tables[place] = np.delete(table, second, 0)
        symbol[symbol == second] = first
        symbol[symbol > second] -= 1
        history.append(symbol.copy())
    return history
