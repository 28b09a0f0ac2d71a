"""How a campaign is governed: roles, tokens that change, a log that cannot be changed, consent, the
least number of people, counts with noise, erasure."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError
from world import KEYS, World, bearer, headers, world

from conftest import Running, Start
from privet.core.errors import PrivetError
from privet.exchange.collector import operating
from privet.exchange.collector.governance import Governance
from privet.exchange.collector.sign_in import SignIn
from privet.exchange.collector.tokens import DAY_MS
from privet.exchange.owner import governance
from privet.exchange.owner.campaigns import CampaignFolder
from privet.exchange.participant.randomised import told_labels
from privet.exchange.protocol.client import Link, Rejected
from privet.exchange.protocol.deeds import Deed, check_chain, deed_hash
from privet.exchange.protocol.envelope import Envelope
from privet.exchange.protocol.manifest import Label


def folder_of(made: World, owner: str, path: Path) -> CampaignFolder:
    """The campaign as it lies on its owner's disk."""
    path.mkdir()
    (path / "owner.token").write_text(owner + "\n")
    (path / "owner.token").chmod(0o600)
    link = Link("http://127.0.0.1", made.id)
    (path / "campaign.json").write_text(
        json.dumps({"link": link.text, "manifest": made.text, "signature": made.signature})
    )
    (path / "identity.key").write_text(made.signing + "\n")
    (path / "identity.key").chmod(0o600)
    return CampaignFolder.load(path)


def send(collector: Running, made: World, key: str, person: int, answer: str | None = None) -> int:
    """The status with which a record of somebody was answered."""
    z = made.record(int(key, 16))
    labels = {} if answer is None else {"smiling": answer}
    consent = made.manifest.consent_hash
    content = Envelope(made.id, made.manifest.release.card, key, labels, z, consent).pack(
        made.manifest.expect
    )
    if made.manifest.sealing_key is not None:
        content = made.body(key, z, labels)
    who = headers(made, key, "ab" * 32, person=f"{person:064x}")
    path = f"/v1/campaigns/{made.id}/submissions"
    return int(collector.http.post(path, content=content, headers=who).status_code)


# Roles


def test_an_operator_sees_the_campaigns_that_it_opened(start: Start) -> None:
    collector = start()
    mine, other = world(), world()
    collector.settle(mine)
    first = collector.operator
    second = collector.collector.database.operator_token(holder="another lab")
    assert second is not None
    collector.operator = second
    collector.settle(other)

    def seen(token: str) -> set[str]:
        rows = collector.http.get("/v1/campaigns", headers=bearer(token)).json()
        return {row["campaign"] for row in rows}

    assert seen(first) == {mine.id} and seen(second) == {other.id}
    for verb, what in (("GET", "figures"), ("POST", "close")):
        path = f"/v1/campaigns/{mine.id}/{what}"
        assert collector.http.request(verb, path, headers=bearer(second)).status_code == 403
    replaced = collector.collector.database.operator_token(replace=True)
    assert replaced is not None and seen(replaced) == {mine.id}
    assert collector.http.get("/v1/campaigns", headers=bearer(first)).status_code == 401


def test_an_operator_is_made_on_the_collectors_machine(start: Start, tmp_path: Path) -> None:
    collector = start()
    place, file = collector.folder, tmp_path / "lab.token"
    operating.new_operator_token(place, None, None, "Lab X", file, False)
    assert file.stat().st_mode & 0o077 == 0
    first = file.read_text().strip()
    with pytest.raises(PrivetError, match="has a token already"):
        operating.new_operator_token(place, None, None, "Lab X", tmp_path / "b.token", False)
    operating.new_operator_token(place, None, None, "Lab X", tmp_path / "b.token", True)
    second = (tmp_path / "b.token").read_text().strip()
    status = [
        collector.http.get("/v1/campaigns", headers=bearer(token)).status_code
        for token in (first, second, collector.operator)
    ]
    assert status == [401, 200, 200]
    assert [deed.what for deed in collector.collector.governance.deeds("")] == ["token made"] * 2


def test_an_auditor_looks_and_takes_nothing(collector: Running, tmp_path: Path) -> None:
    made = world()
    owner = collector.settle(made)
    folder = folder_of(made, owner, tmp_path / "smiles")
    collector.submit(made, KEYS[0])
    token = governance.auditor(folder, 30, collector.client)
    path = f"/v1/campaigns/{made.id}/"
    status = {
        what: collector.http.get(path + what, headers=bearer(token)).status_code
        for what in ("figures", "deeds", "gone", "counts", "records", "tokens")
    }
    assert status.pop("records") == status.pop("tokens") == 403
    assert set(status.values()) == {200}
    for verb, what in (("POST", "close"), ("POST", "erase"), ("POST", "tokens")):
        answer = collector.http.request(
            verb, path + what, headers=bearer(token), json={"title": ""}
        )
        assert answer.status_code in (403, 422)


