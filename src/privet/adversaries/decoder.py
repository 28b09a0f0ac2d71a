"""Reconstruction: what a decoder, learned from the *attack* people, rebuilds of the records of people it has not seen.

The decoder is the extractor reversed, as in TIPRDC's Figure 5. Pictures are learned with the absolute error, texts with the
cross-entropy of every word, tables and signals with the squared error.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from privet import nets
from privet.adversaries.released import Released
from privet.data.dataset import Array
from privet.data.schema import Schema, TextSchema
from privet.device import place, precision
from privet.evidence.figures import Rebuilt
from privet.feed import Batch
from privet.progress import bar


@dataclass(frozen=True, kw_only=True)
class Decoder:
    epochs: int = 10
    batch: int = 64
    lr: float = 1e-3
    width: float = 1.0
    shown: int = 8
    """How many records to show beside what was made of them."""

    def attack(self, seen: Released, test: Released, schema: Schema, seed: int = 0, progress: bool = True) -> Rebuilt:
        torch.manual_seed(seed)
        device = seen.feed.device
        net = place(nets.plan(schema).decoder(seen.release.shape, self.width), device)
        optimiser = torch.optim.Adam(net.parameters(), lr=self.lr)
        with bar("rebuilding", self.epochs, progress) as tick:
            for epoch in range(self.epochs):
                net.train()
                order = np.random.default_rng([seed, epoch]).permutation(len(seen))
                size = min(self.batch, len(seen))
                for batch in seen.feed.batches([order[s : s + size] for s in range(0, len(order) - size + 1, size)]):
                    with torch.no_grad():
                        z = seen.release.forward(batch.x)
                    with precision(device):
                        loss = _distance(net(z), batch.x)
                    optimiser.zero_grad(set_to_none=True)
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimiser.step()
                tick(epoch + 1, f"loss {loss.item():.3f}")
        return self._judge(net, test, schema)

    @torch.no_grad()
    def _judge(self, net: nn.Module, test: Released, schema: Schema) -> Rebuilt:
        net.eval()
        parts, first = [], None
        for batch in test.feed.batches([np.arange(s, min(s + 256, len(test))) for s in range(0, len(test), 256)]):
            made = net(test.release.forward(batch.x)).float()
            parts.append(_closeness(made, batch.x))
            first = first or (batch, made)
        assert first is not None
        spread = np.concatenate(parts).mean(0)
        measure, value = {
            "image": ("PSNR in dB", float(10 * np.log10(255.0**2 / max(spread[0], 1e-9)))),
            "text": ("share of words rebuilt", float(spread[0] / max(spread[1], 1e-9))),
        }.get(schema.modality, ("share of variance explained", float(1 - spread[0] / max(spread[1], 1e-9))))
        originals, rebuilt = _show(*first, schema, self.shown)
        return Rebuilt(measure, value, len(test), originals, rebuilt)


def _distance(made: Tensor, x: Tensor) -> Tensor:
    if x.dtype == torch.int64:
        return F.cross_entropy(made.float().flatten(0, 1), x.flatten(), ignore_index=0)
    if x.dtype == torch.uint8:
        return (made - x.float()).abs().mean() / 255.0
    return F.mse_loss(made.float(), x)


def _closeness(made: Tensor, x: Tensor) -> Array:
    """Per record: squared error (and variance), or words right (and words)."""
    if x.dtype == torch.int64:
        word = x != 0
        return torch.stack([((made.argmax(2) == x) & word).sum(1), word.sum(1)], 1).double().cpu().numpy()
    target = x.float().flatten(1)
    error = (made.flatten(1) - target).square().mean(1)
    return torch.stack([error, target.square().mean(1)], 1).double().cpu().numpy()


def _show(batch: Batch, made: Tensor, schema: Schema, n: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    x = batch.x[:n]
    if schema.modality == "image":
        return tuple(_png(p) for p in x.cpu().numpy()), tuple(_png(p) for p in made[:n].round().clamp(0, 255).byte().cpu().numpy())
    if schema.modality == "text":
        words = made[:n].argmax(2) * (x != 0)
        text = cast(TextSchema, schema)
        return tuple(text.decode(x.cpu().numpy())), tuple(text.decode(words.cpu().numpy()))
    return (), ()


def _png(picture: Array) -> str:
    buffer = io.BytesIO()
    Image.fromarray(picture.transpose(1, 2, 0).squeeze()).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()
