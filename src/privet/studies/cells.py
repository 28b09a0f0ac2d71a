"""A cell: one method with one choice of settings and one seed, learned and attacked. Its folder is
named by its content.

DIR/cells/SHA256/
  cell.json        what it is; the folder's name is the SHA-256 of this, so that the same work is
                   never done twice
  release/         what was learned (and, until then, the checkpoint)
  learned.json     seconds of learning
  audit/           audit.json and report.html
  pictures.json    for pictures: some as they were, as released and as rebuilt
  done.json        written last: seconds of the audit. With it the cell is done
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from privet.core.files import write_text
from privet.core.json_values import read
from privet.core.version import __version__

# The method of the cell that attacks raw records, whose figures all others of the same question
# share.
RAW = "raw"

Stage = Literal["new", "learned", "done"]


@dataclass(frozen=True)
class Source:
    """Where records come from, as the user names them."""

    spec: str
    schema: str | None = None


@dataclass(frozen=True)
class Cell:
    """One method with one choice of settings and one seed, learned on some data and attacked.

    Parameters:
        method, settings, seed: What learns; `settings` are all of the method's, its dial included.
        learned_on, learned_print: The data a release is learned from, and its fingerprint.
        private: What to hide.
        tasks: Tasks that the method is told of; none for methods that must not know any.
        without: Columns that are no input, tasks above all: a release that hands a task's column on
            would look useful.
        audited_on, audited_print: The data of the audit, and its fingerprint.
        hidden, utility: What `private` is called there, and the tasks of the audit.
        battery, audit_seed: Of the audit.
        rebuild: Whether decoders try to rebuild records, where the battery has any.
        brought: Digests of files that the settings name.
        question, label, dial, budget: For people; no part of what the cell is.
    """

    method: str
    settings: dict[str, Any]
    seed: int
    learned_on: Source
    learned_print: str
    private: tuple[str, ...]
    tasks: tuple[str, ...]
    without: tuple[str, ...]
    audited_on: Source
    audited_print: str
    hidden: tuple[str, ...]
    utility: tuple[str, ...]
    battery: str
    audit_seed: int = 0
    rebuild: bool = True
    brought: tuple[str, ...] = ()
    question: str = field(default="", compare=False)
    label: str = field(default="", compare=False)
    dial: str = field(default="", compare=False)
    budget: float | None = field(default=None, compare=False)

    @property
    def is_raw(self) -> bool:
        """Whether raw records are attacked, and nothing is learned."""
        return self.method == RAW

    @property
    def variant(self) -> str:
        """'TIPRDC budget 0.9', 'LEACE'."""
        return self.label if self.budget is None else f"{self.label} {self.dial} {self.budget:g}"

    @property
    def name(self) -> str:
        """'TIPRDC budget 0.9, seed 1'."""
        return self.variant if self.is_raw else f"{self.variant}, seed {self.seed}"

    def content(self) -> dict[str, Any]:
        """What the cell is: other words for the same work, such as another path to the same data,
        are the same cell."""
        words = {"question", "label", "dial", "budget", "learned_on", "audited_on"}
        if self.rebuild:
            words.add("rebuild")
        content = {key: value for key, value in asdict(self).items() if key not in words}
        return {"privet": __version__, **content}

    @cached_property
    def key(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(canonical(self.content()).encode()).hexdigest()

    def folder(self, study: Path) -> Path:
        return study / "cells" / self.key

    def to_json(self) -> dict[str, Any]:
        return cast(dict[str, Any], json.loads(json.dumps(asdict(self))))

    @staticmethod
    def from_json(value: dict[str, Any]) -> Cell:
        return cast(Cell, read(Cell, value, "cell"))


def canonical(value: Any) -> str:
    """One spelling of a JSON value: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def stage(folder: Path) -> Stage:
    """How far a cell has come, by what is in its folder; files appear there whole or not at all."""

    def all_files(*names: str) -> bool:
        return all((folder / name).is_file() for name in names)

    if all_files("done.json", "audit/audit.json"):
        return "done"
    return "learned" if all_files("learned.json", "release/card.json") else "new"


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_seconds(path: Path) -> float | None:
    """Seconds that `learned.json` or `done.json` tells; None where there is no such file."""
    try:
        return float(json.loads(path.read_text(encoding="utf-8"))["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
