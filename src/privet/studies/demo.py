"""The whole story on built-in data: draw people, hide the beard in two ways, attack both, write a
report.

TIPRDC learns without knowing what the data will be used for, and what is left of the beard is known
from attacks only. Hedge is told the task and released with noise, so that no attacker at all can
beat a bound. A third way, where it is asked for, is veil: it knows no task either and releases
pictures, and its page shows faces before and after.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from privet.auditing.audit import audit
from privet.auditing.batteries import BATTERIES
from privet.core.files import writable_folder
from privet.core.progress import console
from privet.data.portraits.source import portraits
from privet.evidence.figures import Audit
from privet.methods.hedge import Hedge
from privet.methods.method import Method
from privet.methods.tiprdc import TIPRDC
from privet.methods.veil import Veil
from privet.release.drawn_records import GRID, draw_records, write_grid
from privet.release.release import Release
from privet.reporting import sentences
from privet.reporting.certificate import headline
from privet.reporting.page import report
from privet.train.game import Run

PRIVATE, TASK = "beard", "hat"


def demo(
    folder: Path,
    seed: int = 0,
    device: str = "auto",
    records: int = 4000,
    pictures: bool = False,
) -> Path:
    """Run the whole story on drawn portraits, and return the path of the report.

    Parameters:
        folder: Where releases, audits and pages go.
        seed: Of the drawings and of everything that is learned.
        device: cpu, cuda or auto.
        records: How many portraits to draw.
        pictures: Whether a third release is learned, of pictures, which takes minutes more.
    """
    writable_folder(folder)
    console.print(f"Drawing {records:,} portraits of people who do not exist ...")
    data = portraits(records, seed)

    def learn(method: Method, utility: list[str], words: str) -> Release:
        console.print(f"{method.title} hides [bold]{PRIVATE}[/bold]{words} ...")
        release = method.fit(data, [PRIVATE], utility, run=Run(device=device))
        release.card["command"] = "privet demo"
        release.save(folder / method.name)
        return release

    def attack(release: Release, raw_from: Audit | None = None) -> Audit:
        # Sixteen releases of every picture would take longer than all the rest; the page says that
        # nobody averaged.
        averages = () if release.card["method"] == Veil.name else BATTERIES["quick"].averages
        made = audit(
            release,
            data,
            [TASK],
            replace(BATTERIES["quick"], averages=averages),
            seed=seed,
            device=device,
            raw_from=raw_from,
            rebuild=raw_from is None,
        )
        made.save(folder / f"{release.card['method']}.json")
        return made

    tiprdc = TIPRDC(budget=0.9, width=0.125, warmup=1, epochs=2, lr=1e-3, seed=seed)
    hedge = Hedge(
        target=0.64, dims=1, sigma=0.5, epochs=8, width=0.125, batch=64, lr=3e-3, seed=seed
    )
    blind = learn(tiprdc, [], ", without knowing what the data will be used for")
    certified = learn(hedge, [TASK], f" behind noise, and is told that {TASK} matters")
    console.print("Attacking both with people nobody has learned from ...")
    audits, pages = [attack(blind)], ["tiprdc.html"]
    report(audits[0], folder / pages[0])
    if pictures:
        drawing = learn(drawing_veil(seed), [], " by drawing every face anew, and knows no task")
        audits.append(attack(drawing, audits[0]))
        pages.append("veil.html")
        drawn = draw_records(drawing, data)
        assert drawn is not None, "records leave as pictures"
        write_grid(drawn, folder / "veil" / GRID)
        report(audits[1], folder / pages[1], pictures=drawn.files())
    last = attack(certified, audits[0])
    report(last, folder / "report.html", audits, pages)
    for made in (*audits, last):
        console.print(in_words(made), highlight=False, markup=False)
    if pictures:
        console.print(f"Before and after: {(folder / pages[1]).resolve()}", markup=False)
    return (folder / "report.html").resolve()


def drawing_veil(seed: int) -> Veil:
    """A veil of pictures that learns in a minute or two: its code keeps so many places that a thin
    network draws sharp faces, and a network that looks at them must have no idea of the beard."""
    return Veil(
        output="record",
        places=24,
        dims=3456,
        distance="pixels",
        aware=False,
        view=3,
        confuse=0,
        match=0,
        beta=5e-6,
        memory=256,
        width=0.125,
        epochs=6,
        batch=16,
        lr=6e-3,
        seed=seed,
    )


def in_words(audit: Audit) -> str:
    """What a method did: what was read, what is proved, what is left of the task."""
    noun = sentences.records(audit)
    private, task = audit.private[0], audit.utility[0]
    proved = headline(audit, private) or "Nothing is proved: a stronger attacker may read more."
    said = [f"{one.attribute}: {sentences.sentence(one, noun)}" for one in (private, task)]
    return f"{sentences.method(audit)}. {said[0]} {proved} {said[1]}"
