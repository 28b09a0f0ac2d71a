"""Checks of the data, before any figure is believed: copies, near-copies, labels in the input, too
few people. Each is a sentence that is said first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from privet.core.errors import PrivetError, unknown
from privet.data.dataset import PARTS, Array, Attribute, Dataset
from privet.data.duplicates import Copies, copies, some_contents
from privet.data.label_columns import LabelColumn, label_columns
from privet.data.near_duplicates import MOST, near_duplicates
from privet.data.schema import Schema, TableSchema
from privet.evidence.certificate.sampling import balanced_slack
from privet.evidence.intervals import balanced_interval
from privet.evidence.sentences import say

What = Literal["duplicates", "near-duplicates", "label", "people"]
Severity = Literal["note", "warning", "meaningless"]

KINDS: tuple[What, ...] = ("duplicates", "near-duplicates", "label", "people")
# People of a value, or in a part, of which fewer are named.
FEW = 30
# Half of an interval's width from which a figure says little.
WIDE = 0.10
# Share of the test records that may be copies before figures are doubted, and before they mean
# nothing.
DOUBTED, NOTHING = 0.01, 0.5
# Values that a sentence names.
_NAMED = 5


@dataclass(frozen=True)
class DataCheck:
    """Something about the data that changes what figures mean.

    Parameters:
        what: The kind of check: duplicates, near-duplicates, label or people.
        count: How many records, columns or people it is about.
        sentence: What is wrong, and what to do.
        severity: note: worth knowing; warning: figures are less sure than they look; meaningless: a
            figure would say nothing.
    """

    what: What
    count: int
    sentence: str
    severity: Severity = "warning"


def check_data(
    data: Dataset,
    private: Sequence[str] = (),
    utility: Sequence[str] = (),
    columns: Sequence[str] | None = None,
) -> tuple[DataCheck, ...]:
    """Everything that is wrong with the data, the worst first.

    Parameters:
        data: All parts.
        private: The attributes to hide.
        utility: The tasks.
        columns: The columns of a table that are input; None: all but private ones and tasks.

    >>> from privet.data.sources import load
    >>> data = load("toy:gaussian")
    >>> [check.sentence for check in check_data(data, private=["u"])]
    []
    """
    if columns is None:
        every = data.records.columns if data.modality == "table" else ()
        columns = [str(name) for name in every if name not in (*private, *utility)]
    counted, each = some_contents(data)
    checks = [
        *_duplicates(copies(counted), each),
        *_near_duplicates(data),
        *_labels(label_columns(data, [*private, *utility], columns), private),
        *_parts(data),
        *(check for name in private for check in _few_people(data, name, "private attribute")),
        *(check for name in utility for check in _few_people(data, name, "task")),
    ]
    order = ("meaningless", "warning", "note")
    return tuple(sorted(checks, key=lambda check: order.index(check.severity)))


def input_columns(schema: Schema) -> list[str]:
    """The names of the columns that a release of a table takes."""
    plain = schema.plain
    return [column.name for column in plain.columns] if isinstance(plain, TableSchema) else []


def serious(checks: Iterable[DataCheck]) -> tuple[str, ...]:
    """The sentences to be read before any figure: all but notes."""
    return tuple(check.sentence for check in checks if check.severity != "note")


def refuse_meaningless(checks: Iterable[DataCheck], accept: Sequence[str] = ()) -> None:
    """Refuse data whose figures would mean nothing, unless that kind of check is accepted."""
    for word in accept:
        if word not in KINDS:
            raise unknown("check of the data", word, KINDS)
    for check in checks:
        if check.severity == "meaningless" and check.what not in accept:
            raise PrivetError(f"{check.sentence} To go on all the same:  --accept {check.what}.")


def _duplicates(counted: Copies, each: int) -> list[DataCheck]:
    """Of one in so many contents."""
    among = "" if each == 1 else f"Among one in {each} contents: "
    return [replace(check, sentence=among + check.sentence) for check in _copies(counted)]


def _copies(counted: Copies) -> list[DataCheck]:
    checks = []
    if counted.across_people:
        checks.append(_across_people(counted))
    if counted.within_person:
        sentence = say("check_same_person", records=f"{counted.within_person:,}")
        checks.append(DataCheck("duplicates", counted.within_person, sentence, "note"))
    return checks


def _across_people(counted: Copies) -> DataCheck:
    known = {"known": f"{counted.in_test:,}", "test": f"{counted.test:,}"}
    share, records = counted.in_test / max(counted.test, 1), f"{counted.across_people:,}"
    if counted.times > 1:
        severity: Severity = "meaningless"
        sentence = say("check_joined", times=counted.times, **known)
    elif counted.natural:
        severity, sentence = "note", say("check_chance", records=records, **known)
    else:
        sentence = say("check_copies", records=records, **known)
        severity = "meaningless" if share >= NOTHING else "warning" if share >= DOUBTED else "note"
    return DataCheck("duplicates", counted.across_people, sentence, severity)


def _near_duplicates(data: Dataset) -> list[DataCheck]:
    if data.modality != "image":
        return []
    pairs = near_duplicates(data)
    people, parts = data.people[pairs], data.part_of[pairs]
    pairs, parts = (rows[people[:, 0] != people[:, 1]] for rows in (pairs, parts))
    if not len(pairs):
        return []
    test = PARTS.index("test")
    crossing = (parts[:, 0] != parts[:, 1])[:, None] & (parts == test)
    in_test = len(np.unique(pairs[crossing]))
    n_test = int((data.part_of == test).sum())
    among = "" if len(data) <= MOST else "Among some of the pictures, "
    known = {"known": f"{in_test:,}", "test": f"{n_test:,}"}
    sentence = among + say("check_near", pairs=f"{len(pairs):,}", **known)
    severity: Severity = "warning" if in_test >= DOUBTED * n_test else "note"
    return [DataCheck("near-duplicates", len(pairs), sentence, severity)]


def _labels(columns: Sequence[LabelColumn], private: Sequence[str]) -> list[DataCheck]:
    checks = []
    for label, column, how, score in columns:
        role = "private attribute" if label in private else "task"
        what = {
            "itself": f"The {role} '{label}' is itself a column of the input",
            "recoded": f"The column '{column}' of the input is the {role} '{label}' in other words",
            "tells": say(
                "check_tells", column=column, role=role, label=label, share=f"{100 * score:.1f}"
            ),
        }[how]
        if role == "task":
            then = "a task's figure then means nothing: the label is copied, not predicted"
            severity: Severity = "warning" if how == "tells" else "meaningless"
        else:
            then = "figures on raw records then say how well a copy can be read"
            severity = "warning"
        advice = f"Leave it out with  --without {column}."
        checks.append(DataCheck("label", 1, f"{what}: {then}. {advice}", severity))
    return checks


def _parts(data: Dataset) -> list[DataCheck]:
    people = {
        part: len(np.unique(data.people[data.part_of == code])) for code, part in enumerate(PARTS)
    }
    few = {part: n for part, n in people.items() if 0 < n < FEW}
    if not few:
        return []
    listed = ", ".join(f"{part} {n}" for part, n in few.items())
    sentence = say("check_parts", few=FEW, parts=listed)
    return [DataCheck("people", min(few.values()), sentence)]


def _few_people(data: Dataset, name: str, role: str) -> list[DataCheck]:
    """Values that too few test people have for a figure, or for any certificate."""
    attribute = data.attribute(name)
    if not attribute.is_class:
        return []
    people = _people_per_value(data.part("test"), attribute)
    seen = people[people > 0]
    if len(seen) < 2:
        sentence = (
            f"Fewer than two values of the {role} '{name}' are there among the test people: no"
            " figure about it means anything. Add people."
        )
        return [DataCheck("people", int(seen.sum()), sentence, "meaningless")]
    interval = balanced_interval((seen // 2).tolist(), seen.tolist())
    half = (interval.high - interval.low) / 2
    certifiable = 1 / len(seen) + balanced_slack(seen.tolist(), 0.01) < 1
    rare = [value for value in np.argsort(people, kind="stable") if people[value] < FEW]
    if not rare and half <= WIDE and certifiable:
        return []
    sentence = f"Few test people for the {role} '{name}'"
    if rare:
        named = ", ".join(f"'{attribute.values[value]}' {people[value]}" for value in rare[:_NAMED])
        more = f" and {len(rare) - _NAMED} more values" if len(rare) > _NAMED else ""
        sentence += f" (with the value {named}{more})"
    sentence += say("check_points", points=f"{100 * half:.0f}")
    if rare and len(seen) > 2:
        sentence += ", and rare values can hide in it what is read of the others"
    if role == "private attribute" and not certifiable:
        sentence += ", and no certificate is possible"
    return [DataCheck("people", int(seen.min()), f"{sentence}.")]


def _people_per_value(view: Dataset, attribute: Attribute) -> Array:
    labels = view.labels[attribute.name]
    known = labels >= 0
    holders = np.unique(np.stack([labels[known], view.people[known]], axis=1), axis=0)
    return np.bincount(holders[:, 0].astype(np.int64), minlength=attribute.classes)
