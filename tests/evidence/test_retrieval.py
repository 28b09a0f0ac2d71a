"""Rankings and clusters of released vectors: against scikit-learn, and known answers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, ndcg_score
from sklearn.metrics.pairwise import cosine_distances, cosine_similarity
from sklearn.neighbors import NearestNeighbors

from privet.evidence import retrieval as module
from privet.evidence.clusters import CLUSTERS, adjusted_rand, cluster_agreement
from privet.evidence.retrieval import drift, ndcg_at, nearest, recall_at, retrieval


def _pair(n: int = 300, d: int = 16, noise: float = 0.5, seed: int = 0):
    random = np.random.default_rng(seed)
    raw = random.normal(size=(n, d))
    return raw, raw + noise * random.normal(size=(n, d))


def test_the_nearest_are_those_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 7 * 300)  # several blocks, the last one shorter
    raw, _ = _pair()
    search = NearestNeighbors(n_neighbors=11, metric="cosine").fit(raw)
    theirs = search.kneighbors(raw, return_distance=False)[:, 1:]
    np.testing.assert_array_equal(nearest(raw, raw, 10, np.arange(300)), theirs)


def test_ndcg_and_recall_agree_with_scikit_learn():
    raw, released = _pair()
    own = np.arange(300)
    relevant, found = nearest(raw, raw, 10, own), nearest(released, released, 10, own)
    gains = np.zeros((300, 300))
    np.put_along_axis(gains, relevant, 10.0 - np.arange(10), axis=1)
    scores = cosine_similarity(released)
    np.fill_diagonal(scores, -2)
    for row, ours in enumerate(ndcg_at(found, relevant)):
        theirs = ndcg_score(gains[row : row + 1], scores[row : row + 1], k=10)
        assert ours == pytest.approx(theirs, abs=1e-9)
    theirs = [len(set(a) & set(b)) / 10 for a, b in zip(found, relevant, strict=True)]
    np.testing.assert_allclose(recall_at(found, relevant), theirs)


def test_drift_agrees_with_scikit_learn():
    raw, released = _pair()
    np.testing.assert_allclose(
        drift(raw, released), np.diag(cosine_distances(raw, released)), atol=1e-12
    )


def test_the_rand_index_agrees_with_scikit_learn():
    random = np.random.default_rng(0)
    for _ in range(20):
        one = random.integers(0, 6, 200)
        other = np.where(random.random(200) < 0.4, one, random.integers(0, 9, 200))
        assert adjusted_rand(one, other) == pytest.approx(adjusted_rand_score(one, other))


def test_the_same_vectors_keep_everything_and_rotated_ones_keep_the_ranking():
    raw, _ = _pair()
    same = retrieval(raw, raw)
    assert min(f.value for name, f in same.items() if name != "drift") > 1 - 1e-9
    assert same["drift"].value == pytest.approx(0, abs=1e-9)
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(16, 16)))[0]
    turned = retrieval(raw, 3 * raw @ rotation)
    assert min(turned["recall_at_10"].value, turned["ndcg_at_10"].value) > 1 - 1e-9
    # A raw query does not know the rotation.
    assert turned["recall_at_10_raw_queries"].high < 0.2


def test_vectors_drawn_anew_and_constant_ones_are_at_chance():
    """A file that lists each person's records together must not be searched by its order."""
    raw, _ = _pair(600)
    raw = np.repeat(raw[:60], 10, axis=0) + 0.01 * raw
    people = np.repeat(np.arange(60), 10)
    for released in (_pair(600, seed=9)[0], np.ones((600, 16))):
        figures = retrieval(raw, released, people)
        for name in ("recall_at_10", "ndcg_at_10", "recall_at_10_raw_queries"):
            figure = figures[name]
            assert figure.chance == pytest.approx(10 / 599) or name == "ndcg_at_10"
            assert abs(figure.value - figure.chance) < 0.02, (name, figure)


def test_chance_of_ndcg_is_what_a_random_ranking_reaches():
    random = np.random.default_rng(0)
    relevant = np.tile(np.arange(10), (20_000, 1))
    found = np.argsort(random.random((20_000, 49)), axis=1)[:, :10]
    chance = {name: level for name, _, level in module._measures(10, 50)}["ndcg"]
    assert ndcg_at(found, relevant).mean() == pytest.approx(chance, abs=0.005)


def test_another_length_has_no_drift_and_no_raw_queries():
    raw, released = _pair()
    assert set(retrieval(raw, released[:, :8])) == {
        "recall_at_10",
        "ndcg_at_10",
        "cluster_agreement",
    }


def test_more_noise_keeps_less():
    raw, little = _pair(noise=0.2)
    _, much = _pair(noise=1.0)
    a, b = retrieval(raw, little), retrieval(raw, much)
    for name in ("recall_at_10", "ndcg_at_10", "recall_at_10_raw_queries"):
        assert a[name].low > b[name].high, name
    assert a["drift"].high < b["drift"].low


def test_neither_order_nor_names_of_people_widen_the_interval_and_people_count():
    raw, released = _pair(400)
    alone = retrieval(raw, released)["recall_at_10"]
    people = np.repeat(np.arange(4), 100)
    few = retrieval(raw, released, people)["recall_at_10"]
    assert alone.low < alone.value < alone.high and alone.n == 400
    assert few.value == alone.value and few.high - few.low > alone.high - alone.low


def test_queries_are_drawn_and_the_index_is_whole():
    raw, released = _pair(500)
    figure = retrieval(raw, released, queries=50)["recall_at_10"]
    assert figure.n == 50 and figure.chance == pytest.approx(10 / 499)


def test_clusters_that_are_far_apart_stay():
    random = np.random.default_rng(0)
    centres = 10 * random.normal(size=(CLUSTERS, 16))
    raw = centres[np.arange(500) % CLUSTERS] + 0.1 * random.normal(size=(500, 16))
    released = raw + 0.1 * random.normal(size=raw.shape)
    figure = cluster_agreement(raw, released, np.arange(500))
    assert figure.value > 0.9 and figure.low <= figure.value <= figure.high
    scrambled = cluster_agreement(raw, random.permutation(raw), np.arange(500))
    assert abs(scrambled.value) < 0.1
