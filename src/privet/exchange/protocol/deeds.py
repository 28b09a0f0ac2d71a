"""What owners, auditors and operators did with a campaign: a chain in which every entry holds the
hash of the one before, so that none can be changed or taken out of the middle unseen.

Whoever remembers the last hash sees too when the end was cut off or written anew; an export keeps
it in its `manifest.json`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from privet.core.errors import PrivetError

# What the first entry follows.
START = "0" * 64


class Deed(BaseModel):
    """One entry.

    Parameters:
        place: Counts the entries of a campaign, from 1.
        at: When, in milliseconds since 1970.
        who: Role and name, for example `owner 0123456789abcdef`.
        what: What was done.
        about: Details, as JSON.
        hash: SHA-256 of all this, the campaign, and the hash of the entry before.
    """

    place: int
    at: int
    who: str
    what: str
    about: dict[str, Any]
    hash: str


def deed_hash(campaign: str, deed: Deed, previous: str) -> str:
    """What an entry's hash must be."""
    named = [campaign, deed.place, deed.at, deed.who, deed.what, deed.about, previous]
    text = json.dumps(named, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def check_chain(campaign: str, deeds: Iterable[Deed], remembered: str | None = None) -> str:
    """The last hash, after checking that nothing was changed, left out or, where a hash is
    remembered from before, cut off."""
    last, seen = START, remembered in (None, START)
    for place, deed in enumerate(deeds, 1):
        if deed.place != place or deed.hash != deed_hash(campaign, deed, last):
            raise PrivetError(f"The log of the campaign was changed at entry {place}.")
        last = deed.hash
        seen = seen or last == remembered
    if not seen:
        raise PrivetError(
            "The log of the campaign no longer holds what was there at the last export: it was cut "
            "off or written anew."
        )
    return last
