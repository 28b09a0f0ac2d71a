"""Audit: attack a release with many adversaries, and keep what they found.

Adversaries and task models learn from *attack*, the strongest is chosen on *select*, and every
figure is counted on *test*: people that neither the release nor its attackers have seen.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch

from privet.adversaries.adversary import Adversary, Tick, has_label, silent, span
from privet.adversaries.decoder import (
    OwnDecoder,
    Reconstruction,
    TrainedDecoder,
    rebuilt_release,
)
from privet.adversaries.membership import membership
from privet.adversaries.mlp import MLP, attack_all
from privet.adversaries.network_training import NetworkAdversary
from privet.adversaries.own_vectors import are_vectors
from privet.adversaries.raw_vector_search import raw_vector_search
from privet.adversaries.reader import Reader
from privet.adversaries.reidentification import reidentification
from privet.adversaries.released import released_parts
from privet.adversaries.similarity_membership import similarity_membership
from privet.auditing.attribute_attack import (
    AttackResult,
    AttackTarget,
    Parts,
    judge_trained,
    quickest_as_good,
    reading_of,
    run_adversary,
    strongest,
)
from privet.auditing.averaged_releases import average_of
from privet.auditing.batteries import Battery, find_battery
from privet.auditing.certified_codes import stated_runs
from privet.auditing.certify import certificates
from privet.auditing.closer_look import CloserLook
from privet.auditing.decode_first import RawReaders, raw_readers_needed, read_rebuilt
from privet.auditing.kept_columns import check_kept, read_kept
from privet.auditing.learning_curve import learning_curve
from privet.auditing.limits import limitations
from privet.auditing.pooled import read_pooled, records_together
from privet.auditing.raw_figures import input_fingerprint, raw_findings, with_raw_figures
from privet.auditing.record_information import noise_information, record_information
from privet.auditing.threads import Work, one_thread, run_in_two_threads
from privet.auditing.vector_audit import search_quality, words_of_vectors
from privet.core.errors import PrivetError
from privet.core.progress import bar, counted
from privet.data.checks import check_data, input_columns, serious
from privet.data.dataset import PARTS, Array, Attribute, Dataset
from privet.data.looks import look_at_test
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
from privet.evidence.what_leaves import WhatLeaves
from privet.nets.device import pick, ready
from privet.release.foreign import from_function
from privet.release.release import Release

# Most values of an undeclared attribute that are still worth guessing; more name individuals.
MOST_CLASSES = 50
# What an audit repeats of a release's card.
CARD = ("method", "title", "settings", "private", "seed", "in_game", "data", "sha256", "command")


def audit(  # noqa: PLR0913 - a verb has as many parameters as options
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
    keep: Sequence[str] = (),
    words: Sequence[str] = (),
) -> Audit:
    """Attack `release` on `data`; also train models for the tasks, on released and on raw records.
    `privet.audit` is this function for files as well.

    Parameters:
        release: A release, or a Python function from encoded records to numbers.
        data: The records to attack with.
        utility: Tasks.
        battery: The attackers.
        private: What is hidden; what the release hides where it is not given.
        seed: Of everything that is random.
        device: cpu, cuda or auto.
        progress: Whether to show a bar.
        rebuild: Whether decoders try to rebuild records.
        raw: Whether to attack raw records as well, for comparison.
        raw_from: An earlier audit of the same data to take findings on raw records from, since they
            do not depend on the release.
        texts: Where records are embeddings, the text that each of `data.records` stands for; it is
            asked which words were in it.
        keep: Columns that leave beside the released records, and are attacked with them.
        words: With `texts`, words to ask for one by one: was this name in it?
    """
    chosen = find_battery(battery)
    if not isinstance(release, Release):
        if not private:
            raise PrivetError('Say what the function hides: private=["A"].')
        release = from_function(release, data, private, utility)
    running = _Audit(
        release, data, list(utility), chosen, list(private), seed, pick(device), progress, keep
    )
    return running.run(rebuild, raw, raw_from, texts, words)


# Adversaries by attribute and source.
Plans = dict[tuple[str, Source], Sequence[Adversary]]
# The best model of each task, by source.
Models = dict[str, dict[Source, AttackResult]]


class _Job(NamedTuple):
    """A piece of work that may be done on another thread.

    Parameters:
        work: What to do.
        aside: Whether it may run while others run.
        length: How long it takes, relative to others.
        name: Tells it from all others of the audit.
    """

    work: Work
    aside: bool
    length: float
    name: str


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
        keep: Sequence[str] = (),
    ) -> None:
        self.release, self.data, self.utility, self.battery = release, data, utility, battery
        self.seed, self.device, self.progress = seed, device, progress
        self.skipped: list[str] = []
        self.people: list[People] = []
        self.rebuilt: list[tuple[Rebuilt, TrainedDecoder]] = []
        self.scouted: dict[tuple[Source, MLP, str], Finding] = {}
        self.results: dict[tuple[str, Source, int], AttackResult] = {}
        self.private = private or release.private
        self.keep = check_kept(data, keep, self.private)
        self.readers = [Reader(function=one) for one in battery.readers]
        if both := set(self.private) & set(utility):
            raise PrivetError(
                f"The release hides '{min(both)}', so it cannot be audited as a task as well."
            )
        self.declared: dict[str, Attribute] = {}
        for names, role in ((self.private, "private"), (utility, "utility")):
            found = data.require_labels(names, role, "attack")
            self.declared |= {attribute.name: attribute for attribute in found}
        self.undeclared = {
            attribute.name: attribute
            for attribute in (data.attributes.values() if battery.scouts else ())
            if attribute.name not in self.declared and _worth_guessing(attribute, data)
        }
        data.require_records("attack", "select", "test")

    def run(
        self,
        rebuild: bool,
        raw: bool,
        raw_from: Audit | None,
        texts: Sequence[str] | Array | None,
        words: Sequence[str] = (),
    ) -> Audit:
        started, inputs = time.monotonic(), input_fingerprint(self.release)
        roles = {name: self._role(name) for name in self.declared}
        earlier = raw_findings(raw_from, self.data, self.battery.name, inputs, roles)
        names = [*self.declared, *self.undeclared]
        self.sources: dict[Source, Parts] = {"released": self._parts(self.release, names)}
        if raw and raw_from is None:
            self.sources["raw"] = self._parts(self._identity(), names)
        transforms = self._transforms()
        self.rebuilds = rebuild and transforms
        readings, models = self._declared_readings(earlier, raw_from)
        inverted = []
        if texts is not None:
            inverted = words_of_vectors(
                self.sources, self.data, texts, words, self.seed, as_sets=self.battery.curves
            )
        elif words:
            raise PrivetError("--words asks which words were in texts, and no texts were given.")
        undeclared = self._undeclared_readings(raw_from)
        with one_thread(self._is_small()):
            information = self._information() if self.battery.estimates and transforms else {}
        kinds = max((len(r.released) for r in readings), default=0)
        card = {key: self.release.card.get(key) for key in (*CARD, "certificate")}
        sampled = [] if self.data.sampled is None else [self.data.sampled.sentence]
        return Audit(
            card | {"private": self.private} | stated_runs(self.release),
            self._about(inputs),
            self.battery.name,
            tuple(readings),
            limitations(self.release, self.battery, kinds, (*self.skipped, *sampled)),
            round(time.monotonic() - started, 1),
            (*inverted, *(one for one, _ in self.rebuilt)),
            undeclared,
            tuple(self.people),
            self._fairness(models, raw_from),
            information,
            certificates(
                self.release,
                self.data,
                private=self.private,
                given=[name for name in self.utility if self.declared[name].is_class],
                seed=self.seed,
            ),
            checks=serious(
                check_data(
                    self.data, self.private, self.utility, input_columns(self.release.schema)
                )
            ),
            looks=look_at_test(self.data, "audit", self.release.card.get("sha256")),
            leaves=self._leaves(),
            retrieval=search_quality(self.release, self.data, self.device, self.seed),
        )

    def _leaves(self) -> WhatLeaves:
        """What was attacked as one: a code or a record, and the columns beside it."""
        is_record = self.release.shape == self.release.schema.plain.shape
        return WhatLeaves("record" if is_record else "code", self.keep)

    def _role(self, name: str) -> Role:
        return "private" if name in self.private else "utility"

    def _parts(self, release: Release, names: Sequence[str]) -> Parts:
        return released_parts(release, self.data, names, self.device)

    def _identity(self) -> Release:
        return Release.identity(self.release.schema.plain)

    def _about(self, inputs: str) -> dict[str, Any]:
        parts = {part: self.data.part(part) for part in PARTS}
        return {
            "name": self.data.name,
            "modality": self.data.modality,
            **({"space": self.data.space} if self.data.space else {}),
            "fingerprint": self.data.fingerprint,
            "input": inputs,
            "parts": {
                part: {"records": len(view), "people": len(np.unique(view.people))}
                for part, view in parts.items()
            },
            **self.data.said_of_sample,
        }

    def _plans(self) -> Plans:
        """The adversaries that can read each declared attribute from each source. Readers that a
        user brings come where records have the raw ones' form."""
        form = self.release.schema.plain.shape
        plans: Plans = {
            (name, source): [
                *self.battery.against(view := parts["attack"].view, attribute),
                *(self.readers if view.shape == form else ()),
            ]
            for name, attribute in self.declared.items()
            for source, parts in self.sources.items()
        }
        if not all(plans[name, "released"] for name in self.declared):
            raise PrivetError(
                f"No attacker of the battery '{self.battery.name}' can look at records of shape "
                f"{self.release.shape}."
            )
        return plans

    def _declared_readings(
        self, earlier: Mapping[str, Sequence[Finding]], raw_from: Audit | None
    ) -> tuple[list[Reading], Models]:
        """A reading per declared attribute, and the best task models' answers for the question of
        fairness."""
        plans, readings, models = self._plans(), list[Reading](), Models()
        scouts = len(self.battery.scouts) * len(self.sources) if self.undeclared else 0
        decoders = self._decoders() if self.rebuilds else ()
        total = sum(map(len, plans.values())) + scouts + len(self._searches()) + len(decoders)
        with bar("attacking", 100 * total, self.progress) as tick:
            self._attack(self._jobs(plans, decoders, raw_from, counted(tick)))
        self.rebuilt.sort(key=lambda pair: -pair[1].select)
        self.rebuilt_parts = self._rebuilt_parts()
        tries = {
            (name, source): [self.results[name, source, place] for place in range(len(plan))]
            for (name, source), plan in plans.items()
        }
        closer_look = bar("looking closer", 100 * max(1, len(self.private)), self.progress)
        with one_thread(self._is_small()), closer_look as tick:
            count = counted(tick)
            for name, attribute in self.declared.items():
                target = AttackTarget(
                    self.sources["released"], attribute, self._role(name), "released"
                )
                released, raw = tries[name, "released"], tries.get((name, "raw"), [])
                closer = CloserLook((), (), None)
                if target.role == "private":
                    seed_torch(self.seed, name)
                    before = earlier.get(name, ())
                    closer = self._look_closer(target, released, raw, before, count(name))
                else:
                    models[name] = {
                        source: max(tries[name, source], key=lambda result: result.finding.select)
                        for source in self.sources
                        if tries[name, source]
                    }
                findings = earlier.get(name) or [result.finding for result in raw]
                reading = reading_of(
                    target, [*released, *closer.rebuilt], findings, self.data, self.utility
                )
                readings.append(closer.added_to(reading))
        return readings, models

    def _look_closer(
        self,
        target: AttackTarget,
        released: Sequence[AttackResult],
        raw: Sequence[AttackResult],
        raw_before: Sequence[Finding],
        tick: Tick,
    ) -> CloserLook:
        """What is read of a private attribute in other ways than by adversaries on one released
        record."""
        attribute, battery = target.attribute, self.battery
        rebuilt: list[AttackResult] = []
        if self.rebuilt_parts is not None:
            rebuilt = self._decode_first(attribute, raw, raw_before, span(tick, 0, 0.4))
        results = [*released, *rebuilt]
        best = released[strongest([result.finding for result in released])].adversary
        averages = battery.averages if self.release.is_random else ()
        others = [self._averaged(best, attribute, k) for k in averages]
        tick(0.6)
        if battery.pools and (m := records_together(self.data)) > 1:
            pooled = read_pooled(target, results, m, self.seed)
            if isinstance(pooled, str):
                self.skipped.append(pooled)
            else:
                others.append(pooled.finding)
        if self.keep:
            others += read_kept(target, self.keep, self.seed)
        tick(0.8)
        curve = None
        if battery.curves:
            people = len(np.unique(self.sources["released"]["select"].people))
            quickest = released[quickest_as_good([r.finding for r in released], people)]
            curve = learning_curve(quickest, target, self.seed, span(tick, 0.8, 1))
        tick(1.0)
        return CloserLook(tuple(rebuilt), tuple(others), curve)

    def _averaged(self, adversary: Adversary, attribute: Attribute, k: int) -> Finding:
        """What the adversary reads from the average of k releases."""
        parts = self._parts(average_of(self.release, k), [attribute.name])
        target = AttackTarget(parts, attribute, "private", "averaged", k)
        return run_adversary(adversary, target, self.seed, silent).finding

    def _jobs(
        self,
        plans: Plans,
        decoders: Sequence[Reconstruction],
        raw_from: Audit | None,
        count: Callable[[str], Tick],
    ) -> Iterator[_Job]:
        """Every adversary on every declared attribute, the scouts on the others, decoders, and the
        search for people."""
        for (name, source), adversaries in plans.items():
            for place, adversary in enumerate(adversaries):
                tick = count(f"{adversary.title} reads {name} from {source} records")
                aside = self._aside(
                    source, isinstance(adversary, NetworkAdversary), adversary.on_cpu
                )
                work = partial(self._run, adversary, name, source, place, tick)
                # Batteries name quick adversaries first.
                yield _Job(work, aside, place, f"{name} {source} {place}")
        for source, scout in product(self.sources, self.battery.scouts if self.undeclared else ()):
            tick = count(f"undeclared attributes, {source} records")
            aside = self._aside(source, False, False)
            work = partial(self._scout, scout, source, tick)
            yield _Job(work, aside, math.inf, f"{source} {scout}")
        for decoder in decoders:
            tick = count(f"rebuilding: {decoder.title}")
            yield _Job(partial(self._rebuild, decoder, tick), False, 0, decoder.title)
        for search in self._searches():
            tick = count("finding people")
            yield _Job(partial(self._search, search, raw_from, tick), False, 0, search.__name__)

    def _attack(self, jobs: Iterable[_Job]) -> None:
        """Do the work, where that is possible on two threads."""
        jobs = list(jobs)
        aside = sorted((job for job in jobs if job.aside), key=lambda job: -job.length)
        if aside:
            ready(self.device)
            for seen in (seen for parts in self.sources.values() for seen in parts.values()):
                if not seen.fresh_noise:
                    seen.vectors()  # now, once, and not by both threads
        others = [partial(self._seeded, job) for job in jobs if not job.aside]
        run_in_two_threads(others, [job.work for job in aside])

    def _seeded(self, job: _Job) -> None:
        """Work with random numbers of its own, so that it comes out the same whatever else is done
        in this audit."""
        seed_torch(self.seed, job.name)
        job.work()

    def _aside(self, source: Source, draws: bool, on_cpu: bool) -> bool:
        """Whether an adversary may run while others do.

        torch has one generator of random numbers, which networks and fresh noise draw from
        (`draws`). On a CPU, two at a time are faster where records are vectors and all networks are
        small; with a GPU, what learns on the CPU runs while networks learn there.
        """
        if self.sources[source]["attack"].fresh_noise:
            return False
        if self.device.type != "cpu":
            return on_cpu
        return self._is_small() and not draws

    def _is_small(self) -> bool:
        """Whether all records are vectors, and so all networks small, on a CPU."""
        vectors = all(parts["attack"].view.is_vector for parts in self.sources.values())
        return self.device.type == "cpu" and vectors

    def _run(self, adversary: Adversary, name: str, source: Source, place: int, tick: Tick) -> None:
        """One adversary on one declared attribute."""
        role, parts = self._role(name), self.sources[source]
        target = AttackTarget(parts, self.declared[name], role, source)
        self.results[name, source, place] = run_adversary(adversary, target, self.seed, tick)

    def _scout(self, scout: MLP, source: Source, tick: Tick) -> None:
        """All undeclared attributes at once."""
        started, parts = time.monotonic(), self.sources[source]
        attributes = list(self.undeclared.values())
        trained = attack_all(scout, parts["attack"], parts["select"], attributes, self.seed, tick)
        for name, one in trained.items():
            target = AttackTarget(parts, self.undeclared[name], "undeclared", source)
            result = judge_trained(one, scout, target, started)
            self.scouted[source, scout, name] = result.finding

    def _search(
        self, search: Callable[[Tick], People | str], raw_from: Audit | None, tick: Tick
    ) -> None:
        """People, or why they were not searched for."""
        found = with_raw_figures(search(tick), raw_from)
        if isinstance(found, str):
            self.skipped += [found] if found else []
        else:
            self.people.append(found)

    def _reidentify(self, tick: Tick) -> People | str:
        return reidentification(self.sources["released"], self.sources.get("raw"), self.seed, tick)

    def _find_members(self, tick: Tick) -> People | str:
        return membership(
            self.release, self.data, self.device, self.seed, tick, raw="raw" in self.sources
        )

    def _find_members_by_similarity(self, tick: Tick) -> People | str:
        return similarity_membership(
            self.release, self.data, self.device, self.seed, tick, raw="raw" in self.sources
        )

    def _find_raw_vectors(self, tick: Tick) -> People | str:
        return raw_vector_search(self.release, self.data, self.device, self.seed, tick)

    def _searches(self) -> list[Callable[[Tick], People | str]]:
        """Attacks on people; of vectors there are more."""
        if not self.battery.people:
            return []
        searches: list[Callable[[Tick], People | str]] = [self._reidentify, self._find_members]
        if self._transforms() and are_vectors(self.release, self.data):
            searches += [self._find_members_by_similarity, self._find_raw_vectors]
        return searches

    def _transforms(self) -> bool:
        return self.release.network[0] not in ("identity", "reshaped")

    def _decoders(self) -> list[Reconstruction]:
        """The release's own decoder, where it brings one, and those of the battery that can make
        records of what is released."""
        view, schema = self.sources["released"]["attack"].view, self.release.schema.plain
        brought = (OwnDecoder(),) if OwnDecoder.is_in(self.release) else ()
        decoders: list[Reconstruction] = [
            decoder for decoder in (*brought, *self.battery.decoders) if decoder.suits(view, schema)
        ]
        if not decoders:
            why = f"The battery '{self.battery.name}' has no decoder"
            why = "No decoder fits what is released" if self.battery.decoders else why
            self.skipped.append(f"{why}, so nothing was rebuilt.")
        return decoders

    def _rebuild(self, decoder: Reconstruction, tick: Tick) -> None:
        """What a decoder makes of released records."""
        parts, schema = self.sources["released"], self.release.schema.plain
        seen = parts["attack"], parts["select"], parts["test"]
        self.rebuilt.append(decoder.attack(*seen, schema, self.seed, progress=False))
        tick(1.0)

    def _rebuilt_parts(self) -> Parts | None:
        """Records rebuilt by the release's own decoder, else by the closest; None where they are
        not read."""
        if not self.rebuilt or not self.battery.reread:
            return None
        own = [decoder for one, decoder in self.rebuilt if one.decoder == OwnDecoder.title]
        decoder = own[0] if own else self.rebuilt[0][1]
        return self._parts(rebuilt_release(decoder, self.release), self.private)

    def _decode_first(
        self,
        attribute: Attribute,
        raw: Sequence[AttackResult],
        raw_before: Sequence[Finding],
        tick: Tick,
    ) -> list[AttackResult]:
        """What is read from rebuilt records. Where raw records were not attacked in this audit, the
        adversaries that were best in an earlier one learn on them, or the last of the battery."""
        assert self.rebuilt_parts is not None
        target = AttackTarget(self.rebuilt_parts, attribute, "private", "rebuilt")
        parts = self.sources.get("raw") or self._parts(self._identity(), [attribute.name])
        if not raw:
            on_raw = AttackTarget(parts, attribute, "private", "raw")
            adversaries = [*self.battery.against(parts["attack"].view, attribute), *self.readers]
            people = len(np.unique(parts["select"].people))
            places = raw_readers_needed(raw_before, people) if raw_before else [-1]
            raw = [run_adversary(adversaries[i], on_raw, self.seed, silent) for i in places]
        return read_rebuilt(target, RawReaders(parts, raw), self.readers, self.seed, tick)

    def _undeclared_readings(self, raw_from: Audit | None) -> tuple[Reading, ...]:
        """Every labelled attribute that nobody named; the furthest above guessing first."""
        earlier = {r.attribute: r.raw for r in raw_from.undeclared} if raw_from else {}
        readings = []
        for name, attribute in self.undeclared.items():
            found = {
                source: tuple(self.scouted[source, scout, name] for scout in self.battery.scouts)
                for source in self.sources
            }
            released, raw = found["released"], found.get("raw", earlier.get(name, ()))
            best = strongest(released), strongest(raw)
            readings.append(Reading(name, "undeclared", attribute.values, released, raw, *best))
        return tuple(sorted(readings, key=_above_chance, reverse=True))

    def _information(self) -> dict[str, Figure]:
        """Bits about the records themselves."""
        raw = self.sources.get("raw") or self._parts(self._identity(), [])
        released, test = self.sources["released"]["test"], self.data.part("test")
        estimates = record_information(released, raw["test"], self.seed)
        return estimates | noise_information(self.release, test, self.device)

    def _fairness(self, models: Models, raw_from: Audit | None) -> tuple[Fairness, ...]:
        """Of the decisions that the models' scores are counted with: by the more likely value, a
        model of a rare one says no to all, which treats everybody alike and serves nobody."""
        earlier = {(one.task, one.by): one.raw for one in (raw_from.fairness if raw_from else ())}
        found, classes = [], {name for name, one in self.declared.items() if one.is_class}
        for task, by in product(models, self.private):
            if not {task, by} <= classes:
                continue
            test, select = (self.sources["released"][part] for part in ("test", "select"))
            truth, groups = test.labels(task), test.labels(by)
            present = has_label(truth) & has_label(groups)
            guesses = {
                source: guesses_of(select.labels(task), one.select, one.test, self.declared[task])
                for source, one in models[task].items()
            }
            one = fairness(
                task,
                by,
                truth[present],
                guesses["released"][present],
                guesses["raw"][present] if "raw" in guesses else None,
                groups[present],
                self.declared[by].values,
                test.people[present],
            )
            found.append(replace(one, raw=earlier.get((task, by), one.raw)))
        return tuple(found)


def seed_torch(seed: int, name: str) -> None:
    """Start torch's generator anew for a piece of work."""
    words = [seed, zlib.crc32(name.encode())]
    torch.manual_seed(int(np.random.SeedSequence(words).generate_state(1)[0]))


def _above_chance(reading: Reading) -> float:
    """How far the lower end of the score is above guessing, as a share of what is left to know."""
    score = reading.worst.score
    return (score.low - score.chance) / (1 - min(score.chance, 0.99))


def _worth_guessing(attribute: Attribute, data: Dataset) -> bool:
    labels = data.labels[attribute.name][data.part_of == PARTS.index("attack")]
    if attribute.kind in ("identity", "mask") or attribute.classes > MOST_CLASSES:
        return False
    return len(np.unique(labels[has_label(labels)])) > 1
