"""The LSTM of DP-SGD: the same network as nn.LSTM, the same gradients of rows as Opacus' own, and a
batch that is clipped in pieces is clipped as one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from privet.language.models import dp_sgd
from privet.language.models.row_lstm import RowLSTM, known_to_opacus
from privet.train.game import Run

LAYERS = pytest.mark.parametrize("layers", [1, 2])


@LAYERS
def test_it_is_the_same_network_with_the_same_gradients(layers: int) -> None:
    torch.manual_seed(0)
    lstm = nn.LSTM(5, 7, num_layers=layers, batch_first=True)
    rows = RowLSTM(5, 7, num_layers=layers)
    rows.load_state_dict(lstm.state_dict())
    x, weight = torch.randn(6, 9, 5), torch.randn(6, 9, 7)
    found = []
    for module in (lstm, rows):
        inputs = x.clone().requires_grad_()
        states = module(inputs)[0]
        (states * weight).sum().backward()
        found.append([states, inputs.grad, *(p.grad for _, p in sorted(module.named_parameters()))])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@LAYERS
def test_gradients_of_rows_are_those_of_opacus(layers: int) -> None:
    grad_sample = pytest.importorskip("opacus.grad_sample")
    oracle_class = pytest.importorskip("opacus.layers").DPLSTM
    torch.manual_seed(0)
    oracle = oracle_class(5, 7, num_layers=layers, batch_first=True)
    rows = known_to_opacus()(5, 7, num_layers=layers)
    rows.load_state_dict(oracle.state_dict())
    x, weight = torch.randn(6, 9, 5), torch.randn(6, 9, 7)
    found = []
    for module in (oracle, rows):
        watched = grad_sample.GradSampleModule(module)
        (watched(x.clone().requires_grad_())[0] * weight).sum((1, 2)).mean().backward()
        found.append({name: p.grad_sample for name, p in module.named_parameters()})
    assert set(found[0]) == set(found[1])
    for name, gradients in found[0].items():
        torch.testing.assert_close(gradients, found[1][name])


def test_a_batch_in_pieces_is_clipped_and_summed_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opacus")
    from privet.language.models.networks import build_network
    from privet.language.models.settings import Settings

    settings = Settings(width=8, longest=6, batch=10, dropout=0.0, clip=0.5, regularizer="dp")
    torch.manual_seed(0)
    ids = torch.randint(3, 20, (10, 7)).numpy()
    weights = []
    for size in (64, 3):
        monkeypatch.setattr(dp_sgd, "ROWS_AT_ONCE", {"cpu": size})
        torch.manual_seed(1)
        model = build_network(settings, 20, dp_sgd.lstm_class("lstm"))
        budget = settings.budget(len(ids))
        run = Run(progress=False, device="cpu")
        # Every row is in every batch, and there is no noise: steps can be compared.
        dp_sgd.train_with_dp(model, ids, budget, 0.1, run, torch.device("cpu"), noise=0.0)
        weights.append(model.state_dict())
    assert budget.rate == 1 and budget.steps == settings.epochs
    for name, values in weights[0].items():
        torch.testing.assert_close(values, weights[1][name], rtol=1e-3, atol=1e-4)
