"""Pure functions of numbers: intervals, leakage, information, fairness, distortion,
certificates."""

from typing import Any

import numpy.typing as npt

# The array type of all rooms: numpy arrays of any element type.
Array = npt.NDArray[Any]
