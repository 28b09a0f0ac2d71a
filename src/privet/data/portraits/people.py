"""Who the drawn people are: their labels, by stated laws.

Labels are drawn by the LAWS below and by nothing else, so what one attribute tells about another is
known exactly and is written into the data's notes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privet.data.dataset import Array, Attribute

NO_YES = ("no", "yes")


@dataclass(frozen=True)
class Law:
    """P(attribute | given): one row of probabilities per value of the attribute it depends on.

    Parameters:
        fresh: The share of pictures in which it is drawn anew: 0 for what a person always has, 1
            for what is chance each time.
    """

    name: str
    values: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    given: str = ""
    fresh: float = 0.0

    @property
    def attribute(self) -> Attribute:
        return Attribute(
            self.name, "binary" if self.values == NO_YES else "categorical", self.values
        )

    def draw(self, uniform: Array, given: Array | None) -> Array:
        """Values by inversion of the distribution function."""
        edges = np.cumsum(self.rows, axis=1)[:, :-1]
        rows = edges[np.zeros(len(uniform), dtype=np.int64) if given is None else given]
        return np.asarray((uniform[:, None] >= rows).sum(axis=1), dtype=np.int64)

    def sentence(self) -> str:
        """The law as people read it."""
        rows = [
            ", ".join(f"{v} {p:.0%}" for v, p in zip(self.values, row, strict=True))
            for row in self.rows
        ]
        if not self.given:
            return f"{self.name}: {rows[0]}."
        cases = zip(LAWS[self.given].values, rows, strict=True)
        return (
            f"{self.name} depends on {self.given}: "
            + "; ".join(f"where {self.given} is {v}, {row}" for v, row in cases)
            + "."
        )


# The stated dependencies: every attribute, in the order of drawing. `beard` shares nothing with
# smiling, mouth_open or glasses.
LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Law("age_lines", NO_YES, ((0.65, 0.35),)),
        Law(
            "hair",
            ("black", "brown", "blond", "red", "grey"),
            ((0.31, 0.31, 0.21, 0.14, 0.03), (0.10, 0.10, 0.06, 0.04, 0.70)),
            "age_lines",
        ),
        Law("skin", ("pale", "fair", "tan", "brown", "dark"), ((0.2, 0.2, 0.2, 0.2, 0.2),)),
        Law("beard", NO_YES, ((0.6, 0.4),)),
        Law("long_hair", NO_YES, ((0.5, 0.5), (0.7, 0.3)), "beard"),
        Law("earrings", NO_YES, ((0.8, 0.2), (0.5, 0.5)), "long_hair"),
        Law("glasses", NO_YES, ((0.6, 0.4),), fresh=0.15),
        Law("smiling", NO_YES, ((0.5, 0.5),), fresh=1),
        Law("mouth_open", NO_YES, ((0.7, 0.3), (0.55, 0.45)), "smiling", fresh=1),
        Law("turn", ("left", "front", "right"), ((0.3, 0.4, 0.3),), fresh=1),
        Law("hat", NO_YES, ((0.75, 0.25),), fresh=1),
        Law(
            "background", ("sky", "leaves", "bricks", "paper"), ((0.25, 0.25, 0.25, 0.25),), fresh=1
        ),
    )
}


def people(n: int, rng: np.random.Generator) -> Array:
    """Who is in each of n pictures: two to six pictures of everyone, in no order."""
    return rng.permutation(np.repeat(np.arange(n), rng.integers(2, 7, n))[:n])


def labels(person: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Every attribute of every picture, by the LAWS."""
    n, found = len(person), dict[str, Array]()
    for law in LAWS.values():
        always, now = rng.random(int(person.max()) + 1)[person], rng.random(n)
        uniform = np.where(rng.random(n) < law.fresh, now, always)
        found[law.name] = law.draw(uniform, found.get(law.given))
    return found
