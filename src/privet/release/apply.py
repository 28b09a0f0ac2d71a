"""Privatize files: photos, folders of photos, tables, texts and signals go in, one parquet file of
released records comes out, or records in their own form (own_form.py).

Runs the exported graph with onnxruntime, as a participant would. One thread reads, as many as there
are cores encode, draw noise and run the graph, and one writes; each is a few chunks ahead of the
next and no more, so memory does not grow with the file. Raw columns do not come out again; labels
do if they are asked for, a private attribute never. The records are shuffled, and what leaves is
written into the file's metadata.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privet.core.errors import PrivetError, refuse_if
from privet.core.files import replacing, writable_folder
from privet.core.parallel_map import cores, in_order
from privet.core.progress import bar
from privet.core.stores import AnyFile
from privet.data.dataset import Array
from privet.data.images import PICTURE_FILES
from privet.data.schema import PAD, Schema
from privet.data.spaces import check_space, space_of
from privet.data.stream import Chunk, chunks_of_file, chunks_of_pictures, count, frames_of
from privet.evidence.what_leaves import Link, WhatLeaves
from privet.release.csv_output import write_csv
from privet.release.keyed_noise import KeyedNoise
from privet.release.noise_keys import noise_key
from privet.release.own_form import FORMS, Form, OwnForm, drawn_as, own_form
from privet.release.per_person import person_table
from privet.release.picture_files import picture_names, write_pictures
from privet.release.randomness import NOISE_BATCH, Fresh, Randomness, Seeded
from privet.release.runtime import Runnable, read_graph
from privet.release.shuffle import PLACE, shuffled
from privet.release.strangers import release_session

# Most records that are read and encoded at once.
CHUNK = 16 * NOISE_BATCH
# Most numbers that the graph is given at once: what networks make of a record in between is some
# hundred times as large.
INPUTS = 1 << 18
# Encoded and released records that may be on their way.
FLYING_BYTES = 256 << 20
# Released records are written in groups of at least so many bytes, or CHUNK records.
GROUP_BYTES = 8 << 20
Per = Literal["record", "person"]
# Columns that name a person, where nobody says which one does.
PEOPLE = ("person", "author")
# The column that names a picture's file.
FILE = "file"


@dataclass(frozen=True)
class ApplyOptions:
    """How a file of released records is made.

    Parameters:
        campaign: Whose key the noise is drawn with; the beginning of the graph's SHA-256 where none
            is named. The same record gets other noise in another campaign.
        id: The column that tells records with the same content apart, such as a number of the
            person. Without it, a row's number in the file or the name of a picture's file does, so
            that the equal rows of two people do not get equal noise. Name a column where rows may
            move: a record whose id has changed gets other noise.
        fresh: Draw noise from the operating system instead of the key: nobody can repeat it, and
            whoever sees several releases of a record can average it away.
        ordered: Keep the order of the records. Without it, they are shuffled, because the order can
            tell whose a record is.
        per: "person" for one release per person: the mean code of the person's records, with noise
            added once. The release must add its noise to a code, as hedge does.
        person: The column that says whose a record is; `person` or `author` where none is named.
        records: With `per="person"`, how many records of a person are used at most, drawn at
            random; None for all. Where a certificate was made for so many, give that number.
        force: Let `privet.apply` replace a file that is there already.
        form: Write records in their own form: picture, row, vector, window, or record for whatever
            the release takes. None for the released numbers.
        home: Where keys are kept; `$PRIVET_HOME`, or `~/.local/share/privet`.
    """

    campaign: str | None = None
    id: str | None = None
    fresh: bool = False
    ordered: bool = False
    per: Per = "record"
    person: str | None = None
    records: int | None = None
    force: bool = False
    form: Form | None = None
    home: Path | None = None

    def __post_init__(self) -> None:
        refuse_if(self.per not in ("record", "person"), "--per is record or person.")
        refuse_if(
            self.per == "record" and self.records is not None,
            "--records says of how many records of a person one release is made: it goes with "
            "--per person.",
        )
        refuse_if(self.records is not None and self.records < 1, "--records is at least 1.")
        refuse_if(
            self.form is not None and self.form not in FORMS, f"--as is one of {', '.join(FORMS)}."
        )
        refuse_if(
            self.form is not None and self.per == "person",
            "One release per person is a code: leave out --as, or --per person.",
        )


@dataclass(frozen=True)
class Records:
    """What is released, and how, in a form that can be sent to other machines.

    Parameters:
        source: A parquet or CSV file, or pictures.
        total: How many records there are; 0 where nobody has counted them.
        keep: Columns to write beside the released records.
        column: The column that holds the picture, text or window.
        id: The column that tells records with the same content apart; None for their numbers.
        randomness: Where the noise comes from.
        person: The column that says whose a record is, where one release per person is made.
    """

    source: Path | Sequence[Path]
    total: int
    keep: tuple[str, ...]
    column: str | None
    id: str | None
    randomness: Randomness
    person: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read beside the record."""
        return tuple(dict.fromkeys((*self.keep, *filter(None, [self.id, self.person]))))

    @property
    def pictures(self) -> bool:
        return not isinstance(self.source, Path)

    def ids(self, beside: pd.DataFrame) -> list[str] | None:
        """What tells the records apart, where it is not their number."""
        if self.pictures:
            return [Path(name).name for name in beside[FILE]]
        if self.id is None:
            return None
        if beside[self.id].isna().any():
            raise PrivetError(f"The column '{self.id}' has gaps: it cannot tell records apart.")
        return [str(value) for value in beside[self.id].tolist()]


