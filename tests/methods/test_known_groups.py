"""Methods that aim at a bound where the adversary knows more: other attributes of a person, or
several records. The penalty is the certificate's own V, and it falls where it is aimed at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from privet.core.errors import PrivetError
from privet.data.attribute_codes import code
from privet.data.dataset import Dataset
from privet.data.splitting import assign
from privet.evidence.certificate.gaussian import certify
from privet.evidence.certificate.symbols import certify_alphabet
from privet.methods.certified import records_together
from privet.methods.codebook import Codebook
from privet.methods.hedge import Hedge
from privet.methods.known_groups import Aim, members
from privet.methods.method import Method
from privet.methods.outcome_laws import (
    LawMemory,
    Tallies,
    cells_per_axis,
    gaussian_laws,
    group_success,
    product_laws,
)
from privet.release.release import Release
from privet.train.feed import side_by_side
from privet.train.game import Run
from small import small

QUIET = Run(device="cpu", progress=False)
QUICK: dict[str, Any] = {"dims": 1, "epochs": 10, "width": 0.05, "batch": 120, "dropout": 0.0}


def table(columns: dict[str, Any], inputs: dict[str, Any], person: Any = None) -> Dataset:
    coded = {name: code(name, pd.Series(column)) for name, column in columns.items()}
    n = len(next(iter(columns.values())))
    part, notes = assign(n, person, None, 0)
    return Dataset(
        "coupled",
        "table",
        pd.DataFrame({**columns, **inputs}),
        {name: attribute for name, (attribute, _) in coded.items()},
        {name: labels for name, (_, labels) in coded.items()},
        part,
        np.arange(n),
        "coupled",
        person,
        notes,
    )


def coupled_with_known(n: int = 4000, seed: int = 0) -> Dataset:
    """What tells the task tells u to whoever knows s, and nothing to anybody else."""
    rng = np.random.default_rng(seed)
    u, s, rare = rng.integers(0, 2, n), rng.integers(0, 2, n), rng.random(n) < 0.01
    both = u ^ s
    y = np.where(rng.random(n) < 0.85, both, 1 - both)
    inputs = {"a": both + 0.3 * rng.standard_normal(n), "b": rng.standard_normal(n)}
    names = {"u": u, "y": y, "s": np.where(rare, "rare", np.where(s, "yes", "no"))}
    return table(names, inputs)


def coupled_records(people: int = 1400, seed: int = 0) -> Dataset:
    """Two records of a person are alike or opposite, which tells u; one of them tells nothing."""
    rng = np.random.default_rng(seed)
    u, first = rng.integers(0, 2, people), rng.integers(0, 2, people)
    y = np.stack([first, first ^ u], 1).ravel()
    person, n = np.arange(people).repeat(2), 2 * people
    inputs = {"a": y + 0.3 * rng.standard_normal(n), "b": rng.standard_normal(n)}
    return table({"u": u.repeat(2), "y": y}, inputs, person)


def codes_of(release: Release, data: Dataset) -> Any:
    x = torch.as_tensor(release.schema.inputs(data)[:])
    release.module.eval()
    with torch.no_grad():
        return release.module.body(x).double().numpy()  # type: ignore[operator, union-attr]


# The penalty.


@pytest.mark.parametrize("apart", [0.0, 0.5, 1.5])
def test_success_over_cells_is_that_of_the_best_adversary(apart: float) -> None:
    """Two codes: the best adversary is right with probability Phi(apart / 2 sigma)."""
    values = torch.arange(400) % 2
    codes = ((values - 0.5) * apart).float()[:, None]
    laws = gaussian_laws(codes, 0.5, cells_per_axis(1, 1))
    torch.testing.assert_close(laws.sum(1), torch.ones(400))
    found = group_success(laws, torch.eye(2)[values].unsqueeze(1))
    assert float(found) == pytest.approx(norm.cdf(apart / (2 * 0.5)), abs=2e-3)


def test_success_in_groups_is_the_certificates_own() -> None:
    rng = np.random.default_rng(0)
    data = small("table", 900)
    symbols = (data.labels["u"] + rng.integers(0, 4, 900)) % 5
    u, colour = data.attribute("u"), data.attribute("colour")
    aims = [Aim(u, None, 0, (), 0.6, 0.99, 0.6)]
    aims += [aim._replace(by=colour, value=value) for value in range(3) for aim in aims[:1]]
    labels = {name: torch.as_tensor(data.labels[name]) for name in ("u", "colour")}
    labels["u"][:50] = -1
    cells, laws = members(aims, labels), torch.eye(5)[torch.as_tensor(symbols)]
    memory = LawMemory(len(aims), 2, 5, 10**9)
    for part in torch.arange(900).split(150):
        remembered = memory.success(laws[part], cells[part])
    for aim, found, again in zip(aims, group_success(laws, cells), remembered, strict=True):
        inside = aim.inside({name: column.numpy() for name, column in labels.items()})
        wanted = certify_alphabet(
            symbols[inside],
            5,
            None,
            data.labels["u"][inside],
            np.flatnonzero(inside),
            "u",
            u.values,
        ).empirical
        assert float(found) == pytest.approx(wanted, abs=1e-5)
        assert float(again) == pytest.approx(wanted, abs=1e-5)


def test_a_batch_pulls_at_a_cell_as_much_as_it_has_people_there() -> None:
    """The mean of the batches' gradients is the gradient of all: also of a group that many batches
    have nobody of."""
    random = torch.Generator().manual_seed(0)
    values, rare = torch.arange(600) % 2, torch.rand(600, generator=random) < 0.02
    codes = (0.4 * values - 0.2 + 0.2 * torch.randn(600, generator=random)).requires_grad_()
    groups = torch.stack([torch.ones(600), rare.float()], 1)
    cells = groups.unsqueeze(2) * torch.eye(2)[values].unsqueeze(1)

    def laws(rows: torch.Tensor) -> torch.Tensor:
        return gaussian_laws(codes[rows, None], 0.3, 32)

    everybody = torch.arange(600)
    (wanted,) = torch.autograd.grad(group_success(laws(everybody), cells)[1], codes)
    memory = LawMemory(2, 2, 32, 10**9)
    memory.success(laws(everybody).detach(), cells)
    state = {name: buffer.clone() for name, buffer in memory.named_buffers()}
    total = torch.zeros(600)
    for rows in everybody.split(20):
        memory.load_state_dict(state)
        (mine,) = torch.autograd.grad(memory.success(laws(rows), cells[rows])[1], codes)
        total += mine / 30
    assert float((total - wanted).norm() / wanted.norm()) < 0.15
    assert (total[~rare] == 0).all()


def test_the_order_of_records_tells_nothing() -> None:
    laws = torch.rand(6, 3, 4, generator=torch.Generator().manual_seed(0)).softmax(2)
    tallies = Tallies(4, 3)
    assert tallies.number == 20 and tallies(laws).shape == (6, 20)
    torch.testing.assert_close(tallies(laws), tallies(laws[:, [2, 0, 1]]))
    torch.testing.assert_close(tallies(laws).sum(1), product_laws(laws).sum(1))


def test_records_of_a_person_stand_side_by_side() -> None:
    rng = np.random.default_rng(0)
    person = rng.integers(0, 12, 100)
    positions = rng.permutation(100)
    order = side_by_side(positions, person[positions], 3)
    assert sorted(order) == list(range(100))
    whole = sum(count // 3 for count in np.bincount(person))
    beside = person[order[: 3 * whole]].reshape(-1, 3)
    assert (beside == beside[:, :1]).all() and len(beside) > 20


# The methods.


@pytest.mark.parametrize("kind", [Hedge, Codebook])
def test_who_knows_more_is_hedged_against(kind: type[Method]) -> None:
    """Without `known` the release tells u to whoever knows s, at any bound for everybody."""

    def told(seed: int, **settings: Any) -> tuple[float, float]:
        data = coupled_with_known(seed=seed)
        more = {"symbols": 4} if kind is Codebook else {"sigma": 0.3}
        method = kind(target=0.62, memory=2048, seed=seed, **QUICK, **more, **settings)
        release = method.fit(data, ["u"], ["y"], run=QUIET)
        test = data.part("test")
        worst = 0.0
        for value in (0, 2):
            inside = test.labels["s"] == value
            worst = max(worst, empirical(release, test, inside))
        return empirical(release, test, test.labels["u"] >= 0), worst

    def empirical(release: Release, test: Dataset, inside: Any) -> float:
        codes, u = codes_of(release, test)[inside], test.labels["u"][inside]
        who, values = np.arange(len(u)), test.attribute("u").values
        if kind is Codebook:
            return certify_alphabet(codes.argmax(1), 4, None, u, who, "u", values).empirical
        return certify(codes, release.noise.scale, u, who, "u", values).empirical

    for seed in range(3):
        everybody, worst = told(seed)
        hedged_everybody, hedged = told(seed, known="s", known_target=0.68)
        assert everybody < 0.6 and hedged_everybody < 0.6
        assert worst > 0.7 and hedged < worst - 0.1, (seed, worst, hedged)


def test_small_groups_are_named() -> None:
    data = coupled_with_known()
    method = Hedge(known="s", sigma=0.3, **QUICK | {"epochs": 1})
    card = method.fit(data, ["u"], ["y"], run=QUIET).card["chosen"]["known"]
    assert card["too small"] == ["s = rare"]
    assert set(card["targets"]) == {"u given s = no", "u given s = yes"}
    assert all(target >= 0.6 for target in card["targets"].values())


@pytest.mark.parametrize("settings", [{}, {"per": "person"}])
def test_several_records_are_hedged_against(settings: dict[str, Any]) -> None:
    for seed in range(3):
        told = []
        for more in ({}, {"records": 2, **settings}):
            data = coupled_records(seed=seed)
            method = Hedge(target=0.66, sigma=0.3, memory=2048, seed=seed, **QUICK, **more)
            release = method.fit(data, ["u"], ["y"], run=QUIET)
            test = data.part("test")
            rows = records_together(test.people, 2)
            codes, u = codes_of(release, test)[rows], test.labels["u"][rows[:, 0]]
            seen = codes.mean(1) if settings and more else codes[:, :, 0]
            who, values = np.arange(len(u)), test.attribute("u").values
            told.append(certify(seen, release.noise.scale, u, who, "u", values).empirical)
        assert told[0] > 0.75 and told[1] < told[0] - 0.1, (seed, told)


def test_several_symbols_are_hedged_against() -> None:
    data = coupled_records()
    told = []
    for records in (1, 2):
        method = Codebook(target=0.66, symbols=4, records=records, memory=2048, **QUICK)
        release = method.fit(data, ["u"], ["y"], run=QUIET)
        test = data.part("test")
        rows = records_together(test.people, 2)
        symbols = codes_of(release, test).argmax(1)[rows]
        laws = torch.eye(4)[torch.as_tensor(symbols)] * (1 - release.noise.scale)
        laws = laws + release.noise.scale / 4
        cells = torch.eye(2)[torch.as_tensor(test.labels["u"][rows[:, 0]])].unsqueeze(1)
        told.append(float(group_success(product_laws(laws), cells)))
    assert told[0] > 0.75 and told[1] < told[0] - 0.1


@pytest.mark.parametrize("kind", [Hedge, Codebook])
def test_nothing_known_changes_nothing(kind: type[Method]) -> None:
    """The target of a group that is no group, and one record, are what was there before."""
    data, weights = small("table", 400), []
    for settings in ({}, {"known_target": 0.7}):
        release = kind(**QUICK | {"epochs": 2, "batch": 32}, **settings).fit(
            data, ["u"], ["y"], run=QUIET
        )
        weights.append(release.module.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_wrong_words_are_refused() -> None:
    data = small("table", 400, people=100)
    for settings, said in (
        ({"known": "u"}, "both private and known"),
        ({"known": "hat"}, "hat"),
        ({"known_target": 1.5}, "known_target"),
        ({"records": 0}, "records"),
        ({"records": 12}, "people of fit have so many records"),
        ({"per": "file"}, "per"),
        ({"per": "person"}, "of how many"),
        ({"dims": 8, "records": 2, "epochs": 1.0}, "too many to bound"),
    ):
        with pytest.raises(PrivetError, match=said):
            Hedge(**settings).fit(data, ["u"], ["y"], run=QUIET)
    numbers = replace(
        data,
        attributes={**data.attributes, "colour": replace(data.attribute("colour"), kind="number")},
    )
    with pytest.raises(PrivetError, match="known attribute 'colour' is a number"):
        Hedge(known="colour").fit(numbers, ["u"], ["y"], run=QUIET)
    with pytest.raises(PrivetError, match="too many to bound"):
        Codebook(symbols=64, records=3).fit(data, ["u"], ["y"], run=QUIET)
