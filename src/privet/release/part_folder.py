"""The folder that `privet apply --parts` writes to: what may be replaced, what is gone on with, and
which parts are done.

unfinished.json has the parts that are done while others are made, manifest.json all of them at the
end.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from privet.core.errors import PrivetError, refuse_if
from privet.core.progress import bar, console
from privet.core.stores import Store
from privet.data.part_manifest import (
    MANIFEST,
    PART_NAME,
    UNFINISHED,
    Manifest,
    Part,
    sha256_of,
)
from privet.release.keyed_noise import KeyedNoise
from privet.release.part_plan import Job

# Seconds between two writings of unfinished.json. What was made since the last is made again.
SAVE_SECONDS = 1.0
# What a killed run leaves of a part or a list that it was writing.
_TEMPORARY = re.compile(
    rf"\.({PART_NAME.pattern}|{re.escape(MANIFEST)}|{re.escape(UNFINISHED)})\..+"
)


def mark_of(randomness: Any, text: str) -> str:
    return randomness.mark(text) if isinstance(randomness, KeyedNoise) else ""


def check_folder(
    store: Store,
    earlier: Manifest | None,
    wanted: Manifest,
    resume: bool,
    force: bool,
) -> None:
    """PrivetError where what is in the folder may not be replaced, or cannot be gone on with."""
    if earlier is None:
        names = [name for name in store.names() if name.endswith(".parquet")]
        refuse_if(
            names,
            f"{store.address} holds {names and names[0]}, which is no part that Privet wrote: "
            "choose another --out.",
        )
        return
    refuse_if(
        not resume and not force,
        f"{store.address} holds released parts already: go on with --resume, choose another --out, "
        "or replace them with --force.",
    )
    if not resume:
        return
    then, now = (_decisive(one) for one in (earlier, wanted))
    if differing := [name for name in now if then.get(name) != now[name]]:
        name = differing[0]
        value = f" ({str(then.get(name))[:80]})" if name not in ("key", "leaves") else ""
        raise PrivetError(
            f"The parts in {store.address} were made with another {name.replace('_', ' ')}{value}: "
            "give the same as then, choose another --out, or begin anew with --force."
        )


def _decisive(manifest: Manifest) -> dict[str, Any]:
    """What must be the same for parts to go together, by name."""
    release = {f"release ({key})": value for key, value in manifest.release.items()}
    # The key before the rest: another key makes every mark another.
    settings = sorted(manifest.settings.items(), key=lambda item: item[0] != "key")
    return {**release, "campaign": manifest.campaign, **dict(settings), "leaves": manifest.leaves}


def begin(
    store: Store,
    manifest: Manifest,
    earlier: Manifest | None,
    resume: bool,
    jobs: Sequence[Job],
    randomness: Any,
) -> dict[str, Part]:
    """Make the folder ready; gives the parts that need not be made, by name."""
    if store.folder is not None:
        for path in store.folder.iterdir():
            if _TEMPORARY.fullmatch(path.name):
                path.unlink(missing_ok=True)
    if not resume or earlier is None:
        replace(manifest, parts=()).save(store, UNFINISHED)
        if earlier is not None:
            store.remove(MANIFEST)
            for name in store.names():
                if PART_NAME.fullmatch(name):
                    store.remove(name)
        return {}
    done = {}
    versions = {job.name: job.version for job in jobs}
    for part in earlier.parts:
        if part.mark != mark_of(randomness, versions[part.name]):
            why = f"{part.input} was written again since"
        elif (found := sha256_of(store, part.name)) == part.sha256:
            done[part.name] = part
            continue
        else:
            why = "it is missing" if found is None else "its hash is not that of the manifest"
        console.print(
            f"{part.name} is made again: {why}.", markup=False, highlight=False, soft_wrap=True
        )
    replace(manifest, parts=tuple(done.values())).save(store, UNFINISHED)
    return done


def forget_empty(store: Store) -> None:
    """Remove what says that work was begun, where no part was made."""
    if not any(map(PART_NAME.fullmatch, store.names())):
        store.remove(UNFINISHED)


def collect(
    store: Store,
    manifest: Manifest,
    before: dict[str, Part],
    made: Iterable[Part],
    total: int,
    progress: bool,
) -> Manifest:
    """Wait for the parts, write down now and then which are there, and the manifest at the end."""
    parts, rows = dict(before), sum(part.rows for part in before.values())
    saved = time.monotonic()
    with bar("releasing", total, progress) as tick:
        tick(rows)
        for part in made:
            parts[part.name] = part
            rows += part.rows
            tick(rows, f"{len(parts)} parts")
            if time.monotonic() - saved >= SAVE_SECONDS:
                _whole(manifest, parts).save(store, UNFINISHED)
                saved = time.monotonic()
    manifest = _whole(manifest, parts)
    manifest.save(store, MANIFEST)
    store.remove(UNFINISHED)
    return manifest


def _whole(manifest: Manifest, parts: dict[str, Part]) -> Manifest:
    """The manifest with these parts in the order of their names, which does not tell the order in
    which they were made."""
    by_number = sorted(parts.values(), key=lambda part: (len(part.name), part.name))
    return replace(manifest, parts=tuple(by_number))
