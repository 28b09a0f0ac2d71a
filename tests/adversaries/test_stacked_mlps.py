"""Perceptrons trained together are the ones trained alone, and they find what is hidden in ways a
line cannot see."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from privet.adversaries.adversary import ranking_score
from privet.adversaries.mlp import MLP, _groups, attack_all
from privet.adversaries.released import Released
from privet.adversaries.stacked_mlps import AdamW, Member, Stack, Target, train_stack
from privet.adversaries.whitening import whitening
from privet.data.dataset import Attribute
from privet.data.schema import learn_schema
from privet.release.release import Release
from small import small

SHORT = {"dropout": 0.2, "epochs": 3, "least": 0, "batch": 32, "seed": 4}
BINARY = Attribute("u", "binary", ("0", "1"))


@dataclass(frozen=True)
class Shown:
    """What a perceptron asks of released records: vectors and labels."""

    x: torch.Tensor
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    fresh_noise: bool = False

    def vectors(self):
        return self.x

    def labels(self, name):
        return self.columns[name]


def _problem(n=150, seed=0):
    """Ten coordinates in float64, and four targets that differ in kind; some labels are missing."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 10))
    line = x @ np.random.default_rng(9).standard_normal((10, 4))
    two, five, number = (
        (line[:, 0] > 0).astype(int),
        np.digitize(line[:, 1], [-4, -1, 1, 4]),
        7 + 30 * line[:, 2],
    )
    three = np.digitize(line[:, 3], [-1, 1])
    two[::3], number[1::4] = -1, np.nan
    return torch.tensor(x), [two, five, number, three], [2, 5, 0, 3]


def _train(members, hidden, **more):
    x, labels, kinds = _problem()
    select, truth, _ = _problem(80, 1)
    targets = list(map(Target, labels, kinds, truth))
    settings = {**SHORT, **more}
    return train_stack(lambda: x, targets, select, members, hidden=hidden, **settings), select


MIXED = [
    Member(0, 1e-2, 0.1, 1),
    Member(1, 1e-3, 0.0, 2),
    Member(2, 3e-2, 0.5, 3),
    Member(3, 3e-3, 1e-2, 1),
    Member(0, 3e-2, 0.0, 5),
]


@pytest.mark.parametrize("hidden", [(), (16,), (16, 8)])
def test_together_is_one_by_one(hidden):
    """Alone and among others a member ends in the same parameters and answers; outputs it does not
    need stay at zero."""
    (together, scores), select = _train(MIXED, hidden)
    for k, member in enumerate(MIXED):
        (alone, own), _ = _train([member], hidden)
        for ours, theirs in zip(
            together.stack.members([k]).layers(), alone.stack.layers(), strict=True
        ):
            needed = theirs.shape[1]
            torch.testing.assert_close(ours[:, :needed], theirs, atol=1e-5, rtol=0)
            assert not ours[:, needed:].any()
        np.testing.assert_allclose(together.answers(select)[k], alone.answers(select)[0], atol=1e-5)
        assert own[0] == pytest.approx(scores[k], abs=1e-5)
    assert together.answers(select)[1].shape == (80, 5) and together.answers(select)[2].shape == (
        80,
    )
    np.testing.assert_allclose(together.answers(select)[1].sum(1), 1)


def test_each_keeps_its_own_best_state():
    """What is handed back is the state that got the score, also for a member whose last state is
    not its best."""
    (trained, scores), select = _train([*MIXED, Member(0, 3.0, 0.0, 1)], (16,), epochs=12)
    truth = _problem(80, 1)[1]
    for k, target in enumerate([*(member.target for member in MIXED), 0]):
        assert ranking_score(truth[target], trained.answers(select)[k]) == pytest.approx(scores[k])


