"""Which releases run in this process, and which in a process of their own.

A release that was learned on this machine is one's own; one whose audit is signed by a key that is
trusted here is verified and runs in this process too. Everything else is a stranger's program:
verified (graph_verifier.py) and run in a child without files or network (sandbox.py).
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from privet.core.home import home_folder
from privet.release.graph_verifier import verify_graph
from privet.release.runtime import session
from privet.release.sandbox import Guarded

# The file with the SHA-256 of graphs that were made here or are trusted, one a line.
FILE = "trusted-graphs"


def release_session(
    graph: bytes, threads: int = 0, home: Path | None = None, vouched: bool = False
) -> Any:
    """A session of a release's graph: in this process for one's own, else verified and in a child.
    PrivetError, with one sentence, where the graph may not run.

    Parameters:
        graph: The graph.
        threads: How many threads it may use; 0 for as many as there are cores.
        home: Where the list of one's own graphs is; `privet.core.home.home_folder()`.
        vouched: Somebody whose key is trusted here signed an audit of this graph.
    """
    if vouched:
        verify_graph(graph)
    if vouched or is_trusted(graph, home):
        return session(graph, threads)
    return Guarded(verify_graph(graph), threads)


def is_trusted(graph: bytes, home: Path | None = None) -> bool:
    """Whether a graph was made on this machine, or was named as trusted."""
    try:
        lines = (_place(home)).read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return False
    return hashlib.sha256(graph).hexdigest() in lines


def trust(graph: bytes, home: Path | None = None) -> None:
    """Run this graph in the process itself from now on: it was made here. Where the list cannot be
    written, it is run as a stranger's is."""
    if is_trusted(graph, home):
        return
    place = _place(home)
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with place.open("a", encoding="ascii") as file:
            file.write(hashlib.sha256(graph).hexdigest() + "\n")
    except OSError:
        return


def _place(home: Path | None) -> Path:
    return (home or home_folder()) / FILE


def what_is_missing(run: Any) -> str:
    """One sentence on what this system cannot keep from a stranger's graph; empty where it keeps
    everything from it, and where the graph is one's own."""
    missing = getattr(run, "missing", ())
    if not missing:
        return ""
    listed = re.sub(r", ([^,]*)$", r" and \1", ", ".join(missing))
    return (
        "The release's graph was looked through and runs in a process of its own, but this system "
        f"cannot keep it from: {listed}."
    )
