"""What a network learned from raw records is learned once: for every release, for the raw records
themselves, for every process."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from privet.adversaries import raw_classifiers
from privet.adversaries.network_training import NetworkAdversary
from privet.adversaries.released import Released
from privet.adversaries.resnet import ResNet
from privet.data.schema import learn_schema
from privet.nets import registry as nets
from privet.release.release import Release
from small import small

CPU = torch.device("cpu")
ATTACK = ResNet(epochs=1, least=4, batch=16, rates=(3e-3,), width=0.1)


@pytest.fixture
def taught(monkeypatch) -> list[str]:
    """The networks of every training, by what they looked at; nothing is known from before."""
    seen: list[str] = []
    learn = NetworkAdversary.train

    def counted(self, lr, released, *more):
        seen.append(released.release.network[0])
        return learn(self, lr, released, *more)

    monkeypatch.setattr(NetworkAdversary, "train", counted)
    monkeypatch.setattr(raw_classifiers, "_memory", {})
    return seen


@pytest.fixture(scope="module")
def parts():
    """Raw records and features of them, of those who attack and those who choose."""
    data = small("image", 90)
    schema = learn_schema(data, ["u", "y"])
    torch.manual_seed(0)
    features = Release(
        schema, ("extractor", {"width": 0.1}), nets.build("extractor", schema, {"width": 0.1}), None
    )
    both = {"raw": Release.identity(schema), "features": features}
    seen = {
        name: [Released(r, data.part(part), ["u"], CPU) for part in ("attack", "select")]
        for name, r in both.items()
    }
    return seen, data.attribute("u")


def test_raw_records_are_learned_once(taught, parts):
    seen, u = parts
    first, _, again = (ATTACK.attack(*seen[kind], u) for kind in ("raw", "features", "raw"))
    ATTACK.attack(*seen["features"], u)
    assert taught == ["identity", "extractor", "extractor"]
    np.testing.assert_array_equal(first.answers(seen["raw"][1]), again.answers(seen["raw"][1]))


def test_another_seed_or_network_is_another_classifier(taught, parts):
    seen, u = parts
    for attack, seed in (
        (ATTACK, 0),
        (ATTACK, 1),
        (ResNet(epochs=1, least=5, batch=16, rates=(3e-3,), width=0.1), 0),
    ):
        attack.attack(*seen["raw"], u, seed)
    assert taught == ["identity"] * 3


def test_other_processes_find_it_on_the_shelf(taught, parts, tmp_path, monkeypatch):
    seen, u = parts
    with raw_classifiers.cache_folder(tmp_path / "classifiers"):
        first = ATTACK.attack(*seen["raw"], u)
        monkeypatch.setattr(raw_classifiers, "_memory", {})
        second = ATTACK.attack(*seen["raw"], u)
    assert taught == ["identity"] and len(list((tmp_path / "classifiers").iterdir())) == 1
    np.testing.assert_array_equal(first.answers(seen["raw"][1]), second.answers(seen["raw"][1]))
    monkeypatch.setattr(raw_classifiers, "_memory", {})
    ATTACK.attack(*seen["raw"], u)
    assert taught == ["identity"] * 2, "neither folder nor memory"


def test_half_a_file_is_no_classifier(taught, parts, tmp_path, monkeypatch):
    seen, u = parts
    with raw_classifiers.cache_folder(tmp_path):
        ATTACK.attack(*seen["raw"], u)
        (file,) = tmp_path.iterdir()
        file.write_bytes(file.read_bytes()[:100])
        monkeypatch.setattr(raw_classifiers, "_memory", {})
        ATTACK.attack(*seen["raw"], u)
    assert taught == ["identity"] * 2


def test_memory_holds_a_few(taught):
    for number in range(3 * raw_classifiers.IN_MEMORY):
        raw_classifiers.store(str(number), raw_classifiers.RawClassifier(0.5, {}))
    assert (
        len(raw_classifiers._memory) == raw_classifiers.IN_MEMORY
        and raw_classifiers.lookup(str(3 * raw_classifiers.IN_MEMORY - 1), CPU) is not None
    )
