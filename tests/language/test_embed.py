"""privet embed: texts by words, a function or a model; vectors that are there; and stores."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privet
from privet.commands.embed import embed
from privet.core.errors import PrivetError
from privet.data.sources import load
from privet.data.spaces import space_of, with_space
from privet.data.vector_stores import STORES, is_export, read_export
from privet.language import embeddings
from privet.release.apply import ApplyOptions, apply
from privet.release.runtime import read_card
from privet.train.game import Run

TEXTS = ["the cat sat", "a dog ran", "the dog sat", "", "cat and dog"] * 10


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    frame = pd.DataFrame({"text": TEXTS, "sex": ["f", "m"] * 25})
    frame.to_parquet(tmp_path / "texts.parquet")
    return tmp_path / "texts.parquet"


def _vectors(path: Path) -> np.ndarray:
    return np.stack(pq.read_table(path).column("vector").to_pylist()).astype(np.float32)


def _tiny_model(folder: Path) -> Path:
    """A BERT of a few thousand weights, and a tokenizer that splits at spaces."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = ["[PAD]", "[UNK]", "the", "cat", "sat", "a", "dog", "ran", "and"]
    plain = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    )
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, unk_token="[UNK]", pad_token="[PAD]"
    )
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    transformers.set_seed(0)
    transformers.BertModel(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_hugging_face_model_from_a_folder_averages_its_hidden_states(texts, tmp_path):
    import torch

    folder = _tiny_model(tmp_path / "tiny-bert")
    out = embed(texts, tmp_path / "v.parquet", model=str(folder), batch=3, progress=False)
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)("the cat sat", return_tensors="pt")
    with torch.no_grad():
        alone = AutoModel.from_pretrained(folder).eval()(**tokens).last_hidden_state[0].mean(0)
    # Beside longer texts it is padded, and padding must not count.
    np.testing.assert_allclose(_vectors(out)[0], alone.numpy(), atol=1e-5)
    assert _vectors(out).shape == (50, 16) and space_of(out) == "tiny-bert"
    assert pq.read_table(out).column_names == ["text", "sex", "vector"]


def test_a_sentence_transformers_model_from_a_folder(tmp_path):
    package = pytest.importorskip("sentence_transformers")
    parts = pytest.importorskip("sentence_transformers.models")
    body = parts.Transformer(str(_tiny_model(tmp_path / "tiny")))
    pooling = parts.Pooling(16, pooling_mode="max")
    package.SentenceTransformer(modules=[body, pooling]).save(str(tmp_path / "sentences"))
    assert (tmp_path / "sentences" / "modules.json").is_file()
    lines = [text for text in TEXTS[:5] if text]
    pd.DataFrame({"text": lines}).to_parquet(tmp_path / "t.parquet")
    model = str(tmp_path / "sentences")
    out = embed(tmp_path / "t.parquet", tmp_path / "v.parquet", model=model, progress=False)
    theirs = package.SentenceTransformer(model).encode(lines)
    np.testing.assert_allclose(_vectors(out), theirs, atol=1e-5)


