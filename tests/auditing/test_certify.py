"""A certified release: no attack beats the bound, noise is chosen without a look at *test*, and
what cannot be certified says why."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

from privet.adversaries.adversary import silent
from privet.adversaries.linear import Logistic
from privet.adversaries.released import released_parts
from privet.auditing import certify
from privet.auditing.attribute_attack import AttackTarget, run_adversary
from privet.auditing.certificate_page import headline_confidence
from privet.auditing.certificate_targets import RANGES
from privet.cli import main as cli
from privet.commands import certify as commands
from privet.core.errors import PrivetError
from privet.data.dataset import PARTS, Attribute, Dataset
from privet.data.schema import TextSchema, learn_schema
from privet.data.sources import load
from privet.evidence.certificate.gaussian import certify as certify_codes
from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit, Certified
from privet.nets import registry as nets
from privet.nets.additive import Additive
from privet.release.graph import check
from privet.release.noise import Noise
from privet.release.release import Release
from privet.release.runtime import read_graph
from privet.reporting.page import render_certificate
from small import small

CPU = torch.device("cpu")
SMALL = 2000


class Squash(nn.Module):
    """tanh of a linear map to d numbers; the first shows u."""

    def __init__(self, columns: int, d: int) -> None:
        super().__init__()
        self.shape = (d,)
        self.map = nn.Linear(columns, d, bias=False)
        pattern = torch.tensor([1.0, 0.4, 0.1, *[0.0] * columns])[:columns]
        self.map.weight.data = torch.stack([pattern.roll(i) for i in range(d)])

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.map(x))


@pytest.fixture(autouse=True)
def network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that a card can name."""
    built = lambda schema, d=1, noise=1.0: Additive(Squash(schema.shape[0], d), noise)  # noqa: E731
    monkeypatch.setitem(nets.NETWORKS._entries, "squash", built)


def made(
    data: Dataset, d: int = 2, sigma: float = 0.8, private: tuple[str, ...] = ("u",)
) -> Release:
    schema = learn_schema(data, ["u", "y", "colour"])
    module = Additive(Squash(schema.shape[0] or 0, d), sigma)
    settings = {"d": d, "noise": sigma}
    card = {
        "method": "squash",
        "private": list(private),
        "settings": {"noise": sigma, "sigma": 3.0},
        "in_game": {"u": {"balanced": 0.5}},
    }
    card["data"] = {"name": data.name, "fingerprint": data.fingerprint}
    return Release(schema, ("squash", settings), module, Noise("gaussian", (d,), sigma), card)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return small("table", SMALL)


def spoiled(data: Dataset, *parts: str) -> Dataset:
    """The same people with other records in some parts."""
    frame = data.records.copy()
    rows = data.rows[np.isin(data.part_of, [PARTS.index(part) for part in parts])]
    frame.loc[rows, ["a", "b", "c"]] = np.random.default_rng(1).standard_normal((len(rows), 3)) * 5
    return replace(data, records=frame)


def one(found: tuple[Certified, ...], attribute: str = "u", releases: int = 1) -> Certified:
    return next(c for c in found if c.attribute == attribute and c.releases == releases)


def bound(found: Certified) -> float:
    assert found.bound is not None, found.reason
    return found.bound


# What is certified.


@pytest.mark.parametrize("d,sigma", [(1, 1.0), (2, 1.5)])
def test_no_attack_found_beats_the_bound(data: Dataset, d: int, sigma: float) -> None:
    release = made(data, d, sigma)
    found = certify.certificates(release, data, device="cpu")
    torch.manual_seed(0)
    attack = run_adversary(
        Logistic(),
        AttackTarget(
            released_parts(release, data, ["u"], CPU), data.attribute("u"), "private", "released"
        ),
        0,
        silent,
    )
    worst = attack.finding.score
    assert not worst.is_chance, "the attack reads something, or the test shows nothing"
    assert worst.low <= bound(one(found)) < 1, "its value also has the luck of the noise drawn"
    assert (
        bound(one(found)) < bound(one(found, releases=4)) < (one(found, releases=16).bound or 1.0)
    )


