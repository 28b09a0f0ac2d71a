"""A certificate is checked by others: it is of this graph, this data and this auditor, or it does
not hold."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from privet.auditing.signatures import Signer, check_signature, make_key, sign
from privet.cli import main as cli
from privet.commands.certify import Scope, certify
from privet.commands.verify import sign as sign_file
from privet.commands.verify import verify
from privet.core.errors import PrivetError
from privet.core.key_text import fingerprint
from privet.data.sources import load
from privet.evidence.certificate.values import Certification
from privet.evidence.figures import Audit
from privet.methods.noisy import Noisy


class Setting:
    """A release of one column, a signed certificate of it, and their files."""

    def __init__(self, room: Path) -> None:
        random = np.random.default_rng(0)
        sex, job = random.integers(0, 2, 3000), random.integers(0, 2, 3000)
        table = pd.DataFrame({"a": sex + random.standard_normal(3000)})
        table = table.assign(sex=np.array(["f", "m"])[sex], job=np.array(["clerk", "nurse"])[job])
        self.room, self.data = room, room / "people.csv"
        table.to_csv(self.data, index=False)
        release = Noisy(sigma=4.0).fit(load(self.data), private=["sex"], utility=["job"])
        self.release = room / "release"
        release.save(self.release)
        self.key = room / "ada.key"
        self.fingerprint = make_key(self.key)
        certify(
            self.release,
            self.data,
            scope=Scope("job"),
            sign=Signer(self.key, "Ada"),
            out=room / "c",
            device="cpu",
        )
        self.certificate = room / "c" / "certificate.json"
        self.document = json.loads(self.certificate.read_text())


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return Setting(tmp_path_factory.mktemp("room"))


def run(*words: object) -> Any:
    return CliRunner().invoke(cli.app, [str(word) for word in words])


def wrong(result: Any) -> list[str]:
    return [check.attribute for check in result.checks if not check.ok]


def test_a_certificate_holds_with_and_without_the_data(setting: Setting) -> None:
    plain = run("verify", setting.certificate, setting.release)
    assert plain.exit_code == 0 and "were not computed again" in plain.output.splitlines()[0]
    whole = run(
        "verify",
        setting.certificate.parent,
        setting.release,
        *("--data", setting.data, "--signed", "--key", setting.fingerprint),
    )
    assert whole.exit_code == 0, whole.output
    assert whole.output.startswith("This certificate holds")
    assert "Ada" in whole.output and setting.fingerprint in whole.output


def test_another_graph_does_not_hold(setting: Setting, tmp_path: Path) -> None:
    """The graph's noise is turned down and the card's hash made anew."""
    other = tmp_path / "other"
    shutil.copytree(setting.release, other)
    model = onnx.load_from_string((other / "release.onnx").read_bytes())
    for tensor in model.graph.initializer:
        if tensor.name == "scale":
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.float32(0.0001), "scale"))
    (other / "release.onnx").write_bytes(model.SerializeToString())
    card = json.loads((other / "card.json").read_text())
    card["sha256"]["graph"] = hashlib.sha256(model.SerializeToString()).hexdigest()
    (other / "card.json").write_text(json.dumps(card))
    told = run("verify", setting.certificate, other)
    assert told.exit_code == 1 and "does NOT hold: graph" in told.output.splitlines()[0]
    assert "noise" in wrong(verify(setting.certificate, other))


def test_another_encoding_or_noise_law_does_not_hold(setting: Setting, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(setting.release, other)
    card = json.loads((other / "card.json").read_text())
    card["noise"]["law"] = "uniform"
    (other / "card.json").write_text(json.dumps(card))
    assert "encoding and noise" in wrong(verify(setting.certificate, other))


def test_other_data_does_not_hold(setting: Setting, tmp_path: Path) -> None:
    table = pd.read_csv(setting.data)
    table.loc[:, "a"] += table["sex"].eq("m") * 3.0
    table.to_csv(tmp_path / "other.csv", index=False)
    result = verify(setting.certificate, setting.release, tmp_path / "other.csv")
    assert {"data", "bounds"} <= {*wrong(result)}


def test_a_bound_that_does_not_come_out_again_does_not_hold(setting: Setting) -> None:
    stated = Certification.load(setting.certificate)
    first = stated.certificates[0]
    assert first.bound is not None
    lower = replace(first, bound=first.bound - 0.01, empirical=first.empirical - 0.01)
    forged = replace(stated, certificates=(lower, *stated.certificates[1:]))
    assert wrong(verify(sign(forged, Signer(setting.key, "Ada")), setting.release)) == [], (
        "who signs it stands for it"
    )
    result = verify(
        sign(forged, Signer(setting.key, "Ada")), setting.release, load(str(setting.data))
    )
    assert wrong(result) == ["bounds"]


@pytest.mark.parametrize("field", ["data_free", "at_prior", "bits", "priors", "people"])
def test_every_number_of_a_statement_comes_out_again(setting: Setting, field: str) -> None:
    stated = replace(Certification.load(setting.certificate), signature=None)
    first = stated.certificates[0]
    priors = first.priors
    assert priors is not None and first.at_prior is not None and first.bits is not None
    other: dict[str, Any] = {
        "data_free": 0.5001,
        "at_prior": first.at_prior - 0.01,
        "bits": first.bits - 0.01,
        "priors": replace(priors, bayes_security=priors.bayes_security + 0.01),
        "people": (first.people[0] + 1, *first.people[1:]),
    }
    forged = (replace(first, **{field: other[field]}), *stated.certificates[1:])
    result = verify(replace(stated, certificates=forged), setting.release, setting.data)
    assert wrong(result) == ["bounds"]


def test_a_statement_that_contradicts_itself_does_not_hold(setting: Setting) -> None:
    stated = replace(Certification.load(setting.certificate), signature=None)
    lower = replace(stated.certificates[0], bound=0.51)
    forged = replace(stated, certificates=(lower, *stated.certificates[1:]))
    assert wrong(verify(forged, setting.release)) == ["statements"]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values in a document."""
    if isinstance(value, dict) and value:
        return [p for key, inner in value.items() for p in leaves(inner, (*path, key))]
    if isinstance(value, list) and value:
        return [p for i, inner in enumerate(value) for p in leaves(inner, (*path, i))]
    return [path]


@settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(pick=st.randoms(use_true_random=False), number=st.floats(0, 1), how=st.integers(0, 3))
def test_no_field_can_be_changed_unnoticed(
    setting: Setting, pick: Any, number: float, how: int
) -> None:
    document = copy.deepcopy(setting.document)
    path = pick.choice(leaves(document))
    where = document
    for step in path[:-1]:
        where = where[step]
    before = where[path[-1]]
    if how == 0 and isinstance(where, dict):
        del where[path[-1]]
    elif how == 1 and isinstance(where, dict):
        where["more"] = number
    else:
        where[path[-1]] = number if before != number else "other"
    _, right = check_signature(document)
    assert not right, path


def test_the_document_that_is_changed_was_right(setting: Setting) -> None:
    signature, right = check_signature(setting.document)
    assert right and signature is not None and signature.auditor == "Ada"
    assert fingerprint(signature.key) == setting.fingerprint


def test_anothers_key_and_no_key_do_not_hold(setting: Setting, tmp_path: Path) -> None:
    other = make_key(tmp_path / "eve.key")
    told = run("verify", setting.certificate, setting.release, "--key", other)
    assert told.exit_code == 1 and "NOT hold: signature" in told.output
    unsigned = replace(Certification.load(setting.certificate), signature=None)
    assert wrong(verify(unsigned, setting.release, signed=True)) == ["signature"]
    assert verify(unsigned, setting.release).ok


def test_a_field_named_twice_is_refused(setting: Setting, tmp_path: Path) -> None:
    text = setting.certificate.read_text().rstrip().rstrip("}")
    (tmp_path / "c.json").write_text(f'{text}, "seconds": 0.0}}')
    with pytest.raises(PrivetError, match="named twice"):
        verify(tmp_path / "c.json", setting.release)


