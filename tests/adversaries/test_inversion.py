"""Which words were in a text, from its embedding; and the defences on a parquet file of vectors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from privet.adversaries.inversion import TextPart, embed, inversion, invert_parts
from privet.adversaries.linear import Logistic
from privet.auditing.batteries import BATTERIES, Battery
from privet.commands.audit import FileOptions, audit
from privet.commands.learn import learn
from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.data.schema import learn_schema
from privet.data.sources import load
from privet.evidence.figures import Audit
from privet.language.embeddings import embed_to, invert, invert_to
from privet.release.foreign import from_function
from privet.release.release import Release
from privet.reporting.sentences import inversion_sentences
from privet.train.game import Run
from small import WORDS, small

PLACES = {word: at for at, word in enumerate([*WORDS, "u0", "u1", "y0", "y1"])}
MIX = np.random.default_rng(5).standard_normal((len(PLACES), 20)).astype(np.float32)


def told(texts: object) -> np.ndarray:
    """An embedding that tells much: a random mixture of what is in a text."""
    bags = np.array(
        [[word in str(text).split() for word in PLACES] for text in texts], dtype=np.float32
    )
    return bags @ MIX


@pytest.fixture(scope="module")
def texts() -> Dataset:
    return small("text", n=500)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory, texts: Dataset) -> Path:
    folder = tmp_path_factory.mktemp("vectors")
    table = pa.table(
        {
            "text": list(texts.records),
            "u": texts.labels["u"].tolist(),
            "y": texts.labels["y"].tolist(),
        }
    )
    pq.write_table(table, folder / "texts.parquet")
    return embed_to(folder / "vectors.parquet", folder / "texts.parquet", told)


def test_words_are_read_from_what_tells_them_and_not_from_noise(texts: Dataset) -> None:
    found = inversion(told, texts, epochs=20, device="cpu")
    f1 = found.figures["f1_words"]
    assert f1.low > f1.chance + 0.05 and found.value == f1.value and f1.n == len(texts.part("test"))
    noise = np.random.default_rng(0).standard_normal((len(texts), 20)).astype(np.float32)
    nothing = inversion(noise, texts, epochs=20, device="cpu").figures["f1_words"]
    assert nothing.value < nothing.chance + 0.05 and f1.low > nothing.high


def test_f1_is_between_precision_and_recall_and_the_seed_repeats(texts: Dataset) -> None:
    one, two = (inversion(told, texts, most=10, epochs=2, seed=3, device="cpu") for _ in range(2))
    assert one.figures == two.figures
    values = [one.figures[name].value for name in ("precision_words", "f1_words", "recall_words")]
    assert min(values[0], values[2]) <= values[1] <= max(values[0], values[2])


def test_of_equally_frequent_words_the_first_in_the_alphabet_are_asked_for() -> None:
    """And not those that Python's randomised hashes happen to put first in a set."""
    lines = ["kiwi fig date cherry banana apple", "apple banana cherry date fig kiwi"] * 3
    part = TextPart(torch.eye(6), lines, np.arange(6))
    parts = {"attack": part, "select": part, "test": part}
    found = invert_parts(parts, "fruit", "words", most=3, epochs=1)
    assert set(found.originals) == {"apple banana cherry"}


def test_every_kind_of_source_gives_the_same_vectors(texts: Dataset, vectors: Path) -> None:
    by_function = embed(told, texts)
    assert np.allclose(embed(vectors, texts), by_function, atol=1e-5)
    assert np.array_equal(embed(by_function, texts), by_function)

    def counts(ids: np.ndarray) -> np.ndarray:
        return np.stack([(ids == code).sum(1) for code in range(2, 8)], 1).astype(np.float32)

    release = from_function(counts, texts, ["u"])
    assert np.array_equal(embed(release, texts), counts(release.schema.inputs(texts)[:]))


def test_an_onnx_graph_of_word_ids_is_a_source(texts: Dataset, tmp_path: Path) -> None:
    from onnx import TensorProto, helper, save

    table = (
        np.random.default_rng(0)
        .standard_normal((learn_schema(texts).vocabulary, 4))
        .astype(np.float32)
    )
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["each"]),
        helper.make_node("ReduceMean", ["each"], ["out"], axes=[1], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "mean",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", "words"])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor("table", TensorProto.FLOAT, table.shape, table.ravel().tolist())],
    )
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        tmp_path / "mean.onnx",
    )
    ids = learn_schema(texts).inputs(texts)[:]
    assert np.allclose(embed(tmp_path / "mean.onnx", texts), table[ids].mean(1), atol=1e-4)


def test_wrong_sources_get_a_sentence(texts: Dataset, vectors: Path, tmp_path: Path) -> None:
    with pytest.raises(PrivetError, match="one row a text"):
        embed(np.zeros((3, 4)), texts)
    with pytest.raises(PrivetError, match="finite"):
        embed(np.full((len(texts), 2), np.nan), texts)
    with pytest.raises(PrivetError, match="asked of texts"):
        inversion(told, small("table", n=60))
    with pytest.raises(PrivetError, match="nothing to ask for"):
        inversion(
            told,
            replace(texts, records=np.array([f"only{i}" for i in range(len(texts))], dtype=object)),
        )
    with pytest.raises(PrivetError, match="column of lists"):
        embed(vectors.parent / "texts.parquet", texts)
    with pytest.raises(PrivetError, match="privet embed"):
        invert(vectors.parent / "texts.parquet")


SETTINGS = {
    "leace": [],
    "hedge": ["width=0.05", "epochs=1", "batch=32"],
    "cloak": ["epochs=1", "batch=32", "width=0.05"],
}


