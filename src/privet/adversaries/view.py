"""View: what a released record looks like from outside, which is all that decides who can attack
it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    shape: tuple[int | None, ...]
    """Of one record; None for a free axis."""
    vocabulary: int | None = None
    """For word ids: how many words there are."""
    step: float | None = None
    """Where all values are whole multiples of one number, as in pictures: that number."""

    @property
    def is_text(self) -> bool:
        """Word ids, or one vector per word."""
        return self.shape[0] is None

    @property
    def is_map(self) -> bool:
        """Pictures or feature maps: channels, height, width."""
        return len(self.shape) == 3

    @property
    def is_series(self) -> bool:
        """Signals or their features: channels, time."""
        return len(self.shape) == 2 and not self.is_text
