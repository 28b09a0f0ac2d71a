"""Four parts that share no person, whatever the split column says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.core.errors import PrivetError
from privet.data.dataset import PARTS
from privet.data.splitting import assign

people = st.lists(st.integers(0, 30), min_size=20, max_size=80).filter(lambda p: len(set(p)) >= 4)
words = st.sampled_from(["train", "valid", "test"])


@given(people, st.integers(0, 5))
def test_no_person_is_in_two_parts(person: list[int], seed: int) -> None:
    part, _ = assign(len(person), np.array(person), None, seed)
    assert {len(set(part[np.array(person) == who])) for who in set(person)} == {1}
    assert set(part) == set(range(len(PARTS)))


@pytest.mark.parametrize("n", range(4, 60))
def test_every_part_gets_somebody(n: int) -> None:
    part, _ = assign(n, None, None, seed=0)
    assert set(part) == set(range(len(PARTS)))


@given(st.data(), people, st.integers(0, 5))
def test_a_split_column_never_puts_a_person_in_two_parts(
    data: st.DataObject, person: list[int], seed: int
) -> None:
    split = np.array(data.draw(st.lists(words, min_size=len(person), max_size=len(person))))
    who = np.array(person)
    try:
        part, notes = assign(len(person), who, split, seed)
    except PrivetError:
        return
    assert set(part) == set(range(len(PARTS)))
    for one in set(person):
        assert len(set(part[who == one])) == 1
        if "train" in split[who == one]:
            assert (
                part[who == one][0] in (0, 1)
                or "valid" not in split
                or "test" not in split
                or notes
            )
    if not notes:
        assert np.all(part[split == "test"] == PARTS.index("test"))


@given(st.integers(0, 200), st.integers(16, 60), st.floats(0.3, 0.5))
def test_few_people_are_spread_by_what_they_are(seed: int, people: int, share: float) -> None:
    """With an attribute of two values, each part has its share of both but for one person; a trait
    of records changes nothing."""
    random = np.random.default_rng(seed)
    kind = random.permutation(np.arange(people) < round(share * people)).astype(int)
    who = np.repeat(np.arange(people), 3)
    part, notes = assign(
        len(who), who, None, seed, {"kind": kind[who], "mood": np.tile([0, 1, 1], people)}
    )
    for code in range(len(PARTS)):
        here = kind[np.unique(who[part == code])]
        assert abs(here.sum() - len(here) * kind.mean()) < 1.5
    assert "by kind." in notes[0]
    again, plain = (
        assign(len(who), who, None, seed, {"mood": np.tile([0, 1, 1], people)}),
        assign(len(who), who, None, seed),
    )
    assert np.array_equal(again[0], plain[0]) and again[1] == ()


def test_many_people_are_dealt_as_before() -> None:
    who = np.arange(101)
    assert np.array_equal(
        assign(101, who, None, 0, {"kind": who % 2})[0], assign(101, who, None, 0)[0]
    )


def test_a_published_split_keeps_its_meaning() -> None:
    split = np.repeat(["train", "valid", "test"], [50, 20, 30])
    part, notes = assign(100, None, split)
    assert (
        set(part[:50]) == {0, 1}
        and set(part[50:70]) == {2}
        and set(part[70:]) == {3}
        and notes == ()
    )


def test_people_on_both_sides_move_to_the_earlier_part_and_it_is_said() -> None:
    person = np.r_[np.repeat(np.arange(10), 4), 0, 1]
    split = np.repeat(["train", "valid", "test"], [24, 8, 10])
    part, notes = assign(len(person), person, split)
    assert part[-1] in (0, 1) and part[-2] in (0, 1) and "2 records" in notes[0]


def test_the_same_seed_deals_alike_and_another_does_not() -> None:
    first, again, other = (assign(200, None, None, seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parametrize("split", [["train", "holdout"] * 20, ["test"] * 40])
def test_a_split_that_cannot_be_honoured_is_one_sentence(split: list[str]) -> None:
    with pytest.raises(PrivetError):
        assign(40, None, np.array(split))
