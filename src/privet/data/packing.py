"""Many pictures: decoded once, on every core, into one array on disk that is then mapped into memory.

Neither all encoded nor all decoded pictures are ever held: a few chunks are in flight, the finished ones are written in
order, and later readers touch only the pages they need. Threads are enough, because Pillow decodes outside the
interpreter's lock.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from privet.data.cache import digest, find_array, keep_array
from privet.data.dataset import Array
from privet.data.images import Size, read_mask, read_picture
from privet.errors import PrivetError
from privet.progress import bar

_VERSION = 1
"""Part of every key: raise it when the same bytes come to decode to other pixels."""
_CHUNK = 64
_CHUNK_BYTES = 8 << 20


class Picture(NamedTuple):
    name: str
    """What to call it in an error."""
    source: Path | bytes


def pack(
    pictures: Callable[[], Iterator[Picture]],
    n: int,
    content: str,
    size: Size | None = None,
    mask: bool = False,
    progress: bool = True,
) -> Array:
    """The pictures as one memory-mapped uint8 array (n, channels, height, width).

    `content` is the digest of what `pictures()` will give: where an array made from it is in the cache, nothing is decoded.
    """
    key = digest("pictures", _VERSION, content, size, mask)
    if (found := find_array(key, n)) is not None:
        return found
    rest = pictures()
    if (first := next(rest, None)) is None:
        raise PrivetError("There is no picture to read.")
    shape = _decode(first, size, mask).shape
    with (
        bar("Decoding masks" if mask else "Decoding pictures", n, progress and n > 2000) as tick,
        keep_array(key, (n, *shape)) as file,
    ):
        done = 0
        for array in _in_order(chain([first], rest), shape, size, mask):
            file.write(array.data)
            done += len(array)
            tick(done)
    if (made := find_array(key, n)) is None:
        raise PrivetError("The decoded pictures were removed from the cache while they were made: run it again.")
    return made


def _in_order(pictures: Iterable[Picture], shape: tuple[int, ...], size: Size | None, mask: bool) -> Iterator[Array]:
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def decode(chunk: list[Picture]) -> Array:
        out = np.empty((len(chunk), *shape), dtype=np.uint8)
        for i, picture in enumerate(chunk):
            array = _decode(picture, size, mask)
            if array.shape != shape:
                raise PrivetError(
                    f"{picture.name} is {array.shape[1]} x {array.shape[2]} pixels and the first one {shape[1]} x {shape[2]}: "
                    f"bring all to one size with  size = [height, width]  in a --schema file."
                )
            out[i] = array
        return out

    flying: deque[Future[Array]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for chunk in _chunks(pictures, int(np.prod(shape))):
                flying.append(pool.submit(decode, chunk))
                if len(flying) > 2 * workers:
                    yield flying.popleft().result()
            while flying:
                yield flying.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _chunks(pictures: Iterable[Picture], decoded: int) -> Iterator[list[Picture]]:
    """Groups that are worth a hand-over between threads and small in memory, whether encoded or decoded."""
    chunk: list[Picture] = []
    weight = 0
    for picture in pictures:
        chunk.append(picture)
        weight += decoded + (len(picture.source) if isinstance(picture.source, bytes) else 0)
        if len(chunk) == _CHUNK or weight > _CHUNK_BYTES:
            yield chunk
            chunk, weight = [], 0
    if chunk:
        yield chunk


def _decode(picture: Picture, size: Size | None, mask: bool) -> Array:
    if mask:
        return read_mask(picture.source, size, picture.name)
    return read_picture(picture.source, size, name=picture.name)
