"""What an audit says, as values: every figure carries its measure, unit, direction, chance level,
interval and n.

This is the layout of audit.json, which docs/audit-json.md explains field by field and
audit.schema.json states for machines.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from privet.core.errors import PrivetError
from privet.core.files import write_text
from privet.core.json_values import as_json, read
from privet.evidence.signature import Signature
from privet.evidence.what_leaves import WhatLeaves

# Version of the layout of audit.json.
VERSION = 2

Direction = Literal["lower", "higher"]
Source = Literal[
    "released", "raw", "rebuilt", "averaged", "pooled", "kept columns", "released and kept"
]
Role = Literal["private", "utility", "undeclared"]

# What else than the released numbers an attacker of one record has.
ONE_RECORD: tuple[Source, ...] = ("rebuilt", "kept columns", "released and kept")


@dataclass(frozen=True)
class Figure:
    """One number that can be read without the rest of the page.

    Parameters:
        low: Lower end of the interval.
        high: Upper end of the interval.
        n: Records, or people, the number was counted on; 0 says that nothing was measured.
        chance: What the best guess without any data would reach.
        unit: share, bits, dB, or the unit of the attribute itself.
        better: Which direction the user of the release would like: lower for what leaks, higher for
            a task.
        interval: How the interval was made; empty where there is none, and then low = value = high.
        measure: What was counted, in words.
        note: What is known to be wrong with this number, or what it means, in one sentence.
    """

    value: float
    low: float
    high: float
    n: int
    chance: float
    unit: str = "share"
    better: Direction = "lower"
    interval: str = "Clopper-Pearson 95 %"
    measure: str = "balanced accuracy"
    note: str = ""

    @property
    def is_chance(self) -> bool:
        """Whether the interval reaches chance: nothing was shown to be readable. For a loss, chance
        is its upper end."""
        return (
            self.high >= self.chance
            if self.measure.startswith("mean absolute error")
            else self.low <= self.chance
        )


def is_counted(figure: Figure) -> bool:
    """Whether something was counted, and is a number."""
    return figure.n > 0 and all(map(math.isfinite, (figure.value, figure.low, figure.high)))


@dataclass(frozen=True)
class Finding:
    """What one adversary (or task model) read of one attribute, on people nobody learned from.

    Parameters:
        adversary: A word of the table of adversaries.
        source: What it saw: released records, raw ones for comparison, ones rebuilt from released
            ones, averages of several releases, all records of a person ("pooled"), the columns
            kept beside released records, or both together.
        select: Its score on *select* (balanced accuracy, or share of variance explained), by which
            the strongest is chosen.
        score: Of classes the balanced accuracy at the threshold chosen on *select*; of a number the
            share of variance explained.
        plain: Of classes the accuracy of its plain answer; of a number the mean absolute error.
        auc: Area under the ROC curve, one against the rest; None for numbers, or where it is not
            defined.
        title: What the adversary is called among people.
        releases: How many releases of each record it averaged.
        records: How many records of a person it saw at once.
        columns: The columns beside released records that it saw.
    """

    adversary: str
    source: Source
    select: float
    score: Figure
    plain: Figure
    auc: Figure | None
    seconds: float
    title: str = ""
    releases: int = 1
    records: int = 1
    columns: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        return self.title or self.adversary


@dataclass(frozen=True)
class Group:
    """How well the strongest adversary reads the attribute among some of the people.

    Parameters:
        by: The attribute that makes the group.
        value: Its value in this group.
        score: The same measure as the headline's.
    """

    by: str
    value: str
    score: Figure


@dataclass(frozen=True)
class ClassScore:
    """How well one value of an attribute is told from all the others.

    Parameters:
        value: The value.
        people: Test people who have it.
        score: Balanced accuracy of telling it from the rest, with its own interval; guessing is
            right half of the time.
        adversary: Which adversary that was, chosen on *select* for this value.
        rare: Whether so few people have it that its figure says little.
    """

    value: str
    people: int
    score: Figure
    adversary: str = ""
    rare: bool = False


@dataclass(frozen=True)
class CurvePoint:
    """What the strongest adversary reads after learning from fewer records.

    Parameters:
        records: How many records of *attack* it learned from.
        score: The same measure as the headline's.
        adversary: Which adversary that was: the first, and so about the quickest, of those that
            read as much as the strongest, up to noise.
    """

    records: int
    score: Figure
    adversary: str = ""


@dataclass(frozen=True)
class Risk:
    """Per record: how much of its probability the strongest adversary puts on the true value.

    Parameters:
        edges: Edges of the bins of that probability, from 0 to 1.
        counts: Test records in each bin.
        sure: Share of records for which the adversary is right and at least nine tenths sure.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    sure: Figure


