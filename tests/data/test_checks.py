"""What is wrong with data is found, and said in a sentence; what is right is left alone."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import privet
from privet.core.errors import PrivetError
from privet.data.checks import DataCheck, check_data, refuse_meaningless, serious
from privet.data.dataset import Attribute, Dataset
from privet.data.duplicates import coincide_by_chance, copies, record_hashes
from privet.data.label_columns import label_columns
from privet.data.near_duplicates import near_duplicates
from small import small


def rows(n: int = 2000, seed: int = 0, **more: object) -> pd.DataFrame:
    """Rows of which no two are alike: `sex` to hide, `income` to keep."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "height": rng.normal(170, 10, n),
            "town": rng.choice(["A", "B", "C"], n),
            "sex": rng.choice(["f", "m"], n),
            "income": rng.integers(0, 2, n),
        }
    )
    return frame.assign(**more)


def kinds(checks: tuple[DataCheck, ...], what: str) -> list[str]:
    return [check.severity for check in checks if check.what == what]


def test_ordinary_data_has_nothing_to_say():
    assert not check_data(privet.load(rows()), ["sex"], ["income"])


def test_a_file_joined_with_itself_is_noticed_and_refused():
    twice = privet.load(pd.concat([rows(), rows()], ignore_index=True))
    checks = check_data(twice, ["sex"], ["income"])
    assert kinds(checks, "duplicates") == ["meaningless"]
    assert "2 times" in checks[0].sentence and "the parts share people" in checks[0].sentence
    with pytest.raises(PrivetError, match=r"joined with itself.*--accept duplicates"):
        privet.learn("leace", twice, "sex", "income")
    accepted = privet.Run(accept=("duplicates",), progress=False)
    assert privet.learn("leace", twice, "sex", "income", run=accepted).private == ["sex"]


def test_a_file_of_which_a_part_was_appended_again_is_noticed():
    again = privet.load(pd.concat([rows(), rows()[:300]], ignore_index=True))
    (check,) = check_data(again, ["sex"], ["income"])
    assert (check.what, check.count, check.severity) == ("duplicates", 600, "warning")


@pytest.mark.parametrize("seed", range(5))
def test_coarse_rows_that_coincide_are_no_copies(seed):
    rng = np.random.default_rng(seed)
    coarse = rows(3000, seed).assign(height=rng.geometric(0.01, 3000))
    counted = copies(privet.load(coarse))
    assert counted.across_people > 500 and counted.natural
    assert set(kinds(check_data(privet.load(coarse), ["sex"], ["income"]), "duplicates")) == {
        "note"
    }


@pytest.mark.parametrize("seed", range(5))
def test_copies_among_coarse_rows_are_told_from_coincidences(seed):
    rng = np.random.default_rng(seed)
    coarse = rows(3000, seed).assign(height=rng.geometric(0.002, 3000))
    again = pd.concat([coarse, coarse[:1000]], ignore_index=True)
    assert copies(privet.load(coarse)).natural and not copies(privet.load(again)).natural


def test_few_contents_that_happen_to_be_even_are_no_joined_file():
    assert copies(small_table(np.repeat(np.arange(8), 4))).times == 1
    assert copies(small_table(np.repeat(np.arange(40), 4))).times == 4
    assert coincide_by_chance(np.array([50, 61, 48, 55]))


def small_table(values: np.ndarray) -> Dataset:
    n = len(values)
    parts = (np.arange(n) % 4).astype(np.int8)
    return Dataset("t", "table", pd.DataFrame({"x": values}), {}, {}, parts, np.arange(n), "f")


def test_copies_within_a_person_are_not_copies_across_people():
    frame = rows(400, person=np.arange(400))
    counted = copies(privet.load(pd.concat([frame, frame], ignore_index=True)))
    assert (counted.across_people, counted.within_person, counted.in_test) == (0, 400, 0)


@pytest.mark.parametrize("modality", ["image", "signal", "text", "table"])
def test_equal_records_have_equal_hashes_and_others_do_not(modality):
    data = small(modality, 200)
    again = data.take(np.r_[np.arange(200), [7]])
    hashes = record_hashes(again)
    assert hashes[7] == hashes[200] and len(np.unique(hashes)) == len(np.unique(hashes[:200]))
    assert len(np.unique(hashes[:200])) > 190


def test_a_column_that_is_the_label_in_other_words_is_found():
    frame = rows()
    frame["gender"] = frame["sex"].map({"f": "woman", "m": "man"})
    frame["bracket"] = np.where(frame["income"] == 1, "high", "low")
    frame["payments"] = frame["income"] * 100 + np.random.default_rng(1).random(len(frame))
    frame["related"] = np.where(np.arange(len(frame)) % 20 == 0, 1 - frame["income"], 0)
    data = privet.load(frame)
    columns = ["height", "town", "gender", "bracket", "payments", "related", "income"]
    matches = {(m.label, m.column, m.how) for m in label_columns(data, ["sex", "income"], columns)}
    assert matches == {
        ("sex", "gender", "recoded"),
        ("income", "bracket", "recoded"),
        ("income", "payments", "tells"),
        ("income", "income", "itself"),
    }
    with pytest.raises(PrivetError, match=r"'bracket'.*means nothing.*--without bracket"):
        privet.learn("leace", data, "sex", "income")
    checks = check_data(data, ["sex"], ["income"])
    assert kinds(checks, "label") == ["meaningless", "warning", "warning"]


