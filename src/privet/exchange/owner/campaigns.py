"""The owner's half: open a campaign for a release, invite, look, close. Keys are made here and stay
here.

A campaign's folder holds `campaign.json` (what everybody may know) and, readable by its owner
alone, `sealing.key` (opens the records) and `owner.token` (fetches them). The key may be moved to a
machine without a network: only an export needs it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privet.core.errors import PrivetError
from privet.core.files import writable_folder, write_text
from privet.data.schema import schema_from_json
from privet.evidence.figures import Audit
from privet.exchange.protocol import seal
from privet.exchange.protocol.checks import check_record, expected
from privet.exchange.protocol.client import Client, Link, server
from privet.exchange.protocol.manifest import (
    Access,
    Expect,
    Label,
    Manifest,
    Mode,
    Parts,
    campaign_id,
    private_among,
    read,
)
from privet.release.noise import Noise
from privet.release.runtime import FILES, read_card, read_graph, session
from privet.reporting.page import render

TRIED = 64
"""Records on which it is seen what a release gives."""

Opener = Callable[[str, str | None], Client]
"""From an address and a token to a client; tests give their own."""


@dataclass(frozen=True)
class Folder:
    """A campaign on its owner's disk."""

    path: Path
    link: Link
    manifest: Manifest
    text: str
    signature: str

    @property
    def token(self) -> str:
        return seal.read_secret(self.path / "owner.token").strip()

    def sealing_key(self, elsewhere: Path | None = None) -> str | None:
        return (
            None
            if self.manifest.mode == "open"
            else seal.read_secret(elsewhere or self.path / "sealing.key").strip()
        )

    @staticmethod
    def load(path: Path) -> Folder:
        try:
            about = json.loads((path / "campaign.json").read_text(encoding="utf-8"))
            text, signature, link = about["manifest"], about["signature"], Link.parse(about["link"])
        except FileNotFoundError:
            raise PrivetError(
                f"There is no campaign in {path}: it has no campaign.json. Make one with  privet campaign create."
            ) from None
        except (OSError, ValueError, KeyError, TypeError):
            raise PrivetError(f"The campaign in {path} cannot be read.") from None
        return Folder(path, link, read(text, signature, link.campaign), text, signature)


@dataclass(frozen=True)
class Wishes:
    """What a campaign shall be, in its owner's words."""

    title: str
    purpose: str
    who: str
    labels: Sequence[str] = ()
    """`name` for a number, `name=value,value` for a choice; with `!` at the end of the name an
    answer is needed."""
    retention_days: int = 30
    records_per_person: int = 10
    mode: Mode = "sealed"
    access: Access = "anyone"


