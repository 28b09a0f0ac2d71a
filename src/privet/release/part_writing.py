"""`privet apply --parts`: a folder of parquet parts with a manifest, on disk or in an object store.

Each part is released by itself, from its own rows of its own input, and put into place whole. Its
bytes follow from the key, the release, the settings and these rows: a part that is made again,
after `kill -9` or on another machine, is the same. The manifest is written last (part_manifest.py).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from privet.core.errors import PrivetError, refuse, refuse_if, unknown
from privet.core.stores import Store, version_of
from privet.data.part_manifest import Manifest, Part, find_manifest
from privet.data.row_ranges import RangeReader
from privet.data.stream import chunks_of_file, record_column
from privet.evidence.what_leaves import WhatLeaves
from privet.release.apply import (
    CHUNK,
    ApplyOptions,
    Records,
    about_file,
    check_kept,
    chunk_rows,
    own_form_of,
    randomness_of,
    tables,
    write_parquet,
)
from privet.release.keyed_noise import KeyedNoise
from privet.release.own_form import OwnForm
from privet.release.part_folder import begin, check_folder, collect, forget_empty, mark_of
from privet.release.part_plan import (
    Input,
    Job,
    NamedRows,
    find_inputs,
    is_one_file,
    part_rows,
    plan,
)
from privet.release.runtime import Runnable, read_graph
from privet.release.shuffle import PLACE, shuffled
from privet.release.strangers import release_session


class Parts(NamedTuple):
    """How a folder of parts is written.

    Parameters:
        rows: Rows of a part, rounded up to a multiple of 256; None for parts of about 256 MB. An
            input with fewer rows is one part.
        resume: Go on with unfinished work: parts that are there as the manifest says are kept.

    Example:
        >>> import json, tempfile
        >>> import numpy as np, pandas as pd, privet
        >>> folder = Path(tempfile.mkdtemp())
        >>> rows = {f"c{i}": np.random.default_rng(i).standard_normal(600) for i in range(3)}
        >>> rows["sex"] = np.where(rows["c0"] > 0, "f", "m")
        >>> pd.DataFrame(rows).to_parquet(folder / "people.parquet")
        >>> data = privet.load(rows, progress=False)
        >>> privet.LEACE().fit(data, "sex", run=privet.Run(progress=False)).save(folder / "r")
        >>> options = privet.ApplyOptions(home=folder)
        >>> out = privet.apply(folder / "r", folder / "people.parquet", folder / "shared",
        ...     options=options, parts=privet.Parts(rows=256))
        >>> [part["rows"] for part in json.loads((out / "manifest.json").read_text())["parts"]]
        [256, 256, 88]
    """

    rows: int | None = None
    resume: bool = False


@dataclass(frozen=True)
class Recipe:
    """What makes a part out of a job; it travels to other machines.

    Parameters:
        store: Where parts are written.
        records: What is released of an input, and how.
        one_file: Whether rows are told apart by their numbers alone.
        ordered: Whether the order of the records is kept.
        kept: Names and types of the columns kept.
        about: What is written into each part about it.
    """

    store: Store
    records: Records
    one_file: bool
    ordered: bool
    kept: pa.Schema
    about: dict[str, Any]


# Makes the parts of jobs elsewhere: the folder of the release, the recipe, and the jobs.
SpreadParts = Callable[[Path, Recipe, Sequence[Job]], Iterator[Part]]


def apply_parts(
    folder: str | Path,
    inputs: Sequence[str | Path],
    out: str | Path,
    keep: Sequence[str] = (),
    column: str | None = None,
    seed: int | None = None,
    progress: bool = True,
    spread: SpreadParts | None = None,
    options: ApplyOptions | None = None,
    parts: Parts | None = None,
) -> Manifest:
    """Release the records of parquet files into a folder of parts; gives its manifest.

    Parameters:
        folder: Of the release.
        inputs: Parquet files, folders of them, patterns, or addresses in an object store.
        out: The folder, or its address in a store.
        keep, column, seed, options: As for `privet.release.apply.apply`.
        progress: Whether to show a bar.
        spread: Makes the parts elsewhere, such as on a Ray cluster; they are the same.
        parts: How large they are, and whether unfinished work is resumed.
    """
    folder, options, parts = Path(folder), options or ApplyOptions(), parts or Parts()
    release, store = Runnable.load(folder), Store(out)
    _check(options, parts, spread)
    check_kept(keep, release.private)
    found, one_file = find_inputs(inputs), is_one_file(inputs)
    kept = _kept_types(found[0], keep, options.id)
    own = own_form_of(folder, release, found[0].file, keep, column, options, Path())
    randomness = randomness_of(release, options, seed)
    total = sum(one.rows for one in found)
    # Chosen once: what is plain to see in the first input need not be so in every other.
    reader = RangeReader(chunk_rows(release.schema))
    first = reader.first(found[0].file)
    if column is None and first is not None:
        column = record_column(release.schema.plain, first, str(found[0].file))
    source = Path(found[0].name)
    records = Records(source, total, tuple(keep), column, options.id, randomness)
    times = any(map(pa.types.is_temporal, kept.types))
    about = about_file(release, records, options, seed, times=times)
    rows = part_rows(parts.rows, math.prod(int(size or 100) for size in release.shape))
    earlier = find_manifest(store, unfinished=True)
    manifest = _manifest(about, records, options, rows, one_file)
    check_folder(store, earlier, manifest, parts.resume, options.force)
    jobs = plan(found, rows, earlier if parts.resume else None)
    recipe = Recipe(store, records, one_file, options.ordered, kept, about)
    undo = store.prepare()
    made: Iterator[Part]
    try:
        before = begin(store, manifest, earlier, parts.resume, jobs, randomness)
        waiting = [job for job in jobs if job.name not in before]
        if spread is None:
            run = release_session(read_graph(folder), threads=1)
            run = run if own is None else own.behind(run)
            make = partial(release_part, release, run, recipe, own=own, reader=reader)
            made = map(make, waiting)
        else:
            made = spread(folder, recipe, waiting)
        return collect(store, manifest, before, made, total, progress)
    except BaseException:
        if earlier is None:
            forget_empty(store)
        undo()
        raise
    finally:
        reader.close()


def _check(options: ApplyOptions, parts: Parts, spread: SpreadParts | None) -> None:
    refuse(
        (options.per == "person", "One release per person is one file: leave out --parts."),
        (parts.rows is not None and parts.rows < 1, "--rows-per-part is at least 1."),
        (
            options.fresh and parts.resume,
            "Noise of --fresh cannot be drawn again, and a part that is made twice would have two: "
            "begin anew with --force, or leave out --fresh.",
        ),
        (
            parts.resume and options.force,
            "--resume keeps what is there and --force replaces it: choose one.",
        ),
        (
            options.form is not None and spread is not None,
            "Records in their own form are made on one machine: leave out --ray.",
        ),
    )


def _kept_types(first: Input, keep: Sequence[str], identity: str | None) -> pa.Schema:
    """The columns kept, with their types in the first input: every part has the same."""
    for name in (*keep, *([identity] if identity else [])):
        if name not in first.schema.names:
            raise unknown(f"column in {first.name}:", name, first.schema.names)
    return pa.schema([first.schema.field(name).remove_metadata() for name in keep])


def _manifest(
    about: dict[str, Any], records: Records, options: ApplyOptions, rows: int, one_file: bool
) -> Manifest:
    """The manifest of a folder without parts."""
    randomness = records.randomness
    settings = {
        "keep": list(records.keep),
        "column": records.column,
        "id": options.id,
        "ordered": options.ordered,
        "as": options.form,
        "rows_per_part": rows,
        "one_file": one_file,
        "key": mark_of(randomness, ""),
    }
    keyed = isinstance(randomness, KeyedNoise)
    campaign = (options.campaign or about["sha256"]["graph"][:16]) if keyed else None
    release = {key: value for key, value in about.items() if key != "leaves"}
    leaves = WhatLeaves(**{k: _frozen(v) for k, v in about["leaves"].items()})
    return Manifest(release, campaign, settings, leaves, ())


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def release_part(
    release: Runnable,
    run: Any,
    recipe: Recipe,
    job: Job,
    workers: int | None = None,
    own: OwnForm | None = None,
    reader: RangeReader | None = None,
) -> Part:
    """Make one part and put it into place.

    Parameters:
        release: What is applied.
        run: A session of its graph.
        recipe: What all parts have in common.
        job: The rows, and the name of the part.
        workers: Threads; as many as there are cores where it is not given.
        own: How records are written, where not as numbers.
        reader: Of `chunk_rows` rows; the same for parts that follow each other in an input, which
            is then read once.
    """
    if reader is None:
        with closing(RangeReader(chunk_rows(release.schema))) as reader:
            return release_part(release, run, recipe, job, workers, own, reader)
    records, rows = recipe.records, chunk_rows(release.schema)
    mark = mark_of(records.randomness, job.version)
    if not recipe.one_file:
        named = NamedRows(records.randomness, job.input)
        records = replace(records, randomness=named)
    chunks = chunks_of_file(
        release.schema,
        job.file,
        records.columns,
        records.column,
        rows,
        partial(reader.read, job.file, range(job.start, job.stop)),
        job.start,
        reader.first(job.file),
    )
    with recipe.store.replacing(job.name) as temporary:
        released = tables(release, run, chunks, records, workers, own)
        typed = (_typed(table, recipe.kept) for table in released)
        if recipe.ordered:
            typed = (table.drop_columns([PLACE]) for table in typed)
        order = typed if recipe.ordered else shuffled(typed, temporary.parent, CHUNK)
        write_parquet(temporary, recipe.about, order)
        refuse_if(
            version_of(job.file) != job.version,
            f"{job.file} was changed while it was released: go on with --resume.",
        )
        sha, size = hashlib.sha256(), 0
        with temporary.open("rb") as file:
            while block := file.read(1 << 20):
                sha.update(block)
                size += len(block)
    return Part(job.name, job.stop - job.start, size, sha.hexdigest(), job.input, job.start, mark)


def _typed(table: pa.Table, kept: pa.Schema) -> pa.Table:
    """A table with the kept columns in their own types, which an empty or gappy stretch of one does
    not show."""
    for field in kept:
        at = table.schema.get_field_index(field.name)
        if table.schema.field(at).type == field.type:
            continue
        try:
            table = table.set_column(at, field.name, table.column(at).cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise PrivetError(
                f"The column '{field.name}' holds other kinds of values in some input than in the "
                "first: give it one type, or do not keep it."
            ) from None
    return table
