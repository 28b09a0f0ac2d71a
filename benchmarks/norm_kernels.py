"""A candidate, measured by part n of learning.py: batch normalisation and ReLU as Triton kernels, channels last.

    y = max(0, gamma (x - mean) / deviation + beta),  mean and deviation of a channel over the batch

Forwards x is read twice and y written; backwards x and the gradient are read twice and the gradient of x written: eight passes over
memory for a layer, and nothing kept but x. The mask of the ReLU is found again from x.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

TILE = 8192
"""Numbers that a program holds at a time."""


@triton.jit
def _sums(x, g, scale, shift, partial, rows, per, C: tl.constexpr, R: tl.constexpr, BACK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Per program and channel: sums of x and x^2; or, backwards, of the masked gradient and of its product with x."""
    c, r = tl.arange(0, C), tl.arange(0, R)
    first, second = tl.zeros((R, C), tl.float32), tl.zeros((R, C), tl.float32)
    a, b = tl.zeros((C,), tl.float32), tl.zeros((C,), tl.float32)
    if BACK:
        a, b = tl.load(scale + c), tl.load(shift + c)
    begin = tl.program_id(0).to(tl.int64) * per
    for start in range(0, per, R):
        row = begin + start + r
        inside = (row < rows)[:, None]
        at = row[:, None] * C + c[None, :]
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        if BACK:
            slope = tl.load(g + at, mask=inside, other=0.0).to(tl.float32)
            slope = tl.where(value * a[None, :] + b[None, :] > 0, slope, 0.0)
            first += slope
            second += slope * value
        else:
            first += value
            second += value * value
    out = partial + tl.program_id(0) * 2 * C
    tl.store(out + c, tl.sum(first, 0))
    tl.store(out + C + c, tl.sum(second, 0))


@triton.jit
def _apply(x, g, out, a, b, k, scale, shift, rows, C: tl.constexpr, R: tl.constexpr, BACK: tl.constexpr):  # type: ignore[no-untyped-def]
    """max(0, scale x + shift); or, backwards, a masked gradient + b x + k."""
    c = tl.arange(0, C)
    row = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    inside = (row < rows)[:, None]
    at = row[:, None] * C + c[None, :]
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    made = value * tl.load(scale + c)[None, :] + tl.load(shift + c)[None, :]
    if BACK:
        slope = tl.load(g + at, mask=inside, other=0.0).to(tl.float32)
        slope = tl.where(made > 0, slope, 0.0)
        made = slope * tl.load(a + c)[None, :] + value * tl.load(b + c)[None, :] + tl.load(k + c)[None, :]
    else:
        made = tl.maximum(made, 0.0)
    tl.store(out + at, made.to(out.dtype.element_ty), mask=inside)


def _summed(x: Tensor, g: Tensor | None, scale: Tensor | None, shift: Tensor | None) -> Tensor:
    """(2, channels)"""
    channels = x.shape[1]
    rows, tile = x.numel() // channels, max(1, TILE // channels)
    programs = min(4 * torch.cuda.get_device_properties(x.device).multi_processor_count, triton.cdiv(rows, tile))
    per = triton.cdiv(triton.cdiv(rows, programs), tile) * tile
    partial = torch.empty(programs, 2, channels, device=x.device)
    back = g is not None
    _sums[(programs,)](
        x, g if back else x, scale if back else partial, shift if back else partial, partial, rows, per, channels, tile, back, num_warps=8
    )
    return partial.sum(0)


class NormRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> Tensor:
        channels, rows = x.shape[1], x.numel() // x.shape[1]
        first, second = _summed(x, None, None, None)
        mean = first / rows
        deviation = ((second / rows - mean * mean).clamp(min=0) + eps).rsqrt()
        scale = gamma * deviation
        shift = beta - mean * scale
        y, tile = torch.empty_like(x), max(1, TILE // channels)
        _apply[(triton.cdiv(rows, tile),)](x, x, y, scale, scale, scale, scale, shift, rows, channels, tile, False, num_warps=8)
        ctx.save_for_backward(x, mean, deviation, scale, shift)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, mean, deviation, scale, shift = ctx.saved_tensors
        g = gradients[0].contiguous(memory_format=torch.channels_last)
        channels, rows = x.shape[1], x.numel() // x.shape[1]
        to_beta, with_x = _summed(x, g, scale, shift)
        to_gamma = deviation * (with_x - mean * to_beta)
        b = -scale * deviation * to_gamma / rows
        k = -scale * to_beta / rows - b * mean
        out, tile = torch.empty_like(x), max(1, TILE // channels)
        _apply[(triton.cdiv(rows, tile),)](x, g, out, scale, b, k, scale, shift, rows, channels, tile, True, num_warps=8)
        return out, to_gamma, to_beta, None


def norm_relu(x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    return NormRelu.apply(x, gamma, beta, eps)  # type: ignore[no-any-return,no-untyped-call]
