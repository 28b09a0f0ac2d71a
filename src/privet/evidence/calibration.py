"""Probabilities made as sure as they should be, before their log-loss is counted as bits."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from privet.evidence import Array


def calibrated(truth_select: Array, answers_select: Array, answers: Array) -> Array:
    """Probabilities with one temperature and one bias per class, both learned on *select*.

    With a >= 0 and biases b that minimise the log-loss on *select* plus |b|^2 / (20 n)::

        p'(c) = p(c)^a exp(b_c) / sum over c' of p(c')^a exp(b_c')

    Source: Alexandari, Kundaje and Shrikumar, Maximum likelihood with bias-corrected calibration is
    hard-to-beat at label shift adaptation, ICML (2020).

    >>> # 60 % of class 1
    >>> truth = np.arange(1000) % 10 > 3
    >>> # far too sure
    >>> said = np.tile([0.001, 0.999], (1000, 1))
    >>> calibrated(truth.astype(int), said, said[:1]).round(2)
    array([[0.4, 0.6]])
    """
    n, classes = answers_select.shape
    if not n:
        return answers
    logs, own = _logs(answers_select), np.eye(classes)[truth_select]

    def loss(parameters: Array) -> tuple[float, Array]:
        a, b = parameters[0], parameters[1:]
        out = log_softmax(a * logs + b, axis=1)
        slope = (np.exp(out) - own) / n
        steps = np.concatenate([[(slope * logs).sum()], slope.sum(0) + b / (10 * n)])
        return float(-(out * own).sum() / n + (b**2).sum() / (20 * n)), steps

    start = np.concatenate([[1.0], np.zeros(classes)])
    best = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 20.0)] + [(-20.0, 20.0)] * classes
    ).x
    return np.asarray(np.exp(log_softmax(best[0] * _logs(answers) + best[1:], axis=1)))


def _logs(probabilities: Array) -> Array:
    return np.log(np.maximum(probabilities, 1e-12))
