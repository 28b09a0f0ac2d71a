"""Adversarial representations by gradient reversal (Fair, as Ganin and others and LAFTR) and CFair
(Zhao, Coston, Adel and Gordon, Conditional learning of fair representations, ICLR 2020), by the
latter's networks.

    python benchmarks/peers/cfair_peer.py FOLDER CHECKOUT fair|cfair-eo [MU ...]

CHECKOUT: github.com/hanzhaoml/ICLR2020-CFair, commit 4f03012, whose models.py is used. As in its
main_adult.py: a hidden layer of 60, an adversary of 50, Adadelta at rate 1, batches of 512, 100
epochs, MU (weight of the adversary) 10; `cfair-eo` has an adversary for each value of the task,
since it is made for equalized odds and not for secrecy. The representation, the 60 numbers that the
adversary sees, is released. Of several MU the one whose release a fresh reader of *select* (boosted
trees, learned from *fit*) reads least is taken.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import balanced_accuracy_score
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent))
from files import Array, Raw

EPOCHS, BATCH = 100, 512


def trained(models: Any, kind: str, mu: float, raw: Raw) -> Array:
    """The representation of everybody."""
    torch.manual_seed(0)
    x = torch.from_numpy(raw.x.astype(np.float32))
    task, private = torch.from_numpy(raw.task), torch.from_numpy(raw.private)
    rows = torch.from_numpy(np.flatnonzero(raw.fit))
    configs = {"num_classes": 2, "input_dim": x.shape[1], "hidden_layers": [60],
               "adversary_layers": [50]}  # fmt: skip
    net = (models.FairNet if kind == "fair" else models.CFairNet)(configs)
    optimizer = torch.optim.Adadelta(net.parameters(), lr=1.0)
    base = [task[raw.fit & (raw.private == value)].float().mean() for value in (0, 1)]
    weights = [torch.stack([1 / (1 - rate), 1 / rate]) for rate in base]
    for _ in range(EPOCHS):
        for some in rows[torch.randperm(len(rows))].split(BATCH):
            optimizer.zero_grad()
            if kind == "fair":
                answers, guesses = net(x[some])
                adversary = functional.nll_loss(guesses, private[some])
            else:
                answers, parts = net(x[some], task[some])
                losses = [
                    functional.nll_loss(parts[y], private[some][task[some] == y], weights[y])
                    for y in (0, 1)
                ]
                adversary = torch.stack(losses).mean()
            (functional.nll_loss(answers, task[some]) + mu * adversary).backward()
            optimizer.step()
    with torch.no_grad():
        for layer in net.hiddens:
            x = functional.relu(layer(x))
    return np.asarray(x.numpy())


def read(z: Array, raw: Raw) -> float:
    """What boosted trees read among *select*."""
    reader = HistGradientBoostingClassifier(class_weight="balanced", random_state=0)
    reader.fit(z[raw.fit], raw.private[raw.fit])
    answers = reader.predict(z[raw.select])
    return float(balanced_accuracy_score(raw.private[raw.select], answers))


def main(folder: Path, checkout: str, kind: str, weights: list[float]) -> None:
    sys.path.insert(0, checkout)
    import models  # type: ignore[import-not-found]

    raw = Raw(folder)
    tried = []
    for mu in weights:
        z = trained(models, kind, mu, raw)
        tried.append((read(z, raw) if np.isfinite(z).all() else 1.0, mu, z))
    select, mu, z = min(tried, key=lambda row: row[0])
    raw.release(z[raw.judged], setting=f"mu {mu:g}", select=select)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], [float(w) for w in sys.argv[4:]] or [10.0])
