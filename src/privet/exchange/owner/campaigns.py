"""What the owner of a campaign does: open it for a release, invite, look, close. Keys are made here
and stay here.

A campaign's folder holds `campaign.json` (what everybody may know) and, readable by its owner
alone, `sealing.key` (opens the records) and `owner.token` (fetches them). The key may be moved to a
machine without a network: only an export needs it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from privet.core.errors import PrivetError, unknown
from privet.core.files import results_folder, write_text
from privet.core.secret_files import write_secret
from privet.exchange.owner.expected import expected_record
from privet.exchange.owner.published import published_parts
from privet.exchange.protocol import seal
from privet.exchange.protocol.asking import asked_for
from privet.exchange.protocol.client import Client, Connect, Link, server_address
from privet.exchange.protocol.manifest import (
    Access,
    Label,
    Manifest,
    Mode,
    ReleaseParts,
    campaign_id,
    first_problem,
    private_among,
    read_manifest,
)
from privet.exchange.protocol.messages import Created, Figures, NewToken, Summary, TokenAnswer
from privet.release.runtime import read_card


@dataclass(frozen=True)
class CampaignFolder:
    """A campaign on its owner's disk.

    Parameters:
        path: The folder.
        link: Where the campaign is.
        manifest, text, signature: What the owner signed.
    """

    path: Path
    link: Link
    manifest: Manifest
    text: str
    signature: str

    @staticmethod
    def load(path: Path) -> CampaignFolder:
        try:
            about = json.loads((path / "campaign.json").read_text(encoding="utf-8"))
            text, signature, link = about["manifest"], about["signature"], Link.parse(about["link"])
        except FileNotFoundError:
            raise PrivetError(
                f"There is no campaign in {path}: it has no campaign.json. Make one with  "
                "privet campaign create."
            ) from None
        except (OSError, ValueError, KeyError, TypeError):
            raise PrivetError(f"The campaign in {path} cannot be read.") from None
        manifest = read_manifest(text, signature, link.campaign)
        return CampaignFolder(path, link, manifest, text, signature)

    def sealing_key(self, elsewhere: Path | None = None) -> str | None:
        if self.manifest.mode == "open":
            return None
        return seal.read_secret(elsewhere or self.path / "sealing.key").strip()

    @property
    def token(self) -> str:
        """The owner's."""
        return seal.read_secret(self.path / "owner.token").strip()

    def client(self, connect: Connect = Client) -> Client:
        """A connection with the owner's token."""
        return connect(self.link.server, self.token)

    def address(self, what: str) -> str:
        """Of something that belongs to the campaign, at its collector."""
        return f"/v1/campaigns/{self.link.campaign}/{what}"


@dataclass(frozen=True)
class Terms:
    """What a campaign shall be, in its owner's words.

    Parameters:
        title, purpose, who: What participants read: what it is, what it is for, and who runs it.
        labels: What to ask: `name` for a number, `name=value,value` for a choice; with `!` at the
            end of the name an answer is needed.
        retention_days: After so many days a record is deleted.
        records_per_person: Most records of one person.
        mode: `sealed` to the owner's key, or `open` to the collector's server.
        access: For `anyone` with the link, or those who were `invited`.
        consent, consent_version: What participants agree to, and its version; every record names
            the text.
        least_people: Nothing is given to the owner before so many people have taken part.
        counts_epsilon: The owner gets counts with noise, as private as this in all, and no records.
        randomised: Labels whose answers participants' machines change at random, each as
            `name=epsilon`.
    """

    title: str
    purpose: str
    who: str
    labels: Sequence[str] = ()
    retention_days: int = 30
    records_per_person: int = 10
    mode: Mode = "sealed"
    access: Access = "anyone"
    consent: str = ""
    consent_version: str = ""
    least_people: int = 1
    counts_epsilon: float | None = None
    randomised: Sequence[str] = ()


