"""What anybody can find out about a release before using it, with nothing but the release.

A card and an audit are claims. These tests run the graph on records that are made up: does what it
gives change with the noise that its card names; and how much of a record can be rebuilt from it by
least squares, which finds the record itself, scaled, shifted, standardised, flipped, shuffled or
otherwise mixed linearly ::

    record = base + sum_k a_k pattern_k,   a ~ N(0, 1)         a_hat = ridge regression of a on z
    rebuilt = 1 - mean (a - a_hat)^2 / var(a)   on records that the regression has not seen

A release that hides little must not be mistaken for one that hides much. The converse cannot be
shown this way: a release from which nothing is rebuilt linearly may still give everything away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.data.dataset import Array
from privet.release.runtime import Runnable

# Made-up records that the regression learns from, and others that it is judged on.
LEARNED, JUDGED = 384, 128
# Patterns that records are made of, and numbers of the released record that are looked at.
PATTERNS, LOOKED_AT = 16, 192
# From this share on a record counts as rebuilt.
REBUILT = 0.9
BATCH = 64
# Words of made-up texts.
WORDS = 12


@dataclass(frozen=True)
class Finding:
    """What one test found.

    Parameters:
        code: noise_unused, no_noise, rebuilt, partly or hidden.
        text: A sentence for the participant.
        serious: Whether it contradicts a claim that the release hides anything.
    """

    code: str
    text: str
    serious: bool = False


def self_test(release: Runnable, run: Any, seed: int = 0) -> list[Finding]:
    """Findings about a release, from a few hundred made-up records.

    Parameters:
        release: What its card says.
        run: A session of its graph.
        seed: Of the made-up records.
    """
    rng = np.random.default_rng(seed)
    x, wanted = _records(release, rng)
    return [_noise(release, run, x[:BATCH], rng), _rebuilding(release, run, x, wanted, rng)]


def _noise(release: Runnable, run: Any, x: Array, rng: np.random.Generator) -> Finding:
    if release.noise is None:
        return Finding(
            "no_noise",
            "The release adds no noise: whoever guesses your record can check the guess.",
        )
    first, second = (_give(release, run, x, rng) for _ in range(2))
    if np.array_equal(first, second):
        return Finding(
            "noise_unused",
            "The release's card says that noise is added, but what it gives does not change with "
            "the noise.",
            serious=True,
        )
    return Finding("noise", "What the release gives changes with its noise.")


def _rebuilding(
    release: Runnable, run: Any, x: Array, wanted: Array, rng: np.random.Generator
) -> Finding:
    z = np.concatenate(
        [_give(release, run, x[start : start + BATCH], rng) for start in range(0, len(x), BATCH)]
    )
    share = rebuilt_share(z, wanted, rng)
    said = f"{100 * max(share, 0.0):.0f} %"
    if share >= REBUILT:
        return Finding(
            "rebuilt",
            f"What leaves is your record in another form: {said} of made-up records was rebuilt "
            "from it by least squares.",
            serious=True,
        )
    if share >= 0.3:
        return Finding(
            "partly", f"{said} of made-up records was rebuilt from what leaves by least squares."
        )
    return Finding(
        "hidden",
        f"Least squares rebuilt {said} of made-up records from what leaves; better attacks may "
        "rebuild more.",
    )


def rebuilt_share(z: Array, wanted: Array, rng: np.random.Generator) -> float:
    """The share of what records were made of that ridge regression rebuilds from what leaves, of
    records that it has not seen; the penalty is chosen on a part of those that it has."""
    rows = z.reshape(len(z), -1).astype(np.float64)
    if not np.isfinite(rows).all():
        return 0.0
    if rows.shape[1] > LOOKED_AT:  # a random mixture of all numbers keeps what is linear in them
        rows = (rows - rows.mean(0)) @ rng.standard_normal((rows.shape[1], LOOKED_AT))
    rows = (rows - rows.mean(0)) / np.maximum(rows.std(0), 1e-12)
    fit, tune = slice(0, LEARNED - 96), slice(LEARNED - 96, LEARNED)
    best, chosen = -np.inf, 1.0
    for penalty in (1e-6, 1e-2, 1.0, 100.0):
        if (score := _score(rows, wanted, fit, tune, penalty)) > best:
            best, chosen = score, penalty
    return _score(rows, wanted, slice(0, LEARNED), slice(LEARNED, None), chosen)


def _score(rows: Array, wanted: Array, fit: slice, judged: slice, penalty: float) -> float:
    design = np.column_stack([rows, np.ones(len(rows))])
    past = design[fit]
    weights = np.linalg.solve(past.T @ past + penalty * np.eye(past.shape[1]), past.T @ wanted[fit])
    missed = ((design[judged] @ weights - wanted[judged]) ** 2).sum()
    return float(1 - missed / ((wanted[judged] - wanted[judged].mean(0)) ** 2).sum())


def _give(release: Runnable, run: Any, x: Array, rng: np.random.Generator) -> Array:
    """What the release gives, with noise; of texts, the mean over their words."""
    inputs = {"x": x}
    if release.noise is not None:
        inputs["noise"] = release.noise.draw(len(x), x.shape[1], int(rng.integers(2**31)))
    z = np.asarray(run.run(["z"], inputs)[0], dtype=np.float64)
    return z.mean(1) if None in release.shape and z.ndim == 3 else z


def _records(release: Runnable, rng: np.random.Generator) -> tuple[Array, Array]:
    """Made-up records that the release can take, and the numbers that each was made of."""
    schema, many = release.schema, LEARNED + JUDGED
    if schema.modality == "text":
        return _texts(schema, many, rng)
    sizes = [int(size) for size in schema.shape if size is not None]
    count = min(PATTERNS, int(np.prod(sizes)))
    drawn = np.stack([_pattern(sizes, rng).ravel() for _ in range(count)])
    patterns = (np.linalg.qr(drawn.T)[0].T * np.sqrt(drawn.shape[1])).reshape(count, *sizes)
    amounts = rng.standard_normal((many, count))
    mixed = np.tensordot(amounts, patterns, 1)
    if schema.dtype == "uint8":
        scale = 40.0 / max(float(mixed.std()), 1e-9)
        return np.clip(np.round(128 + scale * mixed), 0, 255).astype(np.uint8), amounts
    return mixed.astype(schema.dtype), amounts


def _pattern(sizes: list[int], rng: np.random.Generator) -> Array:
    """A pattern over pictures or windows, smooth as theirs are; over rows, any."""
    fine = 5 if len(sizes) > 2 else 24
    coarse: Array = rng.standard_normal([sizes[0], *(min(size, fine) for size in sizes[1:])])
    for axis, size in enumerate(sizes[1:], start=1):
        places = np.linspace(0, coarse.shape[axis] - 1, size)
        low = np.floor(places).astype(int)
        high = np.minimum(low + 1, coarse.shape[axis] - 1)
        weight = (places - low).reshape([-1 if a == axis else 1 for a in range(coarse.ndim)])
        coarse = np.take(coarse, low, axis) * (1 - weight) + np.take(coarse, high, axis) * weight
    return coarse


def _texts(schema: Any, many: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Texts of some words of the vocabulary, and how often each word is in a text."""
    vocabulary = int(schema.vocabulary)
    used = rng.choice(np.arange(2, vocabulary), min(WORDS, max(1, vocabulary - 2)), replace=False)
    texts = rng.choice(used, (many, 16)).astype(schema.dtype)
    return texts, np.stack([(texts == word).sum(1) for word in used], 1).astype(np.float64)
