"""The collector: what it answers to participants and to owners. One sentence where it refuses, and
nothing stored.

Participants need no account: a link, a release that their own machine checks, and a secret of their
own that withdraws what they sent.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from privet.core.errors import PrivetError
from privet.core.version import __version__
from privet.exchange.collector import owner_routes, participant_routes
from privet.exchange.collector.blobs import Blob, Full, Missing
from privet.exchange.collector.collector import Collector
from privet.exchange.collector.commits import Refused
from privet.exchange.collector.limits import REPORT_POLICY, Guard
from privet.exchange.collector.retention import EVERY, tidy
from privet.exchange.collector.store import PARTS
from privet.exchange.protocol import manifest as manifests

BUILD = "There is a page for this too, once the collector's operator has built it with  make web.\n"


def create_app(collector: Collector) -> FastAPI:
    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(collector.start)
        rounds = asyncio.create_task(_rounds(collector))
        try:
            yield
        finally:
            rounds.cancel()
            with suppress(asyncio.CancelledError):
                await rounds
            await run_in_threadpool(collector.stop)

    app = FastAPI(
        title="Privet collector",
        version=__version__,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        description="Takes records that a release has let through, sealed to their campaign's owner, and lets participants take them back.",
    )
    app.include_router(participant_routes.router(collector), prefix="/v1", tags=["participants"])
    app.include_router(owner_routes.router(collector), prefix="/v1", tags=["owners"])
    _watched(app, collector)
    _pages(app, collector.pages)
    _report(app, collector)
    _errors(app, collector)
    app.add_middleware(Guard, limits=collector.limits, watch=collector.watch)
    return app


async def _rounds(collector: Collector) -> None:
    while True:
        try:
            await run_in_threadpool(tidy, collector.store, collector.blobs, collector.watch)
        except Exception as error:  # the database may be away for a while; the next round is soon
            collector.watch.say("tidy failed", error=type(error).__name__)
        await asyncio.sleep(EVERY)


def _watched(app: FastAPI, collector: Collector) -> None:
    @app.get(
        "/healthz",
        tags=["operation"],
        responses={503: {"description": "The database or the blobs cannot be used"}},
    )
    def healthz() -> Response:
        """Whether records can be stored now."""
        state = {"database": collector.store.alive(), "blobs": collector.blobs.ready()}
        return JSONResponse(state, 200 if all(state.values()) else 503)

    @app.get(
        "/metrics",
        tags=["operation"],
        response_class=PlainTextResponse,
        responses={401: {}, 403: {}},
    )
    def metrics(request: Request) -> Response:
        """Counters for Prometheus."""
        if not collector.open_metrics:
            collector.bearer(request, "operator")
        return PlainTextResponse(collector.watch.metrics(), media_type="text/plain; version=0.0.4")


def _pages(app: FastAPI, pages: Path) -> None:
    """Pages built into the package: participant.html for a link, collector.html for owners, the
    rest under /static/."""
    if (pages / "static").is_dir():
        app.mount("/static", StaticFiles(directory=pages / "static"), name="static")

    def page(name: str, instead: str) -> Response:
        return (
            FileResponse(pages / name) if (pages / name).is_file() else PlainTextResponse(instead)
        )

    @app.get("/c/{campaign}", include_in_schema=False)
    def participant(request: Request, campaign: str) -> Response:
        return page(
            "participant.html",
            f"Take part with:  privet share {request.base_url}c/{campaign[:32]} FILES...\n{BUILD}",
        )

    @app.get("/collector", include_in_schema=False)
    def owner() -> Response:
        return page("collector.html", f"See your campaigns with:  privet campaign list\n{BUILD}")

    @app.get("/sw.js", include_in_schema=False)
    def worker() -> Response:
        """A service worker rules the paths below its own, so it lies at the root."""
        return page("static/sw.js", "")


def _report(app: FastAPI, collector: Collector) -> None:
    @app.get("/c/{campaign}/report", include_in_schema=False)
    def report(campaign: str) -> Response:
        """The audit's report that the owner attached."""
        manifest = collector.manifest(campaign) if re.fullmatch(manifests.ID, campaign) else None
        if manifest is None or manifest.release.report is None:
            raise Refused(404, "There is no report.")
        content = collector.blobs.get(Blob(PARTS, manifest.release.report))
        return Response(
            content,
            media_type="text/html; charset=utf-8",
            headers={"content-security-policy": REPORT_POLICY},
        )


def _errors(app: FastAPI, collector: Collector) -> None:
    def say(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
        return JSONResponse({"error": sentence}, status, headers)

    @app.exception_handler(Refused)
    async def refused(_request: Request, error: Refused) -> JSONResponse:
        headers = {"retry-after": "2"} if error.status in (503, 507) else {}
        if error.status == 401:
            headers["www-authenticate"] = "Bearer"
        return say(error.status, error.sentence, headers)

    @app.exception_handler(PrivetError)
    async def wrong(_request: Request, error: PrivetError) -> JSONResponse:
        return say(422, str(error))

    @app.exception_handler(HTTPException)
    async def http(_request: Request, error: HTTPException) -> JSONResponse:
        return say(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        # What was sent is not repeated: an answer is not a place for somebody's data.
        first = error.errors()[0]
        return say(422, f"{' '.join(str(step) for step in first['loc'])}: {first['msg']}"[:300])

    @app.exception_handler(SQLAlchemyError)
    async def database(_request: Request, error: SQLAlchemyError) -> JSONResponse:
        collector.watch.say("database", error=type(error).__name__)
        return say(503, "The database cannot be reached: try again later.", {"retry-after": "5"})

    @app.exception_handler(Full)
    async def full(_request: Request, _error: Full) -> JSONResponse:
        return say(507, "The collector has no room left.", {"retry-after": "60"})

    @app.exception_handler(Missing)
    async def missing(_request: Request, _error: Missing) -> JSONResponse:
        return say(404, "It is not there.")
