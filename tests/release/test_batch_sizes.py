"""What a record gives does not depend on how many others are released with it, to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from privet.data.schema import Column, TableSchema
from privet.nets import registry as nets
from privet.release.keyed_noise import KeyedNoise
from privet.release.noise import Noise
from privet.release.release import Release
from privet.release.runtime import Runnable, read_graph, session

RECORDS = 1500


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hedge that has learned nothing."""
    torch.manual_seed(0)
    schema = TableSchema(tuple(Column(f"v{i}", 0.0, 1.0) for i in range(13)))
    settings = {"dims": 2, "sigma": 0.4, "width": 0.5}
    module, law = nets.build("hedge", schema, settings).eval(), Noise("gaussian", (2,), 0.4)
    card = {"method": "hedge", "private": []}
    where = tmp_path_factory.mktemp("batches") / "r"
    Release(schema, ("hedge", settings), module, law, card).save(where)
    return where


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_a_record_gives_the_same_alone_as_among_others(folder, size):
    release, run = Runnable.load(folder), session(read_graph(folder), 1)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((RECORDS, 13)).astype(np.float32)
    randomness = KeyedNoise(bytes(32), "00" * 32, "campaign")

    def released(rows: np.ndarray) -> np.ndarray:
        return release.release(run, x[rows], randomness, 0, [str(k) for k in rows], False).z

    order = rng.permutation(RECORDS)
    parts = [released(order[at : at + size]) for at in range(0, RECORDS, size)]
    assert np.array_equal(np.concatenate(parts), released(np.arange(RECORDS))[order])
