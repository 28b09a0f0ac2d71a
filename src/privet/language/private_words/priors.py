"""What an attacker expects of a text: language models that are the prior of the word decoder.

`Bigrams` is counted on other people's texts. `LSTMPrior` joins it with an LSTM language model,
trained on the attacker's texts or by `privet lm train` on other texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from privet.core.errors import PrivetError, refuse_if
from privet.data.dataset import Array
from privet.data.schema import PAD, UNKNOWN, padded
from privet.data.word_vectors import Vocabulary
from privet.language.models.networks import LSTM, build_network
from privet.language.models.settings import Settings
from privet.language.models.tokens import END, FIRST, WordTokenizer
from privet.language.models.train import TrainedModel, fit_network
from privet.nets.device import pick
from privet.train.game import Run

DISCOUNT = 0.75
# Of an LSTM that is trained on the attacker's texts.
SETTINGS = Settings(width=128, vocabulary=5000, longest=64, epochs=8, batch=64, lr=3e-3)
BEAMS = 8
# Texts decoded at a time.
BATCH = {"cpu": 64, "cuda": 512}


@dataclass(frozen=True, eq=False)
class Bigrams:
    """A bigram language model, smoothed by absolute discounting.

        p(b | a) = max(c(a b) - D, 0) / c(a) + D N(a) / c(a) p(b),     p(b) ~ c(b) + 1/10,

    c how often a pair or a word occurs, N(a) how many words follow a. Source: Ney, Essen and
    Kneser, On structuring probabilistic dependences in stochastic language modelling, Computer
    Speech and Language 8 (1994), 1-38.

    Parameters:
        size: Words; the code `size` stands before the first word of a text.
        log_word: (size,): log p(b).
        keys: A (size + 1) + b of the pairs that occur, in order, and one key beyond all.
        share: max(c(a b) - D, 0) / c(a) of each.
        rest: (size + 1,): D N(a) / c(a), and 1 where a was never seen.
    """

    size: int
    log_word: Array
    keys: Array
    share: Array
    rest: Array

    @staticmethod
    def learn(codes: Array, lengths: Array, size: int) -> Bigrams:
        """From texts as codes of a vocabulary of `size` words, one after the other."""
        before = np.concatenate([[size], codes[:-1]]) if len(codes) else codes
        before[(np.cumsum(lengths) - lengths)[lengths > 0]] = size
        keys, counts = np.unique(before * (size + 1) + codes, return_counts=True)
        first = keys // (size + 1)
        seen, follow = np.bincount(first, counts, size + 1), np.bincount(first, minlength=size + 1)
        once = np.maximum(seen, 1)
        word = np.bincount(codes, minlength=size) + 0.1
        return Bigrams(
            size,
            np.log(word / word.sum()),
            np.append(keys, np.iinfo(np.int64).max),
            np.append((counts - DISCOUNT) / once[first], 0.0),
            np.where(seen > 0, DISCOUNT * follow / once, 1.0),
        )

    def log(self, before: Array, word: Array) -> Array:
        """log p(word | before), of arrays that broadcast."""
        key = before * (self.size + 1) + word
        place = np.searchsorted(self.keys, key)
        seen = np.where(self.keys[place] == key, self.share[place], 0.0)
        return np.asarray(np.log(seen + self.rest[before] * np.exp(self.log_word[word])))


@dataclass(frozen=True, eq=False)
class LSTMPrior:
    """An LSTM language model joined with bigrams b.

    A word w of the vocabulary has a token k(w) of the model; words that it does not know share the
    unknown one, by how frequent they are:

        p(w | before) = (p(k(w) | before) p(w | k(w)) + b(w | last word)) / 2,

    the plainest way to join the two (Jelinek and Mercer, Pattern Recognition in Practice, 1980,
    381-397). Sentences are searched with a beam, all texts of a batch at once; at every place the
    word is chosen that the sentences in the last beam agree on, weighted by how likely each is.

    Parameters:
        token: (words,): the model's token for every word of the vocabulary.
        share: (words,): log p(word | its token).
    """

    model: LSTM
    token: Tensor
    share: Tensor
    device: torch.device

    @staticmethod
    def learn(
        codes: Array,
        lengths: Array,
        size: int,
        *,
        settings: Settings | None = None,
        device: str = "auto",
        progress: bool = False,
    ) -> LSTMPrior:
        """From the attacker's texts, as codes of a vocabulary of `size` words. Every twentieth text
        is held out to stop in time."""
        settings = settings or SETTINGS
        counts = np.bincount(codes, minlength=size)
        known = np.argsort(-counts, kind="stable")[: settings.vocabulary - FIRST]
        known = known[(counts[known] > 1) & (known > 0)]
        token = np.full(size, UNKNOWN)
        token[known] = FIRST + np.arange(len(known))
        texts = np.split(token[codes], np.cumsum(lengths)[:-1])
        lines = [[END, *text[: settings.longest - 1], END] for text in texts if len(text)]
        refuse_if(len(lines) < 2, "There are no texts that a language model could be learned from.")
        ids, held_out = padded(lines), np.arange(len(lines)) % 20 == 1
        torch.manual_seed(settings.seed)
        network = build_network(settings, FIRST + len(known))
        run, nobody = Run(device=str(pick(device)), progress=progress), np.zeros(1, dtype=np.int64)
        author = np.repeat(nobody, int((~held_out).sum()))
        model, _ = fit_network(
            network, ids[~held_out], author, ids[held_out], settings, run, "prior"
        )
        return LSTMPrior.of(model, token, counts, pick(device))

    @staticmethod
    def read(folder: Path, vocabulary: Vocabulary, codes: Array, device: str = "auto") -> LSTMPrior:
        """A model that `privet lm train` wrote; `codes` are the attacker's words, which show how
        frequent unknown ones are."""
        trained = TrainedModel.load(folder, device)
        if not isinstance(trained.model, LSTM) or not isinstance(trained.tokenizer, WordTokenizer):
            raise PrivetError(
                f"The prior in {folder} must be a model of words with an LSTM: privet lm train "
                "--model lstm --tokens word."
            )
        tokens = [trained.tokenizer.word(word) for word in vocabulary.words]
        token = np.array([UNKNOWN, *(one[0] if len(one) == 1 else UNKNOWN for one in tokens)])
        counts = np.bincount(codes, minlength=len(vocabulary))
        return LSTMPrior.of(trained.model, token, counts, pick(device))

    @staticmethod
    def of(model: object, token: Array, counts: Array, device: torch.device) -> LSTMPrior:
        """A prior of a model, the token of every word, and how often each word occurs."""
        assert isinstance(model, LSTM), "other models have no state to go on from"
        often = counts + 0.1
        share = np.log(often) - np.log(np.bincount(token, often, minlength=model.vocabulary)[token])
        as_tensor = torch.from_numpy(token).to(device), torch.from_numpy(share).float().to(device)
        return LSTMPrior(model.to(device).eval(), *as_tensor, device)

    @torch.inference_mode()
    def decode(
        self,
        candidates: Array,
        emitted: Array,
        lengths: Array,
        bigrams: Bigrams,
        weight: float,
        fallback: Array,
    ) -> Array:
        """The words behind released ones: `candidates` (n, k) for every place, `emitted` their log
        p(released | word). Where the beam holds no known word, that of `fallback`."""
        out = fallback.copy()
        for places, inside in batches_by_length(lengths, BATCH.get(self.device.type, BATCH["cpu"])):
            best = self._beam(candidates[places], emitted[places], inside, bigrams, weight)[inside]
            place = places[inside]
            out[place] = np.where(best > 0, best, fallback[place])
        return out

    def _beam(
        self, candidates: Array, emitted: Array, inside: Array, bigrams: Bigrams, weight: float
    ) -> Array:
        """(texts, places): the word that the likeliest sentences agree on; 0 where that is no known
        word."""
        device, (n, longest, _) = self.device, candidates.shape
        words, going = torch.from_numpy(candidates).to(device), torch.from_numpy(inside).to(device)
        emit = torch.from_numpy(emitted).float().to(device)
        score = torch.full((n, BEAMS), -torch.inf, device=device)
        score[:, 0] = 0.0
        sentence = torch.zeros((n, BEAMS, longest), dtype=torch.int64, device=device)
        last = torch.full((n, BEAMS), bigrams.size, device=device)
        token, state = torch.full((n * BEAMS,), END, device=device), None
        for t in range(longest):
            states, state = self.model.lstm(self.model.embedding(token)[:, None], state)
            next_token = self.model.scores(states)[:, 0].float()
            next_token[:, [PAD, END]] = -torch.inf
            here = words[:, None, t].expand(n, BEAMS, -1)
            log_token = next_token.log_softmax(1).view(n, BEAMS, -1)
            by_lstm = log_token.gather(2, self.token[here]) + self.share[here]
            by_bigrams = bigrams.log(last[:, :, None].cpu().numpy(), candidates[:, None, t])
            both = torch.logaddexp(by_lstm, torch.from_numpy(by_bigrams).to(by_lstm)) - np.log(2.0)
            step = emit[:, None, t] + weight * both
            # A text that is over goes on with its first candidate and an unchanged score.
            over = torch.full_like(step, -torch.inf)
            over[:, :, 0] = 0.0
            total = score[:, :, None] + torch.where(going[:, t, None, None], step, over)
            score, place = total.flatten(1).topk(BEAMS)
            back, which = place // step.shape[2], place % step.shape[2]
            last = words[:, t].gather(1, which)
            sentence = sentence.gather(1, back[:, :, None].expand_as(sentence))
            sentence[:, :, t] = last
            rows = (torch.arange(n, device=device)[:, None] * BEAMS + back).flatten()
            state, token = tuple(one[:, rows] for one in state), self.token[last].flatten()
        agree = (sentence[:, :, None] == sentence[:, None]) * score.softmax(1)[:, None, :, None]
        support = torch.where(sentence > 0, agree.sum(2), -1.0)
        best = sentence.gather(1, support.argmax(1, keepdim=True))
        return np.asarray(best[:, 0].cpu().numpy())


def batches_by_length(lengths: Array, size: int) -> list[tuple[Array, Array]]:
    """Texts that stand one after the other, those of like length together: for each batch the
    places (texts, longest) of their words, and whether a text is still going on there. A text that
    is over repeats its last place."""
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    batches = []
    for begin in range(0, len(order), size):
        texts = order[begin : begin + size]
        at, length = np.arange(lengths[texts].max()), lengths[texts][:, None]
        batches.append((starts[texts][:, None] + np.minimum(at, length - 1), at < length))
    return batches
