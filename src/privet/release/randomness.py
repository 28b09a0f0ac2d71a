"""Where the random numbers of a release come from: a secret key, the operating system, or a seed.

Each source draws the unit noise of some records, and for each record a random word by which a file
is shuffled.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privet.data.dataset import Array
from privet.release.noise import Noise, advanced

# Records whose noise is drawn at once.
NOISE_BATCH = 256


class Randomness(Protocol):
    """Draws what `KeyedNoise.draw` draws: unit noise, and a word per record."""

    def draw(
        self, law: Noise | None, x: Array, start: int = 0, ids: Sequence[str] | None = None
    ) -> tuple[Array | None, Array]: ...


class Fresh:
    """From the operating system's generator: nobody can repeat it, and whoever sees a record
    released many times can average the noise away."""

    def draw(
        self, law: Noise | None, x: Array, start: int = 0, ids: Sequence[str] | None = None
    ) -> tuple[Array | None, Array]:
        places = np.frombuffer(os.urandom(8 * len(x)), dtype=np.uint64)
        return None if law is None else law.draw(len(x), x.shape[1]), places


@dataclass(frozen=True)
class Seeded:
    """Noise that follows from a seed and from where a record's batch starts in the whole file: the
    same however a file is cut into parts that do not cross a batch. For tests, not for releasing.
    """

    seed: int

    def draw(
        self, law: Noise | None, x: Array, start: int = 0, ids: Sequence[str] | None = None
    ) -> tuple[Array | None, Array]:
        places = advanced(self.seed, start).random_raw(len(x))
        if law is None:
            return None, places
        skip = start % NOISE_BATCH
        mixed = int(np.random.SeedSequence([self.seed, start - skip]).generate_state(1)[0])
        return law.draw(len(x), x.shape[1], mixed, skip), places