def create(
    url: str,
    release: Path,
    out: Path,
    wishes: Wishes,
    operator: str,
    identity: Path,
    *,
    decoder: Path | None = None,
    audit: Path | None = None,
    report: Path | None = None,
    client: Opener = Client,
) -> Folder:
    """Open a campaign at the collector `url`, and write its folder to `out`. With `report`, a page
    of the audit is attached too."""
    contents = _parts(release, decoder, report if audit is None else audit, report is not None)
    card = read_card(release)
    graph = read_graph(release)
    labels = [_label(word) for word in wishes.labels]
    if hidden := private_among([label.name for label in labels], card.get("private", [])):
        raise PrivetError(f"'{hidden}' is what the release hides: a campaign cannot ask for it.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise PrivetError(f"{out} is there already: choose another --out.")
    expect = _expect(card, graph, wishes.mode)
    signing = _identity(identity)
    private, public = seal.sealing_keys()
    manifest = _manifest(
        card,
        wishes,
        labels,
        contents,
        expect,
        public if wishes.mode == "sealed" else None,
        seal.verify_key(signing),
    )
    text = manifest.text()
    signature = seal.sign(text.encode(), signing)
    link = Link(server(url), campaign_id(text))
    undo = writable_folder(out)
    try:
        if wishes.mode == "sealed":
            seal.write_secret(out / "sealing.key", private + "\n")
        with client(url, operator) as speak:
            for content in contents.values():
                speak.ask(
                    "PUT", f"/v1/parts/{hashlib.sha256(content).hexdigest()}", content=content
                )
            made = speak.ask(
                "POST", "/v1/campaigns", json={"manifest": text, "signature": signature}
            ).json()
        seal.write_secret(out / "owner.token", made["owner_token"] + "\n")
        about = {"link": link.text, "manifest": text, "signature": signature}
        write_text(out / "campaign.json", json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    except BaseException:
        for name in ("sealing.key", "owner.token", "campaign.json"):
            (out / name).unlink(missing_ok=True)
        undo()
        raise
    return Folder(out, link, manifest, text, signature)


def listing(url: str, token: str, client: Opener = Client) -> list[dict[str, Any]]:
    """The campaigns of a collector, for its operator."""
    with client(url, token) as speak:
        return list(speak.ask("GET", "/v1/campaigns").json())


def figures(folder: Folder, client: Opener = Client) -> dict[str, Any]:
    with client(folder.link.server, folder.token) as speak:
        return dict(speak.ask("GET", f"/v1/campaigns/{folder.link.campaign}/figures").json())


def close(folder: Folder, client: Opener = Client) -> None:
    with client(folder.link.server, folder.token) as speak:
        speak.ask("POST", f"/v1/campaigns/{folder.link.campaign}/close")


def invite(folder: Folder, count: int, days: int, client: Opener = Client) -> list[str]:
    """Links for so many people, each valid for so many days."""
    if folder.manifest.access != "invited":
        raise PrivetError("The campaign is for anyone: its link needs no invitation.")
    with client(folder.link.server, folder.token) as speak:
        wanted = {"scope": "invite", "count": count, "days": days}
        made = speak.ask("POST", f"/v1/campaigns/{folder.link.campaign}/tokens", json=wanted).json()
    return [f"{folder.link.text}#invite={one['token']}" for one in made]


def revoke(folder: Folder, token: str, client: Opener = Client) -> None:
    """End an invitation or a token, given the token, its name, or the link that holds it."""
    name = token.rpartition("invite=")[2].split("_")[1] if "_" in token else token
    with client(folder.link.server, folder.token) as speak:
        speak.ask("DELETE", f"/v1/campaigns/{folder.link.campaign}/tokens/{name}")


def tokens(folder: Folder, client: Opener = Client) -> list[dict[str, Any]]:
    with client(folder.link.server, folder.token) as speak:
        return list(speak.ask("GET", f"/v1/campaigns/{folder.link.campaign}/tokens").json())


def _parts(
    release: Path, decoder: Path | None, audit: Path | None, report: bool
) -> dict[str, bytes]:
    found = {"card": release / "card.json", "graph": release / FILES["graph"]}
    if decoder is not None:
        found["decoder"] = decoder
    if audit is not None:
        found["audit"] = audit / "audit.json" if audit.is_dir() else audit
    try:
        contents = {name: path.read_bytes() for name, path in found.items()}
    except OSError as error:
        raise PrivetError(f"Cannot read {error.filename}: {error.strerror}.") from None
    if "decoder" in contents:
        _check_decoder(contents["decoder"], read_card(release), found["decoder"])
    if "audit" in contents:
        contents["audit"] = figures_of(
            contents["audit"], hashlib.sha256(contents["graph"]).hexdigest(), found["audit"]
        )
    if report:
        # Written anew from the figures alone: the page that an audit writes shows records of *test*
        # people.
        contents["report"] = render(Audit.from_json(contents["audit"].decode())).encode()
    return contents


def _check_decoder(content: bytes, card: dict[str, Any], path: Path) -> None:
    """A page shows what it makes of a released record, so it must make a picture of one."""
    given, output = card["input"], card["output"]["shape"]
    if given["modality"] != "image" or None in output:
        raise PrivetError("What could be rebuilt is shown of pictures only: leave out --decoder.")
    try:
        run = session(content)
    except PrivetError as error:
        raise PrivetError(f"{path}: {error}") from None
    except Exception:  # whatever the runtime says about a file that is no graph
        raise PrivetError(f"{path} is not an ONNX graph.") from None
    try:
        made = run.run(
            None, {put.name: np.zeros((1, *output), np.float32) for put in run.get_inputs()}
        )[0].shape
    except Exception:  # or about a graph that takes something else
        made = ()
    plain = given.get("base", given)["shape"]
    if made != (1, *plain):
        raise PrivetError(
            f"{path} does not make pictures {plain} of released records {output}: it is no decoder of this release."
        )


def figures_of(content: bytes, graph: str, path: Path) -> bytes:
    """An audit as it may be published: its figures, without the records of *test* people that it
    shows beside what was rebuilt of them.

    An audit of another release is refused: it would promise what this one does not keep.
    """
    try:
        audit = json.loads(content)
        about = audit["release"]["sha256"]["graph"]
        audit["rebuilt"] = [
            {**one, "originals": [], "rebuilt": []} for one in audit.get("rebuilt") or ()
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PrivetError(f"{path} is not the audit.json of a release.") from None
    if about != graph:
        raise PrivetError(f"{path} is the audit of another release.")
    return json.dumps(audit).encode()


def _label(word: str) -> Label:
    name, equals, values = word.partition("=")
    needed = name.endswith("!")
    name = name.removesuffix("!").strip()
    listed = [value.strip() for value in values.split(",") if value.strip()]
    if equals and len(listed) < 2:
        raise PrivetError(
            f"--label {word}: a choice needs two values at least, for example  smiling=yes,no."
        )
    try:
        return Label(name=name, values=listed, required=needed)
    except ValueError:
        raise PrivetError(
            f"--label {word}: a label is called by letters, digits, blanks and . : + -, up to 64 of them."
        ) from None


def _expect(card: dict[str, Any], graph: bytes, mode: Mode) -> Expect:
    """What the graph gives, seen on random records, and that an open campaign could tell it from
    raw ones."""
    schema = schema_from_json(card["input"])
    x = schema.random(TRIED, seed=0)
    fed = {"x": x}
    noise = None
    if card["noise"] is not None:
        law = Noise.from_json(card["noise"])
        noise = law.draw(TRIED, x.shape[1], seed=0)
        fed["noise"] = noise
    run = session(graph)
    z = run.run(["z"], fed)[0]
    quiet = None if noise is None else run.run(["z"], {**fed, "noise": np.zeros_like(noise)})[0]
    found = expected(card, z, quiet, noise)
    if mode == "open":
        try:
            for row in z:
                check_record(found, row)
        except PrivetError as error:
            raise PrivetError(
                f"What this release gives cannot be told from raw records ({error}) Use a sealed campaign."
            ) from None
    return found


def _identity(path: Path) -> str:
    """The owner's signing key; made when it is first needed."""
    if not path.exists():
        seal.write_secret(path, seal.signing_key() + "\n")
    return seal.read_secret(path).strip()


def _manifest(
    card: dict[str, Any],
    wishes: Wishes,
    labels: list[Label],
    contents: dict[str, bytes],
    expect: Expect,
    public: str | None,
    signing: str,
) -> Manifest:
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    try:
        return Manifest(
            title=wishes.title,
            purpose=wishes.purpose,
            who=wishes.who,
            mode=wishes.mode,
            access=wishes.access,
            labels=labels,
            private=list(card["private"]),
            modality=card["input"]["modality"],
            method=str(card.get("method", "")),
            retention_days=wishes.retention_days,
            records_per_person=wishes.records_per_person,
            release=Parts(**hashes),
            expect=expect,
            sealing_key=public,
            signing_key=signing,
            created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            nonce=secrets.token_hex(16),
        )
    except ValueError as error:
        problems: list[Any] = (
            error.errors(include_url=False)
            if hasattr(error, "errors")
            else [{"loc": ("",), "msg": str(error)}]
        )
        first = problems[0]
        raise PrivetError(
            f"The campaign cannot be made: {' '.join(str(step) for step in first['loc'])}: {first['msg']}."
        ) from None
