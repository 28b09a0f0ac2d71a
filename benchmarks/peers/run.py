"""The leaderboard: every peer and every method of ours on the same people of Adult.

    python benchmarks/peers/run.py --data adult.parquet --work DIR
    python benchmarks/peers/run.py --data adult.parquet --work DIR --only tree-54 hedge-54

For each seed the people of the official training part are dealt anew to *fit*, *attack* and
*select*; *test* is the official one. A method writes released.parquet (files.py). It is judged by
two of Privet's readers (logistic regression, boosted trees), by ART's attribute inference and by anonymeter, where their
environments exist. DIR/rows.jsonl keeps what is done: a second call goes on. `--write` puts the
table into benchmarks/results/peers-adult.json (with `--seeds 0`, of what is done).

Peers have an environment each, DIR/envs/NAME, made by you:

    python -m venv DIR/envs/aif360 && DIR/envs/aif360/bin/pip install aif360==0.6.1 pyarrow
    python -m venv DIR/envs/art && DIR/envs/art/bin/pip install \\
        adversarial-robustness-toolbox==1.20.1 packaging pandas pyarrow
    python -m venv DIR/envs/anonymeter && DIR/envs/anonymeter/bin/pip install anonymeter==1.1.0

fairlearn and concept-erasure come with Privet's own environment (extra `learn`).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from fare import fare
from files import Raw, write
from tables import RESULTS, Study
from tables import write as write_study

HERE = Path(__file__).parent
QUICK = ("epochs=24", "width=0.25", "batch=256", "dims=1")
# Methods of ours: how they are called, which one, and its settings.
OURS: dict[str, tuple[str, Sequence[str]]] = {
    "hedge-54": ("hedge", ("target=0.54", *QUICK)),
    "codebook-54": ("codebook", ("target=0.54", *QUICK)),
    "tree-54": ("tree", ("target=0.54",)),
    "published-tree-54": ("tree", ("target=0.54", "merge=false")),
    "hedge-60": ("hedge", ("target=0.6", *QUICK)),
    "codebook-60": ("codebook", ("target=0.6", *QUICK)),
    "tree-60": ("tree", ("target=0.6",)),
    "published-tree-60": ("tree", ("target=0.6", "merge=false")),
}
# Peers: their environment (empty: this one), script and words.
PEERS: dict[str, tuple[str, Sequence[str]]] = {
    "fairlearn": ("", ("fairlearn_remover.py",)),
    "leace": ("", ("leace_peer.py",)),
    "inlp-like": ("", ("inlp_like.py",)),
    "lfr": ("aif360", ("aif360_lfr.py",)),
    "lfr-long": ("aif360", ("aif360_lfr.py", "40000")),
}
ATTACKERS = {"art": "art_attack.py", "anonymeter": "anonymeter_attack.py"}
PRIVATE, TASK = "sex", "income"
SEEDS = 3
TITLES = {
    "raw": "raw records",
    "hedge": "hedge",
    "codebook": "codebook",
    "tree": "tree",
    "published-tree": "tree without merging, as FARE's",
    "fairlearn": "fairlearn's CorrelationRemover",
    "leace": "LEACE (concept-erasure)",
    "inlp-like": "INLP-like (ours, from the paper)",
    "lfr": "AIF360's LFR, as it comes",
    "lfr-long": "AIF360's LFR, 40,000 evaluations",
}


def dealt(path: str, seed: int) -> Any:
    """Adult with the people of fit, attack and select dealt anew; seed 0 as Privet deals them."""
    import privet

    data = privet.load(path, progress=False)
    if not seed:
        return data
    part, others = data.part_of.copy(), data.part_of < 3
    part[others] = np.random.default_rng(seed).permutation(part[others])
    return replace(data, part_of=part)


def write_raw(data: Any, folder: Path) -> None:
    """The encoded records, for peers."""
    from privet.data.schema import learn_schema

    parts = np.array(["fit", "attack", "select", "test"])
    columns = {name: np.array(data.attribute(name).values)[data.labels[name]]
               for name in (PRIVATE, TASK)}  # fmt: skip
    schema = learn_schema(data, [PRIVATE, TASK])
    folder.mkdir(parents=True, exist_ok=True)
    x = schema.inputs(data)[:]
    write(folder / "raw.parquet", "x", x, {**columns, "split": parts[data.part_of]})


def make_ours(name: str, data: Any, folder: Path, seed: int) -> dict[str, Any]:
    """Learn one of ours, release, certify."""
    import privet

    method, settings = OURS[name]
    how = privet.Run(progress=False, device="cpu")
    started = time.process_time()
    release = (
        privet.METHODS[method].parse(list(settings), seed=seed).fit(data, PRIVATE, TASK, run=how)
    )
    seconds = time.process_time() - started
    raw = Raw(folder)
    raw.release(release(release.schema.inputs(data.take(np.flatnonzero(raw.judged))), seed=seed))
    facts: dict[str, Any] = {
        "certified": certified_bound(release, data),
        "seconds": seconds,
        "size": release.shape[0],
    }
    if method == "tree":
        facts["fare"] = fare_bound(release, data)
        facts["gamma"] = release.card["chosen"]["gamma"]
    return facts


def certified_bound(release: Any, data: Any) -> float | None:
    """The certificate of one record at 99 %, one statement, on the people of *test*."""
    import torch

    from privet.evidence.certificate.coded_people import CodedPeople, certify_people
    from privet.evidence.certificate.mechanisms import GaussianNoise, RandomisedSymbols
    from privet.evidence.certificate.symbols import response
    from privet.methods.certified import encode
    from privet.train.feed import Feed

    test, attribute = data.part("test"), data.attribute(PRIVATE)
    feed = Feed(release.schema.inputs(test), {}, torch.device("cpu"))
    codes, size = encode(release.module.body, feed), release.shape[0]
    mechanism: Any = GaussianNoise(release.noise.scale)
    if release.noise.law == "uniform":
        codes = codes.argmax(1)
        mechanism = RandomisedSymbols(size, response(size, release.noise.scale))
    labels = test.labels[PRIVATE]
    people = CodedPeople(codes, labels, test.people, PRIVATE, attribute.values)
    return certify_people(people, mechanism, delta=0.01).bound


def fare_bound(release: Any, data: Any) -> float:
    """FARE's own bound of the same symbols at 99 %: the people of *test* in three parts."""
    test = data.part("test")
    symbols = release(release.schema.inputs(test), seed=0).argmax(1)
    third = np.random.default_rng(0).integers(0, 3, len(symbols))
    parts = [(symbols[third == i], test.labels[PRIVATE][third == i]) for i in range(3)]
    return fare(parts, release.shape[0], 0.01)


