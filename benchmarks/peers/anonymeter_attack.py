"""anonymeter's inference attack (Giomi and others, PETS 2023) on a released file.

    python benchmarks/peers/anonymeter_attack.py FOLDER

Released records of *train* with their private value, equally many of each value, stand for the
published table, those of *test* are the targets: the private value of the nearest published record
is the guess. Prints {"found": share of targets whose value is guessed right with both values
equally likely, "by": ...}.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from anonymeter.evaluators import InferenceEvaluator

sys.path.insert(0, str(Path(__file__).parent))
from files import equally_many, read

# Targets of each private value.
EACH = 1000

warnings.simplefilter("ignore")
z, columns = read(Path(sys.argv[1]) / "released.parquet", "z")
names = [f"z{i}" for i in range(z.shape[1])]
frame = pd.DataFrame(z, columns=names)
frame["private"] = columns["private"].astype(str)
rows = equally_many(columns["private"], columns["split"] == "train", len(frame))
published = frame.iloc[rows].reset_index(drop=True)
test = frame[columns["split"] == "test"]
rates = []
for value in sorted(test["private"].unique()):
    targets = test[test["private"] == value].sample(EACH, random_state=0).reset_index(drop=True)
    found = InferenceEvaluator(
        ori=targets, syn=published, aux_cols=names, secret="private", n_attacks=EACH
    ).evaluate(n_jobs=1)
    rates.append(found.results().attack_rate.value)
sys.stdout.write(json.dumps({"found": float(np.mean(rates)), "by": "nearest record"}) + "\n")
