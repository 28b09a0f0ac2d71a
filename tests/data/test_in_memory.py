"""Rows, pictures, windows and texts that are already in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import privet
from privet.core.errors import PrivetError

N = 80


def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": random.normal(size=N),
            "job": ["a", "b"] * (N // 2),
            "sex": ["f", "f", "m", "m"] * (N // 4),
        }
    )


def polars_frame() -> Any:
    return pytest.importorskip("polars").from_pandas(frame())


def hugging_face() -> Any:
    return pytest.importorskip("datasets").Dataset.from_pandas(frame())


FORMS = {
    "pandas": frame,
    "polars": polars_frame,
    "Arrow": lambda: pa.Table.from_pandas(frame()),
    "Hugging Face": hugging_face,
    "mapping": lambda: frame().to_dict(orient="list"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_release(form: str) -> None:
    rows = FORMS[form]()
    release = privet.LEACE().fit(rows, "sex")
    released = release.transform(rows)
    expected = privet.LEACE().fit(privet.Dataset.from_frame(frame()), ["sex"]).transform(frame())
    pd.testing.assert_frame_equal(released, expected)
    assert privet.load(rows).attribute("sex").values == ("f", "m")


def test_the_index_stays_and_a_lacking_column_is_named() -> None:
    release = privet.LEACE().fit(frame(), "sex")
    shuffled = frame().sample(frac=1, random_state=1)
    assert release.transform(shuffled).index.equals(shuffled.index)
    with pytest.raises(PrivetError, match="'age'"):
        release.transform(frame().drop(columns="age"))


ARRAYS: dict[str, tuple[Any, str, tuple[int, ...]]] = {
    "pictures": (np.zeros((N, 3, 8, 8), np.uint8), "image", (N, 3, 8, 8)),
    "pictures, channels last": (np.zeros((N, 8, 8, 3), np.uint8), "image", (N, 3, 8, 8)),
    "windows": (np.zeros((N, 6, 32)), "signal", (N, 6, 32)),
    "rows": (np.zeros((N, 5)), "table", (N, 5)),
    "texts": (["hello there"] * N, "text", (N,)),
}


@pytest.mark.parametrize("form", ARRAYS)
def test_arrays(form: str) -> None:
    records, modality, shape = ARRAYS[form]
    people = np.arange(N) // 2
    data = privet.Dataset.from_arrays(records, {"sex": [0, 1] * (N // 2)}, person=people)
    assert data.modality == modality and data.records.shape == shape
    assert len(np.unique(data.people)) == N // 2
    other = privet.Dataset.from_arrays(records, {"sex": [1, 0] * (N // 2)}, person=people)
    assert data.fingerprint != other.fingerprint


def test_pictures_in_memory_are_released() -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (N, 1, 6, 6)).astype(np.uint8)
    data = privet.Dataset.from_arrays(pictures, {"sex": [0, 1] * (N // 2)})
    release = privet.LEACE().fit(data, "sex")
    assert release.transform(pictures[:5]).shape == (5, 36)


@pytest.mark.parametrize(
    "wrong,named",
    [
        (lambda: privet.load(3.5), "float"),
        (lambda: privet.load(np.zeros(4)), "two axes"),
        (lambda: privet.Dataset.from_arrays(np.zeros((N, 2)), {"sex": [0, 1]}), "'sex'"),
        (lambda: privet.Dataset.from_arrays(np.zeros((2, 2, 2, 2, 2)), {}), "shape"),
        (lambda: privet.LEACE().fit(frame(), "sexx"), "sex"),
    ],
)
def test_a_mistake_is_one_sentence(wrong: Any, named: str) -> None:
    with pytest.raises(PrivetError, match=named):
        wrong()
