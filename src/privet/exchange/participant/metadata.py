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

NAMED = {
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
    try:
        with Image.open(
            io.BytesIO(source) if isinstance(source, bytes) else source, formats=FORMATS
        ) as picture:
            found = list(_said(picture))
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError, Image.DecompressionBombError):
        return {}
    told: dict[str, str] = {}
    for what, value in found:
        if value and value not in told.get(what, ""):
            told[what] = f"{told[what]}, {value}" if what in told else value
    return told


def _said(picture: Image.Image) -> Iterator[tuple[str, str]]:
    exif = picture.getexif()
    if place := _place(exif.get_ifd(GPS)):
        yield "place", place
    for tags in (exif.get_ifd(DETAILS), exif):
        for tag, value in tags.items():
            name = ExifTags.TAGS.get(tag, "")
            if name == "MakerNote":
                yield NAMED[name], f"{len(value)} bytes"
            elif name in NAMED:
                yield NAMED[name], _plain(value)
    for key, value in picture.info.items():
        if key in ("xmp", "XML:com.adobe.xmp", "photoshop", "iptc"):
            yield "editor's notes", f"{len(value)} bytes"
        elif key == "comment" or (isinstance(value, str) and picture.format == "PNG"):
            yield "text", f"{key}: {_plain(value)}"


def _place(gps: Any) -> str:
    """Degrees north and east, with four digits: about ten metres."""
    try:
        north = _degrees(gps[2]) * (-1 if str(gps.get(1, "N")).upper().startswith("S") else 1)
        east = _degrees(gps[4]) * (-1 if str(gps.get(3, "E")).upper().startswith("W") else 1)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, IndexError):
        return "noted" if gps else ""
    return f"{abs(north):.4f} {'N' if north >= 0 else 'S'}, {abs(east):.4f} {'E' if east >= 0 else 'W'}"


def _degrees(parts: Any) -> float:
    degrees, minutes, seconds = (float(part) for part in parts)
    return degrees + minutes / 60 + seconds / 3600


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        wide = b"\0" in value[:4]
        value = value.decode("utf-16-le" if wide else "utf-8", errors="ignore")
    text = "".join(c for c in str(value) if c.isprintable()).strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
