"""Every adversary on every modality keeps the same promises. A new adversary is in here by being in ADVERSARIES."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from privet.adversaries import ADVERSARIES, Released
from privet.data.schema import learn_schema
from privet.evidence.leakage import auc
from privet.release import Release
from small import TRACES, small

CPU = torch.device("cpu")
CASES = [(name, modality) for name in ADVERSARIES for modality in TRACES]


def _parts(data):
    raw = Release.identity(learn_schema(data, ["u", "y"]))
    return [Released(raw, data.part(part), ["u"], CPU) for part in ("attack", "select", "test")]


@pytest.mark.parametrize("name,modality", CASES)
def test_reads_what_is_written_plainly(name, modality):
    """The identity leaks all: u leaves a plain trace in every small data set."""
    data = small(modality, 600)
    seen, select, test = _parts(data)
    trained = ADVERSARIES[name](epochs=6, least=150, width=0.1).attack(seen, select, data.attribute("u"))
    probabilities = trained.probabilities(test)
    assert probabilities.shape == (len(test), 2) and np.allclose(probabilities.sum(1), 1, atol=1e-5)
    assert auc(test.labels("u"), probabilities) > 0.85


@pytest.mark.parametrize("name", ADVERSARIES)
def test_finds_nothing_where_nothing_is(name):
    """A label drawn by lot cannot be read: the AUC stays within four standard errors of one half."""
    data = small("table", 1200)
    lot = np.random.default_rng(5).integers(0, 2, len(data))
    data = replace(data, labels={**data.labels, "u": lot})
    seen, select, test = _parts(data)
    trained = ADVERSARIES[name](epochs=2, least=40, width=0.1).attack(seen, select, data.attribute("u"))
    n = len(test)
    assert abs(auc(test.labels("u"), trained.probabilities(test)) - 0.5) < 4 * np.sqrt(1 / (3 * n))


@pytest.mark.parametrize("name", ADVERSARIES)
def test_missing_labels_are_not_learned_from(name):
    data = small("table", 400)
    holes = np.where(np.arange(len(data)) % 3 == 0, -1, data.labels["u"])
    seen, select, test = _parts(replace(data, labels={**data.labels, "u": holes}))
    trained = ADVERSARIES[name](epochs=2, least=60, width=0.1).attack(seen, select, data.attribute("u"))
    assert np.isfinite(trained.probabilities(test)).all()


@pytest.mark.parametrize("name", ADVERSARIES)
def test_same_seed_same_attack_in_any_order_of_test_people(name):
    data = small("table", 400)
    raw = Release.identity(learn_schema(data, ["u", "y"]))
    seen, select, test = _parts(data)
    attack = ADVERSARIES[name](epochs=2, least=30, width=0.1)
    first, second = (attack.attack(seen, select, data.attribute("u"), seed=3).probabilities(test) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    order = np.random.default_rng(0).permutation(len(test))
    shuffled = Released(raw, data.part("test").take(order), ["u"], CPU)
    trained = attack.attack(seen, select, data.attribute("u"), seed=3)
    np.testing.assert_allclose(trained.probabilities(shuffled), first[order], atol=1e-6)
