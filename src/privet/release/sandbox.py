"""A stranger's graph in a process of its own, which has no files, no network and limits on memory
and time (sandbox_child.py).

A child is started once and kept for many batches; each thread that asks at the same time has one of
its own. Nothing that a child answers is believed: the sizes of what it may give are known from the
verifier before it runs.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import Array
from privet.release.graph_verifier import Port, Verified
from privet.release.graph_wire import LAYOUTS, LIMITS, RULES, Refused
from privet.release.sandbox_child import read_arrays, read_header, write

# Seconds until a child must be ready, and seconds for any run.
START_SECONDS = 120.0
RUN_SECONDS = 30.0
# Products and sums a second that even a slow machine manages, and the longest that a run may take.
SLOWEST = 2e8
LONGEST_SECONDS = 600.0
# Bytes that a child may ever take beside what it starts with.
MEMORY = 8 << 30
KINDS = {f"tensor({name})": int(kind) for kind, (name, _) in RULES["types"].items()}


class Child:
    """A process that runs one graph.

    Parameters:
        content: The graph.
        threads: How many threads it may use.
        numbers: About how many numbers loading it takes.
        seconds: How long loading it may take.
    """

    def __init__(
        self, content: bytes, threads: int = 1, numbers: float = 0.0, seconds: float = RUN_SECONDS
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="privet-")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-s", "-m", "privet.release.sandbox_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            env=_environment(),
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to: BinaryIO = self._process.stdin  # type: ignore[assignment]
        self._from: BinaryIO = self._process.stdout  # type: ignore[assignment]
        self._end = weakref.finalize(self, _end, self._process, self._folder)
        start = {
            "threads": threads,
            "memory": MEMORY,
            "try": _identity().hex(),
            "numbers": numbers,
            "seconds": seconds,
        }
        guards = self._ask(start, (), START_SECONDS)
        self.missing: tuple[str, ...] = tuple(map(str, guards["missing"]))
        self._ask({}, [np.frombuffer(content, np.uint8)], seconds)

    def run(
        self,
        outputs: Mapping[str, tuple[int, tuple[int, ...]]],
        inputs: Mapping[str, Array],
        numbers: float = 0.0,
        seconds: float = RUN_SECONDS,
    ) -> list[Array]:
        """What the graph gives.

        Parameters:
            outputs: The type and sizes that each output must have, by name.
            inputs: What it takes, by name.
            numbers: About how many numbers a run takes.
            seconds: How long it may take.
        """
        about = {
            "inputs": list(inputs),
            "outputs": list(outputs),
            "numbers": numbers,
            "seconds": seconds,
        }
        answer = self._ask(about, list(inputs.values()), seconds, read=False)
        forms = [[LAYOUTS[kind], list(shape)] for kind, shape in outputs.values()]
        given = [[kind.replace("|", "<").replace("b1", "u1"), shape] for kind, shape in answer]
        if given != forms:
            self.close()
            raise PrivetError("The release's graph gave something else than it must: it was ended.")
        with self._watched(seconds):
            return read_arrays(self._from, answer)

    def _ask(
        self, about: dict[str, Any], arrays: Sequence[Any], seconds: float, read: bool = True
    ) -> Any:
        """Send a message and take the answer's description; of a run, what arrays follow it."""
        try:
            with self._watched(seconds):
                write(self._to, about, arrays)
                answer = read_header(self._from)
        except (EOFError, OSError, ValueError):
            self.close()
            raise PrivetError(
                "The release's graph was ended: it took more memory or time than it may, or failed."
            ) from None
        if "error" in answer:
            self.close()
            raise PrivetError(f"The graph cannot be run as ONNX ({_plain(answer['error'])}).")
        return answer if read else answer["arrays"]

    def _watched(self, seconds: float) -> _Watch:
        return _Watch(self._process, seconds)

    @property
    def alive(self) -> bool:
        return self._end.alive

    def close(self) -> None:
        """End the process."""
        self._end()


