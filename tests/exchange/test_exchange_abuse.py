"""Abuse: whatever is sent, the answer is a refusal, the server stays up, and nothing is stored."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from rubbish import malformed
from world import Server, settle, world

from conftest import Running
from privet.exchange.collector.database import Database

FUZZ = 2000


@pytest.mark.parametrize("mode", ["open", "sealed"])
def test_malformed_bodies_are_refused_and_leave_nothing(collector: Running, mode: str) -> None:
    made = world(mode)
    collector.settle(made)
    statuses: Counter[int] = Counter()
    for body, headers in malformed(made, FUZZ // 2, seed=len(mode)):
        raw = {name: value.encode("latin-1") for name, value in headers.items()}
        answer = collector.http.post(
            f"/v1/campaigns/{made.id}/submissions", content=body, headers=raw
        )
        assert 400 <= answer.status_code < 500, (answer.status_code, body[:80], headers)
        assert answer.json()["error"]
        statuses[answer.status_code] += 1
    assert set(statuses) <= {413, 415, 422}
    assert collector.stored(made) == (0, 0)
    assert collector.submit(made, "0" * 32).status_code == 201


def test_the_fuzz_is_of_almost_right_requests(collector: Running) -> None:
    """What is broken is right before it is broken, or a refusal would prove nothing."""
    made = world("open")
    collector.settle(made)
    z = made.record()
    assert collector.submit(made, "0" * 32, made.plain("0" * 32, z)).status_code == 201


def test_what_the_document_says_is_what_happens(tmp_path: Path) -> None:
    """schemathesis: requests made from the OpenAPI document for every path, with an operator's and
    with an owner's token."""
    schemathesis = pytest.importorskip("schemathesis")
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    @schemathesis.serializer("application/vnd.privet.sealed", "application/vnd.privet.record")
    def as_it_is(_context: Any, value: Any) -> bytes:
        return (
            value
            if isinstance(value, bytes)
            else bytes(getattr(value, "data", None) or str(value).encode())
        )

    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ]
    made = world("open")
    store = Database(f"sqlite:///{tmp_path / 'collector.db'}")
    store.upgrade()
    owner, operator = settle(made, store, tmp_path / "blobs"), store.operator_token()
    server = Server(tmp_path).start()
    asked: Counter[str] = Counter()
    try:
        schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        for operation in (result.ok() for result in schema.get_all_operations()):
            for token in (operator, owner):
                _try(operation, f"Bearer {token}", made.id, checks, asked)
    finally:
        assert server.stop() == 0, "it stays up until it is told to stop"
    assert len(asked) >= 12 and sum(asked.values()) >= 300
    assert store.submissions(made.id, 0, 10) == []


def _try(
    operation: Any, authorization: str, campaign: str, checks: list[Any], asked: Counter[str]
) -> None:
    @settings(
        max_examples=12,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def one(case: Any) -> None:
        if operation.path == "/metrics":
            return
        asked[operation.path] += 1
        if "campaign" in (case.path_parameters or {}) and asked[operation.path] % 4:
            case.path_parameters["campaign"] = campaign
        case.call_and_validate(checks=checks, headers={"authorization": authorization})

    one()
