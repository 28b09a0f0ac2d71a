"""Who is in what a veil releases: people found again, and faces of *fit* in decoded ones."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from privet.adversaries.reidentification import reidentify
from privet.adversaries.released import released_parts
from privet.data.dataset import Dataset
from privet.evidence.intervals import clopper_pearson
from privet.release.drawn_records import Drawn, write_grid
from privet.release.own_form import pixels
from privet.release.release import Release

# Decoded faces compared at a time, and how many are shown beside their nearest ones.
AT_ONCE, SHOWN = 64, 12


def found_again(release: Release, data: Dataset, device: torch.device) -> dict[str, Any]:
    """Of each person, whether another released record is found among all: from codes, and from
    decoded pictures."""
    drawn = copy.copy(release.module)
    drawn.output, drawn.shape = "record", drawn.plain.shape
    kinds = {
        "codes": release,
        "decoded": dataclasses.replace(release, module=drawn, graph=None),
        "raw": Release.identity(release.schema.plain),
    }
    said = {}
    for kind, one in kinds.items():
        found = reidentify(released_parts(one, data, (), device))
        said[kind] = found if isinstance(found, str) else dataclasses.asdict(found)
    return said


@torch.no_grad()
def nearest(made: Tensor, faces: Mapping[str, Tensor], path: Path | None) -> dict[str, float]:
    """How many decoded faces have their nearest face among those of *fit*, and not among as many of
    *attack*, whom the release has not seen: half, where nothing is remembered.

    Parameters:
        made: Decoded pictures, in [-1, 1].
        faces: Raw ones of *fit* and *attack*.
        path: Where to draw decoded faces above their nearest of *fit* and of *attack*.
    """
    count = min(len(faces["fit"]), len(faces["attack"]))
    flat = {part: faces[part][:count].flatten(1) for part in ("fit", "attack")}
    places, apart = {}, {}
    for part, others in flat.items():
        rows = [torch.cdist(some, others).min(1) for some in made.flatten(1).split(AT_ONCE)]
        places[part] = torch.cat([row.indices for row in rows])
        apart[part] = torch.cat([row.values for row in rows])
    nearer = int((apart["fit"] < apart["attack"]).sum())
    interval = clopper_pearson(nearer, len(made))
    if path is not None:
        beside = {part: faces[part][places[part][:SHOWN]] for part in flat}
        shown = {
            words: pixels(some.cpu().numpy())
            for words, some in (("decoded", made[:SHOWN]), *beside.items())
        }
        write_grid(Drawn(shown["decoded"], shown["fit"], {"attack": shown["attack"]}), path)
    return {
        "nearer_to_fit": 100 * nearer / len(made),
        "low": 100 * interval.low,
        "high": 100 * interval.high,
        "faces": count,
        "ratio": float((apart["fit"] / apart["attack"]).median()),
    }
