"""An anchor: an encoder taught with differential privacy by opacus (Yousefpour and others,
arXiv:2109.12298).

    python benchmarks/peers/opacus_peer.py FOLDER [EPSILON]

DP-SGD (Abadi and others, 2016) promises that what the encoder is hardly shows whether somebody was
among the people it learned from. It promises nothing about the attributes of those whose records
it encodes later: the row is here to show that these are two promises. An encoder of one hidden
layer of 60 that learned the task, epsilon 1 by default at delta 1e-5, 20 epochs in batches of 512,
gradients clipped at 1; the hidden layer is released.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, str(Path(__file__).parent))
from files import Raw

EPOCHS, BATCH, DELTA = 20, 512, 1e-5

warnings.simplefilter("ignore")
raw = Raw(Path(sys.argv[1]))
epsilon = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
torch.manual_seed(0)
x, task = torch.from_numpy(raw.x.astype(np.float32)), torch.from_numpy(raw.task)
people = TensorDataset(x[raw.fit], task[raw.fit])
net = nn.Sequential(nn.Linear(x.shape[1], 60), nn.ReLU(), nn.Linear(60, 2))
engine = PrivacyEngine(accountant="rdp")
private, optimizer, loader = engine.make_private_with_epsilon(
    module=net,
    optimizer=torch.optim.Adam(net.parameters(), lr=3e-3),
    data_loader=DataLoader(people, batch_size=BATCH),
    target_epsilon=epsilon,
    target_delta=DELTA,
    epochs=EPOCHS,
    max_grad_norm=1.0,
)
for _ in range(EPOCHS):
    for rows, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(private(rows), labels).backward()
        optimizer.step()
with torch.no_grad():
    z = net[1](net[0](x)).numpy()
spent = engine.get_epsilon(DELTA)
raw.release(z[raw.judged], setting=f"epsilon {spent:.2f} of *fit*")
