"""The front and the hypervolume against what they are defined to be."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privet.studies.pareto import front, hypervolume

share = st.floats(0, 1)
points = st.lists(st.tuples(share, share), max_size=12)
WORST, BEST = (1.0, 0.5), (0.5, 1.0)


def dominates(q, p):
    return q[0] <= p[0] and q[1] >= p[1] and q != p


@given(points)
def test_the_front_is_what_nothing_dominates(found):
    kept = set(front(found))
    assert kept == {i for i, p in enumerate(found) if not any(dominates(q, p) for q in found)}
    assert bool(kept) == bool(found)


@given(points)
def test_the_front_runs_from_private_to_useful(found):
    along = [found[i] for i in front(found)]
    assert along == sorted(along)
    assert [use for _, use in along] == sorted(use for _, use in along)


@given(points, st.tuples(share, share))
def test_another_point_takes_nothing_away(found, more):
    assert hypervolume([*found, more], WORST, BEST) >= hypervolume(found, WORST, BEST) - 1e-12


@given(points, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_the_front_is_enough(found, random):
    mixed = list(found)
    random.shuffle(mixed)
    whole = hypervolume(found, WORST, BEST)
    assert 0 <= whole <= 1
    assert abs(hypervolume(mixed, WORST, BEST) - whole) < 1e-12
    assert abs(hypervolume([found[i] for i in front(found)], WORST, BEST) - whole) < 1e-12


@given(st.lists(st.tuples(share, share), min_size=1, max_size=6))
def test_the_volume_is_the_share_of_the_plane_that_is_dominated(found):
    thrown = np.random.default_rng(0).uniform((0.5, 0.5), (1.0, 1.0), (20_000, 2))
    reached = np.any(
        [(thrown[:, 0] >= leak) & (thrown[:, 1] <= use) for leak, use in found], axis=0
    )
    assert abs(reached.mean() - hypervolume(found, WORST, BEST)) < 4 * 0.5 / np.sqrt(len(thrown))


def test_corners_and_what_is_no_number():
    assert hypervolume([BEST], WORST, BEST) == 1 and hypervolume([WORST], WORST, BEST) == 0
    assert hypervolume([(0.2, 1.3)], WORST, BEST) == 1, (
        "better than the best corner counts as the best corner"
    )
    assert hypervolume([(float("nan"), 1.0)], WORST, BEST) == 0 and front(
        [(float("nan"), 1.0), (0.9, 0.1)]
    ) == [1]
    assert hypervolume([BEST], WORST, WORST) == 0, "a rectangle without area holds nothing"
