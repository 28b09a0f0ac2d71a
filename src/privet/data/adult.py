"""Adult as published in the UCI repository: census rows without a header, in a training and a test
file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from privet.core.errors import PrivetError
from privet.data.assemble import assemble, check_columns
from privet.data.cache import content_of
from privet.data.dataset import Dataset
from privet.data.published import open_folder
from privet.data.schema_file import Layout

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)
_NUMBERS = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")


def read_adult(place: str | Path, layout: Layout, progress: bool = True) -> Dataset:
    """Census rows of the training and the test file."""
    _, files = open_folder("adult", place, layout, ("adult.data", "adult.test"))
    frames = [
        _rows(path).assign(split=split)
        for path, split in zip(files, ("train", "test"), strict=True)
    ]
    columns = pd.concat(frames, ignore_index=True)
    check_columns(layout, columns.columns, "adult")
    return assemble("adult", "table", None, columns, layout, content_of(files))


def _rows(path: Path) -> pd.DataFrame:
    """The test file begins with a remark in place of a row, and ends its labels with a full
    stop."""
    try:
        with path.open(encoding="utf-8") as file:
            skip = 1 if file.readline().startswith("|") else 0
        frame = pd.read_csv(
            path,
            header=None,
            names=list(COLUMNS),
            index_col=False,
            skiprows=skip,
            skipinitialspace=True,
            na_values="?",
        )
        frame = frame.astype(dict.fromkeys(_NUMBERS, "int64"))
        income = frame["income"].str.rstrip(".")
    except (ValueError, AttributeError, OSError):
        income = pd.Series(dtype="str")
    if not len(income) or not income.isin(["<=50K", ">50K"]).all():
        raise PrivetError(
            f"{path} is not Adult as published, {len(COLUMNS)} values a line and the last <=50K or"
            " >50K: download it again."
        )
    return frame.assign(income=income)
