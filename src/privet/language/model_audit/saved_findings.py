"""What was found of a model, as a file beside it: an audit that is stopped loses only the model it
was busy with."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from privet.core.files import write_text
from privet.evidence.figures import Figure
from privet.language.model_audit.authors import Identified
from privet.language.model_audit.exposure import Exposure
from privet.language.model_audit.findings import Reading
from privet.language.model_audit.subgroups import Group
from privet.language.models.canaries import Canary

VERSION = 2
"""Of what is asked of a model: a reading of another version is made again."""


def keep(path: Path, reading: Reading, identity: str) -> None:
    told = {"version": VERSION, "identity": identity, "reading": plain(asdict(reading))}
    write_text(path, json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def kept(path: Path, identity: str) -> Reading | None:
    """The reading of this very work, or None."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if (told["version"], told["identity"]) != (VERSION, identity):
            return None
        return _reading(told["reading"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def plain(value: Any) -> Any:
    """What JSON can hold: names for keys, and null where there is no number."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _figure(told: dict[str, Any]) -> Figure:
    given: dict[str, Any] = {
        key: math.nan if value is None else value for key, value in told.items()
    }
    return Figure(**given)


def _maybe(told: dict[str, Any] | None) -> Figure | None:
    return None if told is None else _figure(told)


def _reading(told: dict[str, Any]) -> Reading:
    named = told["identified"]
    changed: dict[str, Any] = {
        "perplexity": _figure(told["perplexity"]),
        "groups": [
            Group(one["by"], one["value"], _figure(one["perplexity"])) for one in told["groups"]
        ],
        "exposure": _maybe(told["exposure"]),
        "by_repeats": {int(often): _figure(one) for often, one in told["by_repeats"].items()},
        "canaries": [
            Exposure(**{**one, "canary": Canary(**one["canary"])}) for one in told["canaries"]
        ],
        "tries": tuple(told["tries"]),
        "tab": [_figure(one) for one in told["tab"]],
        "tab_excess": _maybe(told["tab_excess"]),
        "tab_canaries": _maybe(told["tab_canaries"]),
        "identified": None
        if named is None
        else Identified(**{**named, "accuracy": _figure(named["accuracy"])}),
        "membership": {name: _figure(one) for name, one in told["membership"].items()},
        "speed": math.nan if told["speed"] is None else told["speed"],
        "time_ratio": math.nan if told["time_ratio"] is None else told["time_ratio"],
    }
    return Reading(**{**told, **changed})
