"""Connecting to a Ray cluster, in bounded time and with one sentence where it fails."""

from __future__ import annotations

import importlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privet.core.errors import PrivetError, missing_extra

# Seconds for a cluster to answer; Ray itself would wait for minutes.
PATIENCE = 30.0
# Seconds for something to answer at the address at all.
KNOCK = 5.0


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """The package ray, connected to the cluster at `address`: auto, or HOST:PORT. A connection that
    is there already is used as it is."""
    ray = _package()
    if ray.is_initialized():
        yield ray
        return
    _reach(ray, address)
    try:
        yield ray
    finally:
        ray.shutdown()


def _package() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise missing_extra("ray", "ray", "--ray") from None


def _reach(ray: Any, address: str) -> None:
    host = address
    if address != "auto":
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536 or "/" in host:
            raise PrivetError(
                f"--ray takes auto, or HOST:PORT as  ray start --head  prints it, not '{address}'."
            )
        try:
            socket.create_connection((host, int(port)), timeout=KNOCK).close()
        except OSError:
            raise PrivetError(
                f"Nobody answers at {address}: start a cluster there with  ray start --head, or"
                " correct --ray."
            ) from None
    # A cluster whose nodes have loopback addresses, as in tests, is not found by the address that
    # the machine has outside.
    here = {"_node_ip_address": host} if host.startswith("127.") and host != "127.0.0.1" else {}
    failed: list[BaseException] = []

    def connect() -> None:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **here)
        except BaseException as error:  # also SystemExit, which Ray raises where it gives up
            failed.append(error)

    # In a thread, because Ray cannot be told how long to wait.
    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        raise PrivetError(
            f"Something answers at {address}, but not as a Ray cluster of version {ray.__version__}"
            " does."
        )
    if failed and address == "auto":
        raise PrivetError(
            "There is no Ray cluster on this machine: start one with  ray start --head, or give"
            " --ray HOST:PORT."
        ) from None
    if failed:
        said = (
            (str(failed[0]).strip() or type(failed[0]).__name__).splitlines()[0][:200].rstrip(".")
        )
        raise PrivetError(f"The Ray cluster at {address} cannot be used ({said}).") from None
