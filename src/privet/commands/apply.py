"""`privet apply`: release the records of files, here or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from privet.core.settings import names
from privet.release.apply import ApplyOptions
from privet.release.apply import apply as release_files


def apply(
    release: str | Path,
    inputs: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    keep: str | Iterable[str] = (),
    column: str | None = None,
    campaign: str | None = None,
    id: str | None = None,
    fresh: bool = False,
    ordered: bool = False,
    ray: str | None = None,
    seed: int | None = None,
) -> Path:
    """Write what the release in a folder lets through of some files; returns the file written.

    release: the folder of a release.
    inputs: pictures, a folder of pictures, or one parquet or CSV file.
    out: a parquet file, or a folder for one.
    keep: columns to write beside the released records; never a private one.
    column: the column that holds the picture, text or window.
    campaign: whose key the noise is drawn with; without it, the release has one of its own. The
        same record gets the same numbers in the same campaign, and others in another.
    id: the column that tells records with the same content apart; without it, a row's number in the
        file or the name of a picture's file. Name one where rows may move.
    fresh: draw noise that nobody can repeat; whoever sees many releases of a record averages it
        away.
    ordered: keep the order of the records, which can tell whose they are; else they are shuffled.
    ray: the address of a Ray cluster that does it; the file is the same.
    seed: makes the noise repeatable, for tests. Leave it out when the result is shared.
    """
    spread = None
    if ray is not None:
        from privet.scale.ray_apply import spread as on_cluster

        spread = partial(on_cluster, ray)
    files = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    options = ApplyOptions(campaign, id, fresh, ordered)
    return release_files(
        release, files, out, names(keep), column, seed, spread=spread, options=options
    )
