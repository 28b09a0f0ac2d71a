"""The process in which a stranger's graph runs: no files, no network, no other programs, and only
as much memory and time as it is given.

Started by sandbox.py. It loads numpy and onnxruntime, locks itself in, and only then takes the
graph. What the system cannot lock is named in its first answer.

    Linux     Landlock closes the file system (and TCP), libseccomp refuses the system calls for
              files, sockets and programs; limits on memory, processor time, files and file sizes
    others    limits where the system has them; a folder of its own, an empty environment
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import json
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

# Most bytes of the description of a message.
HEADER = 1 << 16
# Bytes that a run may take beside the numbers of its tensors.
SPARE = 1 << 30
# System calls that a graph has no use for: sockets, files, programs, other processes.
REFUSED = """
socket socketpair connect accept accept4 bind listen sendto sendmsg sendmmsg recvfrom
recvmsg execve execveat fork vfork ptrace process_vm_readv process_vm_writev pidfd_open
pidfd_getfd kill tkill tgkill io_uring_setup bpf perf_event_open userfaultfd mount umount2
unshare setns keyctl add_key request_key open openat openat2 open_by_handle_at creat
unlink unlinkat rename renameat renameat2 mkdir mkdirat rmdir link linkat symlink
symlinkat chmod fchmodat chown fchownat truncate memfd_create shmget msgget mknod mknodat
"""
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 13
LANDLOCK_CREATE, LANDLOCK_RESTRICT, NO_NEW_PRIVILEGES = 444, 446, 38


class Guards(NamedTuple):
    """What holds a graph in.

    Parameters:
        held: Guards that are in place.
        missing: What this system cannot keep from it.
    """

    held: list[str]
    missing: list[str]


def lock(memory: int) -> Guards:
    """Lock this process in: from here on it opens nothing.

    Parameters:
        memory: Bytes that it may ever take beside what it has.
    """
    held: list[str] = []
    missing: list[str] = []
    limits, calls = _limits(memory), _seccomp()
    files = _landlock()  # last: the others read files
    (held if files or calls else missing).append("files")
    (held if calls else missing).append("network")
    (held if calls else missing).append("other programs")
    (held if limits else missing).append("memory and time without limit")
    return Guards(held, missing)


def _landlock() -> bool:
    """Whether the kernel closed the file system, and with it TCP where it can."""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
    if version < 1 or libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    # The rights that each version knows; all of them are refused.
    files = {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)
    asked = [(1 << files) - 1, 3 if version >= 4 else 0, 3 if version >= 6 else 0]
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = struct.pack("<3Q", *asked)[:size]
    ruleset = libc.syscall(LANDLOCK_CREATE, rules, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False
    closed = bool(libc.syscall(LANDLOCK_RESTRICT, ruleset, 0) == 0)
    os.close(ruleset)
    return closed


def _seccomp() -> bool:
    """Whether the kernel refuses this process the system calls that it has no use for."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return False
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))
    if not rules.value:
        return False
    for name in REFUSED.split():
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # not every machine has all of them
            library.seccomp_rule_add(rules, ctypes.c_uint32(REFUSE), number, 0)
    loaded = bool(library.seccomp_load(rules) == 0)
    library.seccomp_release(rules)
    return loaded


def _limits(memory: int) -> bool:
    """Whether the system limits memory; files and their sizes too."""
    try:
        import resource
    except ImportError:
        return False
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
    if not sys.platform.startswith("linux"):
        return False  # others take the limit and do not hold it
    most = _size() + memory
    try:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (OSError, ValueError):
        return False
    return True


def _size() -> int:
    """Bytes of memory that are laid out for this process."""
    import resource

    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    return int(pages) * resource.getpagesize()


def allow(base: int, numbers: float, seconds: float) -> None:
    """Set how much one run may take: memory for so many numbers, and processor time."""
    try:
        import resource
    except ImportError:
        return
    with contextlib.suppress(OSError, ValueError):
        used = resource.getrusage(resource.RUSAGE_SELF)
        soft = int(used.ru_utime + used.ru_stime + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
        if base:
            hard = resource.getrlimit(resource.RLIMIT_AS)[1]
            resource.setrlimit(
                resource.RLIMIT_AS, (min(hard, base + SPARE + int(16 * numbers)), hard)
            )


def write(stream: BinaryIO, about: dict[str, Any], arrays: Sequence[Any] = ()) -> None:
    """A message: its length, a description as JSON, and the bytes of arrays."""
    parts = [np.ascontiguousarray(array) for array in arrays]
    forms = [[part.dtype.str, list(part.shape)] for part in parts]
    head = json.dumps({**about, "arrays": forms}).encode()
    stream.write(struct.pack("<I", len(head)) + head)
    for part in parts:
        stream.write(part.reshape(-1).view(np.uint8).data)
    stream.flush()


def read_exactly(stream: BinaryIO, size: int) -> bytearray:
    """So many bytes; EOFError where the other side ends before."""
    content = bytearray(size)
    view, at = memoryview(content), 0
    while at < size:
        count = stream.readinto(view[at:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        at += count
    return content


def read_header(stream: BinaryIO) -> dict[str, Any]:
    (size,) = struct.unpack("<I", read_exactly(stream, 4))
    if size > HEADER:
        raise EOFError
    about: dict[str, Any] = json.loads(bytes(read_exactly(stream, size)))
    return about


def read_arrays(stream: BinaryIO, forms: Sequence[Any]) -> list[Any]:
    return [
        np.frombuffer(
            read_exactly(stream, int(np.dtype(kind).itemsize * np.prod(shape, dtype=np.int64))),
            kind,
        ).reshape(shape)
        for kind, shape in forms
    ]


def main() -> None:
    """Take a graph, then batches, until the other side is gone."""
    stream_in, stream_out = sys.stdin.buffer, sys.stdout.buffer
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.load_model_format", "ONNX")
    start = read_header(stream_in)
    options.intra_op_num_threads = int(start["threads"])
    options.inter_op_num_threads = 1
    # The runtime reads what the processor can do when it is used first.
    onnxruntime.InferenceSession(bytes.fromhex(start["try"]), options)
    base = 0
    with contextlib.suppress(Exception):
        base = _size()
    guards = lock(int(start["memory"]))
    write(stream_out, {"held": guards.held, "missing": guards.missing})
    try:
        (graph,) = read_arrays(stream_in, read_header(stream_in)["arrays"])
        allow(base, float(start["numbers"]) + graph.size, float(start["seconds"]))
        run = onnxruntime.InferenceSession(
            graph.tobytes(), options, providers=["CPUExecutionProvider"]
        )
        del graph
        write(stream_out, {})
        while True:
            about = read_header(stream_in)
            arrays = read_arrays(stream_in, about["arrays"])
            allow(base, float(about["numbers"]), float(about["seconds"]))
            given = dict(zip(about["inputs"], arrays, strict=True))
            write(stream_out, {}, run.run(about["outputs"], given))
    except EOFError:
        return
    except BaseException as error:  # whatever the runtime says: it is told, and this process ends
        write(stream_out, {"error": (str(error).splitlines() or ["it failed"])[0][:200]})


if __name__ == "__main__":
    main()
