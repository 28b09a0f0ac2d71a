"""The leaderboard: every peer and every method of ours on the same people.

    python benchmarks/peers/run.py adult --data adult.parquet --work DIR
    python benchmarks/peers/run.py blogs --data blogs_use512.parquet --work DIR --only leace inlp
    python benchmarks/peers/run.py motionsense --data motionsense.parquet --work DIR

A method writes released.parquet (files.py), and readers of ours judge it. With `--attackers art
anonymeter` the releases that are there already are attacked by ART's attribute inference and by
anonymeter. With `--released` a released file that is there already is judged, of a peer that writes
one after every iteration and was ended. DIR/CASE.jsonl keeps what is done: a second call goes on,
and tries again what failed. `--write` puts the table into benchmarks/results/peers-CASE.json, of
what is done; a release that DIR has for fewer seeds than that file keeps its row there.

Peers have an environment each, DIR/envs/NAME, and a checkout where they are no package,
DIR/checkouts/NAME, both made by you; the head of each script says which version:

    python -m venv DIR/envs/aif360 && DIR/envs/aif360/bin/pip install aif360==0.6.1 pyarrow
    python -m venv DIR/envs/art && DIR/envs/art/bin/pip install \\
        adversarial-robustness-toolbox==1.20.1 packaging pandas pyarrow
    python -m venv DIR/envs/anonymeter && DIR/envs/anonymeter/bin/pip install anonymeter==1.1.0
    python -m venv DIR/envs/fnf && DIR/envs/fnf/bin/pip install torch==2.13.0 numpy==1.23.5 \\
        pandas==1.5.3 scikit-learn==1.2.2 seaborn==0.12.2 matplotlib==3.7.5 tqdm pyarrow==14.0.2
    python -m venv DIR/envs/mass && DIR/envs/mass/bin/pip install torch==2.13.0 fvcore pandas \\
        pyarrow && DIR/envs/mass/bin/pip install --no-deps timm==0.5.4
    DIR/envs/fare: see fare_build.py
    DIR/checkouts: fare, fnf, Obliviator, nullspace_projection, cfair, MaSS

fairlearn, concept-erasure and opacus come with Privet's own environment (extra `learn`).
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from board import write_board
from cases import CASES, Case
from contenders import OURS, PEERS, TITLES, make
from judges import ATTACKERS, attacked, judge

HERE = Path(__file__).parent
SEEDS = 3


def released(name: str, case: Case, folder: Path, seed: int) -> dict[str, Any]:
    """The row of a released file that is there already."""
    said = json.loads((folder / "said.json").read_text(encoding="utf-8"))
    return {"name": name, "seed": seed, **commit(), **said, **judge(folder, case.name)}


def measure(
    name: str, case: Case, data: Any, folder: Path, work: Path, seed: int
) -> dict[str, Any]:
    """A row: what was released, and who reads what from it."""
    row = {"name": name, "seed": seed, **commit()}
    try:
        facts = make(name, case, data, folder, work, seed)
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return {**row, "failed": reason[0] if reason else str(error)}
    return {**row, **facts, **judge(folder, case.name)}


def commit() -> dict[str, str]:
    """The commit that the scripts are at, where there is a repository."""
    log = ["git", "log", "-1", "--format=%h"]
    done = subprocess.run(log, cwd=HERE, capture_output=True, text=True, check=False)
    return {"commit": done.stdout.strip()} if done.stdout.strip() else {}


def merged(store: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The rows by name and seed: what was measured later is added, and a row that failed and was
    then run again counts as run."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for line in store.read_text().splitlines() if store.exists() else []:
        row = json.loads(line)
        known = rows.setdefault((row["name"], row["seed"]), {})
        if "found" in row:
            known.pop("failed", None)
        known.update(row)
    return rows


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("case", choices=list(CASES))
    parser.add_argument("--data")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=list(TITLES))
    parser.add_argument("--attackers", nargs="*", default=[], choices=list(ATTACKERS))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(SEEDS)))
    parser.add_argument("--released", action="store_true", help="judge files that are there")
    parser.add_argument("--write", action="store_true", help="write the results file")
    given = parser.parse_args(words)
    case, store = CASES[given.case], given.work / f"{given.case}.jsonl"
    rows = merged(store)
    if given.write:
        wanted = given.only or list(TITLES)
        write_board(case, [row for row in rows.values() if row["name"] in wanted])
        return 0
    ours = [name for name in OURS if name.endswith("-windows") == bool(case.shape)]
    peers = [name for name, peer in PEERS.items() if case.name in peer.cases]
    names = given.only or ["raw", *ours, *peers]
    deal = functools.lru_cache(maxsize=1)(case.deal)
    for seed in given.seeds:
        for name in names:
            folder = given.work / given.case / f"{name}-seed{seed}"
            known = rows.get((name, seed), {})
            if given.attackers and "found" in known:
                missing = [each for each in given.attackers if each not in known]
                row = {"name": name, "seed": seed, **attacked(folder, given.work, missing)}
            elif given.released and "found" not in known and (folder / "said.json").exists():
                row = released(name, case, folder, seed)
            elif "found" not in known and not given.attackers and not given.released:
                data = deal(given.data, seed)
                case.write_raw(data, folder)
                row = measure(name, case, data, folder, given.work, seed)
            else:
                continue
            with store.open("a") as file:
                file.write(json.dumps(row) + "\n")
            sys.stderr.write(f"{row}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
