"""toys: two distributions for which the best release is known, so that one can see how far learning
is from it.

A private bit u and a feature x that betrays it. A release may move x by D on average, and the
adversary knows everything but u:
    gaussian    x | u ~ N(+-m, s^2), moved by a shift b and noise of deviation g,
                b^2 + g^2 <= D (squared error),
    bernoulli   P(x = u) = agree, flipped with probabilities that may depend on (x, u),
                P(x~ != x) <= D.
These are the synthetic cases of generative adversarial privacy (Huang, Kairouz, Chen, Sankar,
Rajagopal, "Context-aware generative adversarial privacy", Entropy 19(12), 2017).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr

from privet.core.errors import PrivetError, unknown
from privet.data.dataset import Array, Attribute, Dataset
from privet.data.schema_file import Layout, refuse_schema_file
from privet.data.splitting import assign

# Mean (of u = 1; the other is its negative) and deviation of the Gaussian toy.
M, S = 1.0, 1.0
# P(x = u) and P(u = 1) of the Bernoulli toy.
AGREE, PRIOR = 0.8, 0.5
TOYS = ("bernoulli", "gaussian")


def read_toy(name: str, layout: Layout, progress: bool = True) -> Dataset:
    """The source `toy:NAME`."""
    refuse_schema_file(layout, "toy")
    if not name:
        raise PrivetError("Say which toy, such as toy:gaussian or toy:bernoulli.")
    return toy(name)


def toy(name: str, n: int = 20_000, seed: int = 0) -> Dataset:
    """n records of a toy: a table with the one column x, and the private attribute u that is no
    part of it."""
    if name not in TOYS:
        raise unknown("toy", name, TOYS)
    if n < 4:
        raise PrivetError(f"{n} records are too few for four parts: ask for at least 4.")
    rng = np.random.default_rng(seed)
    u = rng.permutation(np.arange(n) % 2)
    if name == "gaussian":
        x = rng.normal(M * (2 * u - 1), S)
        says = (
            f"x is normal with mean {M:g} where u is 1 and {-M:g} where it is 0, and deviation"
            f" {S:g}; half the records have u = 1."
        )
    else:
        x = np.where(rng.random(n) < AGREE, u, 1 - u)
        says = f"x equals u in {AGREE:.0%} of the records; half the records have u = 1."
    part_of, notes = assign(n, None, None, seed)
    return Dataset(
        name=name,
        modality="table",
        records=pd.DataFrame({"x": x}),
        attributes={"u": Attribute("u", "binary", ("0", "1"))},
        labels={"u": u},
        part_of=part_of,
        rows=np.arange(n),
        fingerprint=hashlib.sha256(x.tobytes() + u.tobytes()).hexdigest(),
        notes=(says, *notes),
    )


@dataclass(frozen=True)
class Optimum:
    """The best Gaussian release x~ = x - b (2u - 1) + g N(0, 1).

    Parameters:
        accuracy: Of the best adversary: what no attack on this release can exceed.
    """

    accuracy: float
    b: float
    g: float


def gaussian_optimum(distortion: float, m: float = M, s: float = S) -> Optimum:
    """The shift b and the noise g that leave the best adversary least, among those with b^2 + g^2
    <= D.

    The released classes are N(+-(m - b), s^2 + g^2) and equally likely, so the best adversary asks
    for the sign and is right with probability Phi((m - b) / sqrt(s^2 + g^2)). With g^2 = D - b^2
    the quotient falls until b = (s^2 + D) / m and rises after, hence b = min(sqrt(D), (s^2 + D) /
    m, m): while m <= 2s all of the budget goes into the shift, and at D = m^2 nothing is left.

    The channel is context-aware: the shift needs u itself, which the participant knows and an input
    of x alone does not hold. Nor is it the best channel of any form, but the best of this one.
    """
    _check(
        distortion >= 0 and m > 0 and s > 0,
        "A Gaussian toy needs a distortion of 0 or more, and m and s above 0.",
    )
    b = min(math.sqrt(distortion), (s * s + distortion) / m, m)
    g = math.sqrt(distortion - b * b) if b < min(math.sqrt(distortion), m) else 0.0
    return Optimum(float(ndtr((m - b) / math.hypot(s, g))), b, g)


@dataclass(frozen=True)
class ChannelOptimum:
    """The best release of a feature with finitely many values.

    Parameters:
        accuracy: Of the best adversary.
        channel: P(x~ | x, u), indexed [u, x, x~].
    """

    accuracy: float
    channel: Array


def bernoulli_optimum(
    distortion: float, agree: float = AGREE, prior: float = PRIOR, aware: bool = True
) -> ChannelOptimum:
    """The flips of x that leave the best adversary least, among those with P(x~ != x) <= D; see
    `channel_optimum`."""
    _check(
        distortion >= 0 and 0 <= agree <= 1 and 0 <= prior <= 1,
        "A Bernoulli toy needs a distortion of 0 or more, and probabilities.",
    )
    joint = np.array([[agree, 1 - agree], [1 - agree, agree]]) * np.array([[1 - prior], [prior]])
    return channel_optimum(joint, 1 - np.eye(2), distortion, aware)


def channel_optimum(
    joint: Array, cost: Array, distortion: float, aware: bool = True
) -> ChannelOptimum:
    """The channel W(x~ | x, u) that minimises the best adversary's accuracy, as a linear program.

    Given P(u, x) as `joint` [u, x] and the cost of every move as `cost` [x, x~]:
        minimise    sum_x~ t(x~)            what the adversary gets right on seeing x~
        subject to  t(x~) >= sum_x P(u, x) W(x~ | x, u)             for every u,
                    sum P(u, x) W(x~ | x, u) cost(x, x~) <= D,      W(. | x, u) a distribution.
    Not `aware`: W may not depend on u, as where a release sees the record alone; then one W(x~ | x)
    serves every u.
    """
    from scipy.optimize import linprog  # half a second that every other command would pay

    classes, inputs = joint.shape
    outputs, tables = cost.shape[1], classes if aware else 1
    weight = np.zeros((classes, outputs, tables, inputs, outputs))
    spent = np.zeros((tables, inputs, outputs))
    for u in range(classes):
        table = u if aware else 0
        weight[u, range(outputs), table, :, range(outputs)] = joint[u]
        spent[table] += joint[u][:, None] * cost
    size = spent.size
    gains = np.hstack(
        [weight.reshape(classes * outputs, size), -np.tile(np.eye(outputs), (classes, 1))]
    )
    limit = np.concatenate([spent.ravel(), np.zeros(outputs)])
    sums = np.hstack(
        [np.kron(np.eye(tables * inputs), np.ones(outputs)), np.zeros((tables * inputs, outputs))]
    )
    found = linprog(
        np.concatenate([np.zeros(size), np.ones(outputs)]),
        A_ub=np.vstack([gains, limit]),
        b_ub=np.append(np.zeros(len(gains)), distortion),
        A_eq=sums,
        b_eq=np.ones(len(sums)),
    )
    _check(found.success, f"No channel was found: {found.message}")
    channel = found.x[:size].reshape(tables, inputs, outputs)
    return ChannelOptimum(float(found.fun), np.broadcast_to(channel, (classes, inputs, outputs)))


def _check(right: bool, sentence: str) -> None:
    if not right:
        raise PrivetError(sentence)
