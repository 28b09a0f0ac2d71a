"""Other ways to take an attribute out of vectors, written from their papers, for benchmarks/veil_rows.py.

Each learns from vectors of *fit* with their values u, and gives a function from vectors to vectors;
nothing is told about the people it is used on afterwards. LEACE is a method of ours.

inlp        iterative nullspace projection: logistic regressions, one after the other, each taken
            out (Ravfogel and others, ACL 2020)
kernel      erasure in a kernel's feature space: random Fourier features of a Gaussian kernel, LEACE
            in them (after Ravfogel and others, EMNLP 2022; no way back to the input)
flow        a normalising flow for each value, all to one Gaussian, u guessed (after Balunovic, Ruoss
            and Vechev, ICLR 2022)
oblivious   an encoder with little dependence on u and much on x, both by HSIC over random features
            (after Obliviator, 2025)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

Erasure = Callable[[Tensor], Tensor]


def inlp(x: Tensor, u: Tensor, rounds: int = 40) -> Erasure:
    """Projections until a linear reader of the same records does no better than chance, or all
    rounds: of few records in many numbers, all of them."""
    rows, truth = x.double().cpu().numpy(), u.cpu().numpy()
    mean, deviation = rows.mean(0), rows.std(0) + 1e-6
    white = (rows - mean) / deviation
    keep = np.eye(rows.shape[1])
    for _ in range(rounds):
        reader = LogisticRegression(C=0.1, max_iter=100, class_weight="balanced")
        reader.fit(white @ keep, truth)
        guess = reader.predict(white @ keep)
        if np.mean([(guess[truth == c] == c).mean() for c in (0, 1)]) < 0.515:
            break
        direction = keep @ reader.coef_[0]
        direction /= np.linalg.norm(direction) + 1e-12
        keep = keep - np.outer(direction, direction @ keep)
        keep = (keep + keep.T) / 2
    matrix = torch.as_tensor(keep / deviation[:, None], dtype=torch.float32, device=x.device)
    centre = torch.as_tensor(mean, dtype=torch.float32, device=x.device)
    return lambda rows: (rows - centre) @ matrix


def linear_erasure(x: Tensor, u: Tensor) -> Erasure:
    """LEACE in a few lines: no correlation with u, the least movement in the covariance's metric."""
    rows = x.double()
    mean = rows.mean(0)
    rows = rows - mean
    spread = rows.T @ rows / len(rows)
    values, vectors = torch.linalg.eigh(spread)
    good = values > 1e-6 * values.max()
    root = (vectors[:, good] * values[good].sqrt()) @ vectors[:, good].T
    back = (vectors[:, good] / values[good].sqrt()) @ vectors[:, good].T
    cross = rows.T @ (u.double() - u.double().mean()) / len(rows)
    direction = F.normalize(back @ cross, dim=0)
    matrix = (root @ direction).outer(back @ direction).float()
    return lambda more: more - (more - mean.float()) @ matrix.T


def kernel(x: Tensor, u: Tensor, features: int = 1024, seed: int = 0) -> Erasure:
    """Random Fourier features of a Gaussian kernel at the median distance, linearly erased."""
    generator = torch.Generator().manual_seed(seed)
    some = x[torch.randperm(len(x), generator=generator)[:1000].to(x.device)]
    width = float(torch.cdist(some, some).median())
    weight = torch.randn(x.shape[1], features, generator=generator).to(x.device) / width
    phase = (2 * math.pi * torch.rand(features, generator=generator)).to(x.device)

    def lift(rows: Tensor) -> Tensor:
        return math.sqrt(2 / features) * torch.cos(rows @ weight + phase)

    erased = linear_erasure(lift(x), u)
    return lambda rows: erased(lift(rows))


