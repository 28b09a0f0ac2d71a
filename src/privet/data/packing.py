"""Many pictures: decoded once, on every core, into one array on disk that is then mapped into
memory.

Neither all encoded nor all decoded pictures are ever held: a few chunks are in flight, every thread
writes a picture to its place as soon as it is decoded, and later readers touch only the pages they
need. Threads are enough, because Pillow decodes outside the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import BinaryIO, NamedTuple

import numpy as np

from privet.core.errors import PrivetError
from privet.core.parallel_map import cores, in_order
from privet.core.progress import bar
from privet.data.cache import digest, find_array, keep_array, send_on, write_at
from privet.data.dataset import Array
from privet.data.images import Size, read_mask, read_pixels

# Part of every key: raise it when the same bytes come to decode to other pixels, or these to lie in
# another order.
_VERSION = 2
_CHUNK = 64
_CHUNK_BYTES = 8 << 20


class Picture(NamedTuple):
    """One encoded picture, and what to call it where it is broken.

    Parameters:
        name: What to call it in an error.
        source: The path of a file, or what is in it.
    """

    name: str
    source: str | bytes


def pack(
    pictures: Callable[[], Iterator[Picture]],
    n: int,
    content: str,
    size: Size | None = None,
    mask: bool = False,
    progress: bool = True,
) -> Array:
    """The pictures as one memory-mapped uint8 array (n, channels, height, width).

    In the file a pixel's channels lie together, as they are decoded and as a network in
    channels_last takes them. `content` is the digest of what `pictures()` will give: where an array
    made from it is in the cache, nothing is decoded.
    """
    key = digest("pictures", _VERSION, content, size, mask)
    if (found := find_array(key, n)) is not None:
        return found.transpose(0, 3, 1, 2)
    rest = pictures()
    if (first := next(rest, None)) is None:
        raise PrivetError("There is no picture to read.")
    shape = _decode(first, size, mask).shape
    with (
        bar("Decoding masks" if mask else "Decoding pictures", n, progress and n > 2000) as tick,
        keep_array(key, (n, *shape)) as file,
    ):
        done, place = 0, file.tell()
        for size_of_chunk in _written(chain([first], rest), shape, size, mask, file):
            done += size_of_chunk
            place = send_on(file, place, size_of_chunk * int(np.prod(shape)))
            tick(done)
    if (made := find_array(key, n)) is None:
        raise PrivetError(
            "The decoded pictures were removed from the cache while they were made: run it again."
        )
    return made.transpose(0, 3, 1, 2)


def _written(
    pictures: Iterable[Picture],
    shape: tuple[int, ...],
    size: Size | None,
    mask: bool,
    file: BinaryIO,
) -> Iterator[int]:
    """Decode each picture and write it to its place in the file; gives how many, chunk by chunk."""
    begin, each = file.tell(), int(np.prod(shape))

    def decode(numbered: tuple[int, list[Picture]]) -> int:
        start, chunk = numbered
        for i, picture in enumerate(chunk, start):
            array = _decode(picture, size, mask)
            if array.shape != shape:
                raise PrivetError(
                    f"{picture.name} is {array.shape[0]} x {array.shape[1]} pixels and the first"
                    f" one {shape[0]} x {shape[1]}: bring all to one size with  size = [height,"
                    " width]  in a --schema file."
                )
            # One by one, so that the picture is still in the processor's cache when it is written.
            write_at(file, array, begin + i * each)
        return len(chunk)

    return in_order(decode, _chunks(pictures, each), cores(), 2 * cores())


def _chunks(pictures: Iterable[Picture], decoded: int) -> Iterator[tuple[int, list[Picture]]]:
    """Groups that are worth a hand-over between threads and small in memory, whether encoded or
    decoded; and the first one's number."""
    chunk: list[Picture] = []
    start = weight = 0
    for picture in pictures:
        chunk.append(picture)
        weight += decoded + (len(picture.source) if isinstance(picture.source, bytes) else 0)
        if len(chunk) == _CHUNK or weight > _CHUNK_BYTES:
            yield start, chunk
            start, chunk, weight = start + len(chunk), [], 0
    if chunk:
        yield start, chunk


def _decode(picture: Picture, size: Size | None, mask: bool) -> Array:
    if mask:
        return read_mask(picture.source, size, picture.name)[0, :, :, None]
    return read_pixels(picture.source, size, picture.name)
