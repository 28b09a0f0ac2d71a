"""The page of a certificate: statements that the plain bound says nothing about are made for
themselves, and all of them share one confidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from privet.auditing import certificate_page
from privet.auditing.certificate_page import HEADLINES, Page, certify_page, headline_confidence
from privet.auditing.certificate_targets import GivenAttributes, GuessTarget, side_information
from privet.auditing.certified_codes import CertifiedCodes
from privet.auditing.certify import certificates
from privet.core.errors import PrivetError
from privet.data.schema import learn_schema
from privet.data.sources import load
from privet.evidence.certificate.side_information import SideInformation
from privet.evidence.figures import Certified
from privet.nets.additive import Additive
from privet.release.graph_shape import NoisyGraph
from privet.release.noise import Noise
from privet.release.release import Release

TWO = ("f", "m")


def page(codes: Any, labels: Any, person: Any = None, sigma: float = 0.3, **rest: Any) -> Page:
    """One attribute, codes of one number that tanh keeps between -1 and 1."""
    codes = np.asarray(codes, dtype=np.float32).reshape(len(labels), -1)
    shape = NoisyGraph("numbers", sigma, "code", reach=(-1.0, 1.0))
    people = np.arange(len(labels)) if person is None else np.asarray(person)
    target = GuessTarget("sex", TWO, np.asarray(labels))
    return Page(CertifiedCodes(codes, shape, ""), people, [target], 1, **rest)


def find(found: tuple[Certified, ...], **wanted: Any) -> Certified:
    usual = {"releases": 1, "records": 1, "per": "record", "weighing": "people", "given": ()}
    (one,) = [c for c in found if all(getattr(c, k) == v for k, v in {**usual, **wanted}.items())]
    return one


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_known_and_what_is_released_tell_more_together(seed: int) -> None:
    """Neither the job nor the code tells the sex; the two together tell it."""
    random = np.random.default_rng(seed)
    sex, job = random.integers(0, 2, (2, 8000))
    codes = np.where(sex == job, 0.5, -0.5)
    side = GivenAttributes(("job",), SideInformation("job", ("clerk", "nurse"), job))
    found = certify_page(page(codes, sex, sides=[side]), 0.99)
    assert (find(found).bound or 1.0) < 0.56, "the plain bound sees nothing of it"
    given = find(found, given=("job",))
    assert given.bound is not None and given.bound > 0.94 and (given.alone or 1.0) < 0.52
    assert [group.bound is not None and group.bound > 0.94 for group in given.groups] == [True] * 2


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_records_tell_what_neither_tells_alone(seed: int) -> None:
    """Two records of a person are alike or opposite, by the person's sex."""
    random = np.random.default_rng(seed)
    sex, first = random.integers(0, 2, 3000), random.choice([-0.6, 0.6], 3000)
    codes = np.stack([first, np.where(sex == 1, first, -first)], 1).ravel()
    found = certify_page(
        page(codes, sex.repeat(2), np.arange(3000).repeat(2), sigma=0.2, records=(2, 5)), 0.99
    )
    assert (find(found).bound or 1.0) < 0.56
    assert (find(found, records=2).bound or 1.0) > 0.98
    assert find(found, records=2, per="person").empirical > 0.7, "their mean tells too"
    assert not [c for c in found if c.records == 5], "nobody has five"


def test_records_and_people_are_weighed_where_they_differ() -> None:
    """A few people with many records are read; most people with one are not."""
    random = np.random.default_rng(0)
    sex = np.arange(4000) % 2
    many = np.arange(4000) < 400
    times = np.where(many, 20, 1)
    person = np.arange(4000).repeat(times)
    codes = np.where(many, np.where(sex == 1, 0.8, -0.8), 0.0).repeat(times)
    codes = codes + 0.01 * random.standard_normal(len(codes))
    found = certify_page(page(codes, sex.repeat(times), person), 0.99)
    by_people, by_records = find(found), find(found, weighing="records")
    assert by_people.empirical < 0.6 < 0.8 < by_records.empirical
    once = certify_page(page(codes[:10], [0, 1] * 5), 0.99)
    assert not [c for c in once if c.weighing == "records"], "the same where each has one record"


