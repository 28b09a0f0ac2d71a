"""What the auditor puts beside the headline: baselines, averages, undeclared attributes, fairness,
people, numbers, raw or not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from privet import Audit, PrivetError, Release
from privet.adversaries import reidentification
from privet.adversaries.adversary import Adversary
from privet.adversaries.decoder import ReversedExtractor
from privet.adversaries.linear import Logistic
from privet.adversaries.mlp import MLP
from privet.adversaries.released import PASSES, PICTURE_PASSES, Released
from privet.auditing.attribute_attack import baselines
from privet.auditing.audit import audit
from privet.auditing.averaged_releases import average_of
from privet.auditing.batteries import BATTERIES, Battery
from privet.data.dataset import Attribute, Dataset
from privet.data.schema import learn_schema
from privet.nets.additive import Additive
from privet.release.noise import Noise
from privet.reporting.markdown import summary
from privet.reporting.page import report
from small import small

SCOUT = MLP(
    shapes=((8,),), epochs=1, least=150, batch=64, rates=(1e-2,), decays=(1e-2,), whites=(False,)
)
LINE = Logistic(strengths=(0.1,))


@pytest.fixture(autouse=True, scope="module")
def _tiny() -> Iterator[None]:
    """Batteries of the size of the data here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reidentification, "STEPS", 20)
        patch.setitem(BATTERIES, "line", Battery((LINE,), (SCOUT,), (), people=False))
        patch.setitem(
            BATTERIES, "repeats", Battery((LINE,), (SCOUT,), (), averages=(4, 64), people=False)
        )
        patch.setitem(
            BATTERIES,
            "people",
            Battery((LINE, SCOUT), (SCOUT,), (ReversedExtractor(epochs=1, width=0.1),)),
        )
        yield


class Noisy(nn.Module):
    """The record and noise: two deviations of every column but the words."""

    shape = (6,)

    def forward(self, x, noise):
        return x + 2 * noise


class Redrawn(nn.Module):
    """A picture, changed after its noise."""

    shape = (3, 32, 32)

    def forward(self, x, noise):
        return torch.tanh(x + noise)


class Constant(nn.Module):
    shape = (4,)

    def forward(self, x):
        return torch.zeros(len(x), 4)


def _release(data: Dataset, module: nn.Module | None = None, private=("u",)) -> Release:
    schema = learn_schema(data, ["u", "y", "age"] if "age" in data.attributes else ["u", "y"])
    if module is None:
        release = Release.identity(schema)
        release.card["private"] = list(private)
        return release
    noise = Noise("gaussian", (6,), 2.0) if isinstance(module, Noisy) else None
    return Release(
        schema,
        (type(module).__name__, {}),
        module,
        noise,
        {"method": "x", "private": list(private)},
    )


def _audit(release: Release, data: Dataset, utility=(), battery="line", **more) -> Audit:
    return audit(
        release,
        data,
        utility,
        battery,
        **{"device": "cpu", "progress": False, "rebuild": False, **more},
    )


def _with(
    data: Dataset, name: str, labels: np.ndarray, values: tuple[str, ...] = (), kind: str = "number"
) -> Dataset:
    """The data with one more attribute, or another in its place."""
    attribute = Attribute(name, kind, values)
    return replace(
        data, labels={**data.labels, name: labels}, attributes={**data.attributes, name: attribute}
    )


def _grown(n: int, **more) -> Dataset:
    """Half of the variance of age is in the trace that u leaves; every ninth age is missing."""
    data = small("table", n, **more)
    age = 40 + 10 * data.labels["u"] + 5 * np.random.default_rng(7).standard_normal(n)
    age[::9] = np.nan
    return _with(data, "age", age)


@pytest.fixture(scope="module")
def table() -> Dataset:
    return small("table", 800)


# What is known without the release.


