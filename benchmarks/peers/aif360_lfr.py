"""AIF360's Learning Fair Representations (Zemel and others, ICML 2013), judged by what it releases:
the transformed features.

    python benchmarks/peers/aif360_lfr.py FOLDER default|converged

    python -m venv ENV && ENV/bin/pip install aif360==0.6.1 pyarrow

Five prototypes and the weights that are its defaults (Ax 0.01, Ay 1, Az 50). As it comes, its
optimiser takes gradients by differences and stops after 5,000 evaluations of the loss, which on
records of a hundred numbers are some ten gradients. `converged`: the same loss and optimiser with
exact gradients, which a function below gives, until it converges (at most 2,000 iterations).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from aif360.algorithms.preprocessing import LFR, lfr
from aif360.algorithms.preprocessing.lfr_helpers import helpers
from aif360.datasets import BinaryLabelDataset
from scipy.spatial.distance import cdist

sys.path.insert(0, str(Path(__file__).parent))
from files import Array, Raw

GROUPS = {
    "unprivileged_groups": [{"private": 0.0}],
    "privileged_groups": [{"private": 1.0}],
}


def slope(parameters: Array, *given: Any) -> Array:
    """Gradient of AIF360's loss (helpers.LFR_optim_objective)."""
    groups, tasks, (k, ax, ay, az) = given[:2], given[2:4], given[4:8]
    w, v = parameters[:k], parameters[k:].reshape(k, -1)
    people = sum(len(group) for group in groups)
    shares = [helpers.get_xhat_y_hat(v, w, group)[0] for group in groups]
    tilt = az * np.sign(shares[0].mean(0) - shares[1].mean(0)) / k
    to_w, to_v = np.zeros_like(w), np.zeros_like(v)
    for x, y, m, sign in zip(groups, tasks, shares, (1, -1), strict=True):
        rebuilt, answer = m @ v, np.clip(m @ w, 1e-12, 1 - 1e-12)
        by_x = 2 * ax * (rebuilt - x) / x.size
        by_y = ay * (answer - y) / (answer * (1 - answer)) / people
        by_m = by_x @ v.T + np.outer(by_y, w) + sign * tilt / len(x)
        away = -m * (by_m - (m * by_m).sum(1, keepdims=True))
        away /= np.maximum(cdist(x, v), 1e-12)
        to_v += m.T @ by_x + away.sum(0)[:, None] * v - away.T @ x
        to_w += m.T @ by_y
    return np.concatenate([to_w, to_v.ravel()])


def exact(function: Any, x0: Array, **how: Any) -> Any:
    """scipy's optimiser as AIF360 calls it, with exact gradients."""
    how = {**how, "fprime": slope, "approx_grad": False, "maxfun": 100_000, "maxiter": 2000}
    del how["epsilon"]
    found = plain(function, x0, **how)
    said.update(iterations=int(found[2]["nit"]), loss=float(found[1]))
    return found


raw, said, plain = Raw(Path(sys.argv[1])), {}, lfr.optim.fmin_l_bfgs_b
names = [f"x{i}" for i in range(raw.x.shape[1])]


def dataset(rows: Array) -> BinaryLabelDataset:
    frame = pd.DataFrame(raw.x[rows].astype(float), columns=names)
    frame["private"], frame["task"] = raw.private[rows].astype(float), raw.task[rows].astype(float)
    return BinaryLabelDataset(
        df=frame, label_names=["task"], protected_attribute_names=["private"],
        favorable_label=1.0, unfavorable_label=0.0,
    )  # fmt: skip


def main(how: str) -> None:
    if how == "converged":
        lfr.optim.fmin_l_bfgs_b = exact
    model = LFR(**GROUPS, k=5, Ax=0.01, Ay=1.0, Az=50.0, verbose=0, seed=0)
    model = model.fit(dataset(raw.fit))
    released = model.transform(dataset(raw.judged), threshold=0.5)
    columns = [i for i, name in enumerate(released.feature_names) if name != "private"]
    raw.release(released.features[:, columns], setting=how, **said)


if __name__ == "__main__":
    main(sys.argv[2])
