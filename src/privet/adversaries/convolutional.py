"""The classifiers of TIPRDC's Tables 1 and 3 (KDD 2020), trained anew on released maps and signals.

They were made for features a quarter of a picture's size. Where whole pictures or signals are
released (few channels, large), the extractor's own front is put before them, so that each attacks
both with the depth it has in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from torch import nn

from privet.adversaries.network import StandardisedInput
from privet.adversaries.network_training import NetworkAdversary
from privet.adversaries.view import View
from privet.nets.convolutions import (
    RESIDUAL,
    SMALLEST,
    TRUNK,
    TRUNK_19,
    Classifier,
    Extractor,
    ResidualClassifier,
)

# Pictures and signals have at most so many channels; maps of features have more.
FEW_CHANNELS = 16


def is_raw_signal(shape: Sequence[int]) -> bool:
    """Whether these are pictures or signals themselves rather than features of them."""
    return shape[0] <= FEW_CHANNELS and min(shape[1:]) >= SMALLEST


@dataclass(frozen=True, kw_only=True)
class Table1Classifier(NetworkAdversary):
    """Table 1's classifier: 3 x conv3-256, pool, 3 x conv3-512, pool, 3 x conv3-512, pool, 2 x
    fc-4096, fc. Settings are those of `NetworkAdversary`.

    V-CL#16 of Table 3 is the same plan, so there is no second adversary of that name. Maps too
    small for three poolings get as many of the blocks as leave one step per axis.
    """

    plan: ClassVar[tuple[tuple[int, int], ...]] = TRUNK
    name: ClassVar[str] = "table-1"
    title: ClassVar[str] = "the sources' classifier (Table 1)"

    def takes(self, view: View) -> bool:
        sizes = cast(Sequence[int], view.shape[1:])
        return (view.is_map or view.is_series) and min(sizes) >= 2

    def build(self, view: View, outputs: int) -> nn.Module:
        shape = cast(Sequence[int], view.shape)
        parts: list[nn.Module] = [StandardisedInput(shape[0])]
        if is_raw_signal(shape):
            front = Extractor(shape, self.width)
            parts, shape = [*parts, front], front.shape
        return nn.Sequential(*parts, Classifier(shape, outputs, self.width, self.plan))


@dataclass(frozen=True, kw_only=True)
class VCL19(Table1Classifier):
    """Table 3's V-CL#19: as Table 1's classifier with four convolutions in each block. Settings are
    those of `NetworkAdversary`."""

    plan: ClassVar[tuple[tuple[int, int], ...]] = TRUNK_19
    name: ClassVar[str] = "v-cl-19"
    title: ClassVar[str] = "V-CL#19 (Table 3)"


@dataclass(frozen=True, kw_only=True)
class ResCL(NetworkAdversary):
    """Table 3's Res-CL: residual steps of 128, 256 and 512 channels, mean, fc; one step of 64
    before them on whole pictures. Settings are those of `NetworkAdversary`."""

    name: ClassVar[str] = "res-cl"
    title: ClassVar[str] = "Res-CL (Table 3)"

    def takes(self, view: View) -> bool:
        return view.is_map or view.is_series

    def build(self, view: View, outputs: int) -> nn.Module:
        shape = cast(Sequence[int], view.shape)
        steps = (64, *RESIDUAL) if is_raw_signal(shape) else RESIDUAL
        classifier = ResidualClassifier(shape, outputs, self.width, steps)
        return nn.Sequential(StandardisedInput(shape[0]), classifier)
