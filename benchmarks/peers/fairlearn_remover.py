"""fairlearn's CorrelationRemover: what a linear regression on the private attribute explains is
taken out of every column.

    python benchmarks/peers/fairlearn_remover.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from fairlearn.preprocessing import CorrelationRemover

sys.path.insert(0, str(Path(__file__).parent))
from files import Raw

raw = Raw(Path(sys.argv[1]))
both = np.column_stack([raw.x, raw.private])
remover = CorrelationRemover(sensitive_feature_ids=[raw.x.shape[1]]).fit(both[raw.fit])
raw.release(remover.transform(both[raw.judged]))
