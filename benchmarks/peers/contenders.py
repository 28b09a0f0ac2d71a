"""Who takes part: methods of ours and peers, how each is called, and how it makes its file."""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case
from files import Raw

sys.path.insert(0, str(Path(__file__).parents[1]))
from fare import fare

HERE = Path(__file__).parent
QUICK = ("epochs=24", "width=0.25", "batch=256", "dims=1")
VEIL = ("epochs=20", "width=0.25", "dims=16", "lessons=10", "confuse=3", "match=3")
WINDOWS = ("epochs=24", "width=0.25", "batch=128")
VEIL_OF_WINDOWS = ("dims=32", "lessons=10", "confuse=1", "match=1", *WINDOWS)
OURS: dict[str, tuple[str, str, Sequence[str]]] = {
    "hedge-54": ("hedge, target 54 %", "hedge", ("target=0.54", *QUICK)),
    "codebook-54": ("codebook, target 54 %", "codebook", ("target=0.54", *QUICK)),
    "tree-54": ("tree, target 54 %", "tree", ("target=0.54",)),
    "hedge-60": ("hedge, target 60 %", "hedge", ("target=0.6", *QUICK)),
    "codebook-60": ("codebook, target 60 %", "codebook", ("target=0.6", *QUICK)),
    "tree-60": ("tree, target 60 %", "tree", ("target=0.6",)),
    "donors-54": ("donors, target 54 %, no task told", "donors", ("target=0.54",)),
    "donors-60": ("donors, target 60 %, no task told", "donors", ("target=0.6",)),
    "donors-61": (
        "donors, target 61 %, one shared axis, no task told",
        "donors",
        ("target=0.61", "shared=1"),
    ),
    "veil-0.05": ("veil, β 0.05, no task told", "veil", ("beta=0.05", *VEIL)),
    "veil-0.1": ("veil, β 0.1, no task told", "veil", ("beta=0.1", *VEIL)),
    **{
        name: (f"`dp`, the whole record, ε {epsilon}", "dp", (f"epsilon={epsilon}", "per=record"))
        for name, epsilon in (
            ("dp-54", "0.16"),
            ("dp-60", "0.4"),
            ("dp-8", "8"),
            ("dp-32", "32"),
            ("dp-128", "128"),
        )
    },
    "hedge-windows": ("hedge, target 60 %, activity told", "hedge", ("target=0.6", *WINDOWS)),
    "veil-0.0003-windows": (
        "veil, β 0.0003, no task told",
        "veil",
        ("beta=0.0003", *VEIL_OF_WINDOWS),
    ),
    "veil-0.003-windows": (
        "veil, β 0.003, no task told",
        "veil",
        ("beta=0.003", *VEIL_OF_WINDOWS),
    ),
    "erase": ("`erase`", "erase", ()),
    "erase-3": ("`erase`, 3 directions", "erase", ("directions=3",)),
}
"""Name: its words on the page, the method, its settings."""
CERTIFIED = ("hedge", "codebook", "tree", "donors")
UNTOLD = ("donors", "veil")
"""Methods that no task is told to: the task's column is only left out of the record."""


@dataclass(frozen=True)
class Peer:
    """How a peer is run.

    Parameters:
        title: Its words on the page.
        script: The script that runs it.
        words: Arguments after the folder; {NAME} stands for the checkout of that name.
        environment: Of DIR/envs; empty: this one.
        cases: Data sets that it takes.
    """

    title: str
    script: str
    words: Sequence[str] = ()
    environment: str = ""
    cases: Sequence[str] = ("adult", "blogs")


def _fare(percent: int, whose: str, title: str) -> Peer:
    words = ("{fare}", str(percent / 100), whose)
    return Peer(f"FARE, {title} {percent} %", "fare_peer.py", words, "fare")


def _fnf(gamma: str) -> Peer:
    return Peer(f"FNF, gamma {gamma}", "fnf_peer.py", ("{fnf}", gamma), "fnf", ("adult",))


PEERS = {
    "fare-54": _fare(54, "ours", "aimed at our bound of"),
    "fare-60": _fare(60, "ours", "aimed at our bound of"),
    "fare-own-54": _fare(54, "own", "aimed at its bound of"),
    "fare-own-60": _fare(60, "own", "aimed at its bound of"),
    "fnf-0.9": _fnf("0.9"),
    "fnf-0.99": _fnf("0.99"),
    "fnf-0.5": _fnf("0.5"),
    "fnf-0.1": _fnf("0.1"),
    "obliviator": Peer("Obliviator", "obliviator_peer.py", ("{Obliviator}",)),
    "obliviator-long": Peer(
        "Obliviator, 30 minutes of a core", "obliviator_peer.py", ("{Obliviator}", "500", "30")
    ),
    "obliviator-70": Peer(
        "Obliviator, 70 iterations", "obliviator_peer.py", ("{Obliviator}", "70")
    ),
    "obliviator-15": Peer(
        "Obliviator, 15 iterations whatever *fit* says",
        "obliviator_peer.py",
        ("{Obliviator}", "15", "inf", "0"),
    ),
    "fair": Peer("gradient reversal (CFair's Fair), μ 10", "cfair_peer.py", ("{cfair}", "fair")),
    "fair-tuned": Peer(
        "gradient reversal, μ chosen on *select*",
        "cfair_peer.py",
        ("{cfair}", "fair", "0.1", "1", "10", "100"),
    ),
    "cfair": Peer("CFair, for equalized odds, μ 10", "cfair_peer.py", ("{cfair}", "cfair-eo")),
    "lfr": Peer("AIF360's LFR, as it comes", "aif360_lfr.py", ("default",), "aif360"),
    "lfr-long": Peer("AIF360's LFR, converged", "aif360_lfr.py", ("converged",), "aif360"),
    "leace": Peer("LEACE (concept-erasure)", "leace_peer.py"),
    "leace-20": Peer(
        "LEACE, values of at least 20 people", "leace_peer.py", ("20",), "", ("adult",)
    ),
    "inlp": Peer("INLP", "inlp_peer.py", ("{nullspace_projection}",)),
    "fairlearn": Peer("fairlearn's CorrelationRemover", "fairlearn_remover.py"),
    "mass": Peer(
        "MaSS, 200 epochs", "mass_peer.py", ("{MaSS}", "audiomnist", "200"), "mass", ("adult",)
    ),
    "lengths-windows": Peer(
        "lengths of rotation and acceleration, which MaSS reads",
        "mass_peer.py",
        ("{MaSS}", "motionsense", "0"),
        "mass",
        ("motionsense",),
    ),
    "mass-windows": Peer(
        "MaSS", "mass_peer.py", ("{MaSS}", "motionsense", "200"), "mass", ("motionsense",)
    ),
    "opacus": Peer("encoder by DP-SGD (opacus), ε 1", "opacus_peer.py", ("1",)),
}
TITLES = {
    "raw": "raw records",
    **{name: title for name, (title, _, _) in OURS.items()},
    **{name: peer.title for name, peer in PEERS.items()},
}


