"""The decoder: from private words back to the words they were, with a language model as prior.

The mechanism is public, so an attacker can run it: p(u | w), that w becomes u, is learned from
simulated pairs. Which word wins is a choice among the vocabulary where w stands at a distance from
each, and large vectors are moved most, so the law is taken to be

    p(u | w) ~ exp(a |v(u) - v(w)|^2 + b |v(u) - v(w)|^2 / |v(u)| + c |v(u)| + e |v(u)|^2 + f [u = w])

with five numbers fitted by maximum likelihood (a conditional logit: McFadden, Frontiers in
Econometrics, 1974, 105-142). Then

    p(w_1 ... w_n | u_1 ... u_n) ~ product over i of p(u_i | w_i) p(w_i | w_{i-1})

and at each place the word of the highest marginal probability is chosen, by forward and backward
sums over the likeliest candidates of every place, all texts of a batch at once: the best rule where
words are counted one by one. In place of bigrams an LSTM can be the prior (lstm_prior.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import logsumexp
from torch import Tensor

from privet.data.dataset import Array, Dataset
from privet.evidence.figures import Figure, Rebuilt
from privet.evidence.person_intervals import bootstrap_people
from privet.language.private_words.bigram_prior import Bigrams
from privet.language.private_words.lstm_prior import LSTMPrior
from privet.language.private_words.mechanism import PrivateWords
from privet.nets.device import pick

COMMON = 100
"""Words that are so frequent that recovering them tells little; the others are counted apart."""
PRIORS = {
    "released": "the released word itself",
    "none": "no prior: the word that becomes this one most easily",
    "frequency": "how frequent words are as prior",
    "bigrams": "a bigram language model as prior",
    "lstm": "an LSTM language model with bigrams as prior",
}
WEIGHTS = (0.5, 0.75, 1.0)
"""How much the prior counts beside the channel; chosen on *select*."""
BATCH = 64
"""Texts decoded at a time."""


@dataclass(frozen=True)
class Point:
    """What is read, kept and recovered at one epsilon."""

    epsilon: float
    private: dict[str, Figure]
    utility: dict[str, Figure]
    recovered: dict[str, Figure]
    """Shares of words, by the attacker's prior in words."""
    stays: float


@dataclass(frozen=True, eq=False)
class Channel:
    """log p(u | w), up to what the five numbers can say."""

    points: Tensor
    numbers: Tensor
    log_total: Tensor
    """(words,): log of the sum over u, so that p(. | w) sums to one."""

    @staticmethod
    def learn(
        words: PrivateWords, codes: Array, pairs: int = 512, steps: int = 80, seed: int = 0
    ) -> Channel:
        """From `pairs` words drawn from the attacker's own, each sent through the mechanism
        once."""
        drawn = np.random.default_rng(seed).choice(codes, pairs)
        became = torch.from_numpy(words.change(drawn, seed))
        device = pick(words.device)
        points = torch.from_numpy(words.vocabulary.points).to(device)
        inputs, wanted = _features(points, torch.from_numpy(drawn).to(device)), became.to(device)
        scale = torch.stack([one.std().clamp(min=1e-3) for one in inputs])
        numbers = torch.zeros(len(inputs), device=device, requires_grad=True)
        optimiser = torch.optim.Adam([numbers], lr=0.3)
        rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        for _ in range(steps):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(_score(inputs, numbers / scale), wanted)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            rate.step()
        found = (numbers / scale).detach()
        everything = torch.arange(len(points), device=device)
        total = torch.cat(
            [
                _score(_features(points, some), found).logsumexp(1)
                for some in torch.split(everything, 256)
            ]
        )
        return Channel(points, found, total)

    def to(self, released: Array) -> Tensor:
        """log p(u | w) of the released words u (n,) from every word w: (n, words)."""
        u = torch.from_numpy(released).to(self.points.device)
        return _score(_features(self.points, u, forward=False), self.numbers) - self.log_total


