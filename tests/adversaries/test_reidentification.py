"""Re-identification finds people again where records carry them, and only chance where they do
not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom
from torch import nn

from privet.adversaries.reidentification import Reidentified, reidentification, reidentify
from privet.adversaries.released import Released
from privet.data.dataset import Dataset
from privet.data.schema import learn_schema
from privet.data.splitting import assign
from privet.release.noise import Noise
from privet.release.release import Release

CPU = torch.device("cpu")
WIDE = 12


@pytest.fixture(autouse=True)
def _short(monkeypatch, request):
    """Only where the embedding itself is asked about does it need its time."""
    if "embedding" not in request.node.name:
        monkeypatch.setattr("privet.adversaries.reidentification.STEPS", 20)


def _data(people: int, per: int, make, seed: int = 0) -> Dataset:
    """`make(rng, who)` gives the records (n, d) of the people `who`."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), per)
    x = make(rng, who)
    frame = pd.DataFrame(x, columns=[f"c{i}" for i in range(x.shape[1])])
    part, _ = assign(len(who), who, None, seed)
    return Dataset(
        "people", "table", frame, {}, {}, part, np.arange(len(who)), f"people{seed}", who
    )


def _see(data: Dataset, release: Release | None = None) -> dict[str, Released]:
    release = release or Release.identity(learn_schema(data))
    first = Released(release, data.part("attack"), [], CPU)
    return {"attack": first} | {
        part: Released(release, data.part(part), [], CPU, like=first) for part in ("select", "test")
    }


def _found(data: Dataset, seed: int = 0, release: Release | None = None) -> Reidentified:
    found = reidentify(_see(data, release), seed)
    assert isinstance(found, Reidentified), found
    return found


def _close(rng, who):
    return rng.standard_normal((who.max() + 1, WIDE))[who] + 0.2 * rng.standard_normal(
        (len(who), WIDE)
    )


def _strangers(rng, who):
    return rng.standard_normal((len(who), WIDE))


def _nuisance(rng, who):
    """One direction, across all columns, in which every record is anywhere and which is far larger
    than the rest."""
    return _close(rng, who) + 100 * rng.standard_normal((len(who), 1)) * rng.standard_normal(WIDE)


def _loud(rng, who):
    """Half of the columns say who it is, quietly, next to loud columns that vary from record to
    record and go together."""
    mixed = rng.standard_normal((len(who), 5)) @ rng.standard_normal((5, WIDE))
    return np.hstack([_close(rng, who), 3 * mixed + 3 * rng.standard_normal((len(who), WIDE))])


def _signs(rng, who):
    """A person is a vector up to a sign that changes from record to record, which no linear measure
    can undo."""
    return _close(rng, who)[:, :4] * rng.choice([-1.0, 1.0], (len(who), 1))


def test_people_who_stay_the_same_are_found():
    found = _found(_data(150, 3, _close))
    first, five = found.figures["top_1"], found.figures["top_5"]
    assert first.value > 0.9 and five.value >= first.value
    assert (
        first.n == five.n == 30
        and first.chance == pytest.approx(1 / 30)
        and five.chance == pytest.approx(5 / 30)
    )
    assert not first.is_chance and first.low < first.value <= first.high


def test_strangers_are_found_by_chance():
    """Over ten draws of 60 people: of independent probes, the count is binomial."""
    found = [_found(_data(300, 2, _strangers, seed), seed).figures for seed in range(10)]
    for name in ("top_1", "top_5"):
        hits, n = (
            sum(round(f[name].value * f[name].n) for f in found),
            sum(f[name].n for f in found),
        )
        assert 1e-3 < binom.cdf(hits, n, found[0][name].chance) < 1 - 1e-3
        assert sum(f[name].low <= f[name].chance <= f[name].high for f in found) >= 8


def test_a_constant_release_finds_nobody():
    class Nothing(nn.Module):
        shape = (3,)

        def forward(self, x):
            return torch.zeros(len(x), 3)

    data = _data(300, 2, _close)
    for figure in _found(
        data, release=Release(learn_schema(data), ("nothing", {}), Nothing(), None)
    ).figures.values():
        assert figure.low <= figure.chance <= figure.high


