"""The exchange on the command line, against a server in another process: what people type, and what
they read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from world import Server

from privet.cli.main import main


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Server:
    server = Server(tmp_path_factory.mktemp("cli") / "collector").start()
    yield server  # type: ignore[misc]
    assert server.stop() == 0


def privet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> tuple[int, str]:
    """Exit code, and what is read."""
    monkeypatch.setattr(sys, "argv", ["privet", *map(str, words)])
    code = 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    said = capsys.readouterr()
    return code, said.out + said.err


def test_the_story(
    running: Server,
    release: Path,
    photo: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PRIVET_HOME", str(tmp_path / "home"))
    token = running.folder / "operator.token"

    def say(*words: object) -> tuple[int, str]:
        return privet(monkeypatch, capsys, *words)

    asked = (
        "--title",
        "Smiles",
        "--purpose",
        "To learn.",
        "--who",
        "Lab X",
        "--token",
        token,
        "--server",
        running.url,
    )
    code, said = say(
        "campaign",
        "create",
        release,
        *asked,
        "--label",
        "smiling=yes,no",
        "--out",
        tmp_path / "mine",
    )
    assert code == 0 and "fingerprint" in said
    link = json.loads((tmp_path / "mine" / "campaign.json").read_text())["link"]
    assert link in said
    assert "Smiles" in say("campaign", "list", "--token", token, "--server", running.url)[1]

    code, said = say("share", link, photo, "--label", "smiling=yes", "--dry-run")
    assert code == 0 and "52.5200 N" in said and "Nothing was sent." in said
    assert "0 records" in say("campaign", "show", tmp_path / "mine")[1]
    code, said = say("share", link, photo, photo, "--label", "smiling=yes", "--yes")
    assert code == 0 and "Sent 2." in said
    assert "2 records of 1 people" in say("campaign", "show", tmp_path / "mine")[1]
    code, said = say("withdraw", "--list")
    assert said.count("Smiles") == 2
    assert say("withdraw", said.split()[0])[0] == 0
    code, said = say("campaign", "export", tmp_path / "mine", "--out", tmp_path / "data")
    assert code == 0 and len(pq.read_table(tmp_path / "data" / "export.parquet")) == 1
    assert say("campaign", "close", tmp_path / "mine")[0] == 0
    code, said = say("share", link, photo, "--yes")
    assert code == 2 and "closed" in said
    said = say("ledger")[1]
    assert "1 record sent" in said and "  withdrawn  " in said and "not certified for 1" in said
    assert say("withdraw", "--all")[0] == 0
    assert "  stored  " not in say("ledger")[1]
    assert say("trust", "0" * 32, "--name", "Ada\x1b[2J")[0] == 0
    code, said = say("trust")
    assert code == 0 and "Ada\\x1b[2J" in said
    assert "0 records" in say("campaign", "show", tmp_path / "mine")[1]
    assert "Nothing waits" in say("share", "--retry")[1]


@pytest.mark.parametrize(
    "words",
    [
        ("share",),
        ("share", "nonsense", "x.jpg"),
        ("share", f"http://127.0.0.1:9/c/{'0' * 32}", "x.jpg"),
        ("withdraw",),
        ("withdraw", "abcd1234"),
        ("withdraw", "../../etc/passwd"),
        ("trust", "0123", "--name", "Ada"),
        ("trust", "0" * 32),
        ("share", f"http://127.0.0.1:9/c/{'0' * 32}\x1b[2J", "x.jpg"),
        ("campaign", "show", "nowhere"),
        ("campaign", "export", "nowhere", "--out", "x"),
        ("task", "--data", "nowhere.parquet", "--label", "x", "--out", "y"),
        ("serve", "--db", "nonsense", "--data", "d"),
        ("serve", "--certificate", "x.pem", "--data", "d"),
    ],
)
def test_wrong_words_get_one_sentence_and_exit_code_2(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRIVET_HOME", str(tmp_path / "home"))
    code, said = privet(monkeypatch, capsys, *words)
    assert code == 2 and said.startswith("privet: ") and said.count("\n") == 1
