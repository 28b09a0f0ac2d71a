"""Sentence embeddings from files to files: make the plainest kind, and ask which words were in a
text, before and after a release."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.adversaries.inversion import Embedding, inversion
from privet.auditing.audit import audit
from privet.core.errors import PrivetError
from privet.core.files import replacing, writable_folder, write_text
from privet.data.schema import learn_schema
from privet.data.sources import load
from privet.data.word_vectors import Vocabulary, read_table
from privet.evidence.figures import Audit, Rebuilt
from privet.language.private_words.files import text_column
from privet.release.foreign import from_vectors
from privet.release.foreign_texts import words_told
from privet.release.release import Release
from privet.reporting.markdown import summary
from privet.reporting.page import report


def embed_to(out: Path, texts: Path, source: Path | Embedding, column: str | None = None) -> Path:
    """The columns of a parquet file of texts, with a column `vector`: the means of the vectors of
    words in the file `source`, or what a Python function of texts gives."""
    table = read_table(texts)
    name = text_column(table, column, texts.name)
    lines = ["" if text is None else text for text in table.column(name).to_pylist()]
    vectors = (
        Vocabulary.read(source).mean_vectors(lines)
        if isinstance(source, Path)
        else np.asarray(source(lines), dtype=np.float32)
    )
    if vectors.ndim != 2 or len(vectors) != len(lines):
        raise PrivetError(
            f"{texts.name} has {len(lines)} texts, and their embeddings have the shape {vectors.shape}: one row a text."
        )
    cells = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    kept = table.drop_columns(["vector"]) if "vector" in table.schema.names else table
    undo = writable_folder(out.parent)
    try:
        with replacing(out) as temporary:
            pq.write_table(kept.append_column("vector", cells), temporary, compression="zstd")
    except BaseException:
        undo()
        raise
    return out


def invert(
    vectors: Path,
    release: Release | Path | None = None,
    column: str | None = None,
    *,
    most: int = 300,
    skip: int = 0,
    epochs: int = 30,
    seed: int = 0,
    device: str = "auto",
) -> dict[str, Rebuilt]:
    """Which words are told by the vectors in a file that holds their texts too: raw, and as
    `release` lets them through."""
    data = load(vectors)
    if data.modality != "table":
        raise PrivetError(
            f"{vectors.name} has no column of vectors beside its texts: make one with  privet embed."
        )
    table = read_table(vectors)
    lines = [
        "" if text is None else text
        for text in table.column(text_column(table, column, vectors.name)).to_pylist()
    ]
    texts = replace(data, modality="text", records=np.array(lines, dtype=object))
    asked = {"raw": Release.identity(learn_schema(data, without=list(data.attributes)))}
    if release is not None:
        asked["released"] = Release.load(release) if isinstance(release, Path) else release
    found = {}
    for name, one in asked.items():
        rows = one(one.schema.inputs(data), seed=seed).reshape(len(data), -1)
        found[name] = inversion(
            rows,
            texts,
            most=most,
            skip=skip,
            epochs=epochs,
            seed=seed,
            device=device,
            title=f"words from {name} vectors",
        )
    return found


def invert_to(
    folder: Path,
    vectors: Path,
    release: Path | None = None,
    column: str | None = None,
    *,
    private: Sequence[str] = (),
    utility: Sequence[str] = (),
    battery: str = "quick",
    most: int = 300,
    skip: int = 0,
    epochs: int = 30,
    seed: int = 0,
    device: str = "auto",
) -> dict[str, Rebuilt]:
    """The same, written as inversion.json without the texts. Where `private` names attributes, they
    are attacked as well, and an audit with all of it is written beside: audit.json, report.html and
    summary.md, which show texts of *test* people."""
    undo = writable_folder(folder)
    try:
        found = invert(
            vectors, release, column, most=most, skip=skip, epochs=epochs, seed=seed, device=device
        )
        told = {
            name: {key: asdict(figure) for key, figure in one.figures.items()}
            for name, one in found.items()
        }
        write_text(folder / "inversion.json", json.dumps(told, indent=1) + "\n")
        if private:
            whole = _audit(vectors, release, private, utility, battery, seed, device)
            whole = replace(whole, rebuilt=(*reversed(found.values()), *whole.rebuilt))
            whole.save(folder / "audit.json")
            report(whole, folder / "report.html")
            write_text(folder / "summary.md", summary(whole))
    except BaseException:
        undo()
        raise
    return found


def _audit(
    vectors: Path,
    release: Path | None,
    private: Sequence[str],
    utility: Sequence[str],
    battery: str,
    seed: int,
    device: str,
) -> Audit:
    if release is None:
        bare, data = from_vectors(vectors, private, utility)
        return audit(
            bare,
            data,
            utility,
            battery,
            private=private,
            seed=seed,
            device=device,
            raw=False,
            rebuild=False,
        )
    return audit(
        Release.load(release),
        load(vectors),
        utility,
        battery,
        private=private,
        seed=seed,
        device=device,
        rebuild=False,
    )


def lines_of(found: dict[str, Rebuilt]) -> list[str]:
    """What was found, in a sentence each."""
    return words_told(list(found.values()))