# Where chunks are released elsewhere: the folder and schema of the release, and the records.
Spread = Callable[[Path, Schema, Records], Iterator[pa.Table]]


def apply(
    folder: str | Path,
    inputs: Sequence[str | Path],
    out: str | Path,
    keep: Sequence[str] = (),
    column: str | None = None,
    seed: int | None = None,
    progress: bool = True,
    spread: Spread | None = None,
    options: ApplyOptions | None = None,
) -> Path:
    """Release the records of `inputs` with the release in `folder`; returns the parquet or CSV file
    written at or under `out`.

    `keep` names columns to write beside the released records, `column` the one that holds the
    picture, text or window. `seed` makes the noise repeatable, for tests. `spread` releases the
    chunks elsewhere, such as on a Ray cluster; the file is the same.
    """
    folder, out, options = Path(folder), Path(out), options or ApplyOptions()
    release = Runnable.load(folder)
    check_kept(keep, release.private)
    graph = read_graph(folder)
    run = release_session(graph, threads=1)
    files, pictures = _find_files(inputs, keep, column, options)
    space = getattr(release.schema.plain, "space", None)
    check_space(space, "" if pictures else space_of(files[0]), files[0].name)
    own = own_form_of(folder, release, pictures or files[0], keep, column, options, out)
    run = run if own is None else own.behind(run)
    records = Records(
        pictures or files[0],
        len(pictures) or count(files[0]),
        (FILE,) if own is not None and pictures else tuple(keep),
        column,
        options.id,
        randomness_of(release, options, seed),
        _person_column(pictures or files[0], options),
    )
    refuse_if(
        (records.person is not None or own is not None) and spread is not None,
        "One release per person, or records in their own form, are made on one machine: leave out "
        "--ray.",
    )
    if own is not None and pictures:
        names = picture_names(inputs, pictures, out, options.force)
        # Pictures in one folder are taken to be one person's.
        linked = any(Path(name).parent != Path() for name in names.values())
        about = about_file(release, records, options, seed, linked)
        with bar("releasing", records.total, progress) as tick:
            parts = tables(release, run, _chunks(release.schema, records), records, own=own)
            return write_pictures(_ticked(parts, tick), names, out, about)
    target = target_file(out)
    undo = writable_folder(target.parent)
    try:
        with replacing(target) as temporary, bar("releasing", records.total, progress) as tick:
            if records.person is not None:
                chunks = _chunks(release.schema, records)
                parts = iter([_per_person(release, run, chunks, records, options)])
            elif spread is None:
                chunks = _chunks(release.schema, records)
                parts = tables(release, run, chunks, records, own=own)
            else:
                parts = spread(folder, release.schema, records)
            parts = _ticked(parts, tick)
            if options.ordered:
                parts = (table.drop_columns([PLACE]) for table in parts)
            else:
                parts = shuffled(_alike(parts), target.parent, CHUNK)
            first = next(parts, None)
            if first is None:
                raise PrivetError("There are no records to release.")
            times = any(map(pa.types.is_temporal, first.schema.types))
            about = about_file(release, records, options, seed, times=times)
            write = write_csv if target.suffix == ".csv" else write_parquet
            write(temporary, about, chain([first], parts))
    except BaseException:
        undo()
        raise
    return target


