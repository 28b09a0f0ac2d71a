"""Baselines do what their names say: noise of the scale that was asked for, an epsilon that is
true, groups of k people."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import cdist

from privet import METHODS, Run
from privet.core.errors import PrivetError
from privet.data.attribute_codes import code
from privet.data.schema import learn_schema
from privet.methods.dp import DP, LaplaceBudget, accuracy_bound, limits, sensitivity
from privet.methods.encoder import Encoder
from privet.methods.hybrid import Hybrid
from privet.methods.microaggregation import Microaggregation, alike, means, split
from privet.methods.noisy import STEPS, Noisy
from privet.nets.components import Components
from privet.nets.convolutions import prepare
from privet.nets.identity import Identity
from privet.nets.laplace import Laplace
from privet.nets.record import Record
from privet.release.graph import export
from privet.release.noise import Noise
from privet.release.runtime import session
from small import small

QUIET = Run(progress=False, device="cpu")


def _raw(release, data):
    return prepare(torch.from_numpy(np.asarray(release.schema.inputs(data)[:]))).numpy()


@pytest.mark.parametrize("modality", Noisy.modalities)
@pytest.mark.parametrize("sigma", [10.0, 160.0])
def test_noisy_adds_gaussian_noise_of_its_sigma_to_the_record(modality, sigma):
    data = small(modality, 400)
    release = Noisy(sigma=sigma).fit(data, ["u"], run=QUIET)
    raw = _raw(release, data)
    apart = (release(release.schema.inputs(data), seed=1) - raw) * STEPS[modality]
    n = apart.size
    assert release.shape == release.schema.shape and release.card["form"] == "record"
    assert abs(apart.mean()) < 4 * sigma / math.sqrt(n)
    assert abs(apart.std() / sigma - 1) < 4 / math.sqrt(2 * n)
    assert abs((np.abs(apart) < sigma).mean() - 0.6827) < 4 * math.sqrt(0.68 * 0.32 / n)


def test_a_sigma_of_a_picture_is_counted_in_its_255_steps():
    black_to_white = prepare(torch.tensor([0, 255], dtype=torch.uint8))
    assert float(black_to_white.diff()) * STEPS["image"] == 255


@pytest.mark.parametrize("modality", DP.modalities)
def test_sensitivity_is_never_exceeded_and_attained_by_categories(modality):
    """Two records of the same data, each value clipped and scaled to 0..1, are at most
    `sensitivity` apart."""
    data = small(modality, 100)
    schema = learn_schema(data, ["u"])
    low, high = map(np.array, limits(schema, clip=0.5))
    x = prepare(torch.from_numpy(np.asarray(schema.inputs(data)[:]))).numpy().reshape(len(data), -1)
    shares = (np.clip(x, low, high) - low) / (high - low)
    apart = cdist(shares, shares, "cityblock")
    assert apart.max() <= sensitivity(schema) + 1e-4
    assert sensitivity(schema) == {"table": 3 + 2, "image": 3 * 32 * 32, "signal": 2 * 32}[modality]
    if modality == "table":
        assert len(low) == 3 + 3 and apart.max() > sensitivity(schema) - 0.5, (
            "a stated sensitivity should be reached, or epsilon is wasted"
        )


@pytest.mark.parametrize("per", ["value", "record"])
@pytest.mark.parametrize("modality", DP.modalities)
def test_dp_noise_has_the_scale_that_its_epsilon_asks_for(modality, per):
    data = small(modality, 300)
    release = DP(epsilon=0.5, per=per).fit(data, ["u"], run=QUIET)
    low, high = (np.array(side).reshape(release.shape) for side in limits(release.schema, 3.0))
    units = (
        release(release.schema.inputs(data), seed=2) - np.clip(_raw(release, data), low, high)
    ) / (high - low)
    wanted = 2.0 * (1 if per == "value" else sensitivity(release.schema))
    assert abs(np.abs(units).mean() / wanted - 1) < 4 / math.sqrt(units.size) + 1 / 64, (
        "the mean of |Laplace(b)| is b"
    )
    assert release.card["epsilon_record"] == pytest.approx(
        0.5 if per == "record" else 0.5 * sensitivity(release.schema)
    )
    assert release.card["epsilon_value"] == pytest.approx(1 / wanted)


@pytest.mark.parametrize("epsilon", [0.3, 0.9, 4.0])
@pytest.mark.parametrize("pair", [(0.0, 1.0), (0.1, 0.11), (0.333, 0.7)])
def test_laplace_keeps_probabilities_within_its_epsilon(epsilon, pair):
    """Counted: two numbers that are |a - b| of their range apart give every range of outcomes
    within e^(epsilon |a - b|)."""
    n = 200_000
    module = Laplace(Identity((1,)), 1 / epsilon).bound([0.0], [1.0])
    law = Noise("laplace", (1,), 1 / epsilon)
    ranges = np.quantile(
        module(torch.full((n, 1), 0.5), torch.from_numpy(law.draw(n, seed=0))).numpy(),
        np.linspace(0, 1, 21)[1:-1],
    )
    counts = []
    for place, value in enumerate(pair):
        z = (
            module(torch.full((n, 1), value), torch.from_numpy(law.draw(n, seed=place + 1)))
            .numpy()
            .ravel()
        )
        counts.append(np.bincount(np.searchsorted(ranges, z), minlength=20))
    ratio = np.abs(np.log(counts[0] / counts[1]))
    slack = 4.5 * np.sqrt(1 / counts[0] + 1 / counts[1])
    assert (ratio <= epsilon * (abs(pair[0] - pair[1]) + 1 / 32) + slack).all()
    if pair == (0.0, 1.0):
        assert ratio.max() > 0.6 * epsilon, "and the epsilon is really spent"


def test_which_number_it_was_is_not_in_the_last_bits():
    """Outcomes of any two numbers lie on the same grid, and each of its points near the middle
    comes from either of them."""
    module, n = Laplace(Identity((1,)), 1 / 0.9).bound([0.0], [1.0]), 200_000
    for seed, value in enumerate((0.11, 0.12345)):
        noise = torch.from_numpy(Noise("laplace", (1,), 1.0).draw(n, seed=seed))
        steps = (module(torch.full((n, 1), value), noise) / module.grain).double()
        assert torch.equal(steps, steps.round()) and set(range(-64, 65)) <= set(
            steps.long().ravel().tolist()
        )


@pytest.mark.parametrize("scale", [0.1, 10.0, 1000.0])
def test_noise_much_wider_than_the_range_does_not_round_the_number_away(scale):
    """Over many releases the mean is the number itself, even where one step of the grid is wider
    than its whole range."""
    module, n = Laplace(Identity((1,)), scale).bound([0.0], [1.0]), 200_000
    noise = torch.from_numpy(Noise("laplace", (1,), 1.0).draw(n, seed=0))
    low, high = (module(torch.full((n, 1), value), noise).double().mean() for value in (0.2, 0.9))
    assert abs(float(high - low) - 0.7) < 4 * math.sqrt(max(module.step, 1.0) / n) * 2


def test_numbers_outside_the_range_are_clipped():
    module = Laplace(Record((2,)), 0.1).bound([-1.0, 0.0], [1.0, 1.0])
    noise = torch.zeros(1, 2)
    assert torch.equal(
        module(torch.tensor([[9.0, -9.0]]), noise), module(torch.tensor([[1.0, 0.0]]), noise)
    )


def test_the_card_says_what_epsilon_is_for_the_whole_record():
    data = small("image", 120)
    card = DP(epsilon=0.9).fit(data, ["u"], run=QUIET).card
    assert (
        card["values"] == 3072
        and "3,072 x 0.9 = 2,764.8 for the record" in card["said"]
        and "bounds no adversary" in card["said"]
    )
    assert card["certificate"]["bounds"]["u"] == 1.0
    honest = DP(epsilon=0.9, per="record").fit(data, ["u"], run=QUIET).card
    assert honest["certificate"]["kind"] == "local-dp" and honest["certificate"]["bounds"][
        "u"
    ] == pytest.approx(math.e**0.9 / (1 + math.e**0.9))
    assert "71.1 % of balanced guesses" in honest["said"]


def test_the_epsilon_is_said_on_the_console(capfd):
    DP().fit(small("table", 120), ["u"], run=Run(device="cpu"))
    assert "5 x 0.9 = 4.5 for the record" in capfd.readouterr().err


@pytest.mark.parametrize("classes", [2, 5])
def test_no_adversary_beats_the_bound_of_an_epsilon_and_randomised_response_attains_it(classes):
    """Channels of c values with probabilities within e^epsilon of each other: the best guess after
    any of them."""
    epsilon, rng = 1.3, np.random.default_rng(0)
    for _ in range(200):
        channel = np.exp(epsilon * rng.random((classes, 7))) * rng.random(7)
        channel /= channel.sum(1, keepdims=True)
        worst = np.log(channel.max(0) / channel.min(0)).max()
        assert channel.max(0).sum() / classes <= accuracy_bound(worst, classes) + 1e-12
    response = np.ones((classes, classes)) + (math.e**epsilon - 1) * np.eye(classes)
    response /= response.sum(1, keepdims=True)
    assert response.max(0).sum() / classes == pytest.approx(accuracy_bound(epsilon, classes))


def test_what_is_spent_per_value_and_per_record_is_the_same_thing_twice():
    value = LaplaceBudget.of(0.5, "value", 10, 8)
    record = LaplaceBudget.of(value.record, "record", 10, 8)
    assert record.scale == pytest.approx(value.scale) and record.record == value.record == 4.0


def test_the_encoder_does_not_know_what_is_private():
    data = small("table", 200)
    method = Encoder(width=0.1, epochs=10, batch=16, lr=1e-2)
    one = method.fit(data, ["u"], without=["y"], run=QUIET)
    labels = {**data.labels, "u": 1 - data.labels["u"]}
    other = method.fit(dataclasses.replace(data, labels=labels), ["u"], without=["y"], run=QUIET)
    assert all(
        torch.equal(a, b)
        for a, b in zip(
            one.module.state_dict().values(), other.module.state_dict().values(), strict=True
        )
    )
    # Ten seeds: -1.20 to -0.93.
    assert one.card["history"][-1]["information J"] > -1.3, (
        "nothing learned would be -2 log 2 = -1.39"
    )


@pytest.mark.parametrize(("n", "size"), [(200, 12), (20, 60)])
def test_components_are_orthonormal_and_hold_the_most_variance(n, size):
    """Against an independent implementation, with fewer and with more records than features."""
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(0)
    features = rng.standard_normal((n, size)) @ rng.standard_normal((size, size))
    module = Components(Identity((size,)), 5).learn(torch.from_numpy(features))
    np.testing.assert_allclose(module.axes.T @ module.axes, np.eye(5), atol=1e-6)
    given = module(torch.from_numpy(features.astype(np.float32))).numpy()
    np.testing.assert_allclose(given.std(0), 1, atol=1e-4)
    wanted = PCA(5).fit(features)
    np.testing.assert_allclose(
        module.deviation, np.sqrt(wanted.explained_variance_ * (n - 1) / n), rtol=1e-4
    )
    np.testing.assert_allclose(
        np.abs((module.axes.numpy() * wanted.components_.T).sum(0)), 1, atol=1e-4
    )


@pytest.mark.parametrize("modality", ["table", "text", "image"])
def test_hybrid_releases_a_few_bounded_numbers_with_noise(modality):
    data = small(modality, 160)
    release = Hybrid(width=0.05, epochs=1, dims=3, epsilon=0.5, clip=2.0).fit(
        data, ["u"], run=QUIET
    )
    assert release.shape == (3,) and release.card["epsilon_record"] == 1.5
    x = torch.from_numpy(np.asarray(release.schema.inputs(data)[:]))
    silent = release.module(x, torch.zeros(len(x), 3))
    assert float(silent.abs().max()) <= 2.0 and float(silent.std(0).min()) > 0.1
    apart = (release(release.schema.inputs(data), seed=1, batch=1000) - silent.numpy()) / 4.0
    assert abs(np.abs(apart).mean() / 2.0 - 1) < 4 / math.sqrt(apart.size)


def test_more_components_than_features_are_refused():
    with pytest.raises(PrivetError, match="at most 6 components"):
        Hybrid(width=0.05, dims=7).fit(small("table", 100), ["u"], run=QUIET)


@pytest.mark.parametrize("k", [3, 7, 40])
def test_every_released_row_is_the_mean_of_k_people_and_k_people_get_it(k):
    data = small("table", 400)
    release = Microaggregation(k=k).fit(data, ["u"], run=QUIET)
    fit = release(release.schema.inputs(data.part("fit")))
    rows, count = np.unique(fit, axis=0, return_counts=True)
    assert (
        count.min() >= k
        and count.min() == release.card["smallest"]
        and len(rows) == release.card["groups"] > 1
    )
    everybody = release(release.schema.inputs(data))
    assert len(np.unique(everybody, axis=0)) <= release.card["groups"]
    people = torch.from_numpy(release.schema.inputs(data.part("fit"))[:])
    group = split(people, k)
    size = torch.bincount(group)
    assert int(size.min()) >= k and int(size.max()) < 2 * k
    known = torch.cdist(release.module.centroids.double(), means(people, group).double()).amin(1)
    assert float(known.max()) < 1e-5, "a centroid that is not the mean of a group"


def test_the_nearest_is_the_nearest_in_the_graph_too():
    data = small("table", 400)
    release = Microaggregation(k=5).fit(data, ["u"], run=QUIET)
    x = release.schema.inputs(data.part("test"))[:]
    known = release.module.centroids.numpy()
    nearest = known[((x[:, None] - known) ** 2).sum(2).argmin(1)]
    np.testing.assert_allclose(release(x), nearest, atol=1e-6)
    np.testing.assert_allclose(session(export(release)).run(["z"], {"x": x})[0], nearest, atol=1e-6)


def test_people_are_counted_and_not_their_records():
    """Forty people with ten records each: one of them alone is no group."""
    data = small("table", 400, people=40)
    release = Microaggregation(k=4).fit(data, ["u"], run=QUIET)
    fit = data.part("fit")
    z = release(release.schema.inputs(fit))
    mean = (
        pd.DataFrame(release.schema.inputs(fit)[:])
        .groupby(fit.people)
        .mean()
        .to_numpy(np.float32, copy=True)
    )
    _, count = np.unique(release(mean), axis=0, return_counts=True)
    assert (
        count.min() >= 4 and len(np.unique(z, axis=0)) <= release.card["groups"] <= len(mean) // 4
    )


def test_duplicates_end_up_in_one_group():
    data = small("table", 300)
    records = data.records.copy()
    records.iloc[:, :] = records.iloc[0].to_numpy()
    release = Microaggregation(k=5).fit(
        dataclasses.replace(data, records=records), ["u"], run=QUIET
    )
    assert release.card["groups"] == 1


def test_groups_in_which_all_are_alike_are_counted():
    assert alike(np.array([0, 0, 1, 1, 0, -1]), np.array([0, 0, 1, 1, 1, 1])) == pytest.approx(
        2 / 5
    )


def test_too_few_people_for_k():
    with pytest.raises(PrivetError, match="only"):
        Microaggregation(k=1000).fit(small("table", 100), ["u"], run=QUIET)


BAD = [
    "noisy sigma=0",
    "noisy sigma=nan",
    "dp epsilon=0",
    "dp epsilon=2000",
    "dp per=pixel",
    "dp clip=0",
    "encoder width=0",
    "hybrid dims=0",
    "hybrid per=x",
    "hybrid epsilon=-1",
    "microaggregation k=1",
]


@pytest.mark.parametrize("words", BAD)
def test_bad_settings_are_refused_in_a_sentence(words):
    name, setting = words.split()
    with pytest.raises(PrivetError):
        METHODS[name].parse([setting])


@pytest.mark.parametrize("name", ["noisy", "dp"])
def test_words_are_no_numbers(name):
    with pytest.raises(PrivetError, match="does not take text"):
        METHODS[name]().fit(small("text", 60), ["u"], run=QUIET)


def test_a_private_number_is_taken():
    """None of them looks at the private attribute, so it may be of any kind."""
    plain = small("table", 200)
    attribute, labels = code("height", pd.Series(np.random.default_rng(0).normal(170, 10, 200)))
    assert not attribute.is_class
    attributes, columns = (
        {**plain.attributes, "height": attribute},
        {**plain.labels, "height": labels},
    )
    data = dataclasses.replace(plain, attributes=attributes, labels=columns)
    for method in (Noisy(), DP(per="record"), Microaggregation(k=5), Encoder(width=0.05, epochs=1)):
        release = method.fit(data, ["height"], run=QUIET)
        assert "So large" not in release.card.get("said", "")
