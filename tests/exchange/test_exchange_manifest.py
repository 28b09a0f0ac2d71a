"""The manifest: what is signed is what is read, and nothing private is asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError
from world import world

from privet.core.errors import PrivetError
from privet.exchange.protocol import seal
from privet.exchange.protocol.manifest import Label, campaign_id, check_card, read_manifest


def test_a_manifest_survives_the_way() -> None:
    made = world()
    assert read_manifest(made.text, made.signature, made.id) == made.manifest


def test_any_changed_character_is_refused() -> None:
    made = world()
    for k in range(0, len(made.text), 37):
        changed = made.text[:k] + ("0" if made.text[k] != "0" else "1") + made.text[k + 1 :]
        with pytest.raises(PrivetError):
            read_manifest(changed, made.signature)
        with pytest.raises(PrivetError, match="not the one that the link names"):
            read_manifest(changed, made.signature, made.id)


def test_somebody_elses_signature_on_the_same_link_is_refused() -> None:
    made = world()
    with pytest.raises(PrivetError, match="signature is wrong"):
        read_manifest(made.text, seal.sign(made.text.encode(), seal.signing_key()), made.id)


def test_another_owner_means_another_link() -> None:
    """Whoever signs a manifest with their own key has to put that key into it, and then the link is
    another one."""
    made, thief = world(), seal.signing_key()
    about = json.loads(made.text)
    about["signing_key"] = seal.verify_key(thief)
    text = json.dumps(about, sort_keys=True, separators=(",", ":"))
    assert read_manifest(text, seal.sign(text.encode(), thief)).signing_key == seal.verify_key(
        thief
    )
    assert campaign_id(text) != made.id


@pytest.mark.parametrize("name", ["beard", "Beard", "BEARD ", "be-ard", "b.e.a.r.d", "\uff42eard"])
def test_a_private_attribute_is_never_asked_for(name: str) -> None:
    with pytest.raises((ValidationError, ValueError)):
        world(labels=[Label(name=name.strip(), values=["yes", "no"])])


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/x",
        "a/b",
        "a\\b",
        "",
        ".hidden",
        "x" * 65,
        "a\nb",
        "<script>",
        "z",
        "person",
    ],
)
def test_names_that_could_be_paths_or_columns_of_ours_are_refused(name: str) -> None:
    with pytest.raises((ValidationError, ValueError)):
        world(labels=[Label(name=name)])


@pytest.mark.parametrize(
    "changed",
    [
        {"retention_days": 0},
        {"retention_days": 100_000},
        {"records_per_person": 0},
        {"title": ""},
        {"title": "a\x1b[2J"},
        {"purpose": "x" * 4001},
        {"who": "\u202eevil"},
        {"private": []},
        {"sealing_key": None},
        {"nonce": "x"},
    ],
)
def test_what_cannot_be_meant_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises((ValidationError, ValueError)):
        world(**changed)


def test_html_is_text() -> None:
    html = "<img src=x onerror=alert(1)>"
    made = world(title=html)
    assert read_manifest(made.text, made.signature).title == html


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", "[" * 100_000, '{"kind": NaN}', "\ud800", "x" * 70_000]
)
def test_rubbish_gets_a_sentence(text: str) -> None:
    with pytest.raises(PrivetError):
        read_manifest(text, "x")


def test_a_manifest_and_its_card_must_agree() -> None:
    made = world()
    card = json.loads(made.parts["card"])
    check_card(made.manifest, card)
    for changed in (
        {"private": []},
        {"output": {"shape": [3]}},
        {"sha256": {"graph": "0"}},
        {"input": {"modality": "image"}},
        {"output": 3},
    ):
        with pytest.raises(PrivetError, match="contradict"):
            check_card(made.manifest, {**card, **changed})


def test_a_manifest_says_what_leaves() -> None:
    manifest = world().manifest
    leaves = manifest.leaves
    assert leaves.asked == tuple(label.name for label in manifest.labels) and leaves.asked
    assert leaves.records == manifest.records_per_person > 1 and leaves.linked_by == ("person",)
    once = manifest.model_copy(update={"records_per_person": 1}).leaves
    assert once.records == 1 and once.linked_by == ()
