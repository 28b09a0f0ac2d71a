"""Many pictures: decoded once, on every core, into one array on disk that is then mapped into
memory.

Neither all encoded nor all decoded pictures are ever held: a few chunks are in flight, every thread
writes a picture to its place as soon as it is decoded, and later readers touch only the pages they
need. Threads are enough, because Pillow decodes outside the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import BinaryIO, NamedTuple

import numpy as np

from privet.core.errors import PrivetError
from privet.core.parallel_map import cores, in_order
from privet.core.progress import bar
from privet.data.cache import digest, find_array, keep_array, send_on, write_at
from privet.data.dataset import Array
from privet.data.images import Size, picture_size, read_mask, read_pixels

# Part of every key: raise it when the same bytes come to decode to other pixels, or these to lie in
# another order.
_VERSION = 2
_CHUNK = 64
_CHUNK_BYTES = 8 << 20
# The longer side, in pixels, of what pictures of different sizes are brought to.
LONGEST_SIDE = 128


class Picture(NamedTuple):
    """One encoded picture, and what to call it where it is broken.

    Parameters:
        name: What to call it in an error.
        source: The path of a file, or what is in it.
    """

    name: str
    source: str | bytes


class BrokenPictures(PrivetError):
    """Some pictures cannot be read.

    Parameters:
        reasons: By the number of each of these pictures, a sentence on it.
        n: How many pictures there are.
    """

    def __init__(self, reasons: Mapping[int, str], n: int) -> None:
        self.rows, self.n = tuple(sorted(reasons)), n
        self.reasons = [reasons[row] for row in self.rows]
        listed = "\n  ".join(self.reasons)
        super().__init__(
            listed
            if len(self.rows) == 1
            else f"{len(self.rows):,} of {n:,} pictures cannot be read. Replace or remove them, or "
            f"leave them out with --skip-broken:\n  {listed}"
        )

    @property
    def left_out(self) -> str:
        """A note that lists every one of them, for a reader that goes on without them."""
        listed = "\n  ".join(self.reasons)
        counts = f"{len(self.rows):,} of {self.n:,} pictures"
        return f"{counts} cannot be read and were left out:\n  {listed}"


class MixedSizes(PrivetError):
    """Pictures have different sizes, and nobody has said which to bring them to."""


class _Failures:
    """What went wrong with single pictures while all of them are decoded."""

    def __init__(self) -> None:
        self.broken: dict[int, str] = {}
        self.other_size = ""

    def check(self, n: int) -> None:
        """Raise what was found, once everything was looked at."""
        if self.broken:
            raise BrokenPictures(self.broken, n)
        if self.other_size:
            raise MixedSizes(self.other_size)


def _first_shape(pictures: Iterator[Picture], size: Size | None, mask: bool) -> tuple[int, ...]:
    """The shape of the first picture that can be read."""
    first_error: PrivetError | None = None
    for picture in pictures:
        try:
            return _decode(picture, size, mask).shape
        except PrivetError as error:
            first_error = first_error or error
    raise first_error or PrivetError("There is no picture to read.")


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
    shape, failures = _first_shape(pictures(), size, mask), _Failures()
    with (
        bar("Decoding masks" if mask else "Decoding pictures", n, progress and n > 2000) as tick,
        keep_array(key, (n, *shape)) as file,
    ):
        done, place = 0, file.tell()
        for size_of_chunk in _written(pictures(), shape, size, mask, file, failures):
            done += size_of_chunk
            place = send_on(file, place, size_of_chunk * int(np.prod(shape)))
            tick(done)
        failures.check(n)
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
    failures: _Failures,
) -> Iterator[int]:
    """Decode each picture and write it to its place in the file; gives how many, chunk by chunk.
    What cannot be decoded is noted and its place stays empty."""
    begin, each = file.tell(), int(np.prod(shape))

    def decode(numbered: tuple[int, list[Picture]]) -> int:
        start, chunk = numbered
        for i, picture in enumerate(chunk, start):
            try:
                array = _decode(picture, size, mask)
            except PrivetError as error:
                failures.broken[i], array = str(error), np.zeros(shape, dtype=np.uint8)
            if array.shape != shape:
                failures.other_size = failures.other_size or (
                    f"{picture.name} is {array.shape[0]} x {array.shape[1]} pixels and the first"
                    f" one {shape[0]} x {shape[1]}: bring all to one size with  size = [height,"
                    " width]  in a --schema file."
                )
                array = np.zeros(shape, dtype=np.uint8)
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


def common_size(pictures: Iterable[Picture]) -> Size:
    """A size for pictures of different sizes: their middle height and width, made smaller until the
    longer side is LONGEST_SIDE at most."""
    sizes = [picture_size(picture.source) for picture in pictures]
    height, width = np.median([size for size in sizes if size is not None], axis=0)
    scale = min(1.0, LONGEST_SIDE / max(height, width))
    return max(1, round(height * scale)), max(1, round(width * scale))


def _decode(picture: Picture, size: Size | None, mask: bool) -> Array:
    if mask:
        return read_mask(picture.source, size, picture.name)[0, :, :, None]
    return read_pixels(picture.source, size, picture.name)
