"""Tree: its criterion, its leaves as a network, its merging, and the bound that it is certified
at."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
import torch

from privet import METHODS, certify, load
from privet.core.errors import PrivetError
from privet.methods.tree import Tree, _loss
from privet.methods.tree_growing import Shares, grow, leaf_of, paths
from privet.methods.tree_merging import entropies, merges, success
from privet.nets.tree import TreeSymbols
from privet.train.game import Run
from small import small

QUIET = Run(progress=False, device="cpu")


def rows(n: int = 4000, seed: int = 0):
    """Columns: one tells u, one tells y, one tells both, one nothing."""
    random = np.random.default_rng(seed)
    u, y = random.integers(0, 2, (2, n))
    noise = random.normal(size=(4, n))
    x = np.stack([2 * u + noise[0], 2 * y + noise[1], u + y + noise[2], noise[3]], 1)
    return x.astype(np.float32), u, y


def split_gain(x, share_y, share_u, gamma, feature, threshold):
    """The criterion's drop at one split, computed record by record."""

    def cost(rows):
        total = 0.0
        for share in (share_y, share_u):
            mass = share.weights[rows].sum(0)
            p = mass / mass.sum()
            gini = 2 * (1 - (p**2).sum())
            total += mass.sum() * (gamma * (1 - gini) if share.private else (1 - gamma) * gini)
        return total

    left = x[:, feature] <= threshold
    return cost(np.ones(len(x), bool)) - cost(left) - cost(~left)


@pytest.mark.parametrize("gamma", [0.0, 0.4, 0.9])
def test_the_first_split_is_the_best_of_all_by_the_criterion(gamma):
    random = np.random.default_rng(1)
    x = random.integers(0, 6, (300, 3)).astype(np.float32)
    y, u = (x[:, 0] + random.integers(0, 4, 300) > 4).astype(int), random.integers(0, 2, 300)
    shares = [Shares.of(y, 2, private=False), Shares.of(u, 2, private=True)]
    first = grow(x, shares, gamma, 2, 20)
    gains = {
        (feature, cut): split_gain(x, *shares, gamma, feature, cut)
        for feature in range(3)
        for cut in np.arange(0.5, 5)
        if 20 <= (x[:, feature] <= cut).sum() <= 280
    }
    best = max(gains, key=gains.__getitem__)
    assert [(split.feature, split.threshold) for split in first] == (
        [best] if gains[best] > 0 else []
    )


def test_gamma_turns_from_the_columns_that_tell_the_private_value_to_those_that_do_not():
    x, u, y = rows()
    both = [Shares.of(y, 2, private=False), Shares.of(u, 2, private=True)]
    swapped = [Shares.of(u, 2, private=False), Shares.of(y, 2, private=True)]
    assert (
        grow(x, both, 0.5, 2, 20)[0].feature == 1 and grow(x, swapped, 0.5, 2, 20)[0].feature == 0
    )


def test_the_network_finds_the_leaf_that_the_splits_say_also_at_a_threshold():
    x, _, y = rows(500)
    splits = grow(x, [Shares.of(y, 2, private=False)], 0.0, 12, 5)
    at = x[: len(splits)].copy()
    for row, split in zip(at, splits, strict=True):
        row[split.feature] = split.threshold
    both = np.concatenate([x, at])
    schema = METHODS["tree"]().problem(small("table", 200), ["u"], ["y"], [], QUIET).schema
    net = TreeSymbols(schema, len(splits) + 1, len(splits) + 1)
    net.schema = type("Rows", (), {"own": staticmethod(lambda rows: rows)})()
    net.feature.copy_(torch.tensor([split.feature for split in splits]))
    net.threshold.copy_(torch.tensor([split.threshold for split in splits]))
    net.paths.copy_(torch.from_numpy(paths(splits)))
    net.symbol_of.copy_(torch.eye(len(splits) + 1))
    scores = net(torch.from_numpy(both))
    assert (scores.sum(1) == 1).all(), "every row is in one leaf"
    assert np.array_equal(scores.argmax(1).numpy(), leaf_of(both, splits))


def test_the_first_splits_of_a_tree_are_the_smaller_tree():
    x, u, y = rows(800)
    shares = [Shares.of(y, 2, private=False), Shares.of(u, 2, private=True)]
    assert grow(x, shares, 0.3, 16, 10)[:5] == grow(x, shares, 0.3, 6, 10)


