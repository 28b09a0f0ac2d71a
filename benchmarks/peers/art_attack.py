"""ART's attribute inference (Nicolae and others, arXiv:1807.01069) on a released file.

    python benchmarks/peers/art_attack.py FOLDER

Attack models of AttributeInferenceBaseline learn from equally many people of *train* of each value,
since a balanced accuracy is counted; the one that reads *valid* best is counted on *test*. Prints
{"found": ..., "by": ...}.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from art.attacks.inference.attribute_inference import AttributeInferenceBaseline
from sklearn.metrics import balanced_accuracy_score

sys.path.insert(0, str(Path(__file__).parent))
from files import equally_many, read

# Without its network, which needs PyTorch, and its kernel machine; of the others some grow slow.
KINDS, MOST = ("rf", "gb", "lr", "dt", "knn"), 8000

warnings.simplefilter("ignore")
z, columns = read(Path(sys.argv[1]) / "released.parquet", "z")
private = np.unique(columns["private"], return_inverse=True)[1]
part = {name: columns["split"] == name for name in ("train", "valid", "test")}
rows = equally_many(columns["private"], part["train"], MOST)
results = []
for kind in KINDS:
    attack = AttributeInferenceBaseline(attack_model_type=kind, attack_feature=0)
    attack.fit(np.column_stack([private[rows].astype(np.float32), z[rows]]))
    scores = [
        balanced_accuracy_score(
            private[part[name]],
            np.asarray(attack.infer(z[part[name]], values=[0, 1])).reshape(-1).astype(int),
        )
        for name in ("valid", "test")
    ]
    results.append((scores[0], scores[1], kind))
best = max(results)
sys.stdout.write(json.dumps({"found": best[1], "by": best[2]}) + "\n")
