"""`privet apply`: release the records of files, here or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from privet.core.settings import names
from privet.release.apply import apply as release_files


def apply(
    release: str | Path,
    inputs: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    keep: str | Iterable[str] = (),
    column: str | None = None,
    ray: str | None = None,
    seed: int | None = None,
) -> Path:
    """Write what the release in a folder lets through of some files; returns the file written.

    release: the folder of a release.
    inputs: pictures, a folder of pictures, or one parquet or CSV file.
    out: a parquet file, or a folder for one.
    keep: columns to write beside the released records; never a private one.
    column: the column that holds the picture, text or window.
    ray: the address of a Ray cluster that does it; the file is the same.
    seed: makes the noise repeatable, for tests. Leave it out when the result is shared.
    """
    spread = None
    if ray is not None:
        from privet.scale.ray_apply import spread as on_cluster

        spread = partial(on_cluster, ray)
    files = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    return release_files(release, files, out, names(keep), column, seed, spread=spread)