@dataclass(frozen=True)
class Reading:
    """Everything found about one attribute.

    Parameters:
        values: Names of its classes; empty for a number.
        released: What was read from one release of a record, by whichever way: from the released
            record itself, or from a record rebuilt from it.
        best: Index into `released` of the finding that was strongest on *select*: the one to
            believe.
        baselines: What is known without the release: 'prior', and 'task NAME' for what the label of
            that task alone gives away.
        evidence: More about the strongest adversary, by the name of the measure: f1,
            tpr_at_fpr_1_percent, advantage, usable_bits, ...
        others: Findings outside the contest for the headline: from averages of several releases,
            from all records of a person, and from columns kept beside; in older audits from rebuilt
            records too.
        classes: Every value against the rest, the most readable first; empty for a number.
        curve: What the strongest adversary reads after learning from fewer records, the fewest
            first.
    """

    attribute: str
    role: Role
    values: tuple[str, ...]
    released: tuple[Finding, ...]
    raw: tuple[Finding, ...]
    best: int
    best_raw: int
    baselines: dict[str, Figure] = field(default_factory=dict)
    evidence: dict[str, Figure] = field(default_factory=dict)
    groups: tuple[Group, ...] = ()
    risk: Risk | None = None
    others: tuple[Finding, ...] = ()
    classes: tuple[ClassScore, ...] = ()
    curve: tuple[CurvePoint, ...] = ()

    @property
    def worst(self) -> Finding:
        """For a private attribute the adversary to fear, for a task the model to use."""
        return self.released[self.best]

    @property
    def headline(self) -> Finding:
        """The finding to judge one record by: the highest of the strongest attacker on released
        numbers and those on rebuilt records and on the columns that leave as well. Those who see
        several records of a person or releases of a record are told beside it."""
        if self.role == "utility":
            return self.worst
        also = [f for f in self.others if f.source in ONE_RECORD and is_counted(f.score)]
        return max([self.worst, *also], key=lambda f: f.score.value if is_counted(f.score) else -1)

    @property
    def reference(self) -> Finding:
        """The same on raw data."""
        return self.raw[self.best_raw]

    @property
    def is_number(self) -> bool:
        return not self.values

    @property
    def is_guessing(self) -> bool:
        """Whether nothing of what leaves with one release was shown to read the attribute better
        than guessing does: not the strongest adversary, for no value against the rest, not from
        rebuilt records and not with the columns kept beside. Values that few people have (`rare`)
        are then still to be named: of them hardly anything could have been seen."""
        ways = [f for f in self.others if f.source in ("rebuilt", "released and kept")]
        scores = [self.worst.score, *(f.score for f in ways), *(c.score for c in self.classes)]
        return all(score.is_chance for score in scores)

    @property
    def rare(self) -> tuple[str, ...]:
        """Values that so few test people have that their figures say little."""
        return tuple(one.value for one in self.classes if one.rare)


@dataclass(frozen=True)
class Rebuilt:
    """What one decoder makes of the released records of people it has not seen.

    Parameters:
        measure: What `value` counts, in words: 'PSNR in dB', 'share of words rebuilt', 'share of
            variance explained'.
        originals: Pictures as PNG in base64, or texts.
        decoder: Which decoder it was, in words.
        figures: psnr, ssim, ms_ssim of pictures, each with its interval over people.
    """

    measure: str
    value: float
    n: int
    originals: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    decoder: str = "decoder"
    figures: dict[str, Figure] = field(default_factory=dict)


@dataclass(frozen=True)
class People:
    """An attack on people rather than on an attribute: re-identification, membership (of vectors by
    similarity scores as well), or finding the release of a raw vector that the attacker holds.

    Parameters:
        adversary: The variant that was strongest on people other than those counted, in words.
        figures: top_1 and top_5, of a raw vector top_1_without_release too; or auc,
            balanced_accuracy and tpr_at_fpr_1_percent. From released records.
        raw: The same from raw records.
        note: What the attack was, in a sentence or two.
    """

    attack: Literal["re-identification", "membership", "membership by similarity", "raw vector"]
    adversary: str
    figures: dict[str, Figure]
    raw: dict[str, Figure] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Fairness:
    """How differently the model for a task treats groups, learned from released and from raw
    records.

    Parameters:
        by: The attribute that makes the groups.
        released: demographic_parity_difference and equalized_odds_difference: 0 treats all groups
            alike, 1 is the other end.
        rates: Accuracy of the model on released records in each group.
    """

    task: str
    by: str
    released: dict[str, Figure]
    raw: dict[str, Figure]
    rates: tuple[Group, ...] = ()


