"""What describes a record before anything is learned."""

from __future__ import annotations

import math

import pytest
import torch

from privet.nets.contrast_within import ContrastWithin
from privet.nets.descriptors import (
    ORIENTATIONS,
    PictureDescriptors,
    WindowDescriptors,
    contrast,
    edges,
)
from privet.nets.views import holed, moved, relit


def waves(angle: float) -> torch.Tensor:
    """A picture (1, 1, 64, 64) whose brightness changes along a direction."""
    place = torch.arange(64.0)
    along = place.view(1, -1) * math.cos(angle) + place.view(-1, 1) * math.sin(angle)
    return torch.sin(along / 2).view(1, 1, 64, 64)


@pytest.mark.parametrize("number", range(0, ORIENTATIONS // 2))
def test_edges_are_strongest_along_which_brightness_changes(number):
    found = edges(waves(2 * math.pi * number / ORIENTATIONS)).mean((0, 2, 3))
    opposite = number + ORIENTATIONS // 2
    assert set(found.topk(2).indices.tolist()) == {number, opposite}


def test_edges_and_contrast_hardly_change_under_another_light():
    torch.manual_seed(0)
    picture = torch.rand(4, 1, 64, 64)
    for describe in (edges, contrast):
        plain, brighter = describe(picture), describe(1.3 * picture + 0.1)
        assert float((plain - brighter).abs().mean()) < 0.05 * float(plain.std())


def test_a_plain_picture_has_neither_edges_nor_contrast():
    plain = torch.full((1, 1, 64, 64), 0.4)
    assert float(edges(plain).max()) < 0.1 and float(contrast(plain).abs().max()) < 1e-5


@pytest.mark.parametrize("shape", [(3, 64, 64), (1, 48, 40), (3, 218, 178)])
@pytest.mark.parametrize("learned", [False, True])
def test_pictures_of_every_size_have_as_many_numbers_as_was_said(shape, learned):
    describe = PictureDescriptors(shape, learned, 0.05).eval()
    found = describe(torch.rand(2, *shape) * 2 - 1)
    assert found.shape == (2, sum(describe.sizes))
    assert len(describe.weights) == len(describe.sizes) == 3 + learned


def test_a_window_and_the_same_begun_later_are_described_alike():
    torch.manual_seed(1)
    window = torch.randn(3, 4, 32)
    describe = WindowDescriptors((4, 32))
    torch.testing.assert_close(describe(window), describe(window.roll(5, 2)), atol=1e-4, rtol=1e-3)


def test_views_keep_what_a_picture_shows_and_differ_each_time():
    torch.manual_seed(2)
    picture = waves(0.3).expand(8, 3, 64, 64)
    for view in (moved, relit, holed):
        one, other = view(picture), view(picture)
        assert one.shape == picture.shape and not torch.equal(one, other)
        assert float(one.abs().max()) <= 1.001


def test_only_pictures_of_the_same_group_are_compared():
    """Where nobody else is in one's group, one is found for certain."""
    torch.manual_seed(3)
    net = ContrastWithin((3, 32, 32), 0.1)
    picture = torch.rand(6, 3, 32, 32) * 2 - 1
    alone, found = net.contrast(picture, torch.arange(6))
    together, _ = net.contrast(picture, torch.zeros(6, dtype=torch.int64))
    assert alone.item() < 1e-3 < together.item() and found.item() == 1.0
