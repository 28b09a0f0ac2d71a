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
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from privet.adversaries.network_training import BestState
from privet.core.errors import PrivetError
from privet.data.dataset import Array, Dataset
from privet.data.schema import split_words
from privet.evidence.figures import Figure, Rebuilt
from privet.evidence.person_intervals import bootstrap_people
from privet.nets.device import pick
from privet.release.foreign import from_onnx
from privet.release.release import Release

# Texts to vectors, (n, d).
Embedding = Callable[[Sequence[str]], Array]

# Hidden units of the heads that are tried; 0 is logistic regression.
HEADS = (0, 256)
# How the heads learn: rate, records in a batch, and fewest steps.
RATE = 3e-3
BATCH = 128
FEWEST_STEPS = 300
# Thresholds on a word's probability that are tried.
THRESHOLDS = np.linspace(0.02, 0.9, 45)


class TextPart(NamedTuple):
    """Embeddings of one part, their texts and their people.

    Parameters:
        vectors: (n, d).
        texts: One a vector.
        people: The person of each.
    """

    vectors: Tensor
    texts: Sequence[str] | Array
    people: Array


class WordPart(NamedTuple):
    """Standardised vectors, and whether each word that is asked for is in the text, (n, words)."""

    x: Tensor
    words: Array
    people: Array


