"""A wrong word gets one sentence that says what to do, exit code 2, no traceback, and nothing
half-written."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from privet import TIPRDC, Run
from privet.cli import main as cli
from privet.core.errors import PrivetError
from privet.data.portraits.source import portraits

LEARN = [
    "learn",
    "tiprdc",
    "--set",
    "width=0.05",
    "--set",
    "epochs=1",
    "--set",
    "warmup=0",
    "--device",
    "cpu",
]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with something of everything that can be wrong."""
    room = tmp_path_factory.mktemp("room")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.standard_normal(80),
            "b": rng.integers(0, 2, 80),
            "same": 1,
            "sex": rng.choice(["f", "m"], 80),
        }
    )
    frame.to_csv(room / "table.csv", index=False)
    frame.head(12).assign(sex=["f", "m"] * 6).to_csv(room / "tiny.csv", index=False)
    (room / "empty.csv").write_text("")
    (room / "notes.docx").write_text("what")
    (room / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    (room / "pictures").mkdir()
    for i in range(8):
        Image.new("RGB", (48, 48), (i * 20, 0, 0)).save(room / "pictures" / f"{i}.png")
    (room / "pictures" / "3.png").write_bytes(b"not a picture")
    pd.DataFrame({"file": [f"{i}.png" for i in range(8)], "u": [0, 1] * 4}).to_csv(
        room / "pictures" / "labels.csv", index=False
    )
    data = portraits(200, progress=False)
    TIPRDC(width=0.05, warmup=0, epochs=1).fit(
        data, ["beard"], run=Run(progress=False, device="cpu")
    ).save(room / "release")
    (room / "wide").mkdir()
    for i in range(8):
        Image.new("RGB", (64, 64), (i * 20, 0, 0)).save(room / "wide" / f"{i}.png")
    pd.DataFrame({"file": [f"{i}.png" for i in range(8)], "beard": [0, 1] * 4}).to_csv(
        room / "wide" / "labels.csv", index=False
    )
    shutil.copytree(room / "release", room / "tampered")
    (room / "tampered" / "weights.safetensors").write_bytes(b"other weights")
    (room / "bad.toml").write_text("perosn = 'a'\n")
    return room


TABLE = [
    (
        "unknown method",
        ["learn", "tiprc", "--data", "portraits:200", "--private", "beard"],
        "did you mean 'tiprdc'",
    ),
    (
        "unknown attribute",
        [*LEARN, "--data", "portraits:200", "--private", "bread"],
        "did you mean 'beard'",
    ),
    (
        "unknown data",
        [*LEARN, "--data", "portrait", "--private", "beard"],
        "did you mean 'portraits'",
    ),
    ("no such file", [*LEARN, "--data", "{room}/nowhere.parquet", "--private", "beard"], "no file"),
    ("empty file", [*LEARN, "--data", "{room}/empty.csv", "--private", "a"], "empty"),
    (
        "other kind of file",
        [*LEARN, "--data", "{room}/notes.docx", "--private", "a"],
        "kind that is not read",
    ),
    (
        "broken parquet",
        [*LEARN, "--data", "{room}/broken.parquet", "--private", "a"],
        "cannot be read as parquet",
    ),
    ("broken image", [*LEARN, "--data", "{room}/pictures", "--private", "u"], "3.png"),
    (
        "one value only",
        [*LEARN, "--data", "{room}/table.csv", "--private", "same"],
        "only one value",
    ),
    ("private number", [*LEARN, "--data", "{room}/table.csv", "--private", "a"], "number"),
    (
        "too few records",
        [*LEARN, "--data", "{room}/tiny.csv", "--private", "sex"],
        "at least 8 are needed",
    ),
    (
        "private and a task",
        [*LEARN, "--data", "{room}/table.csv", "--private", "sex", "--utility", "sex"],
        "both private and a task",
    ),
    (
        "an unknown task for tiprdc",
        [*LEARN, "--data", "{room}/table.csv", "--private", "sex", "--utility", "c"],
        "no attribute 'c'",
    ),
    (
        "unknown column",
        [*LEARN, "--data", "{room}/table.csv", "--private", "sex", "--without", "c"],
        "no column 'c'",
    ),
    ("no private", [*LEARN, "--data", "portraits:200", "--private", ","], "at least one private"),
    (
        "budget outside",
        [*LEARN, "--data", "portraits:200", "--private", "beard", "--budget", "1.5"],
        "between 0",
    ),
    (
        "unknown setting",
        [*LEARN, "--data", "portraits:200", "--private", "beard", "--set", "wdth=2"],
        "did you mean 'width'",
    ),
    (
        "setting of other type",
        [*LEARN, "--data", "portraits:200", "--private", "beard", "--set", "batch=many"],
        "takes a whole number",
    ),
    (
        "unknown device",
        [*LEARN, "--data", "portraits:200", "--private", "beard", "--device", "tpu9"],
        "not available",
    ),
    (
        "bad schema key",
        [*LEARN, "--data", "{room}/table.csv", "--private", "sex", "--schema", "{room}/bad.toml"],
        "did you mean 'person'",
    ),
    (
        "no schema file",
        [*LEARN, "--data", "{room}/table.csv", "--private", "sex", "--schema", "{room}/no.toml"],
        "no.toml",
    ),
    ("no release", ["audit", "{room}/pictures", "--data", "portraits:200"], "no release in"),
    ("other input shape", ["audit", "{room}/release", "--data", "{room}/wide"], "size = [48, 48]"),
    (
        "audit of too few",
        ["audit", "{room}/release", "--data", "portraits:30"],
        "at least 8 are needed",
    ),
    (
        "other modality",
        ["audit", "{room}/release", "--data", "{room}/table.csv"],
        "holds table records",
    ),
    (
        "audit unknown task",
        ["audit", "{room}/release", "--data", "portraits:200", "--utility", "smilling"],
        "did you mean 'smiling'",
    ),
    (
        "audit private as task",
        ["audit", "{room}/release", "--data", "portraits:200", "--utility", "beard"],
        "hides 'beard'",
    ),
    (
        "unknown battery",
        ["audit", "{room}/release", "--data", "portraits:200", "--battery", "huge"],
        "no battery",
    ),
    ("tampered release", ["audit", "{room}/tampered", "--data", "portraits:200"], "do not use"),
    (
        "certify no release",
        ["certify", "{room}/pictures", "--data", "portraits:200"],
        "no release in",
    ),
    (
        "certify for a share",
        ["certify", "{room}/release", "--data", "portraits:200", "--target", "58"],
        "between 0 and 1",
    ),
    (
        "certify without noise",
        ["certify", "{room}/release", "--data", "portraits:200", "--target", "0.6"],
        "adds no noise",
    ),
    ("apply to nothing", ["apply", "{room}/release", "{room}/nowhere.jpg"], "no file or folder"),
    ("apply to a broken picture", ["apply", "{room}/release", "{room}/pictures/3.png"], "3.png"),
    (
        "apply to another kind",
        ["apply", "{room}/release", "{room}/table.csv"],
        "no column holds a image",
    ),
]


@pytest.mark.parametrize("words,said", [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_one_sentence_and_nothing_left(room, tmp_path, words, said):
    out = tmp_path / "deep" / "out"
    error = _run([word.format(room=room) for word in words] + ["--out", str(out)])
    assert said in error and "\n" not in error and "Traceback" not in error
    assert not any(tmp_path.iterdir()), "something was left behind"


@pytest.mark.parametrize(
    "words",
    [
        [*LEARN, "--data", "portraits:200", "--private", "beard"],
        ["audit", "{room}/release", "--data", "portraits:200"],
        ["apply", "{room}/release", "{room}/wide/1.png"],
    ],
    ids=["learn", "audit", "apply"],
)
def test_an_unwritable_folder(room, tmp_path, words):
    """Below a file no folder can be made, not even by root."""
    (tmp_path / "file").write_text("in the way")
    error = _run(
        [word.format(room=room) for word in words] + ["--out", str(tmp_path / "file" / "out")]
    )
    assert "Cannot write" in error
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def _run(words: list[str]) -> str:
    """The sentence a user sees; fails if the exit code is not 2 or anything but a PrivetError comes
    out."""
    result = CliRunner().invoke(cli.app, words)
    assert isinstance(result.exception, PrivetError), (result.exception, result.output)
    return str(result.exception)


def test_main_prints_the_sentence_and_exits_with_2(monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv",
        [
            "privet",
            "learn",
            "nomethod",
            "--data",
            "portraits:200",
            "--private",
            "beard",
            "--out",
            "x",
        ],
    )
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    said = capsys.readouterr().err
    assert (
        stopped.value.code == 2
        and said.startswith("privet: There is no method 'nomethod'")
        and said.count("\n") == 1
    )


@pytest.mark.parametrize(
    "verb",
    [
        [],
        ["demo"],
        ["data", "show"],
        ["learn"],
        ["audit"],
        ["certify"],
        ["gate"],
        ["apply"],
        ["forget"],
    ],
    ids=" ".join,
)
def test_help_has_an_example(verb):
    result = CliRunner().invoke(cli.app, [*verb, "--help"])
    assert result.exit_code == 0
    assert not verb or f"privet {' '.join(verb)}" in result.output.split("Example")[1]