def own_form_of(
    folder: Path,
    release: Runnable,
    source: AnyFile | Sequence[Path],
    keep: Sequence[str],
    column: str | None,
    options: ApplyOptions,
    out: Path,
) -> OwnForm | None:
    """How records are written, where not as numbers."""
    if options.form is None:
        return None
    own = own_form(folder, release, options.form, source, column)
    own = own.in_csv() if out.suffix == ".csv" else own
    if clash := set(own.names) & set(keep):
        raise PrivetError(f"'{min(clash)}' is released already: leave it out of --keep.")
    return own


def target_file(out: Path) -> Path:
    """The file to write: the one that was named, or one in the folder that was named."""
    refuse_if(
        out.suffix not in ("", ".parquet", ".csv") and not out.is_dir(),
        f"Released records are written as .parquet or .csv, not as {out.suffix}.",
    )
    return out if out.suffix in (".parquet", ".csv") else out / "released.parquet"


def _per_person(
    release: Runnable, run: Any, chunks: Iterator[Chunk], records: Records, options: ApplyOptions
) -> pa.Table:
    return person_table(
        release,
        run,
        chunks,
        records.randomness,
        str(records.person),
        records.keep,
        options.records,
        at_once(release.schema),
    )


def _person_column(source: Path | Sequence[Path], options: ApplyOptions) -> str | None:
    """The column that says whose a record is, where one release per person is asked for."""
    if options.per == "record":
        return None
    if not isinstance(source, Path):
        raise PrivetError("--per person needs a file with a column that says whose a picture is.")
    first = next(frames_of(source, 1), None)
    names = [] if first is None else list(map(str, first.columns))
    column = options.person or next((name for name in PEOPLE if name in names), None)
    if column is None:
        raise PrivetError(
            f"Say which column of {source.name} tells whose a record is: --person COLUMN."
        )
    return column


def randomness_of(release: Runnable, options: ApplyOptions, seed: int | None) -> Randomness:
    if seed is not None:
        return Seeded(seed)
    if options.fresh:
        return Fresh()
    graph = release.card["sha256"]["graph"]
    campaign = options.campaign or graph[:16]
    return KeyedNoise(noise_key(campaign, options.home), graph, campaign)


def check_kept(keep: Sequence[str], private: Sequence[str]) -> None:
    """PrivetError where a column can never be written beside released records."""
    forbidden = set(keep) & set(private)
    if forbidden:
        raise PrivetError(
            f"'{min(forbidden)}' is what the release hides; it cannot be written beside it."
        )
    for name in ("z", PLACE):
        if name in keep:
            raise PrivetError(
                f"The released records are written as 'z': rename the column '{name}' before "
                "keeping it."
            )


def _chunks(schema: Schema, records: Records) -> Iterator[Chunk]:
    rows = chunk_rows(schema)
    if isinstance(records.source, Path):
        return chunks_of_file(schema, records.source, records.columns, records.column, rows)
    return chunks_of_pictures(schema, records.source, rows)


