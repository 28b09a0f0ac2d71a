"""INLP, written here from the paper: directions by which a linear classifier reads the private
attribute are projected out one after the other.

    python benchmarks/peers/inlp_like.py FOLDER

Ravfogel, Elazar, Gonen, Twiton and Goldberg, Null it out, ACL 2020. It stops when the classifier
reads no better than 51 % (balanced) of the people learned from, or after 35 directions.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

sys.path.insert(0, str(Path(__file__).parent))
from files import Raw

DIRECTIONS, ENOUGH = 35, 0.51

raw = Raw(Path(sys.argv[1]))
x, sex = raw.x.astype(float), raw.sex
kept = np.eye(x.shape[1])
for _ in range(DIRECTIONS):
    projected = x[raw.fit] @ kept
    model = LogisticRegression(class_weight="balanced", max_iter=300).fit(projected, sex[raw.fit])
    if balanced_accuracy_score(sex[raw.fit], model.predict(projected)) <= ENOUGH:
        break
    direction = kept @ model.coef_[0]
    direction /= np.linalg.norm(direction)
    kept = kept - np.outer(direction, direction @ kept)
raw.release(x[raw.judged] @ kept)