@pytest.mark.parametrize(
    "holes", [False, True], ids=["all labelled", "a missing label tells as well"]
)
def test_the_task_label_alone_tells_what_can_be_counted_by_hand(table, holes):
    """u is y in four of five records; and where asked for, some people's y is missing, all of whom
    have u = 1."""
    rng = np.random.default_rng(2)
    u = np.where(rng.random(len(table)) < 0.8, table.labels["y"], 1 - table.labels["y"])
    y = (
        np.where((u == 1) & (rng.random(len(table)) < 0.3), -1, table.labels["y"])
        if holes
        else table.labels["y"]
    )
    data = replace(table, labels={**table.labels, "u": u, "y": y})
    told = _audit(_release(data), data, ["y"]).reading("u").baselines
    test = data.part("test")
    says = np.where(test.labels["y"] < 0, 1, test.labels["y"])
    by_hand = np.mean([(says == value)[test.labels["u"] == value].mean() for value in (0, 1)])
    assert list(told) == ["prior", "task y"]
    assert told["task y"].value == pytest.approx(by_hand, abs=1e-12) and told["task y"].low > 0.5
    assert told["prior"].value == told["prior"].chance == 0.5 and told["prior"].is_chance


def test_a_task_of_three_values_is_looked_up_value_by_value(table):
    """The hidden value is the one after the task's, in four of five records."""
    rng = np.random.default_rng(3)
    task = rng.integers(0, 3, len(table))
    hidden = np.where(rng.random(len(table)) < 0.8, (task + 1) % 3, rng.integers(0, 3, len(table)))
    data = _with(
        _with(table, "task", task, tuple("abc"), "categorical"),
        "hidden",
        hidden,
        tuple("abc"),
        "categorical",
    )
    told = baselines(data.attribute("hidden"), "private", data, ["task", "y"])
    test = data.part("test")
    says, truth = (test.labels["task"] + 1) % 3, test.labels["hidden"]
    assert told["task task"].value == pytest.approx(
        np.mean([(says == value)[truth == value].mean() for value in range(3)]), abs=1e-12
    )
    assert told["task y"].is_chance and told["prior"].value == pytest.approx(1 / 3)


def test_only_classes_have_baselines_and_only_what_is_hidden_is_held_against_the_task():
    data = _grown(300)
    assert baselines(data.attribute("age"), "private", data, ["y"]) == {}
    assert list(baselines(data.attribute("u"), "private", data, ["age"])) == ["prior"], (
        "a number is no label to look up"
    )
    assert list(baselines(data.attribute("y"), "utility", data, ["y"])) == ["prior"]


# Averages of several releases.


@pytest.mark.parametrize("k", [1, 4, 16])
def test_the_mean_of_k_releases_has_a_kth_of_the_variance(table, k):
    release = _release(table, Noisy())
    x = release.schema.inputs(table)[:]
    torch.manual_seed(0)
    many = average_of(release, k)
    first, second = (many(x) - x for _ in range(2))
    bound = 5 * np.sqrt(2 / x.size)  # the relative standard error of a variance
    for noise in (first, second):
        assert np.var(noise) == pytest.approx(4 / k, rel=bound) and abs(noise.mean()) < 5 * np.sqrt(
            4 / k / x.size
        )
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 5 / np.sqrt(x.size), (
        "fresh in every pass"
    )
    assert many.is_random and many.shape == release.shape


def test_means_are_drawn_a_few_times_and_single_releases_every_time(table):
    """A mean of k costs k releases: later passes see the means of earlier ones, whole sets in turn,
    in whatever order they ask."""
    torch.manual_seed(0)
    release = _release(table, Noisy())
    once, many = (
        Released(r, table, ["u"], torch.device("cpu")) for r in (release, average_of(release, 4))
    )
    drawn = {
        seen: [torch.cat([z for z, _ in seen.batches(64)]) for _ in range(3 * PASSES)]
        for seen in (once, many)
    }
    alike = {
        seen: [[torch.equal(a, b) for b in passes] for a in passes]
        for seen, passes in drawn.items()
    }
    assert [sum(row) for row in alike[once]] == [1] * 3 * PASSES
    assert len({tuple(row) for row in alike[many]}) == PASSES and all(
        sum(row) >= 2 for row in alike[many]
    )
    shuffled = torch.cat([z for z, _ in many.batches(64, seed=1)])
    assert any(torch.equal(shuffled.sort(0).values, one.sort(0).values) for one in drawn[many])


