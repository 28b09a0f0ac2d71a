"""INLP (Ravfogel, Elazar, Gonen, Twiton and Goldberg, Null it out, ACL 2020) by its authors'
functions: directions by which a linear classifier reads the private attribute are projected out.

    python benchmarks/peers/inlp_peer.py FOLDER CHECKOUT

CHECKOUT: github.com/shauli-ravfogel/nullspace_projection, commit e1edcc1, whose src/debias.py is
called. The classifier is a linear support vector machine by stochastic gradients, as in their
notebooks, with both values weighted equally. They fix the number of directions by hand (150 and 300
of 300 for biographies, by accuracy on held-out people); here it is the fewest of COUNTS after which
a fresh linear classifier reads at most 51 % (balanced) of *select*, else the last. There are at
most as many directions as a record has numbers, less one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import balanced_accuracy_score

sys.path.insert(0, str(Path(__file__).parent))
from files import Raw

COUNTS, ENOUGH = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 80, 100, 150, 200, 300), 0.51
HOW = {"class_weight": "balanced", "random_state": 0}


def main(folder: Path, checkout: str) -> None:
    sys.path.insert(0, checkout)
    from src.debias import get_debiasing_projection  # type: ignore[import-not-found]

    raw = Raw(folder)
    x, y = (raw.x - raw.x[raw.fit].mean(0)).astype(float), raw.private
    parts = (x[raw.fit], y[raw.fit], x[raw.select], y[raw.select])
    _, _, found = get_debiasing_projection(
        SGDClassifier, HOW, min(COUNTS[-1], x.shape[1] - 1), x.shape[1], True, 0.0, *parts
    )
    steps = {}
    for count in (min(each, len(found)) for each in COUNTS):
        basis = np.linalg.qr(np.vstack(found[:count]).T)[0]
        z = x - (x @ basis) @ basis.T
        reader = LogisticRegression(class_weight="balanced", max_iter=300)
        answers = reader.fit(z[raw.fit], y[raw.fit]).predict(z[raw.select])
        select = float(balanced_accuracy_score(y[raw.select], answers))
        steps[count] = select
        if select <= ENOUGH or count >= len(found):
            break
    raw.release(z[raw.judged], setting=f"{count} directions", select=select, steps=steps)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
