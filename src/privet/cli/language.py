"""The verbs of language models: `privet lm train` and `privet lm audit`. One function per verb, no
logic."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from privet.core.errors import PrivetError
from privet.core.terminal import plain_console

lm_app = typer.Typer(
    no_args_is_help=True,
    help="Language models that do not remember: train them, and see what they remember.",
)
out = plain_console()

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
Patterns = Annotated[
    list[str] | None,
    typer.Option("--pattern", help="A canary, # for a digit and @ for a name; repeatable"),
]
Model = Annotated[str, typer.Option("--model", help="lstm or gpt")]
Tokens = Annotated[str, typer.Option("--tokens", help="word or subword")]
Assignments = Annotated[
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
    epilog=(
        "Example:  privet lm train --data blogs.parquet --regularizer adversarial --weight 1 "
        "--out model"
    )
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
    pattern: Patterns = None,
    model: Model = "lstm",
    tokens: Tokens = "word",
    epochs: Epochs = None,
    settings: Assignments = None,
    schema: SchemaFile = None,
    seed: Seed = 0,
    device: Device = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint in --out, if there is one")
    ] = False,
    checkpoint_rounds: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Train a language model on texts with authors; write model.safetensors and card.json."""
    from privet.language.models.canaries import PATTERNS, CanaryPlan
    from privet.language.models.settings import Settings
    from privet.language.models.train import train_to

    chosen = Settings.from_options(
        settings or [],
        model=model,
        tokens=tokens,
        seed=seed,
        epochs=epochs,
        regularizer=regularizer,
        weight=weight,
        epsilon=epsilon,
    )
    trained = train_to(
        folder,
        data,
        chosen,
        author=author,
        authors=authors,
        canaries=CanaryPlan(canaries, _numbers(repeats), pattern or PATTERNS),
        schema=schema,
        device=device,
        resume=resume,
        checkpoint_rounds=checkpoint_rounds,
        command=shlex.join(["privet", *sys.argv[1:]]),
    )
    for line in (*trained.sentences(), f"The model is in {folder}."):
        out.print(line, markup=False)


@lm_app.command(
    epilog=(
        "Example:  privet lm audit --data blogs.parquet --regularizer adversarial:1 "
        "--regularizer triplet:1 --authors 80 --out a\n\nA model of yours:  privet lm audit "
        "--data blogs.parquet --model FOLDER --secret 'my code is 4271' --out a"
    )
)
def audit(
    data: Data,
    folder: Out,
    regularizer: Annotated[
        list[str] | None,
        typer.Option(
            help="What to compare with the plain model, and its strength: adversarial:1, "
            "triplet:0.5, dp:8; repeatable"
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
    pattern: Patterns = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="lstm or gpt, to be trained here; or a trained model of Hugging Face to attack as "
            "it is: its folder, or its name on a hub",
        ),
    ] = "lstm",
    tokens: Tokens = "word",
    epochs: Epochs = None,
    settings: Assignments = None,
    schema: SchemaFile = None,
    workers: Annotated[
        int, typer.Option(help="So many models at a time, each in a process of its own")
    ] = 1,
    secret: Annotated[
        list[str] | None,
        typer.Option(help="A sentence with digits that a trained --model has seen; repeatable"),
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Plant canaries, train the models, attack them; write language.json and report.html. The same
    command goes on where it stopped. A trained --model of your own is attacked as it is."""
    if model not in ("lstm", "gpt"):
        from privet.language.model_audit.hugging_face import audit_model

        if regularizer:
            raise PrivetError("A trained --model is attacked as it is: leave out --regularizer.")
        trained = audit_model(
            model,
            data,
            folder,
            secrets=secret or [],
            author=author,
            authors=authors or None,
            schema=schema,
            seed=seed,
            device=device,
        )
        for line in (*trained.sentences(), f"The figures:  {folder / 'language-model.json'}"):
            out.print(line, markup=False)
        return
    from privet.language.model_audit.audit import audit_to
    from privet.language.models.canaries import PATTERNS, CanaryPlan
    from privet.language.models.settings import Settings

    found = audit_to(
        folder,
        data,
        regularizer or [],
        Settings.from_options(settings or [], model=model, tokens=tokens, seed=seed, epochs=epochs),
        author=author,
        authors=authors or None,
        canaries=CanaryPlan(canaries, _numbers(repeats), pattern or PATTERNS),
        schema=schema,
        device=device,
        workers=workers,
    )
    for line in (*found.sentences(), f"The report:  {folder / 'report.html'}"):
        out.print(line, markup=False)


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",") if number.strip()]
    except ValueError:
        raise PrivetError(
            f"--repeats takes whole numbers with commas, such as 1,4,16, not '{text}'."
        ) from None
