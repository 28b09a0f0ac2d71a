"""Plausibility: honest records pass, raw ones and those without noise do not."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from world import SIGMA, STEP, world

from privet.core.errors import PrivetError
from privet.exchange.protocol import seal
from privet.exchange.protocol.checks import (
    check_labels,
    check_open,
    check_record,
    check_sealed,
    noise_probability,
)
from privet.exchange.protocol.envelope import HEADER_STEP as HEADER
from privet.exchange.protocol.manifest import ExpectedRecord

NOISY = ExpectedRecord(shape=[512], low=-1.0, high=1.0, law="gaussian", scale=SIGMA, step=STEP)
PICTURE = ExpectedRecord(shape=[3, 16, 16])


def grid(z: np.ndarray) -> np.ndarray:
    return (np.round(z / STEP) * STEP).astype(np.float32)


@pytest.mark.parametrize("code", ["zero", "random", "ends", "smooth"])
def test_honest_records_pass_whatever_their_code(code: str) -> None:
    rng = np.random.default_rng(0)
    codes = {
        "zero": np.zeros((500, 512)),
        "random": rng.uniform(-1, 1, (500, 512)),
        "ends": np.sign(rng.standard_normal((500, 512))),
        "smooth": np.tile(np.sin(np.linspace(0, 6, 512)), (500, 1)),
    }
    for z in grid(codes[code] + SIGMA * rng.standard_normal((500, 512))):
        check_record(NOISY, z)


def test_few_numbers_pass_too() -> None:
    made = world(size=4)
    for seed in range(500):
        check_record(made.manifest.expect, made.record(seed))


def test_a_code_without_its_noise_is_refused() -> None:
    for z in (np.sin(np.linspace(0, 6, 512)), np.full(512, 0.3123)):
        with pytest.raises(PrivetError, match="without the noise"):
            check_record(NOISY, grid(z))


def test_less_noise_than_the_card_says_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(PrivetError, match="without the noise"):
        check_record(NOISY, grid(0.5 * SIGMA * rng.standard_normal(512)))


def test_records_off_the_grid_are_refused() -> None:
    z = SIGMA * np.random.default_rng(0).standard_normal(512)
    with pytest.raises(PrivetError, match="not on it"):
        check_record(NOISY, z.astype(np.float32))


def test_the_range_follows_from_code_and_noise() -> None:
    z = grid(SIGMA * np.random.default_rng(0).standard_normal(512))
    z[0] = 10.0
    with pytest.raises(PrivetError, match="beyond them"):
        check_record(NOISY, z)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_test_of_spread_keeps_its_false_alarm(law: str) -> None:
    """Its p-values are uniform for a code of zero, and larger for every other: never too often
    small."""
    rng = np.random.default_rng(0)
    draw = rng.standard_normal if law == "gaussian" else lambda size: rng.laplace(size=size)
    for code in (0.0, np.linspace(-1, 1, 64)):
        p = np.array([noise_probability(law, code + draw(64)) for _ in range(2000)])
        assert np.mean(p < 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.parametrize(
    "scale",
    [
        lambda x: x,
        lambda x: x / 255,
        lambda x: x / 127.5 - 1,
        lambda x: x / 256,
        lambda x: 2 * (x / 255) - 1,
        lambda x: x / 128 - 1,
    ],
)
def test_raw_pictures_are_refused_however_they_are_scaled(scale) -> None:
    x = np.random.default_rng(0).integers(0, 256, (3, 16, 16)).astype(np.float32)
    with pytest.raises(PrivetError, match="raw picture"):
        check_record(PICTURE, scale(x).astype(np.float32))
    noisy = ExpectedRecord(shape=[3, 16, 16], law="gaussian", scale=SIGMA, step=STEP)
    with pytest.raises(PrivetError):
        check_record(noisy, scale(x).astype(np.float32))


def test_other_numbers_pass_where_the_card_names_no_noise() -> None:
    check_record(PICTURE, np.random.default_rng(0).standard_normal((3, 16, 16)).astype(np.float32))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_only_finite_numbers(bad: float) -> None:
    z = np.random.default_rng(0).standard_normal((3, 16, 16)).astype(np.float32)
    z[0, 0, 0] = bad
    with pytest.raises(PrivetError, match="finite"):
        check_record(PICTURE, z)


@pytest.mark.parametrize("shape", [(16,), (3, 16, 15), (1, 3, 16, 16), (768,)])
def test_only_the_releases_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(PrivetError, match="shape"):
        check_record(PICTURE, np.zeros(shape, np.float32))


def test_a_free_axis_is_free_up_to_the_longest() -> None:
    expect = ExpectedRecord(shape=[None, 4], longest=10)
    rng = np.random.default_rng(0)
    check_record(expect, rng.standard_normal((10, 4)).astype(np.float32))
    with pytest.raises(PrivetError, match="shape"):
        check_record(expect, rng.standard_normal((11, 4)).astype(np.float32))


def test_sealed_records_pass_and_nothing_else_of_their_length_that_is_not_noise() -> None:
    made = world(size=128)
    for seed in range(300):
        check_sealed(made.manifest, made.body("0" * 32, made.record(seed)))
    length = len(made.body("0" * 32, made.record()))
    picture = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(
        picture, "PNG"
    )
    for content in (
        bytes(length),
        b"text " * 1000,
        made.plain("0" * 32, made.record()) + bytes(seal.OVERHEAD),
        picture.getvalue(),
    ):
        with pytest.raises(PrivetError):
            check_sealed(made.manifest, content[:length])


@pytest.mark.parametrize("extra", [1, -1, HEADER // 2, 100 * HEADER])
def test_sealed_records_have_their_lengths(extra: int) -> None:
    made = world(size=128)
    length = len(made.body("0" * 32, made.record())) + extra
    with pytest.raises(PrivetError, match="long"):
        check_sealed(made.manifest, np.random.default_rng(0).bytes(length))


def test_labels_are_those_that_are_asked_for() -> None:
    made = world()
    check_labels(made.manifest, {"smiling": "yes", "age": 30.0})
    check_labels(made.manifest, {"smiling": None})
    for labels in (
        {"beard": "yes"},
        {"Beard": "yes"},
        {"colour": "red"},
        {"smiling": "perhaps"},
        {"smiling": 1.0},
        {"age": "old"},
    ):
        with pytest.raises(PrivetError):
            check_labels(made.manifest, labels)


def test_an_open_record_names_its_campaign_release_and_submission() -> None:
    made = world("open")
    z = made.record()
    check_open(made.manifest, made.id, "0" * 32, made.plain("0" * 32, z, {"smiling": "no"}))
    for changed in ({"campaign": "1" * 32}, {"release": "2" * 64}, {"submission": "3" * 32}):
        with pytest.raises(PrivetError, match="another"):
            check_open(made.manifest, made.id, "0" * 32, made.plain("0" * 32, z, **changed))


def raw(seed: int) -> np.ndarray:
    """A picture of 3 x 16 x 16 bytes, as smooth as pictures are."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (3, 4, 4)).astype(float)
    wide = small.repeat(4, 1).repeat(4, 2) + rng.integers(-12, 13, (3, 16, 16))
    return np.clip(wide, 0, 255).round()


