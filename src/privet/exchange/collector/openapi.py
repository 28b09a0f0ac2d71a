"""Pieces of the OpenAPI document that several routes share."""

from __future__ import annotations

from typing import Any

from privet.exchange.protocol.messages import Problem

BYTES = "application/octet-stream"
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
BINARY_ANSWER: dict[int | str, dict[str, Any]] = {200: {"content": {BYTES: BINARY}}}


def binary_body(*media_types: str) -> dict[str, Any]:
    """The description of a request whose body is bytes."""
    content = dict.fromkeys(media_types, BINARY)
    return {"requestBody": {"required": True, "content": content}}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals that a route may answer with, beside those that every route may."""
    return {status: {"model": Problem} for status in (*statuses, 403, 408, 413, 415, 422, 429, 503)}