def test_values_that_are_no_numbers_are_no_match():
    class Broken(nn.Module):
        shape = (WIDE,)

        def forward(self, x):
            return x * torch.nan

    data = _data(300, 2, _close)
    for figure in _found(
        data, release=Release(learn_schema(data), ("broken", {}), Broken(), None)
    ).figures.values():
        assert figure.low <= figure.chance <= figure.high


def test_whitening_overcomes_a_loud_nuisance():
    found = _found(_data(200, 2, _nuisance))
    assert found.select["cosine"] < 0.4 < 0.8 < found.select["cosine of whitened records"]
    assert found.figures["top_1"].value > 0.8


def test_what_varies_within_a_person_is_learned():
    found = _found(_data(400, 3, _loud))
    learned = max(score for name, score in found.select.items() if "two-covariance" in name)
    assert learned > found.select["cosine of whitened records"] + 0.1
    assert found.adversary not in ("cosine", "cosine of whitened records")


def test_an_embedding_learns_what_no_linear_measure_can():
    found = _found(_data(600, 4, _signs))
    others = max(score for name, score in found.select.items() if name != "learned embedding")
    # Six seeds: 0.50 to 0.59, at least 0.05 above the others.
    assert found.adversary == "learned embedding" and found.select["learned embedding"] > others


class Loud(nn.Module):
    shape = (WIDE,)

    def forward(self, x, noise):
        return x + 20 * noise


def _loudly(data: Dataset) -> Release:
    return Release(learn_schema(data), ("loud", {}), Loud(), Noise("gaussian", (WIDE,), 20.0))


def test_noise_hides_people():
    data = _data(150, 2, _close)
    assert (
        _found(data, release=_loudly(data)).figures["top_1"].value
        < 0.3
        < 0.9
        < _found(data).figures["top_1"].value
    )


def test_neither_order_nor_names_matter():
    data = _data(150, 3, _loud)
    rng = np.random.default_rng(1)
    names = rng.permutation(150) + 7
    other = data.take(rng.permutation(len(data)))
    other = replace(other, person=names[other.person])
    one, two = (_found(view) for view in (data, other))
    for name in set(one.select) - {"learned embedding"}:
        assert one.select[name] == pytest.approx(two.select[name], abs=0.02)
    assert one.figures["top_1"].value == pytest.approx(two.figures["top_1"].value, abs=1 / 30)


def test_same_seed_same_figures():
    data = _data(100, 3, _close)
    assert _found(data, 3) == _found(data, 3)
    assert _found(data, 3, _loudly(data)) == _found(data, 3, _loudly(data))


def test_few_people_with_two_records_leave_the_plain_measure():
    data = _data(60, 2, _close)
    seen = np.isin(data.part_of, (1, 2))
    single = data.take(np.flatnonzero(~seen | (np.arange(len(data)) % 2 == 0)))
    found = _found(single)
    assert (
        found.select == {}
        and found.adversary == "cosine of whitened records"
        and found.figures["top_1"].value > 0.5
    )
    people = reidentification(_see(single), None)
    assert not isinstance(people, str) and "weak attack" in people.note


def test_raw_stands_beside_released():
    class First(nn.Module):
        shape = (1,)

        def forward(self, x):
            return x[:, :1]

    data = _data(150, 2, _close)
    release = Release(learn_schema(data), ("first", {}), First(), None)
    shares = []
    people = reidentification(_see(data, release), _see(data), 0, shares.append)
    assert not isinstance(people, str) and people.attack == "re-identification"
    assert people.figures["top_1"].value < people.raw["top_1"].value
    assert shares == sorted(shares) and shares[-1] == 1.0


def test_reasons():
    data = _data(40, 2, _close)
    nameless = reidentify(_see(replace(data, person=None)))
    assert isinstance(nameless, str) and "one person" in nameless
    once = reidentify(_see(data.take(np.arange(0, len(data), 2))))
    assert isinstance(once, str) and "two records" in once
    assert reidentification(_see(replace(data, person=None)), None) == nameless
