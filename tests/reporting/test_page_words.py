"""The participant's page in the browser says what Python says: the same table, the same figures."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import example_audits as example
import pytest

from privet.evidence.figures import Audit, CertifiedGroup, ClassScore, Finding
from privet.evidence.sentences import table
from privet.exchange.participant import sentences
from privet.exchange.participant.claims import Claim
from privet.exchange.participant.ledger import Account, bounds
from privet.exchange.participant.ledger_lines import known
from privet.reporting import sentences as words

ROOT = Path(__file__).parents[2]
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="JavaScript is run by node, which is not here")

ASK = """
import { hidden, howMany, known, say, spoken } from "./words.js";
import { readFileSync } from "node:fs";
const asked = JSON.parse(readFileSync(0, "utf-8"));
const heard = asked.map(([name, ...given]) => {
  try {
    return { hidden, howMany, known, say, spoken }[name](...given);
  } catch (error) {
    return `refused: ${error.message}`;
  }
});
console.log(JSON.stringify(heard));
"""


def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_pages", ROOT / "web" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """words.js and the sentences that `make web` gives it."""
    folder = tmp_path_factory.mktemp("words")
    shutil.copy(ROOT / "web" / "static" / "words.js", folder)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    made = builder().sentences(ROOT / "web" / "static")
    (folder / "sentences.js").write_text(made, encoding="utf-8")
    (folder / "ask.js").write_text(ASK, encoding="utf-8")
    return folder


def ask(page: Path, *asked: list[Any]) -> list[Any]:
    assert NODE is not None
    found = subprocess.run(
        [NODE, str(page / "ask.js")], input=json.dumps(asked), capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    heard: list[Any] = json.loads(found.stdout)
    return heard


def with_beard(value: float, *others: Finding, certified: bool = True) -> Audit:
    reading = example.reading("beard", "private", {"mlp": value, "linear": 0.5}, {"mlp": 0.97})
    reading = replace(reading, others=others)
    made = example.certificates()[:1] if certified else ()
    return replace(example.audit((reading,)), certificates=made)


def races(readable: bool) -> Audit:
    values = tuple("abcdef")
    reading = example.reading("beard", "private", {"mlp": 0.175}, {}, values, 900)
    scores = [0.62 if readable else 0.5, *[0.5] * 5]
    pairs = zip(values, scores, strict=True)
    classes = [
        ClassScore(value, 900, example.figure(score, 900), rare=value in "ef")
        for value, score in pairs
    ]
    return example.audit((replace(reading, classes=tuple(classes)),))


KEPT = replace(example.finding("mlp", 0.8, "released and kept"), columns=("job",))
GROUP = CertifiedGroup("job", "sales", 0.7, 0.66, 0.04, (900, 900))
AUDITS = {
    "found and certified": with_beard(0.61),
    "as guessing": with_beard(0.505),
    "beaten": with_beard(0.72),
    "kept columns read more": with_beard(0.52, KEPT),
    "people weigh the same": example.audit(
        (
            replace(
                with_beard(0.72).reading("beard"),
                evidence={"balanced_by_people": example.figure(0.57, 900)},
            ),
        )
    ),
    "no certificate": with_beard(0.61, certified=False),
    "one value readable": races(True),
    "no value readable": races(False),
    "worst group": replace(
        with_beard(0.55),
        certificates=(replace(example.certificates()[0], groups=(GROUP,), statements=12),),
    ),
    "not certified": replace(
        with_beard(0.55),
        certificates=(replace(example.certificates()[0], bound=None, reason="no noise"),),
    ),
}


@pytest.mark.parametrize("name", AUDITS)
def test_the_page_says_what_python_says(page: Path, name: str) -> None:
    audit = AUDITS[name]
    in_python = sentences.hidden(audit, "beard")
    (heard,) = ask(page, ["hidden", json.loads(audit.to_json()), "beard"])
    assert heard["large"] == words.score(audit.reading("beard"))[0]
    assert heard["label"] == words.score(audit.reading("beard"))[1]
    in_browser = f"{heard['found']} {heard['proof']}".replace(
        "raw record it", "raw records the best"
    )
    assert in_browser == in_python


CLAIMS = [
    Claim("owner"),
    Claim("changed"),
    Claim("stranger", "Ada", "0123"),
    Claim("unbound", "Ada", "0123"),
    Claim("checked", "Ada", "0123"),
]


@pytest.mark.parametrize("who", CLAIMS, ids=lambda who: str(who.kind))
def test_both_say_who_claims_it_and_certified_only_where_it_was_checked(
    page: Path, who: Claim
) -> None:
    audit, five = AUDITS["worst group"], replace(example.certificates()[0], records=5)
    audit = replace(audit, certificates=(*audit.certificates, five))
    document, given = json.loads(audit.to_json()), vars(who)
    account = Account(
        campaign="0" * 32,
        server="",
        title="",
        who="",
        owner="",
        private=["beard"],
        bounds=bounds(audit, ["beard"]),
        claim=who.kind,
        auditor=who.name,
        key=who.key,
    )
    in_page = {"bounds": [b.model_dump() for b in account.bounds], "claim": given}
    heard, often, *sent = ask(
        page,
        ["hidden", document, "beard", given],
        ["howMany", 5, document, ["beard"], given],
        *(["known", in_page, "beard", count] for count in (1, 2, 6)),
    )
    in_python = sentences.hidden(audit, "beard", who)
    text = f"{heard['found']} {heard['proof']}"
    assert text.replace("raw record it", "raw records the best") == in_python
    assert often == sentences.how_many(5, audit, ["beard"], who)
    assert sent == [known(account, "beard", count) for count in (1, 2, 6)]
    claims = re.sub("(not|nothing is) certified", "", f"{text} {often} {' '.join(sent)}")
    assert ("ertif" in claims) == (who.kind == "checked")


def test_without_an_audit_nothing_is_claimed(page: Path) -> None:
    (heard,) = ask(page, ["hidden", None, "beard"])
    assert heard["found"] == sentences.hidden(None, "beard") and heard["proof"] == ""


def test_several_records_are_covered_or_said_not_to_be(page: Path) -> None:
    one = example.certificates()[0]
    five = replace(example.audit(), certificates=(one, replace(one, records=5)))
    for most in (1, 2, 5, 6):
        for audit in (None, example.full(), five):
            (heard,) = ask(
                page,
                [
                    "howMany",
                    most,
                    None if audit is None else json.loads(audit.to_json()),
                    ["beard"],
                ],
            )
            assert heard == sentences.how_many(most, audit, ["beard"])
            assert "a little more" not in heard


def test_what_is_not_in_the_table_cannot_be_said(page: Path) -> None:
    wrong = (["say", "nothing"], ["say", "sure_alone"], ["say", "sure_alone", {"sure": 9, "x": 1}])
    assert all(heard.startswith("refused: ") for heard in ask(page, *wrong))


def test_what_the_bound_does_not_say_is_folded_below_it(page: Path) -> None:
    (heard,) = ask(page, ["hidden", json.loads(AUDITS["found and certified"].to_json()), "beard"])
    for name in ("no_groups", "certified_average", "computer"):
        assert table()[name].text in heard["more"]


def test_a_word_that_python_does_not_have_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "words.js").write_text('say("no_such_sentence")', encoding="utf-8")
    with pytest.raises(SystemExit, match="no_such_sentence"):
        builder().sentences(tmp_path)
