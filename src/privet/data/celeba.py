"""CelebA as published (Liu et al., 2015): aligned faces of 218 x 178, 40 attributes, identities and
the official partition."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.data.folders import picture_files
from privet.data.published import open_folder
from privet.data.schema_file import Layout

_FILES = (
    "img_align_celeba",
    "list_attr_celeba.txt",
    "identity_CelebA.txt",
    "list_eval_partition.txt",
)


def read_celeba(place: str | Path, layout: Layout, progress: bool = True) -> Dataset:
    """All faces in the order of the attribute list. Identities are needed: parts that share a face
    say nothing."""
    _, (pictures, *tables) = open_folder("celeba", place, layout, _FILES)
    attributes = _attributes(tables[0])
    columns = attributes.join([_pairs(tables[1], "person"), _pairs(tables[2], "split")])
    if columns[["person", "split"]].isna().to_numpy().any():
        file = columns.index[columns[["person", "split"]].isna().any(axis=1)][0]
        raise PrivetError(
            f"{file} is in {tables[0]} but not in both {tables[1].name} and {tables[2].name}:"
            " download them again."
        )
    columns = columns.astype({"person": "int64", "split": "int64"})
    return picture_files(
        "celeba",
        [pictures / str(file) for file in columns.index],
        columns,
        layout,
        tables,
        progress,
    )


def _attributes(path: Path) -> pd.DataFrame:
    """A line with the count, a line with the names, and a line of -1 and 1 per picture."""
    try:
        with path.open(encoding="utf-8") as file:
            count, names = int(file.readline()), file.readline().split()
            frame = pd.read_csv(file, sep=r"\s+", header=None, index_col=0)
    except (ValueError, OSError):
        raise PrivetError(
            f"{path} is not CelebA's attribute list: a count, the names, then -1 and 1 for each"
            " picture."
        ) from None
    if (
        len(frame) != count
        or frame.shape[1] != len(names)
        or not frame.isin([-1, 1]).to_numpy().all()
    ):
        raise PrivetError(
            f"{path} does not hold the {count} pictures with {len(names)} values it announces:"
            " download it again."
        )
    frame.columns = pd.Index(names)
    return frame.astype("int8")


def _pairs(path: Path, name: str) -> pd.Series:
    try:
        frame = pd.read_csv(
            path,
            sep=r"\s+",
            header=None,
            names=["file", name],
            index_col="file",
            dtype={name: "int64"},
        )
    except (ValueError, OSError):
        raise PrivetError(
            f"{path} is not a list of CelebA file names with a number each: download it again."
        ) from None
    return frame.loc[~frame.index.duplicated(), name]
