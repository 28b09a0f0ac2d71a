"""What a raw photo says beside the picture: where, when, with what, by whom. Shown to its owner,
and never sent."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import ExifTags, Image

from privet.data.images import FORMATS

GPS, DETAILS = 0x8825, 0x8769
LONGEST = 80

# What the tags of EXIF say, in plain words.
KINDS = {
    "Make": "device",
    "Model": "device",
    "HostComputer": "device",
    "LensModel": "lens",
    "BodySerialNumber": "serial number",
    "LensSerialNumber": "serial number",
    "CameraSerialNumber": "serial number",
    "Software": "software",
    "DateTime": "time",
    "DateTimeOriginal": "time",
    "DateTimeDigitized": "time",
    "OffsetTimeOriginal": "time zone",
    "Artist": "name",
    "Copyright": "name",
    "CameraOwnerName": "name",
    "XPAuthor": "name",
    "ImageDescription": "description",
    "UserComment": "description",
    "XPComment": "description",
    "XPTitle": "description",
    "XPKeywords": "description",
    "XPSubject": "description",
    "ImageUniqueID": "number of the picture",
    "MakerNote": "maker's note",
}


def metadata(source: Path | bytes) -> dict[str, str]:
    """What a picture's file says beside the picture, by what it is: place, time, device, name, ...
    Empty where it says nothing."""
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    texts: dict[str, str] = {}
    try:
        with Image.open(file, formats=FORMATS) as picture:
            for kind, text in _items(picture):
                if text and text not in texts.get(kind, ""):
                    texts[kind] = f"{texts[kind]}, {text}" if kind in texts else text
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError, Image.DecompressionBombError):
        return {}
    return texts


def _items(picture: Image.Image) -> Iterator[tuple[str, str]]:
    exif = picture.getexif()
    yield "place", _place(exif.get_ifd(GPS))
    for tag, value in (*exif.get_ifd(DETAILS).items(), *exif.items()):
        name = ExifTags.TAGS.get(tag, "")
        if name in KINDS:
            yield KINDS[name], f"{len(value)} bytes" if name == "MakerNote" else _plain(value)
    for key, value in picture.info.items():
        if key in ("xmp", "XML:com.adobe.xmp", "photoshop", "iptc"):
            yield "editor's notes", f"{len(value)} bytes"
        elif key == "comment" or (isinstance(value, str) and picture.format == "PNG"):
            yield "text", f"{key}: {_plain(value)}"


def _place(gps: Any) -> str:
    """Degrees north and east, with four digits: about ten metres."""
    try:
        return f"{_degrees(gps, 2, 'NS')}, {_degrees(gps, 4, 'EW')}"
    except (KeyError, TypeError, ValueError, ZeroDivisionError, IndexError):
        return "noted" if gps else ""


def _degrees(gps: Any, tag: int, names: str) -> str:
    degrees, minutes, seconds = (float(part) for part in gps[tag])
    value = degrees + minutes / 60 + seconds / 3600
    if str(gps.get(tag - 1, "")).upper().startswith(names[1]):
        value = -value
    return f"{abs(value):.4f} {names[value < 0]}"


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        wide = b"\0" in value[:4]
        value = value.decode("utf-16-le" if wide else "utf-8", errors="ignore")
    text = "".join(c for c in str(value) if c.isprintable()).strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
