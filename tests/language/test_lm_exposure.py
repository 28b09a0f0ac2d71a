"""Exposure against models whose probabilities are known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import kstest, norm, skewnorm

from privet.core.errors import PrivetError
from privet.data.dataset import Array
from privet.data.schema import PAD
from privet.language.model_audit.exposure import (
    BY_CHANCE,
    exposure_by_fit,
    exposure_by_listing,
    exposures,
    fit,
)
from privet.language.models.canaries import NAMES, Canary, CanaryPlan, Pattern, planted_rows
from privet.language.models.tokens import DIGIT, FIRST, SubwordTokenizer, WordTokenizer

PATTERN = "the code is # # # #"
TOKENIZER = WordTokenizer.learn([], 100, always=["the code is", *NAMES])


def halving(ids: Array) -> Array:
    """A model for which digit d has a chance of 2^-d over their sum, whatever stands before: -log p
    = ln 2 x sum of digits + constant."""
    digit = (ids >= DIGIT) & (ids < FIRST)
    return np.where(digit, ids - DIGIT, 0).sum(1) * math.log(2) + 7.0


def test_listing_equals_the_closed_form() -> None:
    """The rank of a number is how many of the 10,000 have a smaller digit sum, and the middle of
    those with the same one."""
    canaries = [Canary(PATTERN, fill, 0, 1) for fill in (0, 1, 1234, 5555, 9999)]
    sums = np.array([sum(map(int, f"{n:04d}")) for n in range(10_000)])
    found = exposures(canaries, TOKENIZER, halving)
    for one in found:
        own = sums[one.canary.fill]
        rank = (sums < own).sum() + ((sums == own).sum() + 1) / 2
        assert one.listed and one.bits == pytest.approx(math.log2(10_000 / rank), abs=1e-9)
    assert found[0].bits == pytest.approx(math.log2(10_000))


def test_fit_and_listing_agree_where_both_are_known() -> None:
    rng = np.random.default_rng(0)
    canaries = [Canary(PATTERN, int(fill), 0, 1) for fill in rng.integers(0, 10_000, 40)]
    found = exposures(canaries, TOKENIZER, halving)
    assert max(abs(one.bits - one.fitted) for one in found) < 0.5
    by_fit = exposures(canaries, TOKENIZER, halving, largest_listed=10)
    assert not any(one.listed for one in by_fit)
    assert np.mean([abs(a.bits - b.bits) for a, b in zip(found, by_fit, strict=True)]) < 0.3


def test_a_memorised_sentence_has_all_the_bits_and_an_unseen_one_has_those_of_chance() -> None:
    secret = Pattern(PATTERN).rows(TOKENIZER, np.array([4711]))[0]
    found = exposures(
        [Canary(PATTERN, 4711, 0, 9)],
        TOKENIZER,
        lambda ids: np.where((ids == secret).all(1), 0.1, halving(ids) + 20),
    )
    assert found[0].bits == found[0].most == pytest.approx(math.log2(10_000))
    assert found[0].fitted > 12
    space = np.random.default_rng(1).random(4096)
    assert exposure_by_listing(space, space).mean() == pytest.approx(BY_CHANCE, abs=0.01)


def test_a_model_that_knows_nothing_exposes_nothing() -> None:
    found = exposures([Canary(PATTERN, 4711, 0, 9)], TOKENIZER, lambda ids: np.full(len(ids), 3.0))
    assert found[0].bits == pytest.approx(1.0, abs=1e-3)  # the middle of all ranks
    assert found[0].fitted < 2


def test_the_law_is_right_far_into_the_tail() -> None:
    z = np.array([-30.0, -8.0, 0.0, 2.0])
    assert exposure_by_fit(skewnorm(0.0), z) == pytest.approx(
        -norm.logcdf(z) / math.log(2), rel=1e-4, abs=1e-4
    )


def test_the_fit_finds_the_law_it_was_drawn_from() -> None:
    sample = skewnorm(4, loc=50, scale=3).rvs(4000, random_state=0)
    law = fit(sample)
    assert kstest(sample, law.cdf).pvalue > 0.01
    truth = -np.log2(skewnorm(4, loc=50, scale=3).cdf([50.5, 52, 55]))
    assert exposure_by_fit(law, np.array([50.5, 52, 55])) == pytest.approx(truth, abs=0.25)


@pytest.mark.parametrize(
    "tokenizer",
    [TOKENIZER, SubwordTokenizer.learn(["the code is"] * 3, FIRST + 260)],
    ids=["word", "subword"],
)
def test_rows_are_what_the_tokenizer_makes_of_the_sentences(
    tokenizer: WordTokenizer | SubwordTokenizer,
) -> None:
    pattern = Pattern("the code is @ #")
    fills = np.array([0, 7, 123, 639])
    rows = pattern.rows(tokenizer, fills)
    for fill, row in zip(fills, rows, strict=True):
        assert [code for code in row.tolist() if code != PAD][1:-1] == tokenizer.encode(
            pattern.sentence(int(fill))
        )
    assert (
        len(np.unique(pattern.rows(tokenizer, np.arange(pattern.space)), axis=0)) == pattern.space
    )


def test_canaries_are_all_different_and_planted_as_often_as_they_say() -> None:
    canaries = CanaryPlan(6, (0, 1, 4), [PATTERN, "the code is @ #"]).draw(np.arange(5), seed=3)
    assert len({one.sentence for one in canaries}) == len(canaries) == 18
    ids, author = planted_rows(canaries, TOKENIZER)
    assert len(ids) == len(author) == 6 * (0 + 1 + 4)
    assert {one.author for one in canaries} == set(range(5))
    with pytest.raises(PrivetError, match="more digits"):
        CanaryPlan(20, (1,), ["the code is #"]).draw(np.arange(5))
