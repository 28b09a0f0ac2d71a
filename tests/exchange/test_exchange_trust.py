"""A participant who believes nobody: who claims what, whose key it is, what is asked, and what
strangers can print."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from onnx import helper
from taking_part import TERMS, URL, Wire, through

from conftest import Bridge, Running
from privet.auditing.signatures import Signer, make_key, sign
from privet.commands.verify import sign as sign_file
from privet.core.errors import PrivetError
from privet.core.key_text import fingerprint
from privet.data.schema import ImageSchema
from privet.evidence.figures import Audit
from privet.exchange.owner import campaigns
from privet.exchange.owner.campaigns import CampaignFolder
from privet.exchange.participant import owners
from privet.exchange.participant import share as sharing
from privet.exchange.participant.campaign import Campaign, fetch_campaign
from privet.exchange.participant.claims import Claim, trust, trusted_auditors
from privet.exchange.participant.owners import Standing, is_same_name
from privet.exchange.participant.records import prepare
from privet.exchange.participant.sentences import about, leaves, warnings
from privet.exchange.protocol import seal
from privet.exchange.protocol.asking import asked_for, overlaps
from privet.exchange.protocol.manifest import Label, campaign_id, read_manifest
from privet.nets import registry as nets
from privet.release.release import Release
from privet.release.what_runs import runs_hash

sys.path.append(str(Path(__file__).parents[1] / "reporting"))

from example_audits import certificates, full

from hostile_graphs import HOSTILE

NEW = Standing("new")
Open = Callable[..., CampaignFolder]


@pytest.fixture
def wire(collector: Running) -> Wire:
    return Wire(Bridge(collector.http))


@pytest.fixture
def opened(collector: Running, release: Path, tmp_path: Path) -> Open:
    def make(name: str = "mine", of: Path = release, key: str = "owner", **more: Any) -> Any:
        terms = replace(TERMS, **more.pop("terms", {}))
        return campaigns.create(
            URL,
            of,
            tmp_path / name,
            terms,
            collector.operator,
            tmp_path / f"{key}.key",
            connect=collector.client,
            **more,
        )

    return make


@pytest.fixture
def share(wire: Wire, photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`privet share` of a photo, and what is read."""
    monkeypatch.setattr(sharing, "Client", lambda server: through(wire))

    def run(made: CampaignFolder, **more: Any) -> str:
        said: list[str] = []
        sharing.share(
            made.link.text,
            [photo],
            ["smiling=yes"],
            confirm=lambda: True,
            show=said.append,
            home=tmp_path / "home",
            **more,
        )
        return "\n".join(said)

    return run


def audited(of: Path, **changed: Any) -> Audit:
    """A good audit of somebody's release, with the hash of this one's graph."""
    card = json.loads((of / "card.json").read_text())
    graph = card["sha256"]["graph"]
    runs = runs_hash(graph, card["input"], card["noise"])
    said = {**full().release, "sha256": {"graph": graph}, "runs": runs, **changed}
    return replace(full(), release=said, rebuilt=())


def identity(folder: Path) -> Path:
    """A release that lets everything through, whose card says hedge."""
    schema = ImageSchema(3, 16, 16)
    card = {"method": "hedge", "title": "Hedge", "private": ["beard"]}
    Release(schema, ("identity", {}), nets.build("identity", schema, {}), None, card).save(folder)
    return folder


def promises(text: str) -> list[str]:
    """Where something is called certified, and not by "not" or "nothing"."""
    return re.findall(r"[^.;]*ertifie[^.;]*", re.sub(r"(not|nothing is) certified", "", text))


def test_the_identity_with_somebodys_audit_is_only_claimed_to_be_private(
    opened: Open, wire: Wire, tmp_path: Path
) -> None:
    raw = identity(tmp_path / "identity")
    audited(raw).save(tmp_path / "audit.json")
    made = opened(of=raw, audit=tmp_path / "audit.json")
    campaign = fetch_campaign(made.link, through(wire), trusted={"0" * 39: "Ada"})
    said = about(campaign, NEW)
    assert campaign.claim.kind == "owner" and campaign.manifest.method == "hedge"
    assert "The campaign's owner claims, and nobody whose key you trust has checked" in said
    assert "No adversary" in said and promises(said) == [] and "checked by nobody else" in said


