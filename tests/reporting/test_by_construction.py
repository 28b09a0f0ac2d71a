"""What a method promises by its construction stands in the report, as words and not as markup;
where there is none, nothing does."""

from __future__ import annotations

from dataclasses import replace

import example_audits as example
import pytest

from privet.methods.dp import LaplaceBudget, accuracy_bound
from privet.reporting.page import render


def _page(certificate: object) -> str:
    audit = example.audit()
    return render(
        replace(
            audit,
            certificates=example.certificates(),
            release={**audit.release, "certificate": certificate},
        )
    )


def test_what_local_privacy_promises_is_in_the_report() -> None:
    said = LaplaceBudget.of(0.5, "record", 9, 7).sentence({"sex": accuracy_bound(0.5, 2)})
    page = _page({"kind": "local-dp", "said": said})
    assert "By construction" in page and said in page


@pytest.mark.parametrize("certificate", [None, {}, {"met": True}, "words"])
def test_without_a_promise_nothing_is_said(certificate: object) -> None:
    assert "By construction" not in _page(certificate)


def test_a_promise_is_escaped() -> None:
    assert "<script>" not in _page({"said": "<script>alert(1)</script>"})
