"""Inversion by multi-set prediction: a recurrent network names the words of a text one after the
other, given its embedding and the words it has named.

At step i, W_i the words of the text that are not named yet, the target is uniform over W_i, or the
symbol *end* where none is left::

    loss = - sum over steps i, mean over w in W_i of log p(w | embedding, words named before)

The words named before are drawn from the text in a random order while it learns, and are its own
while it answers; a word is named once. How sure it must be of *end* is chosen on *select*.

Sources: Song and Raghunathan, Information leakage in embedding models, CCS 2020, section 4.2;
Welleck, Yao, Gai, Mao, Zhang and Cho, Loss functions for multiset prediction, NeurIPS 2018.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.adversaries.inversion import (
    TextPart,
    WordPart,
    constant_answer,
    total_f1,
    with_words,
    word_figures,
)
from privet.adversaries.network_training import BestState
from privet.data.dataset import Array
from privet.evidence.figures import Rebuilt

# Hidden units, rate, records in a batch, fewest steps of gradient descent.
HIDDEN, RATE, BATCH, FEWEST_STEPS = 128, 4e-3, 128, 200
# Most words that are named of a text.
LONGEST = 24
# How sure it must be that no word is left.
ENDS = np.linspace(0.05, 0.95, 19)


class WordNamer(nn.Module):
    """A gated recurrent network over the words named before; the embedding is its first state and
    is given again at every step.

    Parameters:
        size: Numbers of an embedding.
        words: Words that can be named; one symbol more is *end*.
    """

    def __init__(self, size: int, words: int) -> None:
        super().__init__()
        self.words = words
        self.start = nn.Sequential(nn.Linear(size, HIDDEN), nn.Tanh())
        self.named = nn.Embedding(words + 1, HIDDEN)  # the last row stands before the first word
        self.cell = nn.GRU(HIDDEN, HIDDEN, batch_first=True)
        self.say = nn.Linear(HIDDEN, words + 1)
        self.say_at_once = nn.Linear(size, words + 1)

    def forward(self, z: Tensor, state: Tensor, word: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the symbols that follow the words (n, steps), and the next state."""
        states, state = self.cell(self.named(word), state)
        return self.say(states) + self.say_at_once(z)[:, None], state


def invert_as_sets(
    parts: Mapping[str, TextPart],
    data_name: str,
    title: str,
    *,
    most: int = 300,
    skip: int = 0,
    epochs: int = 15,
    seed: int = 0,
) -> Rebuilt:
    """Which words were in each text, named as a set; the parameters are those of `invert_parts`."""
    words, data = with_words(parts, most, skip, data_name)
    torch.manual_seed(seed)
    net = _learn(data["attack"], data["select"], epochs)
    order, ends = _name(net, data["select"].x)
    scores = [total_f1(_said(order, ends, end, len(words)), data["select"].words) for end in ENDS]
    end = float(ENDS[int(np.argmax(scores))])
    said = _said(*_name(net, data["test"].x), end, len(words))
    constant = constant_answer(data["attack"].words, data["select"].words)
    figures = word_figures(said, data["test"], constant)
    return Rebuilt(
        "share of words (F1)", figures["f1_words"].value, len(said), decoder=title, figures=figures
    )


def _loss(net: WordNamer, x: Tensor, words: Tensor) -> Tensor:
    """Of a batch, with the words of each text in a random order."""
    steps = min(int(words.sum(1).max()) + 1, LONGEST)
    order = (torch.rand_like(words) + words).argsort(1, descending=True)[:, : steps - 1]
    there = words.gather(1, order)  # words come before the others; these are not there
    before = torch.where(there > 0, order, net.words)
    begin = torch.full((len(x), 1), net.words, device=x.device)
    logits, _ = net(x, net.start(x)[None], torch.cat([begin, before], 1))
    each = F.one_hot(before, net.words + 1)[:, :, :-1].float()
    named = torch.cat([torch.zeros_like(each[:, :1]), each.cumsum(1)], 1)
    left = words[:, None] - named
    count = left.sum(2, keepdim=True)
    ended = (count == 0).float()
    target = torch.cat([left / count.clamp(min=1), ended], 2)
    taken = torch.cat([named, torch.zeros_like(ended)], 2).bool()
    logs = F.log_softmax(logits.masked_fill(taken, -1e9), 2)
    # After the first end there is nothing to say.
    counts = (ended.cumsum(1) <= 1).float()
    return -(counts * (target * logs).sum(2, keepdim=True)).sum() / counts.sum()


def _learn(seen: WordPart, select: WordPart, epochs: int) -> WordNamer:
    """Kept as it was when its loss on *select* was least."""
    x, y = seen.x, torch.from_numpy(seen.words).float().to(seen.x.device)
    select_y = torch.from_numpy(select.words).float().to(x.device)
    net = WordNamer(x.shape[1], y.shape[1]).to(x.device)
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-2)
    best = BestState(net)
    for _ in range(max(epochs, -(-FEWEST_STEPS * BATCH // len(x)))):
        net.train()
        for some in torch.split(torch.randperm(len(x), device=x.device), BATCH):
            optimiser.zero_grad(set_to_none=True)
            _loss(net, x[some], y[some]).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
        net.eval()
        with torch.no_grad():
            best.offer(-float(_loss(net, select.x, select_y)))
    best.restore()
    net.eval()
    return net


@torch.no_grad()
def _name(net: WordNamer, x: Tensor) -> tuple[Array, Array]:
    """Per text the words in the order they are named, and how sure the network was before each that
    none is left: both (n, steps)."""
    state, word = net.start(x)[None], torch.full((len(x), 1), net.words, device=x.device)
    named = torch.zeros(len(x), net.words + 1, device=x.device)
    order, ends = [], []
    for _ in range(min(LONGEST, net.words)):
        logits, state = net(x, state, word)
        shares = F.softmax(logits[:, 0].masked_fill(named.bool(), -1e9), 1)
        ends.append(shares[:, -1])
        word = shares[:, :-1].argmax(1, keepdim=True)
        named.scatter_(1, word, 1.0)
        order.append(word[:, 0])
    return torch.stack(order, 1).cpu().numpy(), torch.stack(ends, 1).cpu().numpy()


def _said(order: Array, ends: Array, end: float, words: int) -> Array:
    """Which words were named before the network was this sure of the end, (n, words)."""
    before = np.cumsum(ends > end, axis=1) == 0
    said = np.zeros((len(order), words), dtype=bool)
    rows, places = np.nonzero(before)
    said[rows, order[rows, places]] = True
    return said
