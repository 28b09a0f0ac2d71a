"""Records on their way: nothing is lost, nothing else is taken, and lengths tell nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from world import world

from privet.core.errors import PrivetError
from privet.exchange.protocol.envelope import MAGIC, Envelope, max_bytes, padded, unpack
from privet.exchange.protocol.manifest import ExpectedRecord

SHAPES = arrays.array_shapes(min_dims=1, max_dims=4, max_side=6)
FLOATS = arrays.arrays(
    np.float32, SHAPES, elements=st.floats(width=32, allow_nan=False, allow_infinity=False)
)
LABELS = st.dictionaries(
    st.text(max_size=20),
    st.one_of(st.none(), st.text(max_size=20), st.floats(-1e9, 1e9)),
    max_size=4,
)


@given(FLOATS, LABELS, st.booleans())
def test_a_record_survives_the_way(z: np.ndarray, labels: dict, free: bool) -> None:
    shape = [None if free and k == 0 else size for k, size in enumerate(z.shape)]
    expect = ExpectedRecord(shape=shape, longest=max(z.shape[0], 1))
    content = Envelope("c", "r", "s", labels, z).pack(expect)
    got = unpack(content)
    assert (got.campaign, got.release, got.submission, got.labels) == ("c", "r", "s", labels)
    assert np.array_equal(got.z, z) and got.z.dtype == np.float32
    assert len(content) <= max_bytes(expect, sealed=False)


def test_the_length_does_not_tell_the_answer() -> None:
    made = world()
    z = made.record()
    answers = ({}, {"smiling": "yes"}, {"smiling": "no"}, {"age": 5.0, "smiling": "yes"})
    lengths = {len(made.plain("0" * 32, z, labels)) for labels in answers}
    assert len(lengths) == 1


def test_the_length_of_a_text_is_told_roughly() -> None:
    expect = ExpectedRecord(shape=[None, 8], longest=64)
    lengths = {
        len(Envelope("c", "r", "s", {}, np.zeros((n, 8), np.float32)).pack(expect))
        for n in range(1, 65)
    }
    assert len(lengths) <= 7
    assert all(padded(size) == size for size in lengths)


@given(st.binary(max_size=600))
def test_any_bytes_get_a_sentence_or_a_record(content: bytes) -> None:
    for start in (b"", MAGIC, MAGIC + (20).to_bytes(4, "little")):
        with pytest.raises(PrivetError):
            unpack(start + content)


@given(st.data())
def test_a_damaged_record_never_raises_anything_else(data: st.DataObject) -> None:
    made = world()
    content = bytearray(made.plain("0" * 32, made.record()))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        unpack(bytes(content[: data.draw(st.integers(0, len(content)))]))
    except PrivetError:
        return
