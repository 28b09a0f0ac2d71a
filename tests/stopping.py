"""What a method learns must not depend on whether it was stopped on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from privet import Run
from privet.data.dataset import Dataset
from privet.methods.method import Method
from privet.train.game import Game


def resumes_to_the_same(method: Method, data: Dataset, folder: Path, stop: int) -> None:
    """Stopped after so many rounds, by an exception out of the loop, the game goes on to the
    weights it would have had."""
    whole = method.fit(data, ["u"], run=Run(progress=False, device="cpu"))
    calls, real = 0, Game._round

    def breaking(*args):
        nonlocal calls
        calls += 1
        if calls > stop:
            raise KeyboardInterrupt
        return real(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Game, "_round", breaking)
        with pytest.raises(KeyboardInterrupt):
            method.fit(data, ["u"], run=Run(folder, progress=False, rounds_between=1, device="cpu"))
    again = method.fit(
        data, ["u"], run=Run(folder, resume=True, progress=False, rounds_between=1, device="cpu")
    )
    for key, value in whole.module.state_dict().items():
        assert torch.equal(value, again.module.state_dict()[key]), key
    assert again.card["history"] == whole.card["history"]
