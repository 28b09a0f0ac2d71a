"""Limits where people keep theirs: in a test, a hook before a commit, a step of a workflow."""

from __future__ import annotations

import os
import re
import subprocess
import sys
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
    ("limits", "code"),
    [("--max-accuracy u=0.99", 0), ("--max-accuracy u=0.501", 1), ("--max-accuracy $(id)=1", 2)],
)
def test_the_step_of_a_workflow(audit: Path, tmp_path: Path, limits: str, code: int) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    [step] = [step for step in action["runs"]["steps"] if step.get("id") == "gate"]
    assert "${{" not in step["run"], "what others write reaches the shell as a variable only"
    program = tmp_path / "privet"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m privet "$@"\n')
    program.chmod(0o755)
    summary = tmp_path / "summary"
    given = {"AUDIT": str(audit), "LIMITS": limits, "GITHUB_STEP_SUMMARY": str(summary)}
    given["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        env={**os.environ, **given, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    assert "uid=" not in done.stdout + done.stderr
    assert code == 2 or "u: " in summary.read_text()