@dataclass(frozen=True)
class CertifiedGroup:
    """The bound among people of whom something is known beside the release.

    Parameters:
        by: What is known: an attribute, or several with 'and' between them.
        value: Its value in this group.
        bound: Upper bound on every adversary's balanced accuracy within the group; None: not
            certified.
        empirical: Balanced accuracy of the best adversary for just these people.
        slack: What is added because people are a sample.
        people: Test people of the group who have each value of the private attribute.
        reason: Why it is not certified; empty where it is.
    """

    by: str
    value: str
    bound: float | None
    empirical: float
    slack: float
    people: tuple[int, ...]
    reason: str = ""


@dataclass(frozen=True)
class PriorPoint:
    """One point of a curve that bounds every adversary.

    Parameters:
        at: A false positive rate, a posterior probability, or an epsilon, as the curve says.
        bound: What no adversary exceeds there: a true positive rate, a share of releases, or a
            delta.
    """

    at: float
    bound: float


@dataclass(frozen=True)
class AllPriors:
    """What holds whatever the adversary believed before: bounds at every prior at once.

    Parameters:
        roc: Per false positive rate, the largest true positive rate of any test of one value
            against another, over all pairs of values.
        posterior: Per probability, the largest share of releases of people of one value after which
            it has at least that probability, the values being equally likely before.
        leakage_bits: Maximal leakage: log2(k V) for k equally likely values.
        bayes_security: The smallest over pairs of values of 2 (1 - V): 1 says nothing leaks, 0
            everything.
        epsilon_delta: Per epsilon, a delta with which every pair of values is (epsilon,
            delta)-indistinguishable. It is about this attribute, and no differential privacy of the
            record.
    """

    roc: tuple[PriorPoint, ...]
    posterior: tuple[PriorPoint, ...]
    leakage_bits: float
    bayes_security: float
    epsilon_delta: tuple[PriorPoint, ...] = ()


@dataclass(frozen=True)
class Certified:
    """What no adversary can beat when it guesses one private attribute, or why nothing can be said;
    certificate.py has the proof.

    Parameters:
        attribute: Its name; of several guessed at once, their names with 'and' between them.
        values: What is guessed among: classes, ranges of a number, or combinations.
        bound: Upper bound on every adversary's balanced accuracy; None: not certified.
        at_prior: Upper bound on plain accuracy, the values being as frequent as they are.
        prior: How frequent they are.
        bits: Upper bound on the bits that a release carries about it, the values being equally
            likely.
        empirical: Balanced accuracy of the best adversary for just these people: bound = empirical
            + slack.
        slack: What is added because people are a sample.
        confidence: How sure all bounds of a page are at once; of those written before
            `statements` was, each by itself.
        people: Test people who have each value.
        d: Dimensions of the code that noise is added to, or symbols of the alphabet; 0 where there
            is neither.
        sigma: Deviation of the noise of one release; null for symbols.
        releases: How many releases of the same record, each with fresh noise, the adversary sees.
        method: How the bound was computed: smoothed, transport or histogram.
        reason: Why it is not certified; empty where it is.
        transport: The bound by optimal transport, where it was asked for.
        note: What else is to be known about it, in one or two sentences.
        flip: Of a release of symbols: how often one is replaced by another drawn at random.
        records: How many records of a person the adversary sees at once.
        per: Whether each record is released, or one release is made of all records of a person.
        weighing: Whether every person weighs the same, or every record.
        given: Attributes that the adversary knows beside the release.
        alone: Where something is given: balanced accuracy of the best guess from it without the
            release, among just these people.
        groups: The bound within every group of people by what is given, all at once.
        data_free: A bound that needs no people: from the noise and the largest distance between two
            codes; None where there is none.
        priors: What holds at every prior.
        statements: How many statements share the confidence; 0 where it was not counted.
    """

    attribute: str
    values: tuple[str, ...]
    bound: float | None
    at_prior: float | None
    prior: tuple[float, ...]
    bits: float | None
    empirical: float
    slack: float
    confidence: float
    people: tuple[int, ...]
    d: int
    sigma: float | None
    releases: int
    method: str
    reason: str = ""
    transport: float | None = None
    note: str = ""
    flip: float | None = None
    records: int = 1
    per: Literal["record", "person"] = "record"
    weighing: Literal["people", "records"] = "people"
    given: tuple[str, ...] = ()
    alone: float | None = None
    groups: tuple[CertifiedGroup, ...] = ()
    data_free: float | None = None
    priors: AllPriors | None = None
    statements: int = 0

    @property
    def chance(self) -> float:
        """Balanced accuracy of guessing without the release."""
        return 1 / max(len(self.values), 1)

    @property
    def is_plain(self) -> bool:
        """Whether it is about one record, every person weighing the same, and an adversary who
        knows nothing else; seen once or several times."""
        return (
            self.records == 1
            and self.per == "record"
            and self.weighing == "people"
            and not self.given
        )


