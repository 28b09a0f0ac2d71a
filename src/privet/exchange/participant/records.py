"""Records that are ready to leave: the release is run here, with noise from the campaign's key, and
what it gives is packed and sealed."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from privet.core.errors import PrivetError
from privet.data.cell_text import class_text
from privet.data.dataset import Array
from privet.data.images import PICTURE_FILES
from privet.data.schema import PAD, Schema
from privet.data.stream import stream_file, stream_pictures
from privet.data.table_files import READERS, header, kind_of
from privet.exchange.participant.campaign import Campaign
from privet.exchange.participant.local_tests import open_release
from privet.exchange.participant.metadata import metadata
from privet.exchange.participant.randomised import told_labels
from privet.exchange.protocol.checks import check_envelope
from privet.exchange.protocol.envelope import Envelope, Labels
from privet.exchange.protocol.manifest import Label
from privet.exchange.protocol.seal import seal
from privet.release.apply import expand
from privet.release.drift import drift
from privet.release.keyed_noise import KeyedNoise
from privet.release.noise_keys import noise_key
from privet.release.runtime import Runnable

# Records that are read and released at once.
BATCH = 64
# Encoded records, the columns with their labels, and where each is from.
Batch = tuple[Array, pd.DataFrame, list[str]]


@dataclass(frozen=True, eq=False)
class Record:
    """One record, ready to leave.

    Parameters:
        source: Where it is from, for its owner.
        z, labels: What is in it.
        submission: Its name in the campaign.
        content: The bytes that would be sent.
        stays: What the raw file says beside the picture, which does not leave.
    """

    source: str
    z: Array
    labels: Labels
    submission: str
    content: bytes
    stays: dict[str, str] = field(default_factory=dict)

    @property
    def numbers(self) -> str:
        """SHA-256 of the released numbers: the same record gives the same ones."""
        return hashlib.sha256(np.ascontiguousarray(self.z, np.float32).tobytes()).hexdigest()


def prepare(
    campaign: Campaign,
    files: Sequence[Path],
    labels: Sequence[str] = (),
    column: str | None = None,
    home: Path | None = None,
    run: Any = None,
    show: Callable[[str], object] = lambda text: None,
) -> list[Record]:
    """Run the release on every record of the files, and pack what it gives.

    The noise of a record follows from the campaign's key and from its content: the same record
    gives the same numbers, however often it is shared.

    Parameters:
        campaign: Whose release is run, and who gets the records.
        files: Pictures, folders of pictures, texts, or a parquet or CSV file.
        labels: Answers for all records, as `name=value`; a file's column of that name goes first.
        column: The column that holds the picture, text or window.
        home: Where the key is kept; `privet.core.home.home_folder()` unless another is given.
        run: A session of the campaign's release, where there is one already.
        show: Gets a sentence where records are unlike those that the release was learned from.
    """
    manifest, release = campaign.manifest, Runnable.from_card(campaign.card)
    asked = {label.name: label for label in manifest.labels}
    for_all = dict(_answer(asked, word) for word in labels)
    run = open_release(campaign, home) if run is None else run
    name = campaign.link.campaign
    key = noise_key(name, home)
    noise = KeyedNoise(key, manifest.release.graph, name)
    records: list[Record] = []
    for encoded, columns, sources in _read(release.schema, files, list(asked), column):
        if (unlike := drift(campaign.card, release.schema, encoded)) is not None:
            show(unlike.text)
        z, x, _ = release.release(run, encoded, noise, ids=[""] * len(encoded))
        for k, source in enumerate(sources):
            words = int((x[k] != PAD).sum()) if None in manifest.expect.shape else None
            answers = _answers(columns, k, asked)
            told = told_labels({**for_all, **answers}, manifest.labels, key, name)
            records.append(_pack(campaign, z[k, :words], told, source))
    if not records:
        raise PrivetError("There are no records in these files.")
    if len(records) > manifest.records_per_person:
        raise PrivetError(
            f"The campaign takes {manifest.records_per_person} records from one person, and these "
            f"are {len(records)}."
        )
    return records


def _pack(campaign: Campaign, z: Array, labels: Labels, source: str) -> Record:
    manifest, submission = campaign.manifest, secrets.token_hex(16)
    envelope = Envelope(
        campaign.link.campaign,
        manifest.release.card,
        submission,
        labels,
        z,
        manifest.consent_hash,
    )
    check_envelope(manifest, campaign.link.campaign, submission, envelope)
    content = envelope.pack(manifest.expect)
    if manifest.sealing_key is not None:
        content = seal(content, manifest.sealing_key)
    path = Path(source)
    stays = metadata(path) if path.suffix.lower() in PICTURE_FILES and path.is_file() else {}
    return Record(source, z, labels, submission, content, stays)


def _read(
    schema: Schema, files: Sequence[Path], labels: Sequence[str], column: str | None
) -> Iterator[Batch]:
    """Labels are taken from columns of that name, where there are any."""
    paths = [path for file in files for path in expand(file)]
    pictures = [path for path in paths if path.suffix.lower() in PICTURE_FILES]
    if pictures and len(pictures) < len(paths):
        raise PrivetError("Give pictures, or one parquet or CSV file, or texts; not both.")
    for x, columns in stream_pictures(schema, pictures, BATCH) if pictures else ():
        yield x, pd.DataFrame(index=range(len(x))), list(columns["file"])
    for path in () if pictures else paths:
        yield from _read_file(schema, path, labels, column)


def _read_file(
    schema: Schema, path: Path, labels: Sequence[str], column: str | None
) -> Iterator[Batch]:
    if path.suffix.lower() == ".txt" and schema.modality == "text":
        text = path.read_text(encoding="utf-8", errors="replace")
        yield schema.encode([text]), pd.DataFrame(index=[0]), [str(path)]
        return
    names = _column_names(path)
    keep = [name for name in labels if name in names]
    for part, (x, columns) in enumerate(stream_file(schema, path, keep, column, BATCH)):
        first = part * BATCH + 1
        yield x, columns, [f"{path}, row {first + k}" for k in range(len(x))]


def _column_names(path: Path) -> list[str]:
    try:
        if kind_of(path) in READERS:
            return header(path)
        return list(pq.read_schema(path).names)
    except (OSError, ValueError):
        raise PrivetError(f"{path} cannot be read as parquet or CSV.") from None


def _answer(asked: Mapping[str, Label], word: str) -> tuple[str, str | float]:
    name, equals, value = word.partition("=")
    if not equals:
        raise PrivetError(f"--label takes name=value, and '{word}' has no '='.")
    is_number = name in asked and not asked[name].values
    return name, _number(name, value) if is_number else value


def _answers(columns: pd.DataFrame, row: int, asked: Mapping[str, Label]) -> Labels:
    cells = {str(name): columns[name].iloc[row] for name in columns}
    return {
        name: class_text(cell, asked[name].values) if asked[name].values else _number(name, cell)
        for name, cell in cells.items()
        if not pd.isna(cell)
    }


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise PrivetError(f"The answer to '{name}' is a number, not '{value}'.") from None
