"""What the records of a release look like from outside, seen on random ones.

A law of noise is expected only where the graph is seen to add it: the difference that the noise
makes must be its scale times the noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import Array
from privet.exchange.protocol.checks import check_record
from privet.exchange.protocol.manifest import ExpectedRecord
from privet.nets.noise_grid import grid_step
from privet.release.noise import Noise
from privet.release.runtime import Runnable
from privet.release.strangers import release_session

# Records that are tried.
TRIED = 64


def expected_record(card: dict[str, Any], graph: bytes, checked: bool) -> ExpectedRecord:
    """What to expect of a release.

    Parameters:
        card, graph: Of the release.
        checked: Whether a server will check records, as in an open campaign: then PrivetError
            where it could not tell them from raw ones.
    """
    release, run = Runnable.from_card(card), release_session(graph)
    x = release.schema.random(TRIED, seed=0)
    if release.noise is None:
        z = code = run.run(["z"], {"x": x})[0]
        law = {}
    else:
        noise = release.noise.draw(TRIED, x.shape[1], seed=0)
        z = run.run(["z"], {"x": x, "noise": noise})[0]
        code = run.run(["z"], {"x": x, "noise": np.zeros_like(noise)})[0]
        law = _added_noise(release.noise, z, code, noise)
    low, high = _range(card, code, bool(law))
    free = None in release.shape
    expect = ExpectedRecord(
        shape=list(release.shape),
        longest=int(card["input"].get("longest") or 1) if free else 1,
        low=low,
        high=high,
        **law,
    )
    try:
        for row in z if checked else ():
            check_record(expect, row)
    except PrivetError as error:
        raise PrivetError(
            f"What this release gives cannot be told from raw records ({error}) "
            "Use a sealed campaign."
        ) from None
    return expect


def _added_noise(noise: Noise, z: Array, code: Array, unit: Array) -> dict[str, Any]:
    """Law, scale and step of noise that is simply added to the code; empty where it is not."""
    if noise.law not in ("gaussian", "laplace") or noise.scale <= 0 or unit.shape != z.shape:
        return {}
    grid = grid_step(noise.scale)
    if np.abs(z - code - noise.scale * unit).max() > 2 * grid + 1e-4 * noise.scale:
        return {}
    exact = z.astype(np.float64)
    on_grid = np.array_equal(exact, np.round(exact / grid) * grid)
    return {"law": noise.law, "scale": float(noise.scale), "step": grid if on_grid else None}


def _range(
    card: dict[str, Any], code: Array, adds_noise: bool
) -> tuple[float | None, float | None]:
    """Of the records, or where noise is added, of the records before it."""
    if card["output"].get("range"):
        low, high = card["output"]["range"]
        return float(low), float(high)
    if adds_noise:
        hedge = (card.get("network") or {}).get("name") == "hedge"
        unit = hedge and np.abs(code).max() <= 1 + 1e-3
    else:
        unit = card.get("form") == "record" and card["input"].get("modality") == "image"
    return (-1.0, 1.0) if unit else (None, None)
