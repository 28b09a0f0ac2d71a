"""Obliviator (Akbari, Afshari and Boddeti, NeurIPS 2025) by its authors' library: an encoder that
lowers the kernel dependence (HSIC) on the private attribute, then a projection in the kernel space,
again and again.

    python benchmarks/peers/obliviator_peer.py FOLDER CHECKOUT [TURNS [MINUTES [ENOUGH]]]

On Adult one iteration takes about a minute of a core. With MINUTES no iteration is begun after so
many minutes of a core, however many of TURNS are left.

CHECKOUT: github.com/ramin-akbari/Obliviator, commit 0f2233f (src/obliviator). The supervised form
with the settings of its experiments for small models (configs/defaults.py, `BaseSup`, and the
tolerances of configs/factory.py): 5 epochs an iteration, at most 15 iterations; but batches of
4,096 people instead of 16,384, because there are fewer people here than one such batch or little
more. Their main.py stops when their own network reads at most 60 % of the test people; here it
stops at the first iteration after which boosted trees and logistic regression that learned from
*fit* both read at most ENOUGH (0.54, balanced) of *select*, else after the last. Shims: Python 3.11
has no typing.override, and PyTorch without a GPU no pinned memory.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
import typing
from pathlib import Path

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

sys.path.insert(0, str(Path(__file__).parent))
from files import Array, Raw

EPOCHS, TURNS, ENOUGH = 5, 15, 0.54
TO_START, AGAIN = 3e-5, 1e-5  # tolerances
typing.override = getattr(typing, "override", lambda function: function)  # type: ignore[attr-defined]
empty_like = torch.empty_like
torch.empty_like = lambda x, pin_memory=False: empty_like(x)  # type: ignore[assignment]


def one_hot(values: Array) -> Array:
    return np.eye(int(values.max()) + 1, dtype=np.float32)[values]


def read(z: Array, judged: Array, raw: Raw) -> float:
    """What readers that learned from 64 principal components of *fit* find among *select*."""
    first = PCA(64, whiten=True, random_state=0).fit(z)
    answers = [
        reader.fit(first.transform(z), raw.private[raw.fit]).predict(
            first.transform(judged[raw.select[raw.judged]])
        )
        for reader in (
            HistGradientBoostingClassifier(class_weight="balanced", random_state=0),
            LogisticRegression(class_weight="balanced", max_iter=300),
        )
    ]
    return max(float(balanced_accuracy_score(raw.private[raw.select], one)) for one in answers)


def main(
    folder: Path,
    checkout: str,
    turns: int = TURNS,
    minutes: float = np.inf,
    enough: float = ENOUGH,
) -> None:
    sys.path.insert(0, str(Path(checkout) / "src"))
    from obliviator import schemas  # type: ignore[import-not-found]
    from obliviator.supervised import Supervised  # type: ignore[import-not-found]

    torch.manual_seed(0)
    raw = Raw(folder)
    config = schemas.SupervisedConfig(
        encoder_config=schemas.MLPConfig(
            use_projection=False, hidden_dim=512, out_dim=512, n_layer=1,
            activation=schemas.ActivationType.GELU,
        ),
        optim_config=schemas.OptimConfig(batch_size=4096, weight_decay=0.05, lr=5e-4),
    )  # fmt: skip
    eraser = Supervised(
        schemas.SupervisedData(
            x=raw.x[raw.fit].copy(), x_test=raw.x[raw.judged].copy(),
            s=one_hot(raw.private[raw.fit]), y=one_hot(raw.task[raw.fit]),
        ),
        config,
    )  # fmt: skip
    steps = []
    z = eraser.null_dim_reduction(TO_START)[0]
    for turn in range(1, turns + 1):
        with contextlib.redirect_stdout(io.StringIO()):
            z, judged = (
                eraser.init_erasure(tol=AGAIN, epochs=EPOCHS)
                if turn == 1
                else eraser.erasure_step(z=z, tol=AGAIN, epochs=EPOCHS, update_x=turn == 2)
            )
        steps.append(read(z.numpy(), judged.numpy(), raw))
        took = time.process_time()
        sys.stderr.write(f"turn {turn}: {steps[-1]:.3f}, {z.shape[1]} numbers, {took:.0f} s\n")
        said = {"setting": f"{turn} iterations", "select": steps[-1], "steps": steps}
        raw.release(judged.numpy(), **said, seconds=took)
        if steps[-1] <= enough or took > 60 * minutes:
            break


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:4]), *map(float, sys.argv[4:]))
