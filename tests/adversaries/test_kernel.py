"""The kernel machine's equations, where features are nearly the same."""

from __future__ import annotations

import pytest
import torch

from privet.adversaries.kernel import solve


def test_features_that_are_nearly_the_same_are_no_obstacle():
    """A Gram matrix with an eigenvalue below 0, as rounding gives one: the ridge grows until it
    covers it, and the answer is finite."""
    gram = torch.ones(3, 3, dtype=torch.float64) - 1e-3 * torch.diag(
        torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    )
    assert torch.linalg.eigvalsh(gram)[0] < 0
    found = solve(gram, torch.ones(3, 1, dtype=torch.float64), 1e-6)
    assert found.isfinite().all() and torch.allclose(
        gram @ found, torch.ones(3, 1, dtype=torch.float64), atol=0.05
    )


def test_a_healthy_matrix_gets_the_ridge_that_was_asked_for():
    gram, cross = (
        torch.diag(torch.tensor([1.0, 3.0], dtype=torch.float64)),
        torch.ones(2, 1, dtype=torch.float64),
    )
    wanted = torch.tensor([[1 / 1.2], [1 / 3.2]], dtype=torch.float64)
    assert torch.allclose(solve(gram, cross, 0.1), wanted)


def test_what_is_not_finite_is_said_and_not_tried_for_ever():
    with pytest.raises(ValueError, match="not finite"):
        solve(
            torch.full((2, 2), torch.nan, dtype=torch.float64),
            torch.ones(2, 1, dtype=torch.float64),
            1e-4,
        )
