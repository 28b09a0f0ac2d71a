"""Schemas learn from *fit* alone, and a record that was never seen does not break them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.core.errors import PrivetError
from privet.data.dataset import Attribute, Dataset
from privet.data.schema import PAD, SHARED, TableSchema, TextSchema, learn_schema, schema_from_json
from privet.methods.leace import LEACE
from privet.train.game import Run


def dataset(modality: str, records: object, n: int) -> Dataset:
    labels = {"flag": np.arange(n) % 2}
    part_of = (np.arange(n) % 4).astype(np.int8)
    return Dataset(
        "made",
        modality,
        records,
        {"flag": Attribute("flag", "binary", ("no", "yes"))},
        labels,
        part_of,
        np.arange(n),
        "",
    )  # type: ignore[arg-type]


def table(n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(5, 2, n),
            "colour": rng.choice(["red", "blue"], n),
            "flag": np.arange(n) % 2,
        }
    )


def test_statistics_of_a_table_come_from_fit_alone() -> None:
    frame = table()
    before = learn_schema(dataset("table", frame, 80))
    changed = frame.copy()
    other = np.arange(80) % 4 != 0
    changed.loc[other, "size"] = 1e6
    changed.loc[other, "colour"] = "green"
    assert learn_schema(dataset("table", changed, 80)) == before


def test_statistics_of_signals_and_texts_come_from_fit_alone() -> None:
    windows = np.random.default_rng(0).normal(size=(80, 2, 16)).astype(np.float32)
    before = learn_schema(dataset("signal", windows, 80))
    windows[np.arange(80) % 4 != 0] = 99
    assert learn_schema(dataset("signal", windows, 80)) == before
    texts = np.array(
        ["seen seen" if i % 4 == 0 else "unseen unseen" for i in range(80)], dtype=object
    )
    schema = learn_schema(dataset("text", texts, 80))
    assert isinstance(schema, TextSchema) and schema.words == ("seen",)


def test_what_was_never_seen_becomes_zeros() -> None:
    schema = learn_schema(dataset("table", table(), 80), without=["flag"])
    encoded = schema.encode(pd.DataFrame({"size": [np.nan, 5.0], "colour": ["mauve", None]}))
    assert encoded.shape == (2, 3) and not encoded[0].any() and not encoded[1, 1:].any()


def test_private_columns_are_no_input_and_some_column_must_be_left() -> None:
    data = dataset("table", table(), 80)
    schema = learn_schema(data, without=["flag"])
    assert isinstance(schema, TableSchema) and [c.name for c in schema.columns] == [
        "size",
        "colour",
    ]
    with pytest.raises(PrivetError, match="No column"):
        learn_schema(data, without=["flag", "size", "colour"])
    with pytest.raises(PrivetError, match="colour"):
        learn_schema(data, without=["color"])


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.lists(st.sampled_from("abcdefgh"), max_size=4)),
        min_size=1,
        max_size=30,
    )
)
def test_a_card_names_what_two_people_have(said: list[tuple[int, list[str]]]) -> None:
    who = np.array([person for person, _ in said])
    texts = np.array([" ".join(words) for _, words in said], dtype=object)
    shared = {
        w for w in "abcdefgh" if len({person for person, words in said if w in words}) >= SHARED
    }
    data = replace(
        dataset("text", texts, len(said)), part_of=np.zeros(len(said), np.int8), person=who
    )
    schema = learn_schema(data, people=SHARED)
    assert isinstance(schema, TextSchema) and set(schema.words) == shared
    frame = pd.DataFrame(
        {"n": np.arange(len(said)), "first": [words[0] if words else None for _, words in said]}
    )
    schema = learn_schema(replace(data, modality="table", records=frame), people=SHARED)
    values = {
        w
        for w in "abcdefgh"
        if len({person for person, words in said if words[:1] == [w]}) >= SHARED
    }
    assert (
        isinstance(schema, TableSchema)
        and {v for column in schema.columns for v in column.values} == values
    )


def test_methods_learn_without_what_one_person_has_and_raw_records_keep_it() -> None:
    frame = table()
    frame["name"] = [f"Ada {i}" for i in range(80)]
    frame.loc[0, "colour"] = "mauve"
    data = replace(dataset("table", frame, 80), part_of=np.zeros(80, np.int8))
    raw, schema = (
        learn_schema(data, ["flag"]),
        LEACE().problem(data, ["flag"], [], [], Run(device="cpu")).schema,
    )
    assert isinstance(raw, TableSchema) and [len(c.values) for c in raw.columns] == [0, 3, 80]
    assert isinstance(schema, TableSchema) and [(c.name, c.values) for c in schema.columns] == [
        ("size", ()),
        ("colour", ("blue", "red")),
    ]
    with pytest.raises(PrivetError, match="one person alone"):
        LEACE().problem(data, ["flag"], [], ["size", "colour"], Run(device="cpu"))


@given(
    st.lists(
        st.lists(st.sampled_from(["ja", "nein", "l'été", "42", "!"]), min_size=1, max_size=20),
        min_size=1,
        max_size=8,
    )
)
def test_known_words_come_back_from_their_codes(lines: list[list[str]]) -> None:
    schema = TextSchema(("ja", "nein", "l'été", "42", "!"))
    texts = [" ".join(line) for line in lines]
    ids = schema.encode(texts)
    assert schema.decode(ids) == texts
    assert np.array_equal((ids != PAD).sum(axis=1), [len(line) for line in lines])


@pytest.mark.parametrize("modality", ["table", "signal", "text", "image"])
def test_a_schema_survives_json(modality: str) -> None:
    records = {
        "table": table(),
        "signal": np.random.default_rng(0).normal(size=(80, 2, 16)).astype(np.float32),
        "text": np.array(["one two two one"] * 80, dtype=object),
        "image": np.zeros((80, 3, 4, 5), dtype=np.uint8),
    }[modality]
    data = dataset(modality, records, 80)
    schema = learn_schema(data)
    again = schema_from_json(json.loads(json.dumps(schema.to_json())))
    assert again == schema
    assert np.array_equal(again.inputs(data)[:5], schema.inputs(data)[:5])
