"""Learning in cycles, so that it can stop where nothing more is gained.

Within one long cycle of the learning rate a network gets good only at the end, when the rate has
come down, and nobody can tell on the way whether the rest will pay. So the rate comes down several
times: after a sixteenth of all epochs, then after twice as many, and so on, each cycle as long as
all before it, going on from the same weights. Where a cycle gains nothing on *select*, the longer
one after it is left out. Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm
restarts, ICLR 2017.
"""

from __future__ import annotations

import math
from itertools import pairwise

# Fewest steps of a cycle.
FEWEST_STEPS = 200


class Cycles:
    """The cycles of one training, and when it is over.

    Parameters:
        ends: The epochs before which each cycle ends, in order; the last is the end of all.
        earliest: The share of all epochs before which it is never over.
    """

    def __init__(self, ends: tuple[int, ...], earliest: float) -> None:
        self.ends, self.earliest, self._before = ends, earliest, -math.inf

    @staticmethod
    def of(epochs: int, steps: int, earliest: float) -> Cycles:
        """Of so many epochs with so many steps each.

        >>> Cycles.of(32, 100, 0.25).ends, Cycles.of(3, 10, 0.25).ends
        ((2, 4, 8, 16, 32), (3,))
        """
        ends = [epochs]
        shortest = max(epochs / 16, FEWEST_STEPS / steps)
        while ends[0] / 2 >= shortest and ends[0] > 1:
            ends.insert(0, math.ceil(ends[0] / 2))
        return Cycles(tuple(ends), earliest)

    def share(self, epoch: int, within: float) -> float:
        """How much of its cycle is done after `epoch` epochs and a share of the next."""
        start, end = next(pair for pair in pairwise((0, *self.ends)) if epoch < pair[1])
        return (epoch + within - start) / (end - start)

    def is_over(self, epoch: int, best: float, least: float) -> bool:
        """Whether to stop after this epoch: a cycle ends with it that gained less than `least`.

        Parameters:
            epoch: Counted from 0.
            best: The highest score so far.
            least: What a cycle has to gain.
        """
        if epoch + 1 not in self.ends:
            return False
        gained, self._before = best - self._before, best
        return gained < least and epoch + 1 >= self.earliest * self.ends[-1]
