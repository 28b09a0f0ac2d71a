"""What the drawn people look like: everything about a picture that is no label.

The width of a face, the length of a beard, the light: drawn on their own, some once for a person
and some anew for each picture, so that none of them tells anything about a label but about the one
whose strength it is.
"""

from __future__ import annotations

import numpy as np

from privet.data.dataset import Array
from privet.data.portraits.canvas import GRAIN

# Traits that a person keeps, and their ranges in units of the face (see `page`).
STABLE: dict[str, tuple[float, float]] = {
    "width": (0.64, 0.80),
    "height": (0.92, 1.06),
    "taper": (0.02, 0.27),
    "volume": (0.06, 0.22),
    "length": (0.0, 0.5),
    "hairline": (-0.74, -0.46),
    "curl": (0.0, 0.07),
    "peaked": (-0.4, 0.4),
    "part": (-0.3, 0.3),
    "eyes": (0.27, 0.36),
    "eye_y": (-0.12, 0.0),
    "eye_w": (0.105, 0.15),
    "brow_y": (-0.05, 0.03),
    "brow_gap": (0.19, 0.27),
    "brow_thick": (0.022, 0.055),
    "nose": (0.08, 0.15),
    "nose_long": (0.08, 0.16),
    "lips": (0.25, 0.34),
    "lip_thick": (0.03, 0.058),
    "mouth_y": (0.5, 0.58),
    "furrow": (0.7, 1.0),
    "whiskers": (0.0, 1.0),
    "grown": (0.0, 1.0),
    "dangle": (0.03, 0.12),
    "rim_w": (0.19, 0.25),
    "rim_h": (0.15, 0.22),
    "rim": (0.018, 0.05),
}

# Traits of a single picture: pose, mouth, eyes, hat, what comes in front, background, light,
# camera.
FLEETING: dict[str, tuple[float, float]] = {
    "x": (-4.0, 4.0),
    "y": (-1.0, 5.0),
    "scale": (13.0, 17.5),
    "tilt": (-0.22, 0.22),
    "turned": (0.16, 0.34),
    "askew": (-0.07, 0.07),
    "joy": (0.15, 0.32),
    "mood": (-0.14, 0.07),
    "wide": (0.12, 0.28),
    "teeth_show": (0.3, 1.0),
    "flush": (0.0, 0.6),
    "eye_h": (0.06, 0.11),
    "gaze": (-0.05, 0.05),
    "frown": (-0.3, 0.3),
    "crown": (0.0, 0.25),
    "brim": (0.0, 0.4),
    "peak": (0.0, 1.0),
    "strand": (-0.6, 0.4),
    "scarf_y": (0.55, 1.0),
    "hand_x": (-0.6, 0.6),
    "hand_y": (0.35, 0.8),
    "angle": (0.0, 3.14),
    "aside": (0.0, 1.0),
    "phase": (0.0, 6.28),
    "grid": (0.5, 1.1),
    "lamp": (0.0, 0.4),
    "lamp_from": (0.0, 6.28),
    "contrast": (0.7, 1.15),
    "level": (0.4, 0.58),
    "soft": (0.9, 2.0),
    "noise": (0.004, 0.045),
    "noise_at": (0.0, float(GRAIN - 1)),
}

# Something in front of the face: hair in 7 % of pictures, a scarf in 6 %, a hand in 5 %, a stripe
# in 4 %.
BEFORE = (0.07, 0.13, 0.18, 0.22)

_SKIN = (
    (0.97, 0.84, 0.76),
    (0.93, 0.74, 0.60),
    (0.80, 0.59, 0.42),
    (0.58, 0.39, 0.26),
    (0.36, 0.23, 0.16),
)
_HAIR = (
    (0.10, 0.08, 0.10),
    (0.38, 0.23, 0.13),
    (0.88, 0.72, 0.38),
    (0.74, 0.30, 0.12),
    (0.74, 0.74, 0.77),
)
_GROUND = ((0.46, 0.69, 0.90), (0.25, 0.47, 0.27), (0.66, 0.36, 0.28), (0.84, 0.76, 0.60))
_GROUND2 = ((0.93, 0.95, 0.98), (0.52, 0.70, 0.36), (0.80, 0.72, 0.64), (0.62, 0.50, 0.60))
_IRIS = ((0.30, 0.18, 0.10), (0.22, 0.42, 0.62), (0.28, 0.46, 0.28))
_FRAME = ((0.08, 0.08, 0.10), (0.45, 0.20, 0.12), (0.65, 0.12, 0.16), (0.75, 0.66, 0.35))
# Colours that are the same for everybody.
_ALIKE = {
    "throat": (0.36, 0.08, 0.10),
    "teeth": (0.97, 0.96, 0.93),
    "lash": (0.10, 0.08, 0.09),
    "white": (0.97, 0.97, 0.96),
    "glass": (0.10, 0.11, 0.15),
}


