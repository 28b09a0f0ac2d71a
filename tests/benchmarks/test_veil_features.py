"""What moves codes of two values together, and features of patches that nobody labelled."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from veil_parts import moved, patches


def two_values(count: int = 600) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Codes of which one value's are shifted and stretched; all of one mean would be 0."""
    torch.manual_seed(0)
    codes, values = {}, {}
    for part in ("fit", "test"):
        u = torch.arange(count) % 2
        z = torch.randn(count, 3)
        z[u == 1] = z[u == 1] * torch.tensor([2.0, 1.0, 0.5]) + torch.tensor([1.0, 0.0, -1.0])
        codes[part], values[part] = z, u
    return codes, values


def test_linear_maps_give_both_values_one_mean_and_covariance():
    codes, u = two_values()
    after = moved.mapped(codes, u, ("fit",))
    one, other = (after["fit"][u["fit"] == value] for value in (0, 1))
    assert torch.allclose(one.mean(0), other.mean(0), atol=1e-4)
    assert torch.allclose(torch.cov(one.T), torch.cov(other.T), atol=0.2)
    before = [codes["test"][u["test"] == value] for value in (0, 1)]
    new = [after["test"][u["test"] == value] for value in (0, 1)]
    assert moved.kernel_distance(*new) < 0.1 * moved.kernel_distance(*before)


def test_the_game_hides_what_linear_maps_leave():
    torch.manual_seed(0)
    u = torch.arange(1200) % 2
    z = torch.randn(1200, 2)
    ring = z / z.norm(dim=1, keepdim=True) * 2**0.5  # the same mean and covariance
    codes, values = {"fit": torch.where((u == 1)[:, None], ring, z)}, {"fit": u}
    before = moved.mapped(codes, values, ("fit",))
    game = moved.Game(steps=150, batch=256, hidden=64, lr=5e-3)
    after = moved.play(before, values, ("fit",), game)

    def apart(some: torch.Tensor) -> float:
        return float(moved.kernel_distance(some[u == 0], some[u == 1]))

    assert apart(after["fit"]) < 0.5 * apart(before["fit"])


def test_two_sets_of_one_law_are_not_apart():
    torch.manual_seed(0)
    distances = [float(moved.kernel_distance(*torch.randn(2, 400, 4))) for _ in range(20)]
    assert abs(sum(distances) / 20) < 0.005
    assert moved.kernel_distance(torch.zeros(4, 2), torch.full((5, 2), 9.0)) > 7.9


def test_a_record_twice_in_a_batch_is_no_wrong_answer():
    views = torch.eye(4)
    views[3] = views[0]
    group = torch.zeros(4, dtype=torch.long)
    twice = patches.contrast(views, views, torch.tensor([0, 1, 2, 0]), group)
    stranger = patches.contrast(views, views, torch.arange(4), group)
    assert twice < 0.1 < stranger


def test_records_meet_those_of_their_group_only():
    views = torch.ones(4, 8)
    alone = patches.contrast(views, views, torch.arange(4), torch.arange(4))
    assert float(alone) < 1e-4


def test_a_network_of_patches_learns_and_gives_all_places():
    torch.manual_seed(0)
    x = torch.randint(0, 256, (30, 3, 64, 64), dtype=torch.uint8)
    net = patches.teach(x, torch.arange(30) // 3, x[:10], steps=2, width=4, size=10)
    found = patches.features(net, x)
    assert found.shape == (30, patches.PLACES * 64)
    assert torch.equal(found, patches.features(net, x))


def test_components_have_one_deviation_and_no_mean():
    torch.manual_seed(0)
    sets = {"fit": torch.randn(500, 6) * torch.tensor([5.0, 3.0, 2.0, 1.0, 1.0, 1.0]) + 4}
    made = patches.components(sets, 3, ("fit",))["fit"]
    assert torch.allclose(made.mean(0), torch.zeros(3), atol=1e-4)
    assert torch.allclose(torch.cov(made.T), torch.eye(3), atol=1e-3)
