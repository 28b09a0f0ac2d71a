"""`privet apply`: release the records of files, here or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from privet.core.errors import PrivetError
from privet.core.settings import names
from privet.release.apply import ApplyOptions, check_kept, target_file
from privet.release.apply import apply as release_files
from privet.release.kept_columns import check_judged
from privet.release.picture_files import ABOUT, are_pictures
from privet.release.runtime import read_card


def for_recipients(written: Path, keep: str | Iterable[str] = ()) -> str:
    """What whoever gets a file of released records does with it, in a sentence.

    >>> print(for_recipients(Path("shared.csv"), "income"))
    What is left of a record is in the columns z0, z1, ...: numbers for a model, not for people. \
A recipient trains one:  privet task --data shared.csv --label income --out model
    """
    labels = names(keep)
    label = labels[0] if labels else "LABEL"
    where = "the columns z0, z1, ..." if written.suffix == ".csv" else "the column z"
    beside = (
        "" if labels else " on labels of their own, or on a column that --keep writes beside it"
    )
    return (
        f"What is left of a record is in {where}: numbers for a model, not for people. A recipient "
        f"trains one{beside}:  privet task --data {written} --label {label} --out model"
    )


def apply(
    release: str | Path,
    inputs: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    keep: str | Iterable[str] = (),
    accept: str | Iterable[str] = (),
    audit: str | Path | None = None,
    column: str | None = None,
    options: ApplyOptions | None = None,
    ray: str | None = None,
    seed: int | None = None,
) -> Path:
    """Write what the release in a folder lets through of some files; returns the file written, or
    the folder where pictures are written as pictures.

    release: the folder of a release.
    inputs: pictures, a folder of pictures, or one table: parquet, CSV and others.
    out: a .parquet or .csv file, or a folder for a parquet file or for pictures.
    keep: columns to write beside the released records; never a private one. An audit of the
        release must have judged them (`privet.audit(keep=...)`), and found that they read nothing.
    accept: columns of `keep` to write all the same, whatever they tell.
    audit: that audit; without it, audit.json in the release's folder or in its folder `audit`.
    column: the column that holds the picture, text or window.
    options: whose key the noise is drawn with, what tells records apart, their order,
        whether to replace a file that is there, and whether records are written in their own form.
    ray: the address of a Ray cluster that does it; the file is the same.
    seed: makes the noise repeatable, for tests. Leave it out when the result is shared.
    """
    spread = None
    if ray is not None:
        from privet.scale.ray_apply import spread as on_cluster

        spread = partial(on_cluster, ray)
    folder, columns = Path(release), names(keep)
    files = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    card = read_card(folder)
    check_kept(columns, card.get("private", []))
    check_judged(folder, card, columns, names(accept), audit, str(files[0]) if files else "DATA")
    pictures = options is not None and options.form is not None and are_pictures(files)
    target = Path(out) / ABOUT if pictures else target_file(Path(out))
    if target.exists() and not (options and options.force):
        raise PrivetError(
            f"{target} is there already: choose another --out, or replace it with --force."
        )
    return release_files(folder, files, out, columns, column, seed, spread=spread, options=options)