def test_more_noise_certifies_less_leakage_and_the_code_before_noise_is_what_counts(
    data: Dataset,
) -> None:
    release = made(data, 1, 0.3)
    louder = certify.with_noise_scale(release, 0.9)
    assert bound(one(certify.certificates(louder, data, device="cpu"))) < bound(
        one(certify.certificates(release, data, device="cpu"))
    )
    test = data.part("test")
    table = certify.noise_free_codes(release, test, CPU)
    assert table.shape == (len(test), 1) and np.array_equal(
        table, certify.noise_free_codes(louder, test, CPU)
    ), "no noise in codes"
    x = torch.from_numpy(release.schema.inputs(test)[:])
    assert np.allclose(release.forward(x, torch.zeros(len(x), 1)).numpy(), table, atol=1e-4), (
        "as near as the grid of releases is fine"
    )


def test_only_test_people_are_counted(data: Dataset) -> None:
    release = made(data, 1)
    usual = certify.certificates(release, data, device="cpu")
    assert (
        certify.certificates(release, spoiled(data, "fit", "attack", "select"), device="cpu")
        == usual
    )
    assert certify.certificates(release, spoiled(data, "test"), device="cpu") != usual
    assert sum(one(usual).people) == int((data.part_of == PARTS.index("test")).sum())


def test_people_with_several_records_weigh_as_one() -> None:
    several = small("table", SMALL, people=400)
    found = certify.certificates(made(several, 1), several, device="cpu")
    test = several.part("test")
    assert max(one(found).people) <= len(np.unique(test.people)) < len(test) / 3


def test_records_without_a_label_are_left_out(data: Dataset) -> None:
    hidden = np.where(np.arange(len(data)) % 3 == 0, -1, data.labels["u"])
    some = replace(data, labels={**data.labels, "u": hidden})
    release = made(data, 1)
    test = some.part("test")
    there = test.labels["u"] >= 0
    table = certify.noise_free_codes(release, test, CPU)[there]
    wanted = certify_codes(
        table,
        certify.noise_scale(release),
        test.labels["u"][there],
        test.people[there],
        "u",
        data.attribute("u").values,
        confidence=headline_confidence(0.99, 1),
    )
    found = one(certify.certificates(release, some, device="cpu"))
    assert found.empirical == pytest.approx(wanted.empirical, abs=1e-6), "as the network's codes"
    assert found.people == wanted.people and bound(found) <= (wanted.bound or 1.0), (
        "what tanh and noise leave of one person's influence is less than all of it"
    )


def test_several_attributes_are_certified_one_by_one_and_at_once(data: Dataset) -> None:
    found = certify.certificates(
        made(data, 1, private=("u", "colour")), data, device="cpu", releases=(1,)
    )
    assert [c.attribute for c in found] == ["u", "colour", "u and colour"]
    u, colour, both = found
    assert len(both.values) == len(u.values) * len(colour.values) == 6 and sum(both.people) == sum(
        u.people
    )
    assert both.empirical <= min(u.empirical, colour.empirical) + 0.02, (
        "guessing all right is not easier than guessing one right"
    )
    alone = certify.certificates(made(data, 1), data, device="cpu", releases=(1,))
    assert alone[0].empirical == u.empirical and bound(alone[0]) < bound(u), (
        "of one confidence for the page each gets less, the more there are"
    )


def test_a_number_is_guessed_in_ranges_made_on_attack(data: Dataset) -> None:
    age = np.where(np.arange(len(data)) % 50 == 0, np.nan, 40 + 10 * data.records["a"].to_numpy())
    aged = replace(
        data,
        attributes={**data.attributes, "age": Attribute("age", "number")},
        labels={**data.labels, "age": age},
    )
    (found,) = certify.certificates(
        made(aged, 1, 2.0, private=("age",)), aged, device="cpu", releases=(1,)
    )
    assert len(found.values) == RANGES and found.note.startswith("What is guessed is which range")
    attack = age[data.part_of == PARTS.index("attack")]
    edges = np.nanquantile(attack, [0.25, 0.5, 0.75])
    assert found.values[0] == f"below {edges[0]:g}"
    test = age[data.part_of == PARTS.index("test")]
    assert found.people == tuple(
        np.histogram(test[np.isfinite(test)], [-np.inf, *edges, np.inf])[0]
    )
    assert 0.25 < bound(found) < 1