def test_a_column_in_which_nobody_shares_a_value_tells_nothing():
    frame = rows(serial=np.arange(2000).astype(str))
    assert not label_columns(privet.load(frame), ["sex", "income"], ["height", "town", "serial"])


def test_rare_values_and_few_people_are_named():
    race = np.where(np.arange(2000) < 60, "rare", np.where(np.arange(2000) % 2, "a", "b"))
    (check,) = check_data(privet.load(rows(race=race)), ["race"])
    assert "'rare' " in check.sentence and check.count < 30 and check.severity == "warning"
    sentences = " ".join(serious(check_data(privet.load(rows(30)), ["sex"])))
    for words in ("fewer than 30 people", "points", "no certificate is possible"):
        assert words in sentences


def test_one_value_in_test_is_refused():
    frame = rows(400)
    frame["split"] = np.repeat(["fit", "attack", "select", "test"], 100)
    frame.loc[frame["split"] == "test", "sex"] = "f"
    checks = check_data(privet.load(frame), ["sex"])
    assert kinds(checks, "people")[0] == "meaningless"


def test_an_unknown_check_cannot_be_accepted():
    with pytest.raises(PrivetError, match=r"no check of the data 'duplicate'.*duplicates"):
        refuse_meaningless((), ["duplicate"])


def photographs(n: int, seed: int = 0) -> np.ndarray:
    """Smooth colours with fine detail, as photographs have: uint8 (n, 3, 64, 64)."""
    rng = np.random.default_rng(seed)
    fields = 0.0
    for size, weight in ((4, 60), (16, 20), (32, 12)):
        coarse = rng.normal(0, weight, (n, 3, size, size))
        fields = fields + np.kron(coarse, np.ones((64 // size, 64 // size)))
    return np.clip(fields + 128, 0, 255).astype(np.uint8)


def encoded(picture: np.ndarray) -> np.ndarray:
    buffer = io.BytesIO()
    Image.fromarray(picture.transpose(1, 2, 0)).save(buffer, "JPEG", quality=60)
    return np.asarray(Image.open(buffer)).transpose(2, 0, 1)


def resized(picture: np.ndarray) -> np.ndarray:
    image = Image.fromarray(picture.transpose(1, 2, 0)).resize((64, 64), Image.Resampling.BILINEAR)
    return np.asarray(image).transpose(2, 0, 1)


CHANGES = {
    "encoded again": encoded,
    "darker": lambda picture: (picture * 0.6).astype(np.uint8),
    "brighter": lambda picture: np.minimum(picture.astype(int) + 30, 255).astype(np.uint8),
    "grey": lambda picture: np.broadcast_to(picture.mean(0), picture.shape).astype(np.uint8),
    "shifted": lambda picture: np.pad(picture, ((0, 0), (0, 1), (0, 1)), "edge")[:, 1:, 1:],
    "cut": lambda picture: resized(np.ascontiguousarray(picture[:, 1:-1, 1:-1])),
}


def pictures_of(pictures: np.ndarray) -> Dataset:
    n = len(pictures)
    labels = {"smile": np.arange(n) % 2}
    kind = {"smile": Attribute("smile", "binary", ("no", "yes"))}
    parts = np.where(np.arange(n) < n // 2, 0, 3).astype(np.int8)
    return Dataset("faces", "image", pictures, kind, labels, parts, np.arange(n), "f")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(2))
def test_changed_copies_of_pictures_are_found_and_no_others(change, seed):
    pictures = photographs(60, seed)
    changed = np.stack([CHANGES[change](picture) for picture in pictures[:30]])
    pairs = near_duplicates(pictures_of(np.concatenate([pictures, changed])))
    assert {tuple(pair) for pair in pairs.tolist()} == {(i, 60 + i) for i in range(30)}


def test_near_copies_between_parts_are_said_first():
    pictures = photographs(200)
    data = pictures_of(np.concatenate([pictures, np.stack([encoded(p) for p in pictures])]))
    (check, *_) = [c for c in check_data(data) if c.what == "near-duplicates"]
    assert check.severity == "warning" and "200 of 200 test pictures" in check.sentence


def test_pictures_of_one_colour_are_not_compared():
    flat = np.full((20, 3, 64, 64), 200, dtype=np.uint8)
    assert not len(near_duplicates(pictures_of(flat)))


def test_celeba_has_few_near_duplicates_across_people(shared_data):
    data = privet.load(str(shared_data / "celeba64.parquet"))
    some = data.take(np.arange(0, len(data), 4))
    checks = check_data(some, ["Male"], ["Smiling"])
    assert all(check.severity == "note" for check in checks)


def test_an_audit_says_first_that_a_task_is_in_the_input():
    from privet.adversaries.linear import Logistic
    from privet.reporting.markdown import summary
    from privet.reporting.page import render

    data = privet.load(rows(600))
    battery = privet.Battery((Logistic(),), people=False)
    hands_on, leaves_out = (
        privet.audit(privet.LEACE().fit(data, "sex", told), data, "income", battery)
        for told in ((), "income")
    )
    assert hands_on.reading("income").worst.score.value > 0.99
    assert leaves_out.reading("income").worst.score.value < 0.65
    words = "'income' is itself a column of the input"
    assert words in hands_on.checks[0] and not any(words in said for said in leaves_out.checks)
    page, short = render(hands_on), summary(hands_on)
    assert page.index("is itself a column") < page.index('id="found"')
    assert short.index("is itself a column") < short.index("| Task |")
