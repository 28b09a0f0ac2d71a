"""A modern residual network that first learns what the attribute looks like in raw records, then
how it looks when released.

Whoever attacks a release owns raw records of their own people: they made the released ones from
them.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from torch import Tensor, nn

from privet.adversaries.adversary import Tick
from privet.adversaries.convolutional import is_raw_signal
from privet.adversaries.network import StandardisedInput
from privet.adversaries.network_training import (
    NetworkAdversary,
    TrainedNetwork,
    mean_and_deviation,
)
from privet.adversaries.raw_classifiers import RawClassifier, lookup, store
from privet.adversaries.released import Released
from privet.adversaries.view import View
from privet.core.version import __version__
from privet.data.dataset import Attribute
from privet.nets.device import place
from privet.nets.resnet import Jitter
from privet.nets.resnet import ResNet as ResNetModule
from privet.release.release import Release


@dataclass(frozen=True, kw_only=True)
class ResNet(NetworkAdversary):
    """`nets.resnet` on maps and signals. Its body is trained on raw records of the *attack* people
    and adapted with a new stem. Settings of training are those of `NetworkAdversary`.

    Parameters:
        augment: Mirror and shift whole pictures in training. Off for an attribute that depends on
            left and right.
        reach: Largest shift, as a share of a picture's shorter side.
        dropout: Share of units that are left out in training.
    """

    augment: bool = True
    reach: float = 1 / 32
    dropout: float = 0.2
    name: ClassVar[str] = "resnet"
    title: ClassVar[str] = "ResNet, taught on raw records first"

    def takes(self, view: View) -> bool:
        return view.is_map or view.is_series

    def build(self, view: View, outputs: int) -> nn.Module:
        shape = cast(Sequence[int], view.shape)
        picture = self.augment and view.is_map and is_raw_signal(shape)
        front = Jitter(max(1, round(self.reach * min(shape[1:])))) if picture else nn.Identity()
        net = ResNetModule(shape, outputs, self.width, self.dropout)
        return nn.Sequential(
            OrderedDict(front=front, standard=StandardisedInput(shape[0]), net=net)
        )

    def pretrained(
        self, seen: Released, select: Released, attribute: Attribute, seed: int, tick: Tick
    ) -> dict[str, Tensor] | None:
        """Everything but the stem, learned from raw records; None where the release is raw records,
        or they are of another kind."""
        raw = Release.identity(seen.release.schema.plain)
        view = View(raw.shape)
        if _is_raw(seen) or view.is_text or len(view.shape) != len(seen.view.shape):
            return None
        cached = lookup(self._key(seen, select, attribute, seed), seen.feed.device)
        if cached is None:
            names, device = [attribute.name], seen.feed.device
            own, others = (Released(raw, part.data, names, device) for part in (seen, select))
            trained = self.train(self.rates[0], own, others, attribute, seed, None, tick)[1]
        weights = trained.net.state_dict() if cached is None else cached.weights
        return {k: v for k, v in weights.items() if k.startswith(("net.body", "net.head"))}

    def train(
        self,
        lr: float,
        seen: Released,
        select: Released,
        attribute: Attribute,
        seed: int,
        start: dict[str, Tensor] | None,
        tick: Tick,
    ) -> tuple[float, TrainedNetwork]:
        """As every network is trained; on raw records, a classifier from the cache is taken."""
        caches = _is_raw(seen) and lr == self.rates[0]
        key, device = self._key(seen, select, attribute, seed), seen.feed.device
        cached = lookup(key, device) if caches else None
        if cached is None:
            score, trained = super().train(lr, seen, select, attribute, seed, start, tick)
            if caches:
                store(key, RawClassifier(score, trained.net.state_dict()))
            return score, trained
        net = place(self.build(seen.view, max(attribute.classes, 1)), device)
        net.load_state_dict(cached.weights)
        labels = seen.labels(attribute.name)
        scale = None if attribute.is_class else mean_and_deviation(labels)
        return cached.score, TrainedNetwork(net, scale)

    def _key(self, seen: Released, select: Released, attribute: Attribute, seed: int) -> str:
        """Names everything that a classifier trained on raw records depends on."""
        rows, others = seen.data.rows.tobytes(), select.data.rows.tobytes()
        records = hashlib.sha256(rows + b"|" + others + seen.labels(attribute.name).tobytes())
        about = (
            __version__,
            self,
            seen.data.fingerprint,
            records.hexdigest(),
            json.dumps(seen.release.schema.plain.to_json(), sort_keys=True),
            attribute.name,
            seed,
            seen.feed.device.type,
        )
        return hashlib.sha256(repr(about).encode()).hexdigest()


def _is_raw(seen: Released) -> bool:
    return seen.release.network[0] == "identity"
