"""AIF360's Learning Fair Representations (Zemel and others, ICML 2013), judged by what it releases:
the transformed features.

    python benchmarks/peers/aif360_lfr.py FOLDER [ITERATIONS]

By default its optimiser stops after 5,000 function evaluations; ITERATIONS sets another limit.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from aif360.algorithms.preprocessing import LFR
from aif360.datasets import BinaryLabelDataset

sys.path.insert(0, str(Path(__file__).parent))
from files import Raw

raw = Raw(Path(sys.argv[1]))
limit = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
names = [f"x{i}" for i in range(raw.x.shape[1])]


def dataset(rows: np.ndarray) -> BinaryLabelDataset:
    frame = pd.DataFrame(raw.x[rows].astype(float), columns=names)
    frame["sex"], frame["income"] = raw.sex[rows].astype(float), raw.income[rows].astype(float)
    return BinaryLabelDataset(
        df=frame, label_names=["income"], protected_attribute_names=["sex"],
        favorable_label=1.0, unfavorable_label=0.0,
    )  # fmt: skip


groups = {"unprivileged_groups": [{"sex": 0.0}], "privileged_groups": [{"sex": 1.0}]}
model = LFR(**groups, k=5, Ax=0.01, Ay=1.0, Az=50.0, verbose=0, seed=0)
model = model.fit(dataset(raw.fit), maxiter=limit, maxfun=limit)
released = model.transform(dataset(raw.judged), threshold=0.5)
columns = [i for i, name in enumerate(released.feature_names) if name != "sex"]
raw.release(released.features[:, columns])
