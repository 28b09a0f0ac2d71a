"""U-Nets take pictures of any size, and their noise map is one value per place of the picture
itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from privet.core.errors import PrivetError
from privet.data.schema import ImageSchema
from privet.nets.unet import SIZES, STEP, NoiseMap, UNet, segmenter
from privet.release.graph import check, export
from privet.release.noise import Noise
from privet.release.release import Release


def _parameters(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize("size", [(96, 96), (104, 80), (64, 64), (33, 47), (16, 31)])
def test_what_comes_out_has_the_size_of_what_went_in(size):
    assert UNet((3, *size), 2, (4, 6, 8, 10))(torch.randn(2, 3, *size)).shape == (2, 2, *size)


def test_three_sizes_grow_and_a_picture_too_small_is_said_so():
    counts = [_parameters(NoiseMap((3, 32, 32), size)) for size in ("small", "medium", "large")]
    assert (
        list(SIZES) == ["small", "medium", "large"]
        and 10_000 < counts[0] < counts[1] / 3 < counts[2] / 9 < 100_000
    )
    with pytest.raises(PrivetError, match="at least 16 pixels a side, not 8"):
        segmenter((3, 8, 40))
    with pytest.raises(PrivetError, match="no size of unoise 'middling'"):
        NoiseMap((3, 32, 32), "middling")


def test_every_place_sees_the_deepest_level_and_its_own():
    torch.manual_seed(0)
    net = UNet((1, 32, 32), 1, (16, 16, 16)).eval()
    x = torch.randn(8, 1, 32, 32, requires_grad=True)
    reach = torch.autograd.grad(net(x)[:, 0, 16, 16].sum(), x)[0][:, 0].abs().sum(0)
    assert reach[16, 16] > 0 and (reach > 0).any(1).sum() > 16


def test_the_map_scales_the_noise_of_its_place_in_every_channel():
    torch.manual_seed(0)
    veil = NoiseMap((3, 16, 16), "small", loud=2.0).eval()
    x = torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8)
    noise = torch.randn(2, 3, 16, 16)
    clean, noisy = veil(x, torch.zeros_like(noise)), veil(x, noise)
    shares = (noisy - clean) / (2.0 * noise)
    wanted = veil.map(x.float() / 127.5 - 1)
    assert ((wanted > 0) & (wanted < 1)).all() and torch.allclose(
        clean, x.float() / 127.5 - 1, atol=STEP
    )
    well = noise.abs() > 0.1  # elsewhere the grid's step is most of the quotient
    assert torch.allclose(shares[well], wanted.expand_as(shares)[well], atol=STEP / 0.1)
    assert torch.equal(noisy, torch.round(noisy / STEP) * STEP)


@pytest.mark.parametrize("size", [(33, 47)])
def test_the_exported_graph_is_the_network_at_odd_sizes(size):
    torch.manual_seed(0)
    schema = ImageSchema(3, *size)
    veil = NoiseMap(schema.shape, "large", 1.0)
    for norm in (m for m in veil.modules() if isinstance(m, torch.nn.BatchNorm2d)):
        norm.running_var.uniform_(0.5, 2.0)
    release = Release(
        schema,
        ("noise-map", {"size": "large", "loud": 1.0}),
        veil,
        Noise("gaussian", schema.shape, 1.0),
        {},
    )
    assert check(release, export(release)) <= 1e-4
    assert np.prod(release.shape) == 3 * size[0] * size[1]
