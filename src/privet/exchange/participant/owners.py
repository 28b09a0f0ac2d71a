"""Owners' keys that a participant has used, by the names they came with.

A key is kept when something is sent to it, never by looking. A new key that comes with the name of
a kept one is what somebody who pretends to be that owner would show: it is used only where the
participant repeats its fingerprint.
"""

from __future__ import annotations

import json
import re
import time
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from privet.core.errors import PrivetError
from privet.core.key_text import fingerprint
from privet.exchange.participant.private_files import write_private
from privet.exchange.protocol.manifest import Manifest

FILE = "used-keys.json"
# Letters of other scripts that look like Latin ones.
ALIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04cf\u043a\u043c\u0442"
    "\u043d\u0432\u03b1\u03bf\u03c1\u03b5\u03b9\u03ba\u03bd\u03c4\u03c5\u03c7\u0131\u0142",
    "aeopcyxijsdlkmthbaopeikvtuxil",
)


@dataclass(frozen=True)
class Standing:
    """What is known of the key of a campaign's owner.

    Parameters:
        kind: `new`; `used` before; or `other`: the name was used before, with another key.
        who: The name that was kept.
        key: Fingerprint of the key that was kept.
    """

    kind: Literal["new", "used", "other"]
    who: str = ""
    key: str = ""


def standing(manifest: Manifest, home: Path) -> Standing:
    """What is known of the owner's key; looking changes nothing."""
    used = _read(home)
    key = manifest.signing_key
    if key in used:
        return Standing("used", used[key], fingerprint(key))
    for other, who in used.items():
        if is_same_name(who, manifest.who):
            return Standing("other", who, fingerprint(other))
    return Standing("new")


def accept(manifest: Manifest, home: Path, accepted: str | None) -> None:
    """PrivetError where a new key comes with a known name, and was not accepted by its
    fingerprint."""
    known, key = standing(manifest, home), fingerprint(manifest.signing_key)
    given = re.sub(r"[\s:]", "", accepted or "").lower()
    if accepted is not None and given != key.replace(" ", ""):
        raise PrivetError(f"--accept-new-key: the owner's key is {key}. Do not take part.")
    if known.kind == "other" and accepted is None:
        raise PrivetError(
            "Another key was used under this owner's name. Ask the owner, not the link; if the key "
            f"was changed, repeat with  --accept-new-key '{key}'."
        )


def keep(manifest: Manifest, home: Path) -> None:
    """From now on the owner's key is a used one."""
    used = _read(home)
    if manifest.signing_key in used:
        return
    path = home / FILE
    entries = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    entries[manifest.signing_key] = {"who": manifest.who, "since": int(time.time() * 1000)}
    write_private(path, (json.dumps(entries, indent=1, ensure_ascii=False) + "\n").encode())


def is_same_name(one: str, other: str) -> bool:
    """Whether people could take two names for the same: the words of one, up to its first comma or
    bracket, are all in the other, without case, marks and letters that look alike.

    >>> is_same_name("Lab X, x@example.org", "LAB \\u0425 (Berlin)"), is_same_name("Lab X", "Lab Y")
    (True, False)
    """
    heads = [_words(re.split(r"[,;(<\[:/|]", name)[0]) or _words(name) for name in (one, other)]
    return all(heads) and (heads[0] <= _words(other) or heads[1] <= _words(one))


def _words(name: str) -> set[str]:
    plain = unicodedata.normalize("NFKD", name).casefold().translate(ALIKE)
    shown = "".join(c for c in plain if unicodedata.category(c) not in ("Mn", "Cf"))
    return set(re.findall(r"[^\W_]+", shown))


def _read(home: Path) -> dict[str, str]:
    try:
        entries = json.loads((home / FILE).read_text(encoding="utf-8"))
        return {str(key): str(entry["who"]) for key, entry in entries.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise PrivetError(
            f"{home / FILE} cannot be read: it holds the keys of owners that you know. Move it "
            "away to begin anew."
        ) from None
