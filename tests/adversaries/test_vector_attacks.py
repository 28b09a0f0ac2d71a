"""Attacks on vectors, where the answer is known: words by optimisation and as sets, chosen words,
members by similarity, releases by raw vectors; and all of it in one audit and one gate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import privet
from privet.adversaries import white_box
from privet.adversaries.chosen_words import chosen_words
from privet.adversaries.inversion import TextPart
from privet.adversaries.linear import Logistic
from privet.adversaries.multiset import invert_as_sets
from privet.adversaries.raw_vector_search import raw_vector_search
from privet.adversaries.similarity_membership import similarity_membership
from privet.adversaries.white_box import PENALTIES, MeanOfWords, invert_by_optimisation
from privet.auditing.batteries import Battery
from privet.auditing.gate import gate
from privet.auditing.vector_audit import search_quality
from privet.commands.audit import FileOptions
from privet.core.errors import PrivetError
from privet.data.in_memory import as_dataset, from_arrays
from privet.data.schema import learn_schema
from privet.data.schema_file import Layout
from privet.data.spaces import with_space
from privet.evidence.figures import Audit
from privet.release.release import Release
from privet.reporting.page import render
from privet.train.game import Run

CPU = torch.device("cpu")
WORDS = [f"w{at}" for at in range(40)]
POINTS = np.random.default_rng(1).normal(size=(40, 24)).astype(np.float32)
QUIET = Run(progress=False)


def _texts(n: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, 5, replace=False)) for _ in range(n)]


def _vectors(texts: list[str]) -> np.ndarray:
    return np.stack([POINTS[[int(w[1:]) for w in t.split()]].mean(0) for t in texts])


@pytest.fixture(scope="module")
def parts() -> dict[str, TextPart]:
    sizes = {"attack": 400, "select": 150, "test": 150}
    made = {}
    for seed, (part, n) in enumerate(sizes.items()):
        lines = _texts(n, seed)
        made[part] = TextPart(torch.from_numpy(_vectors(lines)), lines, np.arange(n))
    return made


def _through(parts: dict[str, TextPart], release: Release) -> dict[str, TextPart]:
    """What is released of raw vectors."""
    made = {}
    for name, part in parts.items():
        frame = pd.DataFrame(part.vectors.numpy(), columns=[f"v{i}" for i in range(24)])
        made[name] = part._replace(
            vectors=torch.from_numpy(release(release.schema.encode(frame), seed=0))
        )
    return made


@pytest.fixture(scope="module")
def data() -> privet.Dataset:
    vectors = _vectors(_texts(600, 9))
    labels = {"sex": ["f", "m"] * 300}
    return from_arrays(vectors, labels, person=np.arange(600) // 2, layout=Layout(space="w"))


@pytest.fixture(scope="module")
def leace(data: privet.Dataset) -> Release:
    return privet.LEACE().fit(data, "sex", run=QUIET)


def test_optimisation_reads_words_through_a_release_that_rounds(parts, data, leace):
    """Rounding has no gradient; an attacker goes on all the same."""
    embedding = MeanOfWords(WORDS, torch.from_numpy(POINTS))
    raw = Release.identity(learn_schema(data, ["sex"]))
    for release in (raw, leace):
        found = invert_by_optimisation(_through(parts, release), embedding, release, "d", "t")
        f1 = found.figures["f1_words"]
        assert f1.low > 0.8 and f1.chance < 0.4, release.card["method"]
    # Another embedding than the one that was used tells nothing.
    wrong = MeanOfWords(WORDS, torch.from_numpy(np.roll(POINTS, 7, axis=0)))
    nothing = invert_by_optimisation(_through(parts, raw), wrong, raw, "d", "t")
    assert nothing.figures["f1_words"].value < 0.5


@pytest.mark.parametrize("seed", range(3))
def test_long_texts_are_read_by_who_knows_how_frequent_words_are(seed, monkeypatch):
    """Texts of 30 words in 24 numbers: too many answers fit, until frequencies choose."""
    random = np.random.default_rng(seed)
    names = [f"w{at}" for at in range(200)]
    points = random.normal(size=(200, 24)).astype(np.float32)
    often = 1 / np.arange(1, 201)
    parts = {}
    for name, n in {"attack": 400, "select": 100, "test": 100}.items():
        drawn = [random.choice(200, 30, p=often / often.sum()) for _ in range(n)]
        lines = [" ".join(names[at] for at in words) for words in drawn]
        vectors = torch.from_numpy(np.stack([points[words].mean(0) for words in drawn]))
        parts[name] = TextPart(vectors, lines, np.arange(n))
    frame = pd.DataFrame(parts["attack"].vectors.numpy()).add_prefix("v").assign(u=["a", "b"] * 200)
    plain = Release.identity(learn_schema(as_dataset(frame), ["u"]))
    embedding = MeanOfWords(names, torch.from_numpy(points))

    def f1() -> float:
        found = invert_by_optimisation(_through(parts, plain), embedding, plain, "d", "t")
        return found.figures["f1_words"].value - found.figures["f1_words"].chance

    knows = f1()
    monkeypatch.setattr(white_box, "PENALTIES", [p for p in PENALTIES if not p.divergence])
    assert knows > f1() + 0.05
    assert knows > 0.05


def test_a_network_that_names_words_reads_them_and_not_from_noise(parts):
    f1 = invert_as_sets(parts, "d", "t", epochs=30).figures["f1_words"]
    assert f1.low > f1.chance + 0.2
    random = torch.Generator().manual_seed(0)
    noise = {
        name: part._replace(vectors=torch.randn(part.vectors.shape, generator=random))
        for name, part in parts.items()
    }
    nothing = invert_as_sets(noise, "d", "t", epochs=5).figures["f1_words"]
    assert nothing.value < nothing.chance + 0.1


def test_a_chosen_word_is_told_and_a_wrong_one_is_refused(parts):
    figures = chosen_words(parts, ["W3", "w7"], "t").figures
    assert list(figures) == ["word w3", "word w7"]
    assert all(figure.low > 0.6 and figure.chance == 0.5 for figure in figures.values())
    shuffled = {
        name: part._replace(vectors=part.vectors[torch.randperm(len(part.vectors))])
        for name, part in parts.items()
    }
    assert chosen_words(shuffled, ["w3"], "t").figures["word w3"].is_chance
    for words, sentence in ((["alice"], "is in 0 of"), (["two words"], "not one word")):
        with pytest.raises(PrivetError, match=sentence):
            chosen_words(parts, words, "t")


def test_a_raw_vector_finds_its_release_and_not_under_noise(data, leace):
    found = raw_vector_search(leace, data, CPU)
    assert found.figures["top_1"].low > 0.9 and "adds no noise" in found.note
    noisy = privet.Noisy(sigma=640.0).fit(data, private=["sex"], run=QUIET)
    hidden = raw_vector_search(noisy, data, CPU)
    assert hidden.figures["top_1"].high < 0.2 and "adds no noise" not in hidden.note
    rows = replace(data, space=None)
    assert raw_vector_search(leace, rows, CPU) == ""


def test_a_release_that_remembers_is_told_by_similarity_and_one_that_does_not_is_not(data):
    """Members are released as they are, and others are moved: how far tells who was a member."""

    def names(rows: np.ndarray) -> list[tuple[int, ...]]:
        return [tuple(row) for row in (100 * rows).round().astype(int).tolist()]

    fit = {*names(data.records.to_numpy()[data.part("fit").rows])}
    schema = learn_schema(data, ["sex"])
    identity = Release.identity(schema)
    mean, std = (np.array([getattr(c, k) for c in schema.columns]) for k in ("mean", "std"))

    class Remembers(torch.nn.Module):
        shape = identity.shape

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            known = [row in fit for row in names(x.numpy() * std + mean)]
            moved = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
            return torch.where(torch.tensor(known)[:, None], x, x + moved)

    card = {"method": "m", "private": ["sex"], "form": "record"}
    release = Release(schema, ("foreign", {}), Remembers(), None, card)
    found = similarity_membership(release, data, CPU)
    assert found.figures["auc"].low > 0.8 and found.raw["auc"].is_chance
    nothing = similarity_membership(identity, data, CPU)
    assert nothing.figures["auc"].is_chance


def test_search_is_measured_of_vectors_that_were_changed_only(data, leace):
    kept = search_quality(leace, data, CPU)
    assert kept["recall_at_10"].value > 0.5 and "recall_at_10_raw_queries" in kept
    assert search_quality(Release.identity(leace.schema), data, CPU) == {}
    assert search_quality(leace, replace(data, space=None), CPU) == {}


def test_one_audit_one_report_one_gate(tmp_path: Path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines = _texts(600, 4)
    table = pa.table(
        {
            "text": lines,
            "sex": ["f", "m"] * 300,
            "person": (np.arange(600) // 2).tolist(),
            "vector": _vectors(lines).tolist(),
        }
    )
    path = tmp_path / "v.parquet"
    pq.write_table(table.replace_schema_metadata(with_space(table.schema, "w").metadata), path)
    privet.LEACE().fit(privet.load(path), "sex", run=QUIET).save(tmp_path / "r")
    audit = privet.audit(
        tmp_path / "r",
        path,
        battery=Battery((Logistic(),), curves=False),
        files=FileOptions(words=("w3",)),
        out=tmp_path / "a",
        progress=False,
        rebuild=False,
    )
    assert audit.data["space"] == "w" and Audit.from_json(audit.to_json()) == audit
    assert {one.attack for one in audit.people} >= {"raw vector", "membership by similarity"}
    assert {"recall_at_10", "ndcg_at_10", "drift", "cluster_agreement"} <= set(audit.retrieval)
    page, text = render(audit), (tmp_path / "a" / "summary.md").read_text()
    for words in ("Does search still work?", "w3"):
        assert words in page and words in text
    assert "retrieval" in json.loads((tmp_path / "a" / "audit.json").read_text())
    limits = {"recall_at_10": 0.3, "ndcg_at_10": 0.3}
    assert all(one.ok for one in gate(audit, min_figure=limits, max_figure={"word w3": 1.0}))
    tight = gate(audit, min_figure={"recall_at_10": 0.999}, max_figure={"word w3": 0.6})
    assert not any(one.ok for one in tight)
    with pytest.raises(PrivetError, match="figure in this audit"):
        gate(audit, min_figure={"recall": 0.5})
    from typer.testing import CliRunner

    from privet.cli.audit import verbs

    run = CliRunner()
    assert run.invoke(verbs, ["gate", str(tmp_path / "a"), "--min-recall", "0.3"]).exit_code == 0
    assert run.invoke(verbs, ["gate", str(tmp_path / "a"), "--min-ndcg", "0.999"]).exit_code == 1
