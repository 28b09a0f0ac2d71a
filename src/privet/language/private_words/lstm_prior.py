"""The project's own LSTM language model as what an attacker expects of a text, beside the bigrams
of prior.py.

It is learned from the attacker's own texts, or was trained by `privet lm train` on other texts. A
word w of the vocabulary has a token k(w) of the model; words that it has not learned share the
unknown one, by how frequent they are. With the bigrams b,

    p(w | before) = (p(k(w) | before) p(w | k(w)) + b(w | last word)) / 2,

the plainest way to join the two (Jelinek and Mercer, Pattern Recognition in Practice, 1980,
381-397). Sentences are searched with a beam, all texts of a batch at once; at every place the word
is chosen that the sentences in the last beam agree on, weighted by how likely each is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from privet.core.errors import PrivetError
from privet.data.dataset import Array
from privet.data.schema import PAD, UNKNOWN
from privet.data.word_vectors import Vocabulary
from privet.language.models.networks import LSTM
from privet.language.models.tokens import END, FIRST, Words, padded
from privet.language.models.train import Settings, Trained, play
from privet.language.private_words.bigram_prior import Bigrams
from privet.nets.device import pick
from privet.train.game import Run

SETTINGS = Settings(width=128, vocabulary=5000, longest=64, epochs=8, batch=64, lr=3e-3)
BEAMS = 8
BATCH = {"cpu": 64, "cuda": 512}
"""Texts decoded at a time."""


@dataclass(frozen=True, eq=False)
class LSTMPrior:
    model: LSTM
    token: Tensor
    """(words,): the model's token for every word of the vocabulary."""
    share: Tensor
    """(words,): log p(word | its token)."""
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
        """From the attacker's own texts, as codes of a vocabulary of `size` words. Every twentieth
        text is kept back to stop in time."""
        settings = settings or SETTINGS
        counts = np.bincount(codes, minlength=size)
        kept = np.argsort(-counts, kind="stable")[: settings.vocabulary - FIRST]
        kept = kept[(counts[kept] > 1) & (kept > 0)]
        token = np.full(size, UNKNOWN)
        token[kept] = FIRST + np.arange(len(kept))
        starts = np.cumsum(lengths) - lengths
        lines = [
            [END, *token[codes[start : start + n]][: settings.longest - 1], END]
            for start, n in zip(starts, lengths, strict=True)
            if n
        ]
        if len(lines) < 2:
            raise PrivetError("There are no texts that a language model could be learned from.")
        ids, apart, where = padded(lines), np.arange(len(lines)) % 20 == 1, pick(device)
        torch.manual_seed(settings.seed)
        fresh = LSTM(
            FIRST + len(kept), settings.width, settings.layers, settings.dropout, settings.longest
        )
        run = Run(device=str(where), progress=progress)
        model, _ = play(
            fresh,
            ids[~apart],
            np.zeros(int((~apart).sum()), dtype=np.int64),
            ids[apart],
            settings,
            run,
            "prior",
            where,
        )
        return LSTMPrior.of(model, token, counts, where)

    @staticmethod
    def read(folder: Path, vocabulary: Vocabulary, codes: Array, device: str = "auto") -> LSTMPrior:
        """A model that `privet lm train` wrote; `codes` are the attacker's own words, to say how
        frequent unknown ones are."""
        trained = Trained.load(folder, device)
        if not isinstance(trained.model, LSTM) or not isinstance(trained.tokenizer, Words):
            raise PrivetError(
                f"The prior in {folder} must be a model of words with an LSTM: privet lm train --model lstm --tokens word."
            )
        found = [trained.tokenizer.word(word) for word in vocabulary.words]
        token = np.array([UNKNOWN, *(own[0] if len(own) == 1 else UNKNOWN for own in found)])
        return LSTMPrior.of(
            trained.model, token, np.bincount(codes, minlength=len(vocabulary)), pick(device)
        )

    @staticmethod
    def of(model: object, token: Array, counts: Array, device: torch.device) -> LSTMPrior:
        assert isinstance(model, LSTM), "other models have no state to go on from"
        often = counts + 0.1
        share = np.log(often) - np.log(np.bincount(token, often, minlength=model.vocabulary)[token])
        as_tensor = torch.from_numpy(token).to(device), torch.from_numpy(share).float().to(device)
        return LSTMPrior(model.to(device).eval(), *as_tensor, device)

    @torch.inference_mode()
    def decode(
        self,
        some: Array,
        emitted: Array,
        lengths: Array,
        bigrams: Bigrams,
        weight: float,
        otherwise: Array,
    ) -> Array:
        """The words behind released ones: `some` (n, candidates) for every place, `emitted` their
        log p(released | word). Where the beam holds no known word, that of `otherwise`."""
        out, starts = otherwise.copy(), np.cumsum(lengths) - lengths
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        size = BATCH.get(self.device.type, BATCH["cpu"])
        for begin in range(0, len(order), size):
            texts = order[begin : begin + size]
            long = lengths[texts]
            at = starts[texts][:, None] + np.minimum(np.arange(long.max()), long[:, None] - 1)
            there = np.arange(long.max()) < long[:, None]
            found = self._beam(some[at], emitted[at], there, bigrams, weight)
            out[at[there]] = np.where(found[there] > 0, found[there], otherwise[at[there]])
        return out

    def _beam(
        self, some: Array, emitted: Array, there: Array, bigrams: Bigrams, weight: float
    ) -> Array:
        """(texts, places): the word that the likeliest sentences agree on; 0 where that is no known
        word."""
        n, long, _ = some.shape
        words, emit = (
            torch.from_numpy(some).to(self.device),
            torch.from_numpy(emitted).float().to(self.device),
        )
        inside = torch.from_numpy(there).to(self.device)
        score = torch.full((n, BEAMS), -torch.inf, device=self.device)
        score[:, 0] = 0.0
        said = torch.full((n, BEAMS, long), 0, device=self.device)
        last = torch.full((n, BEAMS), bigrams.size, device=self.device)
        token, state = torch.full((n * BEAMS,), END, device=self.device), None
        for t in range(long):
            states, state = self.model.lstm(self.model.embedding(token)[:, None], state)
            next_token = self.model.scores(states)[:, 0].float()
            next_token[:, [PAD, END]] = -torch.inf
            here = words[:, None, t].expand(n, BEAMS, -1)
            likely = (
                next_token.log_softmax(1).view(n, BEAMS, -1).gather(2, self.token[here])
                + self.share[here]
            )
            pairs = torch.from_numpy(
                bigrams.log(last[:, :, None].cpu().numpy(), some[:, None, t])
            ).to(likely)
            step = emit[:, None, t] + weight * (torch.logaddexp(likely, pairs) - np.log(2.0))
            # A text that is over goes on with its first candidate and an unchanged score.
            over = torch.full_like(step, -torch.inf)
            over[:, :, 0] = 0.0
            total = score[:, :, None] + torch.where(inside[:, t, None, None], step, over)
            score, place = total.flatten(1).topk(BEAMS)
            back, which = place // step.shape[2], place % step.shape[2]
            last = words[:, t].gather(1, which)
            said = said.gather(1, back[:, :, None].expand_as(said))
            said[:, :, t] = last
            rows = (torch.arange(n, device=self.device)[:, None] * BEAMS + back).flatten()
            state, token = tuple(one[:, rows] for one in state), self.token[last].flatten()
        agree = (said[:, :, None] == said[:, None]) * score.softmax(1)[:, None, :, None]
        support = torch.where(said > 0, agree.sum(2), -1.0)
        return np.asarray(said.gather(1, support.argmax(1, keepdim=True))[:, 0].cpu().numpy())
