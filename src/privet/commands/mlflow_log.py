"""A log in MLflow: settings are params, figures are metrics, results are artefacts.

Only the client is needed (`mlflow-skinny`), with a server or, for `sqlite:///runs.db`, SQLAlchemy.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError, first_line, missing_extra
from privet.core.progress import console
from privet.core.run_log import RunLog

# The tag by which a run that was stopped is found again.
WORK = "privet.work"
# Letters of a param that MLflow keeps for certain.
LONGEST = 500
# Where the release's files, or an audit's, lie among a run's artefacts, by verb.
FOLDERS = {"learn": "release", "audit": "audit", "certify": "certificate"}
# Told to MLflow unless the user has: nothing is reported to its makers, and a server that does not
# answer is not waited for over and over.
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
}


class MlflowLog(RunLog):
    """Events of a run as a run of MLflow, in the experiment that MLFLOW_EXPERIMENT_NAME names, or
    else `privet`.

    Parameters:
        uri: Where MLflow keeps its runs: sqlite:///runs.db, http://host:5000, ...
        resume: Go on with the last run of the same settings that has not ended.
    """

    def __init__(self, uri: str, resume: bool = False) -> None:
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        try:
            from mlflow.entities import Metric, Param
            from mlflow.tracking import MlflowClient
        except ModuleNotFoundError:
            raise missing_extra("mlflow-skinny", "mlflow", "--log mlflow:URI") from None
        self.metric, self.param = Metric, Param
        self.uri, self.resume = uri, resume
        self.run, self.folder, self.lost = "", "", False
        self.known: set[tuple[str, int]] = set()
        try:
            self.client = MlflowClient(tracking_uri=uri)
            self.experiment = self._experiment()
        except Exception as error:
            # Of whatever kind: MLflow's own, its store's, or the network's.
            raise PrivetError(f"MLflow cannot be reached at {uri} ({first_line(error)}).") from None

    def start(self, verb: str, settings: Mapping[str, Any]) -> None:
        self.folder = FOLDERS.get(verb, verb)
        work = sha256(repr((verb, sorted(settings.items()))).encode()).hexdigest()
        if self.resume and self._go_on(work):
            return
        name = Path(str(settings.get("out") or verb)).name
        tags = {WORK: work, "privet.verb": verb, "mlflow.runName": name}
        self.run = self.client.create_run(self.experiment, tags=tags).info.run_id
        params = [
            self.param(_name(key), str(value)[:LONGEST])
            for key, value in settings.items()
            if value not in (None, "", [])
        ]
        self.client.log_batch(self.run, params=params)

    def round(self, phase: str, done: int, total: int, figures: Mapping[str, float]) -> None:
        if self.lost or (phase, done) in self.known:
            return
        self._told(lambda: self._metrics({f"{phase}/{k}": v for k, v in figures.items()}, done))

    def end(self, figures: Mapping[str, float], files: Sequence[Path] = ()) -> None:
        def tell() -> None:
            self._metrics(figures, 0)
            for path in files:
                self.client.log_artifact(self.run, str(path), self.folder)
            self.client.set_terminated(self.run, "FINISHED")

        self._told(tell)

    def fail(self, reason: str) -> None:
        def tell() -> None:
            self.client.set_tag(self.run, "privet.reason", reason)
            self.client.set_terminated(self.run, "FAILED")

        self._told(tell)

    def _experiment(self) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "privet")
        found = self.client.get_experiment_by_name(name)
        return str(found.experiment_id if found else self.client.create_experiment(name))

    def _go_on(self, work: str) -> bool:
        """Take up the last run of the same work, if it has not ended."""
        runs = self.client.search_runs(
            [self.experiment], f"tags.`{WORK}` = '{work}'", order_by=["attributes.start_time DESC"]
        )
        if not runs or runs[0].info.status == "FINISHED":
            return False
        self.run = runs[0].info.run_id
        for key in runs[0].data.metrics:
            phase = key.rpartition("/")[0]
            history = self.client.get_metric_history(self.run, key)
            self.known |= {(phase, metric.step) for metric in history}
        self.client.update_run(self.run, status="RUNNING")
        return True

    def _metrics(self, figures: Mapping[str, float], step: int) -> None:
        now = int(1000 * time.time())
        rows = [self.metric(_name(key), float(v), now, step) for key, v in figures.items()]
        self.client.log_batch(self.run, metrics=rows)

    def _told(self, tell: Callable[[], None]) -> None:
        """Work does not stop because nobody takes notes; it is said once."""
        try:
            tell()
            self.lost = False
        except Exception as error:
            if not self.lost:
                console.print(
                    f"MLflow at {self.uri} takes no more figures ({first_line(error)}); the work "
                    "goes on.",
                    markup=False,
                    highlight=False,
                    soft_wrap=True,
                )
            self.lost = True


def _name(key: str) -> str:
    """A key with the letters that MLflow takes.

    >>> _name("private/sex (m|f)")
    'private/sex _m_f_'
    """
    return re.sub(r"[^\w\-. :/]", "_", key)