# Tokens


def test_a_rotated_token_ends_the_old_one(collector: Running, tmp_path: Path) -> None:
    made = world()
    owner = collector.settle(made)
    folder = folder_of(made, owner, tmp_path / "smiles")
    governance.rotate(folder, collector.client)
    assert folder.token != owner
    path = f"/v1/campaigns/{made.id}/figures"
    assert collector.http.get(path, headers=bearer(owner)).status_code == 401
    assert collector.http.get(path, headers=bearer(folder.token)).status_code == 200
    assert (folder.path / "owner.token").stat().st_mode & 0o077 == 0


def test_who_lost_a_token_gets_another_with_the_key(collector: Running, tmp_path: Path) -> None:
    made, other = world(), world()
    owner = collector.settle(made)
    collector.settle(other)
    folder = folder_of(made, owner, tmp_path / "smiles")
    (folder.path / "owner.token").unlink()
    sent: list[Any] = []

    def listening(url: str, token: str | None = None) -> Any:
        client = collector.client(url, token)
        request = client.request

        def heard(method: str, path: str, **options: Any) -> httpx.Response:
            sent.append((path, options.get("json")))
            return request(method, path, **options)

        client.request = heard  # type: ignore[method-assign]
        return client

    governance.reissue(folder, folder.path / "identity.key", listening)
    path = f"/v1/campaigns/{made.id}/figures"
    assert collector.http.get(path, headers=bearer(folder.token)).status_code == 200
    assert collector.http.get(path, headers=bearer(owner)).status_code == 401, "the lost one ended"
    [(address, body)] = sent
    assert folder.token not in json.dumps(body), "the token itself never travels"
    again = collector.http.post(address, json=body)
    assert again.status_code == 409, "who overheard it gains nothing"
    moved = collector.http.post(address.replace(made.id, other.id), json=body)
    assert moved.status_code == 403, "it is signed for one campaign"
    forged = collector.http.post(address, json={**body, "hash": "0" * 64})
    assert forged.status_code == 403
    (tmp_path / "wrong.key").write_text(other.signing + "\n")
    (tmp_path / "wrong.key").chmod(0o600)
    with pytest.raises(PrivetError, match="not the key"):
        governance.reissue(folder, tmp_path / "wrong.key", collector.client)


# The log


def test_what_owners_did_is_in_a_chain(collector: Running, tmp_path: Path) -> None:
    made = world()
    folder = folder_of(made, collector.settle(made), tmp_path / "smiles")
    collector.submit(made, KEYS[0])
    collector.submit(made, KEYS[1])
    path = f"/v1/campaigns/{made.id}/"
    collector.http.get(path + "records", headers=bearer(folder.token))
    collector.http.post(path + "close", headers=bearer(folder.token))
    entries = governance.deeds(folder, connect=collector.client)
    assert [deed.what for deed in entries] == ["opened", "records fetched", "closed"]
    assert entries[1].about["records"] == 2
    assert entries[0].who == "operator operator" and entries[1].who.startswith("owner ")
    head = entries[-1].hash
    assert check_chain(made.id, entries, head) == head

    changed = [deed.model_copy(deep=True) for deed in entries]
    changed[1].about["records"] = 1
    with pytest.raises(PrivetError, match="entry 2"):
        check_chain(made.id, changed)
    with pytest.raises(PrivetError, match="entry 2"):
        check_chain(made.id, [entries[0], entries[2]])
    with pytest.raises(PrivetError, match="cut"):
        check_chain(made.id, entries[:2], head)
    anew = Deed(place=1, at=0, who="owner", what="nothing", about={}, hash="")
    anew.hash = deed_hash(made.id, anew, "0" * 64)
    with pytest.raises(PrivetError, match="written anew"):
        check_chain(made.id, [anew], head)


def _refuses_change(store: Any) -> None:
    Governance(store).write("", "operator", "started")
    for statement in ("UPDATE deeds SET who = 'nobody'", "DELETE FROM deeds"):
        with (
            pytest.raises(DatabaseError, match="written once"),
            store.engine.begin() as connection,
        ):
            connection.execute(sa.text(statement))
    assert len(Governance(store).deeds("")) == 1


def test_the_database_refuses_to_change_a_deed(start: Start) -> None:
    _refuses_change(start().collector.database)


@pytest.mark.system
def test_postgresql_refuses_to_change_a_deed(start: Start, database: Any) -> None:
    _refuses_change(start(db=database.url).collector.database)


