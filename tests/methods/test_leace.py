"""Linear erasure does what its theorem says, no more and no less."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import norm
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

from privet import Run
from privet.core.errors import PrivetError
from privet.data.dataset import PARTS, Attribute, Dataset
from privet.evidence.leakage import auc
from privet.methods import leace
from privet.methods.leace import (
    LEACE,
    Concept,
    Erasure,
    Whitening,
    erasure,
    gather,
    rare_directions,
)
from privet.release.release import Release
from privet.release.runtime import read_graph, session
from small import small

RUN = Run(progress=False, device="cpu")


def table(x: np.ndarray, seed: int = 0, **labels: np.ndarray) -> Dataset:
    """Rows of numbers with labels beside them: whole numbers are classes, others numbers."""
    n = len(x)
    attributes = {}
    for name, column in labels.items():
        values = (
            tuple(str(v) for v in range(int(column.max()) + 1)) if column.dtype == np.int64 else ()
        )
        attributes[name] = Attribute(
            name, ("binary" if len(values) == 2 else "categorical") if values else "number", values
        )
    part = np.random.default_rng(seed).choice(4, n, p=[0.4, 0.2, 0.2, 0.2]).astype(np.int8)
    frame = pd.DataFrame(x, columns=[f"v{i}" for i in range(x.shape[1])])
    return Dataset("rows", "table", frame, attributes, labels, part, np.arange(n), "rows")


def shifted(n: int = 3000, d: int = 12, classes: int = 2, seed: int = 0) -> Dataset:
    """Correlated normal coordinates whose mean depends on the class u, and a task y in another
    direction."""
    rng = np.random.default_rng(seed)
    u, y = rng.integers(0, classes, n), rng.integers(0, 2, n)
    x = (
        rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
        + rng.standard_normal((classes, d))[u] * 2
    )
    return table(x + np.outer(y, rng.standard_normal(d)), seed, u=u, y=y)


def seen(release: Release, data: Dataset, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Encoded records of a part before and after, laid flat."""
    x = release.schema.inputs(data.part(part))[:]
    return np.asarray(x, dtype=np.float64).reshape(len(x), -1), release(x).reshape(len(x), -1)


def erased(data: Dataset, *private: str) -> Release:
    return LEACE().fit(data, list(private) or ["u"], run=RUN)


def closed_form(data: Dataset) -> tuple[Whitening, Erasure]:
    feed = LEACE().problem(data, ["u"], [], [], RUN).feed()
    factor, cross = gather(feed, Concept.of([data.attribute("u")], feed), feed.inputs[:1].size)
    white = Whitening.of(factor)
    return white, erasure(white, cross, rare_directions(feed, data.part("fit").people, white))


def most_correlated(z: np.ndarray, column: np.ndarray) -> float:
    spread = z.std(0)
    z = (z - z.mean(0))[:, spread > 1e-5] / spread[spread > 1e-5]
    return float(np.abs(z.T @ (column - column.mean()) / len(z) / column.std()).max())


