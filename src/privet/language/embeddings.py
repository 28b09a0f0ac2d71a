"""Sentence embeddings from files to files: make them or take those that are there, and ask which
words were in a text, before and after a release."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from privet.adversaries.chosen_words import chosen_words
from privet.adversaries.inversion import Embedding, TextPart, invert_parts
from privet.adversaries.multiset import invert_as_sets
from privet.adversaries.white_box import (
    DifferentiableEmbedding,
    MeanOfWords,
    invert_by_optimisation,
)
from privet.auditing.audit import audit
from privet.core.errors import PrivetError, first_line, refuse_if
from privet.core.files import replacing, results_folder, write_text
from privet.core.progress import bar
from privet.data.dataset import Array, Dataset
from privet.data.given_vectors import given_vectors, holds_vectors, with_vectors
from privet.data.schema import learn_schema
from privet.data.sources import load
from privet.data.spaces import space_of, with_space
from privet.data.stream import count, tables_of
from privet.data.word_vectors import Vocabulary, read_texts, text_column
from privet.evidence.figures import Rebuilt
from privet.language.embedders import Embedder, word_means
from privet.nets.device import pick
from privet.release.foreign import from_vectors
from privet.release.release import Release
from privet.reporting.markdown import summary
from privet.reporting.page import report

# Rows of a table of texts that are in memory at a time.
ROWS = 2048


def embed_to(
    out: Path,
    source: Path,
    by: Path | Embedding | Embedder | None = None,
    column: str | None = None,
    *,
    space: str | None = None,
    labels: Path | None = None,
    batch: int = 64,
    progress: bool = True,
) -> Path:
    """Write a parquet file with the columns of `source` and a column `vector`, with the name of the
    vectors' space in its metadata. Some rows are in memory at a time.

    Parameters:
        out: Parquet file to write.
        source: A table of texts; or, without `by`, vectors that are already there: .npy, .npz,
            parquet, or a vector store's export as JSON lines.
        by: A parquet file of words with their vectors, whose means are the embeddings; or a
            function from a list of texts to an array; or an `Embedder`.
        column: The column of texts, where there are several of strings.
        space: What the space of the vectors is called; the embedder's own name where it is left
            out.
        labels: For .npy and .npz, a table with one row for each vector.
        batch: Texts that are embedded at once.
        progress: Whether to show a bar.
    """
    if by is None:
        refuse_if(
            not holds_vectors(source),
            f"{source.name} holds no vectors: say what makes them of its texts, with --vectors, "
            "--model or --function.",
        )
        parts, said = given_vectors(source, labels), space_of(source)
    else:
        maker = word_means(by) if isinstance(by, Path) else by
        maker = maker if isinstance(maker, Embedder) else Embedder(maker, "")
        parts, said = _embedded(source, maker.embed, column, batch), maker.space
    with (
        results_folder(out.parent),
        replacing(out) as temporary,
        bar("embedding", max(count(source), 1), progress) as tick,
    ):
        writer: Any = None
        done = 0
        try:
            for table in parts:
                if writer is None:
                    schema = with_space(table.schema, said if space is None else space)
                    writer = pq.ParquetWriter(temporary, schema, compression="zstd")
                writer.write_table(table.cast(writer.schema))
                done += len(table)
                tick(done)
        except pa.ArrowException as error:
            raise PrivetError(
                f"{source.name} cannot be written with its vectors ({first_line(error)}): save it "
                "as parquet first."
            ) from None
        finally:
            if writer is not None:
                writer.close()
        refuse_if(not done, f"{source.name} has no rows.")
    return out


def _embedded(source: Path, embed: Embedding, column: str | None, batch: int) -> Iterator[pa.Table]:
    """The table with the embeddings of its texts, some rows at a time."""
    size = 0
    for table in tables_of(source, ROWS):
        column = text_column(table, column, source.name)
        lines = [text or "" for text in table.column(column).to_pylist()]
        made = [
            np.asarray(embed(lines[at : at + batch]), dtype=np.float32)
            for at in range(0, len(lines), batch)
        ]
        shapes = {one.shape[1:] for one in made}
        rows = sum(len(one) for one in made)
        size = size or (next(iter(shapes)) or (0,))[0]
        refuse_if(
            rows != len(lines) or shapes != {(size,)},
            f"{source.name} has {len(lines)} texts, and their embeddings have the shape "
            f"({rows}, {', '.join(str(shape) for shape in sorted(shapes))}): one row of numbers a "
            "text.",
        )
        yield with_vectors(table, np.concatenate(made))


def invert(
    vectors: Path,
    release: Release | Path | None = None,
    column: str | None = None,
    *,
    by: Path | DifferentiableEmbedding | None = None,
    words: Sequence[str] = (),
    most: int = 300,
    skip: int = 0,
    epochs: int = 30,
    seed: int = 0,
    device: str = "auto",
) -> dict[str, Rebuilt]:
    """Which words of a text can be read from its embedding: raw, and as `release` lets it through.

    Gives per kind of vectors ("raw", "released") what is read by a probability for each word; and,
    as "raw, as a set", "raw, white box" and "raw, chosen words", what other attacks read.

    Parameters:
        vectors: Parquet file of embeddings and the texts they are of.
        release: A release of such embeddings, or its folder.
        column: The column of texts, where there are several of strings.
        by: What made the embeddings, where an attacker can differentiate it: a parquet file of
            words with their vectors, whose means they are, or such an embedding of your own. Then
            words are searched for by optimisation as well.
        words: Words to ask for one by one.
        most, skip: How many of the most frequent words are asked for, after so many that are left
            out.
        epochs, seed, device: Of the attacker's network.
    """
    data = load(vectors)
    refuse_if(
        data.modality != "table",
        f"{vectors.name} has no column of vectors beside its texts: make one with  privet embed.",
    )
    data.require_records("attack", "select", "test")
    lines = np.array(read_texts(vectors, column)[2], dtype=object)
    releases = {"raw": Release.identity(learn_schema(data, without=list(data.attributes)))}
    if release is not None:
        releases["released"] = Release.load(release) if isinstance(release, Path) else release
    maker = MeanOfWords.of(Vocabulary.read(by)) if isinstance(by, Path) else by
    found: dict[str, Rebuilt] = {}
    for kind, one in releases.items():
        parts = _text_parts(one, data, lines, seed, device)
        title, name = f"words from {kind} vectors", data.name
        counted: dict[str, Any] = {"most": most, "skip": skip, "seed": seed}
        found[kind] = invert_parts(parts, name, title, epochs=epochs, **counted)
        found[f"{kind}, as a set"] = invert_as_sets(
            parts, name, f"{title}, as a set", epochs=epochs // 2, **counted
        )
        if maker is not None:
            found[f"{kind}, white box"] = invert_by_optimisation(
                parts, maker, one.to(pick(device)), name, f"{title}, white box", **counted
            )
        if words:
            title = f"chosen words from {kind} vectors"
            found[f"{kind}, chosen words"] = chosen_words(
                parts, words, title, epochs=epochs, seed=seed
            )
    return found


def _text_parts(
    release: Release, data: Dataset, lines: Array, seed: int, device: str
) -> dict[str, TextPart]:
    """What is released of the vectors of each part, with their texts and people."""
    parts = {}
    for part in ("attack", "select", "test"):
        view = data.part(part)
        z = release(release.schema.inputs(view), seed=seed).reshape(len(view), -1)
        x = torch.from_numpy(z).to(pick(device))
        parts[part] = TextPart(x, lines[view.rows], view.people)
    return parts


def invert_to(  # noqa: PLR0913 - a verb has as many parameters as options
    folder: Path,
    vectors: Path,
    release: Path | None = None,
    column: str | None = None,
    *,
    private: Sequence[str] = (),
    utility: Sequence[str] = (),
    battery: str = "quick",
    by: Path | DifferentiableEmbedding | None = None,
    words: Sequence[str] = (),
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
            vectors,
            release,
            column,
            by=by,
            words=words,
            most=most,
            skip=skip,
            epochs=epochs,
            seed=seed,
            device=device,
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
            whole = replace(whole, rebuilt=(*_released_first(rebuilt), *whole.rebuilt))
            whole.save(folder / "audit.json")
            report(whole, folder / "report.html")
            write_text(folder / "summary.md", summary(whole))
    return rebuilt


def _released_first(rebuilt: dict[str, Rebuilt]) -> list[Rebuilt]:
    return [rebuilt[kind] for kind in sorted(rebuilt, key=lambda kind: kind.startswith("raw"))]
