"""Veil: what it compares, matches and moves, and that it hides what it is told to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from privet import Release, Run
from privet.core.errors import PrivetError
from privet.data.in_memory import as_dataset
from privet.methods.class_matching import (
    barycentre_maps,
    quadratic_scores,
    random_directions,
    sliced_distance,
)
from privet.methods.column_likelihood import ColumnLoss
from privet.methods.veil import Veil, VeilNetworks
from privet.nets.perceptrons import Perceptrons
from privet.nets.pyramid import BandDistance, PixelDistance, bands
from privet.nets.veil import Veil as VeilNetwork
from privet.nets.veil import cells
from privet.nets.veil_maps import PlacedEncoder
from privet.release.decoder_graph import decoder_graph
from privet.release.graph import check
from privet.release.runtime import read_graph, session
from small import small

QUIET = Run(progress=False, device="cpu")
QUICK = {"width": 0.05, "lessons": 1, "epochs": 1, "dims": 8, "batch": 32}


def energy(a: np.ndarray, b: np.ndarray) -> float:
    """The integral of (F - G)^2 over the line, as expected distances: the slow, obvious way."""
    between = np.abs(a[:, None] - b).mean()
    within = np.abs(a[:, None] - a).mean() + np.abs(b[:, None] - b).mean()
    return float(between - within / 2)


def test_the_distance_along_a_direction_is_the_energy_distance():
    rng = np.random.default_rng(0)
    z, truth = rng.standard_normal((60, 1)), np.repeat([0, 1, -1], [25, 30, 5])
    z[truth == 1] += 0.7
    found = sliced_distance(
        torch.as_tensor(z), torch.as_tensor(truth), 2, torch.ones(1, 1, dtype=torch.float64)
    )
    wanted = energy(z[truth == 0, 0], z[truth == 1, 0])
    assert abs(float(found) ** 2 - wanted) < 1e-6


def test_classes_further_apart_have_a_larger_distance():
    torch.manual_seed(0)
    z, truth, lines = torch.randn(2000, 8), torch.arange(2000) % 3, random_directions(8, 32, "cpu")
    apart = [
        float(sliced_distance(z + shift * (truth == 1).unsqueeze(1), truth, 3, lines))
        for shift in (0.0, 0.3, 1.0)
    ]
    assert apart[0] < 0.5 * apart[1] < 0.5 * apart[2]


def test_quadratic_scores_order_codes_as_the_likelihoods_do():
    """Two classes of one mean, which no linear reader tells apart."""
    torch.manual_seed(2)
    truth = torch.arange(4000) % 2
    deviation = 1 + 0.6 * truth.unsqueeze(1)
    codes = torch.randn(4000, 3) * deviation
    seen, known = codes[:2000], truth[:2000]
    likely = (seen.square().sum(1) / 2) * (1 - 1 / 1.6**2) > 3 * np.log(1.6)
    scores = quadratic_scores(seen, codes[2000:], truth[2000:], 2)
    assert ((scores.argmax(1) == 1) == likely).float().mean() > 0.93
    alike = quadratic_scores(torch.randn(2000, 3), torch.randn(2000, 3), truth[2000:], 2)
    real, chance = (float(sliced_distance(s, known, 2, torch.eye(2))) for s in (scores, alike))
    assert real > 3 * chance


def test_maps_give_all_classes_one_mean_and_covariance():
    rng = np.random.default_rng(1)
    cell = rng.integers(0, 2, 20_000)
    shape = np.array([np.eye(3), [[2.0, 0.5, 0], [0, 0.7, 0], [0.3, 0, 1.5]]])
    codes = np.einsum("nd,ned->ne", rng.standard_normal((20_000, 3)), shape[cell])
    codes[cell == 1] += [1.0, -2.0, 0.5]
    maps, shifts = barycentre_maps(codes, cell, 2)
    moved = np.einsum("nd,ned->ne", codes, maps[cell]) + shifts[cell]
    one, other = (moved[cell == c] for c in (0, 1))
    assert np.abs(one.mean(0) - other.mean(0)).max() < 1e-6
    assert np.abs(np.cov(one.T) - np.cov(other.T)).max() < 0.02


@pytest.mark.parametrize("seed", range(3))
def test_maps_of_codes_that_are_alike_stamp_nothing_on_them(seed):
    """Fitted to chance, the maps of two alike classes of 600 codes of 32 numbers would differ by
    more than 1 from the identity, in squares."""
    rng = np.random.default_rng(seed)
    cell = np.arange(1200) % 2
    maps, _ = barycentre_maps(rng.standard_normal((1200, 32)), cell, 2)
    assert np.square(maps - np.eye(32)).sum() < 0.1


def test_a_picture_has_distance_nothing_to_itself_and_one_to_the_mean():
    x = torch.rand(64, 3, 32, 32) * 2 - 1
    x = torch.cat([x, x.flip(3)])
    for distance in (BandDistance([x]), BandDistance([x], aligned=True), PixelDistance([x])):
        mean = x.mean(0, keepdim=True).expand_as(x)
        assert float(distance(x, x)) == 0 and abs(float(distance(mean, x)) - 1) < 1e-4


def test_bands_add_up_to_the_record():
    x = torch.rand(2, 3, 21, 34)
    *fine, total = bands(x)
    for band in reversed(fine):
        total = band + torch.nn.functional.interpolate(total, size=band.shape[2:])
    torch.testing.assert_close(total, x)


def test_a_row_is_compared_column_by_column():
    data = small("table", 400)
    problem = Veil().problem(data, "u")
    rows = problem.schema.inputs(problem.view())[:]
    loss, x = ColumnLoss(problem.schema, rows.mean(0, dtype=np.float64)), torch.as_tensor(rows)
    scores = x.mean(0, keepdim=True).clamp(min=1e-9).log()
    numbers = torch.tensor([not column.values for column in problem.schema.columns])
    numbers = numbers.repeat_interleave(
        torch.tensor([column.size for column in problem.schema.columns])
    )
    constant = torch.where(numbers, torch.zeros(()), scores).expand_as(x)
    with torch.no_grad():
        assert abs(float(loss(constant, x)) - 1) < 0.02
        assert float(loss(torch.where(numbers, x, 20 * x), x)) < 0.01


def test_one_perceptron_starts_again_and_the_others_do_not():
    torch.manual_seed(0)
    panel = Perceptrons(3, (4, 5, 2))
    before = [weight.clone() for weight in panel.weights]
    panel.renew(1)
    for old, new in zip(before, panel.weights, strict=True):
        same = [bool((old[i] == new[i]).all()) for i in range(3)]
        assert same == [True, False, True]


def test_combinations_of_values_are_counted_apart():
    u = torch.tensor([[1.0, 0, 0, 0, 1], [0, 1.0, 1, 0, 0]])
    assert cells(u, [2, 3]).argmax(1).tolist() == [2, 3]


def hidden(seed: int, **more) -> tuple[float, float]:
    """How often u and y are read from codes by a linear reader, on people not learned from."""
    data = small("table", 3000, seed)
    quick = {"dims": 4, "width": 0.2, "lessons": 4, "epochs": 25, "batch": 128, "adversaries": 2}
    method = Veil(beta=0.1, lr=3e-3, seed=seed, **{**quick, **more})
    release = method.fit(data, "u", run=QUIET)
    z = {part: release(release.schema.inputs(data.part(part)), seed=1) for part in ("fit", "test")}
    return tuple(
        LogisticRegression()
        .fit(z["fit"], data.part("fit").labels[name])
        .score(z["test"], data.part("test").labels[name])
        for name in ("u", "y")
    )


def test_what_is_private_is_hidden_and_the_rest_stays():
    """Over three seeds 0.58, 0.51 and 0.46 where it is hidden, 0.85, 0.82 and 0.82 where not."""
    private, task = hidden(1)
    shown, _ = hidden(1, aware=False, confuse=0.0, match=0.0)
    assert private < 0.65 < 0.75 < shown and task > 0.75


@pytest.mark.parametrize("modality", ["image", "signal", "table"])
def test_a_record_comes_back_in_its_own_form(modality, tmp_path):
    data = small(modality, 160)
    release = Veil(**QUICK, output="record", drawn_as="yes").fit(data, "u", run=QUIET)
    x = release.schema.inputs(data.part("test"))
    z = release(x, seed=1)
    assert z.shape == (len(x), *release.schema.shape) and release.card["form"] == "record"
    assert release.network[1]["drawn_as"] == [1]
    if modality == "image":
        assert np.abs(z).max() <= 1
    if modality == "table":
        colours = z[:, 3:]
        assert set(np.unique(colours)) <= {0.0, 1.0} and (colours.sum(1) == 1).all()
    release.save(tmp_path)
    np.testing.assert_array_equal(Release.load(tmp_path)(x, seed=1), z)


@pytest.mark.parametrize("modality", ["image", "signal"])
@pytest.mark.parametrize("output", ["code", "record"])
def test_a_code_that_keeps_its_places_is_a_release_like_any_other(modality, output, tmp_path):
    """Pictures of 32 x 32 have 8 x 8 places, windows 8."""
    data = small(modality, 160)
    dims = {"image": 128, "signal": 24}[modality]
    method = Veil(**{**QUICK, "dims": dims}, places=8, output=output, view=1.0, hold=1.0)
    release = method.fit(data, "u", run=QUIET)
    x = release.schema.inputs(data.part("test"))
    z = release(x, seed=1)
    assert z.shape == (len(x), *((dims,) if output == "code" else release.schema.shape))
    release.save(tmp_path)
    again = Release.load(tmp_path)
    np.testing.assert_array_equal(again(x, seed=1), z)
    assert check(again, read_graph(tmp_path)) <= 1e-4


def test_a_place_of_the_code_sees_its_own_part_of_the_record():
    """Statistics frozen, a change in one corner moves the code there, and the opposite one only by
    what the means over the whole record tell it."""
    net = PlacedEncoder((3, 64, 64), 2, 2 * 16 * 16, 0.1, 16).eval()
    x, u = torch.rand(1, 3, 64, 64), torch.tensor([[1.0, 0.0]])
    changed = x.clone()
    changed[:, :, :8, :8] += 1
    with torch.no_grad():
        before, after = (net(one, u)[0].view(2, 16, 16) for one in (x, changed))
    moved = (before - after).abs().amax(0)
    assert moved[-1].max() < 0.1 * moved[0, 0] and moved[:, -1].max() < 0.1 * moved[0, 0]


@pytest.fixture(scope="module")
def vectors():
    """800 unit vectors of 64 numbers, most of their variance in eight directions."""
    rng = np.random.default_rng(0)
    u = rng.integers(0, 2, 800)
    x = rng.standard_normal((800, 8)) @ rng.standard_normal((8, 64))
    x += 0.3 * rng.standard_normal((800, 64)) + 0.5 * u[:, None]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    frame = pd.DataFrame(x.astype(np.float32), columns=[f"v{i}" for i in range(64)])
    return as_dataset(frame.assign(u=u.astype(str)))


@pytest.mark.parametrize("told", [False, True])
def test_vectors_of_others_come_back_from_a_few_epochs_and_keep_their_length(vectors, told):
    """The first code is made of principal components: 400 vectors are enough for it. Networks that
    start at random lose more of other people's vectors than the mean vector does (share 1)."""
    method = Veil(**{**QUICK, "epochs": 3}, beta=1e-4, output="record", told=told)
    release = method.fit(vectors, "u", run=QUIET)
    assert release.card["lost"]["share"] < 0.2
    view = vectors.part("test")
    given = release(release.schema.inputs(view), seed=0)
    mean, std = (np.array([getattr(c, k) for c in release.schema.plain.columns])
                 for k in ("mean", "std"))  # fmt: skip
    raw = np.asarray(release.schema.own(release.schema.inputs(view)[:]))
    own, theirs = mean + std * given, mean + std * raw
    cosine = (own * theirs).sum(1) / np.linalg.norm(own, axis=1) / np.linalg.norm(theirs, axis=1)
    assert cosine.mean() > 0.85
    if not told:
        assert np.abs(np.linalg.norm(own, axis=1) - 1).max() < 1e-3


