"""The whole audit on small texts: every figure is there, the page holds no text of an author, and
the same words go on."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from letters import letters, own_word
from typer.testing import CliRunner

from privet.adversaries.neighbours import Neighbours
from privet.cli.language import lm_app
from privet.core.errors import PrivetError
from privet.evidence.figures import Figure
from privet.language.model_audit.audit import audit_to
from privet.language.model_audit.extraction import WRITTEN
from privet.language.model_audit.findings import ModelFindings
from privet.language.model_audit.page import render
from privet.language.model_audit.verdict import LanguageAudit, verdict
from privet.language.models.canaries import CanaryPlan
from privet.language.models.settings import Settings
from privet.language.models.train import TrainedModel, train_to

TINY = Settings(width=16, vocabulary=300, longest=24, epochs=2, batch=16, lr=1e-2)
PATTERNS = ("the key is # #", "meet @ at #")
WORDS = {
    "author": "author",
    "authors": 6,
    "canaries": CanaryPlan(2, (0, 3), PATTERNS),
    "device": "cpu",
    "progress": False,
}
WORDS["adversaries"] = (Neighbours(counts=(1,)),)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = letters(32)
    frame = pd.DataFrame({"text": data.records, "author": [f"a{one}" for one in data.people]})
    frame["gender"] = ["f" if one % 2 else "m" for one in data.people]
    path = tmp_path_factory.mktemp("data") / "letters.parquet"
    frame.to_parquet(path)
    return path


@pytest.fixture(scope="module")
def done(file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LanguageAudit]:
    folder = tmp_path_factory.mktemp("audit")
    return folder, audit_to(folder, str(file), ["triplet:1"], TINY, **WORDS)  # type: ignore[arg-type]


@pytest.fixture
def copied(done: tuple[Path, LanguageAudit], tmp_path: Path) -> Path:
    return Path(shutil.copytree(done[0], tmp_path / "copied"))


def test_every_figure_is_there(done: tuple[Path, LanguageAudit]) -> None:
    folder, found = done
    assert [one.name for one in found.models] == ["none", "triplet:1"]
    for one in found.models:
        assert one.exposure is not None and one.exposure.n == 2 and set(one.by_repeats) == {0, 3}
        assert (
            one.identified is not None
            and one.tab_excess is not None
            and one.tab_canaries is not None
        )
        assert (
            len(one.membership) == 8
            and len(one.tab) == len(one.tries)
            and one.time_ratio > 0
            and one.speed > 0
        )
        assert one.repeated.n == WRITTEN and one.repeated.chance <= 1
        assert {group.by for group in one.groups} == {"gender", "words written"}
    told = json.loads((folder / "language.json").read_text())
    assert told["models"][0]["canaries"][0]["canary"]["pattern"] == PATTERNS[0]
    assert told["verdict"] == found.verdict


def test_the_page_is_whole_and_holds_no_text_of_an_author(done: tuple[Path, LanguageAudit]) -> None:
    page = (done[0] / "report.html").read_text()
    assert (
        page.count('<svg class="plane"') == 3
        and ">nan" not in page
        and " nan" not in page
        and "http" not in page.replace("http-equiv", "")
    )
    assert not any(own_word(author) in page for author in range(32))
    assert page == render(done[1])


def test_the_same_words_do_nothing_again_and_other_words_are_refused(
    done: tuple[Path, LanguageAudit], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PrivetError, match="other settings"):
        audit_to(done[0], str(file), [], TINY.updated(["epochs=3"]), **WORDS)  # type: ignore[arg-type]
    for what in ("jobs.train_model", "jobs.attack_model", "audit.measure"):
        monkeypatch.setattr(
            f"privet.language.model_audit.{what}",
            lambda *_, **__: pytest.fail("it was done before"),
        )
    again = audit_to(done[0], str(file), ["triplet:1"], TINY, **WORDS)  # type: ignore[arg-type]
    assert again.to_json() == done[1].to_json()


def test_a_stopped_audit_keeps_what_it_had_and_says_that_it_is_not_finished(
    done: tuple[Path, LanguageAudit], copied: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (copied / "models" / "triplet-1" / "reading.json").unlink()
    (copied / "report.html").unlink()

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("privet.language.model_audit.jobs.attack_model", stopped)
    with pytest.raises(KeyboardInterrupt):
        audit_to(copied, str(file), ["triplet:1"], TINY, **WORDS)  # type: ignore[arg-type]
    told = json.loads((copied / "language.json").read_text())
    assert [one["name"] for one in told["models"]] == [
        "none"
    ] and "1 of 2 models are still to come" in told["notes"][0]
    assert "not finished" in (copied / "report.html").read_text()


def test_models_side_by_side_are_the_same_models(
    done: tuple[Path, LanguageAudit], copied: Path, file: Path
) -> None:
    shutil.rmtree(copied / "models" / "triplet-1")
    again = audit_to(copied, str(file), ["triplet:1"], TINY, **{**WORDS, "workers": 2})  # type: ignore[arg-type]
    assert [one.perplexity.value for one in again.models] == [
        one.perplexity.value for one in done[1].models
    ]
    assert [one.canaries for one in again.models] == [one.canaries for one in done[1].models]
    with pytest.raises(PrivetError, match="would do nothing"):
        audit_to(copied, str(file), ["triplet:1"], TINY, **{**WORDS, "workers": 0})  # type: ignore[arg-type]


def test_a_model_is_trained_from_the_command_line(file: Path, tmp_path: Path) -> None:
    words = [
        "train",
        "--data",
        str(file),
        "--author",
        "author",
        "--out",
        str(tmp_path / "m"),
        "--regularizer",
        "adversarial",
        "--weight",
        "0.5",
    ]
    words += ["--device", "cpu", "--epochs", "1", "--set", "width=8", "--set", "vocabulary=200"]
    told = CliRunner().invoke(lm_app, words, catch_exceptions=False)
    assert told.exit_code == 0 and "Perplexity of held-out texts" in told.output
    assert TrainedModel.load(tmp_path / "m").settings.weight == 0.5


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--regularizer", "dp", "--epsilon", "0"], "epsilon of 0"),
        (["--author", "writer"], "no attribute 'writer'"),
        (["--regularizer", "none", "--weight", "1"], "--weight is for"),
        (["--canaries", "2", "--pattern", "no slot"], "nothing random"),
        (["--canaries", "2", "--repeats", "often"], "whole numbers"),
        (["--authors", "1"], "2 or more"),
        (["--tokens", "letters"], "no tokenizer"),
    ],
)
def test_wrong_words_are_one_sentence_and_leave_nothing(
    file: Path, tmp_path: Path, words: list[str], sentence: str
) -> None:
    asked = ["train", "--data", str(file), "--out", str(tmp_path / "m"), "--device", "cpu", *words]
    told = CliRunner().invoke(
        lm_app, asked if "--author" in words else [*asked, "--author", "author"]
    )
    assert isinstance(told.exception, PrivetError) and sentence in str(told.exception)
    assert not (tmp_path / "m").exists()


def test_a_model_of_an_audit_may_have_settings_of_its_own_but_reads_the_same_tokens() -> None:
    own = TINY.with_regularizer("dp:8,batch=64,lr=0.02")
    assert (own.batch, own.lr, own.epsilon, own.width) == (64, 0.02, 8.0, TINY.width)
    assert own.label == "dp:8" and own.label_beside(TINY) == "dp:8,batch=64,lr=0.02"
    assert TINY.with_regularizer("triplet").label_beside(TINY) == "triplet:1"
    with pytest.raises(PrivetError, match="longest of its own"):
        TINY.with_regularizer("dp:8,longest=12")
    with pytest.raises(PrivetError, match="has no '='"):
        TINY.with_regularizer("dp:8,64")


def test_without_opacus_dp_names_the_extra_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*(one for one in sys.modules if one.startswith("opacus")), "opacus"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(PrivetError, match=r"privet\[language\]"):
        audit_to(tmp_path / "a", "nowhere.parquet", ["dp:8"], TINY)
    with pytest.raises(PrivetError, match=r"privet\[language\]"):
        train_to(tmp_path / "m", "nowhere.parquet", TINY.with_regularizer("dp:8"))


def test_the_verdict_says_when_nothing_was_shown(done: tuple[Path, LanguageAudit]) -> None:
    plain = done[1].models[0]

    def like(name: str, perplexity: float, below: float) -> ModelFindings:
        figure = Figure(perplexity, perplexity, perplexity, 6, 1.0)
        return replace(
            plain,
            name=name,
            perplexity=figure,
            canaries=tuple(replace(one, bits=one.bits - below) for one in plain.canaries),
        )

    own = plain.perplexity.value
    assert "none has a mean exposure" in verdict([plain, like("triplet:1", own, 0.0)])
    assert "none can be compared" in verdict([plain, like("triplet:1", 2 * own, 9.0)])
    told = verdict([plain, like("triplet:1", 1.02 * own, 9.0)])
    assert (
        "triplet:1 has a mean exposure of" in told
        and "9.0 bits lower [9.0, 9.0], beyond the interval" in told
    )
    assert "Only the plain" in verdict([plain])
