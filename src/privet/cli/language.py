"""The verbs of language models: `privet lm train` and `privet lm audit`. One function per verb, no
logic."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from privet.core.errors import PrivetError

lm_app = typer.Typer(
    no_args_is_help=True,
    help="Language models that do not remember: train them, and see what they remember.",
)
out = Console(soft_wrap=True, highlight=False)

Data = Annotated[
    str, typer.Option("--data", help="A parquet or CSV file of texts and their authors")
]
Author = Annotated[
    str,
    typer.Option(
        "--author",
        help="The column that says who wrote a text, where it is not the people of the data",
    ),
]
Model = Annotated[str, typer.Option("--model", help="lstm or gpt")]
Tokens = Annotated[str, typer.Option("--tokens", help="word or subword")]
Wishes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Another setting, as width=256; repeatable"),
]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", help="TOML file that says what the columns are")
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", help="On one machine's CPU the same seed gives the same result, but for dp"
    ),
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda or auto")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the results")]
Epochs = Annotated[int | None, typer.Option("--epochs", help="How often each text is read")]


@lm_app.command(
    epilog="Example:  privet lm train --data blogs.parquet --regularizer adversarial --weight 1 --out model"
)
def train(
    data: Data,
    folder: Out,
    regularizer: Annotated[str, typer.Option(help="none, adversarial, triplet or dp")] = "none",
    weight: Annotated[
        float | None, typer.Option(help="Of the privacy term, for adversarial and triplet")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="To spend at most, for dp")] = None,
    author: Author = "",
    authors: Annotated[
        int | None, typer.Option(help="So many authors of the fit part; all of them if left out")
    ] = None,
    canaries: Annotated[
        int,
        typer.Option(help="Planted sentences for each number of repeats; a model for use has none"),
    ] = 0,
    repeats: Annotated[str, typer.Option(help="How often canaries are planted")] = "1,4,16",
    pattern: Annotated[
        list[str] | None, typer.Option(help="A canary, # for a digit and @ for a name; repeatable")
    ] = None,
    model: Model = "lstm",
    tokens: Tokens = "word",
    epochs: Epochs = None,
    settings: Wishes = None,
    schema: SchemaFile = None,
    seed: Seed = 0,
    device: Device = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint in --out, if there is one")
    ] = False,
    checkpoint_rounds: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Train a language model on texts with authors; write model.safetensors and card.json."""
    from privet.language.models.canaries import PATTERNS
    from privet.language.models.dp_sgd import group_note
    from privet.language.models.train_command import chosen, train_to

    wanted = chosen(
        model,
        tokens,
        seed,
        epochs,
        settings or [],
        regularizer=regularizer,
        weight=weight,
        epsilon=epsilon,
    )
    made = train_to(
        folder,
        data,
        wanted,
        author=author,
        authors=authors,
        canaries=canaries,
        repeats=_numbers(repeats),
        patterns=pattern or PATTERNS,
        schema=schema,
        device=device,
        resume=resume,
        checkpoint_rounds=checkpoint_rounds,
        command=shlex.join(["privet", *sys.argv[1:]]),
    )
    for note in made.card["notes"]:
        out.print(note, markup=False)
    if "held_out_perplexity" in made.card:
        out.print(
            f"Perplexity of held-out texts: {made.card['held_out_perplexity']:.1f}", markup=False
        )
    if "dp" in made.card:
        spent = made.card["dp"]
        out.print(
            f"Spent: epsilon {spent['epsilon']:.2f} at delta {spent['delta']:.1g}, per row of tokens, in {spent['steps']} steps",
            markup=False,
        )
        out.print(
            group_note(spent["epsilon"], spent["delta"], spent["most_rows_of_an_author"]),
            markup=False,
        )
    out.print(f"The model is in {folder}.", markup=False)


@lm_app.command(
    epilog="Example:  privet lm audit --data blogs.parquet --regularizer adversarial:1 --regularizer triplet:1 --authors 80 --out a"
)
def audit(
    data: Data,
    folder: Out,
    regularizer: Annotated[
        list[str] | None,
        typer.Option(
            help="What to compare with the plain model, and its strength: adversarial:1, triplet:0.5, dp:8; repeatable"
        ),
    ] = None,
    author: Author = "",
    authors: Annotated[
        int | None, typer.Option(help="So many authors on each side; all of them with 0")
    ] = 80,
    canaries: Annotated[int, typer.Option(help="Planted sentences for each number of repeats")] = 8,
    repeats: Annotated[
        str, typer.Option(help="How often canaries are planted; 0 plants nothing, and shows chance")
    ] = "0,1,4,16",
    pattern: Annotated[
        list[str] | None, typer.Option(help="A canary, # for a digit and @ for a name; repeatable")
    ] = None,
    model: Model = "lstm",
    tokens: Tokens = "word",
    epochs: Epochs = None,
    settings: Wishes = None,
    schema: SchemaFile = None,
    workers: Annotated[
        int, typer.Option(help="So many models at a time, each in a process of its own")
    ] = 1,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Plant canaries, train the models, attack them; write language.json and report.html. The same
    command goes on where it stopped."""
    from privet.language.model_audit.audit import audit_to
    from privet.language.model_audit.page import said
    from privet.language.models.canaries import PATTERNS
    from privet.language.models.train_command import chosen

    found = audit_to(
        folder,
        data,
        regularizer or [],
        chosen(model, tokens, seed, epochs, settings or []),
        author=author,
        authors=authors or None,
        canaries=canaries,
        repeats=_numbers(repeats),
        patterns=pattern or PATTERNS,
        schema=schema,
        device=device,
        workers=workers,
    )
    for one in found.models:
        named = said(one.identified.accuracy, "percent") if one.identified else "-"
        line = f"{one.name}: perplexity {said(one.perplexity)}, exposure {said(one.exposure)} bits, author named {named} %"
        spent = "" if one.epsilon is None else f", epsilon spent {one.epsilon:.2f}"
        out.print(
            f"{line}, {one.speed:,.0f} tokens/s, {100 * one.time_ratio:.0f} % of plain{spent}",
            markup=False,
        )
    out.print(found.verdict, markup=False)
    out.print(f"The report:  {folder / 'report.html'}", markup=False)


def _numbers(words: str) -> list[int]:
    try:
        return [int(word) for word in words.split(",") if word.strip()]
    except ValueError:
        raise PrivetError(
            f"--repeats takes whole numbers with commas, such as 1,4,16, not '{words}'."
        ) from None
