"""Bits that a release carries about the records themselves: estimates, how much of what is in raw
records is gone (Cloak's figure), and Cloak's bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from privet.adversaries.released import Released
from privet.auditing.certify import noise_free_codes
from privet.auditing.information_calibration import calibrate
from privet.auditing.information_estimates import (
    contrastive_information,
    gaussian_information,
    reduction_figure,
)
from privet.data.dataset import Array, Dataset
from privet.evidence.figures import Figure
from privet.nets.additive import Additive
from privet.nets.mask import Spread
from privet.release.release import Release

# Most numbers in a release whose covariance is still worth computing.
MOST_NUMBERS = 1024
INFONCE_NOTE = (
    "By InfoNCE for released and for raw records; both lie where the estimate shows known amounts."
)


def record_information(released: Released, raw: Released, seed: int) -> dict[str, Figure]:
    """Estimates by a critic, for the *test* people: lower bounds on the bits; and the share of the
    bits of raw records that is gone, where these are few enough for the estimate to show them.

    A record of real numbers tells infinitely many bits of itself, so there is mostly no such share:
    a ratio of two estimates that both stop at log2 n would be a figure about the estimate.
    """
    x, people = raw.vectors().cpu().numpy(), released.people
    return estimated_information(x, released.vectors().cpu().numpy(), people, seed)


def estimated_information(x: Array, z: Array, people: Array, seed: int) -> dict[str, Figure]:
    """The same of records x (n, d) and released vectors z (n, e)."""
    figures = contrastive_information(x, z, people, seed)
    before = contrastive_information(x, x, people, seed)["infonce"].value
    known = calibrate(x, seed)
    figure = figures["infonce"]
    figures["infonce"] = replace(figure, note=f"{figure.note} {known.sentence}")
    if 0 < before <= known.limit:
        share, n = 1 - figures["infonce"].value / before, figures["infonce"].n
        measure = "share of the bits that is gone"
        figures["cloak_reduction"] = reduction_figure(share, n, measure, INFONCE_NOTE)
    return figures


def noise_information(release: Release, test: Dataset, device: torch.device) -> dict[str, Figure]:
    """Cloak's bound, where Gaussian noise comes last and few enough numbers depend on the record at
    all; else nothing."""
    module, law, shape = release.module, release.noise, release.shape
    if not isinstance(module, Additive | Spread) or None in shape or law is None:
        return {}
    size = int(np.prod(np.array(shape)))
    depends, scales = np.ones(size, dtype=bool), np.empty(0)
    if isinstance(module, Spread):
        depends, scales = (part.flatten().cpu().numpy() for part in (module.told, module.scales))
    else:
        scales = np.full(size, float(module.scale))
    if law.law != "gaussian" or not 0 < depends.sum() <= MOST_NUMBERS:
        return {}
    codes = noise_free_codes(release, test, device)[:, depends].astype(np.float64)
    scales = scales[depends]
    covariance = np.cov(codes.T).reshape(len(scales), len(scales))
    return gaussian_information(covariance, scales, len(codes))
