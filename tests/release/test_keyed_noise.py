"""Noise from a key: the same record gets the same numbers, everything else gets others."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privet.release.keyed_noise import KeyedNoise
from privet.release.noise import UNIT, Noise

KEY, GRAPH = bytes(range(32)), hashlib.sha256(b"graph").hexdigest()
LAW = Noise("gaussian", (2,), 1.0)
ROWS = np.random.default_rng(0).standard_normal((300, 5)).astype(np.float32)
VECTORS = json.loads(Path(__file__).with_name("keyed_noise.json").read_text(encoding="utf-8"))


def _noise(x: np.ndarray = ROWS, ids: list[str] | None = None, **changed: Any) -> np.ndarray:
    given = {"key": KEY, "graph": GRAPH, "campaign": "survey"} | changed
    noise, _ = KeyedNoise(**given).draw(LAW, x, 0, ids)
    assert noise is not None
    return noise


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['dtype']} {v['shape']} {v['id']!r}")
def test_the_vectors(vector: dict[str, Any]) -> None:
    """What `web/static/noise.js` gives, too; computed here by the formula of the docstring."""
    content = bytes.fromhex(vector["content"])
    x = np.frombuffer(content, vector["dtype"]).reshape(1, *vector["shape"])
    drawn = KeyedNoise(bytes.fromhex(vector["key"]), vector["graph"], vector["campaign"])
    words = drawn.words(x, [vector["id"]], vector["count"])
    assert words.tobytes().hex() == vector["words"]
    sized = lambda part: len(part).to_bytes(4, "little") + part  # noqa: E731
    message = b"privet noise 1\0\0" + bytes.fromhex(vector["graph"])
    message += sized(vector["campaign"].encode()) + sized(vector["id"].encode())
    message += sized(f"{vector['dtype']} {','.join(map(str, vector['shape']))}".encode()) + content
    key = bytes.fromhex(vector["key"])
    slow = hashlib.blake2b(message + b"\0", key=key).digest()
    inner = hashlib.blake2b(message + b"\1", key=key).digest()
    for i in range(1, 10):
        slow += hashlib.blake2b(i.to_bytes(8, "little"), key=inner).digest()
    assert slow[: 8 * vector["count"]].hex() == vector["words"]


def test_the_same_record_gets_the_same_noise_wherever_it_stands() -> None:
    ids = [f"p{i}" for i in range(300)]
    order = np.random.default_rng(1).permutation(300)
    whole = _noise(ids=ids)
    np.testing.assert_array_equal(whole[order], _noise(ROWS[order], [ids[i] for i in order]))
    np.testing.assert_array_equal(whole[7:8], _noise(ROWS[7:8], ids[7:8]))


@pytest.mark.parametrize(
    "changed",
    [
        {"key": KEY[:-1] + b"\0"},
        {"graph": hashlib.sha256(b"another").hexdigest()},
        {"campaign": "survey2"},
        {"x": np.nextafter(ROWS, np.float32(9))},
        {"ids": [f"q{i}" for i in range(300)]},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_anything_else_gives_other_noise(changed: dict[str, Any]) -> None:
    assert not (_noise() == _noise(**changed)).any()


def test_equal_rows_of_two_people_get_other_noise() -> None:
    same = np.repeat(ROWS[:1], 300, axis=0)
    assert len(np.unique(_noise(same))) == 600
    assert len(np.unique(_noise(same, [""] * 300))) == 2


def test_no_part_of_the_name_can_pass_for_another() -> None:
    """An id that ends where another begins, a row of four numbers and one of two by two."""
    one = _noise(ROWS[:1], ["b"], campaign="a")
    assert not (one == _noise(ROWS[:1], [""], campaign="ab")).any()
    flat, square = (_noise(ROWS[:1, :4].reshape(1, *s), ["b"]) for s in ((4,), (2, 2)))
    assert not (flat == square).any()


@pytest.mark.parametrize("law", UNIT)
def test_the_law_is_the_noises_law(law: str) -> None:
    noise, places = KeyedNoise(KEY, GRAPH, "c").draw(Noise(law, (40,), 1.0), ROWS)
    assert noise is not None
    cdf = {"gaussian": "norm", "laplace": "laplace", "uniform": "uniform"}[law]
    assert stats.kstest(noise.ravel().astype(np.float64), cdf).pvalue > 1e-3
    assert stats.kstest(places / 2.0**64, "uniform").pvalue > 1e-3


def test_pieces_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    law, drawn = Noise("gaussian", (30,), 1.0), KeyedNoise(KEY, GRAPH, "c")
    whole, places = drawn.draw(law, ROWS)
    monkeypatch.setattr("privet.release.keyed_noise.PIECE", 64)
    for a, b in zip((whole, places), drawn.draw(law, ROWS), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_padding_of_a_text_is_no_part_of_it() -> None:
    words = np.array([[5, 6, 7, 0, 0], [8, 9, 0, 0, 0]])
    law, drawn = Noise("gaussian", (None, 3), 1.0), KeyedNoise(KEY, GRAPH, "c")
    padded, places = drawn.draw(law, words, ids=["", ""])
    alone, place = drawn.draw(law, words[1:, :2], ids=[""])
    assert padded is not None and alone is not None and padded.shape == (2, 3, 3)
    np.testing.assert_array_equal(padded[1, :2], alone[0])
    assert places[1] == place[0] and not padded[1, 2].any()


def test_a_release_without_noise_is_shuffled_all_the_same() -> None:
    noise, places = KeyedNoise(KEY, GRAPH, "c").draw(None, ROWS)
    assert noise is None and len(np.unique(places)) == len(ROWS)


def test_copies_draw_alike_and_the_key_is_not_shown() -> None:
    drawn = KeyedNoise(KEY, GRAPH, "survey")
    np.testing.assert_array_equal(copy.deepcopy(drawn).draw(LAW, ROWS)[0], _noise())
    assert KEY.hex() not in repr(drawn) and repr(KEY) not in repr(drawn)
    with pytest.raises(ValueError, match="32 bytes"):
        KeyedNoise(b"short", GRAPH, "c")