def embed(source: Embedding | Release | Path | Array, data: Dataset, batch: int = 256) -> Array:
    """A vector for every record of a dataset of texts, float32 (records, d): by a Python function
    of texts, by a release or an ONNX graph of word ids, or from a parquet file with one row of
    numbers per text, in the same order."""
    if isinstance(source, np.ndarray):
        vectors = source
    elif isinstance(source, Release):
        vectors = source(source.schema.inputs(data)).reshape(len(data), -1)
    elif isinstance(source, Path) and source.suffix == ".onnx":
        vectors = embed(from_onnx(source, data, list(data.attributes)[:1]), data)
    elif isinstance(source, Path):
        vectors = _read(source)
    else:
        texts = [str(text) for text in data.records[data.rows]]
        starts = range(0, len(texts), batch)
        vectors = np.concatenate([np.asarray(source(texts[at : at + batch])) for at in starts])
    if vectors.ndim != 2 or len(vectors) != len(data):
        raise PrivetError(
            f"{data.name} has {len(data)} texts, and their embeddings have the shape "
            f"{vectors.shape}: one row a text."
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
    """Attack embeddings of the texts in `data`. Call it with raw and with released vectors to
    compare.

    Parameters:
        source: What makes the embeddings, as for `embed`.
        data: A dataset of texts.
        most: How many words are asked for: the most frequent ones of *attack*.
        skip: How many of the most frequent words are left out.
        epochs: Passes over the texts.
        seed: Of everything that is random.
        device: cpu, cuda or auto.
        shown: How many texts to show.
        title: What the attack is called in the audit.
    """
    if data.modality != "text":
        raise PrivetError(
            f"{data.name} holds {data.modality} records: which words were in them is asked of "
            "texts."
        )
    data.require_records("attack", "select", "test")
    vectors, parts = torch.from_numpy(embed(source, data)).to(pick(device)), {}
    for part in ("attack", "select", "test"):
        rows = np.flatnonzero(np.isin(data.rows, data.part(part).rows))
        x = vectors[torch.from_numpy(rows).to(vectors.device)]
        parts[part] = TextPart(x, data.records[data.rows[rows]], data.people[rows])
    return invert_parts(
        parts, data.name, title, most=most, skip=skip, epochs=epochs, seed=seed, shown=shown
    )


def invert_parts(
    parts: Mapping[str, TextPart],
    data_name: str,
    title: str,
    *,
    most: int = 300,
    skip: int = 0,
    epochs: int = 30,
    seed: int = 0,
    shown: int = 8,
) -> Rebuilt:
    """The same for embeddings, their texts and whose they are, each by *attack*, *select* and
    *test*: as the audit has them."""
    words, data = with_words(parts, most, skip, data_name)
    torch.manual_seed(seed)
    tries = []
    for hidden in HEADS:
        predict = learn_head(data["attack"], data["select"], hidden, epochs)
        tries.append((*f1_threshold(predict(data["select"].x), data["select"].words), predict))
    _, threshold, predict = max(tries, key=lambda one: one[0])
    test, said = data["test"], predict(data["test"].x) > threshold
    figures = word_figures(said, test, constant_answer(data["attack"].words, data["select"].words))
    originals, guesses = (
        tuple(" ".join(words[row]) for row in table[:shown]) for table in (test.words, said)
    )
    value = figures["f1_words"].value
    return Rebuilt("share of words (F1)", value, len(said), originals, guesses, title, figures)


def with_words(
    parts: Mapping[str, TextPart], most: int, skip: int, data_name: str
) -> tuple[Array, dict[str, WordPart]]:
    """The words that are asked for; of every part, standardised vectors and which words are in
    each text (n, words)."""
    lines = [set(split_words(text)) for text in parts["attack"].texts]
    counts = Counter(w for words in lines for w in sorted(words) if any(map(str.isalnum, w)))
    asked = [word for word, n in counts.most_common(most + skip)[skip:] if n > 1]
    if not asked:
        raise PrivetError(
            f"No word occurs in two texts of the attack part of {data_name}: there is nothing to "
            "ask for."
        )
    return np.array(asked, dtype=object), marked_parts(parts, asked)


def marked_parts(parts: Mapping[str, TextPart], asked: Sequence[str]) -> dict[str, WordPart]:
    """Of every part, vectors standardised as on *attack* and which of the words are in each text
    (n, words)."""
    x = parts["attack"].vectors
    mean, deviation = x.mean(0), x.std(0, correction=0)
    deviation = torch.where(deviation > 1e-8, deviation, 1.0)
    data = {}
    for name, part in parts.items():
        texts = [set(split_words(text)) for text in part.texts]
        table = np.array([[word in text for word in asked] for text in texts], dtype=bool)
        data[name] = WordPart((part.vectors - mean) / deviation, table, part.people)
    return data


def learn_head(
    seen: WordPart, select: WordPart, hidden: int, epochs: int
) -> Callable[[Tensor], Array]:
    """A head that gives a probability per word, kept as it was when its loss on *select* was
    least."""
    x, y = seen.x, torch.from_numpy(seen.words).float().to(seen.x.device)
    select_y = torch.from_numpy(select.words).float().to(x.device)
    d, k = x.shape[1], y.shape[1]
    layers = [nn.Linear(d, hidden), nn.ReLU(), nn.Dropout(0.2)] if hidden else []
    net = nn.Sequential(*layers, nn.Linear(hidden or d, k)).to(x.device)
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-2)
    loss, best = nn.BCEWithLogitsLoss(), BestState(net)
    for _ in range(max(epochs, -(-FEWEST_STEPS * BATCH // len(x)))):
        net.train()
        for some in torch.split(torch.randperm(len(x), device=x.device), BATCH):
            optimiser.zero_grad(set_to_none=True)
            loss(net(x[some]), y[some]).backward()
            optimiser.step()
        net.eval()
        with torch.no_grad():
            best.offer(-float(loss(net(select.x), select_y)))
    best.restore()

    @torch.no_grad()
    def predict(z: Tensor) -> Array:
        return np.asarray(torch.sigmoid(net(z)).cpu().numpy())

    return predict


def _sums(said: Array, truth: Array) -> Array:
    """Per text: words that are right, that were said, and that were there."""
    said = np.broadcast_to(said, truth.shape)
    return np.stack([(said & truth).sum(1), said.sum(1), truth.sum(1)], 1).astype(float)


def _f1(sums: Array) -> Array:
    return np.asarray(2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1e-12))


def total_f1(said: Array, truth: Array) -> float:
    return float(_f1(_sums(said, truth).sum(0)[None])[0])


def f1_threshold(shares: Array, truth: Array) -> tuple[float, float]:
    scores = [total_f1(shares > threshold, truth) for threshold in THRESHOLDS]
    return max(scores), float(THRESHOLDS[int(np.argmax(scores))])


def constant_answer(attack: Array, select: Array) -> Array:
    """The same words for every text: as many of the most frequent of *attack* as serve best on
    *select*."""
    order = np.argsort(-attack.mean(0))
    answers = np.arange(len(order))[:, None] >= np.argsort(order)[None]
    return np.asarray(answers[int(np.argmax([total_f1(one, select) for one in answers]))])


def word_figures(said: Array, test: WordPart, constant: Array) -> dict[str, Figure]:
    sums, chance = _sums(said, test.words), _sums(constant, test.words).sum(0)[None]
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
    return {
        name: Figure(
            float(rule(sums.sum(0)[None])[0]),
            *bootstrap_people(test.people, sums, rule),
            len(said),
            float(rule(chance)[0]),
            interval="bootstrap over people 95 %",
            measure=measure,
        )
        for name, (measure, rule) in rules.items()
    }


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
