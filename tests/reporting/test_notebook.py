"""An audit in a notebook."""

from __future__ import annotations

from dataclasses import replace

import example_audits as example

from privet.reporting.notebook import Audit


def test_a_frame_has_a_row_for_every_finding() -> None:
    audit = example.full()
    frame = audit.to_frame()
    readings = (*audit.readings, *audit.undeclared)
    assert len(frame) == sum(len(r.released) + len(r.others) + len(r.raw) for r in readings)
    strongest = frame[frame["strongest"]]
    assert list(strongest["attribute"]) == [r.attribute for r in readings if r.released]
    assert list(strongest["score"]) == [r.worst.score.value for r in readings if r.released]


def test_a_glance_says_what_the_report_says_and_escapes_names() -> None:
    audit = example.audit()
    page = audit._repr_html_()
    assert all(reading.attribute in page for reading in audit.readings)
    risky = replace(audit, checks=("<b>twice</b>",), data={**audit.data, "name": "<script>"})
    page = risky._repr_html_()
    assert "<script>" not in page and "&lt;b&gt;twice" in page
    assert page.index("twice") < page.index("<table")
    assert Audit({}, {}, "quick", (), (), 0.0)._repr_html_().startswith("<div>")