def test_a_python_function_named_by_its_module(texts, tmp_path, monkeypatch):
    (tmp_path / "my_model.py").write_text(
        "import numpy as np\n"
        "def lengths(texts): return np.array([[len(t), t.count('a')] for t in texts])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(embeddings, "ROWS", 7)  # several pieces, and the last one shorter
    out = embed(texts, tmp_path / "v.parquet", function="my_model:lengths", progress=False)
    np.testing.assert_array_equal(_vectors(out), [[len(t), t.count("a")] for t in TEXTS])
    assert space_of(out) == "my_model:lengths"
    sys.modules.pop("my_model")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "holds no vectors"),
        ({"function": "json:nothing"}, "no function"),
        ({"function": "json"}, "package.module:function"),
        ({"function": "no_such_package:f"}, "cannot be imported"),
        ({"function": "json:loads", "model": "x"}, "one of"),
        ({"model": "./nowhere"}, "no folder"),
        ({"store": "pinecone"}, ".jsonl"),
    ],
)
def test_a_mistake_gets_one_sentence_and_leaves_no_file(texts, tmp_path, options, sentence):
    with pytest.raises(PrivetError, match=sentence):
        embed(texts, tmp_path / "v.parquet", progress=False, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts.parquet"]


def test_nothing_is_overwritten_without_force(texts, tmp_path, monkeypatch):
    (tmp_path / "other.py").write_text("def f(texts): return [[1.0, 2.0]] * len(texts)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "v.parquet").write_text("mine")
    with pytest.raises(PrivetError, match="--force"):
        embed(texts, tmp_path / "v.parquet", function="other:f", progress=False)
    embed(texts, tmp_path / "v.parquet", function="other:f", force=True, progress=False)
    assert _vectors(tmp_path / "v.parquet").shape == (50, 2)


def test_arrays_with_labels(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    pd.DataFrame({"sex": ["f", "m"] * 30}).to_csv(tmp_path / "labels.csv", index=False)
    np.save(tmp_path / "x.npy", vectors)
    np.savez(tmp_path / "x.npz", embeddings=vectors, sex=np.array(["f", "m"] * 30))
    one = embed(
        tmp_path / "x.npy",
        tmp_path / "a.parquet",
        labels=tmp_path / "labels.csv",
        space="mine",
        progress=False,
    )
    two = embed(tmp_path / "x.npz", tmp_path / "b.parquet", space="mine", progress=False)
    for path in (one, two):
        data = load(path)
        assert data.space == "mine" and data.attribute("sex").values == ("f", "m")
        np.testing.assert_array_equal(data.records.to_numpy(np.float32), vectors)
    pd.DataFrame({"sex": ["f"] * 3}).to_csv(tmp_path / "few.csv", index=False)
    with pytest.raises(PrivetError, match="labels for 3"):
        embed(tmp_path / "x.npy", tmp_path / "c.parquet", labels=tmp_path / "few.csv")


LINES = {
    "chroma": {"id": "a", "embedding": [1, 2.5], "document": "hi", "metadata": {"sex": "f"}},
    "pinecone": {"id": "a", "values": [1, 2.5], "metadata": {"sex": "f", "text": "hi"}},
    "qdrant": {"id": "a", "vector": {"default": [1, 2.5]}, "payload": {"sex": "f", "text": "hi"}},
    "weaviate": {"uuid": "a", "vector": [1, 2.5], "properties": {"sex": "f", "text": "hi"}},
}


@pytest.mark.parametrize("store", LINES)
def test_every_store_is_read_and_written_back(tmp_path, store):
    path = tmp_path / "store.jsonl"
    path.write_text(json.dumps(LINES[store]) + "\n\n")
    (table,) = read_export(path)
    (row,) = table.to_pylist()
    assert row == {"id": "a", "vector": [1.0, 2.5], "text": "hi", "sex": "f"}
    embed(path, tmp_path / "v.parquet", space="tiny", progress=False)
    back = embed(tmp_path / "v.parquet", tmp_path / "back.jsonl", store=store, progress=False)
    line = json.loads(back.read_text())
    names = STORES[store]
    assert line[names.id] == "a" and line[names.vector] == [1.0, 2.5]
    assert next(read_export(back)).to_pylist() == [row]


def test_nested_and_mixed_metadata_become_columns_and_nest_again(tmp_path):
    lines = [
        {"id": 1, "vector": [0.0], "payload": {"by": {"sex": "f", "age": 3}, "tags": ["x"]}},
        {"id": 2, "vector": [1.0], "payload": {"by": {"sex": "m", "age": 3.5}, "n": 1}},
        {"id": 3, "vector": [2.0], "payload": {"n": "many"}},
    ]
    path = tmp_path / "store.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (table,) = read_export(path)
    assert table.column("by.age").to_pylist() == [3.0, 3.5, None]
    assert table.column("n").to_pylist() == [None, "1", "many"]
    assert table.column("tags").to_pylist() == ['["x"]', None, None]
    embed(path, tmp_path / "v.parquet", progress=False)
    back = embed(tmp_path / "v.parquet", tmp_path / "b.jsonl", store="qdrant", progress=False)
    assert json.loads(back.read_text().splitlines()[0])["payload"]["by"]["sex"] == "f"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"id": 1, "vector": [1]}\n{"id": 2, "vector": [1, 2]}', "Line 2 .* 2 numbers"),
        ('{"id": 1, "vector": [1]}\n{"id": 1, "vector": [1]}', "a second time"),
        ('{"id": 1, "vector": [1]}\n{"id": 2}', "Line 2 .* no vector"),
        ('{"vector": [1]}', "no id"),
        ('{"id": 1, "vector": [1]}\nnot json', "Line 2 .* not JSON"),
    ],
)
def test_a_broken_export_is_refused(tmp_path, text, sentence):
    (tmp_path / "store.jsonl").write_text(text)
    with pytest.raises(PrivetError, match=sentence):
        embed(tmp_path / "store.jsonl", tmp_path / "v.parquet", progress=False)
    assert not (tmp_path / "v.parquet").exists()


