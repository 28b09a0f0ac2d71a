"""manifest.json: what a folder of released parts holds, and what left with it.

It is written last: a folder that has one is finished. While `privet apply --parts` works, the same
is in unfinished.json, with the parts that are done so far. A stranger may have written either: the
names of parts are those that Privet gives, every number is bounded, and the hash of a part is
checked before anybody reads it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from privet.core.errors import PrivetError, refuse_if
from privet.core.json_values import as_json, read
from privet.core.stores import Store
from privet.evidence.what_leaves import WhatLeaves

MANIFEST = "manifest.json"
UNFINISHED = "unfinished.json"
PART_NAME = re.compile(r"part-[0-9]{5,9}\.parquet")
VERSION = 1
# Of a manifest: bytes, parts, and rows or bytes of one part.
MOST_BYTES = 256 << 20
MOST_PARTS = 1_000_000
MOST_ROWS = 1 << 48
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Part:
    """One file of released records.

    Parameters:
        name: Of the file.
        rows: Records in it.
        bytes: Its size.
        sha256: Of its bytes.
        input: The name of the input that its records are from.
        start: The number of the first of these rows in the input, from 0. The records of a part are
            shuffled.
        mark: Tells whoever has the key whether the input has changed since; empty without a key.
    """

    name: str
    rows: int
    bytes: int
    sha256: str
    input: str
    start: int
    mark: str = ""


@dataclass(frozen=True)
class Manifest:
    """What is in a folder of released parts.

    Parameters:
        release: Method, private attributes, hashes, shape and noise of the release.
        campaign: Whose key the noise was drawn with; None where it was not drawn with a key.
        settings: What else decides the bytes of the parts.
        leaves: What leaves with each record.
        parts: The files.
        version: Of this layout.
    """

    release: dict[str, Any]
    campaign: str | None
    settings: dict[str, Any]
    leaves: WhatLeaves
    parts: tuple[Part, ...]
    version: int = VERSION

    @property
    def rows(self) -> int:
        """Records in all parts."""
        return sum(part.rows for part in self.parts)

    def save(self, store: Store, name: str) -> None:
        store.write(name, (as_json(self) + "\n").encode())


def is_parts_folder(store: Store) -> bool:
    """Whether a folder holds released parts, finished or not."""
    return store.has(MANIFEST) or store.has(UNFINISHED)


def find_manifest(store: Store, unfinished: bool = False) -> Manifest | None:
    """The manifest of a folder; None where it has none.

    Parameters:
        store: The folder.
        unfinished: Look first for what unfinished work has written.
    """
    for name in (UNFINISHED, MANIFEST) if unfinished else (MANIFEST,):
        try:
            content = store.read(name, MOST_BYTES)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise PrivetError(f"Cannot read {name} in {store.address}: {error.strerror}.") from None
        return _parse(content, f"{name} in {store.address}")
    return None


def finished_manifest(store: Store) -> Manifest:
    """The manifest of a folder; PrivetError where the work is not finished."""
    found = find_manifest(store)
    if found is None:
        raise PrivetError(
            f"{store.address} is not finished: go on with the same  privet apply  command and "
            "--resume."
        )
    refuse_if(not found.parts, f"{store.address} has no parts: there is nothing to read.")
    return found


def _parse(content: bytes, where: str) -> Manifest:
    try:
        value = json.loads(content)
        version = value.get("version") if isinstance(value, dict) else None
        refuse_if(
            isinstance(version, int) and version > VERSION,
            f"{where} has layout version {version!r:.20}, and this Privet reads {VERSION}.",
        )
        manifest = cast(Manifest, read(Manifest, value, "manifest"))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise PrivetError(f"{where} is not what Privet writes ({str(error)[:200]}).") from None
    names = [part.name for part in manifest.parts]
    wrong = next((why for part in manifest.parts if (why := _wrong(part))), None)
    refuse_if(len(names) > MOST_PARTS, f"{where} has more than {MOST_PARTS:,} parts.")
    refuse_if(wrong, f"{where} is not what Privet writes ({wrong}).")
    refuse_if(len({*names}) < len(names), f"{where} names a part twice.")
    rows = {(part.input, part.start) for part in manifest.parts}
    refuse_if(len(rows) < len(names), f"{where} has two parts of the same rows.")
    return manifest


def _wrong(part: Part) -> str | None:
    """What is wrong with an entry."""
    if not PART_NAME.fullmatch(part.name):
        return f"{part.name[:60]!a} is no name of a part"
    if not all(0 <= many <= MOST_ROWS for many in (part.rows, part.bytes, part.start)):
        return f"{part.name} has a number that cannot be"
    if not _SHA256.fullmatch(part.sha256):
        return f"{part.name} has no SHA-256"
    return None


def sha256_of(
    store: Store, name: str, tick: Callable[[int], object] = lambda size: None
) -> str | None:
    """SHA-256 of a file's bytes; None where it is not there. `tick` hears how many were read."""
    sha = hashlib.sha256()
    try:
        for block in store.blocks(name):
            sha.update(block)
            tick(len(block))
    except FileNotFoundError:
        return None
    return sha.hexdigest()


def check_part(store: Store, part: Part) -> None:
    """PrivetError where a part is not what the manifest says."""
    found = sha256_of(store, part.name)
    refuse_if(found is None, f"{part.name}, which the manifest names, is not in {store.address}.")
    refuse_if(
        found != part.sha256,
        f"{part.name} in {store.address} is not the file that the manifest was written for: get it "
        "again, or release it again with  privet apply --parts --resume.",
    )