def test_people_of_other_data_come_with_a_warning(data: Dataset) -> None:
    release = made(data, 1)
    release.card["data"] = {"name": "elsewhere", "fingerprint": "other"}
    assert (
        "learned on other data (elsewhere)"
        in one(certify.certificates(release, data, device="cpu")).note
    )


def ill_people(people: int, seed: int = 0) -> pd.DataFrame:
    """2 % of people are ill in all of three records and look like everybody else; 4.5 % are ill in
    one of three, which shows."""
    random = np.random.default_rng(seed)
    kind = random.choice(["well", "chronic", "once"], people, p=[0.935, 0.02, 0.045])
    ill = np.repeat((kind == "chronic")[:, None], 3, 1)
    ill[kind == "once", 0] = True
    shows = (kind == "once")[:, None] & ill
    a = np.where(shows, 4.0, 0.0) + 0.1 * random.standard_normal((people, 3))
    person = np.repeat(np.arange(people), 3)
    table = pd.DataFrame({"a": a.ravel(), "person": person})
    return table.assign(ill=np.where(ill.ravel(), "yes", "no"))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_people_whose_records_contradict_each_other_are_not_left_out(seed: int) -> None:
    sick = load(ill_people(6000, seed))
    schema = learn_schema(sick, ["ill"])
    release = Release(
        schema,
        ("squash", {}),
        Additive(Squash(schema.shape[0] or 0, 1), 0.3),
        Noise("gaussian", (1,), 0.3),
        {"private": ["ill"]},
    )
    found = one(certify.certificates(release, sick, device="cpu", releases=(1,)), "ill")
    test = sick.part("test")
    z = release(release.schema.inputs(test), seed=seed)[:, 0]
    ill = test.labels["ill"] == sick.attribute("ill").values.index("yes")
    weights = np.ones(len(test))
    for value in (False, True):  # every person of a value weighs the same
        counts = pd.Series(test.people[ill == value]).value_counts()
        weights[ill == value] = 1 / counts.loc[test.people[ill == value]].to_numpy()
    above = z > 0.5
    reads = np.mean(
        [
            np.average(above[ill == value] == value, weights=weights[ill == value])
            for value in (0, 1)
        ]
    )
    assert reads > 0.8, "a threshold reads it, or the test shows nothing"
    assert (found.bound or 1.0) >= reads and "nothing is left out" in found.note


def test_what_is_certified_is_the_graph_that_runs(room: Path, release_folder: Path) -> None:
    data = load(str(room / "people.csv"))
    usual = one(certify.certificates(Release.load(release_folder), data, releases=(1,)))
    other = room / "tampered"
    shutil.copytree(release_folder, other, dirs_exist_ok=True)
    graph = onnx.load_from_string((other / "release.onnx").read_bytes())
    for tensor in graph.graph.initializer:
        if tensor.name == "scale":
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.float32(0.0001), "scale"))
    (other / "release.onnx").write_bytes(graph.SerializeToString())
    card = json.loads((other / "card.json").read_text())
    digest = hashlib.sha256((other / "release.onnx").read_bytes()).hexdigest()
    card["sha256"]["graph"] = digest
    (other / "card.json").write_text(json.dumps(card))
    found = one(certify.certificates(Release.load(other), data, releases=(1,)))
    assert usual.bound is not None and usual.sigma == pytest.approx(0.4)
    assert found.bound is None and found.sigma == pytest.approx(0.0001)
    assert "says nothing" in found.reason, "with next to no noise"


# What is not.


class _Sub(Additive):
    pass


