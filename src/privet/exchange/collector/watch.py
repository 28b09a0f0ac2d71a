"""What a server says about itself: one line of JSON per event, and counters for Prometheus. Never a
payload, a token or an address."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Watch:
    def __init__(self, to: TextIO | None = None, quiet: bool = False) -> None:
        self._to, self._quiet, self._lock = to, quiet, threading.Lock()
        self.registry = CollectorRegistry()
        make: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter(
            "privet_requests",
            "Requests, by route and status",
            ["method", "route", "status"],
            **make,
        )
        self.seconds = Histogram(
            "privet_request_seconds", "Time to answer", ["route"], buckets=SECONDS, **make
        )
        self.stored = Counter("privet_records_stored", "Records stored", **make)
        self.gone = Counter("privet_records_gone", "Records deleted, by reason", ["reason"], **make)
        self.bytes = Counter("privet_bytes_stored", "Bytes of records stored", **make)
        self.batch = Histogram(
            "privet_batch_size",
            "Records committed together",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
            **make,
        )
        self.failed = Counter(
            "privet_failures", "Batches or blobs that could not be stored", ["kind"], **make
        )
        self.orphans = Counter("privet_orphans_swept", "Blobs without a row, removed", **make)
        self.up = Gauge("privet_start_time_seconds", "When the server started", **make)
        self.up.set(time.time())

    def say(self, event: str, **about: Any) -> None:
        if self._quiet and event == "request":
            return
        line = json.dumps(
            {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": event, **about},
            ensure_ascii=True,
        )
        with self._lock:
            (self._to or sys.stderr).write(line + "\n")

    def request(self, method: str, route: str, status: int, seconds: float, size: int) -> None:
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)
        self.say(
            "request",
            method=method,
            route=route,
            status=status,
            ms=round(1000 * seconds, 2),
            bytes=size,
        )

    def heard(self) -> Callable[[str, dict[str, Any]], None]:
        """For `Commits`."""

        def hear(event: str, about: dict[str, Any]) -> None:
            if event == "batch":
                self.batch.observe(about["size"])
            else:
                self.failed.labels(event).inc()
                self.say(event, **about)

        return hear

    def metrics(self) -> bytes:
        return bytes(generate_latest(self.registry))
