"""Published data sets, written to a folder in the layout they are published in and read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from privet.core.errors import PrivetError
from privet.data.dataset import PARTS
from privet.data.images import read_picture
from privet.data.sources import load

Draw = Callable[..., bytes]


@pytest.fixture
def celeba(tmp_path: Path, draw: Draw) -> Path:
    (tmp_path / "img_align_celeba").mkdir()
    names = [f"{i:06d}.jpg" for i in range(1, 31)]
    for i, name in enumerate(names):
        (tmp_path / "img_align_celeba" / name).write_bytes(draw(i, 218, 178, "JPEG"))
    rows = [
        f"{name} {' 1' if i % 3 == 0 else '-1'} -1" if i % 2 else f"{name}  1  1"
        for i, name in enumerate(names)
    ]
    (tmp_path / "list_attr_celeba.txt").write_text(
        f"{len(names)}\nSmiling Male \n" + "\n".join(rows) + "\n"
    )
    (tmp_path / "list_eval_partition.txt").write_text(
        "".join(f"{name} {i // 10}\n" for i, name in enumerate(names))
    )
    (tmp_path / "identity_CelebA.txt").write_text(
        "".join(f"{name} {1000 + i // 2}\n" for i, name in enumerate(reversed(names)))
    )
    return tmp_path


def test_celeba(celeba: Path) -> None:
    data = load(f"celeba:{celeba}")
    assert (
        data.modality == "image"
        and data.records.shape == (30, 3, 218, 178)
        and set(data.attributes) == {"person", "Smiling", "Male"}
    )
    assert data.labels["Male"].tolist() == [int(i % 2 == 0) for i in range(30)]
    assert data.labels["Smiling"].tolist() == [int(i % 2 == 0 or i % 3 == 0) for i in range(30)]
    assert (
        data.person is not None and len(set(data.person)) == 15 and data.person[0] == data.person[1]
    )
    assert (
        set(data.part_of[:10]) == {0, 1}
        and set(data.part_of[10:20]) == {2}
        and set(data.part_of[20:]) == {3}
    )
    assert np.array_equal(data.records[4], read_picture(celeba / "img_align_celeba" / "000005.jpg"))


def test_celeba_smaller_and_broken(celeba: Path, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("size = [64, 64]")
    assert load(f"celeba:{celeba}", tmp_path / "s.toml").records.shape == (30, 3, 64, 64)
    (tmp_path / "s.toml").write_text("x = 'Male'")
    with pytest.raises(PrivetError, match="its layout is known"):
        load(f"celeba:{celeba}", tmp_path / "s.toml")
    (celeba / "img_align_celeba" / "000003.jpg").unlink()
    with pytest.raises(PrivetError, match=r"000003\.jpg"):
        load(f"celeba:{celeba}")
    text = (celeba / "list_attr_celeba.txt").read_text()
    for broken in (text[:-40], text.replace("-1", "-7"), "no list", ""):
        (celeba / "list_attr_celeba.txt").write_text(broken)
        with pytest.raises(PrivetError, match=r"list_attr_celeba\.txt"):
            load(f"celeba:{celeba}")
    (celeba / "identity_CelebA.txt").unlink()
    with pytest.raises(PrivetError, match=r"identity_CelebA\.txt"):
        load(f"celeba:{celeba}")


@pytest.mark.parametrize("inner", ["", "lfw_funneled"])
def test_lfw(tmp_path: Path, draw: Draw, inner: str) -> None:
    people = ["Aaron Eckhart", "José O'Neil", "AJ Cook", "Zico", 'Ana "A" Guevara', "Bo Li"]
    lines = ["# lfw_attributes.txt - attribute values", "#\tperson\timagenum\tMale\tNo Eyewear"]
    for i, person in enumerate(people):
        folder = tmp_path / inner / person.replace(" ", "_")
        folder.mkdir(parents=True)
        for k in (1, 2):
            (folder / f"{folder.name}_{k:04d}.jpg").write_bytes(draw(2 * i + k, 25, 25, "JPEG"))
            lines.append(f"{person}\t{k}\t{(-1) ** i * 0.73}\t{-1.5 if k == 1 else 0.01}")
    (tmp_path / "lfw_attributes.txt").write_text("\n".join(lines) + "\n")
    data = load(f"lfw:{tmp_path}")
    assert data.records.shape == (12, 3, 25, 25) and set(data.attributes) == {
        "person",
        "Male",
        "No Eyewear",
    }
    assert (
        data.labels["Male"].tolist() == [1, 1, 0, 0] * 3
        and data.labels["No Eyewear"].tolist() == [0, 1] * 6
    )
    assert (
        data.person is not None
        and len(set(data.person)) == 6
        and set(data.part_of) == set(range(len(PARTS)))
    )
    last = tmp_path / inner / "Bo_Li" / "Bo_Li_0002.jpg"
    assert np.array_equal(data.records[-1], read_picture(last))
    last.unlink()
    with pytest.raises(PrivetError, match=r"Bo_Li_0002\.jpg"):
        load(f"lfw:{tmp_path}")


def test_a_broken_lfw_table(tmp_path: Path) -> None:
    for text in ("", "person\timagenum\n", "#\tperson\timagenum\tMale\nA\tone\tx\n"):
        (tmp_path / "lfw_attributes.txt").write_text(text)
        with pytest.raises(PrivetError, match=r"lfw_attributes\.txt|no pictures"):
            load(f"lfw:{tmp_path}")


def test_utkface(tmp_path: Path, draw: Draw) -> None:
    names = [f"{10 + i}_{i % 2}_{i % 5}_2017010917455{i:04d}.jpg.chip.jpg" for i in range(20)]
    for i, name in enumerate(
        [*names, "61_1_20170109150557335.jpg.chip.jpg", "39_1_5_20170116174525125.jpg"]
    ):
        (tmp_path / name).write_bytes(draw(i, 20, 20, "JPEG"))
    data = load(f"utkface:{tmp_path}")
    assert (
        len(data) == 20 and data.person is None and any("2 pictures" in note for note in data.notes)
    )
    assert data.attributes["age"].kind == "number" and data.labels["age"].tolist() == list(
        range(10, 30)
    )
    assert [data.attributes["gender"].values[c] for c in data.labels["gender"]] == [
        "male",
        "female",
    ] * 10
    assert [data.attributes["race"].values[c] for c in data.labels["race"]] == [
        "White",
        "Black",
        "Asian",
        "Indian",
        "Others",
    ] * 4
    assert set(data.part_of) == set(range(len(PARTS)))


def test_utkface_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(PrivetError, match="UTKFace"):
        load(f"utkface:{tmp_path}")


@pytest.fixture
def adult(tmp_path: Path) -> Path:
    rest = (
        "77516, Bachelors, 13, Never-married, {job}, Not-in-family, White, {sex}, 2174, 0, 40,"
        " United-States, {income}"
    )
    rows = [
        (
            str(20 + i),
            rest.format(
                job="?" if i == 1 else "Sales",
                sex=("Male", "Female")[i % 2],
                income=("<=50K", ">50K")[i % 3 == 0],
            ),
        )
        for i in range(30)
    ]
    lines = [f"{age}, State-gov, {tail}" for age, tail in rows]
    (tmp_path / "adult.data").write_text("\n".join(lines[:20]) + "\n\n")
    (tmp_path / "adult.test").write_text(
        "|1x3 Cross validator\n" + "".join(line + ".\n" for line in lines[20:]) + "\n"
    )
    return tmp_path


def test_adult(adult: Path) -> None:
    data = load(f"adult:{adult}")
    assert data.modality == "table" and len(data) == 30 and len(data.attributes) == 15
    assert data.attributes["income"].values == ("<=50K", ">50K") and data.labels[
        "income"
    ].tolist() == [int(i % 3 == 0) for i in range(30)]
    assert data.labels["age"].tolist() == list(range(20, 50)) and data.labels["occupation"][1] == -1
    assert set(data.part_of[:20]) == {0, 1, 2} and set(data.part_of[20:]) == {3}


def test_a_broken_adult(adult: Path) -> None:
    for text in ("", "a,b\n1,2\n", (adult / "adult.data").read_text()[:-60]):
        (adult / "adult.data").write_text(text)
        with pytest.raises(PrivetError, match=r"adult\.data"):
            load(f"adult:{adult}")
    (adult / "adult.test").unlink()
    with pytest.raises(PrivetError, match=r"adult\.test"):
        load(f"adult:{adult}")
