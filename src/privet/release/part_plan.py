"""Which parts a folder of released records will have: every input is cut into ranges of rows, and
every range becomes a part.

What tells two records with the same content apart, where no column does, is their row's number and
the name of their input, so neither adding inputs nor doing a part again changes anybody's noise. A
range keeps its part's name when work is resumed; new ranges get the next numbers.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from privet.core.errors import PrivetError, first_line, refuse_if
from privet.core.stores import AnyFile, StoredFile, is_address, local_path, matching, version_of
from privet.data.dataset import Array
from privet.data.part_manifest import MOST_PARTS, Manifest, Part
from privet.data.stream import opened_parquet
from privet.release.noise import Noise
from privet.release.randomness import NOISE_BATCH, Randomness

PARQUET = (".parquet", ".pq")
# Where nobody says how many rows a part has: about so many bytes of released numbers, and at most
# so many rows.
PART_BYTES = 256 << 20
PART_ROWS = 1 << 20


class Input(NamedTuple):
    """A parquet file to release.

    Parameters:
        name: What it is called in the manifest: its path below the folder or pattern it was given
            as.
        version: Words that change when the file does.
    """

    name: str
    file: AnyFile
    rows: int
    schema: Any
    version: str


@dataclass(frozen=True)
class Job:
    """One part to make.

    Parameters:
        name: Of the part.
        input: The name of the input.
        file: The input.
        start, stop: Its rows.
        version: Of the input, as it was when the work was planned.
    """

    name: str
    input: str
    file: AnyFile
    start: int
    stop: int
    version: str


@dataclass(frozen=True)
class NamedRows:
    """Noise for one of several inputs: a row's number is joined with the input's name, so that
    equal rows at the same place of two inputs do not get equal noise."""

    inner: Randomness
    name: str

    def draw(
        self, law: Noise | None, x: Array, start: int = 0, ids: Sequence[str] | None = None
    ) -> tuple[Array | None, Array]:
        if ids is None:
            ids = [f"{self.name}:{start + k}" for k in range(len(x))]
        return self.inner.draw(law, x, start, ids)


def find_inputs(items: Sequence[str | Path]) -> list[Input]:
    """The parquet files that paths, folders, patterns and addresses stand for, by name."""
    found: dict[str, AnyFile] = {}
    for item in items:
        for name, file in _expand(item):
            refuse_if(
                name in found and found[name] != file,
                f"Two inputs are called {name}: give a folder or a pattern in quotes that is above "
                "both, such as 'data/*/*.parquet'.",
            )
            found[name] = file
    inputs = [_open(name, file) for name, file in found.items()]
    inputs = sorted(one for one in inputs if one.rows)
    refuse_if(not inputs, "There are no records to release.")
    for one in inputs:
        refuse_if(
            set(one.schema.names) != set(inputs[0].schema.names),
            f"{one.file} has not the columns of {inputs[0].file}: parts of one table have the "
            "same.",
        )
    return inputs


def is_one_file(items: Sequence[str | Path]) -> bool:
    """Whether a single file was named: its rows are then told apart by their numbers alone, as
    without --parts."""
    return len(items) == 1 and not (
        glob.has_magic(str(items[0])) or local_path(items[0]).is_dir() or str(items[0])[-1:] == "/"
    )


def _expand(item: str | Path) -> list[tuple[str, AnyFile]]:
    """Names and files of one word of the command line."""
    text = str(item)
    if is_address(item):
        pattern = f"{text.rstrip('/')}/*.parquet" if text.endswith("/") else text
        if not glob.has_magic(pattern):
            return [(StoredFile(text).name, StoredFile(text))]
        paths: list[Any] = [StoredFile(one) for one in matching(pattern)]
    else:
        path = local_path(item)
        pattern = str(path / "*.parquet") if path.is_dir() else str(path)
        if path.is_file() or not glob.has_magic(pattern):
            refuse_if(not path.is_file(), f"There is no file or folder {path}.")
            return [(path.name, path)]
        paths = [Path(one) for one in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207
        paths = [one for one in paths if one.is_file()]
    refuse_if(not paths, f"No file matches {pattern}.")
    # What stands before the first folder with a * in it.
    start = pattern[: len(pattern) - len(glob_part(pattern))]
    return [(str(one)[len(start) :], one) for one in paths]


def glob_part(pattern: str) -> str:
    """A pattern from the first folder with a wildcard on.

    >>> glob_part("s3://bucket/year=*/part-?.parquet")
    'year=*/part-?.parquet'
    """
    words = pattern.split("/")
    first = next(i for i, word in enumerate(words) if glob.has_magic(word))
    return "/".join(words[first:])


def _open(name: str, file: AnyFile) -> Input:
    refuse_if(
        Path(name).suffix.lower() not in PARQUET,
        f"--parts takes parquet files, and {file} is none: save it as parquet first.",
    )
    try:
        with opened_parquet(file) as opened:
            rows, schema = int(opened.metadata.num_rows), opened.schema_arrow
        return Input(name, file, rows, schema, version_of(file))
    except (pa.ArrowException, OSError) as error:
        raise PrivetError(f"{file} cannot be read as parquet ({first_line(error)}).") from None


def part_rows(asked: int | None, numbers: int) -> int:
    """Rows of a part: those asked for, or as many as make a file of a handy size; whole batches of
    the graph, so that every record is released in the batch it would be in without parts.

    Parameters:
        asked: By the user.
        numbers: Released numbers of a record.
    """
    rows = asked if asked is not None else min(PART_ROWS, PART_BYTES // (4 * numbers))
    return max(1, -(-rows // NOISE_BATCH)) * NOISE_BATCH


def plan(inputs: Sequence[Input], rows: int, earlier: Manifest | None) -> list[Job]:
    """The parts to make, in the order of the inputs.

    Parameters:
        inputs: By name.
        rows: Of a part, at most.
        earlier: What an earlier run has made; PrivetError where it has parts of rows that are not
            among these.
    """
    old = {(part.input, part.start): part for part in earlier.parts} if earlier else {}
    taken = {part.name for part in old.values()}
    free = (name for number in range(MOST_PARTS) if (name := part_name(number)) not in taken)
    jobs: list[Job] = []
    for one in inputs:
        for start in range(0, one.rows, rows):
            stop, made = min(start + rows, one.rows), old.pop((one.name, start), None)
            _same_rows(made, stop - start)
            refuse_if(len(jobs) >= MOST_PARTS, f"More than {MOST_PARTS:,} parts are too many.")
            name = made.name if made else next(free)
            jobs.append(Job(name, one.name, one.file, start, stop, one.version))
    for part in old.values():
        raise PrivetError(
            f"{part.name} was made of {part.input} from row {part.start} on, which is not among "
            "the inputs any more: give all of them, or begin anew with --force."
        )
    return jobs


def part_name(number: int) -> str:
    """
    >>> part_name(7)
    'part-00007.parquet'
    """
    return f"part-{number:05}.parquet"


def _same_rows(made: Part | None, rows: int) -> None:
    refuse_if(
        made is not None and made.rows != rows,
        f"{made and made.input} has gained or lost rows since {made and made.name} was made: begin "
        "anew with --force, or choose another --out.",
    )
