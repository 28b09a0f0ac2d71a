"""How far the codes of different classes lie apart, and the linear maps that bring them together.

sliced_distance    root of the mean over random directions of  int (F_c(t) - F_rest(t))^2 dt,
                   F the distribution functions of the codes along the direction
quadratic_scores   how much likelier each class's Gaussian makes a code than the others' do
barycentre_maps    for each class, the optimal transport map of its Gaussian to the Gaussian in
                   the middle of all (Agueh and Carlier, 2011; fixed point of Alvarez-Esteban
                   and others, 2016)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from privet.data.dataset import Array
from privet.methods.known_labels import one_hot_known

# Below this the root has no useful slope.
TINY = 1e-8
# Share of the mean variance that is added to every variance of a class.
RIDGE = 1e-3
ITERATIONS = 30
# Share of the covariance that all classes have in common, in quadratic scores.
SHRINKAGE = 0.2


def sliced_distance(z: Tensor, truth: Tensor, classes: int, directions: Tensor) -> Tensor:
    """Mean over classes of the distance between a class and the others, along the directions.

    Parameters:
        z: Codes (n, d).
        truth: Class of each, (n,); -1 where it is missing.
        classes: How many classes there are.
        directions: Unit vectors, (d, slices).
    """
    along, order = torch.sort(z @ directions, dim=0)
    gaps = along[1:] - along[:-1]
    member = one_hot_known(truth, classes)
    known = member.sum(1, keepdim=True)
    share = member / member.sum(0).clamp(min=1)
    others = (known - member) / (known - member).sum(0).clamp(min=1)
    present = (member.sum(0) > 0).float() * ((known - member).sum(0) > 0).float()
    apart = torch.cumsum((share - others)[order], dim=0)[:-1]
    distance = (apart.square() * gaps.unsqueeze(2)).sum(0).mean(0)
    return ((distance + TINY).sqrt() * present).sum() / present.sum().clamp(min=1)


def quadratic_scores(z: Tensor, codes: Tensor, truth: Tensor, classes: int) -> Tensor:
    """How much likelier each class's Gaussian makes z than the others' do, (n, classes), in
    deviations: what a quadratic discriminant that learned from other codes sees in z.

    Parameters:
        z: Codes (n, d), which feel the slope.
        codes: Other codes (m, d), which the Gaussians are fitted to.
        truth: Class of these, (m,); -1 where it is missing.
        classes: How many classes there are.
    """
    member = one_hot_known(truth, classes)
    counts = member.sum(0).clamp(min=1)
    means = member.T @ codes / counts.unsqueeze(1)
    centred = codes.unsqueeze(0) - means.unsqueeze(1)
    spreads = (centred * member.T.unsqueeze(2)).transpose(1, 2) @ centred / counts.view(-1, 1, 1)
    common = (spreads * (counts / counts.sum()).view(-1, 1, 1)).sum(0)
    ridge = RIDGE * common.diagonal().mean() * torch.eye(z.shape[1], device=z.device)
    factor, _ = torch.linalg.cholesky_ex((1 - SHRINKAGE) * spreads + SHRINKAGE * common + ridge)
    apart = torch.linalg.solve_triangular(
        factor, (z.unsqueeze(0) - means.unsqueeze(1)).transpose(1, 2), upper=False
    )
    sizes = factor.diagonal(dim1=1, dim2=2).log().sum(1, keepdim=True)
    likely = (-0.5 * apart.square().sum(1) - sizes).T
    scores: Tensor = likely - likely.mean(1, keepdim=True)
    return scores / scores.detach().std(0).clamp(min=TINY)


def random_directions(dims: int, slices: int, device: torch.device) -> Tensor:
    """Unit vectors as columns, from torch's generator."""
    return F.normalize(torch.randn(dims, slices, device=device), dim=0)


def barycentre_maps(codes: Array, cell: Array, cells: int) -> tuple[Array, Array]:
    """Matrices (cells, d, d) and shifts (cells, d) with which every cell's codes get the mean and
    the covariance of the middle of all. A cell with hardly any codes keeps the identity.

    Parameters:
        codes: (n, d).
        cell: Of each, or -1 where it is unknown.
        cells: How many there are.
    """
    dims = codes.shape[1]
    maps, shifts = np.tile(np.eye(dims), (cells, 1, 1)), np.zeros((cells, dims))
    filled = [c for c in range(cells) if (cell == c).sum() > dims // 4 + 1]
    if len(filled) < 2:
        return maps, shifts
    means = {c: codes[cell == c].mean(0, dtype=np.float64) for c in filled}
    counts = [int((cell == c).sum()) for c in filled]
    raw = [_covariance(codes[cell == c].astype(np.float64)) for c in filled]
    spreads = dict(zip(filled, shrunk(raw, counts), strict=True))
    middle = _middle(list(spreads.values()))
    centre = np.mean(list(means.values()), axis=0)
    for c in filled:
        root = _power(spreads[c], 0.5)
        back = _power(spreads[c], -0.5)
        maps[c] = back @ _power(root @ middle @ root, 0.5) @ back
        shifts[c] = centre - maps[c] @ means[c]
    return maps, shifts


def shrunk(spreads: Sequence[Array], counts: Sequence[int]) -> list[Array]:
    """Covariances drawn towards their mean, by as much as their differences are chance.

    With n records the entries of a whitened covariance are off by 1 / sqrt(n) each, and a map
    learned from such differences would stamp the value on every code: at 128 numbers and 3,000
    records of a value, a quadratic discriminant read it at 82 % afterwards, and at 60 % before.
    Expected squared difference by chance over the one that is there: the factor of James and Stein.
    """
    common: Array = np.average(spreads, axis=0, weights=counts)
    white, dims = _power(common, -0.5), len(common)
    apart = sum(float(np.square(white @ s @ white - np.eye(dims)).sum()) for s in spreads)
    chance = sum(dims * (dims + 1) * (1 / n - 1 / sum(counts)) for n in counts)
    real = max(0.0, 1.0 - chance / max(apart, 1e-12))
    return [common + real * (spread - common) for spread in spreads]


def _middle(spreads: Sequence[Array]) -> Array:
    """The covariance of the Wasserstein barycentre of centred Gaussians of equal weight."""
    middle: Array = np.mean(spreads, axis=0)
    for _ in range(ITERATIONS):
        root, back = _power(middle, 0.5), _power(middle, -0.5)
        total = np.mean([_power(root @ spread @ root, 0.5) for spread in spreads], axis=0)
        middle = back @ total @ total @ back
    return middle


def _covariance(codes: Array) -> Array:
    spread = np.atleast_2d(np.cov(codes, rowvar=False))
    ridge: Array = RIDGE * np.trace(spread) / len(spread) * np.eye(len(spread))
    return spread + ridge


def _power(matrix: Array, exponent: float) -> Array:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    powered: Array = (vectors * np.maximum(values, 1e-12) ** exponent) @ vectors.T
    return powered
