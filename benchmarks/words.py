"""Private words a second, as a multiple of a plain loop's, and that a word's nearest is the one
brute force finds.

The goal: 50,000 words/s on two cores.

    OMP_NUM_THREADS=2 python benchmarks/words.py
    OMP_NUM_THREADS=2 python benchmarks/words.py --vectors glove100.parquet

20,000 words with vectors of 100 numbers, drawn or from a file. What is timed is
`PrivateWords.change`: noise from the operating system's generator and the nearest word, without
reading and writing texts, which is timed beside it. The plain loop does the same word by word with
numpy - a direction, a length, all distances, the least of them - and takes turns with it. The exit
code is 1 where the median is under the goal, or where a nearest word is not the nearest.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from loading import spread
from memory import machine

from privet.core.progress import console
from privet.data.word_vectors import Vocabulary
from privet.language.private_words.mechanism import PrivateWords

GOAL = 50_000


def main() -> int:
    given = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    given.add_argument("--vectors", type=Path, default=None)
    given.add_argument("--words", type=int, default=20_000)
    given.add_argument("--dimension", type=int, default=100)
    given.add_argument("--epsilon", type=float, default=10.0)
    given.add_argument("--changed", type=int, default=200_000)
    given.add_argument("--looped", type=int, default=300, help="words of a turn of the plain loop")
    given.add_argument("--repetitions", type=int, default=5)
    given.add_argument("--device", default="cpu")
    asked, before, random = given.parse_args(), machine(), np.random.default_rng(0)
    vocabulary = (
        Vocabulary.read(asked.vectors)
        if asked.vectors
        else Vocabulary.of(
            [f"word{i}" for i in range(asked.words)],
            0.5 * random.standard_normal((asked.words, asked.dimension)),
        )
    )
    words, codes = (
        PrivateWords(vocabulary, asked.epsilon, asked.device),
        random.integers(1, len(vocabulary), asked.changed),
    )
    words.change(codes[:2000])
    rates, ratios = [], []
    for _ in range(asked.repetitions):
        start = time.monotonic()
        words.change(codes)
        rates.append(len(codes) / (time.monotonic() - start))
        plain = loop(words, codes[: asked.looped])
        ratios.append(rates[-1] / plain)
        console.print(
            f"{rates[-1]:,.0f} words/s, {ratios[-1]:,.0f} times a plain loop's {plain:,.0f}",
            highlight=False,
        )
    told = {
        "goal": GOAL,
        "words_per_second": spread(rates),
        "times_a_plain_loop": spread(ratios),
        "text_words_per_second": reading(vocabulary, codes[:200_000]),
        "not_nearest": wrong(words, 2000),
        "vocabulary": list(vocabulary.points.shape),
        "epsilon": asked.epsilon,
        "threads": torch.get_num_threads(),
        "machine": before,
    }
    sys.stdout.write(json.dumps(told, indent=2) + "\n")
    return int(float(np.median(rates)) < GOAL or told["not_nearest"] > 0)


def loop(words: PrivateWords, codes: np.ndarray) -> float:
    """Words a second of the plain way."""
    points, random = words.vocabulary.points, np.random.default_rng(0)
    start = time.monotonic()
    for code in codes:
        direction = random.standard_normal(points.shape[1]).astype(np.float32)
        length = np.float32(random.gamma(points.shape[1], 1 / words.epsilon))
        y = points[code] + length / np.linalg.norm(direction) * direction
        int(((points - y) ** 2).sum(1).argmin())
    return len(codes) / (time.monotonic() - start)


def reading(vocabulary: Vocabulary, codes: np.ndarray) -> int:
    """Words a second from texts to codes and back."""
    texts = vocabulary.texts(codes, np.full(len(codes) // 20, 20))
    start = time.monotonic()
    vocabulary.texts(*vocabulary.codes(texts))
    return round(len(codes) / (time.monotonic() - start))


def wrong(words: PrivateWords, n: int) -> int:
    """How many of n points get a word that is further away than another, beyond the rounding of
    single precision."""
    points = words.vocabulary.points.astype(np.float64)
    y = 1.2 * np.random.default_rng(1).standard_normal((n, points.shape[1]))
    found = words.nearest(torch.from_numpy(y.astype(np.float32))).cpu().numpy()
    score = y @ points.T - (points**2).sum(1) / 2
    return int((score.max(1) - score[np.arange(n), found] > 1e-3).sum())


if __name__ == "__main__":
    sys.exit(main())
