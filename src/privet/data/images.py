"""One picture: from a file or its bytes to an array of a known size, and nothing worse than a sentence if it is broken."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from privet.data.dataset import Array
from privet.errors import PrivetError

Size = tuple[int, int]
"""Height and width."""

LARGEST = 100_000_000
"""Pixels. A picture of a few kilobytes can claim to be larger than memory."""

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
"""Only formats that Pillow decodes in its own process: some others start a program."""

# Pillow warns on standard error of large pictures that it goes on to open; here they are refused.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

_TELLTALES = (b"\xff\xd8\xff", b"\x89PNG\r\n", b"GIF8", b"BM")


def is_picture(content: bytes) -> bool:
    """Whether bytes begin as a picture does."""
    return content.startswith(_TELLTALES) or (content[:4] == b"RIFF" and content[8:12] == b"WEBP")


def read_picture(source: Path | bytes, size: Size | None = None, channels: int = 3, name: str | None = None) -> Array:
    """A picture as uint8 (channels, height, width), upright, in colour or (channels=1) in grey.

    Where `size` is another than the picture's own, the picture is scaled until it covers `size` and its middle is taken:
    nothing is stretched. `name` is what to call it in an error.
    """
    picture = _open(source, size, name, "RGB" if channels == 3 else "L")
    if size is not None:
        picture = _cover(picture, size, Image.Resampling.BILINEAR)
    if channels == 1:
        return np.asarray(picture)[None]
    # Four bytes a pixel, as Pillow has them: to shift words and keep their lowest byte is twice as fast as to copy every third byte.
    words = np.frombuffer(picture.tobytes("raw", "RGBX"), dtype="<u4")
    planes: Array = np.empty((3, len(words)), dtype=np.uint8)
    for channel in range(3):
        planes[channel] = words >> (8 * channel)
    return planes.reshape(3, picture.height, picture.width)


def read_mask(source: Path | bytes, size: Size | None = None, name: str | None = None) -> Array:
    """A mask as uint8 0 or 1 (1, height, width), cut just as a picture of the same size would be.

    Files write "inside" as 1, as 255 or, after a lossy codec, as something near it: the limit is half of the brightest.
    """
    picture = _open(source, None, name, "L")
    array = np.asarray(picture if size is None else _cover(picture, size, Image.Resampling.NEAREST))
    inside: Array = array > array.max() // 2
    return inside.astype(np.uint8)[None]


def _open(source: Path | bytes, size: Size | None, name: str | None, mode: str) -> Image.Image:
    name = name or (str(source) if isinstance(source, Path) else "The picture")
    try:
        with Image.open(source if isinstance(source, Path) else io.BytesIO(source), formats=FORMATS) as picture:
            if picture.width * picture.height > LARGEST:
                raise Image.DecompressionBombError
            if size is not None:
                picture.draft(mode, (2 * max(size), 2 * max(size)))
            ImageOps.exif_transpose(picture, in_place=True)
            return picture if picture.mode == mode else picture.convert(mode)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise PrivetError(f"{name} has more than {LARGEST // 1_000_000} megapixels: make it smaller first.") from None
    except FileNotFoundError:
        raise PrivetError(f"The picture {name} is not there: add the file or take it out of the list.") from None
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError):
        raise PrivetError(f"{name} cannot be read as a picture ({', '.join(FORMATS)}): replace or remove it.") from None


def _cover(picture: Image.Image, size: Size, resample: Image.Resampling) -> Image.Image:
    height, width = size
    if (picture.height, picture.width) == size:
        return picture
    scale = max(height / picture.height, width / picture.width)
    left, top = (picture.width - width / scale) / 2, (picture.height - height / scale) / 2
    box = (max(left, 0.0), max(top, 0.0), min(left + width / scale, picture.width), min(top + height / scale, picture.height))
    return picture.resize((width, height), resample, box=box)
