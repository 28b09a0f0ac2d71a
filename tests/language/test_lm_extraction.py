"""Extraction: a model that knows one text by heart writes it, one that knows nothing does not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from privet.data.schema import PAD
from privet.language.model_audit.extraction import (
    RUN,
    repeated_figure,
    runs_of,
    texts_of,
    written_rows,
)
from privet.language.models.networks import LSTM, LanguageModel
from privet.language.models.settings import Settings
from privet.language.models.tokens import END

CPU = torch.device("cpu")
TEXT = [END, *range(20, 32), END]


class ByHeart(LSTM):
    """Gives all probability to the next token of TEXT."""

    def scores(self, states: Tensor) -> Tensor:
        return states

    def states(self, ids: Tensor) -> Tensor:
        following = dict(pairwise(TEXT))
        after = torch.tensor([following.get(code, END) for code in range(self.vocabulary)])
        return 1e4 * torch.nn.functional.one_hot(after[ids], self.vocabulary).float()


def written(kind: type[LanguageModel]) -> list[list[int]]:
    torch.manual_seed(0)
    return texts_of(written_rows(kind(Settings(width=8), 60).eval(), CPU, 20))


def test_a_text_known_by_heart_is_written_and_chance_is_not() -> None:
    seen, others = runs_of([TEXT[1:-1]]), runs_of([range(30, 50)])
    figure, longest = repeated_figure(written(ByHeart), seen, others)
    assert figure.value == 1.0 and figure.chance == 0.0 and list(longest) == TEXT[1:-1]
    figure, longest = repeated_figure(written(LSTM), seen, others)
    assert figure.value == 0.0 and longest == () and figure.n == 20


def test_what_is_written_ends_once_and_has_no_unknown_word() -> None:
    torch.manual_seed(0)
    ids = written_rows(LSTM(Settings(width=8), 12).eval(), CPU, 50, seed=3)
    ended = np.cumsum(ids == END, 1) > 0
    assert (ids[:, 1:][ended[:, :-1]] == PAD).all() and (ids[~ended] > END).all()
    assert len(runs_of([list(range(RUN + 1))])) == 2