def test_a_table_without_vectors_is_no_export(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"id": 1, "age": 3}\n')
    assert not is_export(tmp_path / "t.jsonl")


def test_the_space_goes_from_the_file_to_the_card_and_another_one_is_refused(tmp_path):
    random = np.random.default_rng(0)
    vectors, sex = random.normal(size=(200, 6)), np.array(["f", "m"] * 100)
    np.savez(tmp_path / "x.npz", vectors=vectors + 1, sex=sex)
    paths = {
        space: embed(tmp_path / "x.npz", tmp_path / f"{space}.parquet", space=space)
        for space in ("a", "b")
    }
    nameless = embed(tmp_path / "x.npz", tmp_path / "nameless.parquet")
    release = privet.LEACE().fit(load(paths["a"]), "sex", run=Run(progress=False))
    release.save(tmp_path / "r")
    assert read_card(tmp_path / "r")["input"]["space"] == "a"
    options = ApplyOptions(form="vector", ordered=True, home=tmp_path)
    with pytest.raises(PrivetError, match=r"learned on vectors of 'a'.*holds vectors of 'b'"):
        apply(tmp_path / "r", [paths["b"]], tmp_path / "o.parquet", options=options)
    with pytest.raises(PrivetError, match="learned on vectors of 'a'"):
        privet.audit(tmp_path / "r", paths["b"], progress=False)
    with pytest.raises(PrivetError, match="learned on vectors of 'a'"):
        privet.Stage(tmp_path / "r", home=tmp_path)(pq.read_table(paths["b"]))
    for path in (paths["a"], nameless):
        made = apply(tmp_path / "r", [path], tmp_path / "o.parquet", options=options)
        released = _vectors(made)
        assert released.shape == vectors.shape and space_of(made) == "a"
        # The same vectors, only without the concept: most of each is left.
        assert np.abs(released - (vectors + 1)).mean() < 0.4
    assert load(nameless).space == "" and "space" not in read_card(tmp_path / "r")["output"]


def test_a_schema_file_names_the_space_and_rows_have_none(tmp_path):
    frame = pd.DataFrame({"vector": list(np.eye(20)), "sex": ["f", "m"] * 10})
    frame.to_parquet(tmp_path / "v.parquet")
    (tmp_path / "s.toml").write_text('space = "glove"\n')
    assert load(tmp_path / "v.parquet", tmp_path / "s.toml").space == "glove"
    assert load(tmp_path / "v.parquet").space == ""
    assert load({"age": range(40), "sex": ["f", "m"] * 20}).space is None


def test_metadata_of_others_stays():
    schema = pa.schema([("a", pa.int64())], metadata={b"pandas": b"x", b"privet": b'{"k": 1}'})
    metadata = with_space(schema, "s").metadata
    assert metadata[b"pandas"] == b"x" and json.loads(metadata[b"privet"]) == {"k": 1, "space": "s"}
