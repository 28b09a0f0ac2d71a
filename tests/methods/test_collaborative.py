"""Collaborative sanitizers: the loss is the formula, services go on working, the privacy model is
blinded, the card tells it."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from privet import Release, Run
from privet.cli.main import app, main
from privet.core.errors import PrivetError
from privet.methods.collaborative import Collaborative, CollaborativeNetworks
from privet.methods.services.evaluation import ServiceEvaluation, evaluate_services
from privet.methods.services.service import provided_service
from privet.nets.convolutions import prepare
from privet.nets.sanitizer import Sanitizer
from privet.studies.collaborative_page import page
from privet.train.feed import Batch
from small import small

QUIET = Run(progress=False, device="cpu")
TINY = {"width": 0.1, "service": 0.1, "lessons": 6, "epochs": 20, "batch": 32, "lr": 3e-3}
VARIANTS = [(a, s) for a in (False, True) for s in (False, True)]


class Reads(nn.Module):
    """A given model that reads one column of a table, as a provider might have it."""

    def __init__(self, column: int) -> None:
        super().__init__()
        self.last = nn.Linear(6, 2)
        with torch.no_grad():
            self.last.weight.zero_()
            self.last.weight[1, column] = 4.0
            self.last.bias.zero_()

    def forward(self, x):
        return self.last(x)


TABLE = small("table", 600)
GIVEN = {"u": Reads(0), "y": Reads(1)}


def _export(module, columns, path):
    """As most models in use were exported."""
    axes = {"x": {0: "n"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            (torch.zeros(3, columns),),
            str(path),
            dynamo=False,
            input_names=["x"],
            dynamic_axes=axes,
        )


def _learned(**settings):
    return (
        Collaborative(**{**TINY, **settings}).with_models(GIVEN).fit(TABLE, ["u"], ["y"], run=QUIET)
    )


@pytest.fixture(scope="module")
def variants():
    return {(a, s): _learned(adversarial=a, stochastic=s, alpha=0.8) for a, s in VARIANTS}


def _of(release, role):
    return next(
        a for a in ServiceEvaluation.from_json(release.card["outcomes"]).answers if a.role == role
    )


def test_the_loss_is_the_formula():
    """Against a slow, obvious version, with numpy and one record at a time."""
    method = Collaborative(**TINY, alpha=0.3, adversarial=False).with_models(GIVEN)
    problem = method.problem(TABLE, ["u"], ["y"], [], QUIET)
    torch.manual_seed(0)
    networks = CollaborativeNetworks(problem, method)
    batch = problem.feed().batch(np.arange(12))
    x, z = prepare(batch.x), networks.release(prepare(batch.x))

    def answers(model, records):
        scores = model(records).detach().numpy().astype(np.float64)
        return np.exp(scores) / np.exp(scores).sum(1, keepdims=True)

    values = problem.view().labels["u"]
    prior = np.array([(values == 0).mean(), (values == 1).mean()])
    before, after, told = answers(GIVEN["y"], x), answers(GIVEN["y"], z), answers(GIVEN["u"], z)
    kept = np.mean(
        [
            sum(p[k] * np.log(p[k] / q[k]) for k in range(2))
            for p, q in zip(before, after, strict=True)
        ]
    )
    hidden = np.mean([sum(prior[k] * np.log(prior[k] / q[k]) for k in range(2)) for q in told])
    assert kept > 1e-6 and hidden > 1e-3
    assert float(networks.sanitize(batch).loss.detach()) == pytest.approx(
        0.7 * kept + 0.3 * hidden, rel=1e-4
    )


def test_missing_labels_are_left_out_of_the_privacy_models_loss():
    method = Collaborative(**TINY).with_models(GIVEN)
    problem = method.problem(TABLE, ["u"], ["y"], [], QUIET)
    networks = CollaborativeNetworks(problem, method)
    batch = problem.feed().batch(np.arange(20))
    labels = {**batch.labels, "u": torch.where(torch.arange(20) < 8, batch.labels["u"], -1)}
    some = networks.defeat(Batch(batch.x, labels)).loss
    first = networks.defeat(
        Batch(batch.x[:8], {name: column[:8] for name, column in batch.labels.items()})
    ).loss
    torch.testing.assert_close(some, first)
    nobody = networks.defeat(Batch(batch.x, {**batch.labels, "u": torch.full((20,), -1)})).loss
    assert float(nobody.detach()) == 0.0


@pytest.mark.parametrize(("adversarial", "stochastic"), VARIANTS)
def test_services_go_on_working_and_the_privacy_model_does_not(variants, adversarial, stochastic):
    release = variants[adversarial, stochastic]
    kept, hidden = _of(release, "utility"), _of(release, "private")
    # Ten seeds, 60 people: raw at 0.87 or more, released as raw, and at 0.47 to 0.56.
    assert kept.raw["balanced"] > 0.8 and hidden.raw["balanced"] > 0.8
    assert kept.released["balanced"] > kept.raw["balanced"] - 0.08
    assert hidden.released["balanced"] < 0.68
    assert (release.noise is not None) == stochastic and release.card["form"] == "record"
    assert release.shape == release.schema.shape


def test_a_model_that_learned_still_works_on_unfiltered_records(variants):
    release = variants[True, False]
    # Ten seeds: one person of 60 less.
    assert _of(release, "private").raw["balanced"] > _of(release, "given").raw["balanced"] - 0.1
    assert "given" not in {a["role"] for a in variants[False, False].card["outcomes"]["answers"]}


def test_given_models_are_named_and_never_changed(variants):
    said = variants[True, False].card["services"]
    assert said["y"] == {
        "role": "utility",
        "source": "torch module Reads",
        "sha256": said["y"]["sha256"],
    }
    assert said["u"]["role"] == "private" and said["u"]["sha256"] != said["y"]["sha256"]
    assert torch.equal(GIVEN["u"].last.weight, Reads(0).last.weight)
    assert "trained here" in json.dumps(
        Collaborative(**{**TINY, "lessons": 1, "epochs": 0})
        .fit(TABLE, ["u"], ["y"], run=QUIET)
        .card
    )


def test_alpha_trades_what_is_kept_for_what_is_hidden():
    none, all_ = _learned(alpha=0.0, adversarial=False), _learned(alpha=1.0, adversarial=False)
    assert (
        _of(none, "private").released["balanced"] > _of(all_, "private").released["balanced"] + 0.2
    )
    assert _of(none, "utility").agree > 0.97


@pytest.mark.parametrize("modality", ["image", "signal", "table"])
def test_a_sanitizer_starts_near_the_record_and_keeps_its_form(modality):
    data = small(modality, 60)
    schema = Collaborative().problem(data, ["u"], ["y"], [], QUIET).schema
    x = torch.from_numpy(np.ascontiguousarray(schema.inputs(data)[:8]))
    torch.manual_seed(0)
    plain, random = Sanitizer(schema, 0.2).eval(), Sanitizer(schema, 0.2, True).eval()
    z = plain(x)
    assert z.shape == x.shape and z.dtype == torch.float32
    assert (z - prepare(x)).abs().mean() < 0.2 * prepare(x).abs().mean()
    noise = torch.randn(8, *Sanitizer.noise_shape(schema))
    assert (random(x, noise) != random(x, noise + 1)).float().mean() > 0.99
    torch.testing.assert_close(
        random(x, noise)[2:3], random(x[2:3], noise[2:3]), atol=1e-5, rtol=1e-4
    )


def test_pictures_stay_in_range_whatever_is_learned():
    schema = Collaborative().problem(small("image", 60), ["u"], ["y"], [], QUIET).schema
    sanitizer = Sanitizer(schema, 0.1)
    with torch.no_grad():
        for parameter in sanitizer.parameters():
            parameter.mul_(20).add_(torch.randn_like(parameter))
    assert sanitizer(torch.from_numpy(schema.random(6))).abs().max() <= 1.0 + 1e-6


def test_a_killed_run_ends_in_the_same_weights(tmp_path):
    """Stopped after the lessons, in the middle of the game: the privacy model as it came must
    survive too."""
    data, settings = small("table", 160), {**TINY, "lessons": 2, "epochs": 5}
    whole = Collaborative(**settings).fit(data, ["u"], ["y"], run=QUIET)
    for number in range(20):
        run = replace(QUIET, folder=tmp_path, resume=number > 0, rounds_between=1)
        stopped = _stopped_after(
            7, lambda run=run: Collaborative(**settings).fit(data, ["u"], ["y"], run=run)
        )
        if stopped is not None:
            break
    assert number > 1
    for key, value in whole.module.state_dict().items():
        assert torch.equal(value, stopped.module.state_dict()[key]), key
    assert stopped.card["outcomes"] == whole.card["outcomes"]


def _stopped_after(rounds, work):
    """None where the work was killed after so many rounds."""
    import privet.train.step

    step, count = privet.train.step.take_step, 0

    def counted(*args):
        nonlocal count
        count += 1
        if count > rounds:
            raise KeyboardInterrupt
        step(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(privet.train.step, "take_step", counted)
        try:
            return work()
        except KeyboardInterrupt:
            return None


def test_a_checkpoint_with_other_models_is_refused(tmp_path):
    def learn(models, resume):
        run = replace(QUIET, folder=tmp_path, resume=resume, rounds_between=1)
        return Collaborative(**TINY).with_models(models).fit(TABLE, ["u"], ["y"], run=run)

    assert _stopped_after(3, lambda: learn(GIVEN, False)) is None
    with pytest.raises(PrivetError, match="other settings or data"):
        learn({**GIVEN, "u": Reads(2)}, True)


@pytest.fixture(scope="module")
def people():
    """Pictures of people: `person` is a task, and each leaves a trace of its own."""
    rng = np.random.default_rng(0)
    data = small("image", 320, people=40)
    look = rng.integers(0, 2, (data.people.max() + 1, 16))[data.people]
    records = np.asarray(data.records).copy()
    records[:, 2, :16, :16] = (60 + 120 * np.repeat(look, 16, 1).reshape(-1, 16, 16)).astype(
        np.uint8
    )
    from privet.data.dataset import Attribute

    person = Attribute(
        "person", "identity", tuple(f"p{i}" for i in range(int(data.people.max()) + 1))
    )
    return replace(
        data,
        records=records,
        attributes={**data.attributes, "person": person},
        labels={**data.labels, "person": data.people},
    )


def test_identity_is_a_task_counted_in_sample_and_by_a_gallery_of_others(people):
    release = Collaborative(**{**TINY, "epochs": 1, "lessons": 2}).fit(
        people, ["u"], ["person", "y"], run=QUIET
    )
    found = ServiceEvaluation.from_json(release.card["outcomes"])
    named = next(a for a in found.answers if a.attribute == "person")
    assert (
        named.part == "fit"
        and named.n == len(people.part("fit"))
        and 0 <= named.raw["accuracy"] <= named.raw["top_5"] <= 1
    )
    (looked,) = found.identified
    select = people.part("select")
    several = np.unique(select.people, return_counts=True)[1] > 1
    assert looked.people == several.sum() and looked.probes == len(select) - len(several)
    assert found == ServiceEvaluation.from_json(json.loads(json.dumps(release.card["outcomes"])))


def test_a_perfect_identifier_finds_everybody_raw_and_nobody_in_a_constant(people):
    problem = Collaborative().problem(people, ["u"], ["person"], [], QUIET)

    class Looks(nn.Module):
        def forward(self, x):
            return nn.functional.pad(x[:, 2, 5, :16], (0, problem.utility[0].classes - 16))

    service = provided_service(Looks(), problem, problem.utility[0])
    shut = Sanitizer(problem.schema, 0.1)
    with torch.no_grad():
        shut.body.last.weight.zero_()
        shut.body.last.bias[:3] = -30.0
    still = evaluate_services(
        Release(problem.schema, ("sanitizer", {"width": 0.1}), shut, None),
        people,
        [("utility", service)],
        "test",
    )
    assert (
        still.change < 1e-5
        and still.spread == 0
        and still.identified[0].released == still.identified[0].raw
    )
    assert still.answers[0].agree == 1.0 and still.answers[0].part == "fit"
    assert still.identified[0].raw["top_5"] > 0.9
    with torch.no_grad():
        shut.body.last.bias[:3] = 30.0
    blank = evaluate_services(
        Release(problem.schema, ("sanitizer", {"width": 0.1}), shut, None),
        people,
        [("utility", service)],
        "test",
    )
    assert blank.identified[0].released["top_1"] < 0.3 and blank.change > 0.1


def test_the_page_shows_the_four_kinds_of_result(variants, people):
    cards = [release.card for release in variants.values()]
    drawn = page(cards)
    for word in (
        "What is kept and what is hidden",
        "per true value",
        "on unfiltered records",
        "adversarial, stochastic",
        "Reads",
    ):
        assert word in drawn
    assert (
        drawn.count("<svg") >= 1 + 1 + 4 * 2 + 2 * 2
        and "<script" not in drawn
        and "Are people still identified?" not in drawn
    )
    named = Collaborative(**{**TINY, "lessons": 1, "epochs": 1}).fit(
        people, ["u"], ["person"], run=QUIET
    )
    assert "Are people still identified?" in page([named.card])
    for wrong in ([], [{"method": "hedge"}], [cards[0], named.card]):
        with pytest.raises(PrivetError):
            page(wrong)


def _refused(capsys, *words) -> str:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as stopped:
        patch.setattr("sys.argv", ["privet", *map(str, words)])
        main()
    assert stopped.value.code == 2
    read, _, said = capsys.readouterr().err.strip().rpartition("privet: ")
    assert not read or "was read as" in " ".join(read.split())
    assert "\n" not in said
    return said


def test_wrong_words_get_one_sentence_and_exit_2(capsys, tmp_path):
    frame = TABLE.records.assign(u=TABLE.labels["u"], y=TABLE.labels["y"])
    frame.to_parquet(tmp_path / "t.parquet")
    _export(nn.Linear(9, 2), 9, tmp_path / "wide.onnx")
    learn = [
        "learn",
        "collaborative",
        "--data",
        tmp_path / "t.parquet",
        "--private",
        "u",
        "--out",
        tmp_path / "r",
    ]
    task = [*learn, "--utility", "y"]
    assert "needs at least one task" in _refused(capsys, *learn)
    assert "alpha of collaborative lies between 0 and 1, not 1.5" in _refused(
        capsys, *task, "--budget", "1.5"
    )
    assert "wide.onnx takes records of 9, and these are 6" in _refused(
        capsys, *task, "--set", f"utility_model={tmp_path / 'wide.onnx'}"
    )
    assert "Cannot read" in _refused(capsys, *task, "--set", "privacy_model=absent.onnx")
    assert "There is no private attribute or task" in _refused(
        capsys, *task, "--set", "privacy_model=c=absent.onnx"
    )
    assert "say which one" in _refused(
        capsys, *task[:-1], "y,colour", "--set", "utility_model=a.onnx"
    )
    assert not (tmp_path / "r").exists()


def test_from_words_to_files_with_a_model_that_was_brought(tmp_path):
    frame = TABLE.records.assign(u=TABLE.labels["u"], y=TABLE.labels["y"])
    frame.to_parquet(tmp_path / "t.parquet")
    _export(Reads(0), 6, tmp_path / "u.onnx")
    words = [
        "epochs=1",
        "lessons=1",
        "width=0.1",
        "service=0.1",
        f"privacy_model={tmp_path / 'u.onnx'}",
        "stochastic=yes",
    ]
    options = [part for word in words for part in ("--set", word)]
    learn = [
        "learn",
        "collaborative",
        "--data",
        str(tmp_path / "t.parquet"),
        "--private",
        "u",
        "--utility",
        "y",
        "--device",
        "cpu",
    ]
    done = CliRunner().invoke(
        app, [*learn, *options, "--out", str(tmp_path / "r")], catch_exceptions=False
    )
    assert done.exit_code == 0
    release = Release.load(tmp_path / "r")
    assert release.card["services"]["u"]["source"] == "ONNX file u.onnx" and release.card[
        "services"
    ]["y"] == {
        "role": "utility",
        "source": "trained here",
    }
    assert "ONNX file u.onnx" in page([json.loads((tmp_path / "r" / "card.json").read_text())])
