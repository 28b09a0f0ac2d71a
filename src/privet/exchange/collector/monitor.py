"""What a server says about itself: one line of JSON per event, and counters for Prometheus. Never a
payload, a token or an address."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from typing import Any, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from sqlalchemy.exc import SQLAlchemyError

from privet.core.errors import first_line

REQUEST_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Monitor:
    """The log and the counters of one server.

    Parameters:
        stream: Where lines are written; standard error unless another is given.
        quiet: Writes no line per request.
    """

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self._stream, self._quiet, self._lock = stream, quiet, threading.Lock()
        self.failed_at = -math.inf
        self.registry = CollectorRegistry()
        make: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter(
            "privet_requests",
            "Requests, by route and status",
            ["method", "route", "status"],
            **make,
        )
        self.seconds = Histogram(
            "privet_request_seconds", "Time to answer", ["route"], buckets=REQUEST_SECONDS, **make
        )
        self.stored = Counter("privet_records_stored", "Records stored", **make)
        self.gone = Counter("privet_records_gone", "Records deleted, by reason", ["reason"], **make)
        self.bytes = Counter("privet_bytes_stored", "Bytes of records stored", **make)
        self.batch = Histogram(
            "privet_batch_size", "Records committed together", buckets=BATCH_SIZES, **make
        )
        self.failures = Counter(
            "privet_failures", "Batches or blobs that could not be stored", ["kind"], **make
        )
        self.orphans = Counter("privet_orphans_swept", "Blobs without a row, set aside", **make)
        self.held = Gauge("privet_held", "Deletions that wait for an operator", **make)
        self.lost = Gauge("privet_records_lost", "Rows whose blob is not there", **make)
        started = Gauge("privet_start_time_seconds", "When the server started", **make)
        started.set(time.time())

    def log(self, event: str, **about: Any) -> None:
        """Write one line."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": at, "event": event, **about}, ensure_ascii=True)
        with self._lock:
            (self._stream or sys.stderr).write(line + "\n")

    def request(self, method: str, route: str, status: int, seconds: float, size: int) -> None:
        """Count a request that was answered."""
        self.requests.labels(method, route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)
        if not self._quiet:
            about = {"method": method, "route": route, "status": status, "bytes": size}
            self.log("request", **about, ms=round(1000 * seconds, 2))

    def failed(self, kind: str, error: Exception, **about: Any) -> None:
        """Count a failure to store. The log gets what the database itself says, which never quotes
        a statement's values."""
        reason = (
            error.orig if isinstance(error, SQLAlchemyError) and hasattr(error, "orig") else error
        )
        self.failures.labels(kind).inc()
        self.failed_at = time.monotonic()
        self.log(kind, error=type(error).__name__, detail=first_line(reason), **about)

    def metrics(self) -> bytes:
        """What Prometheus reads."""
        return bytes(generate_latest(self.registry))
