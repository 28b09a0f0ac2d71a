"""The array type of all rooms: numpy arrays of any element type."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
