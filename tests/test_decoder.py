"""What a decoder makes of released records: better than knowing nothing where they hold the picture, and no better where they do not."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

from privet import nets
from privet.adversaries import Released
from privet.adversaries.decoder import Decoder
from privet.data.schema import learn_schema
from privet.release import Release
from small import small

CPU = torch.device("cpu")


class Thumbnail(nn.Module):
    """A picture a quarter of the size: easy to make the picture from."""

    shape = (3, 8, 8)

    def forward(self, x):
        return F.avg_pool2d(x.float() / 127.5 - 1, 4)


class Nothing(nn.Module):
    shape = (3, 8, 8)

    def forward(self, x):
        return torch.zeros(len(x), *self.shape)


def _release(schema, module=None) -> Release:
    if module is not None:
        return Release(schema, ("thumbnail", {}), module, None)
    torch.manual_seed(0)
    return Release(schema, ("extractor", {"width": 0.1}), nets.build("extractor", schema, {"width": 0.1}), None)


def _attack(data, release, **settings):
    seen, test = (Released(release, data.part(part), [], CPU) for part in ("attack", "test"))
    return Decoder(**{"epochs": 1, "width": 0.1, "shown": 3, **settings}).attack(seen, test, release.schema, progress=False)


def _psnr(error: np.ndarray) -> float:
    return float(10 * np.log10(255.0**2 / np.square(error).mean()))


@pytest.fixture(scope="module")
def pictures():
    return small("image", 400)


def test_a_thumbnail_gives_more_than_the_mean_picture(pictures):
    made = _attack(pictures, _release(learn_schema(pictures), Thumbnail()), epochs=20, batch=16, lr=1e-2)
    test = pictures.records[pictures.part("test").rows].astype(float)
    mean = pictures.records[pictures.part("attack").rows].mean(0)
    assert made.measure == "PSNR in dB" and made.n == len(test)
    assert made.value > _psnr(test - mean) > _psnr(test - mean.mean())


def test_nothing_gives_no_more_than_the_best_single_picture(pictures):
    made = _attack(pictures, _release(learn_schema(pictures), Nothing()), epochs=10, batch=16, lr=1e-2)
    test = pictures.records[pictures.part("test").rows].astype(float)
    assert made.value <= _psnr(test - test.mean(0))


def test_pictures_come_back_as_png(pictures):
    made = _attack(pictures, _release(learn_schema(pictures), Thumbnail()))
    assert len(made.originals) == len(made.rebuilt) == 3
    for shown in (*made.originals, *made.rebuilt):
        with Image.open(io.BytesIO(base64.b64decode(shown, validate=True))) as picture:
            assert picture.format == "PNG" and picture.size == (32, 32) and picture.mode == "RGB"
    first = np.asarray(Image.open(io.BytesIO(base64.b64decode(made.originals[0]))))
    np.testing.assert_array_equal(first.transpose(2, 0, 1), pictures.records[pictures.part("test").rows[0]])


def test_texts_give_a_share_of_words():
    data = small("text", 400)
    release = _release(learn_schema(data))
    little, much = (_attack(data, release, epochs=epochs, lr=1e-2) for epochs in (1, 30))
    assert little.measure == "share of words rebuilt"
    assert 0 <= little.value < much.value <= 1, "more time did not give more words"
    assert list(much.originals) == list(data.records[data.part("test").rows[:3]])
    assert all(isinstance(line, str) for line in much.rebuilt)


@pytest.mark.parametrize("modality", ["table", "signal"])
def test_numbers_give_a_share_of_variance(modality):
    data = small(modality, 400)
    made = _attack(data, Release.identity(learn_schema(data)), epochs=30, lr=1e-2)
    assert made.measure == "share of variance explained" and 0.5 < made.value <= 1
    assert made.originals == made.rebuilt == ()


def test_same_seed_same_rebuilding(pictures):
    release = _release(learn_schema(pictures))
    assert _attack(pictures, release) == _attack(pictures, release)


def test_people_of_the_test_part_are_not_learned_from(pictures):
    """Other test people, same decoder: what is made of those who stayed is the same."""
    release = _release(learn_schema(pictures), Thumbnail())
    seen, test = pictures.part("attack"), pictures.part("test")
    views = [Released(release, test.take(slice(0, n)), [], CPU) for n in (3, len(test))]
    few, all_of_them = (
        Decoder(epochs=1, width=0.1, shown=3).attack(Released(release, seen, [], CPU), view, release.schema, progress=False)
        for view in views
    )
    assert few.rebuilt == all_of_them.rebuilt
