"""Portraits: drawn by stated laws, the same for the same seed, and every label visible in the
picture."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from privet.core.errors import PrivetError
from privet.data.dataset import Dataset
from privet.data.portraits import drawing
from privet.data.portraits.looks import traits
from privet.data.portraits.people import LAWS, labels, people
from privet.data.portraits.source import FEWEST, portraits

N = 1500
BITS_N = 200_000
"""Labels cost nothing without pictures, so that the dependencies can be measured sharply."""
STABLE = [law.name for law in LAWS.values() if law.fresh == 0]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return portraits(N, seed=0, progress=False)


@pytest.fixture(scope="module")
def many() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(7)
    person = people(BITS_N, rng)
    return person, labels(person, rng)


def bits(a: np.ndarray, b: np.ndarray) -> float:
    """Mutual information of two label columns, by counting."""
    joint = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(joint, (a, b), 1 / len(a))
    apart = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log2(joint[seen] / apart[seen])).sum())


def test_pictures_labels_and_people_have_the_promised_form(data: Dataset) -> None:
    assert data.records.shape == (N, 3, 48, 48)
    assert data.records.dtype == np.uint8
    assert len(data.attributes) >= 12
    assert all(len(column) == N and column.dtype == np.int64 for column in data.labels.values())
    assert abs(len(np.unique(data.people)) - N / 4) < N / 20
    assert any("age_lines" in note and "grey" in note for note in data.notes)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(data: Dataset) -> None:
    again, other = portraits(N, seed=0, progress=False), portraits(40, seed=1, progress=False)
    assert again.fingerprint == data.fingerprint
    assert np.array_equal(again.records, data.records)
    assert not np.array_equal(other.records, portraits(40, seed=0, progress=False).records)


def test_a_picture_does_not_depend_on_the_batch_it_is_drawn_in_nor_on_the_rows_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    person = people(300, rng)
    sheet = traits(labels(person, rng), person, rng)
    whole = drawing.draw(sheet, seed=5)
    pieces = [
        drawing.draw({name: column[at : at + 7] for name, column in sheet.items()}, seed=5)
        for at in range(0, 300, 7)
    ]
    assert np.array_equal(whole, np.concatenate(pieces))
    everywhere = tuple(layer._replace(top=-9.0, bottom=9.0) for layer in drawing.LAYERS)
    monkeypatch.setattr(drawing, "LAYERS", everywhere)
    assert np.array_equal(whole, drawing.draw(sheet, seed=5))


@pytest.mark.parametrize("name", LAWS)
def test_rates_are_as_stated(name: str, many: tuple[np.ndarray, dict[str, np.ndarray]]) -> None:
    law, (person, label) = LAWS[name], many
    given = label[law.given] if law.given else np.zeros(BITS_N, dtype=int)
    for value, row in enumerate(law.rows):
        rates = (
            np.bincount(label[name][given == value], minlength=len(row)) / (given == value).sum()
        )
        independent = len(
            np.unique(person[given == value])
        )  # people, of whom each counts a few times
        assert np.abs(rates - row).max() < 4 * 1.3 * math.sqrt(0.25 / independent)


def test_beard_tells_nothing_about_the_tasks(
    many: tuple[np.ndarray, dict[str, np.ndarray]],
) -> None:
    _, label = many
    for task in ("smiling", "mouth_open", "glasses", "turn", "hat", "background"):
        assert bits(label["beard"], label[task]) < 0.001, task


def test_ties_are_as_strong_as_stated(many: tuple[np.ndarray, dict[str, np.ndarray]]) -> None:
    _, label = many
    assert bits(label["age_lines"], label["hair"]) > 0.25
    for one, other in (
        ("smiling", "mouth_open"),
        ("long_hair", "beard"),
        ("earrings", "long_hair"),
    ):
        assert 0.005 < bits(label[one], label[other]) < 0.1, (one, other)
    assert bits(label["beard"], label["earrings"]) < 0.02


def test_beard_shares_next_to_nothing_with_the_tasks_in_the_data_itself(data: Dataset) -> None:
    # Counting n records of independent bits finds about chi2 / (2 n ln 2); people repeat, so n
    # counts people.
    bound = 16 / (2 * len(np.unique(data.people)) * math.log(2))
    for task in ("smiling", "mouth_open", "glasses"):
        assert bits(data.labels["beard"], data.labels[task]) < bound, task


@pytest.mark.parametrize("name", STABLE)
def test_a_person_keeps_what_is_stable(name: str, data: Dataset) -> None:
    order = np.argsort(data.people, kind="stable")
    same_person = np.diff(data.people[order]) == 0
    assert (np.diff(data.labels[name][order])[same_person] == 0).all()


def test_a_person_mostly_keeps_their_glasses_but_not_their_smile(data: Dataset) -> None:
    order = np.argsort(data.people, kind="stable")
    same_person = np.diff(data.people[order]) == 0
    kept = {
        name: (np.diff(data.labels[name][order])[same_person] == 0).mean()
        for name in ("glasses", "smiling")
    }
    assert kept["glasses"] > 0.8
    assert abs(kept["smiling"] - 0.5) < 4 * math.sqrt(0.25 / same_person.sum())


def test_parts_share_no_person(data: Dataset) -> None:
    parts = [set(part.people) for part in data.splits()]
    assert sum(len(part) for part in parts) == len(set.union(*parts))


@pytest.fixture(scope="module")
def still() -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """People who hold still in the middle of the picture, so that a linear probe may look at
    pixels; half of them to judge."""
    rng = np.random.default_rng(2)
    person = people(N, rng)
    label = labels(person, rng)
    pose = {"x": 0.0, "y": 2.0, "scale": 15.0, "tilt": 0.0, "yaw": 0.0}
    sheet = traits(label, person, rng) | {name: np.full(N, value) for name, value in pose.items()}
    pixels = drawing.draw(sheet, seed=2).reshape(N, -1).astype(np.float32) / 255
    return (
        PCA(120, svd_solver="randomized", random_state=0).fit_transform(pixels),
        label,
        person % 2 == 0,
    )


BINARY = [law.name for law in LAWS.values() if law.attribute.kind == "binary"]


@pytest.mark.parametrize("name", BINARY)
def test_every_label_can_be_seen_in_the_picture(
    name: str, still: tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]
) -> None:
    """A linear probe finds it in people it has not met, clearly better than by chance."""
    pixels, label, judge = still
    truth = label[name]
    probe = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=[0.5, 0.5]).fit(
        pixels[~judge], truth[~judge]
    )
    right = (probe.predict(pixels) == truth)[judge]
    balanced = (right[truth[judge] == 0].mean() + right[truth[judge] == 1].mean()) / 2
    spread = math.sqrt(sum(0.25 / (truth[judge] == value).sum() for value in (0, 1))) / 2
    assert balanced > 0.5 + 4 * spread


@pytest.mark.parametrize("name", BINARY)
def test_a_label_draws_something(name: str) -> None:
    """The same person in the same picture, with and without: the pictures differ for nearly
    everyone."""
    rng = np.random.default_rng(9)
    person = people(200, rng)
    label = labels(person, rng)
    without, with_it = (
        drawing.draw(
            traits(label | {name: np.full(200, value)}, person, np.random.default_rng(1)), seed=0
        )
        for value in (0, 1)
    )
    changed = np.abs(without.astype(int) - with_it).max(axis=(1, 2, 3))
    assert (changed > 24).mean() > 0.9


def test_too_few_get_a_sentence() -> None:
    with pytest.raises(PrivetError, match=f"at least {FEWEST}"):
        portraits(FEWEST - 1)
    assert len(portraits(FEWEST, progress=False)) == FEWEST
