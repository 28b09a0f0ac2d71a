"""Every look at test is counted, by whoever looks, and nothing fails where it cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import privet
from privet.data import looks
from privet.data.looks import ledger_of, look_at_test, looking_for
from small import small


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVET_CACHE", str(tmp_path))
    monkeypatch.setenv("PRIVET_LOOKS", "on")
    return tmp_path


def test_looks_are_counted_with_who_and_when_and_no_data(ledger):
    data = small("table")
    hashes = {"weights": "abc", "graph": "def"}
    assert [look_at_test(data, "audit", hashes) for _ in range(3)] == [0, 1, 2]
    with looking_for("compare"):
        assert look_at_test(data, "audit") == 3
    entries = [json.loads(line) for line in ledger_of(data).read_text().splitlines()]
    assert [entry["by"] for entry in entries] == ["audit"] * 3 + ["compare"]
    assert len(entries[0]["release"]) == 64 and entries[3]["release"] is None
    assert len(entries[0]["date"]) == len("2026-01-31")
    assert all(set(entry) == {"date", "by", "release"} for entry in entries)


def test_other_test_people_have_a_ledger_of_their_own_and_order_does_not_matter(ledger):
    data = small("image")
    assert look_at_test(data, "audit") == 0
    assert look_at_test(data.take(np.arange(len(data))[::-1]), "audit") == 1
    assert look_at_test(small("image", seed=1), "audit") == 0


def test_switched_off_or_without_a_place_nothing_is_written(ledger, monkeypatch):
    data = small("table")
    monkeypatch.setenv("PRIVET_LOOKS", "off")
    assert look_at_test(data, "audit") is None and not (ledger / "looks").exists()
    monkeypatch.setenv("PRIVET_LOOKS", "on")
    (ledger / "looks").write_text("a file where the folder should be")
    assert look_at_test(data, "audit") is None
    monkeypatch.setenv("PRIVET_CACHE", str(ledger / "looks" / "below-a-file"))
    assert look_at_test(data, "audit") is None


def test_a_line_that_was_cut_short_loses_no_other(ledger):
    data = small("table")
    look_at_test(data, "audit")
    with ledger_of(data).open("ab") as file:
        file.write(b'{"date": "2026-0')
    assert look_at_test(data, "audit") == 1 and look_at_test(data, "audit") == 2


LOOK = """
import sys
from pathlib import Path
from privet.data.looks import _append
print(*[_append(Path(sys.argv[1]), '{"date": "2026-01-31"}') for _ in range(50)])
"""


def test_writers_at_the_same_time_lose_no_look(ledger):
    path = ledger / "looks" / "shared.jsonl"

    def process(_: int) -> list[int]:
        done = subprocess.run(
            [sys.executable, "-c", LOOK, str(path)], capture_output=True, text=True, check=True
        )
        return [int(word) for word in done.stdout.split()]

    with ThreadPoolExecutor(3) as pool:
        counts = [count for each in pool.map(process, range(3)) for count in each]
    assert sorted(counts) == list(range(150))
    assert sum(map(looks._is_entry, path.read_bytes().splitlines())) == 150


def test_an_audit_says_how_often_test_was_looked_at_before(ledger):
    data = small("table")
    release = privet.LEACE().fit(data, "u")
    from privet.adversaries.linear import Logistic

    battery = privet.Battery((Logistic(),), people=False)
    audits = [privet.audit(release, data, battery=battery, progress=False) for _ in range(2)]
    assert [audit.looks for audit in audits] == [0, 1]
    from privet.reporting.markdown import summary
    from privet.reporting.page import render

    assert "looked at once before" in summary(audits[1]) and "looked at" not in summary(audits[0])
    assert "looked at once before" in render(audits[1])


def test_a_certificate_says_what_is_wrong_with_the_data_and_counts_as_a_look(ledger, tmp_path):
    data = small("table")  # 80 test people
    release = privet.Noisy(sigma=3.0).fit(data, "u")
    look_at_test(data, "audit")
    certificate = privet.certify(release, data, out=tmp_path / "c")
    assert certificate.looks == 1 and "Few test people" in certificate.checks[0]
    page = (tmp_path / "c" / "certificate.html").read_text(encoding="utf-8")
    assert page.index("Few test people") < page.index('id="said"')
    assert "looked at once before" in page
