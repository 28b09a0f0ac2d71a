"""Do released vectors fall into the same clusters as raw ones? The adjusted Rand index of two
k-means clusterings.

With n_ij the records in cluster i of one and j of the other, a_i and b_j their row and column sums
and C(x) = x (x - 1) / 2::

    index    = sum C(n_ij),   expected = sum C(a_i) sum C(b_j) / C(n)
    adjusted = (index - expected) / ((sum C(a_i) + sum C(b_j)) / 2 - expected)

1 says that both are the same, 0 that they agree as clusterings at random would.

Source: Hubert and Arabie, Comparing partitions, Journal of Classification 2 (1985), 193-218.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.sparse import csr_array

from privet.evidence import Array
from privet.evidence.figures import Figure
from privet.evidence.person_intervals import affordable, by_content, draw, ends

CLUSTERS = 10
# Records that are clustered, drawn at random where there are more; and passes of k-means.
MOST_RECORDS = 20_000
PASSES = 30


def cluster_agreement(
    raw: Array, released: Array, people: Array, clusters: int = CLUSTERS, seed: int = 0
) -> Figure:
    """Adjusted Rand index of the clusters of raw and of released vectors, with an interval over
    people. Both clusterings start from the same records.

    The note says how well two clusterings of the raw vectors agree that start from different
    records: k-means has several answers, and a release cannot be asked for more.
    """
    clusters = max(2, min(clusters, len(raw) // 4))
    random = np.random.default_rng([seed, 6])
    some = random.permutation(len(raw))[:MOST_RECORDS]
    raw, released, people = raw[some], released[some], people[some]
    starts = [random.choice(len(raw), min(clusters, len(raw)), replace=False) for _ in range(2)]
    truth, other = (k_means(raw, start) for start in starts)
    found = k_means(released, starts[0])
    value, again = adjusted_rand(truth, found), adjusted_rand(truth, other)
    return Figure(
        value,
        *_over_people(truth, found, people, value),
        len(raw),
        0.0,
        better="higher",
        interval="bootstrap over people 95 %",
        measure=f"adjusted Rand index of {clusters} clusters",
        note=(
            "Two clusterings of the raw vectors that start from different records agree at"
            f" {again:.2f}."
        ),
    )


def k_means(vectors: Array, start: Array) -> Array:
    """Cluster of each vector by k-means, from the vectors at the places `start`.

    >>> k_means(np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([0, 2]))
    array([0, 0, 1, 1])
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a cluster that loses its last record stays where it is
        _, labels = kmeans2(vectors, vectors[start], iter=PASSES, minit="matrix", missing="warn")
    return np.asarray(labels, dtype=np.int64)


def adjusted_rand(one: Array, other: Array) -> float:
    """Adjusted Rand index of two labellings of the same records.

    >>> adjusted_rand(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    size = int(max(one.max(), other.max())) + 1
    return float(_adjusted(np.bincount(one * size + other, minlength=size**2)[None], size)[0])


def _adjusted(cells: Array, size: int) -> Array:
    """The index of tables (draws, size * size)."""

    def pairs(x: Array) -> Array:
        return np.asarray(x * (x - 1) / 2)

    table = cells.reshape(-1, size, size).astype(np.float64)
    rows, columns = pairs(table.sum(2)).sum(1), pairs(table.sum(1)).sum(1)
    expected = rows * columns / np.maximum(pairs(table.sum((1, 2))), 1)
    room = (rows + columns) / 2 - expected
    index = pairs(table).sum((1, 2)) - expected
    # No room: both put all records into one cluster, or each into its own, and agree.
    return np.where(room > 0, index / np.where(room > 0, room, 1), 1.0)


def _over_people(one: Array, other: Array, people: Array, value: float) -> tuple[float, float]:
    size = int(max(one.max(), other.max())) + 1
    names, place = np.unique(people, return_inverse=True)
    cells = one * size + other
    order = by_content(place, len(names), cells)
    counts = csr_array(
        (np.ones(len(cells)), (cells, np.argsort(order)[place])), shape=(size**2, len(names))
    )
    draws = affordable(max(len(cells), size**2))
    found = draw(lambda w: _adjusted((counts @ w.T).T, size), len(names), draws, size=size**2)
    return ends(found, value, len(names), bounds=(-1.0, 1.0))
