"""What a newcomer types first, and what a process that is asked to end leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privet.cli.main import app
from privet.core.errors import PrivetError
from privet.core.version import __version__


def privet(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "privet", *words],
        capture_output=True,
        text=True,
        timeout=600,
        **options,  # type: ignore[call-overload]
    )


def test_the_version() -> None:
    assert privet("--version").stdout.strip() == f"privet {__version__}"


def test_a_release_is_not_replaced_without_force(tmp_path: Path) -> None:
    words = ["learn", "leace", "--data", "toy:gaussian", "--private", "u", "--device", "cpu"]
    words += ["--out", str(tmp_path / "r")]
    assert CliRunner().invoke(app, words).exit_code == 0
    before = (tmp_path / "r" / "card.json").read_bytes()
    again = CliRunner().invoke(app, words)
    assert isinstance(again.exception, PrivetError) and "--force" in str(again.exception)
    assert (tmp_path / "r" / "card.json").read_bytes() == before
    assert CliRunner().invoke(app, [*words, "--force"]).exit_code == 0


@pytest.mark.parametrize("columns", [80, 100])
def test_data_show_fits_the_terminal(columns: int) -> None:
    shown = privet(
        "data", "show", "portraits:40", env={**os.environ, "COLUMNS": str(columns)}
    ).stdout
    table = shown[shown.index("Bits that two attributes share") :].splitlines()[1:]
    figures = [line for line in table if line[:2].strip().isdigit()]
    assert len(figures) > 5 and "…" not in "".join(line[19:] for line in figures)
    assert max(map(len, figures)) <= columns


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_asked_to_end_leaves_nothing(number: int, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    words = ["learn", "tiprdc", "--data", "portraits:400", "--private", "beard", "--out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "privet", *words, str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Jobs in the background of a shell ignore Ctrl-C, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        for _ in range(6000):
            if folder.exists() or process.poll() is not None:
                break
            time.sleep(0.1)
        assert process.poll() is None, "it should still be learning"
        process.send_signal(number)
        assert process.wait(timeout=600) == 128 + number
    finally:
        process.kill()
    assert not folder.exists()
