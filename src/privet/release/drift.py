"""Whether a record is like those that a release was learned from.

Every figure about a release is about people like those of its data. Another camera, another
population or another language makes other records, for which nothing was measured. The card
therefore holds a summary of the encoded *fit* records: a dozen features f of a record (of a picture
brightness, contrast, sharpness and layout), their mean and covariance, and two quantiles of

    distance(x) = sqrt(g' (correlation + RIDGE)^-1 g / features),   g = (f(x) - mean) / deviation

What it tells about the training records: means and covariances of a dozen numbers over at least
FEWEST of them, rounded; of one person, no more than such a mean does. web/static/drift.js is the
same in JavaScript.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privet.data.dataset import Array
from privet.data.schema import PAD, UNKNOWN, Schema
from privet.release.self_test import Finding

# Fewest records that are summarised, and how many are looked at.
FEWEST, MOST = 200, 2000
# Signed sums of the columns of a row, and of the words of a text.
SUMS = 8
# One record is unlike the others beyond this multiple of the distance of 99 in 100; many are where
# more than half lie beyond that of 95 in 100.
FAR, MANY = 1.25, 8
# So many records are unlike the others as a whole where their mean is so far off.
CROWD, SHIFTED = 30, 0.6
# Added to the diagonal of the correlations; and the least deviation of a feature.
RIDGE, LEAST = 0.02, 1e-3


def features(schema: Schema, x: Array) -> tuple[Array, list[str]]:
    """A dozen numbers about each encoded record, and what each is about."""
    plain, records = schema.plain, schema.own(x)
    kinds = {"image": _picture, "signal": _window, "text": _text}
    return kinds.get(plain.modality, _row)(np.asarray(records))


def _picture(x: Array) -> tuple[Array, list[str]]:
    pixels = x.astype(np.float64) / 255
    _, channels, height, width = pixels.shape
    grey, middle = pixels.mean(1), (height // 2, width // 2)
    across, down = np.abs(np.diff(pixels, axis=3)), np.abs(np.diff(pixels, axis=2))
    quarters = [
        grey[:, rows, columns].mean((1, 2))
        for rows in (slice(middle[0]), slice(middle[0], None))
        for columns in (slice(middle[1]), slice(middle[1], None))
    ]
    parts = [
        pixels.mean((2, 3)),
        pixels.std((2, 3)),
        across.mean((2, 3)) + down.mean((2, 3)),
        np.stack(quarters, 1),
    ]
    names = ["brightness", "contrast", "sharpness"]
    return np.concatenate(parts, 1), [n for n in names for _ in range(channels)] + ["layout"] * 4


def _window(x: Array) -> tuple[Array, list[str]]:
    parts = [x.mean(2), x.std(2), np.abs(np.diff(x, axis=2)).mean(2)]
    names = ["level", "spread", "change"]
    return np.concatenate(parts, 1).astype(np.float64), [
        n for n in names for _ in range(x.shape[1])
    ]


def _row(x: Array) -> tuple[Array, list[str]]:
    x = x.reshape(len(x), -1).astype(np.float64)
    sums = x @ signs(np.arange(x.shape[1])) / np.sqrt(x.shape[1])
    extreme = np.log1p(np.abs(x).max(1, keepdims=True))
    return np.concatenate([sums, extreme], 1), [*["the columns together"] * SUMS, "a single column"]


def _text(x: Array) -> tuple[Array, list[str]]:
    there = (x != PAD).astype(np.float64)
    length = np.maximum(there.sum(1, keepdims=True), 1)
    unknown = ((x == UNKNOWN) * there).sum(1, keepdims=True) / length
    sums = (signs(x) * there[..., None]).sum(1) / np.sqrt(length)
    names = ["length", "unknown words", *["the words used"] * SUMS]
    return np.concatenate([np.log(length), unknown, sums], 1), names


def signs(places: Array) -> Array:
    """For each whole number SUMS signs, the same everywhere: a cheap hash of it."""
    with np.errstate(over="ignore"):
        rows = (places.astype(np.uint32) * np.uint32(0x9E3779B1))[..., None]
        mixed = rows ^ (np.arange(1, SUMS + 1, dtype=np.uint32) * np.uint32(0x85EBCA6B))
        for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
            mixed = (mixed ^ (mixed >> np.uint32(shift))) * np.uint32(factor)
        mixed ^= mixed >> np.uint32(15)
    return np.where(mixed & np.uint32(1), 1.0, -1.0)


def typical(schema: Schema, inputs: Any, seed: int = 0) -> dict[str, Any] | None:
    """The summary of a release's *fit* records for its card; None where they are too few.

    Parameters:
        schema: How they are encoded.
        inputs: The encoded records.
        seed: Which of them are looked at, where there are many.
    """
    many = len(inputs)
    if many < FEWEST:
        return None
    chosen = np.sort(np.random.default_rng(seed).permutation(many)[:MOST])
    rows, _ = features(schema, np.asarray(inputs[chosen]))
    covariance = np.cov(rows, rowvar=False).reshape(rows.shape[1], -1)
    summary = {
        "records": len(chosen),
        "mean": _rounded(rows.mean(0)),
        "covariance": [_rounded(row) for row in covariance],
    }
    distances = _distances(rows, summary)
    return {**summary, "usual": _rounded(np.quantile(distances, [0.95, 0.99]))}


def drift(card: Mapping[str, Any], schema: Schema, x: Array) -> Finding | None:
    """A finding where encoded records are unlike those that a release was learned from; None where
    they are like them, and where its card does not tell.

    Parameters:
        card: Of the release.
        schema: How it takes records.
        x: The encoded records.
    """
    summary: Any = card.get("typical")
    rows, names = features(schema, x)
    if not _is_summary(summary, rows.shape[1]):
        return None
    distances, (most, far) = _distances(rows, summary), summary["usual"]
    unlike = distances > FAR * far
    if len(rows) >= MANY and (distances > most).mean() > 0.5:
        unlike = distances > most
    if len(rows) >= CROWD and _distances(rows.mean(0, keepdims=True), summary)[0] > SHIFTED:
        unlike = np.ones(len(rows), bool)
    if not unlike.any() or (len(rows) >= MANY and unlike.mean() < 0.05):
        return None
    off = np.abs(rows[unlike] - np.asarray(summary["mean"])).mean(0) / _deviations(summary)
    about = names[int(off.argmax())]
    which = (
        "Your record is" if len(rows) == 1 else f"{int(unlike.sum())} of {len(rows)} records are"
    )
    return Finding(
        "drift",
        f"{which} unlike those that the release was learned from, most of all in {about}: what was "
        "measured and certified may not hold here.",
    )


def _distances(rows: Array, summary: Mapping[str, Any]) -> Array:
    covariance, deviations = np.asarray(summary["covariance"]), _deviations(summary)
    size = len(covariance)
    correlation = covariance / np.outer(deviations, deviations) + RIDGE * np.eye(size)
    away = (rows - np.asarray(summary["mean"])) / deviations
    squares = (away * np.linalg.solve(correlation, away.T).T).sum(1)
    distances: Array = np.sqrt(np.maximum(squares, 0.0) / size)
    return distances


def _deviations(summary: Mapping[str, Any]) -> Array:
    variances: Array = np.diag(np.asarray(summary["covariance"], dtype=np.float64))
    deviations: Array = np.sqrt(np.maximum(variances, LEAST**2))
    return deviations


def _rounded(values: Array) -> list[float]:
    """To four figures."""
    return [float(f"{value:.3e}") for value in np.asarray(values, dtype=np.float64)]


def _is_summary(summary: Any, size: int) -> bool:
    """Whether a card's summary has the form that it must have; it may be anybody's."""
    try:
        mean, covariance, usual = (
            np.asarray(summary[name], dtype=np.float64) for name in ("mean", "covariance", "usual")
        )
    except (KeyError, TypeError, ValueError):
        return False
    fits = mean.shape == (size,) and covariance.shape == (size, size) and usual.shape == (2,)
    return fits and all(np.isfinite(part).all() for part in (mean, covariance, usual))
