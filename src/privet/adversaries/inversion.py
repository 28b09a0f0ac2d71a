"""Inversion: which words were in a text, from its sentence embedding alone?

One answer per word, for all of the most frequent words at once: linear and perceptron heads learn
from texts and embeddings of *attack* people, the head and the threshold are chosen on *select*, and
the micro-averaged

    F1 = 2 right / (2 right + wrong + missed),

over the words and texts of *test* people, is counted with an interval over people. Source of the
attack: Song and Raghunathan, Information leakage in embedding models, CCS 2020.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from privet.core.errors import PrivetError
from privet.data.dataset import Array, Dataset
from privet.data.schema import split_words
from privet.evidence.figures import Figure, Rebuilt
from privet.evidence.person_intervals import bootstrap_people
from privet.nets.device import pick
from privet.release.foreign import from_onnx
from privet.release.release import Release

Embedding = Callable[[Sequence[str]], Array]
"""Texts to vectors, (n, d)."""

HEADS: tuple[int, ...] = (0, 256)
"""Hidden units of the heads that are tried; 0 is logistic regression."""
THRESHOLDS = np.linspace(0.02, 0.9, 45)


class _Part(NamedTuple):
    x: Tensor
    words: Array
    """(n, most), whether each word is there."""
    people: Array


def embed(source: Embedding | Release | Path | Array, data: Dataset, batch: int = 256) -> Array:
    """A vector for every record of a dataset of texts, float32 (records, d): by a Python function
    of texts, by a release or an ONNX graph of word ids, or from a parquet file with one row of
    numbers per text, in the same order."""
    if isinstance(source, np.ndarray):
        vectors = source
    elif isinstance(source, Release):
        vectors = source(source.schema.inputs(data)).reshape(len(data), -1)
    elif isinstance(source, Path):
        vectors = (
            embed(from_onnx(source, data, list(data.attributes)[:1]), data)
            if source.suffix == ".onnx"
            else _read(source)
        )
    else:
        texts = [str(text) for text in data.records[data.rows]]
        vectors = np.concatenate(
            [np.asarray(source(texts[at : at + batch])) for at in range(0, len(texts), batch)]
        )
    if vectors.ndim != 2 or len(vectors) != len(data):
        raise PrivetError(
            f"{data.name} has {len(data)} texts, and their embeddings have the shape {vectors.shape}: one row a text."
        )
    if not np.isfinite(vectors).all():
        raise PrivetError("An embedding holds something that is not a finite number.")
    return np.asarray(vectors, dtype=np.float32)


def inversion(
    source: Embedding | Release | Path | Array,
    data: Dataset,
    *,
    most: int = 300,
    skip: int = 0,
    epochs: int = 30,
    seed: int = 0,
    device: str = "auto",
    shown: int = 8,
    title: str = "which words were in it",
) -> Rebuilt:
    """Attack embeddings of the texts in `data`; `source` as for `embed`. Call it with raw and with
    released vectors to compare.

    The `most` most frequent words of *attack* are asked for, after the first `skip`.
    """
    if data.modality != "text":
        raise PrivetError(
            f"{data.name} holds {data.modality} records: which words were in them is asked of texts."
        )
    data.require_records("attack", "select", "test")
    vectors, where = torch.from_numpy(embed(source, data)).to(pick(device)), _places(data)
    return invert_parts(
        {part: vectors[torch.from_numpy(at).to(vectors.device)] for part, at in where.items()},
        {part: data.records[data.rows[at]] for part, at in where.items()},
        {part: data.people[at] for part, at in where.items()},
        most=most,
        skip=skip,
        epochs=epochs,
        seed=seed,
        shown=shown,
        title=title,
        where=data.name,
    )


def invert_parts(
    vectors: Mapping[str, Tensor],
    texts: Mapping[str, Sequence[str] | Array],
    people: Mapping[str, Array],
    *,
    most: int = 300,
    skip: int = 0,
    epochs: int = 30,
    seed: int = 0,
    shown: int = 8,
    title: str = "which words were in it",
    where: str = "the data",
) -> Rebuilt:
    """The same for embeddings, their texts and whose they are, each by *attack*, *select* and
    *test*: as the audit has them."""
    asked, parts = _parts(vectors, texts, people, most, skip, where)
    torch.manual_seed(seed)
    answers = [_learn(parts, hidden, rate, epochs) for hidden, rate in product(HEADS, (3e-3,))]
    scored = [
        (*_best_threshold(answer(parts["select"].x), parts["select"].words), answer)
        for answer in answers
    ]
    _, threshold, answer = max(scored, key=lambda one: one[0])
    test, said = parts["test"], answer(parts["test"].x) > threshold
    figures = _figures(said, test, _constant(parts))
    first = [" ".join(asked[row]) for row in said[:shown]]
    originals = tuple(" ".join(asked[row]) for row in test.words[:shown])
    return Rebuilt(
        "share of words (F1)",
        figures["f1_words"].value,
        len(said),
        originals,
        tuple(first),
        title,
        figures,
    )


def _places(data: Dataset) -> dict[str, Array]:
    return {
        part: np.flatnonzero(np.isin(data.rows, data.part(part).rows))
        for part in ("attack", "select", "test")
    }


def _parts(
    vectors: Mapping[str, Tensor],
    texts: Mapping[str, Sequence[str] | Array],
    people: Mapping[str, Array],
    most: int,
    skip: int,
    where: str,
) -> tuple[Array, dict[str, _Part]]:
    lines = {part: [set(split_words(text)) for text in own] for part, own in texts.items()}
    counts = Counter(
        word for line in lines["attack"] for word in line if any(map(str.isalnum, word))
    )
    asked = [word for word, n in counts.most_common(most + skip)[skip:] if n > 1]
    if not asked:
        raise PrivetError(
            f"No word occurs in two texts of the attack part of {where}: there is nothing to ask for."
        )
    place = {word: at for at, word in enumerate(asked)}
    there = {part: np.zeros((len(own), len(asked)), dtype=bool) for part, own in lines.items()}
    for part, own in lines.items():
        pairs = np.array(
            [(row, place[word]) for row, line in enumerate(own) for word in line if word in place],
            dtype=np.int64,
        )
        there[part][tuple(pairs.reshape(-1, 2).T)] = True
    mean, spread = vectors["attack"].mean(0), vectors["attack"].std(0, correction=0)
    found = {
        part: _Part(
            (own - mean) / torch.where(spread > 1e-8, spread, 1.0), there[part], people[part]
        )
        for part, own in vectors.items()
    }
    return np.array(asked, dtype=object), found


def _learn(
    parts: dict[str, _Part],
    hidden: int,
    rate: float,
    epochs: int,
    least: int = 300,
    batch: int = 128,
) -> Callable[[Tensor], Array]:
    """A head that gives a probability per word, kept as it was when its loss on *select* was
    least."""
    seen, select = parts["attack"], parts["select"]
    x, y = seen.x, torch.from_numpy(seen.words).float().to(seen.x.device)
    apart = torch.from_numpy(select.words).float().to(x.device)
    d, k = x.shape[1], y.shape[1]
    net = (
        nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Dropout(0.2), nn.Linear(hidden, k))
        if hidden
        else nn.Linear(d, k)
    ).to(x.device)
    optimiser = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=1e-2)
    measure, best, kept = (
        nn.BCEWithLogitsLoss(),
        float("inf"),
        {k: v.clone() for k, v in net.state_dict().items()},
    )
    for _ in range(max(epochs, -(-least * batch // len(x)))):
        net.train()
        for some in torch.split(torch.randperm(len(x), device=x.device), batch):
            optimiser.zero_grad(set_to_none=True)
            measure(net(x[some]), y[some]).backward()
            optimiser.step()
        net.eval()
        with torch.no_grad():
            loss = float(measure(net(select.x), apart))
        if loss < best:
            best, kept = loss, {k: v.clone() for k, v in net.state_dict().items()}
    net.load_state_dict(kept)
    net.eval()

    @torch.no_grad()
    def answer(z: Tensor) -> Array:
        return np.asarray(torch.sigmoid(net(z)).cpu().numpy())

    return answer


def _sums(said: Array, truth: Array) -> Array:
    """Per text: words that are right, that were said, and that were there."""
    return np.stack([(said & truth).sum(1), said.sum(1), truth.sum(1)], 1).astype(float)


def _f1(sums: Array) -> Array:
    return np.asarray(2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1e-12))


def _best_threshold(shares: Array, truth: Array) -> tuple[float, float]:
    scores = [float(_f1(_sums(shares > t, truth).sum(0)[None])[0]) for t in THRESHOLDS]
    return max(scores), float(THRESHOLDS[int(np.argmax(scores))])


def _constant(parts: dict[str, _Part]) -> Array:
    """The same words for every text: as many of the most frequent of *attack* as serve best on
    *select*."""
    order, select = np.argsort(-parts["attack"].words.mean(0)), parts["select"].words
    answers = np.arange(len(order))[:, None] >= np.argsort(order)[None]
    scores = [
        float(_f1(_sums(np.broadcast_to(answer, select.shape), select).sum(0)[None])[0])
        for answer in answers
    ]
    return np.asarray(answers[int(np.argmax(scores))])


def _figures(said: Array, test: _Part, constant: Array) -> dict[str, Figure]:
    sums, same = _sums(said, test.words), _sums(np.broadcast_to(constant, said.shape), test.words)
    rules: dict[str, tuple[str, Callable[[Array], Array]]] = {
        "f1_words": ("F1 of the words that were in it", _f1),
        "precision_words": (
            "words said that were in it",
            lambda s: np.asarray(s[:, 0] / np.maximum(s[:, 1], 1e-12)),
        ),
        "recall_words": (
            "words in it that were said",
            lambda s: np.asarray(s[:, 0] / np.maximum(s[:, 2], 1e-12)),
        ),
    }
    found = {}
    for name, (measure, rule) in rules.items():
        low, high = bootstrap_people(test.people, sums, rule)
        value, chance = (float(rule(one.sum(0)[None])[0]) for one in (sums, same))
        found[name] = Figure(
            value,
            low,
            high,
            len(said),
            chance,
            interval="bootstrap over people 95 %",
            measure=measure,
        )
    return found


def _read(path: Path) -> Array:
    from privet.data.vector_columns import depth, read_numbers
    from privet.data.word_vectors import read_table

    table = read_table(path)
    lists = [name for name in table.schema.names if depth(table.schema.field(name).type) == 1]
    if not lists:
        raise PrivetError(
            f"{path.name} has no column of lists of numbers: {', '.join(table.schema.names)}."
        )
    return read_numbers(table.column(lists[0]), f"The column '{lists[0]}' of {path.name}")