def test_a_key_is_its_owners_alone_and_is_not_overwritten(tmp_path: Path) -> None:
    key = tmp_path / "ada.key"
    told = run("auditor-key", key)
    assert told.exit_code == 0 and stat.S_IMODE(key.stat().st_mode) == 0o600
    secret = key.read_text()
    assert secret.strip() not in told.output
    with pytest.raises(PrivetError, match="not overwritten"):
        make_key(key)
    assert key.read_text() == secret and [p.name for p in tmp_path.iterdir()] == ["ada.key"]


@pytest.mark.parametrize(
    "case,said",
    [("open", "chmod 600"), ("words", "is no key"), ("absent", "Cannot read the key")],
)
def test_a_wrong_key_gets_a_sentence(
    setting: Setting, tmp_path: Path, case: str, said: str
) -> None:
    key = tmp_path / "key"
    if case != "absent":
        key.write_text("what" if case == "words" else setting.key.read_text())
        key.chmod(0o644 if case == "open" else 0o600)
    words = ["certify", setting.release, "--data", setting.data, "--sign", key, "--auditor", "Ada"]
    assert said in str(run(*words).exception)
    assert "Say who signs" in str(run(*words[:-1], " ").exception)


def test_without_pynacl_there_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nacl", None)
    with pytest.raises(PrivetError, match="needs PyNaCl"):
        make_key(tmp_path / "key")


def test_an_audit_is_signed_and_verified_too(setting: Setting, tmp_path: Path) -> None:
    hashes = setting.document["release"]["sha256"]
    data = load(str(setting.data))
    audit = Audit(
        {"private": ["sex"], "sha256": hashes},
        {"fingerprint": data.fingerprint},
        "quick",
        (),
        (),
        1.0,
    )
    audit.save(tmp_path / "audit.json")
    assert run("sign", tmp_path, "--key", setting.key, "--auditor", "Ada").exit_code == 0
    told = run("verify", tmp_path, setting.release, "--signed", "--data", setting.data)
    assert told.exit_code == 0 and told.output.startswith("This audit is about this release")
    text = (tmp_path / "audit.json").read_text()
    (tmp_path / "audit.json").write_text(text.replace("quick", "strong"))
    assert wrong(verify(tmp_path, setting.release)) == ["signature"]


def test_signing_again_replaces_the_signature(setting: Setting, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    shutil.copy(setting.certificate, path)
    make_key(tmp_path / "bob.key")
    sign_file(path, tmp_path / "bob.key", "Bob")
    assert verify(path, setting.release, signed=True).ok
    assert (found := Certification.load(path).signature) is not None and found.auditor == "Bob"


def test_a_certificate_of_new_people_is_verified_on_them(setting: Setting, tmp_path: Path) -> None:
    table = pd.read_csv(setting.data).iloc[::3].assign(split="test")
    table.loc[:, "a"] += 0.01
    table.to_csv(tmp_path / "new.csv", index=False)
    found = certify(setting.release, tmp_path / "new.csv", scope=Scope(new_people=True))
    assert found.data["new_people"] and found.data["people"] == 1000
    result = verify(found, setting.release, tmp_path / "new.csv")
    assert result.ok and result.recomputed, result.lines


def test_certificates_of_the_first_layout_are_still_read(setting: Setting, tmp_path: Path) -> None:
    old = copy.deepcopy(setting.document)
    for name in ("options", "signature"):
        del old[name]
    old["version"] = 1
    old["data"] = {key: old["data"][key] for key in ("name", "modality", "fingerprint")}
    del old["release"]["runs"]
    newer = ("records", "per", "weighing", "given", "alone", "groups", "data_free", "priors")
    old["certificates"] = [
        {key: value for key, value in one.items() if key not in (*newer, "statements")}
        for one in old["certificates"]
        if not one["given"]
    ]
    (tmp_path / "certificate.json").write_text(json.dumps(old))
    found = Certification.load(tmp_path / "certificate.json")
    assert found.version == 1 and found.signature is None and found.certificates[0].is_plain
    assert wrong(verify(tmp_path, setting.release)) == ["encoding and noise"]
