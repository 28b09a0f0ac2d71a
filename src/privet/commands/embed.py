"""`privet embed`: vectors of texts, the vectors a user has, and vectors back into a store."""

from __future__ import annotations

from pathlib import Path

from privet.core.errors import refuse
from privet.data.given_vectors import NUMPY
from privet.data.sources import FILES
from privet.data.table_files import kind_of
from privet.data.vector_stores import write_export
from privet.language.embedders import Embedder, hugging_face, python_function, word_means
from privet.language.embeddings import embed_to


def embed(  # noqa: PLR0913 - a verb has as many parameters as options
    source: str | Path,
    out: str | Path,
    *,
    vectors: str | Path | None = None,
    model: str = "",
    function: str = "",
    space: str | None = None,
    labels: str | Path | None = None,
    store: str = "",
    column: str | None = None,
    batch: int = 64,
    force: bool = False,
    device: str = "auto",
    progress: bool = True,
) -> Path:
    """Write a parquet file of vectors with a name for their space, or, with `store`, the export of
    a vector store.

    source: a table of texts; or vectors that are already there: .npy, .npz, parquet, or a vector
        store's export as JSON lines.
    out: the parquet file to write; with `store`, JSON lines.
    vectors: a parquet file of words with their vectors: embeddings are the means of these.
    model: a Hugging Face or sentence-transformers model, by its folder or its name on the hub.
    function: `package.module:function`, from a list of texts to an array.
    space: what the space of the vectors is called; the model's name where it is left out.
    labels: for .npy and .npz, a table with one row for each vector.
    store: chroma, pinecone, qdrant or weaviate: write `source`, a parquet file of vectors, as an
        export that this store takes.
    column: the column of texts, where there are several of strings.
    batch: texts that are embedded at once.
    force: replace a file that is there.
    device: cpu, cuda or auto, for a model.
    progress: whether to show a bar.
    """
    source, out = Path(source), Path(out)
    makers = [one for one in (vectors, model, function) if one]
    wanted = (".jsonl",) if store else (".parquet", ".pq")
    refuse(
        (not source.is_file(), f"There is no file {source}."),
        (out.exists() and not force, f"{out} is there already: add --force to replace it."),
        (out.suffix not in wanted, f"--out must end in {wanted[0]}."),
        (
            kind_of(source) not in (*FILES, *NUMPY),
            f"{source} is of a kind that is not read: give {', '.join((*FILES, *NUMPY))}.",
        ),
        (len(makers) > 1, "Give one of --vectors, --model and --function."),
        (bool(store and makers), "--store writes vectors that are there: embed the texts first."),
    )
    if store:
        return write_export(source, out, store)
    by: Embedder | None = None
    if vectors:
        by = word_means(Path(vectors))
    elif model:
        by = hugging_face(model, device)
    elif function:
        by = python_function(function)
    return embed_to(
        out,
        source,
        by,
        column,
        space=space,
        labels=None if labels is None else Path(labels),
        batch=batch,
        progress=progress,
    )
