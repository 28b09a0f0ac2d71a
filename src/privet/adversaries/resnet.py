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
from privet.adversaries.convolutional import whole
from privet.adversaries.network import Standard, readable
from privet.adversaries.network_training import Learned, TrainedNetwork, spread
from privet.adversaries.raw_classifiers import Lesson, keep, recall
from privet.adversaries.released import Released
from privet.adversaries.view import View
from privet.core.version import __version__
from privet.data.dataset import Attribute
from privet.nets.device import place
from privet.nets.resnet import Jitter
from privet.nets.resnet import ResNet as Net
from privet.release.release import Release


@dataclass(frozen=True, kw_only=True)
class ResNet(Learned):
    """`nets.resnet` on maps and signals. Its body is taught on raw records of the *attack* people
    and adapted with a new stem."""

    augment: bool = True
    """Mirror and shift whole pictures in training. Off for an attribute that says left from
    right."""
    reach: float = 1 / 32
    """Largest shift, as a share of a picture's shorter side."""
    dropout: float = 0.2
    name: ClassVar[str] = "resnet"
    title: ClassVar[str] = "ResNet, taught on raw records first"

    def suits(self, view: View, attribute: Attribute) -> bool:
        return (view.is_map or view.is_series) and readable(attribute)

    def build(self, view: View, outputs: int) -> nn.Module:
        shape = cast(Sequence[int], view.shape)
        picture = self.augment and view.is_map and whole(shape)
        front = Jitter(max(1, round(self.reach * min(shape[1:])))) if picture else nn.Identity()
        net = Net(shape, outputs, self.width, self.dropout)
        return nn.Sequential(OrderedDict(front=front, standard=Standard(shape[0]), net=net))

    def prepare(
        self, seen: Released, select: Released, attribute: Attribute, seed: int, tick: Tick
    ) -> dict[str, Tensor] | None:
        """Everything but the stem, learned from raw records; nothing where the release is raw
        records, or they are of another kind."""
        if _is_raw(seen):
            return None
        raw = Release.identity(seen.release.schema.plain)
        before, after = View(raw.shape), seen.view
        if before.is_text or len(before.shape) != len(after.shape):
            return None
        lesson = recall(self._key(seen, select, attribute, seed), seen.feed.device)
        if lesson is None:
            own, others = (
                Released(raw, part.data, [attribute.name], part.feed.device)
                for part in (seen, select)
            )
            weights = self._try(self.rates[0], own, others, attribute, seed, None, tick)[
                1
            ].net.state_dict()
        else:
            weights = lesson.weights
        return {
            name: value
            for name, value in weights.items()
            if name.startswith(("net.body", "net.head"))
        }

    def _try(
        self,
        lr: float,
        seen: Released,
        select: Released,
        attribute: Attribute,
        seed: int,
        start: dict[str, Tensor] | None,
        tick: Tick,
    ) -> tuple[float, TrainedNetwork]:
        """As every network learns; of raw records, what was learned before is not learned again."""
        if not _is_raw(seen) or lr != self.rates[0]:
            return super()._try(lr, seen, select, attribute, seed, start, tick)
        key, device = self._key(seen, select, attribute, seed), seen.feed.device
        lesson = recall(key, device)
        if lesson is None:
            score, taught = super()._try(lr, seen, select, attribute, seed, start, tick)
            keep(key, Lesson(score, taught.net.state_dict()))
            return score, taught
        net = place(self.build(seen.view, max(attribute.classes, 1)), device)
        net.load_state_dict(lesson.weights)
        return lesson.score, TrainedNetwork(
            net, None if attribute.is_class else spread(seen.labels(attribute.name))
        )

    def _key(self, seen: Released, select: Released, attribute: Attribute, seed: int) -> str:
        """A name for everything that what is learned from raw records depends on."""
        rows = hashlib.sha256(
            seen.data.rows.tobytes()
            + b"|"
            + select.data.rows.tobytes()
            + seen.labels(attribute.name).tobytes()
        )
        schema = json.dumps(seen.release.schema.plain.to_json(), sort_keys=True)
        told = (
            __version__,
            self,
            seen.data.fingerprint,
            rows.hexdigest(),
            schema,
            attribute.name,
            seed,
            seen.feed.device.type,
        )
        return hashlib.sha256(repr(told).encode()).hexdigest()


def _is_raw(seen: Released) -> bool:
    return seen.release.network[0] == "identity"
