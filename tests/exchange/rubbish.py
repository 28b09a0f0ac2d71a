"""Malformed submissions: right ones, broken in every way that comes to mind."""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Iterator

import numpy as np
from world import World, headers

from privet.exchange.protocol.envelope import MAGIC

Request = tuple[bytes, dict[str, str]]
"""Body and headers."""

WORDS = [
    "",
    "0",
    "-1",
    "x" * 300,
    "../../etc/passwd",
    "%00",
    "\u00e9",
    "null",
    "NaN",
    "' OR 1=1 --",
    "<script>",
    "{}",
    "0" * 31,
    "G" * 32,
    "a" * 65,
]


def malformed(made: World, many: int, seed: int = 0) -> Iterator[Request]:
    """So many requests to submit, none of which is right."""
    dice = random.Random(seed)
    ways = [
        _cut,
        _flipped,
        _random,
        _header,
        _labels,
        _shape,
        _values,
        _length,
        _nested,
        _words,
        _empty,
        _picture,
    ]
    for k in range(many):
        name = secrets.token_hex(16)
        right = headers(made, name, "00" * 32)
        body, changed = ways[k % len(ways)](made, name, dice)
        yield body, {**right, **changed}


def _wrapped(made: World, about: object, data: bytes) -> bytes:
    header = json.dumps(about).encode() if not isinstance(about, bytes) else about
    return MAGIC + len(header).to_bytes(4, "little") + header + data


def _about(made: World, name: str) -> dict[str, object]:
    size = made.manifest.expect.max_numbers
    return {
        "campaign": made.id,
        "release": made.manifest.release.card,
        "submission": name,
        "shape": [size],
        "dtype": "float32",
        "labels": {},
    }


def _data(made: World) -> bytes:
    return made.record().tobytes()


def _cut(made: World, name: str, dice: random.Random) -> Request:
    body = made.plain(name, made.record())
    return body[: dice.randrange(len(body))], {}


def _flipped(made: World, name: str, dice: random.Random) -> Request:
    """A byte of the frame or of the keys; one of the numbers could make another right record."""
    body = bytearray(made.plain(name, made.record()))
    body[dice.randrange(200)] ^= 1 << dice.randrange(8)
    return bytes(body), {}


def _random(made: World, name: str, dice: random.Random) -> Request:
    """Of odd lengths: random bytes as long as a sealed record cannot be told from one by anybody
    but its owner."""
    return dice.randbytes(dice.randrange(2000) | 1), {}


def _header(made: World, name: str, dice: random.Random) -> Request:
    about = _about(made, name)
    key = dice.choice(sorted(about))
    if dice.random() < 0.3:
        del about[key]
    else:
        about[key] = dice.choice([None, [], {}, "x", -1, 1e300, [[[]]], ["a"], True])
        if key == "labels" and about[key] == {}:
            about[key] = {"beard": "yes"}
    return _wrapped(made, about, _data(made)), {}


def _labels(made: World, name: str, dice: random.Random) -> Request:
    wrong: list[object] = [
        {"beard": "yes"},
        {"smiling": "perhaps"},
        {"age": "old"},
        {"smiling": ["yes"]},
        {"x": 1},
        {"age": True},
        {"": None},
    ]
    return _wrapped(made, {**_about(made, name), "labels": dice.choice(wrong)}, _data(made)), {}


def _shape(made: World, name: str, dice: random.Random) -> Request:
    wrong: list[object] = [
        [0],
        [-1],
        [2**31],
        [2**62, 2**62],
        [1.5],
        [True],
        [16, 1],
        [],
        [1] * 5,
        "16",
        [2**24, 2**24],
    ]
    return _wrapped(made, {**_about(made, name), "shape": dice.choice(wrong)}, _data(made)), {}


def _values(made: World, name: str, dice: random.Random) -> Request:
    z = made.record().ravel()
    z[dice.randrange(z.size)] = dice.choice(
        [np.nan, np.inf, -np.inf, 1e30, -1e30, 100.0, 1e-9, 0.123456789]
    )
    return made.plain(name, z), {}


def _length(made: World, name: str, dice: random.Random) -> Request:
    body = bytearray(made.plain(name, made.record()))
    body[len(MAGIC) : len(MAGIC) + 4] = dice.choice(
        [0, 1, 2**31, 2**32 - 1, 8192, 100_000]
    ).to_bytes(4, "little")
    return bytes(body), {}


def _nested(made: World, name: str, dice: random.Random) -> Request:
    deep = dice.choice(
        [
            b"[" * 8000,
            b'{"a":' * 1500,
            b"\xff\xfe" * 500,
            b"1" * 8000,
            b'{"campaign":"' + b"\\ud800" * 100 + b'"}',
        ]
    )
    return _wrapped(made, deep, _data(made)), {}


def _words(made: World, name: str, dice: random.Random) -> Request:
    which = dice.choice(
        [
            "idempotency-key",
            "privet-release",
            "privet-withdraw",
            "privet-person",
            "content-type",
            "content-encoding",
        ]
    )
    word = dice.choice(WORDS)
    if which == "content-encoding":
        word = dice.choice(["gzip", "x", "gzip, gzip"])
    return made.plain(name, made.record()), {
        which: word.encode("latin-1", "ignore").decode("latin-1")
    }


def _empty(made: World, name: str, dice: random.Random) -> Request:
    return (
        dice.choice(
            [
                b"",
                MAGIC,
                b"\0" * 600,
                b"null",
                b"{}",
                b"\x1f\x8b" + dice.randbytes(500),
                b"PK\x03\x04" + dice.randbytes(9),
            ]
        ),
        {},
    )


def _picture(made: World, name: str, dice: random.Random) -> Request:
    """Raw records in a right envelope."""
    size = made.manifest.expect.max_numbers
    raw = np.array([dice.randrange(256) for _ in range(size)], dtype=np.float32)
    return made.plain(name, dice.choice([raw, raw / 255, raw / 127.5 - 1]).astype(np.float32)), {}