def test_cards_of_vectors_from_before_still_name_their_networks(vectors):
    """A card without the word has the networks that all rows had."""
    schema = Veil(**QUICK).problem(vectors, "u").schema
    names = {name for name, _ in VeilNetwork(schema, [2], 8, 0.05).named_parameters()}
    assert any("lengths" in name for name in names)
    new = VeilNetwork(schema, [2], 8, 0.05, vectors=True)
    assert not any("encoder.body.lengths" in name for name, _ in new.named_parameters())


def test_the_decoder_is_a_graph_of_its_own():
    data = small("image", 160)
    release = Veil(**QUICK).fit(data, "u", run=QUIET)
    z = release(release.schema.inputs(data.part("test")), seed=1)
    drawn = session(decoder_graph(release)).run(["x"], {"z": z})[0]
    with torch.no_grad():
        wanted = release.module.draw(torch.from_numpy(z)).numpy()
    assert drawn.shape == (len(z), 3, 32, 32) and np.abs(drawn - wanted).max() < 1e-3
    record = Veil(**QUICK, output="record").fit(data, "u", run=QUIET)
    with pytest.raises(PrivetError, match="output=code"):
        decoder_graph(record)


def test_a_guess_needs_no_label_and_what_is_told_does():
    data = small("table", 160)
    guessed = Veil(**QUICK).fit(data, "u", run=QUIET)
    told = Veil(**QUICK, told=True).fit(data, "u", run=QUIET)
    assert guessed.schema.shape[0] + 2 == told.schema.shape[0]
    assert guessed.card["guess"]["u"]["n"] > 0 and told.module.guess is None


