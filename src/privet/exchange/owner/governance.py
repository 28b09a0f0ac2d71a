"""What an owner does to govern a campaign: change tokens, name an auditor, read the log, erase it,
and count without seeing records."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Any

from privet.core.errors import PrivetError, unknown
from privet.core.secret_files import write_secret
from privet.evidence.private_counts import half_width, private_counts
from privet.evidence.randomised_answers import Share, shares
from privet.exchange.owner.campaigns import CampaignFolder
from privet.exchange.protocol import seal
from privet.exchange.protocol.client import Client, Connect
from privet.exchange.protocol.deeds import Deed, check_chain
from privet.exchange.protocol.governance import NO_ANSWER, CountsAnswer, GivenCounts, Reissue
from privet.exchange.protocol.messages import GoneAnswer, NewToken

PAGE = 1000


def rotate(folder: CampaignFolder, connect: Connect = Client) -> None:
    """Replace the owner's token: the new one is on disk before the old one ends."""
    old = folder.token.split("_")[1]
    with folder.client(connect) as client:
        wanted = {"scope": "owner", "count": 1}
        [new] = client.ask(list[NewToken], "POST", folder.address("tokens"), json=wanted)
        _keep_token(folder, new.token)
    with folder.client(connect) as client:
        client.request("DELETE", folder.address(f"tokens/{old}"))


def reissue(folder: CampaignFolder, identity: Path, connect: Connect = Client) -> None:
    """Another token for an owner who lost theirs, with the key that signed the campaign. The token
    is made here, and the collector gets its hash; every other token of the owner's ends."""
    name = secrets.token_hex(8)
    token = f"pvt_{name}_{secrets.token_urlsafe(32)}"
    wanted = Reissue(name=name, hash=hashlib.sha256(token.encode()).hexdigest())
    key = seal.read_secret(identity).strip()
    if seal.verify_key(key) != folder.manifest.signing_key:
        raise PrivetError(f"{identity} is not the key that signed this campaign.")
    wanted.signature = seal.sign(wanted.signed_text(folder.link.campaign).encode(), key)
    _keep_token(folder, token, ".new")
    with connect(folder.link.server, None) as client:
        client.request("POST", folder.address("reissue"), json=wanted.model_dump())
    (folder.path / "owner.token.new").replace(folder.path / "owner.token")


def _keep_token(folder: CampaignFolder, token: str, ending: str = "") -> None:
    path = folder.path / f"owner.token{ending}"
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    write_secret(fresh, token + "\n")
    fresh.replace(path)


def auditor(folder: CampaignFolder, days: int, connect: Connect = Client) -> str:
    """A token with which somebody may look at counts, the log and what is gone, and no records."""
    wanted = {"scope": "auditor", "count": 1, "days": days}
    with folder.client(connect) as client:
        [new] = client.ask(list[NewToken], "POST", folder.address("tokens"), json=wanted)
    return new.token


def allow(
    folder: CampaignFolder, subject: str, scope: str = "owner", connect: Connect = Client
) -> None:
    """Let somebody who signs in elsewhere act for the campaign."""
    with folder.client(connect) as client:
        wanted = {"subject": subject, "scope": scope}
        client.request("POST", folder.address("subjects"), json=wanted)


def disallow(folder: CampaignFolder, subject: str, connect: Connect = Client) -> None:
    """Take that back."""
    with folder.client(connect) as client:
        client.request("DELETE", folder.address("subjects"), params={"subject": subject})


def deeds(
    folder: CampaignFolder, remembered: str | None = None, connect: Connect = Client
) -> list[Deed]:
    """Who did what with the campaign, after checking the chain of hashes."""
    entries: list[Deed] = []
    page = None
    with folder.client(connect) as client:
        while page != []:
            params = {"after": len(entries), "most": PAGE}
            page = client.ask(list[Deed], "GET", folder.address("deeds"), params=params)
            entries += page
    check_chain(folder.link.campaign, entries, remembered)
    return entries


def withdrawals(folder: CampaignFolder, connect: Connect = Client) -> list[GoneAnswer]:
    """Every record that ever left the campaign, since it was opened."""
    gone: list[GoneAnswer] = []
    page = None
    with folder.client(connect) as client:
        while page != []:
            params = {"after": gone[-1].number if gone else 0, "most": PAGE}
            page = client.ask(list[GoneAnswer], "GET", folder.address("gone"), params=params)
            gone += page
    return gone


def erase(folder: CampaignFolder, title: str, connect: Connect = Client) -> int:
    """Delete every record at the collector and end the campaign; how many there were."""
    with folder.client(connect) as client:
        answer = client.ask(dict[str, int], "POST", folder.address("erase"), json={"title": title})
    return answer["erased"]


def count(
    folder: CampaignFolder, label: str, epsilon: float, connect: Connect = Client
) -> CountsAnswer:
    """Ask the collector how many people gave each answer, with noise."""
    with folder.client(connect) as client:
        wanted = {"label": label, "epsilon": epsilon}
        return client.ask(CountsAnswer, "POST", folder.address("counts"), json=wanted)


def counted(folder: CampaignFolder, connect: Connect = Client) -> list[GivenCounts]:
    """What was counted before."""
    with folder.client(connect) as client:
        return client.ask(list[GivenCounts], "GET", folder.address("counts"))


def count_export(table: Path, label: str, epsilon: float) -> CountsAnswer:
    """Counts of an export that may be published: everybody counted once, with noise."""
    answers = _first_answers(table, label)
    told = dict.fromkeys(sorted({*answers, NO_ANSWER}), 0)
    for answer in answers:
        told[answer] += 1
    given = private_counts(told, epsilon)
    return CountsAnswer(label=label, epsilon=epsilon, counts=given, half_width=half_width(epsilon))


def estimate(folder: CampaignFolder, table: Path, label: str) -> list[Share]:
    """Shares of the true answers to a question whose answers were changed at random."""
    asked = next((one for one in folder.manifest.labels if one.name == label), None)
    if asked is None:
        raise unknown("label", label, [one.name for one in folder.manifest.labels])
    if asked.epsilon is None:
        raise PrivetError(f"Answers to '{label}' were sent as they are: count the export.")
    answers = [answer for answer in _first_answers(table, label) if answer != NO_ANSWER]
    if not answers:
        raise PrivetError(f"Nobody has answered '{label}' yet.")
    told = [answers.count(value) for value in asked.values]
    return shares(told, asked.values, asked.epsilon)


def _first_answers(table: Path, label: str) -> list[str]:
    """Everybody's first answer in an export."""
    import pyarrow.parquet as pq

    try:
        columns: Any = pq.read_table(table, columns=["person", label]).to_pydict()
    except (OSError, ValueError, KeyError):
        raise PrivetError(f"{table} is no export with a column '{label}'.") from None
    if label not in columns or "person" not in columns:
        raise PrivetError(f"{table} is no export with a column '{label}'.")
    first: dict[str, Any] = {}
    for person, answer in zip(columns["person"], columns[label], strict=True):
        first.setdefault(person, answer)
    return [NO_ANSWER if answer is None else str(answer) for answer in first.values()]