def test_pictures_that_a_network_draws_after_their_noise_are_drawn_a_few_times_on_a_cpu():
    """Each with other noise: a network that reads pictures would else wait for the one that draws
    them at every pass."""
    data = small("image", 60)
    schema = learn_schema(data, ["u", "y"])
    noise = Noise("gaussian", Redrawn.shape, 1.0)
    release = Release(schema, ("redrawn", {}), Redrawn(), noise, {"private": ["u"]})
    seen = Released(release, data, ["u"], torch.device("cpu"))
    passes = [torch.cat([z for z, _ in seen.batches(64)]) for _ in range(2 * PICTURE_PASSES + 1)]
    different = {tuple(one.flatten().tolist()) for one in passes}
    assert seen.fresh_noise and len(different) == PICTURE_PASSES
    vectors = [seen.vectors() for _ in range(2 * PICTURE_PASSES)]
    assert len({tuple(one.flatten().tolist()) for one in vectors}) == PICTURE_PASSES


def test_who_averages_reads_more_and_stands_outside_the_contest():
    torch.manual_seed(0)
    data = small("table", 3000)
    reading = _audit(_release(data, Noisy()), data, ["y"], "repeats", raw=False).reading("u")
    assert [(f.source, f.releases, f.adversary) for f in reading.others] == [
        ("averaged", k, "logistic") for k in (4, 64)
    ]
    assert [f.releases for f in reading.released] == [1]
    once, some, many = reading.worst.score, *(f.score for f in reading.others)
    # Ten seeds: 0.62 to 0.68, 0.71 to 0.76, 0.85 to 0.88; raw, 0.89.
    assert once.value < some.value < many.value and many.low > once.high
    assert many.value > 0.8, "of 64 releases hardly any noise is left"


def test_what_adds_no_noise_is_not_averaged_nor_is_a_task(table):
    torch.manual_seed(0)
    noisy = _audit(_release(table, Noisy()), table, ["y"], "repeats", raw=False)
    plain = _audit(_release(table), table, ["y"], "repeats", raw=False)
    assert noisy.reading("y").others == plain.reading("u").others == plain.reading("y").others == ()


# Attributes nobody named.


def test_undeclared_attributes_come_in_the_order_of_how_readable_they_are():
    data = small("table", 1200)
    rng = np.random.default_rng(4)
    data = _with(data, "lot", rng.integers(0, 2, len(data)), ("no", "yes"), "binary")
    data = _with(data, "who", np.arange(len(data)), tuple(map(str, range(len(data)))), "identity")
    data = _with(data, "many", np.arange(len(data)) % 60, tuple(map(str, range(60))), "categorical")
    data = _with(data, "same", np.zeros(len(data), dtype=np.int64), ("no", "yes"), "binary")
    data = _with(data, "age", 40 + 10 * data.labels["u"] + rng.standard_normal(len(data)))
    found = _audit(_release(data, private=["u"]), data).undeclared
    names = [r.attribute for r in found]
    assert (
        names[0] == "colour" and names[-1] == "lot" and set(names) == {"colour", "y", "age", "lot"}
    )
    above = [(r.worst.score.low - r.worst.score.chance) / (1 - r.worst.score.chance) for r in found]
    assert above == sorted(above, reverse=True) and above[0] > 0.8 and above[-1] < 0.1
    assert {r.role for r in found} == {"undeclared"}
    assert all(
        len(r.released) == len(r.raw) == 1 and r.released[0].score == r.raw[0].score for r in found
    ), "the identity is raw"