def _features(points: Tensor, some: Tensor, forward: bool = True) -> list[Tensor]:
    """Five tables (some, words): of words `some` becoming any (forward), or of any becoming
    `some`."""
    squared = points.square().sum(1)
    apart = (squared[some, None] + squared - 2 * points[some] @ points.T).clamp(min=0)
    norm = (squared if forward else squared[some, None]).sqrt().clamp(min=1e-3).expand_as(apart)
    same = torch.zeros_like(apart)
    same[torch.arange(len(some), device=some.device), some] = 1.0
    return [apart, apart / norm, norm, norm.square(), same]


def _score(features: list[Tensor], numbers: Tensor) -> Tensor:
    return torch.stack([one * number for one, number in zip(features, numbers, strict=True)]).sum(0)


@dataclass(frozen=True, eq=False)
class Decoder:
    channel: Channel
    prior: Bigrams
    candidates: int = 24
    lstm: LSTMPrior | None = None

    @staticmethod
    def learn(
        words: PrivateWords,
        codes: Array,
        lengths: Array,
        candidates: int = 24,
        pairs: int = 512,
        seed: int = 0,
        lstm: LSTMPrior | None = None,
    ) -> Decoder:
        """What an attacker knows who has texts of other people and the mechanism."""
        size = len(words.vocabulary)
        channel = Channel.learn(words, codes, pairs, seed=seed)
        return Decoder(channel, Bigrams.learn(codes, lengths, size), min(candidates, size), lstm)

    def answers(
        self, released: Array, lengths: Array, weight: float = 1.0, light: bool = False
    ) -> dict[str, Array]:
        """The words behind released ones, by each kind of prior: PRIORS without the first, and
        without the LSTM where it is to be light."""
        unique, place = np.unique(released, return_inverse=True)
        word = weight * self.prior.log_word
        plain = np.empty(len(unique), dtype=np.int64)
        some, emitted = (
            np.empty((len(unique), self.candidates), dtype=kind) for kind in (np.int64, np.float64)
        )
        for start in range(0, len(unique), 256):
            emit = self.channel.to(unique[start : start + 256]).double().cpu().numpy()
            plain[start : start + 256] = 1 + emit[:, 1:].argmax(1)
            top = np.argsort(-(emit + word), axis=1)[:, : self.candidates]
            some[start : start + 256], emitted[start : start + 256] = (
                top,
                np.take_along_axis(emit, top, 1),
            )
        known = np.where(
            some > 0, emitted + word[some], -np.inf
        )  # unknown words are context, and nobody asks for them
        frequency = np.take_along_axis(some, known.argmax(1)[:, None], 1)[:, 0]
        bigrams = self._marginals(some[place], emitted[place], lengths, weight)
        found = {"none": plain[place], "frequency": frequency[place], "bigrams": bigrams}
        if self.lstm is not None and not light:
            found["lstm"] = self.lstm.decode(
                some[place], emitted[place], lengths, self.prior, weight, bigrams
            )
        return found

    def _marginals(self, some: Array, emitted: Array, lengths: Array, weight: float) -> Array:
        """The known word of highest marginal probability at each place; texts of like length
        together, shorter ones end early."""
        out, starts = np.empty(len(some), dtype=np.int64), np.cumsum(lengths) - lengths
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        for begin in range(0, len(order), BATCH):
            texts = order[begin : begin + BATCH]
            long, first = lengths[texts], starts[texts]
            at = first[:, None] + np.minimum(np.arange(long.max()), long[:, None] - 1)
            steps = [
                self._step(some[at[:, t - 1]], some[at[:, t]], weight) for t in range(1, long.max())
            ]
            forward = [
                weight * self.prior.log(np.full((len(texts), 1), self.prior.size), some[first])
                + emitted[first]
            ]
            for t, step in enumerate(steps, 1):
                forward.append(
                    logsumexp(forward[-1][:, :, None] + step, axis=1) + emitted[at[:, t]]
                )
            backward = np.zeros_like(forward[0])
            for t in range(long.max() - 1, -1, -1):
                there = t < long
                both = np.where(some[at[:, t]] > 0, forward[t] + backward, -np.inf)
                out[at[there, t]] = np.take_along_axis(some[at[:, t]], both.argmax(1)[:, None], 1)[
                    there, 0
                ]
                if t:
                    going = logsumexp(
                        steps[t - 1] + (backward + emitted[at[:, t]])[:, None, :], axis=2
                    )
                    backward = np.where(there[:, None], going, backward)
        return out

    def _step(self, before: Array, here: Array, weight: float) -> Array:
        return weight * self.prior.log(before[:, :, None], here[:, None, :])


