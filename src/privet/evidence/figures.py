"""What an audit says, as values: every figure carries its interval, its n, its chance level and its direction."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from privet.errors import PrivetError
from privet.files import write_text

VERSION = 1
"""Version of the layout of audit.json."""


@dataclass(frozen=True)
class Figure:
    """One number that can be read without the rest of the page."""

    value: float
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    n: int
    """Records the number was counted on."""
    chance: float
    """What the best guess without any data would reach."""
    unit: str = "share"
    better: Literal["lower", "higher"] = "lower"
    """Which direction the user of the release would like: lower for a private attribute, higher for a task."""
    interval: str = "Clopper-Pearson 95 %"

    @property
    def is_chance(self) -> bool:
        """Whether the interval reaches down to chance: nothing was shown to be readable."""
        return self.low <= self.chance


@dataclass(frozen=True)
class Finding:
    """What one adversary (or task model) read of one attribute, on people nobody learned from."""

    adversary: str
    source: Literal["released", "raw"]
    """Whether it saw the released data or, for comparison, the raw data."""
    select: float
    """Balanced accuracy on *select*, by which the strongest is chosen."""
    accuracy: Figure
    balanced: Figure
    auc: float | None
    """Area under the ROC curve, one against the rest; None where it is not defined."""
    seconds: float


@dataclass(frozen=True)
class Reading:
    """Everything found about one attribute."""

    attribute: str
    role: Literal["private", "utility"]
    values: tuple[str, ...]
    released: tuple[Finding, ...]
    raw: tuple[Finding, ...]
    best: int
    """Index into `released` of the finding that was strongest on *select*: the one to believe."""
    best_raw: int

    @property
    def worst(self) -> Finding:
        """For a private attribute the adversary to fear, for a task the model to use."""
        return self.released[self.best]

    @property
    def reference(self) -> Finding:
        """The same on raw data."""
        return self.raw[self.best_raw]


@dataclass(frozen=True)
class Rebuilt:
    """What a decoder makes of the released records of people it has not seen."""

    measure: str
    """What `value` counts, in words: 'PSNR in dB', 'share of words rebuilt', 'share of variance explained'."""
    value: float
    n: int
    originals: tuple[str, ...] = ()
    """Pictures as PNG in base64, or texts."""
    rebuilt: tuple[str, ...] = ()


@dataclass(frozen=True)
class Audit:
    """What was found, JSON in and JSON out. Reports and gates are views of it."""

    release: dict[str, Any]
    """From the card: method, settings, private, seed, in_game (what the method's own adversary reached), sha256."""
    data: dict[str, Any]
    """name, modality, fingerprint, and parts: {part: {records, people}}."""
    battery: str
    readings: tuple[Reading, ...]
    rebuilt: Rebuilt | None
    limits: tuple[str, ...]
    """What this audit does not show, in plain sentences."""
    seconds: float
    version: int = VERSION

    def reading(self, attribute: str) -> Reading:
        return next(r for r in self.readings if r.attribute == attribute)

    @property
    def private(self) -> tuple[Reading, ...]:
        return tuple(r for r in self.readings if r.role == "private")

    @property
    def utility(self) -> tuple[Reading, ...]:
        return tuple(r for r in self.readings if r.role == "utility")

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    def save(self, path: str | Path) -> None:
        write_text(Path(path), self.to_json() + "\n")

    def report(self, path: str | Path) -> None:
        """Write the report: one HTML file that needs nothing else."""
        from privet.report import render

        write_text(Path(path), render(self))

    @staticmethod
    def from_json(text: str) -> Audit:
        try:
            raw = json.loads(text)
            if raw["version"] != VERSION:
                raise PrivetError(f"This audit has layout version {raw['version']}, and this Privet reads version {VERSION}.")
            readings = tuple(
                Reading(**{**r, "values": tuple(r["values"]), "released": _findings(r["released"]), "raw": _findings(r["raw"])})
                for r in raw["readings"]
            )
            shown: dict[str, Any] | None = raw["rebuilt"]
            rebuilt = shown and Rebuilt(**{**shown, "originals": tuple(shown["originals"]), "rebuilt": tuple(shown["rebuilt"])})
            return Audit(**{**raw, "readings": readings, "rebuilt": rebuilt, "limits": tuple(raw["limits"])})
        except (ValueError, KeyError, TypeError) as error:
            raise PrivetError(f"This is not an audit that Privet wrote: {error}.") from None

    @staticmethod
    def load(path: str | Path) -> Audit:
        try:
            return Audit.from_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise PrivetError(f"Cannot read the audit {path}: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise PrivetError(f"{path} is not an audit that Privet wrote: it is no text.") from None


def _findings(raw: list[dict[str, Any]]) -> tuple[Finding, ...]:
    return tuple(Finding(**{**f, "accuracy": Figure(**f["accuracy"]), "balanced": Figure(**f["balanced"])}) for f in raw)