def create(
    url: str,
    release: Path,
    out: Path,
    terms: Terms,
    operator: str,
    identity: Path,
    *,
    decoder: Path | None = None,
    audit: Path | None = None,
    report: Path | None = None,
    connect: Connect = Client,
) -> CampaignFolder:
    """Open a campaign for a release.

    Parameters:
        url: The collector's address.
        release: Folder of the release.
        out: Folder for the campaign's keys, which is written.
        terms: What the campaign shall be.
        operator: The operator's token.
        identity: File with the owner's signing key; made if it is not there.
        decoder: ONNX graph that rebuilds records, for participants to see what is left.
        audit: `audit.json` of the release, or its folder, for participants to read.
        report: Folder of the audit: attaches its figures, and a page of them.
        connect: From an address and a token to a client.
    """
    parts = published_parts(
        release, decoder, report if audit is None else audit, report is not None
    )
    card = read_card(release)
    labels = _randomised([_label(word) for word in terms.labels], terms.randomised)
    private = [str(name) for name in card.get("private", [])]
    hidden = private_among([label.name for label in labels], private)
    near = asked_for(labels, private)
    if hidden or near:
        name = hidden or (near and near.label)
        raise PrivetError(
            f"'{name}' asks for what the release hides: a campaign cannot ask for it."
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise PrivetError(f"{out} is there already: choose another --out.")
    expect = expected_record(card, parts["graph"], checked=terms.mode == "open")
    signing_key = _signing_key(identity)
    private_key, public_key = seal.sealing_keys()
    is_sealed = terms.mode == "sealed"
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    manifest = _manifest(
        card,
        terms,
        labels=labels,
        release=ReleaseParts(**hashes),
        expect=expect,
        sealing_key=public_key if is_sealed else None,
        signing_key=seal.verify_key(signing_key),
    )
    text = manifest.text()
    signature = seal.sign(text.encode(), signing_key)
    folder = CampaignFolder(
        out, Link(server_address(url), campaign_id(text)), manifest, text, signature
    )
    with results_folder(out):
        try:
            if is_sealed:
                write_secret(out / "sealing.key", private_key + "\n")
            with connect(url, operator) as client:
                for name, content in parts.items():
                    client.request("PUT", f"/v1/parts/{hashes[name]}", content=content)
                about = {"manifest": text, "signature": signature}
                created = client.ask(Created, "POST", "/v1/campaigns", json=about)
            write_secret(out / "owner.token", created.owner_token + "\n")
            public = json.dumps({"link": folder.link.text, **about}, indent=1, ensure_ascii=False)
            write_text(out / "campaign.json", public + "\n")
        except BaseException:
            for name in ("sealing.key", "owner.token", "campaign.json"):
                (out / name).unlink(missing_ok=True)
            raise
    return folder


def list_campaigns(url: str, operator: str, connect: Connect = Client) -> list[Summary]:
    """The campaigns of a collector, for its operator."""
    with connect(url, operator) as client:
        return client.ask(list[Summary], "GET", "/v1/campaigns")


def figures(folder: CampaignFolder, connect: Connect = Client) -> Figures:
    """How many records came, of how many people, on which day."""
    with folder.client(connect) as client:
        return client.ask(Figures, "GET", folder.address("figures"))


def close(folder: CampaignFolder, connect: Connect = Client) -> None:
    """Take no more records."""
    with folder.client(connect) as client:
        client.request("POST", folder.address("close"))


def invite(folder: CampaignFolder, count: int, days: int, connect: Connect = Client) -> list[str]:
    """Links for so many people, each valid for so many days."""
    if folder.manifest.access != "invited":
        raise PrivetError("The campaign is for anyone: its link needs no invitation.")
    wanted = {"scope": "invite", "count": count, "days": days}
    with folder.client(connect) as client:
        invitations = client.ask(list[NewToken], "POST", folder.address("tokens"), json=wanted)
    return [f"{folder.link.text}#invite={one.token}" for one in invitations]


def revoke(folder: CampaignFolder, token: str, connect: Connect = Client) -> None:
    """End an invitation or a token, given the token, its name, or the link that holds it."""
    name = token.rpartition("invite=")[2].split("_")[1] if "_" in token else token
    with folder.client(connect) as client:
        client.request("DELETE", folder.address(f"tokens/{name}"))


def tokens(folder: CampaignFolder, connect: Connect = Client) -> list[TokenAnswer]:
    """Names of the owner's and the invited people's tokens, and until when they are valid."""
    with folder.client(connect) as client:
        return client.ask(list[TokenAnswer], "GET", folder.address("tokens"))


def _label(word: str) -> Label:
    name, equals, values = word.partition("=")
    listed = [value.strip() for value in values.split(",") if value.strip()]
    if equals and len(listed) < 2:
        raise PrivetError(
            f"--label {word}: a choice needs two values at least, for example  smiling=yes,no."
        )
    bare = name.removesuffix("!").strip()
    try:
        return Label(name=bare, values=listed, required=name.endswith("!"))
    except ValidationError:
        raise PrivetError(
            f"--label {word}: a label is called by letters, digits, blanks and . : + -, up to 64 "
            "of them."
        ) from None


def _randomised(labels: list[Label], words: Sequence[str]) -> list[Label]:
    """The labels, with an epsilon for those whose answers shall be changed at random."""
    names = [label.name for label in labels]
    epsilons = {}
    for word in words:
        name, _, epsilon = word.partition("=")
        try:
            epsilons[name] = float(epsilon)
        except ValueError:
            raise PrivetError(f"--randomise {word}: say it as  smiling=1.5.") from None
        if name not in names:
            raise unknown("label", name, names)
    try:
        return [
            Label(**{**label.model_dump(), "epsilon": epsilons.get(label.name)}) for label in labels
        ]
    except ValidationError as error:
        raise PrivetError(f"--randomise: {first_problem(error.errors())}") from None


def _signing_key(path: Path) -> str:
    """The owner's; made when it is first needed."""
    if not path.exists():
        write_secret(path, seal.signing_key() + "\n")
    return seal.read_secret(path).strip()


def _manifest(card: dict[str, Any], terms: Terms, **more: Any) -> Manifest:
    try:
        return Manifest(
            **{name: value for name, value in vars(terms).items() if name != "randomised"} | more,
            private=list(card["private"]),
            modality=card["input"]["modality"],
            method=str(card.get("method", "")),
            created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            nonce=secrets.token_hex(16),
        )
    except ValidationError as error:
        raise PrivetError(f"The campaign cannot be made: {first_problem(error.errors())}") from None