def attackers_words(
    words: PrivateWords, data: Dataset, most: int = 2000, seed: int = 0
) -> tuple[Array, Array]:
    """Codes and lengths of the texts that the attacker has: those of *attack*, at most twenty times
    as many as are decoded."""
    view = data.part("attack")
    view = view.take(np.sort(np.random.default_rng(seed).permutation(len(view))[: 20 * most]))
    return words.vocabulary.codes(data.records[view.rows])


def decode(
    words: PrivateWords,
    data: Dataset,
    most: int = 2000,
    seed: int = 0,
    shown: int = 8,
    pairs: int = 512,
    lstm: LSTMPrior | None = None,
) -> tuple[Rebuilt, ...]:
    """How many words of *test* people are recovered from their private texts, with every kind of
    prior, the language model's first.

    The attacker knows the texts of *attack*; how much the prior counts is chosen on *select*;
    unknown words are not counted.
    """
    random = np.random.default_rng(seed)
    codes, lengths, people = {}, {}, {}
    codes["attack"], lengths["attack"] = attackers_words(words, data, most, seed)
    for part, limit in (("select", most // 4), ("test", most)):
        view = data.part(part)
        view = view.take(np.sort(random.permutation(len(view))[:limit]))
        codes[part], lengths[part] = words.vocabulary.codes(data.records[view.rows])
        people[part] = np.repeat(view.people, lengths[part])
    attacker = Decoder.learn(
        words, codes["attack"], lengths["attack"], pairs=pairs, seed=seed, lstm=lstm
    )
    released = {
        part: words.change(codes[part], seed + 1 + at) for at, part in enumerate(("select", "test"))
    }
    select = released["select"], lengths["select"]
    weight = max(
        WEIGHTS,
        key=lambda w: _share(attacker.answers(*select, w, light=True)["bigrams"], codes["select"]),
    )
    answers = {
        "released": released["test"],
        **attacker.answers(released["test"], lengths["test"], weight),
    }
    counts = np.bincount(codes["attack"][codes["attack"] > 0], minlength=len(words.vocabulary))
    common = np.zeros(len(counts), dtype=bool)
    common[np.argsort(-counts)[:COMMON]] = True
    usual = {
        "words": int(counts.argmax()),
        "rare_words": int(np.where(common, -1, counts).argmax()),
    }
    counted = {
        "words": codes["test"] > 0,
        "rare_words": (codes["test"] > 0) & ~common[codes["test"]],
    }
    some = lengths["test"][:shown]
    originals = tuple(words.vocabulary.texts(codes["test"][: some.sum()], some))
    found = []
    for prior in (one for one in reversed(PRIORS) if one in answers):
        figures = {
            name: _figure(
                answers[prior] == codes["test"],
                codes["test"] == usual[name],
                there,
                people["test"],
                name,
            )
            for name, there in counted.items()
            if there.any()
        }
        if figures:
            rebuilt = tuple(words.vocabulary.texts(answers[prior][: some.sum()], some))
            value = figures["words"].value
            found.append(
                Rebuilt(
                    "share of words recovered",
                    value,
                    len(lengths["test"]),
                    originals,
                    rebuilt,
                    PRIORS[prior],
                    figures,
                )
            )
    return tuple(found)


def _share(guess: Array, truth: Array) -> float:
    return float((guess == truth)[truth > 0].mean()) if (truth > 0).any() else 0.0


def _figure(right: Array, usual: Array, there: Array, people: Array, name: str) -> Figure:
    low, high = bootstrap_people(
        people[there],
        np.c_[right[there], np.ones(there.sum())],
        lambda sums: sums[:, 0] / sums[:, 1],
    )
    measure = (
        "share of words recovered"
        if name == "words"
        else f"share of words recovered, without the {COMMON} most frequent"
    )
    chance = float(usual[there].mean())
    return Figure(
        float(right[there].mean()),
        low,
        high,
        int(there.sum()),
        chance,
        interval="bootstrap over people 95 %",
        measure=measure,
    )
