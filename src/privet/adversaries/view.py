"""View: what a released record looks like from outside. It decides which adversaries can attack."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """The form of released records.

    Parameters:
        shape: Of one record; None for an axis whose length differs between records.
        vocabulary: Of word ids, how many words there are; None for other records.
        step: Where all values are whole multiples of one number, as in pictures: that number.
    """

    shape: tuple[int | None, ...]
    vocabulary: int | None = None
    step: float | None = None

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

    @property
    def is_vector(self) -> bool:
        """One vector of fixed length."""
        return len(self.shape) == 1 and not self.is_text