def test_deeds_at_the_same_time_are_one_chain(start: Start) -> None:
    from concurrent.futures import ThreadPoolExecutor

    chain = start().collector.governance
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: chain.write("", "operator", "did", k=k), range(40)))
    entries = chain.deeds("")
    check_chain("", entries)
    assert sorted(deed.about["k"] for deed in entries) == list(range(40))


# What a campaign promises


def test_nothing_leaves_before_enough_people_take_part(collector: Running, tmp_path: Path) -> None:
    made = world(least_people=3)
    owner = collector.settle(made)
    path = f"/v1/campaigns/{made.id}/"
    for number, person in enumerate((1, 1, 2)):
        assert send(collector, made, KEYS[number], person) == 201
    answer = collector.http.get(path + "records", headers=bearer(owner))
    assert answer.status_code == 403 and "3 people" in answer.json()["error"]
    figures = collector.http.get(path + "figures", headers=bearer(owner)).json()
    assert figures["people"] == figures["records"] == 0 and "3 people" in figures["withheld"]
    assert send(collector, made, KEYS[3], 3) == 201
    assert collector.http.get(path + "records", headers=bearer(owner)).status_code == 200
    withdrawn = collector.http.delete(
        f"{path}submissions/{KEYS[3]}", headers={"privet-withdraw": "ab" * 32}
    )
    assert withdrawn.status_code == 204
    assert collector.http.get(path + "records", headers=bearer(owner)).status_code == 403


def test_a_record_names_what_was_agreed_to(collector: Running) -> None:
    made = world(mode="open", consent="I agree to this.", consent_version="2")
    collector.settle(made)
    assert made.manifest.consent_hash == hashlib.sha256(b"I agree to this.").hexdigest()
    assert collector.submit(made, KEYS[0]).status_code == 422, "without consent"
    assert send(collector, made, KEYS[1], 1) == 201


def test_times_beside_a_person_are_days(collector: Running) -> None:
    made = world()
    collector.settle(made)
    receipt = collector.submit(made, KEYS[0]).json()
    [row] = collector.collector.database.submissions(made.id, 0, 10)
    assert receipt["received"] % DAY_MS == 0 and row.received % DAY_MS == 0


# Counts


def test_counts_spend_epsilon_and_show_no_record(collector: Running, tmp_path: Path) -> None:
    made = world(mode="open", counts_epsilon=3.0)
    folder = folder_of(made, collector.settle(made), tmp_path / "smiles")
    answers = ["yes"] * 12 + ["no"] * 4 + [None] * 2
    for number, answer in enumerate(answers):
        assert send(collector, made, KEYS[number], number, answer) == 201
    # A second record of somebody is not counted.
    assert send(collector, made, KEYS[40], 0, "no") == 201
    path = f"/v1/campaigns/{made.id}/"
    for what in ("records", "figures"):
        answered = collector.http.get(path + what, headers=bearer(folder.token))
        assert "no records" in json.dumps(answered.json())
    given = governance.count(folder, "smiling", 2.0, collector.client)
    truth = {"yes": 12, "no": 4, "no answer": 2}
    assert set(given.counts) == set(truth)
    assert all(abs(given.counts[name] - many) <= 20 for name, many in truth.items())
    with pytest.raises(Rejected, match="left of the campaign's epsilon"):
        governance.count(folder, "smiling", 1.5, collector.client)
    assert governance.count(folder, "smiling", 1.0, collector.client).epsilon == 1.0
    with pytest.raises(Rejected, match="left"):
        governance.count(folder, "smiling", 0.01, collector.client)
    [first, _] = governance.counted(folder, collector.client)
    assert first.counts == given.counts, "asked again, the noise is the same"
    with pytest.raises(Rejected, match="chosen among values"):
        governance.count(folder, "age", 0.1, collector.client)


def test_only_an_open_campaign_can_be_counted() -> None:
    with pytest.raises(ValueError, match="open campaign"):
        world(counts_epsilon=1.0)


def test_changed_answers_are_the_same_ten_times_and_true_in_the_mean() -> None:
    label = Label(name="smiling", values=["yes", "no"], epsilon=1.0)
    keys = [hashlib.sha256(str(k).encode()).digest() for k in range(4000)]
    told = [told_labels({"smiling": "yes"}, [label], key, "c")["smiling"] for key in keys]
    again = [told_labels({"smiling": "yes"}, [label], key, "c")["smiling"] for key in keys]
    assert told == again
    truthful = math.e / (math.e + 1)
    error = 5 * math.sqrt(truthful * (1 - truthful) / len(keys))
    assert abs(told.count("yes") / len(keys) - truthful) < error
    assert told_labels({"smiling": None, "age": 3}, [label], keys[0], "c") == {
        "smiling": None,
        "age": 3,
    }


