"""Audit: let adversaries loose on a release, and keep what they found.

Adversaries and task models learn from *attack*, the strongest is chosen on *select*, and every
figure is counted on *test*: people that neither the release nor its attackers have seen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch

from privet.adversaries.adversary import Adversary, Tick, has_label
from privet.adversaries.decoder import rebuilt_release
from privet.adversaries.inversion import TextPart, invert_parts
from privet.adversaries.membership import membership
from privet.adversaries.mlp import MLP, attack_all
from privet.adversaries.network_training import NetworkAdversary
from privet.adversaries.reidentification import reidentification
from privet.adversaries.released import released_parts
from privet.auditing.attribute_attack import Attempt, Parts, asked, attempt, reading, strongest
from privet.auditing.averaged_releases import averaged
from privet.auditing.batteries import Battery, find_battery
from privet.auditing.certify import certify_release, codes
from privet.auditing.information_estimates import contrastive_information, gaussian_information
from privet.auditing.limits import limits
from privet.auditing.raw_figures import given_inputs, known_raw, with_raw
from privet.auditing.threads import Work, two_lanes
from privet.core.errors import PrivetError
from privet.core.progress import bar, counted
from privet.data.dataset import PARTS, Array, Attribute, Dataset
from privet.evidence.fairness import fairness
from privet.evidence.figures import (
    Audit,
    Fairness,
    Figure,
    Finding,
    People,
    Reading,
    Rebuilt,
    Role,
    Source,
)
from privet.evidence.predictions import guesses_of
from privet.nets.additive import Additive
from privet.nets.device import pick, ready
from privet.nets.mask import Spread
from privet.release.foreign import from_function
from privet.release.release import Release

WIDEST = 1024
"""Numbers in a release whose covariance is still worth computing."""
GONE = (
    "By InfoNCE for released and for raw records, which shows at most log2 n bits of either: where a release still carries more than "
    "that, nothing seems gone."
)
MOST_CLASSES = 50
"""Values of an undeclared attribute that are still worth guessing; more name individuals."""


def audit(
    release: Release | Callable[[Array], Array],
    data: Dataset,
    utility: Sequence[str] = (),
    battery: str | Battery = "quick",
    *,
    private: Sequence[str] = (),
    seed: int = 0,
    device: str = "auto",
    progress: bool = True,
    rebuild: bool = True,
    raw: bool = True,
    raw_from: Audit | None = None,
    texts: Sequence[str] | Array | None = None,
) -> Audit:
    """Attack `release` on `data`; also train models for the tasks in `utility`, on released and on
    raw records.

    A release may also be a Python function from encoded records to numbers; then `private` says
    what it hides. What adversaries read from raw records does not depend on the release: `raw_from`
    takes those findings from an earlier audit of the same data, and `raw=False` leaves them out, as
    where only released records are at hand. Where records are embeddings, `texts` has the text that
    each of `data.records` stands for, and it is asked which words were in it.
    """
    chosen = find_battery(battery)
    if not isinstance(release, Release):
        if not private:
            raise PrivetError('Say what the function hides: private=["A"].')
        release = from_function(release, data, private, utility)
    return _Audit(
        release, data, list(utility), chosen, list(private), seed, pick(device), progress
    ).run(rebuild, raw, raw_from, texts)


class _Audit:
    """One audit while it runs."""

    def __init__(
        self,
        release: Release,
        data: Dataset,
        utility: list[str],
        battery: Battery,
        private: list[str],
        seed: int,
        device: torch.device,
        progress: bool,
    ) -> None:
        self.release, self.data, self.utility, self.name, self.seed, self.device = (
            release,
            data,
            utility,
            battery.name,
            seed,
            device,
        )
        self.battery, self.progress = battery, progress
        self.skipped: list[str] = []
        self.people: list[People] = []
        self.scouted: dict[tuple[Source, MLP, str], Finding] = {}
        self.private = private or release.private
        both = set(self.private) & set(utility)
        if both:
            raise PrivetError(
                f"The release hides '{min(both)}', so it cannot be audited as a task as well."
            )
        found = [
            *data.require_labels(self.private, "private", "attack"),
            *data.require_labels(utility, "utility", "attack"),
        ]
        self.wanted = {attribute.name: attribute for attribute in found}
        undeclared = (
            [a for a in data.attributes.values() if a.name not in self.wanted]
            if self.battery.scouts
            else []
        )
        self.others = {a.name: a for a in undeclared if _worth_guessing(a, data)}
        data.require_records("attack", "select", "test")

    def run(
        self,
        rebuild: bool,
        raw: bool,
        raw_from: Audit | None,
        texts: Sequence[str] | Array | None = None,
    ) -> Audit:
        started = time.monotonic()
        inputs = given_inputs(self.release)
        earlier = known_raw(
            raw_from, self.data, self.name, inputs, {name: self._role(name) for name in self.wanted}
        )
        names = [*self.wanted, *self.others]
        self.parts = released_parts(self.release, self.data, names, self.device)
        identity = Release.identity(self.release.schema.plain)
        self.raw = (
            released_parts(identity, self.data, names, self.device)
            if raw and raw_from is None
            else None
        )
        readings, models = self._contests(earlier, raw_from)
        rebuilt, reread = (
            self._rebuild()
            if rebuild and self.release.network[0] not in ("identity", "reshaped")
            else ((), {})
        )
        readings = [replace(r, others=(*r.others, *reread.get(r.attribute, ()))) for r in readings]
        rebuilt = (*self._inverted(texts), *rebuilt) if texts is not None else rebuilt
        undeclared = self._undeclared(raw_from)
        information = self._information() if self.battery.estimates else {}
        kinds = max((len(r.released) for r in readings), default=0)
        kept = (
            "method",
            "title",
            "settings",
            "private",
            "seed",
            "in_game",
            "data",
            "sha256",
            "command",
            "certificate",
        )
        card = {key: self.release.card.get(key) for key in kept} | {"private": self.private}
        return Audit(
            card,
            self._about(inputs),
            self.name,
            tuple(readings),
            limits(self.release, self.data, self.battery, kinds, self.utility, self.skipped),
            round(time.monotonic() - started, 1),
            rebuilt,
            undeclared,
            tuple(self.people),
            self._fairness(models, raw_from),
            information,
            certify_release(
                self.release, self.data, private=self.private, device=self.device, seed=self.seed
            ),
        )

    def _role(self, name: str) -> Role:
        return "private" if name in self.private else "utility"

    def _about(self, inputs: str) -> dict[str, Any]:
        data = self.data
        sizes = {
            part: {"records": len(view), "people": len(np.unique(view.people))}
            for part in PARTS
            for view in (data.part(part),)
        }
        return {
            "name": data.name,
            "modality": data.modality,
            "fingerprint": data.fingerprint,
            "input": inputs,
            "parts": sizes,
        }

    def _sources(self) -> dict[Source, Parts]:
        """What adversaries look at: released records, and raw ones where they are wanted and not
        has_label from before."""
        sources: dict[Source, Parts] = {"released": self.parts}
        return {**sources, "raw": self.raw} if self.raw else sources

    def _contests(
        self, earlier: dict[str, list[Finding]], raw_from: Audit | None
    ) -> tuple[list[Reading], dict[str, dict[Source, Attempt]]]:
        """A reading per declared attribute, and the best task models' answers for the question of
        fairness."""
        sources = self._sources()
        plans = {
            (name, source): self.battery.against(parts["attack"].view, attribute)
            for name, attribute in self.wanted.items()
            for source, parts in sources.items()
        }
        if not all(plans[name, "released"] for name in self.wanted):
            raise PrivetError(
                f"No attacker of the battery '{self.name}' can look at records of shape {self.release.shape}."
            )
        repeats = self.battery.averages if self.release.is_random else ()
        scouts = len(self.battery.scouts) * len(sources) if self.others else 0
        total = (
            sum(map(len, plans.values()))
            + len(repeats) * len(self.private)
            + scouts
            + 2 * self.battery.people
        )
        readings: list[Reading] = []
        models: dict[str, dict[Source, Attempt]] = {}
        with bar("attacking", 100 * total, self.progress) as tick:
            count = counted(tick)
            found = self._attempts(plans, sources, raw_from, count)
            for name, attribute in self.wanted.items():
                released = found[name, "released"]
                raw = earlier.get(name) or [a.finding for a in found.get((name, "raw"), [])]
                others = []
                if self._role(name) == "private":
                    first = plans[name, "released"][strongest([a.finding for a in released])]
                    for k in repeats:
                        many = released_parts(
                            averaged(self.release, k), self.data, [name], self.device
                        )
                        say = count(f"{first.title} reads {name} from the average of {k} releases")
                        others.append(
                            attempt(
                                first, many, attribute, "private", "averaged", self.seed, say, k
                            ).finding
                        )
                else:
                    tried = {
                        source: found[name, source] for source in sources if found[name, source]
                    }
                    models[name] = {
                        source: max(tries, key=lambda a: a.finding.select)
                        for source, tries in tried.items()
                    }
                readings.append(
                    reading(
                        attribute,
                        self._role(name),
                        released,
                        raw,
                        self.parts,
                        self.data,
                        self.utility,
                        others,
                    )
                )
        return readings, models

    def _attempts(
        self,
        plans: Mapping[tuple[str, Source], Sequence[Adversary]],
        sources: Mapping[Source, Parts],
        raw_from: Audit | None,
        count: Callable[[str], Tick],
    ) -> dict[tuple[str, Source], list[Attempt]]:
        """Every adversary on every declared attribute, the scouts on the others, and the search for
        people, two at a time: on a CPU where records are vectors and all networks are small; with a
        GPU, what learns on the processor beside what learns there."""
        views = [parts["attack"].view for parts in sources.values()]
        small = all(len(view.shape) == 1 and not view.is_text for view in views)
        first, others = list[Work](), list[tuple[float, Work]]()
        found: dict[tuple[str, Source, int], Attempt] = {}

        def work(name: str, source: Source, place: int, say: Tick) -> None:
            adversary, attribute = plans[name, source][place], self.wanted[name]
            found[name, source, place] = attempt(
                adversary, sources[source], attribute, self._role(name), source, self.seed, say
            )

        def plan(source: Source, draws: bool, hosted: bool, length: float, one: Work) -> None:
            beside = small and not draws if self.device.type == "cpu" else hosted
            if beside and not sources[source]["attack"].fresh_noise:
                others.append((length, one))
            else:
                first.append(one)

        for (name, source), adversaries in plans.items():
            for place, adversary in enumerate(adversaries):
                say = count(f"{adversary.title} reads {name} from {source} records")
                # Networks draw from torch's own generator. Batteries name quick adversaries first.
                plan(
                    source,
                    isinstance(adversary, NetworkAdversary),
                    adversary.on_cpu,
                    place,
                    partial(work, name, source, place, say),
                )
        for source, scout in product(sources, self.battery.scouts if self.others else ()):
            say = count(f"undeclared attributes, {source} records")
            plan(
                source,
                False,
                False,
                math.inf,
                partial(self._scout, scout, source, sources[source], say),
            )
        if self.battery.people:
            first += [
                partial(self._find, search, raw_from, count("finding people"))
                for search in (self._reidentified, self._members)
            ]
        if others:
            ready(self.device)
            for seen in (
                seen
                for parts in sources.values()
                for seen in parts.values()
                if not seen.fresh_noise
            ):
                seen.vectors()  # now, once, and not by both lanes
        two_lanes(first, [one for _, one in sorted(others, key=lambda pair: -pair[0])])
        return {
            key: [found[*key, place] for place in range(len(plan))] for key, plan in plans.items()
        }

    def _scout(self, scout: MLP, source: Source, parts: Parts, say: Tick) -> None:
        """All undeclared attributes at once."""
        started = time.monotonic()
        for name, trained in attack_all(
            scout, parts["attack"], parts["select"], list(self.others.values()), self.seed, say
        ).items():
            self.scouted[source, scout, name] = asked(
                trained, scout, parts, self.others[name], "undeclared", source, started
            ).finding

    def _rebuild(self) -> tuple[tuple[Rebuilt, ...], dict[str, list[Finding]]]:
        """What decoders make of released records, the closest first; and what is read from records
        that it has rebuilt."""
        seen, schema = self.parts, self.release.schema.plain
        made = [
            decoder.attack(
                seen["attack"], seen["select"], seen["test"], schema, self.seed, self.progress
            )
            for decoder in self.battery.decoders
            if decoder.suits(seen["attack"].view, schema)
        ]
        if not made:
            why = (
                "No decoder fits what is released"
                if self.battery.decoders
                else f"The battery '{self.name}' has no decoder"
            )
            self.skipped.append(f"{why}, so nothing was rebuilt.")
            return (), {}
        made.sort(key=lambda pair: -pair[1].select)
        again: dict[str, list[Finding]] = {}
        if self.battery.reread and self.data.modality == "image":
            parts = released_parts(
                rebuilt_release(made[0][1], self.release),
                self.data,
                list(self.private),
                self.device,
            )
            for name in self.private:
                attribute = self.wanted[name]
                reader = self.battery.against(parts["attack"].view, attribute)[-1]
                with bar("reading rebuilt", 100, self.progress) as tick:
                    found = attempt(
                        reader,
                        parts,
                        attribute,
                        "private",
                        "rebuilt",
                        self.seed,
                        counted(tick)(name),
                    )
                    again[name] = [found.finding]
        return tuple(pair[0] for pair in made), again

    def _inverted(self, texts: Sequence[str] | Array) -> list[Rebuilt]:
        """Which words were in the texts that embeddings stand for, from released embeddings and
        from raw ones."""
        lines = np.asarray(texts, dtype=object)
        if len(lines) != len(self.data.records):
            raise PrivetError(
                f"{self.data.name} has {len(self.data.records)} records, and {len(lines)} texts were given: one for each."
            )
        return [
            invert_parts(
                {
                    part: TextPart(seen.vectors(), lines[seen.data.rows], seen.people)
                    for part, seen in parts.items()
                },
                self.data.name,
                f"words from {source} vectors",
                seed=self.seed,
            )
            for source, parts in self._sources().items()
        ]

    def _undeclared(self, earlier: Audit | None) -> tuple[Reading, ...]:
        """Every labelled attribute that nobody named; the furthest above guessing first."""
        known_raw = (
            {} if earlier is None else {r.attribute: list(r.raw) for r in earlier.undeclared}
        )
        found = []
        for name, attribute in self.others.items():
            released = [self.scouted["released", scout, name] for scout in self.battery.scouts]
            raw = (
                [self.scouted["raw", scout, name] for scout in self.battery.scouts]
                if self.raw
                else known_raw.get(name, [])
            )
            found.append(
                Reading(
                    name,
                    "undeclared",
                    attribute.values,
                    tuple(released),
                    tuple(raw),
                    strongest(released),
                    strongest(raw),
                )
            )
        return tuple(
            sorted(
                found,
                key=lambda r: (
                    -(r.worst.score.low - r.worst.score.chance)
                    / (1 - min(r.worst.score.chance, 0.99))
                ),
            )
        )

    def _find(
        self, search: Callable[[Tick, Audit | None], People | str], earlier: Audit | None, say: Tick
    ) -> None:
        """People, or why they were not searched for."""
        result = search(say, earlier)
        if isinstance(result, str):
            self.skipped.append(result)
        else:
            self.people.append(result)

    def _reidentified(self, tick: Tick, earlier: Audit | None) -> People | str:
        return with_raw(reidentification(self.parts, self.raw, self.seed, tick), earlier)

    def _members(self, tick: Tick, earlier: Audit | None) -> People | str:
        return with_raw(
            membership(
                self.release, self.data, self.device, self.seed, tick, raw=self.raw is not None
            ),
            earlier,
        )

    def _information(self) -> dict[str, Figure]:
        """Bits about the records themselves: estimates, how much of what is in raw records is gone
        (Cloak's figure), and Cloak's bound."""
        if self.release.network[0] in ("identity", "reshaped"):
            return {}
        people = self.data.part("test").people
        raw = (
            (
                self.raw
                or released_parts(
                    Release.identity(self.release.schema.plain), self.data, [], self.device
                )
            )["test"]
            .vectors()
            .cpu()
            .numpy()
        )
        found = contrastive_information(
            raw, self.parts["test"].vectors().cpu().numpy(), people, self.seed
        )
        before = contrastive_information(raw, raw, people, self.seed)["infonce"].value
        if before > 0:
            share, n = 1 - found["infonce"].value / before, found["infonce"].n
            found["cloak_reduction"] = Figure(
                share,
                share,
                share,
                n,
                1.0,
                "share",
                "higher",
                "",
                "share of the bits that is gone",
                GONE,
            )
        return found | self._bounded()

    def _bounded(self) -> dict[str, Figure]:
        """Cloak's bound, where Gaussian noise comes last and few enough numbers depend on the
        record at all."""
        module, law = self.release.module, self.release.noise
        if (
            not isinstance(module, Additive | Spread)
            or law is None
            or law.law != "gaussian"
            or None in self.release.shape
        ):
            return {}
        size = int(np.prod(np.array(self.release.shape)))
        told = (
            module.told.flatten().numpy()
            if isinstance(module, Spread)
            else np.ones(size, dtype=bool)
        )
        if not 0 < told.sum() <= WIDEST:
            return {}
        table = codes(self.release, self.data.part("test"), self.device)[:, told].astype(np.float64)
        scales = (
            module.scales.flatten().cpu().numpy()[told]
            if isinstance(module, Spread)
            else np.full(size, float(module.scale))
        )
        return gaussian_information(
            np.cov(table.T).reshape(len(scales), len(scales)), scales, len(table)
        )

    def _fairness(
        self, models: dict[str, dict[Source, Attempt]], earlier: Audit | None
    ) -> tuple[Fairness, ...]:
        """Of the decisions that the models' scores are counted with: by the more likely value, a
        model of a rare one says no to all, which treats everybody alike and serves nobody."""
        found = []
        test, chosen_on = self.parts["test"], self.parts["select"]
        for task, tries in models.items():
            attribute = self.wanted[task]
            if not attribute.is_class:
                continue
            truth = test.labels(task)
            guesses = {
                source: guesses_of(chosen_on.labels(task), one.select, one.test, attribute)
                for source, one in tries.items()
            }
            for by in self.private:
                group = self.wanted[by]
                if not group.is_class:
                    continue
                codes = test.labels(by)
                there = has_label(truth) & has_label(codes)
                raw = guesses["raw"][there] if "raw" in guesses else None
                one = fairness(
                    task,
                    by,
                    truth[there],
                    guesses["released"][there],
                    raw,
                    codes[there],
                    group.values,
                    test.people[there],
                )
                old = (
                    next((f for f in earlier.fairness if (f.task, f.by) == (task, by)), None)
                    if earlier
                    else None
                )
                found.append(replace(one, raw=old.raw) if old else one)
        return tuple(found)


def _worth_guessing(attribute: Attribute, data: Dataset) -> bool:
    labels = data.labels[attribute.name][data.part_of == PARTS.index("attack")]
    if attribute.kind in ("identity", "mask") or attribute.classes > MOST_CLASSES:
        return False
    return len(np.unique(labels[has_label(labels)])) > 1