@pytest.fixture
def auditor(tmp_path: Path) -> tuple[Path, str]:
    key = tmp_path / "ada.key"
    return key, make_key(key)


def fetched(made: CampaignFolder, wire: Wire, home: Path) -> Campaign:
    return fetch_campaign(made.link, through(wire), trusted=trusted_auditors(home))


def test_an_audit_is_checked_by_who_is_trusted_and_by_nobody_else(
    opened: Open, wire: Wire, release: Path, auditor: tuple[Path, str], tmp_path: Path
) -> None:
    key, print_of = auditor
    signed = sign(audited(release), Signer(key, "T\u00dcV\x1b[2J"))
    signed.save(tmp_path / "audit.json")
    made, home = opened(audit=tmp_path / "audit.json"), tmp_path / "home"
    before = fetched(made, wire, home)
    assert before.claim.kind == "stranger" and promises(about(before, NEW)) == []
    assert "which you have not said to trust" in about(before, NEW)
    assert "\x1b" not in about(before, NEW)
    assert trust(print_of.replace(" ", ":").upper(), " Ada ", home) == print_of
    after = fetched(made, wire, home)
    assert after.claim.is_checked and f"checked by Ada, key {print_of}" in about(after, NEW)
    assert "owner claims" not in about(after, NEW)
    trust(print_of, "", home)
    assert fetched(made, wire, home).claim.kind == "stranger"


def test_a_trusted_signature_of_something_else_is_no_check(
    opened: Open, wire: Wire, release: Path, auditor: tuple[Path, str], tmp_path: Path
) -> None:
    key, print_of = auditor
    home = tmp_path / "home"
    trust(print_of, "Ada", home)
    right = sign(audited(release), Signer(key, "Ada"))
    other = sign(audited(release, runs="0" * 64), Signer(key, "Ada"))
    older = audited(release)
    older.release.pop("runs")
    kinds = {}
    for name, audit in {
        "changed": replace(right, seconds=right.seconds + 1),
        "other noise": other,
        "names no noise": sign(older, Signer(key, "Ada")),
        "right": right,
    }.items():
        audit.save(tmp_path / "audit.json")
        campaign = fetched(opened(name, audit=tmp_path / "audit.json"), wire, home)
        kinds[name] = campaign.claim.kind
        assert (name == "right") == ("owner claims" not in about(campaign, NEW))
        assert name == "right" or promises(about(campaign, NEW)) == []
    assert kinds == {
        "changed": "changed",
        "other noise": "unbound",
        "names no noise": "unbound",
        "right": "checked",
    }


def test_a_card_without_the_audited_noise_is_not_checked(
    opened: Open, wire: Wire, release: Path, auditor: tuple[Path, str], tmp_path: Path
) -> None:
    """The graph is the audited one; the noise that it is given is not."""
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    for path in release.iterdir():
        (quiet / path.name).write_bytes(path.read_bytes())
    card = json.loads((quiet / "card.json").read_text())
    card["noise"]["scale"] = 1e-6
    (quiet / "card.json").write_text(json.dumps(card))
    trust(auditor[1], "Ada", tmp_path / "home")
    sign(audited(release), Signer(auditor[0], "Ada")).save(tmp_path / "audit.json")
    made = opened(of=quiet, audit=tmp_path / "audit.json")
    assert fetched(made, wire, tmp_path / "home").claim.kind == "unbound"


def test_owners_who_sign_their_own_audit_claim_it(
    opened: Open, wire: Wire, release: Path, tmp_path: Path
) -> None:
    make_key(tmp_path / "owner.key")
    signed = sign(audited(release), Signer(tmp_path / "owner.key", "An Independent Lab"))
    signed.save(tmp_path / "audit.json")
    made = opened(audit=tmp_path / "audit.json")
    trust(fingerprint(made.manifest.signing_key), "Lab X", tmp_path / "home")
    assert fetched(made, wire, tmp_path / "home").claim.kind == "owner"


