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
from privet.core.errors import refuse_if
from privet.core.files import replacing, results_folder, write_text
from privet.data.schema import learn_schema
from privet.data.sources import load
from privet.data.word_vectors import Vocabulary, read_texts
from privet.evidence.figures import Rebuilt
from privet.release.foreign import from_vectors
from privet.release.release import Release
from privet.reporting.markdown import summary
from privet.reporting.page import report


def embed_to(out: Path, texts: Path, source: Path | Embedding, column: str | None = None) -> Path:
    """Write the columns of a parquet file of texts with a column `vector` of their embeddings.

    Parameters:
        out, texts: Parquet files.
        source: A parquet file of words with their vectors, whose means are the embeddings; or a
            function from a list of texts to an array of embeddings.
        column: The column of texts, where there are several of strings.
    """
    table, _, lines = read_texts(texts, column)
    if isinstance(source, Path):
        vectors = Vocabulary.read(source).mean_vectors(lines)
    else:
        vectors = np.asarray(source(lines), dtype=np.float32)
    refuse_if(
        vectors.ndim != 2 or len(vectors) != len(lines),
        f"{texts.name} has {len(lines)} texts, and their embeddings have the shape "
        f"{vectors.shape}: one row a text.",
    )
    cells = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    others = table.drop_columns(["vector"]) if "vector" in table.schema.names else table
    with results_folder(out.parent), replacing(out) as temporary:
        pq.write_table(others.append_column("vector", cells), temporary, compression="zstd")
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
    """Which words of a text can be read from its embedding: raw, and as `release` lets it through.

    Parameters:
        vectors: Parquet file of embeddings and the texts they are of.
        release: A release of such embeddings, or its folder.
        column: The column of texts, where there are several of strings.
        most, skip: How many of the most frequent words are asked for, after so many that are left
            out.
        epochs, seed, device: Of the attacker's network.
    """
    data = load(vectors)
    refuse_if(
        data.modality != "table",
        f"{vectors.name} has no column of vectors beside its texts: make one with  privet embed.",
    )
    lines = read_texts(vectors, column)[2]
    texts = replace(data, modality="text", records=np.array(lines, dtype=object))
    releases = {"raw": Release.identity(learn_schema(data, without=list(data.attributes)))}
    if release is not None:
        releases["released"] = Release.load(release) if isinstance(release, Path) else release
    return {
        name: inversion(
            one(one.schema.inputs(data), seed=seed).reshape(len(data), -1),
            texts,
            most=most,
            skip=skip,
            epochs=epochs,
            seed=seed,
            device=device,
            title=f"words from {name} vectors",
        )
        for name, one in releases.items()
    }


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
    """Write what `invert` finds as inversion.json, without the texts.

    Where `private` names attributes, they are attacked as well with the adversaries of `battery`,
    beside tasks that read `utility`, and an audit with all of it is written too: audit.json,
    report.html and summary.md, which show texts of *test* people. The other parameters are those of
    `invert`.
    """
    with results_folder(folder):
        rebuilt = invert(
            vectors, release, column, most=most, skip=skip, epochs=epochs, seed=seed, device=device
        )
        figures = {
            name: {key: asdict(figure) for key, figure in one.figures.items()}
            for name, one in rebuilt.items()
        }
        write_text(folder / "inversion.json", json.dumps(figures, indent=1) + "\n")
        if private:
            if release is None:
                attacked, data = from_vectors(vectors, private, utility)
            else:
                attacked, data = Release.load(release), load(vectors)
            whole = audit(
                attacked,
                data,
                utility,
                battery,
                private=private,
                seed=seed,
                device=device,
                raw=release is not None,
                rebuild=False,
            )
            whole = replace(whole, rebuilt=(*reversed(rebuilt.values()), *whole.rebuilt))
            whole.save(folder / "audit.json")
            report(whole, folder / "report.html")
            write_text(folder / "summary.md", summary(whole))
    return rebuilt
