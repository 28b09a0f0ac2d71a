"""The keys of noise: made once, for their owner alone, and destroyed when they are forgotten."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privet.cli.main import app
from privet.core.errors import PrivetError
from privet.release.noise_keys import forget, key_path, noise_key


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    key = noise_key("survey", home)
    path = key_path("survey", home)
    assert len(key) == 32 and key == noise_key("survey", home) != noise_key("other", home)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(file.name for file in path.parent.iterdir()) == ["other.key", "survey.key"]


def test_at_the_same_time_all_get_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(lambda _: noise_key("survey", tmp_path), range(64)))
    assert len(keys) == 1


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    path = key_path("survey", tmp_path)
    path.parent.mkdir()
    path.write_text("half a key")
    path.chmod(0o600)
    with pytest.raises(PrivetError, match="not a key"):
        noise_key("survey", tmp_path)
    assert path.read_text() == "half a key"


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    noise_key("survey", tmp_path)
    key_path("survey", tmp_path).chmod(0o640)
    with pytest.raises(PrivetError, match="chmod 600"):
        noise_key("survey", tmp_path)


def test_forget_destroys_the_key(tmp_path: Path) -> None:
    before = noise_key("survey", tmp_path)
    noise_key("other", tmp_path)
    path = key_path("survey", tmp_path)
    link = tmp_path / "copy"
    os.link(path, link)
    assert forget("survey", home=tmp_path) == path and not path.exists()
    assert not any(link.read_bytes()), "the bytes are gone, not only their name"
    with pytest.raises(PrivetError, match="there are: other"):
        forget("survey", home=tmp_path)
    assert noise_key("survey", tmp_path) != before


def test_a_link_names_its_campaign(tmp_path: Path) -> None:
    noise_key("0" * 32, tmp_path)
    assert forget(f"https://example.org/c/{'0' * 32}#invite=x", home=tmp_path).stem == "0" * 32


@pytest.mark.parametrize("name", ["", "../x", ".hidden", "a b", "a/b", "x" * 200])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(PrivetError, match="cannot be the name"):
        noise_key(name, tmp_path)


def test_the_verb_destroys_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVET_HOME", str(tmp_path))
    noise_key("survey")
    said = CliRunner().invoke(app, ["forget", "survey"])
    assert said.exit_code == 0 and "Nobody can take the noise off" in said.output
    assert not key_path("survey").exists()
    with pytest.raises(PrivetError, match="no key of a campaign 'survey'"):
        CliRunner().invoke(app, ["forget", "survey"], catch_exceptions=False)
