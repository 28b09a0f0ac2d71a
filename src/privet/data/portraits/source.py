"""portraits: drawn faces, so that everything can be tried in seconds, without anybody's photograph.

No file and no network: people are drawn by chance (`drawn.people`, `drawn.looks`), then put on
paper (`drawn.drawing`). Because the labels follow stated laws, it is known what a release can reach
at best: an attribute that is independent of the tasks can be hidden for nothing, and one that is
tied to a task cannot be hidden while the task is served.
"""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from privet.core.errors import PrivetError
from privet.core.progress import bar
from privet.data.dataset import Dataset
from privet.data.portraits.canvas import SIZE
from privet.data.portraits.drawing import draw
from privet.data.portraits.looks import traits
from privet.data.portraits.people import LAWS, labels, people
from privet.data.schema_file import Layout, refuse_schema_file
from privet.data.splitting import assign

# With six pictures of everyone at most, these show four people: one for each part.
FEWEST = 20

# Pictures drawn at once: few enough to stay near the processor. Their bytes do not depend on it.
BATCH = 96


def read_portraits(count: str, layout: Layout, progress: bool = True) -> Dataset:
    """The source `portraits:COUNT`."""
    refuse_schema_file(layout, "portraits")
    if not count:
        return portraits(progress=progress)
    if not count.isascii() or not count.isdigit() or not 0 < int(count) <= 10_000_000:
        raise PrivetError(
            f"portraits:{count} should end in how many to draw, such as portraits:4000."
        )
    return portraits(int(count), progress=progress)


def portraits(n: int = 20_000, seed: int = 0, progress: bool = True) -> Dataset:
    """n drawn faces, 48x48 in colour, of about n/4 people, with twelve attributes; the same bytes
    for the same seed."""
    if n < FEWEST:
        raise PrivetError(
            f"{n} portraits are too few for four parts that share no person: ask for at least"
            f" {FEWEST}."
        )
    rng = np.random.default_rng(seed)
    person = people(n, rng)
    label = labels(person, rng)
    sheet = traits(label, person, rng)
    pictures = np.empty((n, 3, SIZE, SIZE), dtype=np.uint8)

    def page(first: int) -> int:
        at = slice(first, min(first + BATCH, n))
        pictures[at] = draw({name: column[at] for name, column in sheet.items()}, seed)
        return at.stop

    with (
        bar("drawing portraits", n, progress) as tick,
        ThreadPoolExecutor(os.cpu_count()) as threads,
    ):
        for done in threads.map(page, range(0, n, BATCH)):
            tick(done)
    print_of = hashlib.sha256(pictures.data)
    for name, codes in label.items():
        print_of.update(name.encode() + codes.tobytes())
    part_of, notes = assign(n, person, None, seed)
    return Dataset(
        name="portraits",
        modality="image",
        records=pictures,
        attributes={name: law.attribute for name, law in LAWS.items()},
        labels=label,
        part_of=part_of,
        rows=np.arange(n),
        fingerprint=print_of.hexdigest(),
        person=person,
        notes=(*NOTES, *notes),
    )


NOTES = (
    (
        "Drawn faces: nobody's photograph. Attributes follow stated probabilities, and depend on"
        " each other only as said here."
    ),
    *(law.sentence() for law in LAWS.values()),
    (
        "beard shares nothing with smiling, mouth_open, glasses, turn, hat or background: it can be"
        " hidden at no cost to them."
    ),
    (
        "A hat, a scarf, a hand or a strand of hair may cover what a label says is there; turn is"
        " as the viewer sees it."
    ),
)
