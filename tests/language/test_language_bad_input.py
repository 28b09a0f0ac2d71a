"""What is wrong with texts, canaries and epsilons is one sentence and exit code 2, from the command
line; what is only odd works."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest
from letters import letters

from privet.cli import main as cli
from privet.language.models.train import TrainedModel

ODD = ("🙂🏳️‍🌈 שלום שלום", "مرحبا ٣ مرحبا", "🙂 🙂", "שלום 🙂 नमस्ते", "नमस्ते नमस्ते")


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("room")
    data = letters(24)
    text, author = list(data.records), [f"a{one}" for one in data.people]
    frames = {
        "letters": {"text": text, "author": author},
        "nobody": {"text": text, "topic": ["a", "b"] * (len(text) // 2)},
        "alone": {"text": text, "author": ["a0"] * len(text)},
        "once": {"text": text, "author": [f"a{k}" for k in range(len(text))]},
        "empty": {"text": ["", " \n", "\t"] * (len(text) // 3), "author": author},
        "odd": {
            "text": [ODD[k % len(ODD)] for k in range(120)],
            "author": [f"a{k // 5}" for k in range(120)],
        },
        "one_each": {
            "text": [*text, *["a single text here"] * 24],
            "author": [*author, *(f"single{k}" for k in range(24))],
        },
    }
    for name, columns in frames.items():
        pd.DataFrame(columns).to_parquet(room / f"{name}.parquet")
    pd.DataFrame({"word": ["we", "went"], "vector": [[0.0, 1.0], [1.0, 0.0]]}).to_parquet(
        room / "vectors.parquet"
    )
    return room


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["privet", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


SMALL = [
    "--device",
    "cpu",
    "--epochs",
    "1",
    "--set",
    "width=8",
    "--set",
    "vocabulary=200",
    "--set",
    "batch=64",
]
WRONG = [
    ("no author column", "nobody", [], "does not say who wrote a text"),
    ("one author", "alone", ["--author", "author"], "The data has 1 people"),
    ("authors with one text", "once", ["--author", "author"], "has one text"),
    ("empty texts", "empty", ["--author", "author"], "are empty"),
    (
        "a canary that no token stands for",
        "letters",
        ["--canaries", "1", "--pattern", "zebra code #", "--set", "vocabulary=14"],
        "zebra",
    ),
    (
        "a canary without anything random",
        "letters",
        ["--canaries", "1", "--pattern", "my code"],
        "nothing random",
    ),
    (
        "a canary that is too long",
        "letters",
        ["--canaries", "1", "--set", "longest=4"],
        "shorten it",
    ),
    (
        "an epsilon of zero",
        "letters",
        ["--regularizer", "dp", "--epsilon", "0"],
        "epsilon of 0 cannot be spent",
    ),
    (
        "an epsilon below zero",
        "letters",
        ["--regularizer", "dp", "--epsilon", "-1"],
        "cannot be spent",
    ),
]


@pytest.mark.parametrize("verb", ["train", "audit"])
@pytest.mark.parametrize(
    ("file", "words", "sentence"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_a_wrong_word_is_one_sentence_and_leaves_nothing(
    room: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    file: str,
    words: list[str],
    sentence: str,
) -> None:
    if verb == "audit" and "--regularizer" in words:
        words = ["--regularizer", f"dp:{words[-1]}"]
    assert (
        run(
            monkeypatch,
            "lm",
            verb,
            "--data",
            room / f"{file}.parquet",
            "--out",
            tmp_path / "m",
            *SMALL,
            *words,
        )
        == 2
    )
    told = capsys.readouterr().err
    assert sentence in " ".join(told.split()) and "Traceback" not in told
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("epsilon", ["0", "-3", "nan", "much"])
def test_private_words_need_an_epsilon_above_zero(
    room: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    epsilon: str,
) -> None:
    words = (
        "words",
        room / "letters.parquet",
        "--vectors",
        room / "vectors.parquet",
        "--text",
        "text",
        "--epsilon",
        epsilon,
    )
    assert run(monkeypatch, *words, "--out", tmp_path / "p.parquet") == 2
    assert "epsilon" in capsys.readouterr().err and not (tmp_path / "p.parquet").exists()


@pytest.mark.parametrize("tokens", ["word", "subword"])
def test_emoji_and_right_to_left_scripts_are_learned(
    room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: str
) -> None:
    small = [word.replace("vocabulary=200", "vocabulary=300") for word in SMALL]
    words = (
        "lm",
        "train",
        "--data",
        room / "odd.parquet",
        "--out",
        tmp_path / "m",
        *small,
        "--tokens",
        tokens,
    )
    assert run(monkeypatch, *words) == 0
    tokenizer = TrainedModel.load(tmp_path / "m").tokenizer
    assert all(len(tokenizer.word(word)) >= 1 for word in ("שלום", "🙂", "नमस्ते"))
    assert len({tuple(tokenizer.word(word)) for word in ("שלום", "مرحبا", "नमस्ते")}) == 3


def test_an_author_with_one_text_is_said(
    room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(
            monkeypatch,
            "lm",
            "train",
            "--data",
            room / "one_each.parquet",
            "--out",
            tmp_path / "m",
            *SMALL,
        )
        == 0
    )
    assert "known authors have one text each" in capsys.readouterr().out
