"""No more is read of an answer than it may have: a small packed one cannot fill the memory."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Iterator

import httpx
import pytest

from privet.core.errors import PrivetError
from privet.exchange.protocol import client as protocol
from privet.exchange.protocol.client import Client


class Answers(httpx.BaseTransport):
    """Gives the same bytes to every request, in pieces."""

    def __init__(self, content: bytes, encoding: str | None = None) -> None:
        self.content, self.encoding, self.read = content, encoding, 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        headers = {} if self.encoding is None else {"content-encoding": self.encoding}
        return httpx.Response(200, headers=headers, stream=Pieces(self))


class Pieces(httpx.SyncByteStream):
    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self.answers.content), 1 << 16):
            self.answers.read = start
            yield self.answers.content[start : start + (1 << 16)]


def ask(answers: Answers, most: int) -> bytes:
    with Client("https://example.org", transport=answers) as client:
        return client.request("GET", "/v1/parts/x", most).content


def test_a_packed_answer_unpacks_to_no_more_than_it_may() -> None:
    """200 MB in 200 kB; with 8 MB allowed, not much more is ever held."""
    bomb = gzip.compress(b"\0" * (200 << 20))
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    with pytest.raises(PrivetError, match="longer than 8 MB"):
        ask(Answers(bomb, "gzip"), 8 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 << 20


def test_a_bomb_in_a_bomb_is_not_unpacked() -> None:
    content = gzip.compress(gzip.compress(b"\0" * (20 << 20)))
    with pytest.raises(PrivetError, match="not asked for"):
        ask(Answers(content, "gzip, gzip"), 8 << 20)


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd"])
def test_other_ways_to_pack_are_refused(encoding: str) -> None:
    with pytest.raises(PrivetError, match="not asked for"):
        ask(Answers(b"anything", encoding), 1 << 20)


def test_a_plain_answer_is_read_no_further_than_it_may() -> None:
    answers = Answers(b"\0" * (64 << 20))
    with pytest.raises(PrivetError, match="longer than 1 MB"):
        ask(answers, 1 << 20)
    assert answers.read < 2 << 20


def test_what_fits_comes_whole() -> None:
    content = bytes(range(256)) * 4096
    assert ask(Answers(content), 1 << 20) == content
    assert ask(Answers(gzip.compress(content), "gzip"), 1 << 20) == content
    with pytest.raises(PrivetError, match="cannot be unpacked"):
        ask(Answers(b"no gzip", "gzip"), 1 << 20)


def test_an_answer_that_drips_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "ANSWER_SECONDS", -1.0)
    with pytest.raises(PrivetError, match="takes too long"):
        ask(Answers(b"\0" * 10), 1 << 20)
