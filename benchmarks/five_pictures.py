"""Several pictures of a person: certified and attacked, by releases of the tuple, by one release per
person, and by more noise.

    python benchmarks/five_pictures.py split celeba64.parquet --people 1000 --private Male --out c.parquet
    python benchmarks/five_pictures.py measure --data c.parquet --private Male --utility Smiling \\
        --targets 0.58 0.62 --set epochs=40 --seeds 3 --out benchmarks/results/five-pictures.json

`split` makes test people of so many training people who have enough pictures, so that the bound has
a small slack, and gives every picture the private value that most of its person's have: it is the
person's, and a few labels are mistaken. `measure` learns three releases per seed and target. *One*
aims at one picture; the same code with more noise then aims at all of them. *Tuple* was learned for
all of them, seen together. *Person* is one release of their mean code.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from known_groups import codes_of, percent, study, trees

CONFIDENCE = 0.99
# Noise that attackers and models of the task see of each person they learn from.
DRAWS = 8
DESIGNS: dict[str, tuple[str, ...]] = {
    "one": (),
    "tuple": ("records={records}",),
    "person": ("records={records}", "per=person"),
}
TITLES = {
    "one": "each picture, aimed at one",
    "more noise": "the same code, more noise",
    "tuple": "each picture, aimed at all of them",
    "person": "one release of the mean code",
}


def new_split(frame: Any, people: int, records: int, private: str, seed: int = 0) -> Any:
    """The frame with so many training people in *test*, and the person's own private value."""
    frame = frame.copy()
    train = frame[frame["split"] == "train"]
    able = train.groupby("person").size()
    able = np.sort(able.index[able >= records].to_numpy())
    moved = np.random.default_rng(seed).permutation(able)[:people]
    frame.loc[frame["person"].isin(moved), "split"] = "test"
    share = frame.groupby("person")[private].transform("mean")
    frame[private] = (share > 0.5).astype(frame[private].dtype)
    return frame


