"""Is gender gone from somebody else's vectors? Attack the file they sent.

python examples/audit_theirs.py FOLDER
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import privet


def main(folder: Path, people: int = 4000) -> float:
    """Write such a file and attack it; the strongest attacker's balanced accuracy."""
    random = np.random.default_rng(0)
    gender = random.integers(0, 2, people)
    # Both groups have the same mean, which is what was checked, and one spreads more widely.
    vectors = random.normal(size=(people, 8)) * np.where(gender == 1, 1.6, 1.0)[:, None]
    theirs = pd.DataFrame({"gender": np.array(["f", "m"])[gender], "vector": list(vectors)})
    theirs.to_parquet(folder / "theirs.parquet")

    audit = privet.audit(folder / "theirs.parquet", private="gender", out=folder / "audit")
    worst = audit.private[0].worst
    print(f"{worst.adversary} reads gender at {worst.score.value:.0%} (guessing: 50 %).")
    return worst.score.value


if __name__ == "__main__":
    main(Path(sys.argv[1]))
