"""How a portrait is drawn: layers from the background to the light.

The order is the whole of perspective: what comes later lies in front. A layer that few pictures
have (a hat, a scarf) is drawn on those pictures only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from privet.data.dataset import Array
from privet.data.portraits import dress, face
from privet.data.portraits.canvas import ACROSS, DOWN, GRAIN, SIZE, Page

# Further than any head reaches.
ALL = 9.0


def light(p: Page) -> None:
    """Where the light falls from, how strong it is and of which colour; then what the sensor
    adds."""
    t, half = p.t, (SIZE - 1) / 2
    shade = 1 + t["lamp"] * (
        np.cos(t["lamp_from"]) * (ACROSS / half - 1) + np.sin(t["lamp_from"]) * (DOWN / half - 1)
    )
    p.rgb *= shade[:, None]
    p.rgb -= 0.5 / t["gain"]
    p.rgb *= t["gain"] * t["contrast"][:, None]
    p.rgb += t["level"][:, None]
    p.rgb += p.grain * t["noise"][:, None]


class Layer(NamedTuple):
    """One layer of a drawing, and the pictures that have it.

    Parameters:
        bottom: Where on the head it can be seen: no other rows are looked at.
        value: On which pictures: those where the trait has this value, or all.
    """

    draw: Callable[[Page], None]
    top: float = -ALL
    bottom: float = ALL
    trait: str = ""
    value: int = 1


# What is drawn, in order.
LAYERS = (
    Layer(dress.sky, trait="background", value=0),
    Layer(dress.leaves, trait="background", value=1),
    Layer(dress.bricks, trait="background", value=2),
    Layer(dress.paper, trait="background", value=3),
    Layer(face.back_hair, -ALL, 0.7),
    Layer(face.falling_hair, trait="long_hair"),
    Layer(dress.body, 0.6, ALL),
    Layer(face.ears, -0.22, 0.38),
    Layer(face.head, -1.2, 1.2),
    Layer(face.near_ear, -0.22, 0.38, "turn", 0),
    Layer(face.near_ear, -0.22, 0.38, "turn", 2),
    Layer(face.lines, -0.85, 0.65, "age_lines"),
    Layer(face.beard, -0.6, ALL, "beard"),
    Layer(face.mouth, 0.1, 1.1),
    Layer(face.nose, -0.2, 0.4),
    Layer(face.eyes, -0.65, 0.25),
    Layer(dress.glasses, -0.45, 0.4, "glasses"),
    Layer(face.front_hair, -ALL, 0.12),
    Layer(face.locks, trait="long_hair"),
    Layer(dress.earrings, 0.0, 0.8, "earrings"),
    Layer(dress.hat, -ALL, -0.2, "hat"),
    Layer(dress.strands, -0.95, 0.45, "before", 1),
    Layer(dress.scarf, 0.4, ALL, "before", 2),
    Layer(dress.hand, 0.0, ALL, "before", 3),
    Layer(dress.stripe, trait="before", value=4),
    Layer(light),
)


def draw(traits: dict[str, Array], seed: int) -> Array:
    """Pictures (batch, 3, SIZE, SIZE), uint8, of the people whose traits these are."""
    page = Page(
        {name: _shaped(column) for name, column in traits.items()}, _grain(traits["noise_at"], seed)
    )
    for layer in LAYERS:
        index = np.flatnonzero(traits[layer.trait] == layer.value) if layer.trait else None
        rows = page.rows(layer.top, layer.bottom)
        part = page.part(index, rows)
        layer.draw(part)
        if index is not None:
            page.rgb[index, :, rows] = part.rgb
    page.rgb *= 255
    page.rgb += 0.5
    return np.clip(page.rgb, 0, 255, out=page.rgb).astype(np.uint8)


def _shaped(column: Array) -> Array:
    return column.astype(np.float32).reshape(
        len(column), *((3, 1, 1) if column.ndim == 2 else (1, 1))
    )


def _grain(at: Array, seed: int) -> Array:
    """Noise for each picture: the piece of one long strip that begins where its traits say."""
    pieces = np.lib.stride_tricks.sliding_window_view(_strip(seed), 3 * SIZE * SIZE)
    return pieces[at.astype(np.int64)].reshape(-1, 3, SIZE, SIZE)


@lru_cache(maxsize=2)
def _strip(seed: int) -> Array:
    return np.random.default_rng([seed, 1]).standard_normal(
        GRAIN + 3 * SIZE * SIZE, dtype=np.float32
    )