def traits(label: dict[str, Array], person: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Everything that the drawing needs, one row per picture."""
    n, count = len(person), int(person.max()) + 1
    t: dict[str, Array] = {name: rng.uniform(*ends, count)[person] for name, ends in STABLE.items()}
    t |= {name: rng.uniform(*ends, n) for name, ends in FLEETING.items()}
    t |= {name: codes.astype(np.float64) for name, codes in label.items()}
    t["yaw"] = t["askew"] + (t["turn"] - 1) * t["turned"]
    t["bend"] = np.where(t["smiling"] == 1, t["joy"], t["mood"])
    t["gap"] = t["mouth_open"] * t["wide"]
    t["lips"] = t["lips"] * (1 + 0.2 * t["smiling"])
    t["eye_h"] = t["eye_h"] - 0.03 * t["smiling"]
    t["flush"] = t["flush"] + 0.3 * t["smiling"]
    t["lean"] = np.where(t["aside"] < 0.5, -1.0, 1.0)
    t["before"] = (np.searchsorted(BEFORE, rng.random(n), side="right") + 1.0) % (len(BEFORE) + 1)
    # Four ways to wear a beard: stubble, a goatee, trimmed, full.
    kind = np.searchsorted((0.14, 0.32, 0.62), t["whiskers"])
    t["dense"] = np.array([0.45, 0.8, 0.8, 0.85])[kind] + 0.15 * t["grown"]
    t["reach"] = np.array([1.2, 0.33, 1.2, 1.2])[kind] + 0.08 * t["grown"]
    t["hang"] = np.array([0.0, 0.1, 0.05, 0.2])[kind] * (0.5 + t["grown"])
    t["square"], t["hoop"] = (np.floor(2 * rng.random(count))[person] for _ in range(2))
    t["tint"] = np.where(rng.random(n) < 0.2, 0.88, 0.12)
    return t | _colours(label, person, rng)


def _colours(label: dict[str, Array], person: Array, rng: np.random.Generator) -> dict[str, Array]:
    n, count = len(person), int(person.max()) + 1

    def own(spread: float) -> Array:
        """A person's shade of a colour."""
        return (rng.normal(0, spread / 3, (count, 3)) + rng.normal(0, spread, (count, 1)))[person]

    def chance() -> Array:
        return rng.uniform(0.08, 0.92, (n, 3))

    skin = np.clip(np.array(_SKIN)[label["skin"]] * (1 + own(0.04)), 0.05, 1)
    hair = np.clip(np.array(_HAIR)[label["hair"]] * (1 + own(0.09)), 0.03, 1)
    kept = {
        "iris": np.array(_IRIS)[rng.integers(0, len(_IRIS), count)[person]],
        "frame": np.array(_FRAME)[rng.integers(0, len(_FRAME), count)[person]],
        "metal": np.where(
            rng.random((count, 1))[person] < 0.6, (0.95, 0.78, 0.22), (0.92, 0.94, 0.97)
        ),
        "skin": skin,
        "skin_dark": skin * (0.80, 0.74, 0.72),
        "skin_line": skin * (0.55, 0.47, 0.45),
        "blush": skin * (1.0, 0.72, 0.72),
        "lip": skin * (0.5, 0.28, 0.3) + (0.24, 0.04, 0.06),
        "hair_colour": hair,
        "hair_dark": hair * 0.72,
        "hair_light": hair + 0.22 * (1 - hair),
        "beard_colour": hair * 0.74,
        "brow": hair * 0.7,
    }
    ground = np.array(_GROUND)[label["background"]] + rng.normal(0, 0.07, (n, 3))
    ground2 = np.array(_GROUND2)[label["background"]] + rng.normal(0, 0.07, (n, 3))
    alike = {name: np.tile(colour, (n, 1)) for name, colour in _ALIKE.items()}
    given = {name: chance() for name in ("cloth", "cloth2", "hat_colour", "hat_band")}
    return (
        kept
        | alike
        | given
        | {
            "ground": ground,
            "ground2": ground2,
            "gain": rng.normal(1, 0.05, (n, 3)),
        }
    )
