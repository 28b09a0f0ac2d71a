"""The headers of every answer: what a browser may do with it."""

from __future__ import annotations

API = {
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}
PAGE = {
    **API,
    "content-security-policy": (
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
        "img-src 'self' blob: data:; media-src 'self' blob:; connect-src 'self'; "
        "worker-src 'self'; frame-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(self), microphone=(), geolocation=()",
}
# Of an audit's report, which an owner wrote: it is shown, and can do nothing - no script, no
# request, no origin.
REPORT = {
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'self'; sandbox"
    )
}
BY_PATH = {"/v1/": API, "/static/": {**PAGE, "cache-control": "no-cache"}, "/": PAGE}
_ENCODED = {
    path: [(name.encode(), value.encode()) for name, value in headers.items()]
    for path, headers in BY_PATH.items()
}


def with_headers(headers: list[tuple[bytes, bytes]], path: str) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, and those that its path gets and that it does not have itself."""
    names = {name.lower() for name, _ in headers}
    kind = next((start for start in _ENCODED if path.startswith(start)), "/")
    return [*headers, *(header for header in _ENCODED[kind] if header[0] not in names)]