def test_an_audit_with_records_is_signed_as_it_is_published(
    opened: Open, wire: Wire, release: Path, auditor: tuple[Path, str], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    trust(auditor[1], "Ada", home)
    for to_publish, kind in ((False, "owner"), (True, "checked")):
        replace(audited(release), rebuilt=full().rebuilt).save(tmp_path / "audit.json")
        sign_file(tmp_path / "audit.json", auditor[0], "Ada", to_publish=to_publish)
        made = opened(f"c{to_publish}", audit=tmp_path / "audit.json")
        assert fetched(made, wire, home).claim.kind == kind


def test_a_fingerprint_that_is_none_is_refused(tmp_path: Path) -> None:
    for wrong in ("", "0123", "g" * 32, "0" * 33):
        with pytest.raises(PrivetError, match="fingerprint"):
            trust(wrong, "Ada", tmp_path)
    with pytest.raises(PrivetError, match="was not trusted"):
        trust("0" * 32, "", tmp_path)


FORGED = (
    "no\x1b[9A\r  key        0000 0000 0000 (seen before)\x1b[9B\u202e\n  key  x (you sent to it)"
)


def test_no_word_of_a_campaign_moves_the_cursor_or_begins_a_line(
    opened: Open, wire: Wire, release: Path, photo: Path
) -> None:
    campaign = fetch_campaign(opened().link, through(wire))
    labels = [Label(name="smiling", question=FORGED, values=["yes", FORGED[:64]])]
    update = {"labels": labels, "title": FORGED, "purpose": FORGED, "who": FORGED}
    forged = replace(
        campaign,
        manifest=campaign.manifest.model_copy(
            update={**update, "private": ["beard", FORGED], "method": FORGED}
        ),
    )
    plain = about(campaign, NEW).count("\n")
    records = prepare(campaign, [photo])
    answered = [replace(records[0], labels={"smiling": FORGED}, source=FORGED)]
    said = about(forged, Standing("other", FORGED, "0")) + leaves(forged, answered)
    assert all(c == "\n" or c.isprintable() for c in said)
    assert about(forged, NEW).count("\n") == plain + 2, "a second attribute, a question near it"
    assert not re.search(r"^\s*key +x", said, re.MULTILINE)


def test_a_key_is_known_once_something_was_sent_to_it_and_not_before(
    opened: Open, share: Any, tmp_path: Path
) -> None:
    made, home = opened(), tmp_path / "home"
    assert "you never sent to it" in share(made, dry_run=True)
    assert "you never sent to it" in share(made, dry_run=True)
    with pytest.raises(PrivetError):
        share(made, fingerprint="0" * 32)
    assert owners.standing(made.manifest, home) == NEW
    assert "you never sent to it" in share(made)
    assert "you sent to it before, as Lab X" in share(made, dry_run=True)
    assert (home / owners.FILE).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("who", ["Lab X", "LAB \u0425", "Lab X (new key)", "lab\u200b x, Berlin"])
def test_a_new_key_under_a_known_name_is_loud_and_must_be_accepted(
    opened: Open, share: Any, who: str, tmp_path: Path
) -> None:
    first = opened("first", terms={"who": "Lab X, x@example.org"})
    share(first)
    try:
        second = opened("second", key="thief", terms={"who": who})
    except PrivetError as error:
        assert "cannot be shown" in str(error), "an invisible mark is refused as it is"
        return
    said = share(second, dry_run=True)
    assert "NOT the key that you used before" in said and "WARNING: 'Lab X, x@example.org'" in said
    assert fingerprint(first.manifest.signing_key) in said
    with pytest.raises(PrivetError, match="--accept-new-key"):
        share(second)
    with pytest.raises(PrivetError, match="Do not take part"):
        share(second, allowed=sharing.Allowed(new_key=fingerprint(first.manifest.signing_key)))
    assert owners.standing(second.manifest, tmp_path / "home").kind == "other"
    share(second, allowed=sharing.Allowed(new_key=fingerprint(second.manifest.signing_key)))
    assert owners.standing(second.manifest, tmp_path / "home").kind == "used"


def test_names_that_differ_are_different() -> None:
    assert not is_same_name("Lab X", "Lab Y") and not is_same_name("", "Lab X")
    assert is_same_name("Universit\u00e4t Y", "UNIVERSITAT Y, Physik")


ASKED = json.loads((Path(__file__).parent / "asking.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", ASKED, ids=lambda case: f"{case['label']['name']}"[:30])
def test_what_is_hidden_is_not_asked_for(case: dict[str, Any]) -> None:
    label = Label(**case["label"])
    assert bool(asked_for([label], case["private"])) == (case["is"] == "refused")
    if case["is"] != "refused":
        near = overlaps([label], case["private"], case.get("values", {}))
        assert bool(near) == (case["is"] == "near")


@pytest.mark.parametrize("word", ["has beard=yes,no", "Bearded", "look=beard,none", "hasbeard"])
def test_an_owner_cannot_ask_for_it_by_other_words(opened: Open, word: str) -> None:
    with pytest.raises(PrivetError, match="asks for what the release hides"):
        opened(terms={"labels": [word]})


def test_a_participant_refuses_a_manifest_that_asks_for_it(opened: Open, wire: Wire) -> None:
    """A manifest that its owner signed with a program of their own."""
    made = opened()
    asked = made.manifest.model_dump(mode="json")
    asked["labels"] = [{"name": "q", "question": "Do you have a beard?", "values": ["yes", "no"]}]
    text, key = json.dumps(asked), seal.read_secret(made.path.parent / "owner.key").strip()
    with pytest.raises(PrivetError, match="asks for 'beard'"):
        read_manifest(text, seal.sign(text.encode(), key), campaign_id(text))


def test_a_question_near_what_is_hidden_is_shown_beside_it(opened: Open, wire: Wire) -> None:
    campaign = fetch_campaign(opened().link, through(wire))
    labels = [Label(name="hair colour", values=["red", "brown"])]
    private = ["facial hair"]
    near = replace(
        campaign,
        manifest=campaign.manifest.model_copy(update={"labels": labels, "private": private}),
    )
    (line,) = warnings(near, NEW)
    assert "'hair colour' is near 'facial hair'" in line and "leaves as you give it" in line
    assert warnings(campaign, NEW) == []


def scaled(folder: Path) -> Path:
    """Pixels times a number, with the card of a hedge that adds noise, which the graph takes and
    multiplies with nothing much."""
    identity(folder)
    card = json.loads((folder / "card.json").read_text())
    size = [3, 16, 16]
    x, noise, z = (
        helper.make_tensor_value_info(name, kind, ["n", *size])
        for name, kind in (("x", 2), ("noise", 1), ("z", 1))
    )
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=1),
        helper.make_node("Mul", ["f", "scale"], ["s"]),
        helper.make_node("Mul", ["noise", "little"], ["e"]),
        helper.make_node("Add", ["s", "e"], ["z"]),
    ]
    given = [
        helper.make_tensor(name, 1, [], [value])
        for name, value in (("scale", 1 / 311), ("little", 1e-5))
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x, noise], [z], given),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )
    content = model.SerializeToString()
    (folder / "release.onnx").write_bytes(content)
    card["sha256"]["graph"] = hashlib.sha256(content).hexdigest()
    card["noise"] = {"law": "gaussian", "shape": size, "scale": 0.4}
    (folder / "card.json").write_text(json.dumps(card))
    return folder