@dataclass(frozen=True)
class Audit:
    """What was found, JSON in and JSON out. Reports and gates are views of it.

    Parameters:
        release: From the card: method, settings, private, seed, in_game (what the method's own
            adversary reached), sha256.
        data: name, modality, fingerprint, and parts: {part: {records, people}}.
        readings: The private attributes, then the tasks.
        limits: What this audit does not show, in plain sentences.
        rebuilt: One per decoder, the closest on *select* first.
        undeclared: Attributes nobody named, the most readable first.
        information: Bits that released records carry about the records themselves, where there is a
            bound or an estimate.
        certificates: Per private attribute, and all of them at once, what no adversary can beat;
            for one release of a record and for several.
        leaves: What leaves with each record, as it was attacked.
        checks: What is wrong with the data, in plain sentences: to be read before any figure.
        looks: How often *test* of this data had been looked at before, where that is known.
        signature: Who signed it, where somebody did.
        goals: By private attribute, what attackers should not exceed, where that was stated.
        retrieval: Of vectors, what a search of released ones keeps of a search of raw ones:
            recall_at_10, ndcg_at_10, the same with raw queries, drift, cluster_agreement.
    """

    release: dict[str, Any]
    data: dict[str, Any]
    battery: str
    readings: tuple[Reading, ...]
    limits: tuple[str, ...]
    seconds: float
    rebuilt: tuple[Rebuilt, ...] = ()
    undeclared: tuple[Reading, ...] = ()
    people: tuple[People, ...] = ()
    fairness: tuple[Fairness, ...] = ()
    information: dict[str, Figure] = field(default_factory=dict)
    certificates: tuple[Certified, ...] = ()
    version: int = VERSION
    leaves: WhatLeaves = field(default_factory=WhatLeaves)
    checks: tuple[str, ...] = ()
    looks: int | None = None
    signature: Signature | None = None
    goals: dict[str, float] = field(default_factory=dict)
    retrieval: dict[str, Figure] = field(default_factory=dict)

    # For notebooks; reporting/notebook.py has them, since this room knows numbers only.
    to_frame: ClassVar[Callable[[Audit], Any]]
    _repr_html_: ClassVar[Callable[[Audit], str]]
    # Of each private attribute, in a word and a sentence (verdict.py).
    verdicts: ClassVar[tuple[Any, ...]]

    def reading(self, attribute: str) -> Reading:
        return next(r for r in (*self.readings, *self.undeclared) if r.attribute == attribute)

    @property
    def private(self) -> tuple[Reading, ...]:
        return tuple(r for r in self.readings if r.role == "private")

    @property
    def utility(self) -> tuple[Reading, ...]:
        return tuple(r for r in self.readings if r.role == "utility")

    def to_json(self) -> str:
        """JSON has no infinity and no NaN: they are written as null, and read as NaN."""
        return as_json(self)

    def save(self, path: str | Path) -> None:
        write_text(Path(path), self.to_json() + "\n")

    @staticmethod
    def from_json(text: str) -> Audit:
        try:
            raw = json.loads(text)
            if raw["version"] != VERSION:
                raise PrivetError(
                    f"This audit has layout version {raw['version']!r:.40}, and this Privet reads"
                    f" version {VERSION}."
                )
            return cast(Audit, read(Audit, raw, "audit"))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise PrivetError(f"This is not an audit that Privet wrote: {error}.") from None

    @staticmethod
    def load(path: str | Path) -> Audit:
        try:
            return Audit.from_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise PrivetError(f"Cannot read the audit {path}: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise PrivetError(f"{path} is not an audit that Privet wrote: it is no text.") from None
