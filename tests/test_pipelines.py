"""Limits where people keep theirs: in a test, a hook before a commit, a step of a workflow."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import privet
from privet.adversaries.linear import Logistic
from privet.testing import assert_private as hold

yaml = pytest.importorskip("yaml")
pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    data = privet.load("toy:gaussian")
    release = privet.Noisy(sigma=3.0).fit(data, private=["u"])
    battery = privet.Battery((Logistic(),), people=False)
    privet.audit(release, data, battery=battery, progress=False).save(folder / "audit.json")
    return folder


def test_a_limit_that_does_not_hold_fails_with_its_line(audit: Path) -> None:
    assert [check.ok for check in hold(audit, max_accuracy={"u": 0.99})] == [True]
    with pytest.raises(AssertionError, match=r"NOT HELD[\s\S]*FAILED  u"):
        hold(audit, max_accuracy={"u": 0.99}, max_certified={"u": 0.51})


def test_pytest_has_a_fixture(
    audit: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        f"""
        def test_held(assert_private):
            assert_private({str(audit)!r}, max_accuracy={{"u": 0.99}})

        def test_not_held(assert_private):
            assert_private({str(audit)!r}, max_accuracy={{"u": 0.501}})
        """
    )
    result = pytester.runpytest_subprocess("-p", "privet.testing", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)


def test_pytest_finds_it_by_itself() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert re.search(r"\[project\.entry-points\.pytest11\]\nprivet = \"privet\.testing\"", text)


def test_the_hook_is_one() -> None:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "privet gate" and hook["pass_filenames"] is False
    clientlib = pytest.importorskip("pre_commit.clientlib")
    clientlib.load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))


@pytest.mark.parametrize(
    ("staged", "limit", "code", "word"),
    [
        ("audit/audit.json", "u=0.99", 0, "Passed"),
        ("audit/audit.json", "u=0.501", 1, "NOT HELD"),
        ("other.txt", "u=0.501", 0, "no files to check"),
    ],
)
def test_pre_commit_runs_the_hook(
    audit: Path, tmp_path: Path, staged: str, limit: str, code: int, word: str
) -> None:
    """By pre-commit itself, with the privet that is here in place of one that it would install."""
    pytest.importorskip("pre_commit", reason="pip install pre-commit")
    if shutil.which("git") is None:
        pytest.skip("git is not there")
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    hook |= {"language": "system", "args": ["audit", "--max-accuracy", limit]}
    del hook["additional_dependencies"]
    work = tmp_path / "work"
    shutil.copytree(audit, work / "audit")
    (work / "other.txt").write_text("x\n")
    config = {"repos": [{"repo": "local", "hooks": [hook]}]}
    (work / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    program(tmp_path)
    given = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    environment = {**os.environ, **given, "PRE_COMMIT_HOME": str(tmp_path / "home")}
    commands = [["git", "init", "-q"], ["git", "add", staged, ".pre-commit-config.yaml"]]
    for command in commands:
        subprocess.run(command, cwd=work, env=environment, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "run"],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == code and word in done.stdout, done.stdout + done.stderr


def program(folder: Path) -> None:
    """`privet` and `python` as commands."""
    for name, words in (("privet", "-m privet"), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (folder / name).chmod(0o755)


def test_the_action_installs_what_it_is_told(tmp_path: Path) -> None:
    """The first step, with pip itself and a package made here."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    install, _ = action["runs"]["steps"]
    assert install["if"] == "inputs.install != ''" and "${{" not in install["run"]
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    about = {"METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"}
    about["WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("tiny.py", "")
        for name, text in about.items():
            file.writestr(f"tiny-1.0.dist-info/{name}", text)
        file.writestr("tiny-1.0.dist-info/RECORD", "")
    program(tmp_path)
    given = {"WANTED": f"tiny @ {wheel.as_uri()}", "PIP_NO_INDEX": "1"}
    given |= {"PIP_TARGET": str(tmp_path / "there"), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-e", "-c", install["run"]],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0 and (tmp_path / "there/tiny.py").exists(), done.stderr


@pytest.mark.parametrize(
    ("limits", "code"),
    [("--max-accuracy u=0.99", 0), ("--max-accuracy u=0.501", 1), ("--max-accuracy $(id)=1", 2)],
)
def test_the_step_of_a_workflow(audit: Path, tmp_path: Path, limits: str, code: int) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    [step] = [step for step in action["runs"]["steps"] if step.get("id") == "gate"]
    assert "${{" not in step["run"], "what others write reaches the shell as a variable only"
    program(tmp_path)
    summary = tmp_path / "summary"
    given = {"AUDIT": str(audit), "LIMITS": limits, "GITHUB_STEP_SUMMARY": str(summary)}
    given["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        env={**os.environ, **given, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == code, done.stderr
    assert "uid=" not in done.stdout + done.stderr
    assert code == 2 or "u: " in summary.read_text()
