"""Write a finished comparison as a results file, of which tables.py makes a table.

    privet compare --recipe tiprdc-figure-6 --data FOLDER --out c
    python benchmarks/record.py c --recipe tiprdc-figure-6 --out benchmarks/results/x.json

Reads frontier.parquet of each folder (or the file itself) and nothing else. Several folders are one
study, which may have been done in pieces and on several machines. A figure is the mean over seeds,
with the means of the ends of their intervals, rounded outward. What failed, was refused or was not
reached is a row whose remark says so.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
from tables import Study, write

from privet.core.errors import PrivetError
from privet.evidence.formatting import is_number, percent
from privet.studies.recipes import paper
from privet.studies.results_table import PAPERS_KIND
from privet.studies.study import Published

STATES = {"done": 0, "failed": 1, "refused": 2, "left": 3}
GAPS = {"demographic_parity": "demographic parity gap", "equalized_odds": "equalised odds gap"}
Cell = dict[str, Any] | Decimal | None


def read(folders: Sequence[Path]) -> pd.DataFrame:
    """The rows of all comparisons; of a cell that is in several, the one that came furthest."""
    frames = []
    for folder in folders:
        path = folder / "frontier.parquet" if folder.is_dir() else folder
        try:
            frames.append(pd.read_parquet(path))
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise PrivetError(f"Cannot read {path}: {reason}.") from None
    whole = pd.concat(frames, ignore_index=True)
    if "state" not in whole or "adversaries" not in whole:
        raise PrivetError(
            "These are not results of this version of privet compare: run the same command again, "
            "what is done stays done."
        )
    whole["cell"] = whole["cell"].fillna(whole["method"])
    ranked = whole.assign(rank=whole["state"].map(STATES)).sort_values("rank", kind="stable")
    furthest = ranked.drop_duplicates(["question", "cell", "label"]).index
    return whole.loc[sorted(furthest)].reset_index(drop=True)


def study(
    rows: pd.DataFrame,
    published: Sequence[Published] = (),
    titles: Mapping[str, str] | None = None,
    **facts: Any,
) -> Study:
    """One row per release of every question; columns that no release has a figure for are left
    out."""
    columns: dict[str, dict[str, str]] = {}
    made = []
    for question, own in rows.groupby("question", sort=False):
        named = [one for one in published if one.question == question]
        for _, seeds in own.groupby(["method", "label", own["budget"].fillna(-1.0)], sort=False):
            done = seeds[seeds["state"] == "done"]
            cells: dict[str, Any] = {"release": _named(seeds), "remark": _remark(seeds)}
            if rows["question"].nunique() > 1:
                cells["question"] = (titles or {}).get(str(question)) or str(question)
            for column, cell in _figures(own, done, named):
                columns.setdefault(column["key"], column)
                cells[column["key"]] = cell
            made.append({**cells, "n": _n(done), "seeds": len(done)})
    first = [{"key": key, "title": key} for key in ("question", "release")]
    last = [{"key": "remark", "title": "remark"}]
    shown = [
        column
        for column in (*first, *columns.values(), *last)
        if any(row.get(column["key"]) not in (None, "") for row in made)
    ]
    known = {
        "title": "A comparison of releases, balanced accuracy",
        "command": [],
        **{key: _common(made, key) for key in ("n", "seeds")},
        "confidence": Decimal("0.95"),
        **dict.fromkeys(("data", "machine", "commit", "published_in", "source")),
        "notes": [
            *(f"Battery {battery}." for battery in rows["battery"].dropna().unique()),
            *(
                f"Intervals hold for {n:.0f} figures at once."
                for n in rows.get("figures_at_once", pd.Series(dtype=float)).dropna().unique()
                if n > 1
            ),
        ],
        **facts,
    }
    keys = [column["key"] for column in shown]
    kept = [
        {key: row[key] for key in keys if row.get(key, "") != ""}
        | {key: row[key] for key in ("n", "seeds") if row["seeds"] and row[key] != known[key]}
        for row in made
    ]
    return Study(columns=shown, rows=kept, **known)


def _figures(
    own: pd.DataFrame, done: pd.DataFrame, published: Sequence[Published]
) -> Iterator[tuple[dict[str, str], Cell]]:
    """The columns of a question, each with the figure of one release."""
    for name in _attributes(own, "private"):
        yield _column(name, f"{name}: strongest attacker"), _score(done, "private", name)
        plain = _network(done, name)
        yield _column(f"{name}_plain", f"{name}: network of the papers' kind, plain"), plain
        in_game = _mean(done, f"private.{name}.in_game")
        yield _column(f"{name}_in_game", f"{name}: in-game adversary"), in_game
        bound = _highest(done, f"private.{name}.certified")
        yield _column(f"{name}_certified", f"{name}: certified bound"), bound
    for name in _attributes(own, "utility"):
        yield _column(name, f"{name}: best model"), _score(done, "utility", name)
    for column in map(str, own.columns):
        head, _, kind = column.rpartition(".")
        gap = GAPS.get(kind.removesuffix("_difference"))
        if column.startswith("fairness.") and gap and own[column].notna().any():
            _, task, by = head.split(".", 2)
            title = f"{task} by {by}: {gap}"
            yield _column(f"{task}_{by}_{kind}", title, "points"), _figure(done, column)
    for one in published:
        key = "_".join(filter(None, (one.attribute, one.measure, one.adversary)))
        counted = " by ".join(filter(None, (one.measure, one.adversary)))
        if _matches(done, one):
            paper = Decimal(percent(one.value))
            yield _column(f"{key}_paper", f"{one.attribute}, {counted}: paper"), paper
            yield _column(f"{key}_ours", f"{one.attribute}, {counted}: ours"), _alike(done, one)


def _column(key: str, title: str, unit: str = "%") -> dict[str, str]:
    return {"key": key.lower().replace(" ", "_"), "title": title, "unit": unit}


def _matches(done: pd.DataFrame, one: Published) -> bool:
    """Whether the paper's figure is one of this release."""
    if done.empty:
        return False
    first = done.iloc[0]
    named = first["label"] == one.label if one.label else first["method"] == "raw"
    return bool(named) and (
        pd.isna(first["budget"]) if one.budget is None else first["budget"] == one.budget
    )


