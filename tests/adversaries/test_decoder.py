"""What decoders make of released records: more than knowing nothing where they hold the record, and
no more where they do not."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

from privet.adversaries.adversary import ranking_score
from privet.adversaries.decoder import ReversedExtractor, rebuilt_release
from privet.adversaries.network_training import NetworkAdversary
from privet.adversaries.rebuilder import Rebuilder
from privet.adversaries.released import Released, View
from privet.core.errors import PrivetError
from privet.data.schema import learn_schema
from privet.evidence.distortion import psnr
from privet.nets import registry as nets
from privet.nets.convolutions import prepare
from privet.release.noise import Noise
from privet.release.release import Release
from small import small

CPU = torch.device("cpu")
MODALITIES = ["image", "signal", "table", "text"]
QUICK = {
    ReversedExtractor: {"epochs": 1, "width": 0.05, "shown": 3},
    Rebuilder: {"epochs": 1, "least": 0, "batch": 32, "width": 0.05, "shown": 3},
}
LONGER = {"epochs": 8, "batch": 16, "lr": 1e-2}
EVERY = list(product(QUICK, MODALITIES))
FIGURES = {
    "image": {"psnr", "ssim", "ms_ssim"},
    "text": {"words"},
    "signal": {"variance_explained"},
    "table": {"variance_explained"},
}


class Half(nn.Module):
    """A picture of half the resolution, with or without noise: easy to make the picture from."""

    shape = (3, 12, 12)

    def forward(self, x, noise=None):
        small_one = F.avg_pool2d(x.float() / 127.5 - 1, 2)
        return small_one if noise is None else small_one + 0.1 * noise


class Nothing(nn.Module):
    """The same for everybody; only the length of a text shows."""

    def __init__(self, *shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        if self.shape[0] is None:
            return (x != 0).float().unsqueeze(2).expand(*x.shape, self.shape[1])
        return torch.ones(len(x), *self.shape)


class Flat(nn.Module):
    """One vector per record, whatever it was: 40 random projections."""

    shape = (40,)

    def forward(self, x):
        flat = (
            F.pad(x, (0, 20 - x.shape[1])).float()
            if x.dtype == torch.int64
            else x.float().flatten(1)
        )
        return flat @ torch.randn(flat.shape[1], 40, generator=torch.Generator().manual_seed(0))


def _release(data, module=None, noise=None) -> Release:
    schema = learn_schema(data)
    if module is not None:
        return Release(schema, ("test", {}), module, noise)
    torch.manual_seed(0)
    return Release(
        schema,
        ("extractor", {"width": 0.05}),
        nets.build("extractor", schema, {"width": 0.05}),
        None,
    )


def _noisy(data) -> Release:
    return _release(data, Half(), Noise("gaussian", (3, 12, 12), 0.1))


def _part(release, data, part="test", names=()) -> Released:
    return Released(release, data.part(part), names, CPU)


def _attack(kind, data, release, seed=0, **settings):
    parts = (_part(release, data, part) for part in ("attack", "select", "test"))
    return kind(**{**QUICK[kind], **settings}).attack(*parts, release.schema, seed, progress=False)


@pytest.fixture(scope="module")
def pictures():
    """Smooth pictures, each of its own: blobs of random place and colour."""
    data, rng = small("image", 240, people=150), np.random.default_rng(1)
    y, x = np.mgrid[0:24, 0:24]
    centre, colour = rng.uniform(5, 19, (240, 2, 1, 1)), rng.uniform(0, 200, (240, 3, 1, 1))
    blob = np.exp(-((y - centre[:, 0]) ** 2 + (x - centre[:, 1]) ** 2) / 35.0)
    return replace(data, records=(30 + colour * blob[:, None]).astype(np.uint8))


@pytest.fixture(scope="module", params=QUICK)
def from_half(request, pictures):
    release = _release(pictures, Half())
    return (
        *_attack(
            request.param,
            pictures,
            release,
            **{**LONGER, "epochs": 16 if request.param is ReversedExtractor else 8, "width": 0.1},
        ),
        release,
    )


def test_half_the_resolution_gives_more_than_the_mean_picture(from_half, pictures):
    made, _, _ = from_half
    test = pictures.records[pictures.part("test").rows]
    mean = np.broadcast_to(pictures.records[pictures.part("attack").rows].mean(0), test.shape)
    assert made.measure == "PSNR in dB" and made.value == made.figures["psnr"].value
    assert made.figures["psnr"].chance == pytest.approx(psnr(mean, test).mean(), abs=1)
    for name in ("psnr", "ssim"):
        assert made.figures[name].low > made.figures[name].chance, name
    assert made.figures["psnr"].unit == "dB" and "2 of the 5 scales" in made.figures["ms_ssim"].note


def test_pictures_are_rebuilt_in_order_and_as_bytes(from_half, pictures):
    made, trained, release = from_half
    truth = pictures.records[pictures.part("test").rows]
    again = trained.rebuild(_part(release, pictures))
    assert again.dtype == np.uint8 and again.shape == truth.shape
    assert psnr(again, truth).mean() == pytest.approx(made.value, abs=1e-6)
    assert psnr(again[::-1], truth).mean() < made.value - 2


def test_pictures_come_back_as_png(from_half, pictures):
    made, trained, release = from_half
    assert len(made.originals) == len(made.rebuilt) == 3
    truth, rebuilt = (
        pictures.records[pictures.part("test").rows],
        trained.rebuild(_part(release, pictures)),
    )
    for shown, expected in ((made.originals, truth), (made.rebuilt, rebuilt)):
        for line, picture in zip(shown, expected[:3], strict=True):
            with Image.open(io.BytesIO(base64.b64decode(line, validate=True))) as image:
                assert image.format == "PNG" and image.mode == "RGB"
                np.testing.assert_array_equal(np.asarray(image).transpose(2, 0, 1), picture)


@pytest.mark.parametrize(("kind", "modality"), EVERY)
def test_nothing_gives_no_more_than_the_best_single_record(kind, modality, pictures):
    data = pictures if modality == "image" else small(modality, 240)
    shape = {"image": (3, 8, 8), "signal": (2, 8), "table": (5,), "text": (None, 4)}[modality]
    made, _ = _attack(kind, data, _release(data, Nothing(*shape)), **{**LONGER, "epochs": 4})
    for name, figure in made.figures.items():
        assert figure.is_chance and figure.low <= figure.value <= figure.high, name


@pytest.mark.parametrize(("kind", "modality"), EVERY)
def test_every_modality_runs_and_can_be_attacked_again(kind, modality):
    data = small(modality, 240)
    release = _release(data)
    made, trained = _attack(kind, data, release)
    assert kind().suits(View(release.shape), release.schema)
    assert (
        set(made.figures) == FIGURES[modality]
        and made.decoder == kind.title
        and made.n == len(data.part("test"))
    )
    for figure in made.figures.values():
        assert (
            figure.low <= figure.value <= figure.high
            and figure.better == "lower"
            and figure.n == made.n
        )
        assert np.isfinite([figure.low, figure.high, figure.chance]).all()
    inputs, rebuilt = (
        release.schema.inputs(data.part("test"))[:],
        trained.rebuild(_part(release, data)),
    )
    assert rebuilt.shape == inputs.shape and rebuilt.dtype == inputs.dtype
    if modality == "text":
        np.testing.assert_array_equal(rebuilt == 0, inputs == 0)
        assert list(made.originals) == list(data.records[data.part("test").rows[:3]])

    raw, again = (
        _part(Release.identity(release.schema), data),
        _part(rebuilt_release(trained, release), data),
    )
    assert again.view == raw.view
    for size in (16, len(again)):
        whole = [z for z, _ in again.batches(size)]
        assert whole[0].dtype == next(iter(raw.batches(size)))[0].dtype
        np.testing.assert_allclose(torch.cat(whole).numpy(), rebuilt, atol=1e-4)


@pytest.mark.parametrize("modality", MODALITIES)
def test_one_vector_per_record_is_for_the_rebuilder(modality):
    data = small(modality, 240)
    release = _release(data, Flat())
    view = View(release.shape)
    assert Rebuilder().suits(view, release.schema) and ReversedExtractor().suits(
        view, release.schema
    ) == (modality == "table")
    _, trained = _attack(Rebuilder, data, release)
    rebuilt, inputs = (
        trained.rebuild(_part(release, data)),
        release.schema.inputs(data.part("test"))[:],
    )
    assert rebuilt.shape == inputs.shape and rebuilt.dtype == inputs.dtype
    again = next(iter(_part(rebuilt_release(trained, release), data).batches(1000)))[0]
    np.testing.assert_allclose(again.numpy(), rebuilt, atol=1e-4)
    if modality != "table":
        with pytest.raises(PrivetError, match="cannot make"):
            _attack(ReversedExtractor, data, release)


def test_a_vector_of_a_picture_is_read(pictures):
    made, _ = _attack(
        Rebuilder, pictures, _release(pictures, Flat()), **{**LONGER, "epochs": 12, "lr": 5e-3}
    )
    assert made.figures["psnr"].value > made.figures["psnr"].chance + 1
    assert made.figures["ssim"].value > made.figures["ssim"].chance


@pytest.mark.parametrize("modality", MODALITIES)
def test_raw_records_are_rebuilt(modality, pictures):
    data = pictures if modality == "image" else small(modality, 240)
    made, _ = _attack(
        Rebuilder, data, Release.identity(learn_schema(data)), **{**LONGER, "epochs": 12}
    )
    assert not any(figure.is_chance for figure in made.figures.values())
    assert made.value > (24 if modality == "image" else 0.6)


@pytest.mark.parametrize("shape", [(3, 48, 48), (50, 30), (6, 5, 40), (9, 2, 2)])
def test_maps_of_any_size_fit(shape, pictures):
    few = pictures.take(slice(0, 80))
    made, _ = _attack(Rebuilder, few, _release(few, Nothing(*shape)), width=0.02, shown=0)
    assert np.isfinite(made.value) and made.rebuilt == ()


@pytest.mark.parametrize("kind", QUICK)
def test_more_time_gives_more_words(kind):
    data = small("text", 240)
    little, much = (
        _attack(kind, data, _release(data), batch=16, epochs=epochs, lr=1e-2)[0]
        for epochs in (1, 20)
    )
    assert little.measure == "share of words rebuilt" and 0 <= little.value < much.value <= 1
    assert much.value > much.figures["words"].chance


@pytest.mark.parametrize("kind", QUICK)
def test_same_seed_same_figures_and_fresh_noise(kind, pictures):
    few = pictures.take(slice(0, 100))
    release = _noisy(few)
    first, trained = _attack(kind, few, release)
    assert first == _attack(kind, few, release)[0]
    assert first.value != _attack(kind, few, release, seed=1)[0].value
    test = _part(release, few)
    assert (trained.rebuild(test) != trained.rebuild(test)).any()


def test_people_of_the_test_part_are_not_learned_from(pictures):
    """Other test people, same decoder: what is made of those who stayed is the same, and fewer
    people are less sure."""
    release = _release(pictures, Half())
    seen, select = (_part(release, pictures, part) for part in ("attack", "select"))
    tests = [Released(release, pictures.part("test").take(slice(0, n)), [], CPU) for n in (3, None)]
    few, everybody = (
        ReversedExtractor(**QUICK[ReversedExtractor]).attack(
            seen, select, test, release.schema, progress=False
        )[0]
        for test in tests
    )
    assert few.rebuilt == everybody.rebuilt
    wide, narrow = (
        made.figures["psnr"].high - made.figures["psnr"].low for made in (few, everybody)
    )
    assert wide > narrow


class Prepared(nn.Module):
    def forward(self, z):
        return prepare(z)


class Line(NetworkAdversary):
    name, title = "line", "line"

    def build(self, view, outputs):
        return nn.Sequential(Prepared(), nn.Flatten(), nn.Linear(int(np.prod(view.shape)), outputs))


def test_an_adversary_reads_rebuilt_pictures():
    data = small("image", 240)
    data = replace(data, records=data.records[:, :, :24, :24])
    release = _noisy(data)
    _, trained = _attack(Rebuilder, data, release, **LONGER)
    seen, select, test = (
        _part(rebuilt_release(trained, release), data, part, ["u"])
        for part in ("attack", "select", "test")
    )
    line = Line(epochs=5, least=40, batch=32).attack(seen, select, data.attribute("u"))
    assert ranking_score(test.labels("u"), line.answers(test)) > 0.9
