"""One picture: from a file or its bytes to an array of a known size, and nothing worse than a
sentence if it is broken."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, ImageOps

from privet.core.errors import PrivetError
from privet.data.cache import read_small
from privet.data.dataset import Array

# A file or what is in it.
Source = str | Path | bytes

# Height and width.
Size = tuple[int, int]

# Pixels. A picture of a few kilobytes can claim to be larger than memory.
LARGEST = 100_000_000

# Only formats that Pillow decodes in its own process: some others start a program.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
# Endings of their files.
PICTURE_FILES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif")

# Pillow warns on standard error of large pictures that it goes on to open; here they are refused.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

# Segments of a JPEG that do not turn it: tables, comments and what programs add, but for APP1,
# which is EXIF or XMP.
_BESIDE_FRAME = (0xC4, 0xDB, 0xDD, 0xE0, *range(0xE2, 0xF0), 0xFE)
_TELLTALES = (b"\xff\xd8\xff", b"\x89PNG\r\n", b"GIF8", b"BM")


def is_picture(content: bytes) -> bool:
    """Whether bytes begin as a picture does."""
    return content.startswith(_TELLTALES) or (content[:4] == b"RIFF" and content[8:12] == b"WEBP")


def read_picture(
    source: Source, size: Size | None = None, channels: int = 3, name: str | None = None
) -> Array:
    """A picture as uint8 (channels, height, width), upright, in colour or (channels=1) in grey.

    Where `size` is another than the picture's own, the picture is scaled until it covers `size` and
    its middle is taken: nothing is stretched. `name` is what to call it in an error.
    """
    picture = _picture(source, size, name, "RGB" if channels == 3 else "L")
    if channels == 1:
        return np.asarray(picture)[None]
    # Four bytes a pixel, as Pillow has them: to shift words and keep their lowest byte is twice as
    # fast as to copy every third byte.
    words = np.frombuffer(picture.tobytes("raw", "RGBX"), dtype="<u4")
    planes: Array = np.empty((3, len(words)), dtype=np.uint8)
    for channel in range(3):
        planes[channel] = words >> (8 * channel)
    return planes.reshape(3, picture.height, picture.width)


def picture_size(source: Source) -> Size | None:
    """Height and width of a picture held upright, from its header; None where it has none."""
    try:
        with Image.open(
            io.BytesIO(source) if isinstance(source, bytes) else source, formats=FORMATS
        ) as picture:
            # Orientations 5 to 8 lie on their side (EXIF 2.3, tag 0x0112).
            turned = picture.getexif().get(ExifTags.Base.Orientation, 1) >= 5
            return (picture.width, picture.height) if turned else (picture.height, picture.width)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None


def read_pixels(source: Source, size: Size | None = None, name: str | None = None) -> Array:
    """The same picture as uint8 (height, width, 3), as it is decoded: nothing is moved."""
    picture = _picture(source, size, name, "RGB")
    return np.frombuffer(picture.tobytes(), dtype=np.uint8).reshape(
        picture.height, picture.width, 3
    )


def read_mask(source: Source, size: Size | None = None, name: str | None = None) -> Array:
    """A mask as uint8 0 or 1 (1, height, width), cut just as a picture of the same size would be.

    Files write "inside" as 1, as 255 or, after a lossy codec, as something near it: the limit is
    half of the brightest.
    """
    picture = _open(source, None, name, "L")
    array = np.asarray(picture if size is None else _cover(picture, size, Image.Resampling.NEAREST))
    inside: Array = array > array.max() // 2
    return inside.astype(np.uint8)[None]


def _picture(source: Source, size: Size | None, name: str | None, mode: str) -> Image.Image:
    picture = _open(source, size, name, mode)
    return picture if size is None else _cover(picture, size, Image.Resampling.BILINEAR)


def _open(source: Source, size: Size | None, name: str | None, mode: str) -> Image.Image:
    name = name or ("The picture" if isinstance(source, bytes) else str(source))
    try:
        content = source if isinstance(source, bytes) else read_small(source)
        if (
            mode == "RGB"
            and content is not None
            and (plain := _plain_jpeg(content, size)) is not None
        ):
            return plain
        with Image.open(
            source if content is None else io.BytesIO(content), formats=FORMATS
        ) as picture:
            if picture.width * picture.height > LARGEST:
                raise Image.DecompressionBombError
            if size is not None:
                picture.draft(mode, (2 * max(size), 2 * max(size)))
            picture.load()
            if ExifTags.Base.Orientation in picture.getexif():
                ImageOps.exif_transpose(picture, in_place=True)
            return picture if picture.mode == mode else picture.convert(mode)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise PrivetError(
            f"{name} has more than {LARGEST // 1_000_000} megapixels: make it smaller first."
        ) from None
    except FileNotFoundError:
        raise PrivetError(
            f"The picture {name} is not there: add the file or take it out of the list."
        ) from None
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError):
        raise PrivetError(
            f"{name} cannot be read as a picture ({', '.join(FORMATS)}): replace or remove it."
        ) from None


def _plain_jpeg(content: bytes, size: Size | None) -> Image.Image | None:
    """A JPEG in colour, of this size or any, with nothing to say of how it is turned; None if it is
    something else or broken.

    Pillow's decoder is given the bytes at once: all that Image.open looks up in a header is a sixth
    of the time of a small picture, and it is done under the interpreter's lock, for which other
    threads wait.
    """
    with contextlib.suppress(IndexError, ValueError):
        height, width = _size_of_plain_jpeg(content)
        if 0 < height * width <= LARGEST and size in (None, (height, width)):
            return Image.frombytes("RGB", (width, height), content, "jpeg", "RGB", "")
    return None


def _size_of_plain_jpeg(content: bytes) -> Size:
    """What the one frame header (ITU T.81, B.2.2) says, if it is of 8 bits and 3 components and no
    EXIF or XMP stands before the scan."""
    size, place = (0, 0), 2
    while content.startswith(b"\xff\xd8") and content[place] == 0xFF:
        kind, start = content[place + 1], place + 4
        if kind == 0xDA:
            return size
        if (
            kind in (0xC0, 0xC1, 0xC2)
            and size == (0, 0)
            and content[start] == 8
            and content[start + 5] == 3
        ):
            size = (
                int.from_bytes(content[start + 1 : start + 3], "big"),
                int.from_bytes(content[start + 3 : start + 5], "big"),
            )
        elif kind not in _BESIDE_FRAME:
            break
        place += 2 + int.from_bytes(content[place + 2 : start], "big")
    return 0, 0


def _cover(picture: Image.Image, size: Size, resample: Image.Resampling) -> Image.Image:
    height, width = size
    if (picture.height, picture.width) == size:
        return picture
    scale = max(height / picture.height, width / picture.width)
    left, top = (picture.width - width / scale) / 2, (picture.height - height / scale) / 2
    box = (
        max(left, 0.0),
        max(top, 0.0),
        min(left + width / scale, picture.width),
        min(top + height / scale, picture.height),
    )
    return picture.resize((width, height), resample, box=box)