def _refused(data: Dataset) -> dict[str, tuple[Release, str]]:
    usual = made(data)
    body = usual.module.get_submodule("body")
    noise = Noise("gaussian", (2,), 0.8)
    words = TextSchema(("a", "b"))
    text = Release(
        words,
        ("noisy-extractor", {}),
        nets.build("noisy-extractor", words, {"width": 0.05}),
        None,
        {"private": ["u"]},
    )
    text.noise = Noise("gaussian", text.shape, 1.0)

    def other(module: nn.Module, law: Noise | None, **card: Any) -> Release:
        return Release(usual.schema, usual.network, module, law, {"private": ["u"], **card})

    return {
        "no noise": (other(body, None), "adds no noise"),
        "noise of scale 0": (other(Additive(body, 0.0), noise), "adds no noise"),
        "noise inside": (other(body, None, random=True), "inside its program"),
        "laplace": (other(Additive(body, 0.8), Noise("laplace", (2,), 0.8)), "law is laplace"),
        "another module": (other(_Sub(body, 0.8), noise), "not simply added"),
        "shared noise": (
            other(Additive(body, 0.8), Noise("gaussian", (1,), 0.8)),
            "noise of their own",
        ),
        "too many dimensions": (made(data, 17), "17 dimensions"),
        "text": (text, "own length"),
        "little noise": (made(data, 2, 1e-3), "says nothing"),
    }


CASES = [
    "no noise",
    "noise of scale 0",
    "noise inside",
    "laplace",
    "another module",
    "shared noise",
    "too many dimensions",
    "text",
]


@pytest.mark.parametrize("case", [*CASES, "little noise"])
def test_what_cannot_be_certified_says_why(data: Dataset, case: str) -> None:
    release, why = _refused(data)[case]
    found = certify.certificates(release, data, device="cpu", releases=(1,))
    assert [c.bound for c in found] == [None] and why in found[0].reason
    again = Audit.from_json(replace(AUDIT, certificates=found).to_json()).certificates
    assert again[0].reason == found[0].reason and math.isnan(again[0].empirical) == math.isnan(
        found[0].empirical
    )


AUDIT = Audit({"private": ["u"]}, {"name": "small"}, "quick", (), (), 1.0)


# The noise that a target takes.


def test_noise_is_chosen_on_select_and_never_on_test(data: Dataset) -> None:
    release = made(data, 1, 0.3)
    sigma = certify.choose_noise_scale(release, data, 0.65, device="cpu")
    assert (
        certify.choose_noise_scale(
            release, spoiled(data, "test", "fit", "attack"), 0.65, device="cpu"
        )
        == sigma
    )
    assert certify.choose_noise_scale(release, spoiled(data, "select"), 0.65, device="cpu") != sigma
    assert certify.choose_noise_scale(release, data, 0.70, device="cpu") < sigma
    assert (
        certify.choose_noise_scale(certify.with_noise_scale(release, 5.0), data, 0.65, device="cpu")
        == sigma
    ), "whatever the noise was"


def test_the_release_of_a_target_is_the_same_code_with_that_noise(
    data: Dataset, tmp_path: Path
) -> None:
    release = made(data, 1, 0.1)
    new, said = certify.certify(release, data, target=0.68, device="cpu", progress=False)
    sigma = certify.noise_scale(new)
    assert certify.noise_scale(release) == pytest.approx(0.1) and sigma > 0.1, (
        "the given one is left as it is"
    )
    assert said.met == (bound(one(said.certificates)) <= 0.68)
    new.save(tmp_path / "new")
    again = Release.load(tmp_path / "new")
    assert (
        certify.noise_scale(again) == sigma
        and again.noise is not None
        and again.noise.scale == pytest.approx(sigma, rel=1e-6)
    )
    assert (
        again.network[1]["noise"]
        == again.card["settings"]["noise"]
        == pytest.approx(sigma, rel=1e-6)
    )
    assert again.card["settings"]["sigma"] == 3.0, "a setting that was not this noise stays"
    assert "in_game" not in again.card and release.card["in_game"], "it was said of other noise"
    assert (
        again.card["certificate"]["met"] == said.met and again.card["certificate"]["target"] == 0.68
    )
    assert check(again, read_graph(tmp_path / "new")) < 1e-4, "ONNX equals torch"
    test = data.part("test")
    assert np.array_equal(
        certify.noise_free_codes(again, test, CPU), certify.noise_free_codes(release, test, CPU)
    )
    assert certify.certificates(again, data, device="cpu") == said.certificates


