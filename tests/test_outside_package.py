"""A package from outside brings a method, an adversary and a source, and is used like our own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from privet import core
from privet.core.errors import PrivetError
from privet.core.registry import Registry

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "outsider"
version = "1.0"
[project.entry-points."privet.methods"]
half = "outsider:Half"
[project.entry-points."privet.adversaries"]
threshold = "outsider:Threshold"
[project.entry-points."privet.sources"]
coins = "outsider:coins"
[tool.setuptools]
py-modules = ["outsider"]
"""

MODULE = '''
from dataclasses import dataclass

import numpy as np
import pandas as pd

import privet
from privet.adversaries.linear import Logistic

class Half(privet.Noisy):
    """Twice the noise of `noisy`."""
    name, title = "half", "Half"
    def learn(self, problem, run):
        return privet.Noisy(sigma=2 * self.sigma, seed=self.seed).learn(problem, run)

@dataclass(frozen=True, kw_only=True)
class Threshold(Logistic):
    """One strength of logistic regression."""
    strengths: tuple = (1.0,)
    name, title = "threshold", "Threshold"

def coins(count, layout, progress):
    rng = np.random.default_rng(0)
    u = rng.integers(0, 2, int(count))
    return privet.load(pd.DataFrame({"x": u + rng.normal(size=len(u)), "u": u, "y": 1 - u}))
'''


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of somebody who has installed the package."""
    source, site = tmp_path_factory.mktemp("outsider"), tmp_path_factory.mktemp("site")
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "outsider.py").write_text(MODULE)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    target = ["--no-build-isolation", "--target", str(site), str(source)]
    subprocess.run([*install, *target], check=True, timeout=1800)
    ours = Path(core.__file__).parents[2]
    path = os.pathsep.join([str(site), str(ours)])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


# Commands one after the other in one process, which imports PyTorch once.
COMMANDS = """
import json, sys
from privet.cli.main import app
for words in json.loads(sys.argv[1]):
    print("$", *words, flush=True)
    app(words, standalone_mode=False)
"""


def privet(outside: dict[str, str], folder: Path, *commands: list[str]) -> str:
    """What the commands print."""
    ended = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)],
        cwd=folder,
        env=outside,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_an_outside_method_adversary_and_source_are_used_like_our_own(
    outside: dict[str, str], tmp_path: Path
) -> None:
    data = ["--data", "coins:400"]
    compare = ["compare", *data, "--private", "u", "--utility", "y", "--methods", "half"]
    said = privet(
        outside,
        tmp_path,
        ["methods"],
        ["learn", "half", *data, "--private", "u", "--out", "r"],
        ["audit", "r", *data, "--utility", "y", "--out", "a"],
        [*compare, "--budgets", "40", "--battery", "lean", "--out", "c"],
    )
    assert "half" in said.partition("$ learn")[0].partition("$ methods")[2]
    card = json.loads((tmp_path / "r" / "card.json").read_text())
    assert card["method"] == "half"
    found = json.loads((tmp_path / "a" / "audit.json").read_text())
    tried = {one["adversary"] for one in found["readings"][0]["released"]}
    assert "threshold" in tried and found["battery"] == "quick"
    assert "Half" in (tmp_path / "c" / "frontier.html").read_text()


def test_a_name_that_is_taken_is_refused() -> None:
    shapes: Registry[object] = Registry("shape", {"square": "math:pow"}, "none.such.group")
    with pytest.raises(PrivetError, match="There is a shape 'square' already"):
        shapes.register("square", object())
    shapes.register("circle", "no_such_module:Circle")
    with pytest.raises(PrivetError, match="'circle' of another package cannot be loaded"):
        shapes["circle"]