def make_peer(name: str, folder: Path, work: Path) -> dict[str, Any]:
    """Let a peer write its file, in its environment."""
    environment, (script, *words) = PEERS[name]
    python = work / "envs" / environment / "bin" / "python" if environment else sys.executable
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([python, HERE / script, folder, *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": spent}


def judge(folder: Path, work: Path, name: str, attackers: Sequence[str]) -> dict[str, Any]:
    """What our battery and theirs read from released.parquet."""
    import privet
    from privet.adversaries.linear import Logistic
    from privet.adversaries.trees import Boosting
    from privet.auditing.batteries import Battery
    from privet.release.foreign import from_vectors

    boosting = Boosting(settings=((("max_iter", 100),),), columns=128)
    readers = (Logistic(strengths=(1e-3, 1e-1)), boosting)
    battery = Battery(readers, pools=False, curves=False, people=False, name="peers")
    path = folder / "released.parquet"
    release, data = from_vectors(path, [PRIVATE], [TASK])
    audit = privet.audit(
        release, data, [TASK], battery, rebuild=False, progress=False, device="cpu"
    )
    private, task = (audit.reading(attribute).worst for attribute in (PRIVATE, TASK))
    facts: dict[str, Any] = {
        "found": private.score.value,
        "found_low": private.score.low,
        "found_high": private.score.high,
        "by": private.called,
        "income": task.plain.value,
        "income_balanced": task.score.value,
        "n": private.score.n,
    }
    for attacker in attackers:
        script = ATTACKERS[attacker]
        python = work / "envs" / attacker / "bin" / "python"
        if python.exists():
            done = subprocess.run(
                [python, HERE / script, folder], check=False, capture_output=True, text=True
            )
            lines = done.stdout.strip().splitlines()
            facts[attacker] = json.loads(lines[-1])["found"] if lines else None
            if not lines:
                sys.stderr.write(f"{attacker} on {name}: {done.stderr[-300:]}\n")
    return facts


def measure(
    name: str, data: Any, folder: Path, work: Path, seed: int, attackers: Sequence[str]
) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if name == "raw":
        raw = Raw(folder)
        raw.release(raw.x[raw.judged])
    elif name in OURS:
        facts = make_ours(name, data, folder, seed)
    else:
        facts = make_peer(name, folder, work)
    return {"name": name, "seed": seed, **facts, **judge(folder, work, name, attackers)}


def percent(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, Any] | None:
    """The mean over seeds, the lowest and the highest, in percent; None where it was not measured."""
    values = [row[key] for row in rows if row.get(key) is not None]
    if not values:
        return None
    places = [Decimal(f"{100 * v:.1f}") for v in (float(np.mean(values)), min(values), max(values))]
    keys = ("value", "low", "high") if len(values) > 1 else ("value",)
    return dict(zip(keys, places, strict=False))


def study(rows: Sequence[Mapping[str, Any]]) -> Study:
    """The table, the best found first."""
    names = dict.fromkeys(row["name"] for row in rows)
    shown = []
    for name in names:
        mine = [row for row in rows if row["name"] == name]
        kind, _, target = name.rpartition("-") if name[-1].isdigit() else (name, "", "")
        cells = {
            key: percent(mine, key)
            for key in ("found", "art", "anonymeter", "certified", "fare", "income",
                        "income_balanced")
        }  # fmt: skip
        seconds = [row["seconds"] for row in mine if "seconds" in row]
        shown.append({
            "release": TITLES[kind] + (f", target {target} %" if target else ""),
            **cells,
            "seconds": Decimal(f"{np.mean(seconds):.0f}") if seconds else None,
            "seeds": len(mine),
        })  # fmt: skip
    return Study(
        title="Adult, sex hidden, income kept: methods of ours and peers on the same files",
        command=["python benchmarks/peers/run.py --data adult.parquet --work DIR --write"],
        data="UCI Adult, official test; fit 14,472, attack 14,471, select 3,618 dealt by seed",
        n=rows[0]["n"],
        seeds=None,
        confidence=None,
        machine="one core of an AMD EPYC, others at work",
        commit=None,
        published_in=None,
        source=None,
        columns=[
            {"key": "release", "title": "release"},
            {"key": "found", "title": "sex read: our readers", "unit": "%"},
            {"key": "art", "title": "ART", "unit": "%"},
            {"key": "anonymeter", "title": "anonymeter", "unit": "%"},
            {"key": "certified", "title": "certified, 99 %", "unit": "%"},
            {"key": "fare", "title": "FARE's bound, 99 %", "unit": "%"},
            {"key": "income", "title": "income: accuracy", "unit": "%"},
            {"key": "income_balanced", "title": "balanced", "unit": "%"},
            {"key": "seconds", "title": "processor seconds to fit"},
            {"key": "seeds", "title": "seeds"},
        ],
        rows=shown,
        notes=[
            "In brackets the lowest and highest seed. Sex and the bounds: balanced accuracy.",
            "FARE's bound: of the same symbols, with the people of test in three parts.",
        ],
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=["raw", *OURS, *PEERS])
    parser.add_argument("--attackers", nargs="*", default=list(ATTACKERS), choices=list(ATTACKERS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--write", action="store_true", help="write the results file")
    given = parser.parse_args(words)
    store = given.work / "rows.jsonl"
    given.work.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    done = {(row["name"], row["seed"]) for row in rows}
    for seed in range(given.seeds):
        wanted = [name for name in given.only if (name, seed) not in done]
        if not wanted:
            continue
        folder = given.work / f"seed{seed}"
        data = dealt(given.data, seed)
        write_raw(data, folder)
        for name in wanted:
            rows.append(measure(name, data, folder, given.work, seed, given.attackers))
            with store.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            sys.stderr.write(f"{rows[-1]}\n")
    if given.write:
        order = {name: place for place, name in enumerate(["raw", *OURS, *PEERS])}
        rows.sort(key=lambda row: order[row["name"]])
        write_study(RESULTS / "peers-adult.json", study(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
