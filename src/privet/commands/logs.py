"""`--log`: where a run is written down, and what an audit or a certificate says there."""

from __future__ import annotations

from pathlib import Path

from privet.commands.json_log import JsonLog
from privet.commands.mlflow_log import MlflowLog
from privet.core.errors import PrivetError
from privet.core.run_log import RunLog
from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit, Figure, is_counted

MLFLOW = "mlflow:"


def open_log(spec: str | Path | None, resume: bool = False) -> RunLog | None:
    """The log that `--log` names: FILE.jsonl, or mlflow:URI.

    spec: where to log; None for nowhere.
    resume: go on with the last run of the same settings that has not ended.

    >>> open_log("runs.csv")
    Traceback (most recent call last):
    privet.core.errors.PrivetError: --log is a file FILE.jsonl or mlflow:URI, not 'runs.csv'.
    """
    if spec is None or spec == "":
        return None
    if str(spec).startswith(MLFLOW):
        return MlflowLog(str(spec).removeprefix(MLFLOW), resume)
    if Path(spec).suffix not in (".jsonl", ".ndjson"):
        raise PrivetError(f"--log is a file FILE.jsonl or mlflow:URI, not '{spec}'.")
    return JsonLog(Path(spec), resume)


def audit_figures(audit: Audit) -> dict[str, float]:
    """The headline of every attribute, with its interval: `private/sex`, `private/sex/low`, ...;
    what was read of raw records beside it: `raw/sex`."""
    figures: dict[str, float] = {}
    for reading in audit.readings:
        figures |= _interval(f"{reading.role}/{reading.attribute}", reading.headline.score)
        if reading.raw:
            figures |= _interval(f"raw/{reading.attribute}", reading.reference.score)
    return figures


def certificate_figures(certificate: Certification) -> dict[str, float]:
    """The bound of every statement: `certified/sex`, `certified/sex given income`,
    `certified/sex 5 records`; and what the best adversary for just these people reaches."""
    figures: dict[str, float] = {}
    for one in certificate.certificates:
        words = [one.attribute]
        words += [f"given {' and '.join(one.given)}"] if one.given else []
        words += [f"{one.records} records"] if one.records > 1 else []
        words += [f"{one.releases} releases"] if one.releases > 1 else []
        words += ["by record"] if one.weighing == "records" else []
        name = f"certified/{' '.join(words)}"
        if one.bound is not None:
            figures |= {name: one.bound, f"{name}/empirical": one.empirical}
    return figures


def _interval(name: str, figure: Figure) -> dict[str, float]:
    if not is_counted(figure):
        return {}
    return {name: figure.value, f"{name}/low": figure.low, f"{name}/high": figure.high}
