"""What is in deploy/ can be read, names metrics and options that there are, and grants no more than
it must."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
pytest.importorskip("fastapi", reason="the exchange needs  pip install 'privet[exchange]'")

DEPLOY = Path(__file__).parents[1] / "deploy"


@pytest.fixture(scope="module")
def options() -> str:
    words = [sys.executable, "-m", "privet", "serve", "--help"]
    return subprocess.run(words, capture_output=True, text=True, timeout=6000, check=True).stdout


def _metrics() -> set[str]:
    """Names of what a collector counts."""
    from privet.exchange.collector.monitor import Monitor

    names = set()
    for metric in Monitor().registry.collect():
        names |= {metric.name + end for end in ("", "_total", "_bucket", "_sum", "_count")}
    return names


@pytest.mark.parametrize("file", ["alerts.yaml", "dashboard.json"])
def test_every_metric_exists(file: str) -> None:
    text = (DEPLOY / file).read_text()
    named = set(re.findall(r"privet_\w+", text))
    assert named and named <= _metrics()


def test_the_dashboard_and_the_alerts_can_be_read() -> None:
    panels = json.loads((DEPLOY / "dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) >= 6
    [group] = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]
    assert all(rule["expr"] and rule["annotations"]["summary"] for rule in group["rules"])


def _commands() -> dict[str, str]:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    objects: list[Any] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    [deployment] = [one for one in objects if one["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    unit = (DEPLOY / "privet.service").read_text()
    return {
        "compose": compose["services"]["collector"]["command"][0],
        "kubernetes": container["args"][0],
        "systemd": next(line for line in unit.splitlines() if line.startswith("ExecStart=")),
    }


@pytest.mark.parametrize("where", ["compose", "kubernetes", "systemd"])
def test_every_option_exists(where: str, options: str) -> None:
    named = re.findall(r"--[a-z-]+", _commands()[where])
    assert named and [option for option in named if option not in options] == []


def test_one_collector_writes() -> None:
    objects = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    [deployment] = [one for one in objects if one["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"]["type"] == "Recreate"


def test_no_secret_is_in_the_files() -> None:
    text = "".join(file.read_text() for file in DEPLOY.iterdir() if file.is_file())
    assert not re.search(r"postgresql\S*//\w+:\w+@", text)


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    analyse = shutil.which("systemd-analyze")
    if analyse is None:
        pytest.skip("there is no systemd-analyze on this machine")
    unit = (DEPLOY / "privet.service").read_text()
    program = tmp_path / "privet"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    file = tmp_path / "privet.service"
    file.write_text(unit.replace("/opt/privet/bin/privet", str(program)))
    words = [analyse, "verify", "--man=no", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    ours = [line for line in done.stderr.splitlines() if "privet.service" in line]
    assert [line for line in ours if "Unknown" in line or "Failed to parse" in line] == []
