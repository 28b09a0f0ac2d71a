"""Connecting to a Ray cluster, in bounded time and with one sentence where it fails."""

from __future__ import annotations

import importlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError, first_line, missing_extra
from privet.core.files import write_bytes

# Seconds for a cluster to answer, for which Ray itself would wait for minutes, and for something
# to answer at the address at all.
CLUSTER_SECONDS = 30.0
SOCKET_SECONDS = 5.0


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """The package ray, connected to the cluster at `address`: auto, or HOST:PORT. A connection that
    is there already is used as it is."""
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        raise missing_extra("ray", "ray", "--ray") from None
    if ray.is_initialized():
        yield ray
        return
    _connect(ray, address, _host(address))
    try:
        yield ray
    finally:
        ray.shutdown()


def _host(address: str) -> str:
    """The host of an address at which somebody listens."""
    if address == "auto":
        return address
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536 or "/" in host:
        raise PrivetError(
            f"--ray takes auto, or HOST:PORT as  ray start --head  prints it, not '{address}'."
        )
    try:
        socket.create_connection((host, int(port)), timeout=SOCKET_SECONDS).close()
    except OSError:
        raise PrivetError(
            f"Nobody answers at {address}: start a cluster there with  ray start --head, or "
            "correct --ray."
        ) from None
    return host


def _connect(ray: Any, address: str, host: str) -> None:
    # A cluster whose nodes have loopback addresses, as in tests, is not found by the address that
    # the machine has outside.
    node = {"_node_ip_address": host} if host.startswith("127.") and host != "127.0.0.1" else {}
    errors: list[BaseException] = []

    def connect() -> None:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **node)
        except BaseException as error:  # also SystemExit, which Ray raises where it gives up
            errors.append(error)

    # In a thread, because Ray cannot be told how long to wait.
    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(CLUSTER_SECONDS)
    if thread.is_alive():
        raise PrivetError(
            f"Something answers at {address}, but not as a Ray cluster of version "
            f"{ray.__version__} does."
        )
    if errors and address == "auto":
        raise PrivetError(
            "There is no Ray cluster on this machine: start one with  ray start --head, or give "
            "--ray HOST:PORT."
        )
    if errors:
        raise PrivetError(f"The Ray cluster at {address} cannot be used ({first_line(errors[0])}).")


def read_files(folder: Path) -> dict[str, bytes]:
    """The files under a folder by their paths in it, without hidden ones."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in paths
        if not path.name.startswith(".")
    }


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write files under a folder, each whole or not at all, in the order of `files`."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)
