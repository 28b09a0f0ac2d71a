"""Dataset: columns, not a list of objects.

Raw records (pictures, rows, texts, windows), one label array per attribute, who each record is
from, and which of four parts it belongs to. Nothing here is encoded for a network: that is a
`Schema`, learned on the *fit* part alone, because it has to travel with the release to where the
data is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from privet.core.errors import PrivetError, unknown
from privet.evidence import Array
from privet.evidence.attribute import Attribute, Kind

__all__ = ["PARTS", "Array", "Attribute", "Dataset", "Kind", "Modality", "Sampled", "Splits"]

Modality = Literal["image", "table", "text", "signal"]

PARTS = ("fit", "attack", "select", "test")


class LabelsByName(Mapping[str, Array]):
    """Labels that are made when they are asked for, of tables that do not fit into memory."""

    @abstractmethod
    def of_rows(self, rows: Array) -> LabelsByName:
        """The labels of these records of the source."""

    @abstractmethod
    def changed(self, labels: Mapping[str, Array]) -> LabelsByName:
        """The same with some labels of all records of the source changed."""


class Sampled(NamedTuple):
    """People who were taken of a table that has more.

    Parameters:
        people: How many were taken.
        of: How many there are.
        exact: Whether these were counted, and not estimated.
        column: The column that names them; None where every record is a person.
        asked: How many were asked for; None where as many were taken as fit.
        dealt: Whether the hash that chose them decided their part too, where no column does.
    """

    people: int
    of: int
    exact: bool
    column: str | None
    asked: int | None
    dealt: bool

    @property
    def sentence(self) -> str:
        """
        >>> Sampled(200, 9_000, True, "who", 200, True).sentence
        "A random sample: 200 of 9,000 people, chosen by a hash of 'who', with all records of each."
        """
        about = "" if self.exact else "about "
        if self.column is None:
            return (
                f"A random sample: {self.people:,} of {about}{self.of:,} records, each taken for a "
                "person, chosen by a hash of their place."
            )
        return (
            f"A random sample: {self.people:,} of {about}{self.of:,} people, chosen by a hash of "
            f"'{self.column}', with all records of each."
        )


class Splits(NamedTuple):
    """Four parts that share no person.

    Parameters:
        fit: Learns the release.
        attack: Trains adversaries and task models.
        select: Chooses the strongest adversary, thresholds and noise levels.
        test: The only part whose numbers are reported.
    """

    fit: Dataset
    attack: Dataset
    select: Dataset
    test: Dataset


@dataclass(frozen=True, eq=False)
class Dataset:
    """Columns, not a list of objects: raw records, labels, people and parts.

    Parameters:
        records: All raw records of the source, shared by every view: uint8 pictures (n, channels,
            height, width), possibly memory-mapped; float windows (n, channels, time); an object
            array of strings; a pandas frame; or a StoredTable, which lies on disk.
        labels: Per attribute, aligned with `rows`: int64 codes with -1 for missing; float64 with
            NaN for missing numbers; uint8 (n, height, width) for masks.
        part_of: int8, aligned with `rows`: index into PARTS.
        rows: Which records this view holds, in order.
        fingerprint: SHA-256 of the content, so that a card can say what a release was learned on.
        person: int64 codes aligned with `rows`, or None where every record is a person of its own.
        notes: Plain sentences about choices made while reading (people moved between parts, rows
            dropped, ...).
        space: Where every record is a vector, the name of the space that it is in, empty where it
            has no name; None for other records.
        content: SHA-256 that stands for the bytes of the source, sampled or not; empty where nobody
            knows.
        sampled: Who was taken, where not everybody was.
    """

    name: str
    modality: Modality
    records: Any
    attributes: Mapping[str, Attribute]
    labels: Mapping[str, Array]
    part_of: Array
    rows: Array
    fingerprint: str
    person: Array | None = None
    notes: tuple[str, ...] = field(default=())
    space: str | None = None
    content: str = ""
    sampled: Sampled | None = None

    # Readers of what is in memory; in_memory.py has them, since they are built on this class.
    from_frame: ClassVar[Callable[..., Dataset]]
    from_arrays: ClassVar[Callable[..., Dataset]]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def said_of_sample(self) -> dict[str, Any]:
        """What cards, audits and certificates say of a sample; nothing where it is none."""
        return {} if self.sampled is None else {"sampled": self.sampled._asdict()}

    @property
    def people(self) -> Array:
        """A person code per record; without a person column every record counts as one person."""
        return self.rows if self.person is None else self.person

    def attribute(self, name: str) -> Attribute:
        if name not in self.attributes:
            raise unknown("attribute", name, self.attributes)
        return self.attributes[name]

    def take(self, index: Array | slice) -> Dataset:
        """A view of some of the records; the records themselves are not copied."""
        rows, labels = self.rows[index], self.labels
        return replace(
            self,
            rows=rows,
            part_of=self.part_of[index],
            person=None if self.person is None else self.person[index],
            labels=labels.of_rows(rows)
            if isinstance(labels, LabelsByName)
            else {name: column[index] for name, column in labels.items()},
        )

    def part(self, name: str) -> Dataset:
        if name not in PARTS:
            raise unknown("part", name, PARTS)
        return self.take(np.flatnonzero(self.part_of == PARTS.index(name)))

    def splits(self) -> Splits:
        """The four parts. They were drawn once, by person, when the data was read."""
        return Splits(*(self.part(name) for name in PARTS))

    def fit_as_attack(self) -> Dataset:
        """The same data with the people of *fit* in *attack*: for records that are already
        released, where nothing is learned on *fit*."""
        parts = np.where(self.part_of == PARTS.index("fit"), PARTS.index("attack"), self.part_of)
        return replace(self, part_of=parts.astype(self.part_of.dtype))

    def require_records(self, *parts: str, least: int = 8) -> None:
        """Say so where a part is too small to learn or to count anything from."""
        for part in parts:
            have = int((self.part_of == PARTS.index(part)).sum())
            if have < least:
                raise PrivetError(
                    f"The {part} part of {self.name} has {have} records, and at least {least} are"
                    " needed: add records."
                )

    def require_labels(self, names: Sequence[str], role: str, part: str) -> list[Attribute]:
        """The same for classes or numbers."""
        return [
            self._number(name, role, part) or self.require_classes([name], role, part)[0]
            for name in names
        ]

    def _number(self, name: str, role: str, part: str) -> Attribute | None:
        attribute = self.attribute(name)
        if attribute.kind != "number":
            return None
        seen = self.labels[name][self.part_of == PARTS.index(part)]
        if len(np.unique(seen[np.isfinite(seen)])) < 2:
            raise PrivetError(
                f"The {role} attribute '{name}' has only one value among the {part} records of"
                f" {self.name}."
            )
        return attribute

    def require_classes(
        self, names: Sequence[str], role: str, part: str = "fit"
    ) -> list[Attribute]:
        """The attributes called `names`, or a sentence why one of them cannot be a `role`."""
        found = []
        for name in names:
            attribute = self.attribute(name)
            if not attribute.is_class:
                instead = (
                    "choose another attribute"
                    if attribute.kind == "mask"
                    else "give it bins or classes in a --schema file"
                )
                raise PrivetError(
                    f"The {role} attribute '{name}' is a {attribute.kind}, and classes are needed:"
                    f" {instead}."
                )
            seen = np.unique(self.labels[name][self.part_of == PARTS.index(part)])
            if len(seen[seen >= 0]) < 2:
                raise PrivetError(
                    f"The {role} attribute '{name}' has only one value among the {part} records of"
                    f" {self.name}: there is nothing to tell apart. Choose another attribute, add"
                    " records, or, with few people, deal them out anew with  seed = 1  in a"
                    " --schema file."
                )
            found.append(attribute)
        return found