def test_adamw_is_that_of_torch():
    torch.manual_seed(0)
    start, decay, lr = torch.randn(1, 30, dtype=torch.float64), 0.3, 1e-2
    ours = start.clone()
    mine = AdamW(
        ours,
        20,
        torch.tensor([[lr]], dtype=torch.float64),
        torch.tensor([[decay]], dtype=torch.float64),
    )
    weights, rest = (
        torch.nn.Parameter(start[:, :20].clone()),
        torch.nn.Parameter(start[:, 20:].clone()),
    )
    theirs = torch.optim.AdamW(
        [{"params": [weights], "weight_decay": decay}, {"params": [rest], "weight_decay": 0.0}],
        lr=lr,
    )
    for now in mine.plan([1.0] * 50):
        grad = torch.randn(1, 30, dtype=torch.float64) * 1e-3
        mine.step(grad, now)
        weights.grad, rest.grad = grad[:, :20].clone(), grad[:, 20:].clone()
        theirs.step()
    torch.testing.assert_close(ours, torch.cat([weights, rest], dim=1).detach(), atol=1e-12, rtol=0)


def test_gradients_are_those_of_batch_norm():
    """The hand-written unit against torch's own batch normalisation, ReLU and product with the
    mask."""
    torch.manual_seed(0)
    stack = Stack.start(6, (8, 5), 3, [0, 1], torch.zeros(1, dtype=torch.float64))
    stack.flat.add_(torch.randn_like(stack.flat))
    x, layers = (
        torch.randn(40, 6, dtype=torch.float64),
        [layer.detach().requires_grad_() for layer in stack.layers()],
    )
    h = x.T.expand(2, 6, 40)
    for weight, shift in zip(layers[:2], layers[3:5], strict=True):
        h = torch.bmm(weight, h)
        h = torch.nn.functional.batch_norm(h.reshape(1, -1, 40), None, None, training=True).view_as(
            h
        )
        h = (h + shift).relu()
    slow = torch.baddbmm(layers[5], layers[2], h)
    fast = stack.forward(x, layers, 0.0, torch.Generator())
    torch.testing.assert_close(fast, slow)
    for ours, theirs in zip(
        *(torch.autograd.grad(out.square().sum(), layers) for out in (fast, slow)), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("dropout", [0.2, 0.5])
def test_dropout_keeps_the_mean(dropout):
    """What is kept is scaled up, so that a layer's mean output is that without dropout; the
    gradient is that of the output."""
    stack = Stack.start(4, (64,), 1, [0], torch.zeros(1, dtype=torch.float64))
    layers = [layer.detach().clone().requires_grad_() for layer in stack.layers()]
    with torch.no_grad():
        layers[1].fill_(1.0)
    x = torch.randn(4000, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    full = stack.forward(x, layers, 0.0, torch.Generator()).mean()
    dropped = stack.forward(x, layers, dropout, torch.Generator().manual_seed(1)).mean()
    assert float((dropped / full).detach()) == pytest.approx(1, abs=0.02)

    def loss(weight):
        return (
            stack.forward(x[:50], [weight, *layers[1:]], dropout, torch.Generator().manual_seed(2))
            .square()
            .sum()
        )

    assert torch.autograd.gradcheck(loss, layers[0])


def test_a_diverging_member_hurts_nobody():
    calm = [Member(0, 1e-2, 0.1, 1), Member(2, 1e-2, 0.0, 2)]
    wild = Member(0, 1e200, 0.0, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (among, scores), select = _train([calm[0], wild, calm[1]], (16,))
    (alone, own), _ = _train(calm, (16,))
    assert not np.isfinite(scores[1]) or np.isfinite(among.answers(select)[1]).all()
    for k, j in ((0, 0), (2, 1)):
        assert scores[k] == own[j]
        np.testing.assert_allclose(among.answers(select)[k], alone.answers(select)[j], atol=1e-9)


def test_noise_is_fresh_in_every_epoch():
    x, labels, kinds = _problem()
    targets, calls = list(map(Target, labels, kinds, labels)), []
    train_stack(lambda: calls.append(1) or x, targets, x, MIXED, hidden=(4,), **SHORT)
    assert len(calls) == SHORT["epochs"]


def test_whitened_vectors_vary_alike():
    """Also along a direction a million times fainter than the first, and from fewer records than
    coordinates."""
    dice = torch.Generator().manual_seed(0)
    turn = torch.linalg.qr(torch.randn(20, 20, generator=dice, dtype=torch.float64))[0]
    x = (
        torch.randn(4000, 20, generator=dice, dtype=torch.float64) * torch.logspace(0, -3, 20)
    ) @ turn + 5
    white = whitening(x[:2000])
    assert float((torch.cov(white(x[:2000]).T) - torch.eye(20)).abs().max()) < 0.01
    assert float((torch.cov(white(x[2000:]).T) - torch.eye(20)).abs().max()) < 0.2
    few = torch.randn(400, 30, generator=dice)
    assert float(whitening(few[:15])(few[15:]).std(0).max()) < 5


def _attack(make, adversary, attribute=BINARY, n=4000):
    """How well the adversary ranks people it has not seen."""
    seen, select, test = (
        Shown(x, {attribute.name: labels})
        for x, labels in (make(n, 0), make(n // 2, 1), make(n // 2, 2))
    )
    trained = adversary.attack(seen, select, attribute)
    return ranking_score(test.labels(attribute.name), trained.answers(test)), test


def test_finds_an_exclusive_or():
    """Neither coordinate says anything alone, and 32 others are noise."""

    def make(n, seed):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((n, 34))
        return torch.tensor(x, dtype=torch.float32), ((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(int)

    value, _ = _attack(make, MLP(width=0.25, epochs=8, least=150))
    assert value > 0.95


def test_finds_what_is_in_the_fortieth_component():
    """Variances 1 / (1 + i)^2 in a random turn; the class moves the 40th by two deviations. Bayes
    has AUC Phi(sqrt 2) = 0.921."""
    turn = np.linalg.qr(np.random.default_rng(7).standard_normal((64, 64)))[0]

    def make(n, seed):
        rng = np.random.default_rng(seed)
        u, x = rng.integers(0, 2, n), rng.standard_normal((n, 64))
        x[:, 39] += 2 * u
        x = (x / (1 + np.arange(64))) @ turn
        return torch.tensor(x / x.std(0), dtype=torch.float32), u

    value, _ = _attack(make, MLP(shapes=((32,),), rates=(3e-3, 1e-2), epochs=8, least=150))
    assert 0.89 < value < 0.94


def test_finds_nothing_where_nothing_is():
    """A label by lot: the AUC stays within four standard errors of one half."""
    n = 1600

    def make(n, seed):
        rng = np.random.default_rng(seed)
        return torch.tensor(rng.standard_normal((n, 16)), dtype=torch.float32), rng.integers(
            0, 2, n
        )

    value, test = _attack(make, MLP(shapes=((32,),), epochs=3, least=60), n=n)
    assert abs(value - 0.5) < 4 * math.sqrt(1 / (3 * len(test.x)))


@pytest.mark.parametrize("shape", [(), (32,)])
def test_reads_a_number(shape):
    """A line plus noise of a fifth of its variance: 5/6 can be explained. Its unit does not
    matter."""
    line = np.random.default_rng(8).standard_normal(8)

    def make(n, seed):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((n, 8))
        y = x @ line + rng.standard_normal(n) * np.linalg.norm(line) / math.sqrt(5)
        return torch.tensor(x, dtype=torch.float32), 1000 + 300 * y

    value, _ = _attack(
        make,
        MLP(shapes=(shape,), rates=(1e-2,), epochs=8, least=300),
        Attribute("age", "number"),
        n=2000,
    )
    assert 0.78 < value < 0.86


def _parts(n):
    data = small("table", n)
    raw = Release.identity(learn_schema(data, ["u", "y"]))
    return data, [
        Released(raw, data.part(part), ["u", "y", "colour"], torch.device("cpu"))
        for part in ("attack", "select", "test")
    ]


def test_reads_every_attribute_at_once():
    """Of a release, not of a stand-in: u and y leave a trace, and the colour is written there
    plainly."""
    data, (seen, select, test) = _parts(800)
    names, ticks = ("colour", "u", "y"), []
    found = attack_all(
        MLP(width=0.1, epochs=4, least=150),
        seen,
        select,
        [data.attribute(name) for name in names],
        tick=ticks.append,
    )
    assert set(found) == set(names) and ticks == sorted(ticks) and ticks[-1] == pytest.approx(1)
    assert found["colour"].answers(test).shape == (len(test), 3)
    assert all(ranking_score(test.labels(name), found[name].answers(test)) > 0.85 for name in names)


def test_same_seed_same_answers_in_any_order_of_people():
    data, (seen, select, test) = _parts(300)
    adversary, ticks = MLP(shapes=((), (16,)), epochs=2, least=20), []
    first, second = (
        adversary.attack(seen, select, data.attribute("u"), seed=3, tick=ticks.append).answers(test)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert ticks[len(ticks) // 2 - 1] == pytest.approx(1) and max(ticks) <= 1
    order = torch.randperm(len(test), generator=torch.Generator().manual_seed(0))
    shuffled = Shown(test.vectors()[order])
    trained = adversary.attack(seen, select, data.attribute("u"), seed=3)
    np.testing.assert_allclose(trained.answers(shuffled), first[order.numpy()], atol=1e-6)


def test_the_best_of_a_short_cycle_learn_along_a_whole_one(monkeypatch):
    """Everybody runs the short one, as many as said the whole one, and they are those that ranked
    *select* best; both count."""
    data, (seen, select, _) = _parts(300)
    runs = []

    def record(*given, **named):
        stack, scores = train_stack(*given, **named)
        runs.append((named["epochs"], named["hidden"], given[3], scores))
        return stack, scores

    monkeypatch.setattr("privet.adversaries.mlp.train_stack", record)
    ticks = []
    adversary = MLP(shapes=((8,), (16,)), epochs=20, least=20, short=0.25, finalists=3)
    trained = adversary.attack(seen, select, data.attribute("u"), tick=ticks.append)
    short, whole = ([run for run in runs if run[0] == epochs] for epochs in (5, 20))
    assert sum(len(members) for _, _, members, _ in short) == 2 * 2 * 8 and len(short) + len(
        whole
    ) == len(runs)
    scores = sorted((score for run in short for score in run[3]), reverse=True)
    chosen = [(hidden, member) for _, hidden, members, _ in whole for member in members]
    best = [
        (hidden, member)
        for _, hidden, members, found in short
        for member, s in zip(members, found, strict=True)
        if s >= scores[2]
    ]
    assert len(chosen) == 3 and all(one in best for one in chosen)
    assert ranking_score(select.labels("u"), trained.answers(select)) == pytest.approx(
        max(score for run in runs for score in run[3])
    )
    assert ticks == sorted(ticks) and ticks[-1] == pytest.approx(1)
    runs.clear()
    MLP(shapes=((8,),), rates=(1e-2,), epochs=2, least=20, finalists=4).attack(
        seen, select, data.attribute("u")
    )
    assert [run[0] for run in runs] == [
        2,
        2,
    ], "no more members than finalists: one cycle each, as they are and whitened"


def test_attributes_of_many_values_do_not_widen_the_stack_of_the_others():
    kinds = [Attribute(f"a{n}", "categorical", tuple(map(str, range(n)))) for n in (42, 2, 16, 5)]
    assert [[one.classes for one in group] for group in _groups(kinds, 512, 128)] == [
        [2, 5, 16],
        [42],
    ]
