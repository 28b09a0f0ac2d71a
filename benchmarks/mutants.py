"""Mutation testing: how many small mistakes in a room's code do its own tests notice?

    python benchmarks/mutants.py                             400 mutants of evidence
    python benchmarks/mutants.py --sample 40 --seed 1        fewer, others
    python benchmarks/mutants.py --show                      and the change that each survivor makes

mutmut changes one operator, number, word or argument at a time. All mutants of the room are listed,
a sample is drawn with a seed, and each is run against those tests and doctests of the room that
reach the changed function; the first that fails has noticed it. A mutant that runs out of time is
noticed too. Everything happens in a copy under --work; the source is not touched. JSON on standard
output, progress on standard error. Needs mutmut.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTICED = ("killed", "timeout", "segfault", "caught by type check")
"""What mutmut says of a mutant that made a difference."""
SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/privet/{room}/*"]
pytest_add_cli_args_test_selection = ["tests/{room}", "src/privet/{room}"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "named_tests", "--hypothesis-seed=0"]
also_copy = ["named_tests.py"]
use_git_change_detection = false
"""
PLUGIN = """
def pytest_itemcollected(item):
    item._nodeid = item.nodeid
"""
"""mutmut 3.8 asks tests for a private name that pytest 9.1 no longer has."""


def prepare(work: Path, room: str) -> None:
    """A copy of source and tests, with mutmut's settings."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    unwanted = shutil.ignore_patterns("__pycache__", "node_modules")
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, work / folder, ignore=unwanted)
    settings = (ROOT / "pyproject.toml").read_text() + SETTINGS.format(room=room)
    (work / "pyproject.toml").write_text(settings)
    (work / "named_tests.py").write_text(PLUGIN)


def every_mutant(work: Path, room: str) -> list[str]:
    """Names of all mutants of the room, in the order of its files."""
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.format_utils import get_mutant_name

    os.chdir(work)  # mutmut reads its settings from here
    names: list[str] = []
    for path in sorted(Path("src/privet", room).rglob("*.py")):
        found = mutate_file_contents(str(path), path.read_text()).mutant_names
        names += [get_mutant_name(path, name) for name in found]
    return names


def run(work: Path, names: list[str], workers: int) -> dict[str, str]:
    """Each mutant's fate, in mutmut's words."""
    from mutmut.stats import status_by_exit_code

    command = [str(Path(sys.executable).with_name("mutmut")), "run", "--max-children", str(workers)]
    limits = {"OMP_NUM_THREADS": "1", "PYTHONPATH": "", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [*command, *names], cwd=work, env={**os.environ, **limits}, stdout=sys.stderr, check=False
    )
    if done.returncode:
        sys.exit(f"mutmut ended with exit code {done.returncode}.")
    fates: dict[str, str] = {}
    for path in (work / "mutants").rglob("*.meta"):
        codes: dict[str, int | None] = json.loads(path.read_text())["exit_code_by_key"]
        fates |= {name: status_by_exit_code[code] for name, code in codes.items()}
    return {name: fates[name] for name in names}


def change(work: Path, name: str) -> str:
    """What a mutant changes, as lines of a diff."""
    mutmut = str(Path(sys.executable).with_name("mutmut"))
    shown = subprocess.run([mutmut, "show", name], cwd=work, capture_output=True, text=True).stdout
    return "\n".join(line for line in shown.splitlines() if line[:1] in "+-@")


def summary(names: list[str], everything: int, fates: dict[str, str], seed: int) -> dict[str, Any]:
    noticed = sum(fate in NOTICED for fate in fates.values())
    files = Counter(name.split(".x")[0] for name, fate in fates.items() if fate not in NOTICED)
    return {
        "mutants": everything,
        "sample": len(names),
        "seed": seed,
        "noticed": noticed,
        "score": round(noticed / max(len(names), 1), 4),
        "fates": dict(Counter(fates.values())),
        "survivors_by_file": dict(files.most_common()),
        "survivors": [name for name, fate in fates.items() if fate not in NOTICED],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--room", default="evidence")
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="mutants at the same time")
    parser.add_argument("--work", type=Path, default=ROOT / "out" / "mutants")
    parser.add_argument("--show", action="store_true", help="show what each survivor changes")
    asked = parser.parse_args()
    work = asked.work.resolve()
    prepare(work, asked.room)
    everything = every_mutant(work, asked.room)
    size = min(asked.sample, len(everything))
    names = sorted(random.Random(asked.seed).sample(everything, size))
    fates = run(work, names, asked.workers)
    found = summary(names, len(everything), fates, asked.seed)
    if asked.show:
        for name in found["survivors"]:
            sys.stderr.write(f"\n{name}: {fates[name]}\n{change(work, name)}\n")
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