def _find_files(
    inputs: Sequence[str | Path], keep: Sequence[str], column: str | None, options: ApplyOptions
) -> tuple[list[Path], list[Path]]:
    """All files, and those of them that are pictures, which have no columns but their names."""
    files = [path for item in inputs for path in expand(Path(item))]
    pictures = [path for path in files if path.suffix.lower() in PICTURE_FILES]
    if not files or (len(files) != 1 and len(pictures) != len(files)):
        raise PrivetError("Give pictures, a folder of pictures, or one parquet or CSV file.")
    if pictures and (set(keep) - {FILE} or column or options.id):
        raise PrivetError(
            f"Pictures have no columns but '{FILE}', their names: leave out --keep, --column and "
            "--id, or give a parquet file."
        )
    return files, pictures


def tables(
    release: Runnable,
    run: Any,
    chunks: Iterator[Chunk],
    records: Records,
    workers: int | None = None,
    own: OwnForm | None = None,
) -> Iterator[pa.Table]:
    """Released records of chunks, with what is kept beside them and a random word for each. Chunks
    start at multiples of at_once(schema) in the whole file. `own` writes records in their own
    form."""
    few = at_once(release.schema)

    def work(chunk: Chunk) -> pa.Table:
        x, beside = chunk.encode()
        ids = records.ids(beside)
        parts: list[dict[str, pa.Array]] = []
        places = []
        for at in range(0, len(x), few):
            here = slice(at, at + few)
            released = release.release(
                run, x[here], records.randomness, chunk.start + at, ids and ids[here]
            )
            parts.append(
                {"z": released_column(released.z, released.x)}
                if own is None
                else own.columns(released.z)
            )
            places.append(released.places)
        kept = {name: pa.array(beside[name], from_pandas=True) for name in records.keep}
        made = {name: pa.chunked_array([part[name] for part in parts]) for name in parts[0]}
        return pa.table({**kept, **made, PLACE: pa.array(np.concatenate(places))})

    shape = release.shape if own is None else own.schema.shape
    record = _size(release.schema.shape) * 4 + _size(shape) * (4 if release.noise is None else 8)
    ahead = FLYING_BYTES // (record * chunk_rows(release.schema))
    workers = workers or cores()
    return in_order(work, chunks, workers, max(2, min(2 * workers, ahead)))