@pytest.fixture
def networks():
    """A game on small pictures, its penalties come in, with a batch to play."""
    problem = Veil().problem(small("image", 160), "u")
    game = VeilNetworks(problem, Veil(**QUICK, view=1.0))
    game.ramp.fill_(1.0)
    return game, next(iter(game.feed.in_order()))


def test_the_game_sees_the_mean_of_as_many_releases_as_it_is_told(networks):
    game, batch = networks
    game.hide(batch)
    mean, log_variance = game.memory.codes.chunk(2, dim=1)
    filled = (game.memory.values >= 0).all(1)

    def spread(averaged: int) -> float:
        game.method = replace(game.method, averaged=averaged)
        noise = (game.recall()[0] - mean) / torch.exp(0.5 * log_variance)
        return float(noise[filled].std())

    torch.manual_seed(0)
    assert abs(spread(1) - 1) < 0.2 and abs(spread(16) - 0.25) < 0.05


def test_learning_can_encode_with_the_guess_as_the_release_does(networks):
    game, batch = networks
    x, truth = game.records(batch), game.truth(batch)
    assert torch.equal(game.known(batch, x, truth), game.value(truth))
    game.method = replace(game.method, guessed=True)
    guess = game.known(batch, x, truth)
    assert torch.equal(guess, game.veil.value(batch.x, x)) and not guess.requires_grad