class _Watch:
    """Ends a process that takes too long."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self._timer = threading.Timer(seconds, process.kill)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def _end(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):  # what was not written yet has nobody to go to
                stream.close()
    folder.cleanup()


def _environment() -> dict[str, str]:
    """What a child knows of this process: where Python finds its modules, and nothing else."""
    kept = {
        name: os.environ[name] for name in ("SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ
    }
    places = [str(Path(place).resolve()) for place in sys.path if place]
    return {**kept, "PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": "1"}


def _plain(text: object) -> str:
    return "".join(c if c.isprintable() else " " for c in str(text))[:200]


def _identity() -> bytes:
    """z = x as a graph, with which the runtime is tried before it is locked in."""

    def field(number: int, body: bytes) -> bytes:
        return bytes([number << 3 | 2, len(body)]) + body

    kind = field(2, field(1, b"\x08\x01" + field(2, field(1, b"\x08\x01"))))
    node = field(1, b"x") + field(2, b"z") + field(4, b"Identity")
    graph = field(1, node) + field(2, b"g")
    graph += field(11, field(1, b"x") + kind) + field(12, field(1, b"z") + kind)
    return b"\x08\x08" + field(7, graph) + field(8, b"\x10\x0d")


class Guarded:
    """A graph that was verified, run in children: answers as a session of onnxruntime does.

    Parameters:
        verified: The graph.
        threads: How many threads a child may use.
    """

    def __init__(self, verified: Verified, threads: int = 1) -> None:
        self.verified, self._threads = verified, max(1, threads)
        self._idle: list[Child] = []
        self._lock = threading.Lock()
        self._kinds = {port.name: KINDS[port.type] for port in verified.outputs}
        # One now, so that a graph that the runtime does not take is refused here.
        self._idle.append(self._child())
        self.missing = self._idle[0].missing

    def get_inputs(self) -> list[Port]:
        return self.verified.inputs

    def get_outputs(self) -> list[Port]:
        return self.verified.outputs

    def run(self, names: Sequence[str] | None, inputs: Mapping[str, Array]) -> list[Array]:
        """What the graph gives of some records; where all at once would take too much, a part at a
        time."""
        wanted = list(names or (port.name for port in self.verified.outputs))
        if unknown := [name for name in wanted if name not in self._kinds]:
            raise PrivetError(f"The graph gives no '{_plain(unknown[0])}'.")
        arrays = {name: self._as_declared(name, array) for name, array in inputs.items()}
        try:
            cost = self.verified.cost({name: array.shape for name, array in arrays.items()})
        except Refused as refused:
            rows = {len(array) for array in arrays.values() if array.ndim}
            if refused.code not in ("too_large", "memory", "work") or len(rows) != 1:
                raise
            half = rows.pop() // 2
            if half == 0:
                raise
            parts = [
                self.run(wanted, {name: array[place] for name, array in arrays.items()})
                for place in (slice(half), slice(half, None))
            ]
            return [np.concatenate(pair) for pair in zip(*parts, strict=True)]
        outputs = {name: (self._kinds[name], cost.outputs[name]) for name in wanted}
        seconds = min(LONGEST_SECONDS, RUN_SECONDS + cost.work / SLOWEST)
        child = self._take()
        try:
            given = child.run(outputs, arrays, float(cost.numbers), seconds)
        finally:
            if child.alive:
                with self._lock:
                    self._idle.append(child)
        return given

    def _as_declared(self, name: str, array: Array) -> Array:
        port = next((port for port in self.verified.inputs if port.name == name), None)
        if port is None:
            raise PrivetError(f"The graph takes no '{_plain(name)}'.")
        if np.dtype(array.dtype).str.replace("|", "<") != LAYOUTS[KINDS[port.type]]:
            raise PrivetError(f"The graph takes {port.type} as '{_plain(name)}'.")
        return array

    def _take(self) -> Child:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._child()

    def _child(self) -> Child:
        content = self.verified.content
        return Child(content, self._threads, numbers=min(LIMITS["total_numbers"], 1 << 27))

    def close(self) -> None:
        """End all children that are idle."""
        with self._lock:
            for child in self._idle:
                child.close()
            self._idle.clear()
