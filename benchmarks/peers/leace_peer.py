"""LEACE (Belrose and others, NeurIPS 2023) by its authors' package concept-erasure: no linear
classifier reads the private attribute afterwards.

    python benchmarks/peers/leace_peer.py FOLDER
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
eraser = LeaceEraser.fit(x[raw.fit], private[raw.fit])
raw.release(eraser(x[raw.judged]).numpy())
