"""One release per person: the mean code of the person's records, with noise added once.

    z = round(mean of the codes of up to m records + scale * noise)

Several records of a person, each with its own noise, tell more than one of them. Their mean with
noise of one record is a code of the same size again, and tells about the person what one release of
that code tells. It needs a graph that adds noise to a code, z = code + scale * noise: the codes are
what the graph gives with noise 0, and that it adds is tried on the first records. The codes of all
records are held in memory until the last one is read; raw records are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from privet.core.errors import PrivetError
from privet.core.parallel_map import cores, in_order
from privet.data.dataset import Array
from privet.data.stream import Chunk
from privet.nets.noise_grid import grid_step
from privet.release.keyed_noise import KeyedNoise
from privet.release.noise import Noise
from privet.release.randomness import Randomness
from privet.release.runtime import Runnable, run_rows
from privet.release.shuffle import PLACE

# Random words that stand for a record's content.
DIGEST = 4


class _Codes(NamedTuple):
    """Records of one chunk: whose they are, their codes, digests of their content, columns."""

    people: list[str]
    codes: Array
    digests: Array
    beside: pd.DataFrame


def person_table(
    release: Runnable,
    run: Any,
    chunks: Iterator[Chunk],
    randomness: Randomness,
    person: str,
    keep: Sequence[str] = (),
    records: int | None = None,
    few: int = 256,
) -> pa.Table:
    """One released record per person, with what is kept beside it and a random word for each.

    Parameters:
        release: Whose graph adds noise to a code.
        run: A session of its graph.
        chunks: The records, with the columns `person` and `keep`.
        randomness: Where the noise comes from.
        person: The column that says whose a record is.
        keep: Columns to write, each of which must be the same in all records of a person.
        records: How many records of a person are used at most, drawn at random; None for all.
        few: How many records the graph is given at once.
    """
    law = _additive_law(release)

    def work(chunk: Chunk) -> _Codes:
        x, beside = chunk.encode()
        if chunk.start == 0:
            check_additive(run, law, x[:few])
        if beside[person].isna().any():
            raise PrivetError(f"The column '{person}' has gaps: it must say whose a record is.")
        parts = [slice(at, at + few) for at in range(0, len(x), few)]
        codes = [_run(run, law, x[part]) for part in parts]
        digests = [_digests(randomness, x[part], chunk.start + part.start) for part in parts]
        people = [str(value) for value in beside[person].tolist()]
        return _Codes(people, np.concatenate(codes), np.concatenate(digests), beside[list(keep)])

    workers = cores()
    read = list(in_order(work, chunks, workers, 2 * workers))
    if not read:
        raise PrivetError("There are no records to release.")
    return _released(read, law, randomness, keep, records)


def _additive_law(release: Runnable) -> Noise:
    law = release.noise
    if law is None or None in law.shape or tuple(law.shape) != tuple(release.shape):
        raise PrivetError(
            "--per person needs a release that adds noise to a code of a fixed size, as hedge does;"
            f" this one ({release.card.get('method')}) does not."
        )
    return law


def check_additive(run: Any, law: Noise, x: Array) -> None:
    """PrivetError unless the graph gives a code and `scale` times the noise, on these records."""
    noise = law.draw(len(x), x.shape[1], seed=0)
    code, noisy = _run(run, law, x), run.run(["z"], {"x": x, "noise": noise})[0]
    error = np.abs(noisy - code - law.scale * noise)
    allowed = 2 * grid_step(law.scale) + 1e-5 * np.maximum(1, np.abs(noisy))
    if not (error <= allowed).all():
        raise PrivetError(
            "--per person needs a release that adds noise to a code, z = code + scale * noise; the "
            "graph of this one does something else with it."
        )


def _run(run: Any, law: Noise, x: Array) -> Array:
    """Codes: what the graph gives without noise."""
    nothing = np.zeros((len(x), *(int(size or 0) for size in law.shape)), np.float32)
    return run_rows(run, "z", {"x": x, "noise": nothing})


def _digests(randomness: Randomness, x: Array, start: int) -> Array:
    """Random words that stand for records: with a key, the same for the same content."""
    if isinstance(randomness, KeyedNoise):
        return randomness.words(x, [""] * len(x), DIGEST)
    _, places = randomness.draw(None, x, start)
    return places[:, None]


def _released(
    read: Sequence[_Codes],
    law: Noise,
    randomness: Randomness,
    keep: Sequence[str],
    records: int | None,
) -> pa.Table:
    named = np.concatenate([part.people for part in read])
    people, who = np.unique(named, return_inverse=True)
    codes = np.concatenate([part.codes.reshape(len(part.codes), -1) for part in read])
    digests = np.concatenate([part.digests for part in read])
    # Records of a person together, in the order of their words, which are random: the first are a
    # random choice, the same whenever the same records are there.
    order = np.lexsort((*digests.T[::-1], who))
    starts = np.searchsorted(who[order], np.arange(len(people)))
    place = np.arange(len(order)) - starts[who[order]]
    used = order if records is None else order[place < records]
    number = np.bincount(who[used], minlength=len(people))
    means = np.zeros((len(people), codes.shape[1]))
    np.add.at(means, who[used], codes[used].astype(np.float64))
    means /= number[:, None]
    ends = np.cumsum(number)
    noise, places = _person_noise(
        law,
        randomness,
        people,
        [digests[used[e - k : e]] for k, e in zip(number, ends, strict=True)],
    )
    step = grid_step(law.scale)
    z = np.round((means + law.scale * noise.reshape(len(people), -1)) / step) * step
    kept = _constant(pd.concat([part.beside for part in read]), who, keep)
    columns = {name: pa.array(kept[name], from_pandas=True) for name in keep}
    flat = pa.array(z.astype(np.float32).ravel())
    lists = pa.FixedSizeListArray.from_arrays(flat, z.shape[1])
    return pa.table({**columns, "z": lists, PLACE: pa.array(places)})


def _person_noise(
    law: Noise, randomness: Randomness, people: Array, digests: Sequence[Array]
) -> tuple[Array, Array]:
    """One draw per person; with a key it follows from the person's name and records."""
    if not isinstance(randomness, KeyedNoise):
        drawn = [randomness.draw(law, np.zeros((len(people), 1), np.float32))]
    else:
        drawn = [
            randomness.draw(law, words.reshape(1, -1), ids=[str(person)])
            for person, words in zip(people, digests, strict=True)
        ]
    noise = np.concatenate([one for one, _ in drawn if one is not None])
    return noise, np.concatenate([places for _, places in drawn])


def _constant(beside: pd.DataFrame, who: Array, keep: Sequence[str]) -> pd.DataFrame:
    """Each person's values of kept columns."""
    groups = beside.groupby(who, sort=True)
    for name in keep:
        if (groups[name].nunique(dropna=False) > 1).any():
            raise PrivetError(
                f"'{name}' differs between records of a person, and --per person writes one record "
                "for each: keep columns that are the person's."
            )
    _, first = np.unique(who, return_index=True)
    return beside.iloc[first]