def test_who_looks_at_pictures_teaches_the_encoder_and_not_the_decoder(networks):
    """A decoder that helped would hide the value in the picture and leave it in the code."""
    game, batch = networks
    decoder = list(game.veil.decoder.parameters())

    def slopes(view: float) -> list[torch.Tensor]:
        game.method = replace(game.method, view=view)
        torch.manual_seed(0)
        loss = game.hide(batch).loss
        first = next(game.veil.encoder.parameters())
        return list(torch.autograd.grad(loss, [first, *decoder], allow_unused=True))

    without, much = slopes(0.0), slopes(100.0)
    assert not torch.allclose(without[0], much[0], rtol=0.1)
    for one, other in zip(without[1:], much[1:], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def test_a_decoder_of_released_records_helps_to_hide(networks):
    game, batch = networks
    game.method = replace(game.method, output="record", view=100.0)
    x = game.records(batch)
    mean, _ = game.veil.encode(x, game.known(batch, x, game.truth(batch)))
    slopes = torch.autograd.grad(game.drawn(mean).sum(), list(game.veil.decoder.parameters()),
                                 allow_unused=True)  # fmt: skip
    assert any(slope is not None and slope.abs().sum() > 0 for slope in slopes)


def test_the_in_game_figure_is_of_those_who_play():
    data = small("image", 160)
    quiet = {**QUICK, "confuse": 0.0, "match": 0.0}
    alone = Veil(**quiet).fit(data, "u", run=QUIET).card
    looked = Veil(**quiet, view=1.0, output="record").fit(data, "u", run=QUIET).card
    assert "in_game" not in alone and looked["in_game"]["u"]["n"] > 0


def test_numbers_and_several_attributes_are_hidden_together():
    data = small("table", 300)
    several = Veil(**QUICK, transport=True).fit(data, "u,colour", run=QUIET)
    assert several.module.classes == [2, 3] and several.module.maps.shape[0] == 6
    with pytest.raises(PrivetError, match="at most 32 combinations"):
        Veil(transport=True, bins=100).problem(toy_number(), "age")
    assert Veil(bins=4).problem(toy_number(), "age").private[0].classes == 4


def toy_number():
    import pandas as pd

    from privet.data.attribute_codes import code

    data = small("table", 300)
    attribute, labels = code("age", pd.Series(np.random.default_rng(0).normal(40, 9, 300)))
    return replace(
        data,
        attributes={**data.attributes, "age": attribute},
        labels={**data.labels, "age": labels},
    )


def test_a_killed_game_goes_on_to_the_same_weights(tmp_path):
    data = small("table", 200)

    def method() -> Veil:
        return Veil(**{**QUICK, "epochs": 3}, restart=2)

    whole = method().fit(data, "u", run=QUIET).module.state_dict()

    class Killed(Exception):
        pass

    calls = []
    real = Veil.game

    def stopping(self, problem, modules, phases, batch, models=()):
        game = real(self, problem, modules, phases, batch, models)
        inner = game._remember

        def remember(phase, epoch, figures):
            inner(phase, epoch, figures)
            calls.append(1)
            if len(calls) == 3:
                raise Killed

        game._remember = remember
        return game

    run = Run(progress=False, device="cpu", folder=tmp_path, rounds_between=1)
    Veil.game = stopping
    try:
        with pytest.raises(Killed):
            method().fit(data, "u", run=run)
    finally:
        Veil.game = real
    again = Run(progress=False, device="cpu", folder=tmp_path, resume=True)
    resumed = method().fit(data, "u", run=again).module.state_dict()
    for key, value in whole.items():
        assert torch.equal(value, resumed[key]), key


def test_mistakes_are_said_in_a_sentence():
    data = small("table", 160)
    with pytest.raises(PrivetError, match="leave out soft"):
        Veil(told=True, soft=True)
    with pytest.raises(PrivetError, match="leave out soft, guessed"):
        Veil(told=True, guessed=True)
    with pytest.raises(PrivetError, match="leave out features"):
        Veil(features=1.0).problem(data, "u")
    with pytest.raises(PrivetError, match="leave out places"):
        Veil(places=4).problem(data, "u")
    with pytest.raises(PrivetError, match="64 places, and dims=100 is no multiple"):
        Veil(places=8, dims=100).problem(small("image", 160), "u")
    with pytest.raises(PrivetError, match="takes a value of each"):
        Veil(**QUICK, drawn_as="9").fit(data, "u", run=QUIET)
    with pytest.raises(PrivetError, match="vectors first"):
        Veil().problem(small("text", 160), "u")
