"""From the words a user gives to a Dataset: a built-in name, a published set in its own layout, or
a path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from privet.core.errors import PrivetError, unknown
from privet.data.adult import read_adult
from privet.data.celeba import read_celeba
from privet.data.dataset import Dataset
from privet.data.folders import read_folder
from privet.data.lfw import read_lfw
from privet.data.portraits.source import portraits
from privet.data.schema_file import Layout, read_layout
from privet.data.tables import read_csv, read_parquet
from privet.data.toys import toy
from privet.data.utkface import read_utkface

Reader = Callable[[Path, Layout, bool], Dataset]
Source = Callable[[str, Layout, bool], Dataset]
"""Takes what stands after the colon."""


def _portraits(count: str, layout: Layout, progress: bool) -> Dataset:
    _refuse(layout, "portraits")
    if not count:
        return portraits(progress=progress)
    if not count.isascii() or not count.isdigit() or not 0 < int(count) <= 10_000_000:
        raise PrivetError(
            f"portraits:{count} should end in how many to draw, such as portraits:4000."
        )
    return portraits(int(count), progress=progress)


def _toy(name: str, layout: Layout, progress: bool) -> Dataset:
    _refuse(layout, "toy")
    if not name:
        raise PrivetError("Say which toy, such as toy:gaussian or toy:bernoulli.")
    return toy(name)


def _refuse(layout: Layout, name: str) -> None:
    if layout != Layout():
        raise PrivetError(f"The built-in data {name} takes no --schema: its columns are known.")


def _in_folder(read: Reader) -> Source:
    def source(place: str, layout: Layout, progress: bool) -> Dataset:
        if not place:
            raise PrivetError("Say where the data set lies on this machine, as in celeba:DIR.")
        return read(Path(place).expanduser(), layout, progress)

    return source


SOURCES: dict[str, Source] = {
    "portraits": _portraits,
    "toy": _toy,
    "celeba": _in_folder(read_celeba),
    "lfw": _in_folder(read_lfw),
    "utkface": _in_folder(read_utkface),
    "adult": _in_folder(read_adult),
}
"""By the name before the colon."""

FILES: dict[str, Reader] = {".parquet": read_parquet, ".pq": read_parquet, ".csv": read_csv}
"""Read by what the path ends in."""


def load(spec: str | Path, schema: str | Path | None = None, progress: bool = True) -> Dataset:
    """The data that `spec` names.

    >>> load("portrait")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    privet.core.errors.PrivetError: There is no data source 'portrait'; did you mean 'portraits'? Known: ...
    """
    if not str(spec).strip():
        raise PrivetError("Say which data to read: a name such as portraits, or a path.")
    layout = read_layout(schema)
    name, _, rest = str(spec).partition(":")
    if isinstance(spec, str) and name in SOURCES:
        return SOURCES[name](rest, layout, progress)
    return _read_path(Path(spec).expanduser(), str(spec), layout, progress)


def _read_path(path: Path, spec: str, layout: Layout, progress: bool) -> Dataset:
    if path.is_dir():
        return read_folder(path, layout, progress)
    if not path.is_file():
        name = spec.partition(":")[0]
        if "/" not in name and not Path(name).suffix:
            raise unknown("data source", name, SOURCES)
        raise PrivetError(f"There is no file or folder {path}.")
    if path.suffix.lower() not in FILES:
        raise PrivetError(
            f"{path} is of a kind that is not read: give {', '.join(FILES)} or a folder of pictures with a CSV."
        )
    if not path.stat().st_size:
        raise PrivetError(f"{path} is empty: make it again.")
    return FILES[path.suffix.lower()](path, layout, progress)
