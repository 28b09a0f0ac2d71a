"""Rebuilder: the decoder of somebody who tries harder than the sources did.

A residual network that takes released records of any shape (`nets.rebuilder`), learned with AdamW
and one cycle of the rate. Of pictures it makes L1 + (1 - SSIM) small: the absolute error alone
gives blurred pictures that are close in PSNR and show little. It knows the release, so it also
learns from mirrored pictures, released anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import torch
from torch import Tensor, nn

from privet.adversaries.decoder import Reconstruction
from privet.adversaries.network_training import one_cycle
from privet.adversaries.released import Released, View
from privet.data.schema import Schema
from privet.nets.convolutions import prepare
from privet.nets.device import place
from privet.nets.rebuilder import Standard, rebuilder
from privet.nets.similarity import similarity

# Batches of 512 released records from which means and deviations are found.
STANDARDISING_BATCHES = 40


@dataclass(frozen=True, kw_only=True)
class Rebuilder(Reconstruction):
    """A residual decoder for released records of any shape. The other settings are those of
    `Reconstruction`.

    Parameters:
        mirrored: Whether to learn from mirrored pictures too.
    """

    epochs: int = 30
    least: int = 1500
    batch: int = 128
    decay: float = 1e-2
    mirrored: bool = True
    name: ClassVar[str] = "rebuilder"
    title: ClassVar[str] = "residual decoder"

    def suits(self, view: View, schema: Schema) -> bool:
        return not view.is_text or schema.modality == "text"

    def build(self, seen: Released, schema: Schema, mean: Tensor) -> nn.Module:
        net = place(rebuilder(schema, seen.view.shape, self.width, mean), seen.feed.device)
        if isinstance(net.standard, Standard):
            batches = islice(seen.batches(512, seed=0), STANDARDISING_BATCHES)
            net.standard.learn(prepare(z) for z, _ in batches)
        return net

    def rate(self, done: float) -> float:
        return one_cycle(done)

    def augment(self, x: Tensor) -> Tensor:
        if not self.mirrored or x.dtype != torch.uint8:
            return x
        return torch.where(torch.rand(len(x), 1, 1, 1, device=x.device) < 0.5, x.flip(3), x)

    def loss(self, made: Tensor, x: Tensor, view: View) -> Tensor:
        loss = super().loss(made, x, view)
        if x.dtype != torch.uint8:
            return loss
        return loss + 1 - similarity(made, x.float())[0].mean()
