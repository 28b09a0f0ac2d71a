"""Does search still work? Rankings by released vectors held against rankings by raw ones.

Records are vectors, and likeness is the cosine. For a query, the k raw vectors nearest to the raw
query are what a search should find. With R those k records, F the k that are found, best first, and
g(i) = k for the nearest raw record, k - 1 for the next, ..., 1 for the last of R, 0 for others::

    recall@k = |F and R| / k
    nDCG@k   = sum over places p = 1..k of g(F_p) / log2(p + 1),  divided by the same sum for R
    drift    = 1 - cosine(raw vector, released vector)

A query may be released as well and meet a released index, or stay raw and meet it: both are
counted. The query's own record is left out of its ranking. Scores are computed for some queries at
a time: no matrix of all pairs is held.

Source: Jarvelin and Kekalainen, Cumulated gain-based evaluation of IR techniques, ACM Transactions
on Information Systems 20 (2002), 422-446.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from privet.evidence import Array
from privet.evidence.clusters import cluster_agreement
from privet.evidence.figures import Direction, Figure
from privet.evidence.person_intervals import bootstrap_people

# Places of a ranking that are looked at.
K = 10
# Queries, drawn at random where there are more records.
QUERIES = 2000
# Scores held in memory at a time.
AT_ONCE = 1 << 22


def retrieval(
    raw: npt.ArrayLike,
    released: npt.ArrayLike,
    people: npt.ArrayLike | None = None,
    *,
    k: int = K,
    queries: int = QUERIES,
    seed: int = 0,
) -> dict[str, Figure]:
    """What a search, and a clustering, of released vectors keeps of that of raw ones.

    Parameters:
        raw: Vectors before the release, (n, d).
        released: The same records afterwards, (n, e).
        people: Whose each record is; every record its own person where it is left out.
        k: Places of a ranking that are looked at.
        queries: How many records are queries, drawn at random; the index is always all records.
        seed: Of the draw, and of the order of records that are equally near.

    Returns:
        recall_at_10 and ndcg_at_10 (queries released too), cluster_agreement; and, where e = d,
        recall_at_10_raw_queries, ndcg_at_10_raw_queries and drift. Intervals are over the people
        whose records are queries, with the index as it is.

    >>> x = np.random.default_rng(0).normal(size=(200, 8))
    >>> figures = retrieval(x, x)
    >>> figures["recall_at_10"].value, figures["recall_at_10"].better, len(figures)
    (1.0, 'higher', 6)
    """
    before, after = (np.asarray(one) for one in (raw, released))
    who = np.arange(len(before)) if people is None else np.asarray(people)
    assert before.ndim == after.ndim == 2 and len(before) == len(after) == len(who), (
        f"One raw and one released vector per record, not {before.shape} and {after.shape}."
    )
    k = min(k, len(before) - 1)
    assert k >= 1, "A ranking needs two records."
    # In an order of our own: records that are equally near must not be found by the file's order.
    order = np.random.default_rng([seed, 5]).permutation(len(before))
    before, after, who = (one[order] for one in (before, after, who))
    asked = np.arange(min(queries, len(before)))
    relevant = nearest(before[asked], before, k, asked)
    ways = {"": (after, "queries released too")}
    if before.shape == after.shape:
        ways["_raw_queries"] = (before, "raw queries, released index")
    figures = {}
    for ending, (query, how) in ways.items():
        found = nearest(query[asked], after, k, asked)
        for name, measure, chance in _measures(k, len(before)):
            figures[f"{name}_at_{k}{ending}"] = _mean(
                measure(found, relevant), who[asked], chance, f"{_WORDS[name]}@{k}, {how}"
            )
    if before.shape == after.shape:
        figures["drift"] = _mean(drift(before, after), who, 1.0, "mean cosine distance", "lower")
    return figures | {"cluster_agreement": cluster_agreement(unit(before), unit(after), who)}


_WORDS = {"recall": "recall", "ndcg": "nDCG"}


def nearest(queries: Array, index: Array, k: int, without: Array | None = None) -> Array:
    """Places (q, k) in `index` (n, d) of the k vectors with the highest cosine to each query, best
    first.

    Parameters:
        without: Per query, the place in the index of its own record, which is left out.

    >>> index = np.array([[1, 0], [0.9, 0.1], [0, 1], [-1, 0]])
    >>> nearest(index[:1], index, 2, np.array([0]))
    array([[1, 2]])
    """
    assert k <= len(index) - (without is not None), f"No {k} of {len(index)} vectors can be found."
    listed, step = unit(index), max(1, AT_ONCE // max(len(index), 1))
    found = np.empty((len(queries), k), dtype=np.int64)
    for start in range(0, len(queries), step):
        scores = unit(queries[start : start + step]) @ listed.T
        rows = np.arange(len(scores))
        if without is not None:
            scores[rows, without[start : start + step]] = -np.inf
        top = np.argpartition(-scores, k - 1, axis=1)[:, :k] if k < len(index) else None
        top = np.broadcast_to(np.arange(len(index)), (len(scores), k)) if top is None else top
        best = np.argsort(-scores[rows[:, None], top], axis=1, kind="stable")
        found[start : start + step] = top[rows[:, None], best]
    return found


def recall_at(found: Array, relevant: Array) -> Array:
    """Per query (row), the share of the relevant records that were found.

    >>> recall_at(np.array([[4, 2]]), np.array([[2, 9]]))
    array([0.5])
    """
    return np.asarray((found[:, :, None] == relevant[:, None, :]).any(2).mean(1))


def ndcg_at(found: Array, relevant: Array) -> Array:
    """Per query, nDCG of the places found; the first relevant record is worth k, the last 1.

    >>> ndcg_at(np.array([[2, 9], [9, 2], [5, 6]]), np.array([[2, 9]] * 3)).round(3)
    array([1.  , 0.86, 0.  ])
    """
    k = relevant.shape[1]
    worth = k - np.arange(k)
    gains = ((found[:, :, None] == relevant[:, None, :]) * worth).sum(2)
    discounts = 1 / np.log2(np.arange(k) + 2)
    return np.asarray(gains @ discounts / (worth @ discounts))


def drift(raw: Array, released: Array) -> Array:
    """Per record, the cosine distance between its raw and its released vector: 0 to 2.

    >>> drift(np.eye(2), np.array([[3.0, 0.0], [1.0, 0.0]]))
    array([0., 1.])
    """
    step = max(1, AT_ONCE // max(raw.shape[1], 1))
    parts = [
        1 - (unit(raw[at : at + step]) * unit(released[at : at + step])).sum(1)
        for at in range(0, len(raw), step)
    ]
    return np.asarray(np.maximum(np.concatenate(parts), 0.0))


def unit(vectors: Array) -> Array:
    """Rows of length one, float32 unless they are float64; a row of zeros stays."""
    rows = vectors if vectors.dtype == np.float64 else vectors.astype(np.float32)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30))


def _measures(k: int, n: int) -> list[tuple[str, Callable[[Array, Array], Array], float]]:
    """Name, function, and what a ranking at random would reach on average."""
    worth, discounts = k - np.arange(k), 1 / np.log2(np.arange(k) + 2)
    at_random = worth.sum() / (n - 1) * discounts.sum() / (worth @ discounts)
    return [("recall", recall_at, k / (n - 1)), ("ndcg", ndcg_at, float(at_random))]


def _mean(
    values: Array, people: Array, chance: float, measure: str, better: Direction = "higher"
) -> Figure:
    most = 1.0 if better == "higher" else 2.0
    inputs = np.c_[values, np.ones(len(values))].astype(np.float64)
    ends = bootstrap_people(people, inputs, lambda s: s[:, 0] / s[:, 1], bounds=(0.0, most))
    return Figure(
        float(np.mean(values, dtype=np.float64)),
        *ends,
        len(values),
        chance,
        better=better,
        interval="bootstrap over people 95 %",
        measure=measure,
    )