def at_once(schema: Schema) -> int:
    """How many records the graph is given at once: NOISE_BATCH, or a smaller power of two where a
    record is large."""
    if schema.modality == "text":
        return NOISE_BATCH
    few = min(NOISE_BATCH, INPUTS // _size(schema.shape))
    return 1 << max(0, few.bit_length() - 1)


def chunk_rows(schema: Schema) -> int:
    """How many records are read and encoded at once: a multiple of at_once(schema); many where
    encoding is a matter of whole columns."""
    return max(
        at_once(schema), min(CHUNK, INPUTS // _size(schema.shape) // NOISE_BATCH * NOISE_BATCH)
    )


def _size(shape: Sequence[int | None]) -> int:
    """Numbers in a record; a text is taken to be a hundred words."""
    return int(np.prod([100 if size is None else size for size in shape], dtype=np.int64)) or 1


def about_file(
    release: Runnable,
    records: Records,
    options: ApplyOptions,
    seed: int | None,
    linked: bool = False,
    times: bool = False,
) -> dict[str, Any]:
    """What is written into the file about it: of which release, and what leaves. `linked` says that
    something beside the columns ties a person's records together, `times` that times are kept."""
    names = {*PEOPLE, *filter(None, [options.id, options.person])}
    links: list[Link] = ["person"] if linked or names & set(records.keep) else []
    links += ["order"] if options.ordered else []
    links += ["time"] if times else []
    is_record = options.form is not None or release.card.get("form") == "record"
    leaves = WhatLeaves(
        form="record" if is_record else "code",
        kept=tuple(records.keep),
        records=1 if options.per == "person" or not links else None,
        linked_by=tuple(links),
        made_of=1 if options.per == "record" else options.records,
    )
    if release.noise is None:
        noise = "none"
    else:
        noise = "seed" if seed is not None else "fresh" if options.fresh else "keyed"
    card = {key: release.card.get(key) for key in ("method", "private", "sha256")}
    per = {"per": options.per, "records": options.records} if options.per == "person" else {}
    shape = release.shape if options.form is None else release.schema.plain.shape
    value = None if options.form is None else drawn_as(release.card)
    drawn: dict[str, Any] = {} if value is None else {"drawn_as": value}
    space = getattr(release.schema.plain, "space", None) if options.form is not None else None
    drawn |= {"space": space} if space else {}
    about = {**card, "shape": list(shape), "noise": noise, **per, **drawn}
    return {**about, "leaves": asdict(leaves)}


def _ticked(parts: Iterable[pa.Table], tick: Callable[[int], object]) -> Iterator[pa.Table]:
    done = 0
    for table in parts:
        done += len(table)
        tick(done)
        yield table


def _alike(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables of one schema, that of the first."""
    schema: pa.Schema | None = None
    for table in parts:
        schema = schema or table.schema
        yield _cast(table, schema)


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if table.schema.equals(schema):
        return table
    try:
        return table.cast(schema)
    except pa.ArrowInvalid:
        raise PrivetError(
            "A kept column holds other kinds of values further down: save the file as parquet,"
            " or keep less."
        ) from None


def write_parquet(path: Path, about: dict[str, Any], parts: Iterator[pa.Table]) -> None:
    """Write tables to `path`, by a thread of its own while the next are made."""
    first = next(parts)
    schema = first.schema.with_metadata({"privet": json.dumps(about)})
    kept = [name for name in schema.names if name != "z"]
    # Released numbers hardly repeat and nobody looks for a range of them: a dictionary and
    # statistics would cost time for nothing. Packing them takes longer than writing them, and saves
    # a third where a network gives many zeros, nothing where there is noise.
    form = {
        "use_dictionary": kept,
        "write_statistics": kept,
        "compression": dict.fromkeys(kept, "snappy"),
    }
    with pq.ParquetWriter(path, schema, **form) as writer, ThreadPoolExecutor(1) as pool:
        writing: Future[None] | None = None
        for table in _groups(chain([first], parts), schema):
            if writing is not None:
                writing.result()
            writing = pool.submit(writer.write_table, table, len(table))
        if writing is not None:
            writing.result()


def _groups(parts: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """The same records in tables that are worth a row group each."""
    held: list[pa.Table] = []
    for table in parts:
        held.append(_cast(table, schema))
        if sum(map(len, held)) >= CHUNK or sum(map(_released_bytes, held)) >= GROUP_BYTES:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _released_bytes(table: pa.Table) -> int:
    return int(table["z"].nbytes if "z" in table.column_names else table.nbytes)


def released_column(z: Array, x: Array) -> pa.Array:
    """Released records as lists of numbers, laid flat; of a text, only the positions that hold a
    word."""
    if x.dtype == np.int64 and z.ndim == 3:
        lengths = (x != PAD).sum(1)
        values = np.concatenate(
            [line[:size].ravel() for line, size in zip(z, lengths, strict=True)]
        )
        offsets = np.concatenate([[0], np.cumsum(lengths * z.shape[2])]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values, pa.float32()))
    flat = np.ascontiguousarray(z.reshape(len(z), -1), dtype=np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])


def expand(path: Path) -> list[Path]:
    if not path.exists():
        raise PrivetError(f"There is no file or folder {path}.")
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix.lower() in PICTURE_FILES)
        if not found:
            raise PrivetError(f"There are no pictures in {path}.")
        return found
    if not path.stat().st_size:
        raise PrivetError(f"{path} is empty.")
    return [path]
