"""Near-duplicates of pictures: the same photograph, encoded again, brighter or cut by a pixel.

Two steps. Thumbnails of 8 x 8 grey cells, standardised so that brightness and contrast do not
matter, propose pairs: all are compared by matrix products in blocks. A pair counts where the fine
detail agrees as well: the correlation of the differences of each of 32 x 32 cells to its
neighbours, at the best of a few alignments, must exceed `SAME_DETAIL`. Different photographs of one
person stay far below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from weakref import WeakKeyDictionary

import numpy as np

from privet.data.dataset import PARTS, Array, Dataset

# Cells along a side of the thumbnails that propose pairs, and of those that decide.
COARSE, FINE = 8, 32
# Correlation of coarse thumbnails from which a pair is looked at, and of fine detail from which it
# counts. On 20,000 celeba64 pictures no pair above 0.6 shows two photographs; of UTKFace, whose
# pictures are closer to each other, none above 0.7.
SIMILAR, SAME_DETAIL = 0.95, 0.75
# Share of a side that a picture may be shifted or cut by: a pixel in 64.
PIXEL = 1 / 64
# Pictures of which all pairs are compared; of more, some test pictures with some others.
MOST = 20_000
QUERIES = 4_000
_BLOCK = 1_000

# The pairs of data that was asked before: every audit of a comparison asks the same data.
_known: WeakKeyDictionary[Dataset, Array] = WeakKeyDictionary()

# Where a window of a side begins and how long it is, as shares of the side.
Window = tuple[float, float]


def near_duplicates(data: Dataset) -> Array:
    """Pairs of places in the view (m, 2), the lower first, whose pictures are nearly the same.

    Of more than `MOST` pictures, `QUERIES` of *test* are compared with as many others as that
    leaves room for, both spread evenly over the data.
    """
    if data not in _known:
        _known[data] = _search(data)
    return _known[data]


def _search(data: Dataset) -> Array:
    from_test = data.part_of == PARTS.index("test")
    queries, others = np.arange(len(data)), np.arange(len(data))
    if len(data) > MOST:
        queries = _spread(np.flatnonzero(from_test), QUERIES)
        others = _spread(np.flatnonzero(~from_test), MOST * MOST // (2 * QUERIES))
    proposed = _similar(_coarse(data, queries), _coarse(data, others), queries, others)
    blocks = np.array_split(proposed, max(1, len(proposed) // _BLOCK))
    same = [pairs[_same_detail(data, pairs)] for pairs in blocks]
    return np.unique(np.concatenate(same), axis=0)


def _spread(places: Array, most: int) -> Array:
    """At most so many of the places, evenly."""
    return places[:: max(1, -(-len(places) // most))]


def _coarse(data: Dataset, places: Array) -> Array:
    thumbnails = [
        _standardised(_pooled(grey, COARSE, (0.0, 1.0), (0.0, 1.0)))
        for grey in _grey_blocks(data, places)
    ]
    return np.concatenate(thumbnails)


def _grey_blocks(data: Dataset, places: Array) -> Iterator[Array]:
    for start in range(0, len(places), _BLOCK):
        yield _grey(data, places[start : start + _BLOCK])


def _grey(data: Dataset, places: Array) -> Array:
    pictures = np.asarray(data.records[data.rows[places]])
    grey: Array = pictures.sum(1, dtype=np.uint16)
    return grey.astype(np.float32)


def _similar(queries: Array, others: Array, query_places: Array, other_places: Array) -> Array:
    """Pairs of places whose coarse thumbnails are alike."""
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    for start in range(0, len(queries), _BLOCK):
        alike = queries[start : start + _BLOCK] @ others.T > SIMILAR
        row, column = np.nonzero(alike)
        both = np.stack([query_places[row + start], other_places[column]], axis=1)
        both = both[both[:, 0] != both[:, 1]]
        pairs.append(np.unique(np.sort(both, axis=1), axis=0))
    return np.unique(np.concatenate(pairs), axis=0)


def _same_detail(data: Dataset, pairs: Array) -> Array:
    """Whether the fine detail of each pair agrees at one of the alignments."""
    if not len(pairs):
        return np.zeros(0, dtype=bool)
    left, right = (_grey(data, pairs[:, side]) for side in (0, 1))
    agreement = np.full(len(pairs), -1.0, dtype=np.float32)
    for of_left, of_right in _alignments():
        details = _detail(_pooled(left, FINE, *of_left)), _detail(_pooled(right, FINE, *of_right))
        agreement = np.maximum(agreement, np.einsum("nd,nd->n", *details))
    return np.asarray(agreement > SAME_DETAIL)


def _alignments() -> list[tuple[tuple[Window, Window], tuple[Window, Window]]]:
    """Windows (down, across) of the first and of the second picture that may show the same: shifted
    by up to a pixel, or cut by one on every side."""
    whole, first, last = (0.0, 1.0), (0.0, 1 - PIXEL), (PIXEL, 1 - PIXEL)
    shifts = ((whole, whole), (first, last), (last, first))
    inner = (PIXEL, 1 - 2 * PIXEL)
    shifted = [
        ((down[0], across[0]), (down[1], across[1])) for down, across in product(shifts, shifts)
    ]
    return [*shifted, ((inner, inner), (whole, whole)), ((whole, whole), (inner, inner))]


def _pooled(grey: Array, cells: int, down: Window, across: Window) -> Array:
    """Means over cells x cells of a window of each picture (n, height, width)."""
    rows, columns = _averages(grey.shape[1], cells, down), _averages(grey.shape[2], cells, across)
    return np.asarray(rows @ grey @ columns.T)


def _averages(pixels: int, cells: int, window: Window) -> Array:
    """(cells, pixels): how much of each pixel is in each cell; rows sum to 1."""
    edges = pixels * (window[0] + window[1] * np.arange(cells + 1) / cells)
    pixel = np.arange(pixels)
    overlap = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
    inside: Array = np.maximum(overlap, 0.0)
    return np.asarray(inside / inside.sum(1, keepdims=True), dtype=np.float32)


def _detail(cells: Array) -> Array:
    """Differences of cells to the mean of their neighbours, standardised."""
    wide = np.pad(cells, ((0, 0), (1, 1), (1, 1)), mode="edge")
    beside = wide[:, 1:-1, :-2] + wide[:, 1:-1, 2:]
    above = wide[:, :-2, 1:-1] + wide[:, 2:, 1:-1]
    return _standardised(cells - (beside + above) / 4)


def _standardised(cells: Array) -> Array:
    """Each picture as a row of mean 0 and length 1; zeros where it is of one colour."""
    rows = cells.reshape(len(cells), -1)
    rows = rows - rows.mean(1, keepdims=True)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(length > 1e-3, rows / np.maximum(length, 1e-3), 0.0).astype(np.float32)
