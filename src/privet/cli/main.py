"""The command line. Each group of verbs has a file beside this one."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated

import typer

from privet.cli import audit, data, learn, study
from privet.cli.bench import mount as mount_bench
from privet.cli.exchange import mount as mount_exchange
from privet.cli.export import mount as mount_export
from privet.cli.language import lm_app
from privet.cli.options import out
from privet.cli.words import mount as mount_words
from privet.core.errors import PrivetError, missing_package
from privet.core.terminal import escaped_lines
from privet.core.version import __version__

# Threads that wait by spinning cost a factor of ten where another program wants the same cores.
# Read when torch is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"privet {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say which version this is", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Learn releases that hide private attributes, attack them, and see in plain numbers what is
    left."""


for group in (learn, audit, study):
    app.registered_commands += group.verbs.registered_commands
app.add_typer(data.verbs, name="data")
mount_exchange(app)
app.add_typer(lm_app, name="lm")
mount_words(app)
mount_bench(app)
mount_export(app)


def _end(number: int, frame: object) -> None:
    sys.exit(128 + number)


def main() -> None:
    """Run a command; a wrong word of the user's gets one sentence and exit code 2."""
    # Whoever is asked to end cleans up, as at Ctrl-C; the exchange's server has its own way.
    signal.signal(signal.SIGTERM, _end)
    try:
        try:
            app()
        except ModuleNotFoundError as error:
            raise missing_package(error) from error
    except PrivetError as error:
        sys.stderr.write(f"privet: {escaped_lines(str(error))}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write(
            "privet: stopped. If it was learning, the same command with --resume goes on from the"
            " last checkpoint.\n"
        )
        sys.exit(130)


if __name__ == "__main__":
    main()
