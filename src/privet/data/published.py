"""What the readers of published data sets share: the files they expect, and a schema that may not
contradict them."""

from __future__ import annotations

from pathlib import Path

from privet.core.errors import PrivetError
from privet.data.schema_file import Layout


def open_folder(
    name: str, place: str | Path, layout: Layout, needed: tuple[str, ...]
) -> tuple[Path, list[Path]]:
    """The folder of a data set and the files needed of it, or a sentence about what is missing."""
    if not str(place):
        raise PrivetError(f"Say where the data set lies on this machine, as in {name}:DIR.")
    folder = Path(place).expanduser()
    if layout.x is not None or layout.modality is not None:
        raise PrivetError(
            f"The schema file cannot choose x or modality for {name}: its layout is known."
        )
    if not folder.is_dir():
        raise PrivetError(
            f"There is no folder {folder}: give the folder that {name} was unpacked to, as"
            f" {name}:DIR."
        )
    for file in needed:
        if not (folder / file).exists():
            raise PrivetError(
                f"{folder} has no {file}, which {name} is published with: download it there."
            )
    return folder, [folder / file for file in needed]
