"""Who judges a released file: readers of ours here, other people's attackers in environments
of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from files import SPLIT_NAMES, Array, read

HERE = Path(__file__).parent
ATTACKERS = {"linear": "", "art": "art_attack.py", "anonymeter": "anonymeter_attack.py"}
"""Their scripts; `linear` is our logistic regression alone, which is what LEACE and INLP promise
to guard against."""


def judge(folder: Path, case: str) -> dict[str, Any]:
    """What our readers read from released.parquet: they learn from *train*, and the one that reads
    *valid* best counts. On tables logistic regression and boosted trees, on vectors and windows
    also a quadratic discriminant and a kernel machine, on windows a residual network too."""
    import torch

    from privet.adversaries.adversary import Adversary
    from privet.adversaries.convolutional import ResCL
    from privet.adversaries.kernel import Kernel
    from privet.adversaries.linear import Logistic
    from privet.adversaries.quadratic import Quadratic
    from privet.adversaries.trees import Boosting
    from privet.auditing.attribute_attack import run_adversary, strongest

    torch.set_num_threads(1)
    readers: list[Adversary] = [
        Logistic(strengths=(1e-3, 1e-1)),
        Boosting(settings=((("max_iter", 100),),), columns=128),
    ]
    if case != "adult":
        readers += [Quadratic(), Kernel(features=1024, widths=(1.0,), ridges=(1e-1,))]
    z, columns = read(folder / "released.parquet", "z")
    shape = json.loads((folder / "said.json").read_text(encoding="utf-8")).get("shape", ())
    if case == "motionsense" and len(shape) == 2:
        readers.append(ResCL(width=0.25))
    worst = {}
    for name, role in (("private", "private"), ("task", "utility")):
        target = attack_target(z, columns, name, role, shape)
        results = [run_adversary(each, target, 0, lambda share: None) for each in readers]
        worst[name] = results[strongest([each.finding for each in results])].finding
    private, task = worst["private"], worst["task"]
    return {
        "found": private.score.value,
        "found_low": private.score.low,
        "found_high": private.score.high,
        "by": private.called,
        "task": task.plain.value if task.plain else None,
        "task_balanced": task.score.value,
        "n": private.score.n,
    }


def attack_target(
    z: Array, columns: Mapping[str, Array], name: str, role: Any, shape: Sequence[int] = ()
) -> Any:
    """The released records and an attribute of their people, as Privet's adversaries take them;
    where they are windows, networks see them in their shape."""
    import torch
    from windows import WindowRecords

    from privet.auditing.attribute_attack import AttackTarget
    from privet.data.dataset import Attribute

    values, labels = np.unique(columns[name], return_inverse=True)
    who = np.unique(columns["person"], return_inverse=True)[1]
    parts: dict[str, WindowRecords] = {}
    for ours, theirs in SPLIT_NAMES.items():
        rows = columns["split"] == theirs
        vectors = torch.as_tensor(z[rows], dtype=torch.float32)
        parts[ours] = WindowRecords(
            shape,
            lambda vectors=vectors: vectors,
            {name: labels[rows]},
            who[rows],
            torch.device("cpu"),
            parts.get("attack"),
        )
    kind = "binary" if len(values) == 2 else "categorical"
    attribute = Attribute(name, kind, tuple(map(str, values)))
    return AttackTarget(dict(parts), attribute, role, "released")


def linear(folder: Path) -> float:
    """What logistic regression alone reads, which the strongest reader may hide."""
    from privet.adversaries.linear import Logistic
    from privet.auditing.attribute_attack import run_adversary

    z, columns = read(folder / "released.parquet", "z")
    target = attack_target(z, columns, "private", "private")
    reader = Logistic(strengths=(1e-3, 1e-1))
    return float(run_adversary(reader, target, 0, lambda share: None).finding.score.value)


def attacked(folder: Path, work: Path, attackers: Sequence[str]) -> dict[str, Any]:
    """What these read alone; other people's attackers where their environments exist."""
    facts: dict[str, Any] = {}
    for attacker in attackers:
        if attacker == "linear":
            facts[attacker] = linear(folder)
            continue
        python = work / "envs" / attacker / "bin" / "python"
        if not python.exists():
            continue
        done = subprocess.run(
            [python, HERE / ATTACKERS[attacker], folder],
            check=False,
            capture_output=True,
            text=True,
        )
        lines = done.stdout.strip().splitlines()
        facts[attacker] = json.loads(lines[-1])["found"] if lines else None
        if not lines:
            sys.stderr.write(f"{attacker}: {done.stderr[-300:]}\n")
    return facts
