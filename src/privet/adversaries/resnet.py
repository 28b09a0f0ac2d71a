"""A modern residual network that first learns what the attribute looks like in raw records, then how it looks when released.

Whoever attacks a release owns raw records of their own people: they made the released ones from them.
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
from privet.adversaries.learned import Learned
from privet.adversaries.network import Standard, readable
from privet.adversaries.released import Released
from privet.adversaries.view import View
from privet.data.dataset import Attribute
from privet.nets.resnet import Jitter
from privet.nets.resnet import ResNet as Net
from privet.release import Release

KEPT = 8
_TAUGHT: dict[tuple[object, ...], dict[str, Tensor]] = {}
"""The last few bodies taught on raw records: they do not depend on the release, and a comparison attacks many."""


@dataclass(frozen=True, kw_only=True)
class ResNet(Learned):
    """`nets.resnet` on maps and signals. Its body is taught on raw records of the *attack* people and adapted with a new stem."""

    augment: bool = True
    """Mirror and shift whole pictures in training. Off for an attribute that says left from right."""
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

    def prepare(self, seen: Released, select: Released, attribute: Attribute, seed: int, tick: Tick) -> dict[str, Tensor] | None:
        """Everything but the stem, learned from raw records; nothing where the release is raw records, or they are of another kind."""
        if seen.release.network[0] == "identity":
            return None
        raw = Release.identity(seen.release.schema.plain)
        before, after = View(raw.shape), seen.view
        if before.is_text or len(before.shape) != len(after.shape):
            return None
        key = self._lesson(seen, select, attribute, seed)
        if key not in _TAUGHT:
            own, others = (Released(raw, part.data, [attribute.name], part.feed.device) for part in (seen, select))
            _, taught = self._try(self.rates[0], own, others, attribute, seed, None, tick)
            while len(_TAUGHT) >= KEPT:
                del _TAUGHT[next(iter(_TAUGHT))]
            _TAUGHT[key] = {name: value for name, value in taught.net.state_dict().items() if name.startswith(("net.body", "net.head"))}
        return _TAUGHT[key]

    def _lesson(self, seen: Released, select: Released, attribute: Attribute, seed: int) -> tuple[object, ...]:
        """Everything that what is learned from raw records depends on."""
        rows = hashlib.sha256(seen.data.rows.tobytes() + b"|" + select.data.rows.tobytes() + seen.labels(attribute.name).tobytes())
        schema = json.dumps(seen.release.schema.plain.to_json(), sort_keys=True)
        return self, seen.data.fingerprint, rows.hexdigest(), schema, attribute.name, seed, str(seen.feed.device)
