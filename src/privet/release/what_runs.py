"""One hash of all that decides what is released: graph, encoding of records, law of the noise."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def runs_hash(graph: str, encoding: Any, noise: Any) -> str:
    """The SHA-256 of the three, as audits and certificates state it.

    Parameters:
        graph: SHA-256 of the graph.
        encoding, noise: `input` and `noise` of the card.
    """
    runs = {"graph": graph, "input": encoding, "noise": noise}
    text = json.dumps(runs, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