MEAN = np.array([0.485, 0.456, 0.406]).reshape(3, 1, 1)
DEVIATION = np.array([0.229, 0.224, 0.225]).reshape(3, 1, 1)


@pytest.mark.parametrize("seed", range(5))
def test_raw_pixels_are_refused_however_they_are_standardised(seed: int) -> None:
    """As networks take them: each channel has its own mean and deviation, and so its own step."""
    z = ((raw(seed) / 255 - MEAN) / DEVIATION).astype(np.float32)
    for record, shape in (
        (z, [3, 16, 16]),
        (z.transpose(1, 2, 0), [16, 16, 3]),
        (z.ravel(), [768]),
        (z.transpose(1, 2, 0).ravel(), [768]),
        (0.37 * z[:1] - 4.2, [1, 16, 16]),
        (z[:, ::-1, ::-1], [3, 16, 16]),
    ):
        with pytest.raises(PrivetError, match="bytes of a picture"):
            check_record(ExpectedRecord(shape=shape), np.ascontiguousarray(record, np.float32))


def test_releases_are_not_taken_for_bytes() -> None:
    """Numbers on a fine grid, sparse ones, saturated ones, few ones: 3,000 records."""
    rng = np.random.default_rng(0)
    for k in range(1000):
        z = rng.standard_normal((3, 8, 8)).astype(np.float32)
        check_record(ExpectedRecord(shape=[3, 8, 8]), np.maximum(z - 1, 0.0))
        check_record(ExpectedRecord(shape=[3, 8, 8]), np.tanh(9 * z))
        shape, step = [16 + k % 200], STEP
        row = grid(0.3 * rng.standard_normal(shape[0]))
        check_record(ExpectedRecord(shape=shape, law="gaussian", scale=0.3, step=step), row)
