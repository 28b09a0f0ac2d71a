"""The whole story on built-in data: draw people, learn a release that hides the beard, attack it, write a report."""

from __future__ import annotations

from pathlib import Path

from privet.auditor import audit
from privet.data import portraits
from privet.files import writable_folder
from privet.game import Run
from privet.methods.tiprdc import TIPRDC
from privet.progress import console

RECORDS = 4500


def run(folder: Path, seed: int = 0, device: str = "auto") -> Path:
    """Returns the path of the report."""
    writable_folder(folder)
    console.print(f"Drawing {RECORDS:,} portraits of people who do not exist ...")
    data = portraits(RECORDS, seed)
    console.print("Learning a release that hides [bold]beard[/bold], without knowing what the data will be used for ...")
    method = TIPRDC(budget=0.9, width=0.125, warmup=1, epochs=3, lr=1e-3, seed=seed)
    release = method.fit(data, ["beard"], run=Run(device=device))
    release.card["command"] = "privet demo"
    release.save(folder / "release")
    console.print("Attacking it with people nobody has learned from ...")
    result = audit(release, data, ["hat"], "quick", seed=seed, device=device)
    result.save(folder / "audit.json")
    report = folder / "report.html"
    result.report(report)
    return report.resolve()
