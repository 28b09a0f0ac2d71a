"""The whole story on built-in data: draw people, hide the beard in two ways, attack both, write a
report.

TIPRDC learns without knowing what the data will be used for, and what is left of the beard is known
from attacks only. Hedge is told the task and released with noise, so that no attacker at all can
beat a bound.
"""

from __future__ import annotations

from pathlib import Path

from privet.auditing.audit import audit
from privet.core.files import writable_folder
from privet.core.progress import console
from privet.data.portraits.source import portraits
from privet.evidence.figures import Audit
from privet.evidence.formatting import times_in_100
from privet.methods.hedge import Hedge
from privet.methods.method import Method
from privet.methods.tiprdc import TIPRDC
from privet.release.release import Release
from privet.reporting import certificate
from privet.reporting.page import report as write_report
from privet.train.game import Run

PRIVATE, TASK = "beard", "hat"


def demo(folder: Path, seed: int = 0, device: str = "auto", records: int = 4000) -> Path:
    """Tell the whole story on drawn portraits, and return the path of the report.

    folder: where releases, audits and pages go.
    seed: of the drawings and of everything that is learned.
    device: cpu, cuda or auto.
    records: how many portraits to draw.
    """
    writable_folder(folder)
    console.print(f"Drawing {records:,} portraits of people who do not exist ...")
    data = portraits(records, seed)

    def learn(method: Method, utility: list[str]) -> Release:
        release = method.fit(data, [PRIVATE], utility, run=Run(device=device))
        release.card["command"] = "privet demo"
        release.save(folder / method.name)
        return release

    def attack(release: Release, raw_from: Audit | None = None) -> Audit:
        found = audit(
            release,
            data,
            [TASK],
            "quick",
            seed=seed,
            device=device,
            raw_from=raw_from,
            rebuild=raw_from is None,
        )
        found.save(folder / f"{release.card['method']}.json")
        return found

    console.print(
        f"TIPRDC hides [bold]{PRIVATE}[/bold], without knowing what the data will be used for ..."
    )
    tiprdc = learn(TIPRDC(budget=0.9, width=0.125, warmup=1, epochs=2, lr=1e-3, seed=seed), [])
    console.print(
        f"Hedge hides [bold]{PRIVATE}[/bold] behind noise, and is told that {TASK} matters ..."
    )
    hedge = learn(
        Hedge(target=0.64, dims=1, sigma=0.5, epochs=8, width=0.125, batch=64, lr=3e-3, seed=seed),
        [TASK],
    )
    console.print("Attacking both with people nobody has learned from ...")
    first = attack(tiprdc)
    second = attack(hedge, first)
    write_report(first, folder / "tiprdc.html")
    report = folder / "report.html"
    write_report(second, report, [first], ["tiprdc.html"])
    for found in (first, second):
        console.print(told(found), highlight=False)
    return report.resolve()


def told(found: Audit) -> str:
    """What a method did, in plain words: what was read, what is proved, what is left of the
    task."""
    private, task = found.private[0], found.utility[0]
    title = found.release.get("title") or found.release["method"]
    bound = certificate.of(found, private.attribute)
    if bound is None or bound.bound is None:
        proved = "nothing is proved, a stronger one may read more"
    else:
        most = times_in_100(bound.bound, "up")
        proved = f"nobody can be right more than {most} times in 100 (certified, {certificate.sure(bound)} confidence)"
    return (
        f"{title}: the strongest of {len(private.released)} attackers reads {private.attribute} right "
        f"{times_in_100(private.worst.score.value)} times in 100 (raw pictures: {times_in_100(private.reference.score.value)}); {proved}. "
        f"{task.attribute} is read right {times_in_100(task.worst.score.value)} times (raw: {times_in_100(task.reference.score.value)})."
    )
