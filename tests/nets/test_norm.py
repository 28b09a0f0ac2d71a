"""Group normalisation in half precision."""

import pytest
import torch

from privet.nets.norm import GroupNorm


@pytest.mark.parametrize("offset", [0.0, 40.0])
def test_half_precision_stays_half_and_is_close(offset):
    torch.manual_seed(0)
    norm = GroupNorm(4, 16)
    with torch.no_grad():
        norm.weight.normal_()
        norm.bias.normal_()
    x = (offset + torch.randn(3, 16, 8, 8)).bfloat16()
    exact = torch.nn.functional.group_norm(x.float(), 4, norm.weight, norm.bias, norm.eps).detach()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = norm(x)
    assert half.dtype == torch.bfloat16
    assert float((half.detach().float() - exact).abs().max()) < 0.01 * float(exact.abs().max())


def test_gradients_reach_what_is_learned():
    norm = GroupNorm(2, 4)
    norm(torch.randn(2, 4, 3).bfloat16()).float().square().sum().backward()
    assert (
        norm.weight.grad is not None
        and norm.weight.grad.dtype == torch.float32
        and float(norm.weight.grad.abs().sum()) > 0
    )


def test_in_single_precision_it_is_that_of_torch():
    x = torch.randn(2, 4, 5)
    assert torch.equal(GroupNorm(2, 4)(x), torch.nn.GroupNorm(2, 4)(x))