class Coupling(nn.Module):
    """One step of RealNVP: half of the numbers scale and shift the other half."""

    def __init__(self, dims: int, flip: bool) -> None:
        super().__init__()
        mask = (torch.arange(dims) % 2 == int(flip)).float()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(
            nn.Linear(dims, 128),
            nn.ReLU(),
            nn.Linear(128, 128),
            nn.ReLU(),
            nn.Linear(128, 2 * dims),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scale, shift = self.net(x * self.mask).chunk(2, 1)
        scale = torch.tanh(scale) * (1 - self.mask)
        z = x * self.mask + (1 - self.mask) * (x * scale.exp() + shift)
        return z, scale.sum(1)


def components(x: Tensor, dims: int) -> Erasure:
    """Leading principal components, in deviations."""
    mean = x.double().mean(0)
    values, vectors = torch.linalg.eigh(torch.cov((x.double() - mean).T))
    axes = vectors[:, -dims:] / values[-dims:].clamp(min=1e-8).sqrt()
    centre, matrix = mean.float(), axes.float()
    return lambda rows: (rows - centre) @ matrix


def flow(x: Tensor, u: Tensor, dims: int = 32, steps: int = 1500, seed: int = 0) -> Erasure:
    """A flow for each value by maximum likelihood, all to one Gaussian. Values are guessed."""
    torch.manual_seed(seed)
    reduce = components(x, min(dims, x.shape[1]))
    z = reduce(x)
    guess = perceptron(z, u, 2, min(600, steps))
    flows = []
    for value in (0, 1):
        own = z[u == value]
        net = nn.ModuleList(Coupling(z.shape[1], i % 2 == 0) for i in range(6)).to(x.device)
        optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-3)
        for _ in range(steps):
            index = torch.randint(0, len(own), (256,), device=x.device)
            made, volume = own[index] + 0.05 * torch.randn_like(own[index]), 0.0
            for layer in net:
                made, more = layer(made)
                volume = volume + more
            loss = (0.5 * made.square().sum(1) - volume).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optimiser.step()
        flows.append(net.eval())

    @torch.no_grad()
    def apply(rows: Tensor) -> Tensor:
        start = reduce(rows)
        said = guess(start).argmax(1)
        both = []
        for net in flows:
            made = start
            for layer in net:
                made, _ = layer(made)
            both.append(made)
        return torch.where((said == 1)[:, None], both[1], both[0])

    return apply


def perceptron(x: Tensor, y: Tensor, classes: int, steps: int) -> nn.Module:
    """A perceptron that has learned to read y."""
    net = nn.Sequential(
        nn.Linear(x.shape[1], 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, classes)
    ).to(x.device)
    optimiser = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
    for _ in range(steps):
        index = torch.randint(0, len(x), (256,), device=x.device)
        loss = F.cross_entropy(net(x[index]), y[index])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    return net.eval()


def oblivious(
    x: Tensor, u: Tensor, weight: float = 20.0, dims: int = 32, steps: int = 2500, seed: int = 0
) -> Erasure:
    """An encoder of much dependence on x and little on u, by HSIC over random features."""
    torch.manual_seed(seed)
    mean, deviation = x.mean(0), x.std(0).clamp(min=1e-3)
    white = (x - mean) / deviation
    net = nn.Sequential(
        nn.Linear(x.shape[1], 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, dims)
    ).to(x.device)
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-3)
    values = F.one_hot(u, 2).float()

    def standard(z: Tensor) -> Tensor:
        return (z - z.mean(0)) / z.std(0).clamp(min=1e-4)

    def lift(z: Tensor, count: int = 512) -> Tensor:
        width = math.sqrt(2 * z.shape[1])
        weight = torch.randn(z.shape[1], count, device=z.device) / width
        phase = 2 * math.pi * torch.rand(count, device=z.device)
        made = math.sqrt(2 / count) * torch.cos(z @ weight + phase)
        return made - made.mean(0)

    def dependence(a: Tensor, b: Tensor) -> Tensor:
        """HSIC over the norms of both, as in centred kernel alignment."""
        cross = (a.T @ b).square().sum()
        norms = (a.T @ a).square().sum().sqrt() * (b.T @ b).square().sum().sqrt()
        return cross / norms.clamp(min=1e-9)

    for step in range(steps):
        index = torch.randint(0, len(x), (1024,), device=x.device)
        z = standard(net(white[index]))
        hidden = values[index] - values[index].mean(0)
        kept = dependence(lift(z), white[index] - white[index].mean(0))
        seen = dependence(lift(z), hidden)
        loss = min(1.0, step / (0.3 * steps)) * weight * seen - kept
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        z = net.eval()(white)
        centre, spread = z.mean(0), z.std(0).clamp(min=1e-4)

    @torch.no_grad()
    def apply(rows: Tensor) -> Tensor:
        return (net((rows - mean) / deviation) - centre) / spread

    return apply
