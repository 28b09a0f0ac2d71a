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
from privet.release.runtime import read_card


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
    """Write what the release in a folder lets through of some files; returns the file written.

    release: the folder of a release.
    inputs: pictures, a folder of pictures, or one table: parquet, CSV and others.
    out: a .parquet or .csv file, or a folder for a parquet file.
    keep: columns to write beside the released records; never a private one. An audit of the
        release must have judged them (`privet.audit(keep=...)`), and found that they read nothing.
    accept: columns of `keep` to write all the same, whatever they tell.
    audit: that audit; without it, audit.json in the release's folder or in its folder `audit`.
    column: the column that holds the picture, text or window.
    options: whose key the noise is drawn with, what tells records apart, their order,
        and whether to replace a file that is there.
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
    target = target_file(Path(out))
    if target.exists() and not (options and options.force):
        raise PrivetError(
            f"{target} is there already: choose another --out, or replace it with --force."
        )
    return release_files(folder, files, out, columns, column, seed, spread=spread, options=options)
