"""Columns beside released records: written only where an audit has judged them, or where somebody
takes the responsibility by name.

Whoever gets the file gets the columns too, and knowledge and release together can tell more than
either. So `privet audit --keep A,B` attacks the columns alone and with the released records, and
`privet apply --keep A,B` looks up what was found.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError
from privet.evidence.figures import Audit, Finding, Reading

# The file of an audit: in the release's folder, in the folder `audit` there, or where it is named.
AUDIT = "audit.json"


def check_judged(
    folder: Path,
    card: dict[str, Any],
    keep: Sequence[str],
    accept: Iterable[str] = (),
    audit: str | Path | None = None,
    data: str = "DATA",
) -> None:
    """PrivetError where columns may not be written beside released records.

    Parameters:
        folder: Of the release.
        card: Its card.
        keep: The columns.
        accept: Columns that somebody accepts to be written, whatever they read.
        audit: An audit.json, or a folder with one; without it, those in the release's folder.
        data: What an audit would take as --data.
    """
    wanted, accepted = set(keep), set(accept)
    if strange := accepted - wanted:
        raise PrivetError(f"--accept names '{min(strange)}', and --keep does not.")
    if wanted <= accepted:
        return
    audits = _read_audits(folder, card, audit)
    columns = ",".join(keep)
    for one in audits:
        if sentence := what_is_read(one, keep):
            raise PrivetError(
                f"{sentence} Keep less, or take the responsibility with --accept {columns}."
            )
    if any(was_judged(one, keep, card.get("private", [])) for one in audits):
        return
    command = ["privet", "audit", str(folder), "--data", _data(card, data), "--keep", columns]
    command += ["--out", str(folder / "audit")]
    raise PrivetError(
        f"No audit of this release has judged what {columns} and the released records tell "
        f"together: run  {shlex.join(command)}  first, or take the responsibility with --accept "
        f"{columns}."
    )


def what_is_read(audit: Audit, keep: Iterable[str]) -> str | None:
    """What attackers read from some of the columns, alone or with the released records; None where
    nothing was read."""
    wanted = set(keep)
    for reading in audit.private:
        for finding in reading.others:
            if wanted >= set(finding.columns) and _reads(reading, finding):
                return _sentence(reading, finding)
    return None


def was_judged(audit: Audit, keep: Iterable[str], private: Iterable[str]) -> bool:
    """Whether just these columns were attacked, or more of them and nothing was read: who reads
    nothing from more columns reads nothing from fewer."""
    wanted, exact, larger = set(keep), True, True
    if not set(private) <= {reading.attribute for reading in audit.private}:
        return False
    for reading in audit.private:
        together = [f for f in reading.others if f.source == "released and kept"]
        exact &= any(set(f.columns) == wanted for f in together)
        covering = [f for f in together if set(f.columns) >= wanted]
        larger &= bool(covering) and not any(_reads(reading, f) for f in covering)
    return bool(audit.private) and (exact or larger)


def _reads(reading: Reading, finding: Finding) -> bool:
    """Whether an attacker was shown to read the attribute: better than by guessing, and with the
    released record better than from the released record alone."""
    if finding.source not in ("kept columns", "released and kept") or finding.score.is_chance:
        return False
    if finding.source == "kept columns" or reading.worst.score.is_chance:
        return True
    return finding.score.low > reading.worst.score.value


def _sentence(reading: Reading, finding: Finding) -> str:
    score, alone = finding.score, reading.worst.score
    columns = ", ".join(finding.columns)
    if reading.is_number:
        explains = (
            f"{100 * score.value:.1f} % of the variance of {reading.attribute} (between "
            f"{100 * score.low:.1f} and {100 * score.high:.1f})"
        )
        if finding.source == "kept columns":
            return f"An attacker explains {explains} with {columns} alone."
        return (
            f"An attacker explains {explains} with {columns} and the released records, "
            f"{100 * alone.value:.1f} % with these alone."
        )
    figure = (
        f"reads {reading.attribute} at {100 * score.value:.1f} % (between {100 * score.low:.1f} "
        f"and {100 * score.high:.1f}, balanced accuracy on {score.n} test records; guessing is "
        f"right at {100 * score.chance:.1f})"
    )
    if finding.source == "kept columns":
        return f"An attacker who has {columns} alone {figure}."
    return (
        f"An attacker who has {columns} with the released records {figure}, and at "
        f"{100 * alone.value:.1f} % from the released records alone."
    )


def _read_audits(folder: Path, card: dict[str, Any], audit: str | Path | None) -> list[Audit]:
    """The audit that is named, which must be of this release, or those in its folder that are."""
    places = [folder, folder / "audit"] if audit is None else [Path(audit)]
    audits = []
    for place in places:
        path = place if place.suffix == ".json" else place / AUDIT
        if audit is None and not path.is_file():
            continue
        found = Audit.load(path)
        if (found.release.get("sha256") or {}).get("graph") == card["sha256"]["graph"]:
            audits.append(found)
        elif audit is not None:
            raise PrivetError(
                f"{path} is the audit of another release: its graph has another hash."
            )
    return audits


def _data(card: dict[str, Any], otherwise: str) -> str:
    """What the release was learned on, as its command said it."""
    try:
        words = shlex.split(str(card.get("command") or ""))
        return words[words.index("--data") + 1]
    except (ValueError, IndexError):
        return otherwise
