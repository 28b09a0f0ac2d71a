"""What a service needs of a record, drawn: the maps of Cloak releases as one page, tasks side by
side.

Of pictures, what is kept stays in colour and the rest is grey; of tables and signals, columns or
channels are listed from the one that bears least noise to the one that bears most. The page loads
nothing: pictures are PNG files inside it.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from privet.core.errors import PrivetError
from privet.core.files import write_text
from privet.data.dataset import Array, Dataset
from privet.data.schema import ImageSchema
from privet.data.schema_file import Layout
from privet.data.sources import load
from privet.nets.mask import Keep
from privet.release.release import Release
from privet.reporting.page import jinja

# People in a page.
SHOWN = 6
# Of the light of a picture, what is left where it is suppressed.
DIM = 0.3
# Colours of what is not needed at all and of what is needed most.
COLD, WARM = np.array([38, 34, 44]), np.array([255, 214, 120])


def needed(release: Release) -> Array:
    """How much each value of a record is needed, in the record's shape: 1 where least noise is
    borne, 0 where most is."""
    sigma = _body(release).sigma.cpu().numpy()
    wide = float(sigma.max() - sigma.min())
    return np.asarray((sigma.max() - sigma) / wide if wide > 0 else np.ones_like(sigma))


def draw(release: Release, records: Array) -> list[Array]:
    """Pictures (n, channels, height, width) as bytes, with what the release suppresses in grey:
    (height, width, 3) each."""
    keep = _body(release).keep.any(0).cpu().numpy()[:, :, None]
    colours = np.broadcast_to(records, (len(records), 3, *records.shape[2:])).transpose(0, 2, 3, 1)
    grey = np.broadcast_to(colours.mean(3, keepdims=True) * DIM, colours.shape)
    return list(np.where(keep, colours, grey).astype(np.uint8))


def heat(release: Release) -> Array:
    """The map itself as a picture: warm where the service needs to look."""
    share = needed(release).mean(0)[:, :, None]
    return np.asarray(COLD + share * (WARM - COLD), dtype=np.uint8)


def bars(release: Release) -> list[dict[str, Any]]:
    """Columns or channels, the most needed first: feature, sigma, kept, and `need`, from 0 for the
    one that bears most noise to 1 for the one that bears least. None where features have no
    names."""
    rows = release.card.get("needed", [])
    sigmas = np.array([row["sigma"] for row in rows])
    wide = float(np.ptp(sigmas)) if len(sigmas) else 0.0
    needs = (sigmas.max() - sigmas) / wide if wide > 0 else np.ones(len(sigmas))
    return [{**row, "need": float(need)} for row, need in zip(rows, needs, strict=True)]


def page(releases: Mapping[str, Release], data: Dataset) -> str:
    """One page with the map of every release, by the name it is to have (its task); pictures of a
    few people of *test*."""
    if not releases:
        raise PrivetError("Name at least one release to draw.")
    schemas = [release.schema for release in releases.values()]
    pictured = all(isinstance(schema, ImageSchema) for schema in schemas)
    test = data.part("test")
    people = test.take(np.sort(np.unique(test.people, return_index=True)[1])[:SHOWN])
    originals: Array = np.zeros(0)
    if pictured:
        originals = schemas[0].inputs(people)[np.arange(len(people))]
    panels = [
        {
            "task": name,
            "said": _said(release),
            "heat": _png(heat(release)) if pictured else "",
            "pictures": [_png(one) for one in draw(release, originals)] if pictured else [],
            "bars": bars(release),
        }
        for name, release in releases.items()
    ]
    colours = [np.broadcast_to(one, (3, *one.shape[1:])).transpose(1, 2, 0) for one in originals]
    template = jinja().get_template("maps.html")
    shown = [_png(one) for one in colours]
    return template.render(panels=panels, originals=shown, data_name=data.name, pictured=pictured)


def write(
    out: Path, folders: Sequence[Path], spec: str, schema: Path | Layout | None = None
) -> None:
    """The page of release folders, named by their tasks."""
    releases: dict[str, Release] = {}
    for folder in folders:
        release = Release.load(folder)
        name = ", ".join(release.card.get("utility", [])) or folder.name
        releases[name if name not in releases else f"{name} ({folder.name})"] = release
    write_text(out, page(releases, load(spec, schema)))


def _body(release: Release) -> Keep:
    body = getattr(release.module, "body", None)
    if not isinstance(body, Keep):
        raise PrivetError(
            f"A release by {release.card.get('method', 'another method')} has no map: learn one "
            "with  privet learn cloak."
        )
    return body


def _said(release: Release) -> str:
    share = float(_body(release).keep.float().mean())
    words = [f"{100 * share:.1f} % of the values are kept."]
    for task, scores in release.card.get("services", {}).items():
        raw, released = (f"{100 * scores[source]:.1f} %" for source in ("raw", "released"))
        words.append(
            f"The service is right about {task} in {raw} of raw and {released} of released records."
        )
    return " ".join(words)


def _png(picture: Array) -> str:
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()
