"""Two lanes do all of the work, each piece once, and an audit says the same with one lane and with
two."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from privet import Release
from privet.adversaries.mlp import MLP
from privet.adversaries.neighbours import Neighbours
from privet.adversaries.network import ResidualMLP
from privet.adversaries.trees import Boosting
from privet.auditing.audit import audit
from privet.auditing.batteries import BATTERIES, Battery
from privet.auditing.threads import one_thread, run_in_two_threads
from privet.data.schema import learn_schema
from small import small


@pytest.fixture(params=[1, 2, 4])
def threads(request) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_all_is_done_once_and_what_draws_stays_in_order(threads):
    done, held = [], []

    def work(number: int):
        def run() -> None:
            done.append(number)
            held.append((number, threading.get_ident(), torch.get_num_threads()))

        return run

    run_in_two_threads([work(k) for k in range(20)], [work(k) for k in range(100, 120)])
    assert sorted(done) == [*range(20), *range(100, 120)]
    assert [number for number in done if number < 20] == list(range(20))
    assert {who for number, who, _ in held if number < 20} == {threading.get_ident()}
    assert {count for _, _, count in held} == {max(1, threads // 2)}
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("threads", [2], indirect=True)
def test_the_second_lane_works_meanwhile(threads):
    """Each waits for the other: one after the other, they would never end."""
    here, there = threading.Event(), threading.Event()

    def first() -> None:
        here.set()
        assert there.wait(600)

    def second() -> None:
        there.set()
        assert here.wait(600)

    run_in_two_threads([first], [second])


@pytest.mark.parametrize("where", [0, 1])
def test_an_error_in_either_lane_is_told(threads, where):
    def fail() -> None:
        raise ValueError("no")

    lanes: list[list] = [[], [lambda: None]]
    lanes[where].append(fail)
    with pytest.raises(ValueError, match="no"):
        run_in_two_threads(*lanes)
    assert torch.get_num_threads() == threads


def test_an_audit_says_the_same_with_one_lane_and_with_two(monkeypatch):
    """Small networks, whose weights and dropout come from torch's own generator, run beside
    perceptrons, trees and neighbours."""
    mlp = MLP(shapes=((8,),), rates=(1e-2, 3e-2), epochs=2, least=40, batch=64, finalists=2)
    attackers = (
        Boosting(settings=((("max_iter", 5),),)),
        Neighbours(counts=(1, 5)),
        mlp,
        ResidualMLP(epochs=2, least=40, width=0.1),
    )
    monkeypatch.setitem(BATTERIES, "tiny", Battery(attackers, (mlp,), ()))
    data = small("table", 400)
    release = Release.identity(learn_schema(data, ["u", "y"]))
    before, said = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found = audit(
                release, data, ["y"], "tiny", private=["u"], device="cpu", progress=False, raw=False
            )
            readings = (*found.readings, *found.undeclared)
            said.append(
                ([[replace(f, seconds=0) for f in r.released] for r in readings], found.people)
            )
    finally:
        torch.set_num_threads(before)
    assert said[0] == said[1]


def test_one_thread_and_then_as_many_as_before():
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    with one_thread(False):
        assert torch.get_num_threads() == before
    assert torch.get_num_threads() == before
