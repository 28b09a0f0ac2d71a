"""The network made for this kind of record: residual convolutions for maps and signals, LSTMs for texts, deep layers for vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from torch import nn

from privet.adversaries.adversary import Adversary
from privet.adversaries.released import View
from privet.nets import convolutions, sequences, vectors

FEW_CHANNELS = 16
"""Large maps of few channels are pictures or signals themselves; they get one more step in front."""


@dataclass(frozen=True, kw_only=True)
class Network(Adversary):
    name: ClassVar[str] = "network"

    def build(self, view: View, classes: int) -> nn.Module:
        if view.vocabulary:
            words = sequences.Extractor(view.vocabulary, self.width)
            return nn.Sequential(words, sequences.Classifier(words.shape, classes, self.width))
        if view.shape[0] is None:
            return sequences.Classifier(view.shape, classes, self.width)
        shape = cast(Sequence[int], view.shape)
        if len(shape) == 1:
            return nn.Sequential(nn.BatchNorm1d(shape[0], affine=False), vectors.Classifier(shape, classes, self.width))
        whole = shape[0] <= FEW_CHANNELS and min(shape[1:]) >= convolutions.SMALLEST
        steps = (64, *convolutions.RESIDUAL) if whole else convolutions.RESIDUAL
        return convolutions.ResidualClassifier(shape, classes, self.width, steps)