# Whether a task treats groups alike.


@dataclass(frozen=True)
class Unfair:
    """Knows y. From released records it says 1 of everyone with u = 0; from raw ones the truth.
    Never surer of a 1 than `sure`."""

    sure: float = 1.0

    def answers(self, released):
        y, u = released.labels("y"), released.labels("u")
        ones = self.sure * (
            y if released.release.network[0] == "identity" else np.where(u == 0, 1, y)
        )
        return np.stack([1 - ones, ones], 1)


@dataclass(frozen=True, kw_only=True)
class Bent(Adversary):
    name: ClassVar[str] = "bent"
    title: ClassVar[str] = "bent"
    sure: float = 1.0

    def attack(self, seen, select, attribute, seed=0, tick=None):
        return Unfair(self.sure)


@pytest.mark.parametrize("sure", [1.0, 0.3])
def test_fairness_is_that_of_the_task_model_on_test_people(table, sure, monkeypatch):
    """Also of a model that finds a 1 unlikely of everybody, as models of rare things do: its score
    is counted at a threshold too."""
    monkeypatch.setitem(BATTERIES, "bent", Battery((Bent(sure=sure),), (SCOUT,), (), people=False))
    (found,) = _audit(_release(table, Constant()), table, ["y"], "bent").fairness
    test = table.part("test")
    ones = {u: test.labels["y"][test.labels["u"] == u].mean() for u in (0, 1)}
    parity, odds = (f"{name}_difference" for name in ("demographic_parity", "equalized_odds"))
    assert (found.task, found.by) == ("y", "u")
    assert (
        found.released[parity].value == pytest.approx(1 - ones[1])
        and found.released[odds].value == 1.0
    )
    assert (
        found.raw[parity].value == pytest.approx(abs(ones[1] - ones[0]))
        and found.raw[odds].value == 0.0
    )
    assert [(rate.by, rate.value, rate.score.value) for rate in found.rates] == [
        ("u", "no", pytest.approx(ones[0])),
        ("u", "yes", 1.0),
    ]


def test_fairness_is_asked_of_every_task_and_every_hidden_class_and_of_no_number():
    data = _grown(400)
    said = _audit(_release(data, private=["u", "colour", "age"]), data, ["y"], raw=False)
    assert [(f.task, f.by) for f in said.fairness] == [("y", "u"), ("y", "colour")]
    assert _audit(_release(data, private=["u"]), data, ["age"], raw=False).fairness == ()


# Raw records: beside the released ones, from an earlier audit, or not at all.


@pytest.fixture(scope="module")
def crowd() -> Dataset:
    """Several records of each person, an age, and a task."""
    return _grown(700, people=360)


@pytest.fixture(scope="module")
def whole(crowd) -> Audit:
    """Everything an audit can hold, of noise as large as the records."""
    torch.manual_seed(0)
    return _audit(_release(crowd, Noisy(), ["u", "age"]), crowd, ["y"], "people", rebuild=True)


def test_an_audit_holds_everything(whole):
    assert [p.attack for p in whole.people] == ["re-identification", "membership"] and all(
        p.raw for p in whole.people
    )
    assert whole.fairness and all(f.raw for f in whole.fairness)
    assert [r.attribute for r in whole.undeclared] == ["colour"] and all(
        r.raw for r in (*whole.readings, *whole.undeclared)
    )
    assert [r.n for r in whole.rebuilt] == [whole.data["parts"]["test"]["records"]]


