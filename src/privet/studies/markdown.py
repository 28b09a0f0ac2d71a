"""frontier.parquet of one or several comparisons as Markdown, for a page of results: what every
release leaks and keeps, and the paper's figures beside ours. Needs neither the data nor the
releases: what is not in the files is written as missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from privet.core.errors import PrivetError
from privet.evidence.formatting import is_number, number, percent
from privet.studies.results_table import PAPERS_KIND
from privet.studies.study import Published

NONE = "\u2013"
_ENDED = {"done": 0, "failed": 1, "refused": 2, "left": 3}


class Said(NamedTuple):
    """One kind of figure over seeds: means of value and ends, every seed's value, who it was, and
    how it is counted."""

    value: float
    low: float
    high: float
    seeds: tuple[float, ...]
    who: str = ""
    measure: str = "balanced accuracy"
    n: int = 0

    def __str__(self) -> str:
        whole = (
            f"{percent(self.value)} ({percent(self.low, 'down')}{NONE}{percent(self.high, 'up')})"
        )
        several = f"; {', '.join(map(percent, self.seeds))}" if len(self.seeds) > 1 else ""
        return f"{whole}{several}{f', {self.who}' if self.who else ''}"


def read(folders: Sequence[Path]) -> pd.DataFrame:
    """The rows of all comparisons; of a cell that is in several, the one that came furthest."""
    frames = []
    for folder in folders:
        path = folder / "frontier.parquet" if folder.is_dir() else folder
        try:
            frames.append(pd.read_parquet(path))
        except (OSError, ValueError) as error:
            raise PrivetError(
                f"Cannot read {path}: {str(error).splitlines()[0].rstrip('.')}."
            ) from None
    whole = pd.concat(frames, ignore_index=True)
    if "state" not in whole or "adversaries" not in whole:
        raise PrivetError(
            "These are not results of this version of privet compare: run the same command again, what is done stays done."
        )
    whole["cell"] = whole["cell"].fillna(whole["method"])
    ranked = whole.assign(_rank=whole["state"].map(_ENDED)).sort_values("_rank", kind="stable")
    return whole.loc[
        sorted(ranked.drop_duplicates(["question", "cell", "label"]).index)
    ].reset_index(drop=True)


def markdown(
    rows: pd.DataFrame, published: Sequence[Published] = (), titles: Mapping[str, str] | None = None
) -> str:
    """A table per question and battery, fairness where it was counted, and the paper's figures
    beside ours."""
    titles = titles or {}
    lines = []
    for question in rows["question"].drop_duplicates():
        own = rows[rows["question"] == question]
        for battery in own["battery"].dropna().drop_duplicates():
            some = own[(own["battery"] == battery) | own["battery"].isna()]
            lines += _table(some, titles.get(question) or question, battery)
            lines += _fairness(some)
            lines += _beside(some, [one for one in published if one.question == question])
    return "\n".join(lines).rstrip() + "\n"


def _table(rows: pd.DataFrame, title: str, battery: str) -> list[str]:
    private, utility = (_attributes(rows, role) for role in ("private", "utility"))
    done = rows[rows["state"] == "done"]
    counts = [
        f"{name} {number(int(done[f'{role}.{name}.n'].max()))}"
        for role, names in (("private", private), ("utility", utility))
        for name in names
    ]
    lines = [f"### {title}", ""] if title else []
    lines += [
        f"Battery `{battery}`; test records: {', '.join(counts)}."
        if counts
        else f"Battery `{battery}`; nothing is measured yet.",
        "",
    ]
    heads = ["release"]
    for name in private:
        heads += [f"{name}: worst attacker", f"{name}: paper's kind, plain", "in-game", "certified"]
    heads += [f"{name}: best model" for name in utility] + ["seeds"]
    lines += [_line(heads), _line(["---"] * len(heads))]
    for _, seeds in rows.groupby(["method", "label", rows["budget"].fillna(-1.0)], sort=False):
        ended = seeds[seeds["state"] == "done"]
        if ended.empty:
            lines.append(_line([_called(seeds), *[NONE] * (len(heads) - 2), _why(seeds)]))
            continue
        cells = [_called(ended)]
        for name in private:
            cells += [_or(_worst(ended, "private", name)), _or(_network(ended, name))]
            cells += [
                _mean(ended, f"private.{name}.in_game"),
                _highest(ended, f"private.{name}.certified"),
            ]
        cells += [_or(_worst(ended, "utility", name)) for name in utility]
        lines.append(
            _line(
                [
                    *cells,
                    f"{len(ended)} of {len(seeds)}" if len(ended) < len(seeds) else str(len(ended)),
                ]
            )
        )
    return [*lines, ""]


def _fairness(rows: pd.DataFrame) -> list[str]:
    keys = [
        name.removesuffix(".demographic_parity_difference")
        for name in map(str, rows.columns)
        if name.endswith("demographic_parity_difference")
    ]
    found = rows[(rows["state"] == "done")]
    lines = []
    for key in keys:
        if found[f"{key}.demographic_parity_difference"].isna().all():
            continue
        _, task, by = key.split(".", 2)
        lines += [
            _line([f"{task}, by {by}", "demographic parity gap", "equalised odds gap"]),
            _line(["---"] * 3),
        ]
        for _, seeds in found.groupby(
            ["method", "label", found["budget"].fillna(-1.0)], sort=False
        ):
            gaps = [
                _figure(seeds, f"{key}.{kind}_difference")
                for kind in ("demographic_parity", "equalized_odds")
            ]
            lines.append(_line([_called(seeds), *map(_or, gaps)]))
        lines.append("")
    return lines


def _beside(rows: pd.DataFrame, published: Sequence[Published]) -> list[str]:
    if not published:
        return []
    heads = [
        "figure",
        "release: attribute",
        "paper",
        "ours, counted as there",
        "ours, worst attacker or best model, balanced",
        "n",
        "seeds",
    ]
    lines = [_line(heads), _line(["---"] * len(heads))]
    for one in published:
        own = rows[(rows["method"] == "raw") if not one.label else (rows["label"] == one.label)]
        own = own[own["budget"].isna() if one.budget is None else own["budget"] == one.budget]
        done = own[own["state"] == "done"]
        role = (
            "private"
            if f"private.{one.attribute}.score" in rows
            and not rows[f"private.{one.attribute}.score"].isna().all()
            else "utility"
        )
        worst = None if done.empty else _worst(done, role, one.attribute)
        said = f"{one.label or 'raw data'}{f' {one.budget:g}' if one.budget is not None else ''}: {one.attribute}"
        cells = [
            one.source,
            said,
            percent(one.value),
            _or(_counted_alike(done, one)),
            _or(worst),
            number(worst.n) if worst else NONE,
        ]
        lines.append(_line([*cells, str(len(done)) if len(done) or own.empty else _why(own)]))
    return [*lines, ""]


def _counted_alike(rows: pd.DataFrame, one: Published) -> Said | None:
    """Ours by the paper's measure, and read by the paper's kind of network."""
    if one.measure.endswith("difference"):
        kind = one.measure.replace(" ", "_").replace("equalised", "equalized")
        return next(
            (
                _figure(rows, name)
                for name in map(str, rows.columns)
                if name.startswith(f"fairness.{one.attribute}.") and name.endswith(kind)
            ),
            None,
        )
    if one.measure == "share of the bits that is gone":
        return _figure(rows, "information.cloak_reduction")
    return _network(
        rows, one.attribute, one.adversary, "plain" if one.measure == "plain accuracy" else "score"
    )


def _worst(rows: pd.DataFrame, role: str, name: str) -> Said | None:
    head = f"{role}.{name}"
    found = _figure(rows, f"{head}.score", f"{head}.low", f"{head}.high")
    if found is None:
        return None
    who = (
        ", ".join(rows[f"{head}.adversary"].dropna().drop_duplicates()) if role == "private" else ""
    )
    return found._replace(who=who, n=int(rows[f"{head}.n"].max()))


def _network(
    rows: pd.DataFrame, attribute: str, adversary: str = "", kind: str = "plain"
) -> Said | None:
    """What one network read, of the papers' kind unless one is named."""
    found: list[dict[str, Any]] = []
    for text in rows["adversaries"].dropna():
        there = {
            one["adversary"]: one
            for one in json.loads(text).get(attribute, ())
            if "accuracy" in one["measure"]
        }
        found += [
            there[name] for name in ((adversary,) if adversary else PAPERS_KIND) if name in there
        ][:1]
    if not found or len(found) < len(rows):
        return None
    value, low, high = (sum(one[kind][i] for one in found) / len(found) for i in range(3))
    who = ", ".join(dict.fromkeys(one["title"] for one in found))
    return Said(
        value,
        low,
        high,
        tuple(one[kind][0] for one in found),
        who,
        n=max(one["n"] for one in found),
    )


