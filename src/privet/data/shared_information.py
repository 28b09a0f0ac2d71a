"""How many bits attributes share: what one gives away about another before any release is learned.

Mutual information of two discrete attributes, from counts, with the correction of Miller and Madow
(1955): each entropy is raised by (cells seen - 1) / (2 n), which takes away most of what chance
alone makes two attributes seem to share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import Array, Dataset

_ROWS_AT_ONCE = 65_536


def shared_bits(data: Dataset, names: Sequence[str]) -> Array:
    """Bits shared by each pair of attributes, over records where both are known; on the diagonal,
    an attribute's own.

    Numbers are cut into quarters. Not to be read as zero where it is small: the estimate has an
    error of about 1 / n bits, and attributes can share bits only together with a third.

    >>> from privet.evidence.attribute import Attribute
    >>> coin, other = np.arange(4000) % 2, np.arange(4000) // 2 % 2
    >>> labels = {"coin": coin, "same": 1 - coin, "other": other}
    >>> kinds = {name: Attribute(name, "binary", ("no", "yes")) for name in labels}
    >>> data = Dataset("coins", "table", None, kinds, labels, np.zeros(4000), np.arange(4000), "")
    >>> shared_bits(data, ["coin", "same", "other"]).round(2)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    columns = [_codes(data, name) for name in names]
    sizes = [int(codes.max(initial=0)) + 1 for codes in columns]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    together = np.zeros((starts[-1], starts[-1]))
    for first in range(0, len(data), _ROWS_AT_ONCE):
        one_hot = np.zeros((min(_ROWS_AT_ONCE, len(data) - first), starts[-1]), dtype=np.float32)
        for start, codes in zip(starts, columns, strict=False):
            here = codes[first : first + _ROWS_AT_ONCE]
            known = np.flatnonzero(here >= 0)
            one_hot[known, start + here[known]] = 1
        together += one_hot.T @ one_hot

    def total(table: Array) -> Array:
        """Sum over the cells of each pair of attributes."""
        return np.add.reduceat(np.add.reduceat(table, starts[:-1], axis=0), starts[:-1], axis=1)

    n = total(together)
    by_row, owner = (
        np.add.reduceat(together, starts[:-1], axis=1),
        np.repeat(np.arange(len(names)), sizes),
    )
    expected = by_row[:, owner] * by_row[:, owner].T
    with np.errstate(divide="ignore", invalid="ignore"):
        cells = np.where(
            together > 0, together * np.log2(together * n[owner][:, owner] / expected), 0.0
        )
        plug_in = np.where(n > 0, total(cells) / n, 0.0)
        seen_rows = np.add.reduceat(by_row > 0, starts[:-1], axis=0, dtype=int)
        surplus = seen_rows + seen_rows.T - total((together > 0).astype(float)) - 1
        corrected = plug_in + np.where(n > 0, surplus / (2 * n * np.log(2)), 0.0)
    return np.asarray(np.maximum(corrected, 0.0))


def _codes(data: Dataset, name: str) -> Array:
    attribute = data.attribute(name)
    if attribute.kind == "mask":
        raise PrivetError(
            f"The attribute '{name}' is a mask, and shared bits are counted between classes and"
            " numbers."
        )
    column = data.labels[name]
    if attribute.is_class:
        return column
    known = np.isfinite(column)
    edges = np.unique(np.quantile(column[known], (0.25, 0.5, 0.75))) if known.any() else np.zeros(0)
    return np.where(known, np.searchsorted(edges, column, side="left"), -1)
