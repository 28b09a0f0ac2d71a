"""The residual network: one body for every shape, and pictures moved as they may be."""

from __future__ import annotations

import pytest
import torch

from privet.nets.resnet import BODY, Block, Jitter, ResNet, halvings
from privet.nets.transformer import positions


def _parameters(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(
    "shape", [(3, 64, 64), (3, 218, 178), (128, 54, 44), (128, 16, 16), (64, 8, 8), (1, 1, 1)]
)
def test_the_body_is_the_same_for_every_shape_and_of_moderate_size(shape):
    with torch.device("meta"):
        here, there = ResNet(shape, 2), ResNet((3, 32, 32), 2)
    for part in ("body", "head"):
        one, other = (getattr(net, part).state_dict() for net in (here, there))
        assert {k: v.shape for k, v in one.items()} == {k: v.shape for k, v in other.items()}
    assert _parameters(here) < 11e6
    assert here.stem[0].out_channels >= min(shape[0], BODY[0]), (
        "features are not squeezed before they are looked at"
    )


def test_a_picture_and_its_quarter_size_features_enter_the_body_alike():
    for picture in ((64, 64), (96, 96), (218, 178)):
        features = tuple(size // 4 for size in picture)
        entered = [min(size) / 2 ** halvings(size) for size in (picture, features)]
        assert entered[0] == pytest.approx(entered[1], rel=0.05)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_both_ways_through_a_block_have_one_size(size):
    assert Block(4, 8, 2, stride=2)(torch.randn(3, 4, size, size + 1)).shape == (
        3,
        8,
        -(-size // 2),
        -(-(size + 1) // 2),
    )
    assert Block(4, 8, 1, stride=2)(torch.randn(3, 4, size)).shape == (3, 8, -(-size // 2))


def test_channels_last_changes_no_answer():
    torch.manual_seed(0)
    net, x = ResNet((3, 32, 32), 2, 0.1).eval(), torch.randn(4, 3, 32, 32)
    before = net(x)
    torch.testing.assert_close(
        net.to(memory_format=torch.channels_last)(x.contiguous(memory_format=torch.channels_last)),
        before,
    )


def test_moving_is_off_outside_training_and_by_whole_pixels_inside():
    torch.manual_seed(0)
    x = torch.randint(0, 256, (60, 3, 12, 12), dtype=torch.uint8)
    jitter = Jitter(2)
    assert jitter.eval()(x) is x
    moved = jitter.train()(x)
    assert moved.dtype == torch.uint8 and moved.shape == x.shape

    def versions(picture: torch.Tensor) -> list[torch.Tensor]:
        """The inner 8 x 8 of every picture that mirroring and shifts by up to two can give; the
        mirrored ones last."""
        both = (picture, picture.flip(2))
        return [
            p[:, 2 + a : 10 + a, 2 + b : 10 + b]
            for p in both
            for a in range(-2, 3)
            for b in range(-2, 3)
        ]

    def which(moved: torch.Tensor) -> list[int]:
        found = [
            [i for i, v in enumerate(versions(was)) if torch.equal(v, got[:, 2:10, 2:10])]
            for was, got in zip(x, moved, strict=True)
        ]
        assert all(len(places) == 1 for places in found), "each record is one of its own versions"
        return [places[0] for places in found]

    assert 15 < sum(place >= 25 for place in which(moved)) < 45 and len(set(which(moved))) > 15, (
        "records are moved independently"
    )
    assert max(which(Jitter(2, mirror=False)(x))) < 25


def test_positions_differ_and_do_not_depend_on_the_length():
    short, long = positions(10, 16), positions(40, 16)
    torch.testing.assert_close(short, long[:10])
    assert torch.pdist(long).min() > 0.1