def test_a_certificate_on_the_record_itself_is_refuted_here(
    opened: Open, share: Any, tmp_path: Path
) -> None:
    """The identity, a card that says hedge, and somebody's audit with one hash changed."""
    raw = scaled(tmp_path / "scaled")
    proof = replace(certificates()[0], bound=0.64)
    replace(audited(raw), certificates=(proof,)).save(tmp_path / "audit.json")
    made = opened(of=raw, audit=tmp_path / "audit.json")
    with pytest.raises(PrivetError, match=r"is your record in another form.*cannot be true of it"):
        share(made)


def test_what_was_tested_here_is_said_before_anything_is_sent(opened: Open, share: Any) -> None:
    said = share(opened(), dry_run=True)
    assert "Tested on this device" in said and "changes with its noise" in said
    assert "Least squares rebuilt" in said


@pytest.mark.parametrize("name", sorted(HOSTILE)[::6])
def test_a_hostile_graph_does_not_run_at_the_participant(
    opened: Open, wire: Wire, photo: Path, tmp_path: Path, name: str
) -> None:
    """Also where somebody trusted signed for it. An owner who does not mean it is told at once."""
    campaign = fetch_campaign(opened().link, through(wire))
    for who in (Claim(), Claim("checked", "Ada", "0" * 39)):
        strange = replace(campaign, graph=HOSTILE[name][1], claim=who)
        with pytest.raises(PrivetError, match="The graph is not run"):
            prepare(strange, [photo], ["smiling=yes"], home=tmp_path / "home")