@pytest.mark.parametrize(
    "settings,said",
    [
        ({"target": 0.505}, "no noise certifies 'u' at 0.505: ask for 0.6"),
        ({"target": 0.4}, "between guessing, 0.5, and 1"),
        ({"target": 58.0}, "A target lies between 0 and 1"),
        ({"confidence": 1.0}, "A confidence lies between 0 and 1"),
        ({"utility": ["u"]}, "hides 'u'"),
        ({"utility": ["yy"]}, "did you mean 'y'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_wrong_words_get_a_sentence(data: Dataset, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(PrivetError, match=said):
        certify.certify(made(data, 1), data, device="cpu", progress=False, **settings)


def test_no_noise_is_chosen_for_what_cannot_be_certified(data: Dataset) -> None:
    release, _ = _refused(data)["laplace"]
    with pytest.raises(PrivetError, match="No noise can be chosen"):
        certify.certify(release, data, target=0.6, device="cpu", progress=False)


# The command.


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("room")
    raw = small("table", SMALL)
    frame = raw.records.drop(columns="colour")
    for name in ("u", "y"):
        frame[name] = np.array(["no", "yes"])[raw.labels[name]]
    frame.to_csv(room / "people.csv", index=False)
    return room


@pytest.fixture
def release_folder(room: Path) -> Path:
    folder = room / "release"
    if not folder.exists():
        data = load(str(room / "people.csv"))
        schema = learn_schema(data, ["u", "y"])
        module = Additive(Squash(schema.shape[0] or 0, 1), 0.4)
        card = {
            "method": "squash",
            "private": ["u"],
            "data": {"name": data.name, "fingerprint": data.fingerprint},
        }
        Release(
            schema, ("squash", {"d": 1, "noise": 0.4}), module, Noise("gaussian", (1,), 0.4), card
        ).save(folder)
    return folder


def run(*words: object) -> Any:
    return CliRunner().invoke(cli.app, [str(word) for word in words])


def test_the_command_from_words_to_pages_and_gates(
    room: Path, release_folder: Path, tmp_path: Path
) -> None:
    words = ["certify", release_folder, "--data", room / "people.csv", "--device", "cpu"]
    plain = run(*words)
    assert plain.exit_code == 0, plain.output
    assert (
        "can guess u with a balanced accuracy above" in plain.output
        and "16 releases" in plain.output
    )
    assert not list(tmp_path.iterdir()), "nothing is written without --out"

    out = tmp_path / "new"
    told = run(*words, "--target", "0.66", "--utility", "y", "--out", out)
    assert told.exit_code == 0, told.output
    assert sorted(p.name for p in out.iterdir()) == [
        "card.json",
        "certificate.html",
        "certificate.json",
        "release.onnx",
        "weights.safetensors",
    ]
    said = Certification.load(out / "certificate.json")
    assert json.loads(said.to_json()) == json.loads((out / "certificate.json").read_text())
    assert len(said.curve) == len(certify.FACTORS) and {*said.curve[0].utility} == {"y"}
    bounds = [step.bounds["u"] or 1.0 for step in said.curve]
    assert bounds == sorted(bounds, reverse=True), "more noise, less to read"
    assert ("the test part meets it" in told.output) == said.met
    assert (
        certify.noise_scale(Release.load(out)) == said.certificates[0].sigma != pytest.approx(0.4)
    )

    found = bound(one(said.certificates))
    assert run("gate", out, "--max-certified", f"u={found + 1e-6}").exit_code == 0
    failed = run("gate", out, "--max-certified", f"u={found - 1e-6}")
    assert failed.exit_code == 1 and failed.output.startswith("NOT HELD  1 of 1 limits failed: u")
    assert failed.output.splitlines()[1].startswith("FAILED  u: certified")
    page = (out / "certificate.html").read_text()
    assert (
        page == render_certificate(said)
        and "What more or less noise would give" in page
        and "http" not in page.split("</head>")[1]
    )


def test_the_page_escapes_names(data: Dataset) -> None:
    _, said = certify.certify(made(data, 1), data, device="cpu", progress=False)
    nasty = "<script>alert(1)</script>"
    bad = replace(
        said,
        release={"private": [nasty], "title": nasty},
        data={"name": nasty, "fingerprint": nasty},
        certificates=tuple(
            replace(c, attribute=nasty, note=nasty, values=(nasty, nasty))
            for c in said.certificates
        ),
    )
    assert nasty not in render_certificate(bad) and "&lt;script&gt;" in render_certificate(bad)


def test_a_release_that_cannot_be_certified_is_still_said_in_a_page(data: Dataset) -> None:
    for case in ("no noise", "laplace"):
        release, why = _refused(data)[case]
        _, said = certify.certify(release, data, ["y"], curve=True, device="cpu", progress=False)
        assert said.curve == () and why in render_certificate(said)


@pytest.mark.parametrize(
    "words,said",
    [
        (["--target", "58"], "between 0 and 1"),
        (["--confidence", "2"], "between 0 and 1"),
        (["--utility", "u"], "hides 'u'"),
        (["--device", "tpu9"], "not available"),
    ],
    ids=" ".join,
)
def test_a_wrong_word_leaves_nothing(
    room: Path, release_folder: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    out = tmp_path / "deep" / "out"
    result = run("certify", release_folder, "--data", room / "people.csv", *words, "--out", out)
    assert isinstance(result.exception, PrivetError) and said in str(result.exception)
    assert not any(tmp_path.iterdir())


@pytest.fixture(scope="module")
def strangers(room: Path) -> Path:
    """People whom the release has not seen, in a file whose split column says so."""
    raw = small("table", 900, seed=7)
    frame = raw.records.drop(columns="colour")
    for name in ("u", "y"):
        frame[name] = np.array(["no", "yes"])[raw.labels[name]]
    frame.assign(split="test").to_csv(room / "strangers.csv", index=False)
    return room / "strangers.csv"


def test_new_people_all_count(release_folder: Path, strangers: Path) -> None:
    with pytest.raises(PrivetError, match="leaves no person for: fit, attack, select"):
        load(str(strangers))
    told = run("certify", release_folder, "--data", strangers, "--new-people", "--device", "cpu")
    assert told.exit_code == 0, told.output
    found = commands.certify(
        release_folder, strangers, scope=commands.Scope(new_people=True), device="cpu"
    )
    assert sum(one(found.certificates).people) == 900
    assert "learned on other data" in one(found.certificates).note


def test_people_the_release_knows_are_not_new(
    room: Path, release_folder: Path, strangers: Path
) -> None:
    words = ["certify", release_folder, "--new-people", "--data"]
    refused = run(*words, room / "people.csv")
    assert "the people that the release was learned from" in str(refused.exception)
    assert "leave out --target" in str(run(*words, strangers, "--target", "0.6").exception)


def test_ranges_of_new_people_come_from_people_who_are_not_counted(data: Dataset) -> None:
    age = 40 + 10 * data.records["a"].to_numpy()
    aged = replace(
        data,
        attributes={**data.attributes, "age": Attribute("age", "number")},
        labels={**data.labels, "age": age},
        part_of=np.full_like(data.part_of, PARTS.index("test")),
    )
    release = made(aged, 1, 2.0, private=("age",))
    (found,) = certify.certificates(release, aged, device="cpu", releases=(1,))
    edges = np.quantile(age[::4], [0.25, 0.5, 0.75])
    assert found.values[0] == f"below {edges[0]:g}" and sum(found.people) == SMALL * 3 // 4
    assert "every 4th of the people, who were not counted" in found.note


def test_words_about_folders(room: Path, release_folder: Path) -> None:
    words = ["certify", release_folder, "--data", room / "people.csv"]
    assert "give --out as well" in str(run(*words, "--utility", "y").exception)
    assert "choose another --out" in str(run(*words, "--out", release_folder).exception)
    assert "no release in" in str(run("certify", room, "--data", room / "people.csv").exception)
    assert "privet certify" in run("certify", "--help").output.split("Example")[1]