@pytest.mark.parametrize("classes", [2, 5])
def test_equals_the_package_of_its_authors(classes):
    concept_erasure = pytest.importorskip("concept_erasure")
    data = shifted(classes=classes)
    release = erased(data)
    x, u = (
        torch.from_numpy(seen(release, data, "fit")[0]),
        torch.from_numpy(data.part("fit").labels["u"]),
    )
    fitter = concept_erasure.LeaceFitter(
        x.shape[1],
        classes,
        shrinkage=False,
        svd_tol=1e-9,
        constrain_cov_trace=False,
        dtype=torch.float64,
    ).update(x, F.one_hot(u, classes))
    before, after = seen(release, data, "test")
    wanted = fitter.eraser(torch.from_numpy(before)).numpy()
    white, found = closed_form(data)
    exact = before - (before - white.mean.numpy()) @ found.down.numpy() @ found.up.numpy()
    np.testing.assert_allclose(exact, wanted, atol=1e-9)
    np.testing.assert_allclose(after, wanted, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_logistic_regression_finds_only_the_rate(seed):
    data = shifted(classes=3, seed=seed)
    release, u = erased(data), data.part("fit").labels["u"]
    before, after = seen(release, data, "fit")
    rate = np.bincount(u).max() / len(u)
    assert LogisticRegression(max_iter=2000).fit(before, u).score(before, u) > rate + 0.2
    model = LogisticRegression(max_iter=2000, C=1e6, tol=1e-8).fit(after, u)
    assert np.abs(model.coef_).max() < 1e-3
    assert model.score(after, u) == pytest.approx(rate, abs=1e-9)


def test_linear_adversary_on_others_is_within_what_the_certificate_leaves_it():
    data = shifted(12_000)
    release = erased(data)
    _, known = seen(release, data, "attack")
    _, after = seen(release, data, "test")
    truth = data.part("test").labels["u"]
    found = (
        LogisticRegression(max_iter=1000)
        .fit(known, data.part("attack").labels["u"])
        .decision_function(after)
    )
    left = release.card["certificate"]["cross_covariance"]["u"]["on_others"]
    # A correlation c with a fair bit sets the classes 2 c deviations apart.
    expected, error = norm.cdf(2 * left / math.sqrt(2)) - 0.5, 0.58 / math.sqrt(len(truth))
    assert abs(auc(truth, found) - 0.5) < expected + 3 * error < 0.1


@pytest.mark.parametrize("d", [10, 60])
def test_what_the_certificate_leaves_is_what_sampling_leaves(d):
    rng = np.random.default_rng(d)
    mean = rng.standard_normal(d) * 0.1
    u = rng.integers(0, 2, 41_000)
    x = rng.standard_normal((len(u), d)) + np.outer(u, mean)
    data = table(x, u=u)
    data.part_of[:] = PARTS.index("attack")
    data.part_of[:1000] = PARTS.index("fit")
    release = erased(data)
    _, z = seen(release, data, "attack")
    others = data.part("attack").labels["u"]
    reached = math.sqrt(LinearRegression().fit(z, others).score(z, others))
    assert reached == pytest.approx(
        release.card["certificate"]["cross_covariance"]["u"]["on_others"], rel=0.35
    )


def test_what_is_not_linear_stays_readable():
    rng = np.random.default_rng(0)
    u = rng.integers(0, 2, 4000)
    x = rng.standard_normal((4000, 6))
    x[:, 0] += u
    x[:, 1] *= 1 + 2 * u
    data = table(x, u=u)
    release = erased(data)
    (_, known), (_, z) = seen(release, data, "attack"), seen(release, data, "test")
    asked, truth = data.part("attack").labels["u"], data.part("test").labels["u"]
    assert abs(auc(truth, LogisticRegression().fit(known, asked).decision_function(z)) - 0.5) < 0.06
    assert (
        auc(
            truth,
            QuadraticDiscriminantAnalysis(reg_param=1e-3).fit(known, asked).decision_function(z),
        )
        > 0.7
    )


def test_functions_uncorrelated_with_the_concept_are_untouched():
    data = shifted(classes=3)
    release, u = erased(data), data.part("fit").labels["u"]
    before, after = seen(release, data, "fit")
    cross = (before - before.mean(0)).T @ np.eye(3)[u]
    basis = np.linalg.svd(cross)[0]
    free, bound = basis[:, 2:], basis[:, :2]
    np.testing.assert_allclose(after @ free, before @ free, atol=1e-5)
    assert np.abs((after - before) @ bound).max() > 0.5


def test_twice_is_once():
    data = shifted(classes=3)
    release = erased(data)
    _, once = seen(release, data, "test")
    np.testing.assert_allclose(release(once), once, atol=2e-6)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_takes_out_one_direction_less_than_there_are_classes(classes):
    data = shifted(classes=classes)
    release = erased(data)
    before, after = seen(release, data, "test")
    assert release.card["rank"] == classes - 1 == np.linalg.matrix_rank(after - before, tol=1e-2)


def linear(n: int = 500, d: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(3)
    x, z, mix = (torch.from_numpy(rng.standard_normal(shape)) for shape in ((n, d), (n, 2), (2, d)))
    return x + z @ mix, z - z.mean(0)


def fitted(x: torch.Tensor, z: torch.Tensor) -> tuple[Whitening, Erasure]:
    white = Whitening.of(torch.linalg.qr(F.pad(x, (1, 0), value=1.0), mode="r").R)
    return white, erasure(white, x.T @ z, torch.zeros(white.into.shape[1], 0, dtype=torch.float64))


def test_scale_of_a_column_does_not_matter():
    """The change is least in every inner product at once, so other units give the same records in
    other units."""
    x, z = linear()
    units = torch.tensor([1e-5, 1.0, 1e5, 3.0, 1e-2, 7.0], dtype=torch.float64)
    (_, plain), (_, scaled) = fitted(x, z), fitted(x * units, z)
    torch.testing.assert_close(
        scaled.down * units[:, None] @ (scaled.up / units), plain.down @ plain.up, rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("constant", [0.0, 0.7, -1e6])
def test_a_constant_is_no_direction(constant):
    x, z = linear()
    (_, plain), (white, wide) = fitted(x, z), fitted(F.pad(x, (0, 1), value=constant), z)
    assert white.into.shape[1] == 6 and white.deviation[-1] == 0
    torch.testing.assert_close(
        (wide.down @ wide.up)[:6, :6], plain.down @ plain.up, rtol=0, atol=1e-8
    )
    assert wide.down[-1].abs().max() == 0


def test_constant_and_collinear_columns():
    data = shifted()
    x = data.records.to_numpy()
    clumsy = np.column_stack(
        [x, x[:, 0] + x[:, 1], 3 * x[:, 2], np.full(len(x), 7.0), np.zeros(len(x))]
    )
    wide = table(clumsy, **data.labels)
    release = erased(wide)
    plain = erased(data)
    _, after = seen(release, wide, "test")
    assert np.isfinite(after).all() and release.card["rank"] == 1
    np.testing.assert_allclose(after[:, : x.shape[1]], seen(plain, data, "test")[1], atol=1e-4)
    assert most_correlated(seen(release, wide, "fit")[1], wide.part("fit").labels["u"]) < 1e-5


def with_few(people: int, turned: bool = False) -> Dataset:
    """A column in which so many of the *fit* people differ, and nobody else."""
    data = shifted(8000, 8)
    few = np.zeros(len(data))
    few[np.flatnonzero((data.part_of == 0) & (data.labels["u"] == 1))[:people]] = 1
    x = np.column_stack([data.records.to_numpy(), few])
    return table(
        x @ np.linalg.qr(np.random.default_rng(1).standard_normal((9, 9)))[0] if turned else x,
        **data.labels,
    )


@pytest.mark.parametrize("turned", [False, True], ids=["column", "direction"])
@pytest.mark.parametrize("carriers", [leace.CARRIERS, 1e-9], ids=["taken out", "left in"])
def test_a_direction_of_few_people_is_no_way_around(turned, carriers, monkeypatch):
    """Nobody among the adversary's people differs there, so it holds nothing but what erasure put
    into it."""
    monkeypatch.setattr(leace, "CARRIERS", carriers)
    data = with_few(5, turned)
    release = erased(data)
    (_, known), (_, z) = seen(release, data, "attack"), seen(release, data, "test")
    model = make_pipeline(
        PCA(whiten=True, n_components=8 if carriers > 1 else 9), LogisticRegression(C=100)
    )
    found = auc(
        data.part("test").labels["u"],
        model.fit(known, data.part("attack").labels["u"]).decision_function(z),
    )
    if carriers > 1:
        assert release.card["rare"] == 1 and abs(found - 0.5) < 0.06
    else:
        assert release.card["rare"] == 0 and found > 0.9


@pytest.mark.parametrize("people", [1, 5, 20, 100, 400])
def test_few_are_fewer_than_fifty(people):
    release = erased(with_few(people))
    assert release.card["rare"] == (people < leace.CARRIERS) and release.card["rank"] == 1


def test_one_person_with_many_records_is_one_of_few():
    data = with_few(100)
    person = np.arange(len(data))
    person[data.records["v8"] == 1] = 0
    assert erased(Dataset(**{**data.__dict__, "person": person})).card["rare"] == 1


def test_only_constant_columns_are_let_through():
    u = np.random.default_rng(0).integers(0, 2, 100)
    data = table(np.full((100, 2), 5.0), u=u)
    release = erased(data)
    before, after = seen(release, data, "test")
    np.testing.assert_array_equal(before, after)
    assert release.card["rank"] == 0


def test_fewer_records_than_coordinates():
    data = shifted(100, 80)
    release = erased(data)
    assert most_correlated(seen(release, data, "fit")[1], data.part("fit").labels["u"]) < 1e-5
    assert release.card["certificate"]["cross_covariance"]["u"]["on_others"] > 0.9, (
        "nothing is promised for others"
    )


def test_several_attributes_and_a_number_with_labels_missing():
    rng = np.random.default_rng(0)
    n = 3000
    u, age = rng.integers(0, 3, n), rng.normal(40, 12, n)
    x = (
        rng.standard_normal((n, 8))
        + rng.standard_normal((3, 8))[u]
        + np.outer(age / 12, rng.standard_normal(8))
    )
    u[rng.random(n) < 0.2], age[rng.random(n) < 0.2] = -1, np.nan
    data = table(x, u=u, age=age)
    release = erased(data, "u", "age")
    assert release.card["rank"] == 3
    fit = data.part("fit")
    before, after = seen(release, data, "fit")
    for label, known in (
        (fit.labels["age"], np.isfinite(fit.labels["age"])),
        *((fit.labels["u"] == c, fit.labels["u"] >= 0) for c in range(3)),
    ):
        assert most_correlated(before[known], label[known].astype(float)) > 0.1
        assert most_correlated(after[known], label[known].astype(float)) < 1e-5
    said = release.card["certificate"]
    assert "u or age" in said["said"] and set(said["cross_covariance"]) == {"u", "age"}
    for name, row in said["cross_covariance"].items():
        assert row["fit"] < 1e-5 < row["select"] < 1.5 * row["by_chance"], name
        assert 0.7 * len(fit) < row["fit_people"] < 0.9 * len(fit)


@pytest.mark.parametrize("modality", ["signal", "image"])
def test_windows_and_pictures(modality):
    data = small(modality, 300)
    release = erased(data)
    assert release.shape == release.schema.shape
    u = data.part("fit").labels["u"]
    before, after = seen(release, data, "fit")
    assert most_correlated(before, u) > 0.5
    assert most_correlated(after, u) < 1e-4


def test_reading_in_pieces_changes_nothing(monkeypatch):
    data = shifted(500)
    white, whole = closed_form(data)
    monkeypatch.setattr(leace, "CHUNK", 7)
    other, pieces = closed_form(data)
    torch.testing.assert_close(whole.down @ whole.up, pieces.down @ pieces.up, rtol=0, atol=1e-10)
    torch.testing.assert_close(white.mean, other.mean)


@pytest.mark.parametrize("others", [0, 5])
def test_a_coordinate_that_is_taken_out_leaves_not_even_its_rounding(others, tmp_path):
    """Alone, or where it says u outright, nothing of a coordinate can be kept; and one that differs
    in its last digit is not nothing."""
    rng = np.random.default_rng(others)
    u = rng.integers(0, 2, 2000)
    first = 3.0 * u + (0 if others else rng.standard_normal(2000))
    data = table(np.column_stack([first, rng.standard_normal((2000, others)) + u[:, None]]), u=u)
    release = erased(data)
    x = release.schema.inputs(data.part("test"))[:]
    release.save(tmp_path)
    for z in (release(x), session(read_graph(tmp_path)).run(["z"], {"x": x})[0]):
        assert len(np.unique(z[:, 0])) == 1
        assert all(len(np.unique(column)) > 300 for column in z[:, 1:].T)


def test_what_it_does_not_take_is_said_before_work():
    with pytest.raises(PrivetError, match="embedding of each text"):
        erased(small("text", 100))
    big = small("image", 40)
    big = Dataset(**{**big.__dict__, "records": np.zeros((40, 3, 64, 64), dtype=np.uint8)})
    with pytest.raises(PrivetError, match=r"at most 4096 numbers.*12288"):
        LEACE().problem(big, ["u"], [], [], RUN)
    mask = shifted(100)
    mask = Dataset(**{**mask.__dict__, "attributes": {"u": Attribute("u", "mask")}})
    with pytest.raises(PrivetError, match="is a mask"):
        erased(mask)
