"""The story as a user types it: look at the data, learn a release, attack it, release a photo."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

import privet
from privet import Audit, PrivetError, Release, load
from privet.adversaries.convolutional import ResCL
from privet.adversaries.decoder import ReversedExtractor
from privet.adversaries.linear import Logistic
from privet.adversaries.mlp import MLP
from privet.auditing.batteries import BATTERIES, Battery
from privet.cli import main as cli

DATA = ["--data", "portraits:300"]
LEARN = ["learn", "tiprdc", *DATA, "--private", "beard", "--device", "cpu"]
SMALL = ["--set", "width=0.05", "--set", "warmup=0", "--set", "epochs=1"]


def _run(*words: object) -> str:
    """What is printed as a result; fails where the command does."""
    result = CliRunner().invoke(cli.app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@dataclass(frozen=True)
class Story:
    room: Path
    said: dict[str, str]


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Iterator[Story]:
    room, said = tmp_path_factory.mktemp("story"), {}
    with pytest.MonkeyPatch.context() as patch:
        brief = MLP(
            shapes=((8,),), rates=(3e-3,), decays=(1e-2,), whites=(False,), epochs=1, least=5
        )
        attackers = (
            Logistic(strengths=(0.1,)),
            brief,
            ResCL(epochs=1, least=5, width=0.1, rates=(3e-3,)),
        )
        patch.setitem(
            BATTERIES,
            "quick",
            Battery(attackers, (brief,), (ReversedExtractor(epochs=1, width=0.1),)),
        )
        said["learn"] = _run(*LEARN, *SMALL, "--out", room / "hedge")
        said["audit"] = _run(
            "audit",
            room / "hedge",
            *DATA,
            "--utility",
            "smiling",
            "--device",
            "cpu",
            "--out",
            room / "found",
        )
        pixels = np.random.default_rng(0).integers(0, 256, (60, 80, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(room / "photo.png")
        said["apply"] = _run(
            "apply", room / "hedge", room / "photo.png", "--out", room / "released.parquet"
        )
        again = ["audit", room / "hedge", *DATA, "--utility", "smiling", "--device", "cpu"]
        said["again"] = _run(
            *again, "--raw-from", room / "found" / "audit.json", "--out", room / "again"
        )
        yield Story(room, said)


def test_learn_writes_a_release_and_says_what_to_do_next(story):
    assert {p.name for p in (story.room / "hedge").iterdir()} == {
        "card.json",
        "weights.safetensors",
        "release.onnx",
    }
    release = Release.load(story.room / "hedge")
    assert release.private == ["beard"] and release.card["settings"]["width"] == 0.05
    assert f"privet audit {story.room / 'hedge'} --data portraits:300" in story.said["learn"]


def test_audit_writes_its_files_and_names_the_attributes(story):
    assert {p.name for p in (story.room / "found").iterdir()} == {
        "audit.json",
        "report.html",
        "summary.md",
    }
    lines = story.said["audit"].splitlines()
    first = "Look at the data first"  # 300 portraits are few
    named = [line.split(":")[0] for line in lines]
    verdict, *others = dict.fromkeys(named)
    assert verdict.split("  ")[0] in ("HELD", "AT RISK", "READABLE")
    assert others == [first, "beard", "smiling", "The report"]
    said = Audit.load(story.room / "found" / "audit.json")
    assert [r.attribute for r in said.private] == ["beard"] and [
        r.attribute for r in said.utility
    ] == ["smiling"]
    assert (
        said.release["sha256"]
        == json.loads((story.room / "hedge" / "card.json").read_text())["sha256"]
    )
    page = (story.room / "found" / "report.html").read_text()
    assert (
        page.lstrip().lower().startswith("<!doctype html>")
        and "beard" in page
        and "smiling" in page
    )


def test_the_same_audit_again_with_the_raw_figures_of_the_first(story):
    first, second = (Audit.load(story.room / name / "audit.json") for name in ("found", "again"))
    for one, other in zip(first.readings, second.readings, strict=True):
        assert one.raw == other.raw
        assert [f.score for f in one.released] == [f.score for f in other.released]
    assert story.said["audit"].splitlines()[:2] == story.said["again"].splitlines()[:2]


def test_apply_writes_one_record_and_no_picture(story):
    table = pq.read_table(story.room / "released.parquet")
    assert "released.parquet" in story.said["apply"]
    assert table.column_names == ["z"] and len(table) == 1, "names of files do not leave"
    release = Release.load(story.room / "hedge")
    assert len(table["z"][0].as_py()) == np.prod(release.shape)
    about = json.loads(table.schema.metadata[b"privet"])
    assert about["private"] == ["beard"] and about["shape"] == list(release.shape)
    assert about["noise"] == "none" and about["leaves"]["kept"] == []


def test_unfinished_work_is_not_written_over(tmp_path):
    (tmp_path / "checkpoint.safetensors").write_bytes(b"hours of work")
    with pytest.raises(PrivetError, match="--resume"):
        _run(*LEARN, *SMALL, "--out", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint.safetensors"]
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == b"hours of work"


def test_a_column_of_names_is_left_out_and_named(tmp_path):
    rows = [f"Person {i},{i % 7},{['Bonn', 'Kiel'][i % 3 == 0]},{i % 2}" for i in range(200)]
    (tmp_path / "people.csv").write_text("\n".join(["[name],age,town,sick", *rows]))
    words = [
        "learn",
        "leace",
        "--data",
        tmp_path / "people.csv",
        "--private",
        "sick",
        "--device",
        "cpu",
        "--out",
        tmp_path / "r",
    ]
    result = CliRunner().invoke(cli.app, [str(word) for word in words])
    note = "Not used as input, because it holds names of individuals: [name]."
    assert result.exit_code == 0 and note in result.stderr
    card = (tmp_path / "r" / "card.json").read_text()
    assert "Kiel" in card and "Person" not in card


def test_resume_without_a_checkpoint_is_a_start(story, tmp_path):
    _run(*LEARN, *SMALL, "--resume", "--out", tmp_path / "hedge")
    first, second = (
        (room / "hedge" / "weights.safetensors").read_bytes() for room in (story.room, tmp_path)
    )
    assert first == second


def test_data_show_names_every_attribute():
    said = _run("data", "show", "portraits:300")
    data = load("portraits:300")
    assert len(data.attributes) > 3 and all(name in said for name in data.attributes)
    assert "300" in said and all(part in said for part in ("fit", "attack", "select", "test"))


_CALL = (
    "from privet.cli.main import app; from typer.testing import CliRunner; assert {word!r} in"
    " CliRunner().invoke(app, {words}).output"
)
_HEAVY = ("torch", "pandas", "onnxruntime", "sklearn", "scipy")
_LEARNING = ("torch", "sklearn", "safetensors", "onnxscript")
IMPORTS = {
    "import": ("import privet; privet.__version__; dir(privet)", _HEAVY),
    "error": ("from privet import PrivetError", _HEAVY),
    "help": (_CALL.format(words=["--help"], word="learn"), _HEAVY),
    "help of a verb": (_CALL.format(words=["learn", "--help"], word="--private"), _HEAVY),
    "applying": ("import privet.release.apply", _LEARNING),
    "taking part": (
        "import privet.exchange.participant.share, privet.exchange.participant.outbox",
        (*_LEARNING, "fastapi", "sqlalchemy"),
    ),
    "learning": (
        "from privet.commands.learn import learn; from privet.methods.registry import METHODS",
        ("privet.auditing.audit", "sklearn", "scipy.stats"),
    ),
}


@pytest.mark.parametrize(("code", "heavy"), IMPORTS.values(), ids=IMPORTS)
def test_nobody_waits_for_what_others_need(code, heavy):
    check = (
        f"{code}; import sys; loaded = [m for m in {heavy} if m in sys.modules]; assert not loaded,"
        " loaded"
    )
    result = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, timeout=600
    )
    assert result.returncode == 0, result.stderr


def test_the_program_has_help_and_says_nothing_else():
    result = subprocess.run(
        [sys.executable, "-m", "privet", "--help"], capture_output=True, text=True, timeout=600
    )
    assert result.returncode == 0 and not result.stderr
    assert all(verb in result.stdout for verb in ("demo", "data", "learn", "audit", "apply"))


@pytest.mark.parametrize("name", privet.__all__)
def test_every_public_name_is_there(name):
    assert getattr(privet, name) is not None and name in dir(privet)


def test_another_name_is_not():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        privet.nothing  # noqa: B018 - asking is the test


def test_what_a_file_was_taken_for_and_what_is_broken_in_it_is_said(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for i in range(40):
            Image.effect_noise((8, 8), 9 + i).convert("RGB").save(tmp_path / name / f"{i}.png")
    (tmp_path / "a" / "7.png").write_bytes(b"no picture")
    given = ["learn", "leace", "--data", tmp_path, "--private", "class", "--out", tmp_path / "r"]
    refused = CliRunner().invoke(cli.app, [str(word) for word in given])
    assert "7.png" in str(refused.exception)
    result = CliRunner().invoke(cli.app, [str(word) for word in [*given, "--skip-broken"]])
    assert result.exit_code == 0, result.output
    assert "was read as 79 pictures of 8 x 8 pixels" in result.stderr
    assert "1 of 80 pictures" in result.stderr and "7.png" in result.stderr
    page = tmp_path / "data.html"
    said = _run("data", "show", tmp_path, "--skip-broken", "--html", page)
    assert "79 pictures" in said and "7.png" in said and "7.png" in page.read_text()
