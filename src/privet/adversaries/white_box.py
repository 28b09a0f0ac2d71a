"""White-box inversion: the words of a text by optimisation, for an attacker who has the embedding
and can differentiate through it, and through the release.

With E an embedding of relative word frequencies, R the release and z what was released, the
attacker looks for logits a over the words with the least

    | R(E(f)) - z |^2 / |z|^2  +  l H(f)      or      ...  +  l KL(f || p),      f = softmax(a)

The entropy H keeps the answer to a few words, as the source has it. The divergence from p, how
frequent words are in the texts of *attack*, is ours: a long text has more words than its embedding
has numbers, so that very many answers fit, and without p a rare word is as good as a frequent one.
The words with the largest shares are said; from which share on, which of the two terms and which l
is chosen on *select*. A random release is differentiated at
no noise: the attacker does not know the noise. Rounding has no gradient and would hide nothing but
that: the attacker takes the gradient of what is rounded.

The mean of word vectors is such an embedding (`MeanOfWords`). A Python callable is none: what
cannot be differentiated is attacked as a black box (inversion.py).

Source: Song and Raghunathan, Information leakage in embedding models, CCS 2020, section 4.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from privet.adversaries.inversion import (
    TextPart,
    constant_answer,
    total_f1,
    with_words,
    word_figures,
)
from privet.data.dataset import Array
from privet.data.schema import TableSchema, split_words
from privet.data.word_vectors import Vocabulary
from privet.evidence.figures import Rebuilt
from privet.release.release import Release

# Steps of Adam, its rate, and texts at a time.
STEPS, RATE, TEXTS = 200, 0.3, 128
# Texts of *select* and of *test* that are inverted, the first of each.
MOST_TEXTS = 300
# Words that may have been in a text: the most frequent of *attack* that the embedding knows.
MOST_WORDS = 3000
# Weights that are tried of the entropy and of the divergence from word frequencies; shares from
# which on a word is said.
ENTROPIES = (1e-3, 1e-2, 5e-2)
DIVERGENCES = (1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
SHARES = np.geomspace(0.0005, 0.3, 40)


class Penalty(NamedTuple):
    """What answers cost beside what they miss: weight times the entropy, or times the divergence
    from word frequencies."""

    weight: float
    divergence: bool

    def __call__(self, logs: Tensor, prior: Tensor) -> Tensor:
        """Of log shares (n, words), with the logarithms of the frequencies (words,)."""
        shares = logs.exp()
        if self.divergence:
            return self.weight * (shares * (logs - prior)).sum(1)
        return -self.weight * (shares * logs).sum(1)


PENALTIES = (
    *(Penalty(weight, False) for weight in ENTROPIES),
    *(Penalty(weight, True) for weight in DIVERGENCES),
)


class DifferentiableEmbedding(Protocol):
    """What an attacker can differentiate: relative frequencies of words to an embedding."""

    @property
    def words(self) -> Sequence[str]:
        """The words, in order."""
        ...

    def __call__(self, frequencies: Tensor) -> Tensor:
        """Frequencies (n, words) that sum to one, to embeddings (n, d)."""
        ...

    def only(self, places: Sequence[int]) -> DifferentiableEmbedding:
        """The same embedding of texts that have no other words than these."""
        ...


@dataclass(frozen=True, eq=False)
class MeanOfWords:
    """The mean of the words' vectors.

    Parameters:
        words: The words, in order.
        points: Their vectors, (words, d).
    """

    words: Sequence[str]
    points: Tensor

    @staticmethod
    def of(vocabulary: Vocabulary) -> MeanOfWords:
        """The embedding that `privet embed --vectors` makes."""
        return MeanOfWords(vocabulary.words, torch.from_numpy(vocabulary.points[1:]))

    def __call__(self, frequencies: Tensor) -> Tensor:
        return frequencies @ self.points.to(frequencies)

    def only(self, places: Sequence[int]) -> MeanOfWords:
        """The same embedding of texts that have no other words than these."""
        return MeanOfWords([self.words[at] for at in places], self.points[list(places)])


def invert_by_optimisation(
    parts: Mapping[str, TextPart],
    embedding: DifferentiableEmbedding,
    release: Release,
    data_name: str,
    title: str,
    *,
    most: int = 300,
    skip: int = 0,
    seed: int = 0,
) -> Rebuilt:
    """Which words were in each text, by optimisation.

    Parameters:
        parts: Of *attack*, *select* and *test*, what was released of each embedding, as the release
            gives it; their texts and people.
        embedding: What made the vectors of the texts.
        release: What was applied to them; the identity for raw vectors.
        data_name, title: For messages and for the audit.
        most, skip: Which words are counted, as for `invert_parts`.
        seed: Of the start.
    """
    parts = {**parts, **{p: _first(parts[p], MOST_TEXTS) for p in ("select", "test")}}
    words, data = with_words(parts, most, skip, data_name)
    known = {word: place for place, word in enumerate(embedding.words)}
    counted = with_words(parts, MOST_WORDS, 0, data_name)[0]
    candidates = embedding.only([known[word] for word in counted if word in known])
    column = {word: at for at, word in enumerate(candidates.words)}
    forward = _through(candidates, release, parts["test"].vectors.device)

    prior = _log_frequencies(parts["attack"].texts, candidates.words)

    def shares(part: TextPart, penalty: Penalty) -> Array:
        found = np.concatenate(
            [
                _optimise(forward, some, prior.to(some.device), penalty, seed)
                for some in torch.split(part.vectors, TEXTS)
            ]
        )
        table = np.zeros((len(found), len(words)))
        for at, word in enumerate(words):
            if (place := column.get(word)) is not None:
                table[:, at] = found[:, place]
        return table

    tries = []
    for penalty in PENALTIES:
        table = shares(parts["select"], penalty)
        scores = [total_f1(table > share, data["select"].words) for share in SHARES]
        tries.append((max(scores), penalty, float(SHARES[int(np.argmax(scores))])))
    _, penalty, share = max(tries)
    said = shares(parts["test"], penalty) > share
    constant = constant_answer(data["attack"].words, data["select"].words)
    figures = word_figures(said, data["test"], constant)
    return Rebuilt(
        "share of words (F1)", figures["f1_words"].value, len(said), decoder=title, figures=figures
    )


def _log_frequencies(texts: Iterable[str], words: Sequence[str]) -> Tensor:
    """Logarithms of the relative frequencies of these words; every word counts once more."""
    counts = Counter(word for text in texts for word in split_words(text))
    frequencies = torch.tensor([counts[word] + 1.0 for word in words])
    return (frequencies / frequencies.sum()).log()


def _first(part: TextPart, n: int) -> TextPart:
    return TextPart(part.vectors[:n], part.texts[:n], part.people[:n])


def _through(
    embedding: DifferentiableEmbedding, release: Release, device: torch.device
) -> Callable[[Tensor], Tensor]:
    """Frequencies of words to what is released of their embedding, without noise."""
    plain = release.schema.plain
    assert isinstance(plain, TableSchema), "embeddings are vectors"
    mean, std = (
        torch.tensor([getattr(c, key) for c in plain.columns], device=device)
        for key in ("mean", "std")
    )
    release.module.eval()

    def forward(frequencies: Tensor) -> Tensor:
        x = (embedding(frequencies) - mean) / std
        with _ThroughRounding():
            if release.noise is None:
                return release.forward(x)
            law = release.noise.sample(len(x), x.shape[1], x.device)
            return release.forward(x, torch.zeros_like(law))

    return forward


class _ThroughRounding(TorchFunctionMode):
    """Rounding with the gradient of the identity (straight-through)."""

    STEPS = (torch.round, torch.floor, torch.ceil, torch.trunc)
    METHODS = (Tensor.round, Tensor.floor, Tensor.ceil, Tensor.trunc)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in self.STEPS or func in self.METHODS:
            return args[0] + (out - args[0]).detach()
        return out


def _optimise(
    forward: Callable[[Tensor], Tensor], z: Tensor, prior: Tensor, penalty: Penalty, seed: int
) -> Array:
    """Shares of the words of each text, (n, words)."""
    generator = torch.Generator().manual_seed(seed)
    start = 0.01 * torch.randn(len(z), len(prior), generator=generator).to(z.device)
    logits = (start + prior if penalty.divergence else start).requires_grad_(True)
    optimiser = torch.optim.Adam([logits], lr=RATE)
    size = z.square().sum(1).clamp(min=1e-12)
    for _ in range(STEPS):
        optimiser.zero_grad(set_to_none=True)
        logs = torch.log_softmax(logits, 1)
        miss = (forward(logs.exp()) - z).square().sum(1) / size
        loss = (miss + penalty(logs, prior)).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return np.asarray(torch.softmax(logits, 1).detach().cpu().numpy())
