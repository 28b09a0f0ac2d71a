"""`privet bench`: speed as ratios to named references that run in turn with ours."""
