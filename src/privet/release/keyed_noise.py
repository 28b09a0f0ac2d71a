"""Noise as a function of a secret key and the record: a record that is released again gets the
numbers it had before, so nobody can average the noise away.

The random words of a record are the output of a pseudo-random function of

    key        32 secret bytes of one campaign, which stay where the data is
    graph      SHA-256 of the release's graph
    campaign   its name
    id         what tells the record from others with the same content; may be empty
    content    the encoded record, with its type and shape

BLAKE2b (RFC 7693) with the key is that function. Both sides have it without another package:
Python in `hashlib`, the participant's page in libsodium, which it needs for sealing anyway. With
m = tag | graph | campaign | id | type and shape | content, where all but the first two and the
last are preceded by their length in four bytes,

    block 0        BLAKE2b-512(key, m | 0)
    block i > 0    BLAKE2b-512(BLAKE2b-512(key, m | 1), i in eight bytes)

so that a record of a few numbers costs one hash. A block is eight words of 64 bits, all numbers
are little-endian. Word 0 decides the record's place in a file that is shuffled, and the words from
1 on become noise as in `privet.release.noise`. `web/static/noise.js` computes the same;
`tests/release/keyed_noise.json` has vectors for both.

Whoever has the key can take the noise off what was released. Destroy it when a campaign is over:
`privet forget`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from privet.data.dataset import Array
from privet.data.schema import PAD
from privet.release.noise import PIECE, Noise, quantiles

TAG = b"privet noise 1\0\0"
# Begins the messages of `KeyedNoise.mark`, so that no mark is a word of noise.
MARK_TAG = b"privet mark 1\0\0\0"
KEY_BYTES = 32
# Words of 64 bits in a block.
WORDS = 8


class KeyedNoise:
    """Draws the noise of records from a key.

    Parameters:
        key: 32 secret bytes.
        graph: SHA-256 of the release's graph, in hexadecimal.
        campaign: The name of the campaign; another one gives other noise.

    >>> drawn = KeyedNoise(bytes(32), "00" * 32, "survey")
    >>> rows = np.zeros((2, 3), np.float32)
    >>> noise, places = drawn.draw(Noise("gaussian", (2,), 1.0), rows, 0, ["a", "b"])
    >>> again, _ = drawn.draw(Noise("gaussian", (2,), 1.0), rows[:1], 0, ["a"])
    >>> bool((noise[0] == again[0]).all()), bool((noise[0] == noise[1]).any())
    (True, False)
    """

    def __init__(self, key: bytes, graph: str, campaign: str) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes")
        self._given = key, graph, campaign
        self._prefix = hashlib.blake2b(
            TAG + bytes.fromhex(graph) + _sized(campaign.encode()), key=key
        )

    def __reduce__(self) -> tuple[type[KeyedNoise], tuple[bytes, str, str]]:
        """For copies on other machines, such as those of a Ray cluster: the state of a hash cannot
        be copied there."""
        return KeyedNoise, self._given

    def draw(
        self, law: Noise | None, x: Array, start: int = 0, ids: Sequence[str] | None = None
    ) -> tuple[Array | None, Array]:
        """Unit noise of encoded records, and a word for each that decides its place among others.

        Parameters:
            law: Of the noise; None where the release adds none, and then none is drawn.
            x: Encoded records. The padding of a text does not count as its content.
            start: The number of the first record in the whole file.
            ids: One for each; without them, a record's number is its id.
        """
        ids = [str(start + k) for k in range(len(x))] if ids is None else ids
        is_text = x.dtype == np.int64
        lengths = (x != PAD).sum(1) if is_text else np.zeros(len(x), np.int64)
        longest = int(lengths.max(initial=0))
        shape = () if law is None else tuple(longest if s is None else s for s in law.shape)
        noise = None if law is None else np.zeros((len(x), *shape), np.float32)
        places = np.empty(len(x), np.uint64)
        # Numbers in between are four times as large as what they become: no more at once than fits
        # a processor's cache. Texts come one by one, since each has its own length.
        step = 1 if is_text else max(1, PIECE // max(1, int(np.prod(shape))))
        for at in range(0, len(x), step):
            rows, length = slice(at, min(at + step, len(x))), int(lengths[at])
            contents = x[rows, :length] if is_text else x[rows]
            if law is None or noise is None:
                places[rows] = self.words(contents, ids[rows], 1)[:, 0]
                continue
            filled = noise[(rows, *(slice(length if s is None else s) for s in law.shape))]
            words = self.words(contents, ids[rows], 1 + filled[0].size)
            places[rows] = words[:, 0]
            filled[...] = quantiles(law.law, words[:, 1:]).reshape(filled.shape)
        return noise, places

    def mark(self, text: str) -> str:
        """32 letters by which whoever has the key, and nobody else, sees whether a text is the same
        as before."""
        key, graph, campaign = self._given
        message = MARK_TAG + bytes.fromhex(graph) + _sized(campaign.encode()) + text.encode()
        return hashlib.blake2b(message, key=key, digest_size=16).hexdigest()

    def words(self, x: Array, ids: Sequence[str], count: int) -> Array:
        """The first `count` random words of each of some records of one shape."""
        kind = _sized(f"{x.dtype.name} {','.join(map(str, x.shape[1:]))}".encode())
        contents = memoryview(x.astype(x.dtype.newbyteorder("<"), copy=False).tobytes())
        size = len(contents) // max(len(x), 1)
        more = [number.to_bytes(8, "little") for number in range(1, -(-count // WORDS))]
        blocks: list[bytes] = []
        add, copy, blake2b = blocks.append, self._prefix.copy, hashlib.blake2b
        # Some hundred nanoseconds a hash, most of them the hash's own: the same in numpy, all
        # records at once, takes longer.
        for k, identity in enumerate(ids):
            state, content = copy(), contents[k * size : (k + 1) * size]
            name = identity.encode()
            message = b"".join((len(name).to_bytes(4, "little"), name, kind, content))
            if not more:
                state.update(message + b"\0")
                add(state.digest())
                continue
            state.update(message)
            seed = state.copy()
            state.update(b"\0")
            add(state.digest())
            seed.update(b"\1")
            inner = blake2b(key=seed.digest()).copy
            for number in more:
                block = inner()
                block.update(number)
                add(block.digest())
        words = np.frombuffer(b"".join(blocks), dtype="<u8").astype(np.uint64, copy=False)
        return words.reshape(len(x), -1)[:, :count]


def _sized(content: bytes) -> bytes:
    """A part of a message, after its length: no two lists of parts give the same message."""
    return len(content).to_bytes(4, "little") + content
