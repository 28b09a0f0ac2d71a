"""Labels from another table: each record gets its own, whatever the order, and a mistake is one
sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privet.core.errors import PrivetError
from privet.data.labels_beside import add_labels


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """Released records 0 to 49, and labels of 0 to 99 in another order and another type of id."""
    kept = pa.table({"id": [f"{i}" for i in range(50)], "z": np.arange(50.0)})
    pq.write_table(kept.replace_schema_metadata({"privet": "{}"}), tmp_path / "released.parquet")
    order = np.random.default_rng(0).permutation(100)
    frame = pd.DataFrame({"id": order, "sex": [f"s{i}" for i in order], "z": -1.0})
    frame.to_parquet(tmp_path / "labels.parquet", index=False)
    return tmp_path / "released.parquet", tmp_path / "labels.parquet"


def test_every_record_gets_its_own_label(tables):
    path, labels = tables
    assert add_labels(path, labels, "id", ["sex", "z"]).startswith("50 of 50 records")
    found = pq.read_table(path)
    assert found["sex"].to_pylist() == [f"s{name}" for name in found["id"].to_pylist()]
    assert found["z"].to_pylist() == list(range(50)), "what is there already stays"
    assert found.schema.metadata[b"privet"] == b"{}"


def test_a_record_without_a_label_has_none(tables, tmp_path):
    path, labels = tables
    rows = pd.read_parquet(labels)
    for i, some in enumerate((rows[rows["id"] < 20], rows[rows["id"] >= 40])):
        some.to_parquet(tmp_path / f"some-{i}.parquet", index=False)
    assert add_labels(path, tmp_path / "some-*.parquet", "id", ["sex"]).startswith("30 of 50")
    found = pq.read_table(path)["sex"].to_pylist()
    assert [i for i, label in enumerate(found) if label is None] == list(range(20, 40))


def test_mistakes_are_one_sentence(tables, tmp_path):
    path, labels = tables
    rows = pd.read_parquet(labels)
    pd.concat([rows, rows[rows["id"] == 7]]).to_parquet(tmp_path / "twice.parquet", index=False)
    rows.assign(id=rows["id"] + 1000).to_parquet(tmp_path / "others.parquet", index=False)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    for given, by, wanted, said in (
        (labels, "name", ["sex"], "--keep name"),
        (labels, "id", ["age"], "no column 'age'"),
        (tmp_path / "none.parquet", "id", ["sex"], "no table of labels"),
        (tmp_path / "others.parquet", "id", ["sex"], "No 'id' of the released records"),
        (tmp_path / "broken.parquet", "id", ["sex"], "cannot be read"),
        (tmp_path / "twice.parquet", "id", ["sex"], "several rows"),
    ):
        with pytest.raises(PrivetError, match=said):
            add_labels(path, given, by, wanted)
    assert pq.read_table(path).column_names == ["id", "z"]
