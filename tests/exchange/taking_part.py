"""A participant at a collector in this process: what goes over the wire can be seen and changed."""

from __future__ import annotations

from typing import Any

import httpx

from privet.exchange.owner.campaigns import Terms
from privet.exchange.protocol.client import Client

URL = "http://127.0.0.1:1"
TERMS = Terms("Smiles", "To learn smiles.", "Lab X", ["smiling=yes,no"], records_per_person=40)


class Wire(httpx.BaseTransport):
    """What goes over the network; `answer` may put something else in the place of an answer, before
    or after the collector has seen the request."""

    def __init__(self, inner: httpx.BaseTransport) -> None:
        self.inner = inner
        self.before: Any = None
        self.after: Any = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.before is not None and (instead := self.before(request)) is not None:
            return instead
        answer = self.inner.handle_request(request)
        if self.after is not None and (instead := self.after(request, answer)) is not None:
            return instead
        return answer


def through(wire: Wire) -> Client:
    return Client(URL, transport=wire)