def make(name: str, case: Case, data: Any, folder: Path, work: Path, seed: int) -> dict[str, Any]:
    """Write released.parquet, and say what it took."""
    if name == "raw":
        raw = Raw(folder)
        raw.release(raw.x[raw.judged], shape=case.shape)
        return {}
    if name in OURS:
        return make_ours(name, case, data, folder, seed)
    return make_peer(PEERS[name], folder, work)


def make_ours(name: str, case: Case, data: Any, folder: Path, seed: int) -> dict[str, Any]:
    """Learn one of ours, release, certify."""
    import privet

    _, method, settings = OURS[name]
    how = privet.Run(progress=False, device="cpu")
    started = time.process_time()
    ready = privet.METHODS[method].parse(list(settings), seed=seed)
    told, without = ((), case.task) if method in UNTOLD else (case.task, ())
    release = ready.fit(data, case.private, told, without=without, run=how)
    seconds = time.process_time() - started
    raw = Raw(folder)
    z = release(release.schema.inputs(data.take(np.flatnonzero(raw.judged))), seed=seed)
    raw.release(z.reshape(len(z), -1), shape=z.shape[1:])
    facts: dict[str, Any] = {"seconds": seconds}
    if method in CERTIFIED:
        facts["certified"] = certified_bound(release, case, data)
    if method == "tree":
        facts["own"] = fare_bound(release, case, data)
    if method == "dp":
        facts["own"] = 1 / (1 + math.exp(-ready.epsilon))
    return facts


def certified_bound(release: Any, case: Case, data: Any) -> float | None:
    """The certificate of one record at 99 %, one statement, on the people of *test*."""
    import torch

    from privet.evidence.certificate.coded_people import CodedPeople, certify_people
    from privet.evidence.certificate.mechanisms import GaussianNoise, RandomisedSymbols
    from privet.evidence.certificate.symbols import response
    from privet.methods.certified import encode
    from privet.train.feed import Feed

    test, attribute = data.part("test"), data.attribute(case.private)
    feed = Feed(release.schema.inputs(test), {}, torch.device("cpu"))
    codes, size = encode(release.module.body, feed), release.shape[0]
    mechanism: Any = GaussianNoise(release.noise.scale)
    if release.noise.law == "uniform":
        codes = codes.argmax(1)
        mechanism = RandomisedSymbols(size, response(size, release.noise.scale))
    labels = test.labels[case.private]
    people = CodedPeople(codes, labels, test.people, case.private, attribute.values)
    return certify_people(people, mechanism, delta=0.01).bound


def certified_cells(folder: Path) -> float | None:
    """Our certificate, of the same confidence, for a peer that releases the number of a cell."""
    from files import read

    from privet.evidence.certificate.coded_people import CodedPeople, certify_people
    from privet.evidence.certificate.mechanisms import RandomisedSymbols

    z, columns = read(folder / "released.parquet", "z")
    test = columns["split"] == "test"
    values, private = np.unique(columns["private"], return_inverse=True)
    codes, who = z[test].argmax(1), np.unique(columns["person"][test], return_inverse=True)[1]
    people = CodedPeople(codes, private[test], who, "private", tuple(map(str, values)))
    return certify_people(people, RandomisedSymbols(z.shape[1]), delta=0.01).bound


def fare_bound(release: Any, case: Case, data: Any) -> float:
    """FARE's own bound of our symbols at 99 %: the people of *test* in three parts."""
    test = data.part("test")
    symbols = release(release.schema.inputs(test), seed=0).argmax(1)
    third = np.random.default_rng(0).integers(0, 3, len(symbols))
    parts = [(symbols[third == i], test.labels[case.private][third == i]) for i in range(3)]
    return fare(parts, release.shape[0], 0.01)


def make_peer(peer: Peer, folder: Path, work: Path) -> dict[str, Any]:
    """Let a peer write its file, in its environment."""
    python = work / "envs" / peer.environment / "bin" / "python"
    checkouts = work / "checkouts"
    words = [word.replace("{", f"{checkouts}/").rstrip("}") for word in peer.words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [python if peer.environment else sys.executable, HERE / peer.script, folder, *words],
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = json.loads((folder / "said.json").read_text())
    if peer.script == "fare_peer.py":
        said["certified"] = certified_cells(folder)
    return {"seconds": spent, **said}