def _figure(
    rows: pd.DataFrame, value: str, low: str | None = None, high: str | None = None
) -> Said | None:
    names = (value, low or f"{value}.low", high or f"{value}.high")
    if not len(rows) or any(name not in rows for name in names) or rows[value].isna().any():
        return None
    mean, bottom, top = (float(rows[name].mean()) for name in names)
    return Said(mean, bottom, top, tuple(float(v) for v in rows[value]))


def _attributes(rows: pd.DataFrame, role: str) -> list[str]:
    heads = [
        name
        for name in map(str, rows.columns)
        if name.startswith(f"{role}.") and name.endswith(".score")
    ]
    return [
        name.removeprefix(f"{role}.").removesuffix(".score")
        for name in heads
        if not rows[name].isna().all()
    ]


def _called(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    return (
        str(first["label"])
        if pd.isna(first["budget"])
        else f"{first['label']}, {first['dial']} {first['budget']:g}"
    )


def _why(rows: pd.DataFrame) -> str:
    """Why there is no figure."""
    first = rows.iloc[0]
    return {"failed": "failed: ", "refused": "left out: "}.get(first["state"], "not run yet") + (
        "" if pd.isna(first["error"]) else first["error"]
    )


def _mean(rows: pd.DataFrame, name: str) -> str:
    return percent(float(rows[name].mean())) if name in rows and rows[name].notna().any() else NONE


def _highest(rows: pd.DataFrame, name: str) -> str:
    """The weakest of the bounds; none where a seed has none."""
    return (
        percent(float(rows[name].max()), "up")
        if name in rows and rows[name].notna().all()
        else NONE
    )


def _or(figure: Said | None) -> str:
    return NONE if figure is None or not is_number(figure.value) else str(figure)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