def test_no_leaf_has_fewer_records_than_asked_for():
    x, _, y = rows(600)
    splits = grow(x, [Shares.of(y, 2, private=False)], 0.0, 64, 30)
    assert np.bincount(leaf_of(x, splits)).min() >= 30


def test_merging_never_tells_more_and_starts_with_the_pair_that_is_worth_most():
    random = np.random.default_rng(2)
    laws = [random.dirichlet(np.ones(6), 2).T]
    tasks = [random.dirichlet(np.ones(12)).reshape(6, 2)]
    history = merges(laws, tasks, [0.5], 0.0)

    def merged(table, symbol):
        return np.eye(symbol.max() + 1)[symbol].T @ table

    values = [float(success(merged(laws[0], symbol))) for symbol in history]
    assert len(history) > 1 and all(a >= b - 1e-12 for a, b in pairwise(values))

    def worth(pair):
        symbol = np.arange(6)
        symbol[pair[1]] = pair[0]
        symbol = np.unique(symbol, return_inverse=True)[1]
        drop = min(values[0] - float(success(merged(laws[0], symbol))), values[0] - 0.5)
        lost = entropies(merged(tasks[0], symbol)).sum() - entropies(tasks[0]).sum()
        return drop / (lost + 1e-6)

    best = max(combinations(range(6), 2), key=worth)
    assert history[1][best[0]] == history[1][best[1]]


def test_a_symbol_that_says_nothing_loses_the_entropy_of_the_task():
    table = [np.array([[0.25, 0.25], [0.25, 0.25]])]
    assert _loss(table, table, 0.0, 10_000) == pytest.approx(np.log(2), abs=1e-3)
    clear = [np.array([[0.5, 0.0], [0.0, 0.5]])]
    assert _loss(clear, clear, 0.0, 10_000) < 0.01
    assert _loss(clear, clear, 1.0, 10_000) == pytest.approx(np.log(2), abs=1e-3)


@pytest.mark.parametrize("merge", [True, False])
def test_the_certificate_is_near_the_target_and_the_task_is_kept(merge):
    x, u, y = rows(16_000, seed=3)
    data = load({**{f"x{i}": x[:, i] for i in range(4)}, "u": u, "y": y})
    release = Tree(target=0.58, leaves=16, merge=merge).fit(data, "u", "y", run=QUIET)
    chosen = release.card["chosen"]
    assert chosen["met"] and chosen["symbols"] <= chosen["leaves"] <= 16
    bound = certify(release, data).certificates[0].bound
    # 3,200 people in test: the slack that is planned for is the slack it gets; the rest is how two
    # samples differ, a deviation of 0.01.
    assert bound is not None and bound < 0.58 + 0.03
    test = data.part("test")
    z = release(release.schema.inputs(test), seed=0).argmax(1)
    fit = data.part("fit")
    known = release(release.schema.inputs(fit), seed=0).argmax(1)
    answer = np.array([np.bincount(fit.labels["y"][known == s], minlength=2).argmax()
                       if (known == s).any() else 0 for s in range(release.shape[0])])  # fmt: skip
    assert (answer[z] == test.labels["y"]).mean() > 0.75, "84 % are right from the column itself"


def test_releasing_again_adds_nothing_where_nothing_is_replaced():
    data = small("table", 2000)
    release = Tree(target=0.99, leaves=4).fit(data, "u", "y", run=QUIET)
    x = release.schema.inputs(data.part("test"))
    assert release.noise.scale == 0 and np.array_equal(release(x, seed=1), release(x, seed=2))


def test_what_cannot_be_is_said_in_a_sentence():
    data = small("table", 200)
    with pytest.raises(PrivetError, match="cannot be met"):
        Tree(target=0.4).fit(data, "u", "y", run=QUIET)
    with pytest.raises(PrivetError, match="needs at least one task"):
        Tree().fit(data, "u", run=QUIET)
    with pytest.raises(PrivetError, match="does not take image"):
        Tree().fit(small("image", 60), "u", "y", run=QUIET)


def test_filling_a_network_is_the_tree_that_was_chosen():
    data = small("table", 2000)
    method = Tree(target=0.7, leaves=8)
    release = method.fit(data, "u", "y", run=QUIET)
    body = release.module.body
    assert len(body.threshold) == release.card["chosen"]["leaves"] - 1
    assert body.symbol_of.shape[1] == release.card["chosen"]["symbols"] == release.shape[0]
