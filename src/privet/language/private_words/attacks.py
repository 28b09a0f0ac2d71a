"""The decoder: from private words back to the original ones, with a language model as prior.

The mechanism is public, so an attacker can run it: p(u | w), that w becomes u, is learned from
simulated pairs. Which word wins is a choice among the vocabulary where w has a distance to each,
and large vectors are moved most, so it is modelled as

    p(u | w) ~ exp(a r^2 + b r^2 / |v(u)| + c |v(u)| + e |v(u)|^2 + f [u = w]),  r = |v(u) - v(w)|,

with five numbers fitted by maximum likelihood (a conditional logit: McFadden, Frontiers in
Econometrics, 1974, 105-142). Then

    p(w_1 ... w_n | u_1 ... u_n) ~ product over i of p(u_i | w_i) p(w_i | w_{i-1})

and at each place the word of the highest marginal probability is chosen, by forward and backward
sums over the likeliest candidates of every place, all texts of a batch at once: the best rule where
words are counted one by one. An LSTM can join the bigrams as prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import logsumexp
from torch import Tensor

from privet.data.dataset import Array, Dataset
from privet.evidence.figures import Figure, Rebuilt
from privet.evidence.sentences import say
from privet.language.mean_figure import mean_figure
from privet.language.private_words.mechanism import PrivateWords
from privet.language.private_words.priors import Bigrams, LSTMPrior, batches_by_length
from privet.nets.device import pick

# Recovering the most frequent words reveals little; the others are also counted without them.
COMMON = 100
PRIORS = {
    "released": "the released word itself",
    "none": "no prior: the word that becomes this one most easily",
    "frequency": "how frequent words are as prior",
    "bigrams": "a bigram language model as prior",
    "lstm": "an LSTM language model with bigrams as prior",
}
# How much the prior counts beside the channel; chosen on *select*.
WEIGHTS = (0.5, 0.75, 1.0)
# Texts decoded at a time.
BATCH = 64


@dataclass(frozen=True)
class EpsilonFigures:
    """What attackers read and recover from texts that were privatized with one epsilon.

    Parameters:
        private: Of the strongest adversary, by attribute.
        utility: Of the best task model, by attribute.
        recovered: Shares of words, by the description of the attacker's prior.
        stays: Share of words that stay themselves.
    """

    epsilon: float
    private: dict[str, Figure]
    utility: dict[str, Figure]
    recovered: dict[str, Figure]
    stays: float

    @property
    def sentence(self) -> str:
        figures = {**self.private, **self.utility}.items()
        read = ", ".join(f"{name} {figure.value:.1%}" for name, figure in figures)
        best = max((figure.value for figure in self.recovered.values()), default=float("nan"))
        return say(
            "words_read",
            epsilon=f"{self.epsilon:g}",
            read=read,
            stays=f"{self.stays:.1%}",
            recovered=f"{best:.1%}",
        )


@dataclass(frozen=True, eq=False)
class Channel:
    """A model of p(u | w), the probability that the word w becomes u.

    Parameters:
        numbers: The five that are fitted.
        log_total: (words,): log of the sum over u, so that p(. | w) sums to one.
    """

    points: Tensor
    numbers: Tensor
    log_total: Tensor

    @staticmethod
    def learn(
        words: PrivateWords, codes: Array, pairs: int = 512, steps: int = 80, seed: int = 0
    ) -> Channel:
        """From `pairs` words drawn from the attacker's texts, each sent through the mechanism
        once."""
        drawn = np.random.default_rng(seed).choice(codes, pairs)
        device = pick(words.device)
        became = torch.from_numpy(words.change(drawn, seed)).to(device)
        points = torch.from_numpy(words.vocabulary.points).to(device)
        inputs = _features(points, torch.from_numpy(drawn).to(device))
        scale = torch.stack([one.std().clamp(min=1e-3) for one in inputs])
        numbers = torch.zeros(len(inputs), device=device, requires_grad=True)
        optimiser = torch.optim.Adam([numbers], lr=0.3)
        rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
        for _ in range(steps):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(_score(inputs, numbers / scale), became)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            rate.step()
        fitted = (numbers / scale).detach()
        parts = torch.split(torch.arange(len(points), device=device), 256)
        total = [_score(_features(points, part), fitted).logsumexp(1) for part in parts]
        return Channel(points, fitted, torch.cat(total))

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
class WordDecoder:
    """An attacker who has texts of other people and the mechanism.

    Parameters:
        candidates: Words that are considered at every place.
    """

    channel: Channel
    prior: Bigrams
    candidates: int = 24
    lstm: LSTMPrior | None = None

    @staticmethod
    def learn(
        words: PrivateWords,
        codes: Array,
        lengths: Array,
        pairs: int = 512,
        seed: int = 0,
        lstm: LSTMPrior | None = None,
    ) -> WordDecoder:
        """From the attacker's texts, one after the other, and their lengths."""
        size = len(words.vocabulary)
        channel = Channel.learn(words, codes, pairs, seed=seed)
        return WordDecoder(channel, Bigrams.learn(codes, lengths, size), min(24, size), lstm)

    def answers(
        self, released: Array, lengths: Array, weight: float = 1.0, with_lstm: bool = True
    ) -> dict[str, Array]:
        """The words behind released ones, by each prior of PRIORS but the first."""
        unique, place = np.unique(released, return_inverse=True)
        word = weight * self.prior.log_word
        without_prior, tops, emissions = [], [], []
        for start in range(0, max(len(unique), 1), 256):
            emit = self.channel.to(unique[start : start + 256]).double().cpu().numpy()
            without_prior.append(1 + emit[:, 1:].argmax(1))
            tops.append(np.argsort(-(emit + word), axis=1)[:, : self.candidates])
            emissions.append(np.take_along_axis(emit, tops[-1], 1))
        top, emitted = np.concatenate(tops), np.concatenate(emissions)
        # Unknown words are context, and are not recovered.
        known = np.where(top > 0, emitted + word[top], -np.inf)
        frequency = np.take_along_axis(top, known.argmax(1)[:, None], 1)[:, 0]
        top, emitted = top[place], emitted[place]
        answers = {
            "none": np.concatenate(without_prior)[place],
            "frequency": frequency[place],
            "bigrams": self._marginals(top, emitted, lengths, weight),
        }
        if self.lstm is not None and with_lstm:
            arguments = (top, emitted, lengths, self.prior, weight, answers["bigrams"])
            answers["lstm"] = self.lstm.decode(*arguments)
        return answers

    def _marginals(self, top: Array, emitted: Array, lengths: Array, weight: float) -> Array:
        """The known word of highest marginal probability at each place."""
        out = np.empty(len(top), dtype=np.int64)
        for places, inside in batches_by_length(lengths, BATCH):
            words, emit = top[places], emitted[places]
            beginning = np.full((len(words), 1), self.prior.size)
            forward = [weight * self.prior.log(beginning, words[:, 0]) + emit[:, 0]]
            steps = [
                weight * self.prior.log(words[:, t - 1, :, None], words[:, t, None, :])
                for t in range(1, words.shape[1])
            ]
            for t, step in enumerate(steps, 1):
                forward.append(logsumexp(forward[-1][:, :, None] + step, axis=1) + emit[:, t])
            backward = np.zeros_like(forward[0])
            for t in range(words.shape[1] - 1, -1, -1):
                both = np.where(words[:, t] > 0, forward[t] + backward, -np.inf)
                best = np.take_along_axis(words[:, t], both.argmax(1)[:, None], 1)[:, 0]
                out[places[inside[:, t], t]] = best[inside[:, t]]
                if t:
                    after = (backward + emit[:, t])[:, None, :]
                    backward = np.where(
                        inside[:, t, None], logsumexp(steps[t - 1] + after, axis=2), backward
                    )
        return out


