"""Training stops where nothing more is gained on *select*, and goes on where something is."""

from __future__ import annotations

import torch
from torch import nn

from privet.adversaries.cycles import Cycles
from privet.adversaries.network_training import BestState


def epochs_until_over(scores: list[float], earliest: float = 0.25) -> int:
    cycles, best = Cycles.of(len(scores), 1000, earliest), -1.0
    for epoch, score in enumerate(scores):
        best = max(best, score)
        if cycles.is_over(epoch, best, 0.002):
            return epoch + 1
    return len(scores)


def test_what_no_longer_gains_stops_and_what_gains_goes_on():
    flat, rising = [0.08] * 32, [0.01 * epoch for epoch in range(32)]
    assert epochs_until_over(flat) == 8, "never before the earliest share"
    assert epochs_until_over(flat, earliest=0.5) == 16
    assert epochs_until_over(rising) == 32
    assert epochs_until_over([0.08] * 12 + [0.2] * 20, earliest=0.5) == 32, "a leap before half"


def test_few_epochs_are_one_cycle():
    assert Cycles.of(4, 20, 0.25).ends == (4,)
    shares = [Cycles.of(8, 1000, 0.25).share(epoch, 0.0) for epoch in range(8)]
    assert shares == [0.0, 0.0, 0.0, 0.5, 0.0, 0.25, 0.5, 0.75], "one, one, two and four epochs"


def test_three_lower_scores_in_a_row_are_a_fall():
    for scores, falls in (
        ([0.5, 0.9, 0.8, 0.7, 0.6], True),
        ([0.9, 0.8, 0.7, 0.71], False),
        ([0.9, 0.8, 0.7], False),
        ([0.5, 0.5, 0.5, 0.5], False),
    ):
        best = BestState(nn.Linear(1, 1))
        for score in scores:
            best.offer(score)
        assert best.falls == falls, scores


def test_the_best_state_is_the_one_restored():
    net = nn.Linear(1, 1)
    best = BestState(net)
    for weight, score in ((1.0, 0.6), (2.0, 0.9), (3.0, 0.7)):
        nn.init.constant_(net.weight, weight)
        best.offer(score)
    best.restore()
    assert torch.equal(net.weight, torch.full((1, 1), 2.0)) and best.score == 0.9
