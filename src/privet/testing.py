"""Limits in somebody's own tests: `assert_private`, also as a fixture of pytest.

def test_release(assert_private):
    assert_private("audit", max_accuracy={"gender": 0.60}, min_utility={"smiling": 0.85})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privet.auditing.gate import Check
    from privet.evidence.certificate.values import Certification
    from privet.evidence.figures import Audit


def assert_private(
    found: Audit | Certification | str | Path,
    *,
    max_accuracy: Mapping[str, float] | None = None,
    min_utility: Mapping[str, float] | None = None,
    max_certified: Mapping[str, float] | None = None,
    certificate: Certification | str | Path | None = None,
    new_people: bool = False,
    signed: bool = False,
    max_figure: Mapping[str, float] | None = None,
    min_figure: Mapping[str, float] | None = None,
) -> list[Check]:
    """AssertionError with a line per limit where one of them does not hold; the parameters are
    those of `privet.gate`.

    >>> import privet
    >>> from privet.adversaries.linear import Logistic
    >>> data = privet.load("toy:gaussian")
    >>> release = privet.Noisy(sigma=3.0).fit(data, private=["u"])
    >>> battery = privet.Battery((Logistic(),), people=False)
    >>> audit = privet.audit(release, data, battery=battery, progress=False)
    >>> len(assert_private(audit, max_accuracy={"u": 0.9}))
    1
    """
    from privet.auditing.gate import gate, verdict_line

    checks = gate(
        found,
        max_accuracy=max_accuracy,
        min_utility=min_utility,
        max_certified=max_certified,
        certificate=certificate,
        new_people=new_people,
        signed=signed,
        max_figure=max_figure,
        min_figure=min_figure,
    )
    if not all(check.ok for check in checks):
        raise AssertionError("\n".join([verdict_line(checks), *(check.line for check in checks)]))
    return checks


try:
    import pytest
except ModuleNotFoundError:  # assert_private needs no pytest
    pass
else:

    @pytest.fixture(name="assert_private", scope="session")
    def _assert_private() -> Callable[..., list[Check]]:
        """Holds an audit or a certificate against limits; `privet.testing.assert_private`."""
        return assert_private
