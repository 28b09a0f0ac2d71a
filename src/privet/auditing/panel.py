"""A panel: what the strongest attacker of a battery reads of the *select* people.

For choosing between releases while nobody has looked at *test*. Attackers learn from *attack*, on
released records and on records that were decoded first, as in an audit; the highest score on
*select* counts. The highest of many is high by luck too, so a choice made by it is careful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from privet.adversaries.adversary import silent
from privet.adversaries.decoder import OwnDecoder, rebuilt_release
from privet.adversaries.released import Released
from privet.auditing.attribute_attack import AttackResult, AttackTarget, Parts, run_adversary
from privet.auditing.audit import seed_torch
from privet.auditing.batteries import Battery
from privet.auditing.decode_first import RawReaders, read_rebuilt
from privet.auditing.threads import one_thread
from privet.core.errors import PrivetError
from privet.core.progress import bar, counted
from privet.data.dataset import Attribute, Dataset
from privet.release.release import Release


class PanelReading(NamedTuple):
    """What a panel reads of a release.

    Parameters:
        leak: Balanced accuracy on *select* of the strongest attacker, of the attribute that it
            reads best.
        by: Its name.
        attribute: What it reads.
    """

    leak: float
    by: str
    attribute: str


@dataclass
class Panel:
    """Attackers of several releases of the same data.

    Parameters:
        data: The records.
        private: What they read.
        battery: Who they are.
        seed: Of everything that is random.
        device: Where they learn.
        progress: Whether to show a bar.
    """

    data: Dataset
    private: Sequence[Attribute]
    battery: Battery
    seed: int
    device: torch.device
    progress: bool = True

    def __post_init__(self) -> None:
        self._raw: dict[str, RawReaders] = {}

    def read(self, release: Release) -> PanelReading:
        """The strongest of all on this release."""
        parts = self._parts(release)
        decoded = self._decoded(release, parts)
        small = self.device.type == "cpu" and parts["attack"].view.is_vector
        plans = {a.name: self.battery.against(parts["attack"].view, a) for a in self.private}
        total = sum(map(len, plans.values())) + (decoded is not None) * len(self.private)
        results: list[tuple[AttackResult, str]] = []
        with one_thread(small), bar("attacking", 100 * total, self.progress) as tick:
            count = counted(tick)
            for attribute in self.private:
                target = AttackTarget(parts, attribute, "private", "released")
                for place, adversary in enumerate(plans[attribute.name]):
                    seed_torch(self.seed, f"{attribute.name} {place}")
                    say = count(f"{adversary.title} reads {attribute.name}")
                    one = run_adversary(adversary, target, self.seed, say)
                    results.append((one, attribute.name))
                    say(1.0)
                if decoded is not None:
                    say = count(f"{attribute.name} from decoded records")
                    target = AttackTarget(decoded, attribute, "private", "rebuilt")
                    raw = self._readers(release, attribute)
                    seed_torch(self.seed, f"{attribute.name} decoded")
                    some = read_rebuilt(target, raw, (), self.seed, silent)
                    results += [(one, attribute.name) for one in some]
                    say(1.0)
        if not results:
            raise PrivetError(
                f"No attacker of the battery '{self.battery.name}' can look at records of shape "
                f"{release.shape}."
            )
        best, name = max(results, key=lambda pair: pair[0].finding.select)
        return PanelReading(float(best.finding.select), best.finding.called, name)

    def _parts(self, release: Release) -> Parts:
        """What is seen of *attack* and *select*; *select* stands where an audit has *test*."""
        names = [attribute.name for attribute in self.private]
        attack = Released(release, self.data.part("attack"), names, self.device)
        select = Released(release, self.data.part("select"), names, self.device, like=attack)
        return {"attack": attack, "select": select, "test": select}

    def _decoded(self, release: Release, parts: Parts) -> Parts | None:
        """Records made by the decoder that the release brings, else by the closest of the battery;
        None where none is made."""
        view, schema = parts["attack"].view, release.schema.plain
        brought = OwnDecoder.is_in(release)
        known = (OwnDecoder(),) if brought else self.battery.decoders if self.battery.reread else ()
        decoders = [one for one in known if one.suits(view, schema)]
        if not decoders or release.network[0] in ("identity", "reshaped"):
            return None
        seen = parts["attack"], parts["select"], parts["test"]
        made = [one.attack(*seen, schema, self.seed, progress=False)[1] for one in decoders]
        return self._parts(rebuilt_release(max(made, key=lambda one: one.select), release))

    def _readers(self, release: Release, attribute: Attribute) -> RawReaders:
        """Who reads the attribute from raw records; learned once, for all releases."""
        if attribute.name not in self._raw:
            parts = self._parts(Release.identity(release.schema.plain))
            target = AttackTarget(parts, attribute, "private", "raw")
            results = []
            for adversary in self.battery.against(parts["attack"].view, attribute):
                seed_torch(self.seed, f"{attribute.name} raw {adversary.name}")
                results.append(run_adversary(adversary, target, self.seed, silent))
            self._raw[attribute.name] = RawReaders(parts, results)
        return self._raw[attribute.name]
