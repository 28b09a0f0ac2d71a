"""The collector as a web application: what it answers to participants, owners and operators. One
sentence where it refuses, and nothing stored.

Participants need no account: a link, a release that their own machine checks, and a secret of their
own that withdraws what they sent.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from privet.core.errors import PrivetError
from privet.core.version import __version__
from privet.exchange.collector import (
    answer_headers,
    governance_routes,
    owner_routes,
    participant_routes,
)
from privet.exchange.collector.blobs import PARTS, Blob, Full, Missing
from privet.exchange.collector.collector import Collector, ThisCollector
from privet.exchange.collector.commits import Refused
from privet.exchange.collector.limits import Guard
from privet.exchange.collector.retention import CONFIRMED, ROUND_SECONDS
from privet.exchange.protocol.manifest import ID, first_problem

BUILD = "There is a page for this too, once the collector's operator has built it with  make web.\n"

# Seconds between looks at whether an operator has confirmed something.
LOOK_SECONDS = 5.0

operation = APIRouter(tags=["operation"])
pages = APIRouter(include_in_schema=False)


def create_app(collector: Collector) -> FastAPI:
    """The application of one collector, which it starts and stops."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(collector.start)
        tidying = asyncio.create_task(_tidy_for_ever(collector))
        try:
            yield
        finally:
            tidying.cancel()
            with suppress(asyncio.CancelledError):
                await tidying
            await run_in_threadpool(collector.stop)

    app = FastAPI(
        title="Privet collector",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        description=(
            "Takes records that a release has let through, sealed to their campaign's "
            "owner, and lets participants take them back."
        ),
    )
    app.state.collector = collector
    app.include_router(participant_routes.routes, prefix="/v1", tags=["participants"])
    app.include_router(owner_routes.routes, prefix="/v1", tags=["owners"])
    app.include_router(governance_routes.routes, prefix="/v1", tags=["governance"])
    app.include_router(operation)
    if (collector.pages / "static").is_dir():
        app.mount("/static", StaticFiles(directory=collector.pages / "static"), name="static")
    app.include_router(pages)
    for kind in ERRORS:
        app.add_exception_handler(kind, _refusal)
    app.add_middleware(
        Guard,
        limits=collector.limits,
        monitor=collector.monitor,
        is_known=collector.is_known,
    )
    return app


async def _tidy_for_ever(collector: Collector) -> None:
    """A round now and then, and at once when an operator has confirmed what waits; in between the
    right to write is looked after."""
    last = -math.inf
    while True:
        try:
            if not await run_in_threadpool(collector.database.writer.keep):
                collector.monitor.log("another server is the writer")
            asked = await run_in_threadpool(collector.database.state, CONFIRMED)
            if asked is not None or time.monotonic() - last > ROUND_SECONDS:
                last = time.monotonic()
                await run_in_threadpool(collector.tidy)
        except Exception as error:  # the database may be away for a while; the next round is soon
            collector.monitor.log("tidy failed", error=type(error).__name__)
        await asyncio.sleep(LOOK_SECONDS)


@operation.get(
    "/healthz",
    responses={503: {"description": "Records cannot be stored, or some that were stored are gone"}},
)
def healthz(collector: ThisCollector) -> Response:
    """Whether records can be stored now, and those that were stored are there."""
    state = collector.health()
    return JSONResponse(state, 200 if all(state.values()) else 503)


@operation.get("/metrics", response_class=PlainTextResponse, responses={401: {}, 403: {}})
def metrics(request: Request, collector: ThisCollector) -> Response:
    """Counters for Prometheus."""
    if not collector.open_metrics:
        collector.bearer(request, "operator")
    return PlainTextResponse(collector.monitor.metrics(), media_type="text/plain; version=0.0.4")


@pages.get("/c/{campaign}")
def participant(request: Request, collector: ThisCollector, campaign: str) -> Response:
    command = f"privet share {request.base_url}c/{campaign[:32]} FILES..."
    return _page(collector, "participant.html", f"Take part with:  {command}\n{BUILD}")


@pages.get("/collector")
def owner(collector: ThisCollector) -> Response:
    instead = f"See your campaigns with:  privet campaign list\n{BUILD}"
    return _page(collector, "collector.html", instead)


@pages.get("/sw.js")
def worker(collector: ThisCollector) -> Response:
    """A service worker rules the paths below its own, so it lies at the root."""
    return _page(collector, "static/sw.js", "")


def _page(collector: Collector, name: str, instead: str) -> Response:
    """A page that was built into the package, or a sentence."""
    path = collector.pages / name
    return FileResponse(path) if path.is_file() else PlainTextResponse(instead)


@pages.get("/c/{campaign}/report")
def report(collector: ThisCollector, campaign: str) -> Response:
    """The audit's report that the owner attached."""
    manifest = collector.manifest(campaign) if re.fullmatch(ID, campaign) else None
    if manifest is None or manifest.release.report is None:
        raise Refused(404, "There is no report.")
    content = collector.blobs.get(Blob(PARTS, manifest.release.report))
    return Response(content, media_type="text/html; charset=utf-8", headers=answer_headers.REPORT)


# What the routes may raise and an answer is made of.
ERRORS = (
    Refused,
    PrivetError,
    HTTPException,
    RequestValidationError,
    SQLAlchemyError,
    Full,
    Missing,
)


async def _refusal(request: Request, error: Exception) -> JSONResponse:
    headers: dict[str, str] = {}
    match error:
        case Refused(status, sentence):
            if status in (503, 507):
                headers["retry-after"] = "2"
            if status == 401:
                headers["www-authenticate"] = "Bearer"
        case HTTPException():
            status, sentence = error.status_code, str(error.detail)
            headers.update(error.headers or {})
        case RequestValidationError():
            status, sentence = 422, first_problem(error.errors())
        case SQLAlchemyError():
            request.app.state.collector.monitor.log("database", error=type(error).__name__)
            status, sentence = 503, "The database cannot be reached: try again later."
            headers["retry-after"] = "5"
        case Full():
            status, sentence = 507, "The collector has no room left."
            headers["retry-after"] = "60"
        case Missing():
            request.app.state.collector.monitor.log("lost", blob=True)
            status, sentence = 500, "The collector has lost this: its operator can verify it."
        case _:
            status, sentence = 422, str(error)
    return JSONResponse({"error": sentence}, status, headers)
