"""An audit says what can be read: all of the identity, nothing of a constant; and it is the same
audit however it is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from privet import Audit, PrivetError, Release
from privet.adversaries.convolutional import ResCL
from privet.adversaries.decoder import ReversedExtractor
from privet.adversaries.linear import Logistic
from privet.adversaries.mlp import MLP
from privet.adversaries.quadratic import Quadratic
from privet.adversaries.recurrent import Recurrent
from privet.auditing.audit import audit
from privet.auditing.batteries import BATTERIES, Battery
from privet.auditing.limits import limitations
from privet.data.dataset import PARTS
from privet.data.schema import learn_schema
from privet.nets import registry as nets
from privet.release.noise import Noise
from small import TRACES, small

BEST = {"table": 0.894, "image": 1.0, "text": 1.0, "signal": 1.0}
"""What the best adversary of all reads of u: in the table two normal laws one apart, of deviation
0.4, overlap."""


SCOUT = MLP(
    shapes=((8,),), epochs=1, least=60, batch=32, rates=(3e-3,), decays=(1e-2,), whites=(False,)
)


@pytest.fixture(autouse=True, scope="module")
def _tiny() -> Iterator[None]:
    """Batteries of the size of the data here."""
    with pytest.MonkeyPatch.context() as patch:
        for name, least in (("tiny", 80), ("brief", 8)):
            size = {"epochs": 1, "least": least, "batch": 32, "width": 0.05, "rates": (5e-3,)}
            attackers = (
                Logistic(strengths=(0.1,)),
                SCOUT,
                ResCL(**size),
                Recurrent(**size),
                Quadratic(shrinkages=(0.3,)),
            )
            patch.setitem(BATTERIES, name, Battery(attackers, (SCOUT,), (), people=False))
        patch.setitem(
            BATTERIES,
            "one",
            Battery(
                (Logistic(strengths=(0.1,)),),
                (SCOUT,),
                (ReversedExtractor(epochs=1, width=0.1),),
                people=False,
            ),
        )
        yield


class Constant(nn.Module):
    """The same for everyone: of a text one vector, of anything else four zeros."""

    def __init__(self, modality: str) -> None:
        super().__init__()
        self.shape = (None, 4) if modality == "text" else (4,)

    def forward(self, x):
        return torch.ones(len(x), 1, 4) if None in self.shape else torch.zeros(len(x), 4)


def _identity(data, private=("u",)) -> Release:
    release = Release.identity(learn_schema(data, ["u", "y"]))
    release.card["private"] = list(private)
    return release


def _constant(data, private=("u",)) -> Release:
    schema, card = learn_schema(data, ["u", "y"]), {"method": "constant", "private": list(private)}
    return Release(schema, ("constant", {}), Constant(data.modality), None, card)


def _audit(release, data, utility=(), battery="one", **more) -> Audit:
    return audit(
        release,
        data,
        utility,
        battery,
        **{"device": "cpu", "progress": False, "rebuild": False, **more},
    )


def _figures(said: Audit) -> list:
    """Everything that was counted; not how long it took."""
    return [
        (
            r.attribute,
            r.role,
            r.best,
            r.best_raw,
            f.adversary,
            f.source,
            f.select,
            f.plain,
            f.score,
            f.auc,
        )
        for r in said.readings
        for f in (*r.released, *r.raw)
    ]


@pytest.fixture(scope="module")
def table():
    return small("table", 400)


# What is readable is read, and nothing else.


@pytest.mark.parametrize("modality", TRACES)
def test_the_identity_leaks_all(modality):
    data = small(modality, 300 if modality == "image" else 1000)
    said = _audit(_identity(data), data, battery="tiny")
    figure = said.reading("u").worst.score
    assert figure.high >= BEST[modality] - 0.01 and figure.value > BEST[modality] - 0.1
    assert figure.low > figure.chance == 0.5 and not figure.is_chance and figure.better == "lower"
    assert said.reading("u").worst.auc.value > 0.9


@pytest.mark.parametrize("modality", TRACES)
def test_a_constant_leaks_nothing(modality):
    data = small(modality, 300)
    for finding in _audit(_constant(data), data, battery="brief").reading("u").released:
        assert finding.score.low <= 0.5 <= finding.score.high and finding.score.is_chance
        assert finding.plain.value <= finding.plain.chance, "a constant beat the commonest class"


def test_released_and_raw_agree_where_nothing_is_changed(table):
    """The identity is its own reference, to the last digit."""
    reading = _audit(_identity(table), table).reading("u")
    assert [f.score for f in reading.released] == [f.score for f in reading.raw]
    assert {f.source for f in reading.released} == {"released"} and {
        f.source for f in reading.raw
    } == {"raw"}


def test_noise_hides_what_it_drowns(table):
    class Drowned(nn.Module):
        shape = (6,)

        def forward(self, x, noise):
            return x + 1000 * noise

    release = Release(
        learn_schema(table, ["u", "y"]),
        ("drowned", {}),
        Drowned(),
        Noise("gaussian", (6,), 1000.0),
        {"private": ["u"]},
    )
    assert release.schema.shape == Drowned.shape
    said = _audit(release, table)
    # A thousandth of the spread is a thousandth of the AUC; the rest is four standard errors of it.
    assert abs(said.reading("u").worst.auc.value - 0.5) < 0.002 + 4 * np.sqrt(
        1 / (3 * len(table.part("test")))
    )
    assert not any("deterministic" in line for line in said.limits)


def test_a_battery_says_what_it_has_not_tried(table):
    release = Release.identity(learn_schema(table, ["u"]))
    told = {
        name: " ".join(limitations(release, battery, 7, ())) for name, battery in BATTERIES.items()
    }
    for name, battery in BATTERIES.items():
        assert ("small attackers only" in told[name]) == bool(battery.scouts)
        assert ("Nobody tried to find people" in told[name]) != battery.people
    assert not BATTERIES["lean"].scouts and not BATTERIES["lean"].people, (
        "or the lines above would show one side only"
    )


# Who is believed.


@pytest.mark.parametrize("modality", ["table", "text"])
def test_the_strongest_is_chosen_on_select(modality):
    data = small(modality, 300)
    for reading in _audit(_identity(data), data, ["y"], "brief").readings:
        assert len(reading.released) == len(reading.raw) > 2
        assert reading.best == np.argmax([f.select for f in reading.released])
        assert reading.best_raw == np.argmax([f.select for f in reading.raw])
        assert (
            reading.worst is reading.released[reading.best]
            and reading.reference is reading.raw[reading.best_raw]
        )


def test_strength_on_test_does_not_choose(table, monkeypatch):
    """One adversary is right about select and wrong about test, the other the other way round: the
    first is believed."""

    @dataclass(frozen=True)
    class Knows:
        right: object
        wrong_elsewhere: bool

        def answers(self, released):
            truth = released.labels("u")
            return np.eye(2)[
                truth if (released is self.right) == self.wrong_elsewhere else 1 - truth
            ]

    @dataclass(frozen=True, kw_only=True)
    class Bluffer(MLP):
        name: ClassVar[str] = "bluffer"

        def attack(self, seen, select, attribute, seed=0, tick=None):
            return Knows(select, True)

    @dataclass(frozen=True, kw_only=True)
    class Modest(MLP):
        name: ClassVar[str] = "modest"

        def attack(self, seen, select, attribute, seed=0, tick=None):
            return Knows(select, False)

    monkeypatch.setitem(
        BATTERIES, "staged", Battery((Modest(), Bluffer()), (SCOUT,), (), people=False)
    )
    reading = _audit(_identity(table), table, battery="staged").reading("u")
    assert [f.plain.value for f in reading.released] == [1.0, 0.0]
    assert reading.worst.adversary == reading.reference.adversary == "bluffer"


# Attributes of every kind.


def test_several_private_attributes_and_a_task():
    data = small("table", 600)
    said = _audit(_identity(data, ["u", "colour"]), data, ["y"])
    assert [(r.attribute, r.role) for r in said.readings] == [
        ("u", "private"),
        ("colour", "private"),
        ("y", "utility"),
    ]
    assert [r.attribute for r in said.private] == ["u", "colour"] and [
        r.attribute for r in said.utility
    ] == ["y"]
    assert {f.score.better for f in said.reading("y").released} == {"higher"}
    assert "colour" not in [r.attribute for r in said.undeclared]


def test_three_classes():
    data = small("table", 600)
    said = _audit(_identity(data, ["colour"]), data, battery="tiny")
    leaky, mute = (
        a.reading("colour")
        for a in (said, _audit(_constant(data, ["colour"]), data, battery="tiny", raw_from=said))
    )
    assert leaky.values == ("blue", "green", "red")
    assert leaky.worst.score.chance == pytest.approx(1 / 3) and leaky.worst.score.value > 0.95
    assert all(f.score.low <= 1 / 3 <= f.score.high for f in mute.released)


def test_no_task_and_nothing_rebuilt(table):
    said = _audit(_identity(table), table)
    assert said.utility == () and said.rebuilt == () and len(said.readings) == 1


def test_missing_labels_are_left_out():
    data = small("table", 400)
    holes = np.where(np.arange(len(data)) % 3 == 0, -1, data.labels["u"])
    data = replace(data, labels={**data.labels, "u": holes})
    said = _audit(_identity(data), data, ["y"])
    test = data.part("test")
    known = int((test.labels["u"] >= 0).sum())
    assert known < len(test)
    for name, n in (("u", known), ("y", len(test))):
        assert (
            {f.plain.n for f in said.reading(name).released}
            == {f.score.n for f in said.reading(name).raw}
            == {n}
        )


@pytest.mark.parametrize("modality", TRACES)
def test_a_permutation_of_the_test_people_changes_no_figure(modality):
    data = small(modality, 300)
    test = np.flatnonzero(data.part_of == PARTS.index("test"))
    order = np.arange(len(data))
    order[test] = np.random.default_rng(3).permutation(test)
    assert not np.array_equal(data.take(order).rows, data.rows)
    first = _audit(_identity(data), data, battery="brief")
    second = _audit(_identity(data), data.take(order), battery="brief", raw_from=first)
    for one, other in zip(_figures(first), _figures(second), strict=True):
        assert one[:-1] == other[:-1] and one[-1].value == pytest.approx(other[-1].value, abs=1e-9)


def test_same_seed_same_figures(table):
    first, second, third = (
        _audit(_identity(table), table, battery="brief", seed=seed) for seed in (4, 4, 5)
    )
    assert _figures(first) == _figures(second) != _figures(third)


# Raw figures from an earlier audit.


def test_raw_figures_are_taken_over_exactly(table):
    earlier = _audit(_identity(table, ["u"]), table, ["y"])
    later = _audit(
        _constant(table, ["u"]), table, ["y"], raw_from=Audit.from_json(earlier.to_json()), seed=9
    )
    for one, other in zip(earlier.readings, later.readings, strict=True):
        assert (
            one.raw == other.raw
            and one.best_raw == other.best_raw
            and one.released != other.released
        )


@pytest.mark.parametrize("case", ["data", "battery", "attribute"])
def test_raw_figures_of_other_work_are_refused(table, case):
    earlier = _audit(_identity(table), table)
    said = (
        "says nothing of 'y'"
        if case == "attribute"
        else "other data or inputs, or with another battery"
    )
    other = small("table", 400, seed=1) if case == "data" else table
    with pytest.raises(PrivetError, match=said):
        _audit(
            _constant(other),
            other,
            ["y"] if case == "attribute" else [],
            "tiny" if case == "battery" else "one",
            raw_from=earlier,
        )


# On paper.


@pytest.mark.parametrize("modality", TRACES)
def test_json_there_and_back(modality, tmp_path):
    data = small(modality, 200, people=60)
    torch.manual_seed(0)
    schema, settings = learn_schema(data, ["u", "y"]), {"width": 0.05}
    card = {"method": "x", "settings": settings, "private": ["u"], "seed": 0}
    release = Release(
        schema, ("extractor", settings), nets.build("extractor", schema, settings), None, card
    )
    said = _audit(release, data, ["y"], rebuild=True)
    assert said.rebuilt and said.rebuilt[0].n == len(data.part("test"))
    assert Audit.from_json(said.to_json()) == said
    said.save(tmp_path / "audit.json")
    assert Audit.load(tmp_path / "audit.json") == said
    assert sum(part["records"] for part in said.data["parts"].values()) == len(data)
    assert sum(part["people"] for part in said.data["parts"].values()) == len(
        np.unique(data.person)
    )
    assert "people" in said.reading("u").worst.score.interval, (
        "people with several records are drawn as people"
    )


NOT_AN_AUDIT = [
    "",
    "what",
    "[]",
    "{}",
    "null",
    "3",
    '"text"',
    '{"version": 2}',
    '{"version": 2, "readings": [3], "rebuilt": null}',
]


@pytest.mark.parametrize("text", NOT_AN_AUDIT, ids=lambda text: text or "empty")
def test_another_file_is_not_an_audit(text):
    with pytest.raises(PrivetError, match="not an audit"):
        Audit.from_json(text)


def test_an_audit_of_a_later_layout_or_with_a_part_gone_is_refused(table):
    good = json.loads(_audit(_identity(table), table).to_json())
    with pytest.raises(PrivetError, match="layout version 99"):
        Audit.from_json(json.dumps({**good, "version": 99}))
    optional = {
        f.name
        for f in fields(Audit)
        if f.default is not MISSING or f.default_factory is not MISSING
    } - {"version"}
    for key in set(good) - optional:
        with pytest.raises(PrivetError):
            Audit.from_json(json.dumps({k: v for k, v in good.items() if k != key}))


def test_an_audit_that_is_not_there(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(PrivetError, match="Cannot read the audit"):
            Audit.load(path)


def test_a_file_that_is_no_text_is_not_an_audit(tmp_path):
    (tmp_path / "audit.json").write_bytes(b"\xff\xfe\0\1")
    with pytest.raises(PrivetError, match="not an audit"):
        Audit.load(tmp_path / "audit.json")


# Wrong words.


def test_wrong_words_are_refused(table):
    with pytest.raises(PrivetError, match="hides 'u'"):
        _audit(_identity(table), table, ["u"])
    with pytest.raises(PrivetError, match="no battery 'ones'"):
        _audit(_identity(table), table, battery="ones")
    with pytest.raises(PrivetError, match="no attribute 'z'"):
        _audit(_identity(table), table, ["z"])
    one_value = replace(table, labels={**table.labels, "y": np.zeros(len(table), dtype=np.int64)})
    with pytest.raises(PrivetError, match="only one value"):
        _audit(_identity(one_value), one_value, ["y"])
