"""`privet apply`: release the records of files, here or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError
from privet.core.settings import names
from privet.core.stores import is_address
from privet.release.apply import ApplyOptions, check_kept, target_file
from privet.release.apply import apply as release_files
from privet.release.kept_columns import check_judged
from privet.release.part_writing import Parts, apply_parts
from privet.release.picture_files import ABOUT, are_pictures
from privet.release.runtime import read_card


def for_recipients(written: Path | str, keep: str | Iterable[str] = ()) -> str:
    """What whoever gets a file of released records does with it, in a sentence.

    >>> print(for_recipients(Path("shared.csv"), "income"))
    What is left of a record is in the columns z0, z1, ...: numbers for a model, not for people. \
A recipient trains one:  privet task --data shared.csv --label income --out model
    """
    if isinstance(written, str) or written.is_dir():
        return (
            "What is left of a record is in the column z of the parts; manifest.json has their "
            "hashes and says what left. A recipient attacks or reads the folder as one table:  "
            f"privet audit {written} --private A --out a"
        )
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
    parts: Parts | None = None,
) -> Path | str:
    """Write what the release in a folder lets through of some files; returns the file written, or
    the folder where pictures or parts are written.

    release: the folder of a release.
    inputs: pictures, a folder of pictures, or one table: parquet, CSV and others. With `parts`,
        parquet files, folders of them, patterns, or addresses such as `s3://bucket/*.parquet`.
    out: a .parquet or .csv file, or a folder for a parquet file, pictures or parts; with `parts`
        also an address in an object store.
    keep: columns to write beside the released records; never a private one. An audit of the
        release must have judged them (`privet.audit(keep=...)`), and found that they read nothing.
    accept: columns of `keep` to write all the same, whatever they tell.
    audit: that audit; without it, audit.json in the release's folder or in its folder `audit`.
    column: the column that holds the picture, text or window.
    options: whose key the noise is drawn with, what tells records apart, their order,
        whether to replace a file that is there, and whether records are written in their own form.
    ray: the address of a Ray cluster that does it; the file is the same.
    seed: makes the noise repeatable, for tests. Leave it out when the result is shared.
    parts: write a folder of parquet parts with a manifest: how large they are, and whether
        unfinished work is resumed.
    """
    folder, columns = Path(release), names(keep)
    files = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    card = read_card(folder)
    check_kept(columns, card.get("private", []))
    check_judged(folder, card, columns, names(accept), audit, str(files[0]) if files else "DATA")
    if parts is not None:
        apply_parts(
            folder,
            files,
            out,
            columns,
            column,
            seed,
            spread=_spread(ray, parts=True),
            options=options,
            parts=parts,
        )
        return out if isinstance(out, Path) or is_address(out) else Path(out)
    if address := next((str(one) for one in (*files, out) if is_address(one)), None):
        raise PrivetError(f"{address} is in an object store: add --parts.")
    pictures = options is not None and options.form is not None and are_pictures(files)
    target = Path(out) / ABOUT if pictures else target_file(Path(out))
    if target.exists() and not (options and options.force):
        raise PrivetError(
            f"{target} is there already: choose another --out, or replace it with --force."
        )
    spread = _spread(ray)
    return release_files(folder, files, out, columns, column, seed, spread=spread, options=options)


def _spread(ray: str | None, parts: bool = False) -> Any:
    """What releases records on a Ray cluster, where one is named."""
    if ray is None:
        return None
    from privet.scale import ray_apply, ray_parts

    return partial(ray_parts.spread_parts if parts else ray_apply.spread, ray)
