"""The feed gives the records that were asked for, in that order, wherever they lie; and it cleans
up after itself."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch

from privet.data.schema import Inputs
from privet.train.feed import Feed

CPU = torch.device("cpu")
N = 60


@pytest.fixture
def pictures(tmp_path) -> np.ndarray:
    """Memory-mapped, as the cache of a large data set is."""
    held = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.uint8, (N, 3, 8, 8))
    held[:] = np.random.default_rng(0).integers(0, 256, held.shape)
    held.flush()
    return np.load(tmp_path / "x.npy", mmap_mode="r")


@pytest.fixture
def feed(pictures) -> Feed:
    return Feed(
        Inputs(pictures, np.arange(N)[::-1]), {"i": np.arange(N), "u": np.arange(N) % 3 - 1}, CPU
    )


def _orders(count: int = 40) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.permutation(N)[: rng.integers(1, 9)] for _ in range(count)]


def _readers() -> int:
    return sum(thread.is_alive() for thread in threading.enumerate())


def test_read_ahead_equals_direct_indexing_in_order(feed, pictures):
    assert feed.resident is None, "a memory map is to be read from disk"
    batches = list(feed.batches(_orders()))
    assert len(batches) == len(_orders())
    for batch, index in zip(batches, _orders(), strict=True):
        np.testing.assert_array_equal(batch.x.numpy(), pictures[::-1][index])
        assert (
            batch.labels["i"].tolist() == index.tolist()
            and batch.labels["u"].tolist() == (index % 3 - 1).tolist()
        )
        assert batch.x.dtype == torch.uint8 and batch.labels["u"].dtype == torch.int64


def test_where_records_lie_makes_no_difference(feed, pictures):
    """The same records in memory."""
    resident = Feed(Inputs(np.array(pictures[::-1])), feed.labels, CPU)
    assert resident.resident is not None and len(resident) == len(feed) == N
    for one, other in zip(feed.batches(_orders()), resident.batches(_orders()), strict=True):
        assert torch.equal(one.x, other.x) and torch.equal(one.labels["i"], other.labels["i"])


@pytest.mark.parametrize("kind", ["resident", "disk"])
def test_places_are_cut_as_arrays_are(feed, pictures, kind):
    """An epoch's order, sent once and cut into batches, gives what each part's positions give."""
    feed = feed if kind == "disk" else Feed(Inputs(np.array(pictures[::-1])), feed.labels, CPU)
    order = np.random.default_rng(3).permutation(N)
    there = feed.places(order)
    assert len(there) == N
    cuts = [slice(start, start + 8) for start in range(0, N, 8)]
    for batch, cut in zip(feed.batches(there[cut] for cut in cuts), cuts, strict=True):
        plain = feed.batch(order[cut])
        assert torch.equal(batch.x, plain.x) and batch.labels["i"].tolist() == order[cut].tolist()


def test_reads_ahead_while_the_batch_is_worked_on(feed):
    asked: list[int] = []
    batches = feed.batches(asked.append(i) or index for i, index in enumerate(_orders()))
    next(batches)
    began = time.monotonic()
    while len(asked) < 2 and time.monotonic() - began < 600:
        time.sleep(0.001)
    assert len(asked) >= 2, "the next batch was not asked for until it was needed"
    assert len(asked) < 10, "it reads on without bound"
    batches.close()


@pytest.mark.parametrize("where", ["records", "indices"])
def test_an_error_in_the_reader_reaches_the_consumer(feed, where):
    def indices():
        yield np.arange(3)
        if where == "indices":
            raise RuntimeError("no more")
        yield np.array([N])

    batches, before = feed.batches(indices()), _readers()
    assert len(next(batches).x) == 3
    with pytest.raises(IndexError if where == "records" else RuntimeError):
        next(batches)
    assert _readers() <= before


@pytest.mark.parametrize("leave", ["close", "break", "error"])
def test_leaving_early_stops_the_reader(feed, leave):
    before, asked = _readers(), []

    def endless():
        while True:
            asked.append(1)
            yield np.arange(4)

    if leave == "close":
        batches = feed.batches(endless())
        next(batches)
        batches.close()
    elif leave == "break":
        for _ in feed.batches(endless()):
            break
    else:
        with pytest.raises(KeyError):
            next(map({}.__getitem__, map(id, feed.batches(endless()))))
    assert _readers() == before
    count = len(asked)
    time.sleep(0.02)
    assert len(asked) == count


def test_no_indices_no_batches(feed):
    assert list(feed.batches([])) == []


@pytest.mark.parametrize("kind", ["resident", "disk"])
def test_texts_are_cut_to_the_longest_of_the_batch(tmp_path, kind):
    lengths = np.random.default_rng(2).integers(1, 20, N)
    ids = np.where(np.arange(20) < lengths[:, None], 7, 0).astype(np.int64)
    if kind == "disk":
        np.save(tmp_path / "ids.npy", ids)
    feed = Feed(
        Inputs(ids if kind == "resident" else np.load(tmp_path / "ids.npy", mmap_mode="r")), {}, CPU
    )
    assert (feed.resident is None) == (kind == "disk")
    for batch, index in zip(feed.batches(_orders()), _orders(), strict=True):
        assert batch.x.shape == (len(index), lengths[index].max())
        np.testing.assert_array_equal(batch.x.numpy(), ids[index][:, : lengths[index].max()])


@pytest.mark.parametrize(("n", "size"), [(7, 8), (64, 8), (1003, 8), (5000, 16)])
def test_an_epoch_of_texts_has_whole_batches_of_like_length(n, size):
    lengths = np.random.default_rng(2).integers(1, 60, n)
    ids = np.where(np.arange(60) < lengths[:, None], 7, 0).astype(np.int64)
    feed, size = Feed(Inputs(ids), {}, CPU), min(size, n)
    positions = np.random.default_rng(3).permutation(n)
    order = feed.order(positions, size, np.random.default_rng(4))
    assert sorted(order) == sorted(positions[: n // size * size]), (
        "what is left out has to do with lengths"
    )
    assert order.tolist() == feed.order(positions, size, np.random.default_rng(4)).tolist()

    def padded(order: np.ndarray) -> float:
        return float(
            lengths[order[: n // size * size]].reshape(-1, size).max(1).mean()
            - lengths[order].mean()
        )

    assert padded(order) <= padded(positions) and (
        n < 1000 or padded(order) < 0.1 * padded(positions)
    )


def test_other_records_keep_their_order(feed):
    positions = np.random.default_rng(3).permutation(N)
    assert feed.order(positions, 8, np.random.default_rng(4)) is positions