def test_all_statements_share_one_confidence(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[float] = []

    def counted(name: str) -> None:
        made = getattr(certificate_page, name)

        def call(*words: Any, delta: float, **rest: Any) -> Any:
            spent.append(delta)
            return made(*words, delta=delta, **rest)

        monkeypatch.setattr(certificate_page, name, call)

    for name in ("certify_people", "certify_given", "certify_all_priors"):
        counted(name)
    random = np.random.default_rng(0)
    sex, job = random.integers(0, 2, 2000), random.integers(0, 3, 4000)
    side = GivenAttributes(("job",), SideInformation("job", ("a", "b", "c"), job))
    asked = page(
        random.uniform(-1, 1, 4000), sex.repeat(2), np.arange(2000).repeat(2), sides=[side]
    )
    found = certify_page(asked, 0.95)
    assert sum(spent) == pytest.approx(0.05) and spent[0] == pytest.approx(HEADLINES * 0.05)
    assert {c.confidence for c in found} == {0.95}
    groups = sum(group.bound is not None for c in found for group in c.groups)
    assert {c.statements for c in found} == {len(found) + groups + 1} and groups == 3, (
        "and one for every prior"
    )
    assert headline_confidence(0.95, 1) == pytest.approx(1 - 0.8 * spent[0])


def test_the_worst_group_comes_first_and_small_ones_say_so() -> None:
    random = np.random.default_rng(0)
    sex = random.integers(0, 2, 6000)
    job = random.choice(4, 6000, p=[0.5, 0.3, 0.19, 0.01])
    codes = np.where(job == 1, 0.2 * (2 * sex - 1), 0.0)
    names = ("plain", "read", "other", "rare")
    side = GivenAttributes(("job",), SideInformation("job", names, job))
    given = find(certify_page(page(codes, sex, sides=[side]), 0.99), given=("job",))
    assert given.groups[0].value == "read" and given.groups[-1].value == "rare"
    assert given.groups[-1].bound is None and "too few people" in given.groups[-1].reason


def test_the_bound_without_data_is_above_what_any_sample_tells() -> None:
    codes = np.where(np.arange(4000) % 2 == 1, 1.0, -1.0)
    asked = page(codes, np.arange(4000) % 2, sigma=2.0)
    found = certify_page(asked, 0.99)
    one = find(found)
    assert (
        one.data_free == pytest.approx(0.6915, abs=1e-4) and one.empirical <= one.data_free + 1e-6
    )
    four = find(found, releases=4)
    assert four.data_free == pytest.approx(0.8413, abs=1e-4)
    free = replace(
        asked, coded=CertifiedCodes(asked.coded.values, NoisyGraph("numbers", 2.0, "c"), "")
    )
    assert find(certify_page(free, 0.99)).data_free is None, "nothing limits these codes"


class First(nn.Module):
    """tanh of a table's first column."""

    shape = (1,)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x[:, :1])


def test_what_is_given_is_named_by_attributes() -> None:
    random = np.random.default_rng(0)
    sex, job = random.integers(0, 2, (2, 4000))
    table = pd.DataFrame({"a": random.standard_normal(4000), "age": random.uniform(20, 70, 4000)})
    table = table.assign(sex=np.array(TWO)[sex], job=np.array(["clerk", "nurse"])[job])
    data = load(table)
    schema = learn_schema(data, ["sex", "job", "age"])
    release = Release(
        schema,
        ("first", {}),
        Additive(First(), 1.0),
        Noise("gaussian", (1,), 1.0),
        {"private": ["sex"]},
    )
    found = certificates(release, data, given=["job", "age", "job+age", "sex"], releases=(1,))
    assert [c.given for c in found] == [(), ("job",), ("age",), ("job", "age")], (
        "the attribute itself is not given"
    )
    assert len(found[2].groups) == 4 and len(found[3].groups) == 8, "a number in four ranges"
    with pytest.raises(PrivetError, match="did you mean 'job'"):
        side_information(data, "test", ["jop"])