# The end


def test_an_erased_campaign_is_gone_for_everybody(collector: Running, tmp_path: Path) -> None:
    made = world()
    folder = folder_of(made, collector.settle(made), tmp_path / "smiles")
    for key in KEYS[:3]:
        collector.submit(made, key)
    with pytest.raises(Rejected, match="nothing was erased"):
        governance.erase(folder, "Another title", collector.client)
    assert collector.stored(made) == (3, 3)
    assert governance.erase(folder, "Smiles", collector.client) == 3
    assert collector.stored(made) == (0, 0)
    assert collector.http.get(f"/v1/campaigns/{made.id}").status_code == 410
    assert collector.submit(made, KEYS[4]).status_code in (403, 410)
    find = f"/v1/campaigns/{made.id}/submissions/{KEYS[0]}"
    assert collector.http.get(find, headers={"privet-withdraw": "ab" * 32}).status_code == 410
    assert governance.deeds(folder, connect=collector.client)[-1].what == "erased"


def test_an_erasure_that_was_interrupted_goes_on(start: Start) -> None:
    collector = start()
    made = world()
    collector.settle(made)
    collector.submit(made, KEYS[0])
    collector.collector.governance.mark_erased(made.id)
    assert collector.stored(made) == (1, 1)
    collector.collector.commits.stop()
    collector.collector.start()
    assert collector.stored(made) == (0, 0)


# Signing in elsewhere


class Issuer(httpx.BaseTransport):
    """Publishes its keys, and makes tokens."""

    def __init__(self) -> None:
        from joserfc.jwk import KeySet, RSAKey

        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.published = KeySet([self.key]).as_dict(private=False)
        self.asked = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        if request.url.path.endswith("openid-configuration"):
            about = {"issuer": "https://id.example.org", "jwks_uri": "https://id.example.org/keys"}
            return httpx.Response(200, json=about)
        return httpx.Response(200, json=self.published)

    def token(self, key: Any = None, algorithm: str = "RS256", **changed: Any) -> str:
        import time

        from joserfc import jwt

        claims = {
            "iss": "https://id.example.org",
            "aud": "collector",
            "sub": "anna",
            "exp": int(time.time()) + 300,
            **changed,
        }
        kept = {name: value for name, value in claims.items() if value is not None}
        head = {"alg": algorithm, "kid": "one"}
        return str(jwt.encode(head, kept, key or self.key, algorithms=[algorithm]))


def test_an_owner_may_sign_in_elsewhere(start: Start, tmp_path: Path) -> None:
    from joserfc.jwk import OctKey, RSAKey

    collector, issuer = start(), Issuer()
    collector.collector.sign_in = SignIn("https://id.example.org", "collector", issuer)
    made, other = world(), world()
    folder = folder_of(made, collector.settle(made), tmp_path / "smiles")
    collector.settle(other)
    path = f"/v1/campaigns/{made.id}/"

    def status(token: str, what: str = "figures", campaign: str = made.id) -> int:
        address = path.replace(made.id, campaign) + what
        return int(collector.http.get(address, headers=bearer(token)).status_code)

    assert status(issuer.token()) == 401, "nobody has let Anna in"
    governance.allow(folder, "anna", "auditor", collector.client)
    assert status(issuer.token()) == 200 and status(issuer.token(), "records") == 403
    governance.allow(folder, "anna", "owner", collector.client)
    assert status(issuer.token(), "records") == 200
    assert status(issuer.token(), campaign=other.id) == 401
    assert governance.deeds(folder, connect=collector.client)[-1].what == "allowed"
    wrong = {
        "another person": issuer.token(sub="bert"),
        "another service": issuer.token(aud="elsewhere"),
        "another issuer": issuer.token(iss="https://evil.example.org"),
        "expired": issuer.token(exp=1_000_000_000),
        "no end": issuer.token(exp=None),
        "another key": issuer.token(RSAKey.generate_key(2048, {"kid": "one"})),
        "a shared secret": issuer.token(OctKey.generate_key(256), "HS256"),
        "changed": issuer.token()[:-6] + "AAAAAA",
        "unsigned": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm5hIn0.",
    }
    assert {name: status(token) for name, token in wrong.items()} == dict.fromkeys(wrong, 401)
    assert issuer.asked <= 4, "keys are fetched once, not for every token"
    governance.disallow(folder, "anna", collector.client)
    assert status(issuer.token()) == 401


def test_an_issuer_without_tls_is_refused() -> None:
    with pytest.raises(PrivetError, match="https"):
        SignIn("http://id.example.org", "collector")