def measure(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Learn one release; bound and attack it, and the same code with more noise."""
    import torch

    torch.set_num_threads(1)
    import privet

    started = time.monotonic()
    data = job["data"]
    data = privet.load(data, progress=False) if isinstance(data, str) else data
    words = [word.format(records=job["records"]) for word in DESIGNS[job["design"]]]
    words += [*job["settings"], f"target={job['target']}"]
    method = privet.METHODS["hedge"].parse(words, seed=job["seed"])
    how = privet.Run(progress=False, device=job.get("device", "auto"))
    release = method.fit(data, job["private"], job["utility"], run=how)
    people = Pictures(release, data, job)
    designs = {job["design"]: release.noise.scale}
    if job["design"] == "one":
        designs["more noise"] = people.noise_for_all(method)
    about = {key: job[key] for key in ("target", "seed")}
    return [
        {
            **about,
            "design": design,
            **people.figures(design, sigma),
            "seconds": round(time.monotonic() - started, 1),
        }
        for design, sigma in designs.items()
        if sigma is not None
    ]


class Pictures:
    """Codes of people with several pictures each, and what is read from them under noise."""

    def __init__(self, release: Any, data: Any, job: Mapping[str, Any]) -> None:
        from privet.methods.certified import records_together

        self.records, self.private = job["records"], data.attribute(job["private"])
        self.target = job["target"]
        self.test = data.part("test")
        self.codes = codes_of(release, self.test)[0]
        self.others = data.take(np.flatnonzero(np.isin(data.part_of, [1, 2])))
        self.other_codes = codes_of(release, self.others)[0]
        self.rows = records_together(self.test.people, self.records)
        self.other_rows = records_together(self.others.people, self.records)
        self.task = job["utility"]

    def coded(self, codes: Any, data: Any, rows: Any = None) -> Any:
        """People for a certificate; of those with enough pictures only, where rows are given."""
        from privet.evidence.certificate.coded_people import CodedPeople

        rows = np.arange(len(data)) if rows is None else rows.ravel()
        name, values = self.private.name, self.private.values
        return CodedPeople(codes[rows], data.labels[name][rows], data.people[rows], name, values)

    def noise_for_all(self, method: Any) -> float | None:
        """The noise with which all pictures of a person should keep the target."""
        from dataclasses import replace

        from privet.methods.known_groups import Aim, people_per_value

        first = self.test.take(self.rows[:, 0])
        aim = Aim(
            self.private,
            None,
            0,
            people_per_value(first, self.private),
            self.target,
            CONFIDENCE,
            0.0,
        )
        several = replace(method, records=self.records)
        return several.smallest_noise(
            self.coded(self.other_codes, self.others, self.other_rows), aim
        )

    def figures(self, design: str, sigma: float) -> dict[str, Any]:
        from privet.evidence.certificate.coded_people import certify_people
        from privet.evidence.certificate.mechanisms import GaussianNoise
        from privet.evidence.certificate.several_records import one_per_person, tuples_of_records

        delta, noise, once = 1 - CONFIDENCE, GaussianNoise(sigma), design == "person"
        whole = self.coded(self.codes, self.test, self.rows)
        seen = (one_per_person if once else tuples_of_records)(whole, self.records)
        one = None
        if not once:
            one = certify_people(self.coded(self.codes, self.test), noise, delta=delta).bound
        bound = certify_people(seen, noise, delta=delta)
        return {
            "sigma": sigma,
            "people": list(bound.people),
            "one": one,
            "all": bound.bound,
            "slack": bound.slack,
            **self.read(sigma, once),
        }

    def read(self, sigma: float, once: bool) -> dict[str, float]:
        """What is read from all releases of a person: the private value, and the task."""
        name, random = self.private.name, np.random.default_rng(1)
        tests = self._released(self.codes[self.rows], sigma, once, random)
        taught = np.concatenate(
            [
                self._released(self.other_codes[self.other_rows], sigma, once, random)
                for _ in range(DRAWS)
            ]
        )
        hidden = np.tile(self.others.labels[name][self.other_rows[:, 0]], DRAWS)
        truth = self.test.labels[name][self.rows[:, 0]]
        task = np.tile(self.others.labels[self.task][self.other_rows], (DRAWS, 1))
        shown = self.test.labels[self.task][self.rows]
        return {
            "log_odds": balanced(log_odds(taught, hidden, tests), truth),
            "model": balanced(of_all(taught, hidden, tests), truth),
            "each": float((of_each(taught, task, tests) == shown).mean()),
            "most": float((of_all(taught, most(task), tests, None) == most(shown)).mean()),
        }

    def _released(self, codes: Any, sigma: float, once: bool, random: Any) -> Any:
        """(people, releases, numbers)"""
        codes = codes.mean(1, keepdims=True) if once else codes
        return codes + sigma * random.standard_normal(codes.shape)


def most(labels: Any) -> Any:
    """Whether most records of a person have the second value."""
    return (labels.mean(1) > 0.5).astype(int)


def summary(z: Any) -> Any:
    """What a model of all releases of a person sees: their order tells nothing."""
    several = z.shape[1] > 1
    return np.concatenate(
        [z.mean(1), *([z.std(1), np.sort(z, 1).reshape(len(z), -1)] if several else [])], 1
    )


def log_odds(taught: Any, labels: Any, tests: Any) -> Any:
    """A model of one release, its log-odds summed over those of a person."""
    m = taught.shape[1]
    model = trees(taught.reshape(-1, taught.shape[2]), np.repeat(labels, m), "balanced")

    def total(z: Any) -> Any:
        return model.decision_function(z.reshape(-1, z.shape[2])).reshape(len(z), m).sum(1)

    scores, cut = total(taught), 0.0
    cuts = np.quantile(scores, np.linspace(0.05, 0.95, 37))
    reached = [balanced((scores > at).astype(int), labels) for at in cuts]
    cut = float(cuts[int(np.argmax(reached))])
    return (total(tests) > cut).astype(int)


def of_all(taught: Any, labels: Any, tests: Any, weight: str | None = "balanced") -> Any:
    return trees(summary(taught), labels, weight).predict(summary(tests))


def of_each(taught: Any, labels: Any, tests: Any) -> Any:
    """The task of each record, from its own release or from that of its person."""
    m = labels.shape[1]
    expand = [np.repeat(z, m, 1) if z.shape[1] == 1 else z for z in (taught, tests)]
    taught, tests = (z.reshape(-1, z.shape[2]) for z in expand)
    return trees(taught, labels.ravel(), None).predict(tests).reshape(-1, m)


def balanced(guess: Any, truth: Any) -> float:
    return float(np.mean([(guess[truth == value] == value).mean() for value in np.unique(truth)]))


def rows_of(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row per target and design, the seeds together."""
    rows = []
    for target in sorted({run["target"] for run in runs}):
        for design, title in TITLES.items():
            mine = [r for r in runs if (r["target"], r["design"]) == (target, design)]
            if mine:
                keys = ("one", "all", "log_odds", "model", "each", "most")
                figures = {key: percent([run[key] for run in mine]) for key in keys}
                sigma = round(float(np.mean([run["sigma"] for run in mine])), 2)
                row = {"design": title, "target": round(100 * target, 1), "sigma": sigma}
                rows.append({**row, **figures})
    return rows


def write(asked: argparse.Namespace, runs: Sequence[Mapping[str, Any]]) -> None:
    settings = [f"--set {word}" for word in asked.set]
    settings += [f"--set-person {word}" for word in asked.set_person]
    people = runs[0]["people"]
    m = asked.records
    about = {
        "command": [
            f"python benchmarks/five_pictures.py split celeba64.parquet --people {asked.people} \\",
            f"    --private {asked.private} --out c.parquet",
            f"python benchmarks/five_pictures.py measure --data c.parquet --private {asked.private} \\",
            f"    --utility {asked.utility} --targets {' '.join(map(str, asked.targets))} \\",
            f"    {' '.join(settings[:5])} \\",
            f"    {' '.join([*settings[5:], f'--seeds {asked.seeds}'])} --out FILE",
        ],
        "data": f"{Path(str(asked.data)).stem}, private {asked.private}, task {asked.utility}",
        "n": sum(people),
        "seeds": asked.seeds,
        "confidence": CONFIDENCE,
        "machine": asked.machine,
        "commit": None,
        "published_in": None,
        "source": None,
        "notes": [
            "A value is the mean of the seeds, which follow in brackets.",
            f"{m} pictures: {' and '.join(f'{n:,}' for n in people)} test people of each value who "
            "have so many; each bound by itself.",
            f"{asked.private} is what most pictures of a person say.",
            f"{asked.utility} per person: whether most pictures show it.",
        ],
    }
    columns = [
        {"key": "design", "title": "what leaves"},
        {"key": "target", "title": "target", "unit": "%"},
        {"key": "sigma", "title": "noise"},
        {"key": "one", "title": "certified: one picture", "unit": "%"},
        {"key": "all", "title": f"certified: {m} pictures", "unit": "%"},
        {"key": "log_odds", "title": f"found, {m} pictures: log-odds summed", "unit": "%"},
        {"key": "model", "title": "found: trees on all of them", "unit": "%"},
        {"key": "each", "title": f"{asked.utility} per picture", "unit": "%"},
        {"key": "most", "title": f"{asked.utility} per person", "unit": "%"},
    ]
    study(asked.out, f"{m} pictures of a person: hedge on faces", columns, rows_of(runs), about)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    split = verbs.add_parser("split", help="move training people to test")
    split.add_argument("data", type=Path)
    run = verbs.add_parser("measure", help="learn, certify and attack")
    run.add_argument("--data", required=True)
    run.add_argument("--utility", required=True)
    run.add_argument("--targets", type=float, nargs="+", default=[0.6])
    run.add_argument("--designs", nargs="+", default=list(DESIGNS), choices=list(DESIGNS))
    run.add_argument("--set", action="append", default=[], help="a setting: key=value")
    run.add_argument("--set-person", action="append", default=[], help="of one per person")
    run.add_argument("--seeds", type=int, default=3)
    run.add_argument("--workers", type=int, default=1)
    run.add_argument("--machine", default=None)
    for verb in (split, run):
        verb.add_argument("--private", required=True)
        verb.add_argument("--records", type=int, default=5)
        verb.add_argument("--people", type=int, default=1000)
        verb.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    if asked.verb == "split":
        import pandas as pd

        frame = pd.read_parquet(asked.data)
        new_split(frame, asked.people, asked.records, asked.private).to_parquet(asked.out)
        return
    import privet

    privet.load(asked.data, progress=False)  # pictures are decoded once, for all processes
    jobs = [
        {
            "data": asked.data,
            "private": asked.private,
            "utility": asked.utility,
            "records": asked.records,
            "design": design,
            "target": target,
            "settings": [*asked.set, *(asked.set_person if design == "person" else [])],
            "seed": seed,
        }
        for target in asked.targets
        for seed in range(asked.seeds)
        for design in asked.designs
    ]
    runs: list[dict[str, Any]] = []
    with multiprocessing.get_context("spawn").Pool(asked.workers, maxtasksperchild=1) as pool:
        for found in pool.imap_unordered(measure, jobs, chunksize=1):
            runs += found
            sys.stderr.write(json.dumps(found) + "\n")
    runs.sort(key=lambda one: one["seed"])
    write(asked, runs)


if __name__ == "__main__":
    main()
