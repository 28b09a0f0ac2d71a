"""UTKFace as published (Zhang et al., 2017): every label is in the file name,
[age]_[gender]_[race]_[date].jpg."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd

from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.data.folders import picture_files
from privet.data.published import open_folder
from privet.data.schema_file import Layout, Wish

_NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_(\d+)\.jpe?g(?:\.chip\.jpg)?", re.IGNORECASE)
_GENDERS = ("male", "female")
_RACES = ("White", "Black", "Asian", "Indian", "Others")


def read_utkface(place: str | Path, layout: Layout, progress: bool = True) -> Dataset:
    """Faces in the order of their names; a name that does not carry all labels, as a few published
    ones, is passed over."""
    folder, _ = open_folder("utkface", place, layout, ())
    base = folder / "UTKFace" if (folder / "UTKFace").is_dir() else folder
    names = sorted(path.name for path in base.iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))
    found = [(name, match) for name in names if (match := _NAME.fullmatch(name))]
    if not found:
        raise PrivetError(
            f"{folder} has no pictures named as in UTKFace, [age]_[gender]_[race]_[date].jpg: check"
            " the folder."
        )
    columns = pd.DataFrame(
        {
            "age": [float(match[1]) for _, match in found],
            "gender": [_GENDERS[int(match[2])] for _, match in found],
            "race": [_RACES[int(match[3])] for _, match in found],
        }
    )
    paths = [base / name for name, _ in found]
    skipped = len(names) - len(found)
    notes = (
        (
            (
                f"{skipped} pictures were passed over, because their names do not carry age, gender"
                " and race."
            ),
        )
        if skipped
        else ()
    )
    numbers = replace(layout, attributes={"age": Wish("number"), **layout.attributes})
    return picture_files("utkface", paths, columns, numbers, [], progress, notes)
