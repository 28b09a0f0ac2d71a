"""Labeled Faces in the Wild with the attribute scores of Kumar et al. (2009): a folder per person,
one table beside them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.data.folders import picture_files
from privet.data.published import open_folder
from privet.data.schema_file import Layout

# What the archives unpack to; the people's folders may also lie beside the table.
_FOLDERS = ("lfw", "lfw_funneled", "lfw-funneled", "lfw-deepfunneled", "lfw_deepfunneled")


def read_lfw(place: str | Path, layout: Layout, progress: bool = True) -> Dataset:
    """Faces that have scores. A score above 0 means yes: the labels are a classifier's, not a
    person's word."""
    folder, (table,) = open_folder("lfw", place, layout, ("lfw_attributes.txt",))
    scores = _scores(table)
    base = next((folder / name for name in _FOLDERS if (folder / name).is_dir()), folder)
    who = scores["person"].str.replace(" ", "_", regex=False)
    paths = [
        base / name / f"{name}_{number:04d}.jpg"
        for name, number in zip(who, scores["imagenum"], strict=True)
    ]
    columns = (scores.drop(columns=["person", "imagenum"]) > 0).astype("int8")
    columns.insert(0, "person", who)
    note = "The attributes are signs of scores that a classifier gave, not labels that people gave."
    return picture_files("lfw", paths, columns, layout, [table], progress, notes=(note,))


def _scores(path: Path) -> pd.DataFrame:
    """Tab-separated; the names stand in a comment line."""
    try:
        with path.open(encoding="utf-8") as file:
            comments = [
                line.lstrip("# \t").rstrip().split("\t") for line in file if line.startswith("#")
            ]
        names = next(words for words in comments if words[:2] == ["person", "imagenum"])
        frame = pd.read_csv(
            path, sep="\t", comment="#", header=None, names=names, quoting=3, index_col=False
        )
        types = dict.fromkeys(names[2:], "float64")
        frame = frame.astype({"person": "str", "imagenum": "int64", **types})
    except (ValueError, OSError, StopIteration):
        raise PrivetError(
            f"{path} is not LFW's table of person, imagenum and scores, parted by tabs: download it"
            " again."
        ) from None
    return frame