def test_all_raw_figures_are_taken_over(crowd, whole):
    """Readings, undeclared attributes, people and fairness; found anew from released records, which
    are others now."""
    earlier = Audit.from_json(whole.to_json())
    later = _audit(
        _release(crowd, Constant(), ["u", "age"]), crowd, ["y"], "people", raw_from=earlier, seed=3
    )
    for kind in ("readings", "undeclared"):
        for one, other in zip(getattr(whole, kind), getattr(later, kind), strict=True):
            assert (
                one.attribute == other.attribute
                and one.raw == other.raw
                and one.best_raw == other.best_raw
            )
            assert [f.score for f in one.released] != [f.score for f in other.released]
    for one, other in zip(whole.people, later.people, strict=True):
        assert one.attack == other.attack and one.raw == other.raw and one.figures != other.figures
    for one, other in zip(whole.fairness, later.fairness, strict=True):
        assert (
            (one.task, one.by) == (other.task, other.by)
            and one.raw == other.raw
            and one.released != other.released
        )


def test_without_raw_records_nothing_is_said_of_them(crowd, whole, tmp_path):
    torch.manual_seed(0)
    said = _audit(_release(crowd, Noisy(), ["u", "age"]), crowd, ["y"], "people", raw=False)
    assert all(r.raw == () and r.best_raw == 0 for r in (*said.readings, *said.undeclared))
    assert [p.attack for p in said.people] == [p.attack for p in whole.people] and all(
        p.raw == {} for p in said.people
    )
    assert all(f.raw == {} and f.released for f in said.fairness) and said.fairness
    assert Audit.from_json(said.to_json()) == said
    report(said, tmp_path / "report.html")
    assert "age" in (tmp_path / "report.html").read_text() and "age" in summary(said)
    with pytest.raises(PrivetError, match="says nothing of 'u'"):
        _audit(_release(crowd, Constant(), ["u", "age"]), crowd, ["y"], "people", raw_from=said)


# Numbers.


def test_a_hidden_number_from_the_attack_to_the_page(tmp_path):
    data = _grown(900)
    said = _audit(_release(data, private=["age"]), data, ["y"])
    reading, test = said.reading("age"), data.part("test")
    best, n = reading.worst, int(np.isfinite(test.labels["age"]).sum())
    assert reading.role == "private" and reading.is_number and n < len(test)
    assert (
        best.score.measure == "share of variance explained"
        and best.score.chance == 0.0
        and best.score.n == n
    )
    assert 0.25 < best.score.value < 0.5 and best.score.low > 0, (
        "half of it is in the trace, which is noisy itself"
    )
    assert (
        best.plain.measure == "mean absolute error"
        and best.plain.better == "higher"
        and best.plain.value < best.plain.chance
    )
    known = test.labels["age"][np.isfinite(test.labels["age"])]
    select = data.part("select").labels["age"]
    assert best.plain.chance == pytest.approx(np.abs(known - np.nanmedian(select)).mean())
    assert (
        best.auc is None
        and reading.risk is None
        and reading.groups == ()
        and reading.baselines == {}
    )
    assert set(reading.evidence) == {"within_10_percent", "rank_correlation"}
    assert [f.score for f in reading.released] == [f.score for f in reading.raw], (
        "the identity is its own reference"
    )
    assert Audit.from_json(said.to_json()) == said
    report(said, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "age" in page and not re.search(r"\bnan\b", page, re.I) and "age" in summary(said)


def test_a_number_that_is_not_there_is_not_read(table):
    data = _with(table, "age", 40 + 9 * np.random.default_rng(1).standard_normal(len(table)))
    reading = _audit(_release(data, private=["age"]), data, raw=False).reading("age")
    assert reading.worst.score.is_chance and reading.worst.plain.is_chance


# Audits edited by hand.

OTHERS: tuple[Any, ...] = (None, True, 10**400, 0.5, "word", [None], {"word": 1})
WHOLE = ("release", "data", "readings", "undeclared")


def _nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], bool]]:
    """Where every value is, and whether it is a leaf."""
    below = list(
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    yield path, not below
    for key, inner in below:
        yield from _nodes(inner, (*path, key))


def _replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = _replaced(value[path[0]], path[1:], other)
    return changed


def _kinds(value: Any) -> Any:
    """The types of everything below a value whose type is declared; what is declared as anything is
    passed over."""
    if is_dataclass(value):
        inner = {
            f.name: _kinds(getattr(value, f.name))
            for f in fields(value)
            if "Any" not in str(f.type)
        }
        return type(value), inner
    if isinstance(value, tuple):
        return tuple(map(_kinds, value))
    if isinstance(value, dict):
        return {key: _kinds(inner) for key, inner in value.items()}
    return type(value)


def _brief(value: Any) -> Any:
    """One of everything: the first of each list and of each table of figures, but a class and a
    number of the readings."""
    if isinstance(value, Audit):
        readings = tuple(_brief(value.reading(name)) for name in ("u", "age"))
        return replace(
            value,
            readings=readings,
            undeclared=(),
            **{
                f.name: _brief(getattr(value, f.name)) for f in fields(value) if f.name not in WHOLE
            },
        )
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _brief(getattr(value, f.name)) for f in fields(value)})
    if isinstance(value, tuple):
        return tuple(map(_brief, value[:1]))
    return (
        {key: _brief(inner) for key, inner in list(value.items())[:1]}
        if isinstance(value, dict)
        else value
    )


