"""Photos in, photos out: hide the beard, keep the rest, and look at what leaves.

python examples/photos_with_veil.py FOLDER
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import privet


def main(folder: Path, portraits: int = 2000, epochs: float = 15) -> Path:
    """Veil drawn portraits; the folder of the pictures that may be shared."""
    data = privet.load(f"portraits:{portraits}")
    method = privet.Veil(
        beta=1e-4,
        distance="pixels",
        dims=32,
        width=0.1,
        lessons=5,
        epochs=epochs,
        batch=32,
        lr=4e-3,
    )
    # Also writes release/drawn.png: faces before, after, and with either value of beard.
    privet.learn(method, data, "beard", out=folder / "release")

    photos = folder / "photos"
    for number, row in enumerate(data.part("test").rows[:12]):
        path = photos / f"album {number // 6}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(data.records[row]).transpose(1, 2, 0)).save(path)

    # The same names in the same folders; shared/released.json says what left.
    options = privet.ApplyOptions(form="picture")
    return privet.apply(folder / "release", photos, folder / "shared", options=options)


if __name__ == "__main__":
    print(f"Pictures that may be shared:  {main(Path(sys.argv[1]))}")
