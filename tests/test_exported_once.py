"""The memory of exports in tests: what differs is exported anew, what does not is not."""

from __future__ import annotations

import copy
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import onnx
import pytest
import torch
from onnx import helper
from torch import Tensor, nn

from exported_once import CannotTell, key_of, remembering
from privet.nets.additive import Additive


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line, self.drop = nn.Linear(3, 2), nn.Dropout(0.5)
        self.shape, self.settings = (2,), {"power": 2.0, "names": ["a", "b"]}

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.line(x)) ** self.settings["power"]


class Other(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.line(x)


POWER = 2.0


def bend(x: Tensor) -> Tensor:
    return x**POWER


class Patched(Net):
    def forward(self, x: Tensor) -> Tensor:
        return sum(bend(POWER * part) for part in (x, x))


def seeded(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return kind()


def test_every_difference_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    net = Net()

    def changed(change: str) -> Net:
        other = copy.deepcopy(net)
        exec(change, {"net": other, "torch": torch, "nn": nn})
        return other

    changes = (
        "net.line.weight.data[1, 2] += 1e-6",
        "net.line.bias = None",
        "net.line.to(torch.float64)",
        "net.settings['power'] = 3.0",
        "net.settings['names'].append('c')",
        "net.shape = (2, 1)",
        "net.drop.p = 0.25",
        "net.drop = nn.Identity()",
        "net.train(False)",
        "net.drop.train(False)",
        "net.more = nn.ReLU()",
    )
    nets = [net, *(changed(change) for change in changes), Other()]
    nets[-1].load_state_dict(net.state_dict())
    nets += [Additive(net, 0.5), Additive(net, 0.25)]
    keys = [key_of(one) for one in nets]
    assert len(set(keys)) == len(keys)
    assert key_of(copy.deepcopy(net)) == keys[0]
    x = torch.zeros(2, 3)
    assert len({key_of(x), key_of(x[:1]), key_of(x + 1), key_of(x.long()), key_of((x, x))}) == 5
    plain = key_of(seeded(Patched))
    for owner, name, other in (
        (sys.modules[__name__], "POWER", 3.0),
        (sys.modules[__name__], "bend", Other.forward),
        (Patched, "forward", Other.forward),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, other)
            assert key_of(seeded(Patched)) != plain, name
    assert key_of(seeded(Patched)) == plain


def test_what_cannot_be_told_apart_has_no_key() -> None:
    hooked, closed, looped = Net(), Net(), Net()
    hooked.register_forward_hook(lambda module, given, found: found + 1)
    power = 3
    closed.bend = lambda x: x**power
    looped.settings["self"] = looped
    for net in (hooked, closed, looped, object()):
        with pytest.raises(CannotTell):
            key_of(net)


def test_one_network_is_exported_once(tmp_path: Path) -> None:
    asked: list[nn.Module] = []

    def export(model: nn.Module, args: object, f: object = None, **options: object) -> object:
        asked.append(model)
        graph = helper.make_graph([], f"graph {len(asked)}", [], [])
        return SimpleNamespace(model_proto=helper.make_model(graph))

    def graph(*given: object, **options: object) -> str:
        return once(*given, **options).model_proto.graph.name

    net, x, once = Net(), (torch.zeros(2, 3),), remembering(export, tmp_path / "exports")
    for _ in range(2):
        assert graph(net, x, names=["x"]) == "graph 1"
        assert graph(copy.deepcopy(net), x, names=["x"]) == "graph 1"
        assert graph(net, x, names=["y"]) == "graph 2"
        assert graph(net, (torch.zeros(3, 3),), names=["x"]) == "graph 3"
        once = remembering(export, tmp_path / "exports")  # as in another process
    assert len(asked) == 3
    once(net, x, "file.onnx", names=["x"])
    once(net, x, "file.onnx", names=["x"])
    assert len(asked) == 5


def test_an_export_gives_the_same_bytes_twice() -> None:
    """Why one may stand for another; by torch's own function."""
    torch.manual_seed(0)
    net, x = Net().eval(), (torch.zeros(2, 3),)
    export = torch.onnx.export.__wrapped__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graphs = [export(net, x, dynamo=True, verbose=False).model_proto for _ in range(2)]
    contents = [graph.SerializeToString() for graph in graphs]
    assert contents[0] == contents[1]
    assert onnx.load_model_from_string(contents[0]).SerializeToString() == contents[0]
