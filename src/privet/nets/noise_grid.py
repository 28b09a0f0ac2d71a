"""The grid that released numbers are rounded to after noise is added. Needs no PyTorch: whoever
checks released records asks for the same grid."""

from __future__ import annotations

import math

# Steps within one scale of the noise, or up to twice as many.
GRID_STEPS = 4096


def grid_step(scale: float, steps: int = GRID_STEPS) -> float:
    """The distance between two numbers of the grid, a power of two.

    >>> grid_step(0.4) == 2**-2 / 4096
    True
    """
    return 2.0 ** math.floor(math.log2(max(scale, 1e-30))) / steps
