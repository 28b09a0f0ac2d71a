"""LEACE (Belrose and others, NeurIPS 2023) by its authors' package concept-erasure: no linear
classifier reads the private attribute afterwards.

    python benchmarks/peers/leace_peer.py FOLDER [FEWEST]

concept-erasure 0.2.4. Its theorem is about the people that it learns from (*fit*): with one-hot
columns that a single person of *fit* has, the means of the two values can be made equal through
that one person, and other people stay apart. With FEWEST, columns of two values of which fewer
people have the rarer one are released as zeros.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from concept_erasure import LeaceEraser

sys.path.insert(0, str(Path(__file__).parent))
from files import Raw

raw = Raw(Path(sys.argv[1]))
x, private = torch.from_numpy(raw.x.copy()).double(), torch.from_numpy(raw.private)
if fewest := int(sys.argv[2]) if len(sys.argv) > 2 else 0:
    for column in range(x.shape[1]):
        values, people = x[raw.fit, column].unique(return_counts=True)
        if len(values) <= 2 and people.min() < fewest:
            x[:, column] = 0
eraser = LeaceEraser.fit(x[raw.fit], private[raw.fit])
raw.release(eraser(x[raw.judged]).numpy())
