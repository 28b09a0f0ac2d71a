"""An LSTM whose backward pass keeps what the gradient of every single row follows from.

With delta the slope of a row's loss at the gates before their nonlinearities, the row's gradients
are sums over its places t::

    input weights      sum_t delta_t x_t'
    recurrent weights  sum_t delta_t h_(t-1)'
    either bias        sum_t delta_t

DP-SGD clips them row by row. Opacus' own LSTM makes the gradients of all rows anew at every place;
here the deltas are kept, and one product at the end makes them once.
"""

from __future__ import annotations

import importlib
import math
from typing import Any, cast

import torch
from torch import Tensor, nn


class RowLSTM(nn.Module):
    """Like nn.LSTM with batch_first, from a state of zeros; its parameters have the same names.

    Parameters:
        kept: Of each layer, after a backward pass: its input, the state before each place, and the
            deltas; (n, t, ...) each.
    """

    def __init__(
        self, inputs: int, width: int, num_layers: int = 1, batch_first: bool = True
    ) -> None:
        super().__init__()
        assert batch_first, "rows come first"
        self.layers = num_layers
        self.kept: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        for layer in range(num_layers):
            sizes = {"weight_ih": (inputs if layer == 0 else width,), "weight_hh": (width,)}
            for name, size in {**sizes, "bias_ih": (), "bias_hh": ()}.items():
                values = torch.empty(4 * width, *size)
                nn.init.uniform_(values, -1 / math.sqrt(width), 1 / math.sqrt(width))
                self.register_parameter(f"{name}_l{layer}", nn.Parameter(values))

    def of_layer(self, layer: int) -> tuple[nn.Parameter, ...]:
        """Input weights, recurrent weights, and both biases."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return tuple(cast(nn.Parameter, getattr(self, f"{name}_l{layer}")) for name in names)

    def forward(self, x: Tensor) -> tuple[Tensor]:
        """The state after every place, (n, t, width)."""
        for layer in range(self.layers):
            into, recurrent, bias, other = self.of_layer(layer)
            x = _Layer.apply(x, into, recurrent, bias + other, self.kept, layer)  # type: ignore
        return (x,)

    def row_gradients(self, scale: float = 1.0) -> dict[nn.Parameter, Tensor]:
        """Of every parameter, the gradient (n, ...) of each row after a backward pass."""
        found: dict[nn.Parameter, Tensor] = {}
        for layer, (x, before, delta) in self.kept.items():
            into, recurrent, bias, other = self.of_layer(layer)
            delta = scale * delta
            found[into] = delta.transpose(1, 2) @ x
            found[recurrent] = delta.transpose(1, 2) @ before
            found[bias] = delta.sum(1)
            found[other] = found[bias].clone()
        self.kept.clear()
        return found


class _Layer(torch.autograd.Function):
    """One layer; places come first inside, so that each is one piece of memory."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, into: Tensor, recurrent: Tensor, bias: Tensor, *to: Any
    ) -> Any:
        gates = (x @ into.T + bias).transpose(0, 1).contiguous()
        states, cells = (gates.new_zeros(x.shape[1] + 1, len(x), len(into) // 4) for _ in range(2))
        for t in range(x.shape[1]):
            here = gates[t].addmm_(states[t], recurrent.T)
            i, f, g, o = here.chunk(4, 1)
            for gate in (i, f, o):
                gate.sigmoid_()
            g.tanh_()
            torch.addcmul(f * cells[t], i, g, out=cells[t + 1])
            torch.mul(o, cells[t + 1].tanh(), out=states[t + 1])
        ctx.save_for_backward(x, into, recurrent, gates, states, cells)
        ctx.to = to
        return states[1:].transpose(0, 1).contiguous()

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        x, into, recurrent, gates, states, cells = ctx.saved_tensors
        out = slopes[0].transpose(0, 1).contiguous()
        i, f, g, o = gates.chunk(4, 2)
        bent = cells[1:].tanh()
        # What a slope of the state or of the cell is multiplied by at each gate: all places at
        # once, so that the loop is short.
        of_cell = torch.cat([g * i * (1 - i), cells[:-1] * f * (1 - f), i * (1 - g * g)], 2)
        of_state, to_cell = bent * o * (1 - o), o * (1 - bent * bent)
        delta = torch.empty_like(gates)
        width = states.shape[2]
        state, cell = torch.zeros_like(states[0]), torch.zeros_like(cells[0])
        for t in reversed(range(len(gates))):
            state = state + out[t]
            cell = torch.addcmul(cell, state, to_cell[t])
            delta[t, :, : 3 * width] = of_cell[t] * cell.repeat(1, 3)
            delta[t, :, 3 * width :] = of_state[t] * state
            state, cell = delta[t] @ recurrent, cell * f[t]
        delta, before = delta.transpose(0, 1), states[:-1].transpose(0, 1)
        kept, layer = ctx.to
        kept[layer] = x, before, delta
        flat = delta.flatten(0, 1)
        return (
            delta @ into,
            flat.T @ x.flatten(0, 1),
            flat.T @ before.flatten(0, 1),
            flat.sum(0),
            None,
            None,
        )


def known_to_opacus() -> type[RowLSTM]:
    """The class, once Opacus knows how to get the gradients of its rows."""

    def sampler(module: RowLSTM, _inputs: Any, slopes: Tensor) -> dict[nn.Parameter, Tensor]:
        # The loss is a mean over rows, and Opacus wants each row's own.
        return module.row_gradients(len(slopes))

    importlib.import_module("opacus.grad_sample").register_grad_sampler(RowLSTM)(sampler)
    return RowLSTM
