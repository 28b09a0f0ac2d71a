"""Private words and embeddings on the command line: one function per verb, no logic. What a verb
needs is imported when it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from privet.core.errors import PrivetError
from privet.core.settings import names
from privet.core.terminal import plain_console

out = plain_console()

Vectors = Annotated[
    Path,
    typer.Option("--vectors", help="Parquet file with a column of words and one of their vectors"),
]
Texts = Annotated[Path, typer.Argument(help="A table (parquet, CSV, ...) with a column of texts")]
Text = Annotated[
    str | None,
    typer.Option(
        "--text", help="The column that holds the texts, where there are several of strings"
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", help="Only to repeat a figure; leave it out for texts that leave the house"
    ),
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda or auto")]


def words(
    texts: Texts,
    vectors: Vectors,
    target_file: Annotated[
        Path | None, typer.Option("--out", help="Parquet or CSV file for the private texts")
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="How little noise: 10; several, with commas, for --audit alone"),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="stay=0.3 or distinct=40: choose the epsilon that gives this")
    ] = None,
    text: Text = None,
    keep: Annotated[str, typer.Option(help="Columns to write beside the private texts")] = "",
    stats: Annotated[
        Path | None,
        typer.Option(help="Folder for what happens to each word: words.parquet and words.html"),
    ] = None,
    audit: Annotated[
        Path | None,
        typer.Option(help="Folder for attacks on the private texts: attributes, tasks and words"),
    ] = None,
    private: Annotated[str, typer.Option(help="For --audit: what must not be readable")] = "",
    utility: Annotated[str, typer.Option(help="For --audit: tasks to try")] = "",
    battery: Annotated[
        str, typer.Option(help="For --audit: quick, lean, standard or strong")
    ] = "quick",
    prior: Annotated[
        str, typer.Option(help="For --audit: bigrams, lstm as well, or a folder of privet lm train")
    ] = "bigrams",
    schema: Annotated[
        Path | None, typer.Option(help="For --audit: TOML file that says what the columns are")
    ] = None,
    seed: Seed = None,
    device: Device = "auto",
) -> None:
    """Change the words of texts at random, each to one of like meaning (metric privacy), and see
    what that hides."""
    from privet.language.private_words.files import WordAttack, private_words

    attack = WordAttack(
        private=names(private),
        utility=names(utility),
        battery=battery,
        prior=prior,
        seed=seed or 0,
        device=device,
    )
    lines = private_words(
        texts,
        vectors,
        _numbers(epsilon or ""),
        out=target_file,
        audit_folder=audit,
        attack=attack,
        schema=schema,
        target=target,
        column=text,
        keep=names(keep),
        stats=stats,
        seed=seed,
        device=device,
    )
    for line in lines:
        out.print(line, markup=False)


def embed(
    source: Annotated[
        Path,
        typer.Argument(
            help=(
                "A table with a column of texts; or vectors that you have: .npy, .npz, parquet, a "
                "vector store's export as .jsonl"
            )
        ),
    ],
    target_file: Annotated[
        Path,
        typer.Option(
            "--out", help="Parquet file: the same columns and the vectors; or .jsonl with --store"
        ),
    ],
    vectors: Annotated[
        Path | None,
        typer.Option(
            "--vectors", help="Parquet file of words and their vectors: embeddings are their means"
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="A Hugging Face or sentence-transformers model: its folder, or its name on the hub"
        ),
    ] = "",
    function: Annotated[
        str, typer.Option(help="package.module:function, from a list of texts to an array")
    ] = "",
    space: Annotated[
        str | None, typer.Option(help="What the space of the vectors is called: use-lite-512")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="For .npy and .npz: a table with a row for each vector")
    ] = None,
    store: Annotated[
        str,
        typer.Option(
            help="Write JSON lines for this vector store: chroma, pinecone, qdrant or weaviate"
        ),
    ] = "",
    text: Text = None,
    batch: Annotated[int, typer.Option(min=1, help="Texts that are embedded at once")] = 64,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there")] = False,
    device: Device = "auto",
) -> None:
    """Vectors of texts, by word vectors, a function or a model; or the vectors you have, under a
    name for their space; and back into a vector store."""
    from privet.commands.embed import embed as run

    made = run(
        source,
        target_file,
        vectors=vectors,
        model=model,
        function=function,
        space=space,
        labels=labels,
        store=store,
        column=text,
        batch=batch,
        force=force,
        device=device,
    )
    out.print(f"Vectors:  {made}", markup=False)


def invert(
    vectors: Annotated[
        Path,
        typer.Argument(help="Parquet file with a column of embeddings and the texts they are of"),
    ],
    folder: Annotated[
        Path,
        typer.Option(
            "--out", help="Folder for the figures, and for the report where there is --private"
        ),
    ],
    release: Annotated[
        Path | None, typer.Option(help="Folder of a release that was learned on such vectors")
    ] = None,
    private: Annotated[
        str, typer.Option(help="Attributes to read from the embeddings as well, with a whole audit")
    ] = "",
    utility: Annotated[str, typer.Option(help="Tasks to try")] = "",
    battery: Annotated[str, typer.Option(help="quick, lean, standard or strong")] = "quick",
    text: Text = None,
    words: Annotated[
        str, typer.Option(help="Was this name in it? Words to ask for one by one: alice,bob")
    ] = "",
    by: Annotated[
        Path | None,
        typer.Option(
            "--vectors",
            help="The word vectors that the embeddings are means of: a white-box attack as well",
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, help="How many of the most frequent words to ask for")
    ] = 300,
    skip: Annotated[
        int, typer.Option(min=0, help="How many of the very most frequent to leave out")
    ] = 0,
    seed: Annotated[
        int, typer.Option(help="On one machine's CPU the same seed gives the same result")
    ] = 0,
    device: Device = "auto",
) -> None:
    """Ask embeddings which words were in the text: F1, raw and released; with --private, who wrote
    it as well."""
    from privet.language.embeddings import invert_to
    from privet.reporting.sections import word_sentences
    from privet.reporting.sentences import inversion_sentences

    found = invert_to(
        folder,
        vectors,
        release,
        text,
        private=names(private),
        utility=names(utility),
        battery=battery,
        by=by,
        words=names(words),
        most=most,
        skip=skip,
        seed=seed,
        device=device,
    )
    for line in inversion_sentences(list(found.values())):
        out.print(line, markup=False)
    for one in found.values():
        for line in word_sentences(one):
            out.print(f"{one.decoder}: {line}", markup=False)


def _numbers(text: str) -> list[float]:
    try:
        return [float(number) for number in names(text)]
    except ValueError:
        raise PrivetError(
            f"--epsilon {text} is not a number, or several with commas: 10, or 5,10,20."
        ) from None


def mount(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    examples: dict[Callable[..., None], str] = {
        words: (
            "words mails.csv --vectors glove100.parquet --epsilon 10 --out private.csv "
            "--stats stats"
        ),
        embed: "embed mails.parquet --model all-MiniLM-L6-v2 --out vectors.parquet",
        invert: "invert vectors.parquet --release erased --private gender --out attacked",
    }
    for verb, example in examples.items():
        app.command(epilog=f"Example:  privet {example}")(verb)