def _alike(done: pd.DataFrame, one: Published) -> Cell:
    """Our figure by the paper's measure, of the paper's kind of network."""
    if one.measure.endswith("difference"):
        kind = one.measure.replace(" ", "_").replace("equalised", "equalized")
        heads = (name for name in map(str, done.columns) if name.endswith(f".{kind}"))
        own = (name for name in heads if name.startswith(f"fairness.{one.attribute}."))
        return next((_figure(done, name) for name in own), None)
    if one.measure == "share of the bits that is gone":
        return _figure(done, "information.cloak_reduction")
    kind = "plain" if one.measure == "plain accuracy" else "score"
    return _network(done, one.attribute, one.adversary, kind)


def _score(done: pd.DataFrame, role: str, name: str) -> Cell:
    head = f"{role}.{name}"
    found = _figure(done, f"{head}.score", f"{head}.low", f"{head}.high")
    if isinstance(found, dict) and role == "private":
        found["by"] = ", ".join(done[f"{head}.adversary"].dropna().drop_duplicates())
    return found


def _network(done: pd.DataFrame, attribute: str, adversary: str = "", kind: str = "plain") -> Cell:
    """What one network read, of the papers' kind unless one is named."""
    wanted = (adversary,) if adversary else PAPERS_KIND
    found: list[dict[str, Any]] = []
    for text in done["adversaries"].dropna():
        read = json.loads(text).get(attribute, ())
        known = {one["adversary"]: one for one in read if "accuracy" in one["measure"]}
        found += [known[name] for name in wanted if name in known][:1]
    if not found or len(found) < len(done):
        return None
    return _over([one[kind] for one in found])


def _figure(
    done: pd.DataFrame, value: str, low: str | None = None, high: str | None = None
) -> Cell:
    names = [value, low or f"{value}.low", high or f"{value}.high"]
    if done.empty or any(name not in done for name in names) or done[value].isna().any():
        return None
    return _over(done[names].to_numpy(float).tolist())


def _over(seeds: Sequence[Sequence[float]]) -> Cell:
    """The mean over seeds of value, low and high."""
    value, low, high = (sum(one[i] for one in seeds) / len(seeds) for i in range(3))
    if not is_number(value):
        return None
    found: dict[str, Any] = {"value": Decimal(percent(value))}
    if is_number(low) and is_number(high):
        found |= {"low": Decimal(percent(low, "down")), "high": Decimal(percent(high, "up"))}
    if len(seeds) > 1:
        found["seeds"] = [Decimal(percent(one[0])) for one in seeds]
    return found


def _mean(done: pd.DataFrame, name: str) -> Cell:
    known = name in done and done[name].notna().any()
    return Decimal(percent(float(done[name].mean()))) if known else None


def _highest(done: pd.DataFrame, name: str) -> Cell:
    """The weakest of the bounds; none where a seed has none."""
    known = len(done) and name in done and done[name].notna().all()
    return Decimal(percent(float(done[name].max()), "up")) if known else None


def _attributes(own: pd.DataFrame, role: str) -> list[str]:
    heads = [name for name in map(str, own.columns) if name.startswith(f"{role}.")]
    names = [name for name in heads if name.endswith(".score") and own[name].notna().any()]
    return [name.removeprefix(f"{role}.").removesuffix(".score") for name in names]


def _named(seeds: pd.DataFrame) -> str:
    first = seeds.iloc[0]
    label = str(first["label"])
    return label if pd.isna(first["budget"]) else f"{label}, {first['dial']} {first['budget']:g}"


def _remark(seeds: pd.DataFrame) -> str:
    """Why there is no figure, or how many seeds have one."""
    done = int((seeds["state"] == "done").sum())
    if done:
        return "" if done == len(seeds) else f"{done} of {len(seeds)} seeds"
    first = seeds.iloc[0]
    what = {"failed": "failed: ", "refused": "left out: "}.get(first["state"], "not run yet")
    return what if pd.isna(first["error"]) else f"{what}{first['error']}"


def _n(done: pd.DataFrame) -> int | None:
    counts = [done[name].max() for name in map(str, done.columns) if name.endswith(".n")]
    known = [int(count) for count in counts if not pd.isna(count)]
    return max(known) if known else None


def _common(rows: Sequence[Mapping[str, Any]], key: str) -> Any:
    """The most frequent value among releases that have figures."""
    found = [row[key] for row in rows if row["seeds"]]
    return max(set(found), key=found.count) if found else None


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", help="--out of privet compare")
    parser.add_argument("--out", type=Path, required=True, help="benchmarks/results/TOPIC.json")
    parser.add_argument("--recipe", help="whose published figures stand beside ours")
    for name in ("title", "data", "machine", "commit", "source"):
        parser.add_argument(f"--{name}", help=f"`{name}` of the results file")
    parser.add_argument("--command", nargs="*", help="lines that measure it again")
    given = vars(parser.parse_args(words))
    folders, out, recipe = (given.pop(name) for name in ("folders", "out", "recipe"))
    facts = {key: value for key, value in given.items() if value is not None}
    try:
        published, titles = paper(recipe) if recipe else ((), {})
        write(out, study(read(folders), published, titles, **facts))
    except PrivetError as error:
        sys.stderr.write(f"record: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