def test_one_wrong_value_anywhere_is_refused_or_harmless(whole):
    """Every value of a real audit in turn, for one of every type: refused in one sentence, or read
    as the type it was."""
    good = _brief(whole)
    written, kinds, refused = json.loads(good.to_json()), _kinds(good), 0
    for path, is_leaf in _nodes(written):
        was = written
        for key in path:
            was = was[key]
        for other in OTHERS:
            try:
                read = Audit.from_json(json.dumps(_replaced(written, path, other)))
            except PrivetError as error:
                assert str(error).endswith(".") and "\n" not in str(error) and len(str(error)) < 200
                refused += 1
            else:
                # What is null or empty in this audit may be there in another, and a number of
                # records may be null: then nothing limits it.
                null = other is None and path in (("leaves", "records"), ("leaves", "made_of"))
                assert not is_leaf or null or was in (None, [], {}) or _kinds(read) == kinds, (
                    f"{path}: {other!r:.40}"
                )
    assert refused > 1000


def test_nesting_without_end_is_refused():
    with pytest.raises(PrivetError, match="not an audit"):
        Audit.from_json("[" * 100_000)


def test_bits_about_the_records_themselves(monkeypatch):
    """A release with noise has Cloak's bound, and less noise loses fewer of the bits; the identity
    loses nothing and is not asked."""
    data = small("table", 600)
    schema = learn_schema(data, ["u", "y"])
    size = schema.shape[0] or 0

    class Same(torch.nn.Module):
        shape = (size,)

        def forward(self, x):
            return x

    monkeypatch.setitem(
        BATTERIES,
        "bits",
        Battery((Logistic(strengths=(0.1,)),), (SCOUT,), (), people=False, estimates=True),
    )
    told = {}
    for sigma in (0.05, 4.0):
        release = Release(
            schema,
            ("x", {}),
            Additive(Same(), sigma),
            Noise("gaussian", (size,), sigma),
            {"private": ["u"]},
        )
        told[sigma] = audit(release, data, battery="bits", device="cpu", progress=False).information
    assert set(told[4.0]) == {"infonce", "jensen_shannon", "gaussian_bound"}, (
        "real numbers tell more of themselves than any estimate shows: there is no share"
    )
    for name in ("infonce", "gaussian_bound"):
        assert told[0.05][name].value > told[4.0][name].value
    assert told[4.0]["infonce"].low <= told[4.0]["gaussian_bound"].value
    raw = Release.identity(schema)
    raw.card["private"] = ["u"]
    assert audit(raw, data, battery="bits", device="cpu", progress=False).information == {}