@pytest.mark.parametrize("method", SETTINGS)
def test_a_file_of_vectors_can_be_defended(method: str, vectors: Path, tmp_path: Path) -> None:
    """The five-line answer: what goes in is the vector and nothing else of the file, neither the
    text nor a label."""
    utility = ["y"] if method == "cloak" else []
    release = learn(
        method,
        str(vectors),
        ["u"],
        utility,
        settings=SETTINGS[method],
        run=Run(device="cpu"),
        out=tmp_path / "r",
    )
    assert release.schema.modality == "table" and len(release.schema.columns) == MIX.shape[1]
    again = Release.load(tmp_path / "r")
    data = load(vectors, progress=False)
    made = again(again.schema.inputs(data), seed=0)
    assert len(made) == len(data) and np.isfinite(made).all()


def test_erasing_an_attribute_hides_it_and_the_words_of_the_rest_are_counted(
    vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        BATTERIES, "one", Battery((Logistic(strengths=(0.1,)),), (), (), people=False)
    )
    learn("leace", str(vectors), ["u"], run=Run(device="cpu"), out=tmp_path / "r")
    found = invert_to(
        tmp_path / "out",
        vectors,
        tmp_path / "r",
        private=["u"],
        utility=["y"],
        battery="one",
        epochs=5,
        device="cpu",
    )
    kinds = {f"{kind}{how}" for kind in ("raw", "released") for how in ("", ", as a set")}
    assert set(found) == kinds and len(inversion_sentences(list(found.values()))) == 4
    told_again = (tmp_path / "out" / "inversion.json").read_text()
    assert json.loads(told_again)["raw"]["f1_words"]["value"] == found["raw"].value
    assert "word3" not in told_again
    whole = Audit.load(tmp_path / "out" / "audit.json")
    assert (
        whole.private[0].worst.score.low < 0.6
        and whole.private[0].reference.score.low > 0.8
        and whole.utility[0].worst.score.low > 0.8
    )
    assert [one.decoder for one in whole.rebuilt] == [
        "words from released vectors",
        "words from released vectors, as a set",
        "words from raw vectors",
        "words from raw vectors, as a set",
    ]
    assert "F1 of the words" in (tmp_path / "out" / "report.html").read_text()


def test_vectors_with_texts_beside_them_are_audited(
    vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        BATTERIES, "one", Battery((Logistic(strengths=(0.1,)),), (), (), people=False, curves=False)
    )
    found: Audit = audit(
        vectors, private=["u"], utility=["y"], battery="one", device="cpu", out=tmp_path / "a"
    )
    assert found.private[0].worst.score.low > 0.8


def test_the_audit_asks_embeddings_which_words_were_in_the_texts_beside_them(
    vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        BATTERIES, "one", Battery((Logistic(strengths=(0.1,)),), (), (), people=False, curves=False)
    )
    learn("leace", str(vectors), ["u"], run=Run(device="cpu"), out=tmp_path / "r")
    bare = audit(vectors, private=["u"], battery="one", device="cpu", out=tmp_path / "a")
    both = audit(tmp_path / "r", str(vectors), battery="one", device="cpu", out=tmp_path / "b")
    assert [one.decoder for one in bare.rebuilt] == ["words from released vectors"]
    assert [one.decoder for one in both.rebuilt][:2] == [
        "words from released vectors",
        "words from raw vectors",
    ]
    f1 = bare.rebuilt[0].figures["f1_words"]
    assert f1.low > f1.chance + 0.05
    assert both.rebuilt[1].value == pytest.approx(bare.rebuilt[0].value, abs=0.1)
    with pytest.raises(PrivetError, match="no column of texts called 'y'"):
        audit(
            vectors,
            private=["u"],
            files=FileOptions(text="y"),
            battery="one",
            device="cpu",
            out=tmp_path / "c",
        )


def test_texts_that_were_released_are_audited(
    texts: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as `privet words` writes them: the attribute is read from words that tell it, with
    numbers beside or without."""
    monkeypatch.setitem(
        BATTERIES, "one", Battery((Logistic(strengths=(0.1,)),), (), (), people=False)
    )
    columns = {
        "text": list(texts.records),
        "u": texts.labels["u"].tolist(),
        "y": texts.labels["y"].tolist(),
    }
    pq.write_table(pa.table(columns), tmp_path / "plain.parquet")
    about = {b"privet": json.dumps({"method": "words", "epsilon": 10.0}).encode()}
    noisy = {**columns, "score": np.random.default_rng(0).random(len(texts)).tolist()}
    pq.write_table(pa.table(noisy).replace_schema_metadata(about), tmp_path / "words.parquet")
    found = audit(
        tmp_path / "plain.parquet",
        private=["u"],
        utility=["y"],
        battery="one",
        device="cpu",
        out=tmp_path / "a",
    )
    assert (
        found.data["modality"] == "text"
        and found.private[0].worst.score.low > 0.8
        and found.utility[0].worst.score.low > 0.8
    )
    told = audit(
        tmp_path / "words.parquet", private=["u"], battery="one", device="cpu", out=tmp_path / "b"
    )
    assert told.release["method"] == "words" and told.private[0].worst.score.low > 0.8
    with pytest.raises(PrivetError, match="no column of texts called 'words'"):
        audit(
            tmp_path / "plain.parquet",
            private=["u"],
            files=FileOptions(text="words"),
            battery="one",
            device="cpu",
            out=tmp_path / "c",
        )
    pq.write_table(
        pa.table({"u": columns["u"], "y": ["a"] * len(texts)}), tmp_path / "none.parquet"
    )
    with pytest.raises(PrivetError, match="nothing is released"):
        audit(
            tmp_path / "none.parquet",
            private=["u"],
            battery="one",
            device="cpu",
            out=tmp_path / "d",
        )