def attacker_texts(
    words: PrivateWords, data: Dataset, most: int = 2000, seed: int = 0
) -> tuple[Array, Array]:
    """Codes and lengths of the texts that the attacker has: those of *attack*, at most twenty times
    as many as are decoded."""
    view = data.part("attack")
    view = view.take(np.sort(np.random.default_rng(seed).permutation(len(view))[: 20 * most]))
    return words.vocabulary.codes(data.records[view.rows])


def recover_words(
    words: PrivateWords,
    data: Dataset,
    most: int = 2000,
    seed: int = 0,
    shown: int = 8,
    pairs: int = 512,
    lstm: LSTMPrior | None = None,
) -> tuple[Rebuilt, ...]:
    """How many words of *test* people are recovered from their private texts, with every prior, the
    strongest first.

    The attacker knows the texts of *attack*; how much the prior counts is chosen on *select*;
    unknown words are not counted.
    """
    random, vocabulary = np.random.default_rng(seed), words.vocabulary
    known_codes, known_lengths = attacker_texts(words, data, most, seed)
    codes, lengths, released = {}, {}, {}
    for number, (part, limit) in enumerate((("select", most // 4), ("test", most))):
        view = data.part(part)
        view = view.take(np.sort(random.permutation(len(view))[:limit]))
        codes[part], lengths[part] = vocabulary.codes(data.records[view.rows])
        released[part] = words.change(codes[part], seed + 1 + number)
    people = np.repeat(view.people, lengths["test"])
    decoder = WordDecoder.learn(words, known_codes, known_lengths, pairs, seed, lstm)
    select = released["select"], lengths["select"]
    weight = max(
        WEIGHTS,
        key=lambda w: _recovered(decoder.answers(*select, w, False)["bigrams"], codes["select"]),
    )
    answers = {
        "released": released["test"],
        **decoder.answers(released["test"], lengths["test"], weight),
    }
    counts = np.bincount(known_codes[known_codes > 0], minlength=len(vocabulary))
    rare = np.ones(len(counts), dtype=bool)
    rare[np.argsort(-counts)[:COMMON]] = False
    truth, first = codes["test"], lengths["test"][:shown]
    counted = {"words": truth > 0, "rare_words": (truth > 0) & rare[truth]}
    usual = {"words": counts.argmax(), "rare_words": np.where(rare, counts, -1).argmax()}
    rebuilt = []
    for prior in (name for name in reversed(PRIORS) if name in answers and counted["words"].any()):
        figures = {
            name: _figure(
                (answers[prior] == truth)[used],
                people[used],
                float((truth == usual[name])[used].mean()),
                name,
            )
            for name, used in counted.items()
            if used.any()
        }
        texts = [vocabulary.texts(some[: first.sum()], first) for some in (truth, answers[prior])]
        rebuilt.append(
            Rebuilt(
                "share of words recovered",
                figures["words"].value,
                len(lengths["test"]),
                tuple(texts[0]),
                tuple(texts[1]),
                PRIORS[prior],
                figures,
            )
        )
    return tuple(rebuilt)


def _recovered(answers: Array, truth: Array) -> float:
    """The share of known words that are right."""
    return float((answers == truth)[truth > 0].mean()) if (truth > 0).any() else 0.0


def _figure(right: Array, people: Array, chance: float, name: str) -> Figure:
    without = "" if name == "words" else f", without the {COMMON} most frequent"
    measure = f"share of words recovered{without}"
    return mean_figure(right, people, measure, over="people", chance=chance)
