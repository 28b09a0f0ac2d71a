"""int8 releases, believed only after an audit of both: `release/int8.py` makes one, and here it is
written unless it leaks more or serves less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privet.auditing.audit import audit
from privet.core.errors import PrivetError
from privet.core.files import writable_folder
from privet.data.sources import load
from privet.evidence.figures import Audit, Figure
from privet.release.int8 import quantise
from privet.release.release import Release


@dataclass(frozen=True)
class FigureChange:
    """One headline figure of the audit, of the float release and of the int8 one.

    Parameters:
        attribute: What it is about.
        role: private or utility.
        before: The figure in float.
        after: The figure in int8.
    """

    attribute: str
    role: str
    before: Figure
    after: Figure

    @property
    def worse(self) -> bool:
        """Whether the int8 figure lies beyond the float one's interval, on the side that nobody
        wants."""
        if self.role == "private":
            return self.after.value > self.before.high
        return self.after.value < self.before.low

    @property
    def line(self) -> str:
        """The change in one line."""
        one = self.before
        before = f"{one.measure} {one.value:.3f} ({one.low:.3f} to {one.high:.3f}) in float"
        return f"{self.attribute} ({self.role}): {before}, {self.after.value:.3f} in int8"


def export_int8(
    folder: Path,
    release: Path,
    spec: str,
    utility: Sequence[str] = (),
    *,
    battery: str = "quick",
    schema: Path | None = None,
    seed: int = 0,
    device: str = "auto",
    command: str | None = None,
    progress: bool = True,
) -> tuple[Release, list[FigureChange]]:
    """Write the int8 form of a release to `folder`, unless a private or task figure of the audit
    gets worse beyond its interval.

    Parameters:
        folder: Where to write it.
        release: The folder of the float release.
        spec: The data, as `privet.load` takes it.
        utility: Tasks.
        battery: The attackers that compare the two.
        schema: A TOML file that says what the columns are.
        seed: Of everything that is random.
        device: cpu, cuda or auto.
        command: What to write into the card as the command that made it.
        progress: Whether to show a bar.
    """
    if folder.resolve() == release.resolve():
        raise PrivetError(f"{folder} holds the release itself: choose another --out.")
    loaded, data = Release.load(release), load(spec, schema)
    loaded.schema.check(data)
    undo = writable_folder(folder)
    try:
        made = quantise(loaded, data, seed)
        both = [
            audit(
                one,
                data,
                utility,
                battery,
                seed=seed,
                device=device,
                progress=progress,
                rebuild=False,
                raw=False,
            )
            for one in (loaded, made)
        ]
        changes = compare(*both)
        if worse := [change.line for change in changes if change.worse]:
            raise PrivetError(
                "In int8 this release is worse beyond the interval of the audit, so it is not "
                f"written: {'; '.join(worse)}."
            )
        made.card["int8"]["audit"] = {
            "battery": battery,
            "seed": seed,
            "figures": [change.line for change in changes],
        }
        made.card["command"] = command
        made.save(folder)
    except BaseException:
        undo()
        raise
    return made, changes


def compare(before: Audit, after: Audit) -> list[FigureChange]:
    """The headline of every private attribute and task in two audits of the same attributes."""
    later = {reading.attribute: reading.worst.score for reading in after.readings}
    return [
        FigureChange(r.attribute, r.role, r.worst.score, later[r.attribute])
        for r in before.readings
    ]
