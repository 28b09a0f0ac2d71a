"""The container is built by steps that are run elsewhere too: by the check of the wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"


def test_it_installs_what_the_check_of_the_wheel_installs() -> None:
    wanted = re.search(r"privet-\*\.whl\)\[([\w,]+)\]", DOCKERFILE.read_text())
    assert wanted and f'"{wanted[1]}"' in (ROOT / ".ci" / "check_wheel.py").read_text()


def test_the_commands_it_names_exist() -> None:
    lines = re.findall(r"^#   docker run .*? privet (\w+) (.*)$", DOCKERFILE.read_text(), re.M)
    assert {verb for verb, _ in lines} == {"demo", "serve"}
    for verb, words in lines:
        shown = subprocess.run(
            [sys.executable, "-m", "privet", verb, "--help"],
            capture_output=True,
            text=True,
            timeout=6000,
        ).stdout
        assert all(option in shown for option in re.findall(r"--\w+", words))


def test_it_runs_as_nobody_in_particular() -> None:
    assert re.search(r"^USER \d{4,}$", DOCKERFILE.read_text(), re.M)


def test_hadolint_finds_nothing() -> None:
    beside = Path(sys.executable).with_name("hadolint")
    hadolint = str(beside) if beside.exists() else shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    found = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stdout
