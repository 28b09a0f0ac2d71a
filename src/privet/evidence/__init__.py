"""Pure functions of numbers: intervals, leakage, information, fairness, distortion,
certificates."""
