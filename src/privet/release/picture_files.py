"""Released pictures as files: the same names in the same folders, as PNG, and released.json, which
says what left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from privet.core.errors import PrivetError, refuse_if
from privet.core.files import writable_folder, write_bytes, write_text
from privet.data.images import PICTURE_FILES

# What left, beside the pictures.
ABOUT = "released.json"


def are_pictures(inputs: Sequence[str | Path]) -> bool:
    """Whether files of pictures, or folders of them, go in."""
    return any(Path(one).is_dir() or Path(one).suffix.lower() in PICTURE_FILES for one in inputs)


def picture_names(
    inputs: Sequence[str | Path], files: Sequence[Path], out: Path, force: bool
) -> dict[str, str]:
    """Where each picture is written under `out`: its name, in the folder that it was in beneath the
    one that was given.

    PrivetError where two would be one, where a raw picture is in the way, and, without `force`,
    where any file is.
    """
    folders = [Path(one) for one in inputs if Path(one).is_dir()]
    raw = {path.resolve() for path in files}
    names: dict[str, str] = {}
    first: dict[str, Path] = {}
    for path in files:
        base = next((folder for folder in folders if folder in path.parents), path.parent)
        name = str(path.relative_to(base).with_suffix(".png"))
        if name in first:
            raise PrivetError(
                f"{first[name]} and {path} would both be written as {name}: rename one of them."
            )
        refuse_if(
            (out / name).resolve() in raw,
            f"{out / name} is a raw picture, and would be replaced: choose another --out.",
        )
        refuse_if(
            not force and (out / name).exists(),
            f"{out / name} is there already: choose another --out, or replace it with --force.",
        )
        first[name], names[str(path)] = path, name
    return names


def write_pictures(
    parts: Iterable[pa.Table], names: dict[str, str], out: Path, about: dict[str, Any]
) -> Path:
    """Write the pictures of tables, then what is said about them; returns the folder.

    Parameters:
        parts: With a column `file`, the raw picture's path, and a column `image`, a PNG file.
        names: Where each is written, under `out`.
        out: A folder.
        about: What left.
    """
    undo = writable_folder(out)
    try:
        (out / ABOUT).unlink(missing_ok=True)
        for table in parts:
            for path, picture in zip(
                table["file"].to_pylist(), table["image"].to_pylist(), strict=True
            ):
                target = out / names[path]
                target.parent.mkdir(parents=True, exist_ok=True)
                write_bytes(target, picture)
        write_text(out / ABOUT, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    except BaseException:
        undo()
        raise
    return out
