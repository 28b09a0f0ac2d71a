"""Importance of pixels, held against a service that is known to the last number: it reads the green
of the left half."""

from __future__ import annotations

import base64
import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from masks import Reader, halves
from privet import Run
from privet.data.dataset import Attribute
from privet.methods.services.segmentation import dice
from privet.methods.services.service import Service
from privet.methods.unoise import UNoise, UNoiseNetworks
from privet.nets.convolutions import prepare
from privet.nets.unet import NoiseMap

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import saliency
from saliency_parts import page
from saliency_parts.explainers import (
    asked,
    explainers,
    grad_cam,
    integrated_gradients,
    occlusion,
    own_answer,
)
from saliency_parts.methods import SHARES, at_random, compare, curve, margin, obscure, of_map, ranks
from saliency_parts.record import record
from tables import read

GREY = torch.zeros(3)
captum_is_here = pytest.mark.skipif(
    "not __import__('importlib.util').util.find_spec('captum')", reason="captum is an extra"
)


@pytest.fixture(scope="module")
def pictures():
    data = halves(24)
    return prepare(torch.from_numpy(data.records)), torch.from_numpy(data.labels["where"])


@pytest.fixture(scope="module")
def service():
    return Service(Attribute("where", "mask"), Reader())


def left(x: torch.Tensor) -> torch.Tensor:
    """What a perfect way would say."""
    return (torch.arange(x.shape[3]) < x.shape[3] // 2).float().expand(len(x), *x.shape[2:])


def test_ranks_are_an_order_that_follows_importance_and_favours_no_place_among_equals():
    importance = torch.randint(0, 5, (6, 8, 9), generator=torch.Generator().manual_seed(0)).float()
    order = ranks(importance).flatten(1)
    assert torch.equal(order.sort(1).values, torch.arange(72).expand(6, 72))
    by_rank = importance.flatten(1).gather(1, order.argsort(1))
    assert (by_rank[:, :-1] >= by_rank[:, 1:]).all()
    first = (ranks(torch.zeros(200, 4, 10)) < 20).float().mean((0, 2))
    assert (first - 0.5).abs().max() < 0.1, "a row is kept more often than the others"


@pytest.mark.parametrize("fill", ["noise", "grey"])
def test_obscuring_keeps_just_the_share_that_was_asked_for(pictures, fill):
    x, _ = pictures
    order = ranks(at_random()(x))
    for share in (0.0, 0.3, 1.0):
        same = (obscure(x, order, share, fill, GREY + 7) == x).all(1)
        assert (same.sum((1, 2)) == round(share * 256)).all() and (
            same == (order < round(share * 256))
        ).all()
    again = [obscure(x, order, 0.3, fill, GREY, seed=seed) for seed in (1, 1, 2)]
    assert torch.equal(again[0], again[1]) and torch.equal(again[0], again[2]) == (fill == "grey")


def test_a_perfect_way_needs_half_the_pixels_and_beats_chance(service, pictures):
    x, truth = pictures
    perfect = curve("perfect", service, x, truth, ranks(left(x)), "noise", GREY)
    blind = curve("chance", service, x, truth, ranks(at_random()(x)), "noise", GREY)
    worst = curve("worst", service, x, truth, ranks(-left(x)), "noise", GREY)
    values = dict(zip(perfect.shares, perfect.scores, strict=True))
    assert values[0.5].value == values[1.0].value == 1.0 and values[0.05].value < 0.95
    assert perfect.area.value > blind.area.value > worst.area.value
    assert blind.area.low <= blind.area.value <= blind.area.high
    ahead = margin(perfect, worst)
    assert ahead.low < ahead.value < ahead.high and ahead.value == pytest.approx(
        perfect.area.value - worst.area.value
    )
    by_hand = np.trapezoid([figure.value for figure in blind.scores], SHARES) / (1 - SHARES[0])
    assert blind.area.value == pytest.approx(by_hand), "the mean of areas is the area of means"


def test_a_curve_of_classes_counts_right_answers(pictures):
    x, truth = pictures

    class Top(torch.nn.Module):
        def forward(self, x):
            seen = x[:, 1, :4, :4].mean((1, 2))
            return torch.stack([-seen, seen], dim=1)

    top = Service(Attribute("y", "binary", ("no", "yes")), Top())
    labels = truth[:, 0, 0].long()
    assert own_answer(top, x).sum(1).eq(1).all()
    found = curve(
        "chance",
        top,
        x,
        torch.where(torch.arange(len(x)) < 4, -1, labels),
        ranks(at_random()(x)),
        "grey",
        GREY,
    )
    assert found.scores[-1].value == 1.0 and found.scores[-1].n == len(x) - 4, (
        "a picture without a label is not counted"
    )


def test_the_noise_map_says_one_less_its_noise(pictures):
    x, _ = pictures
    veil = NoiseMap((3, 16, 16), "small")
    said = of_map(veil)(x)
    assert torch.allclose(said, 1 - veil.eval().map(x).squeeze(1)) and said.shape == (24, 16, 16)


def test_occlusion_is_what_covering_each_square_costs(service, pictures):
    x, _ = pictures
    found = occlusion(service, 4, 4, GREY)(x[:5])
    where = own_answer(service, x[:5])
    for row in range(0, 16, 4):
        for column in range(0, 16, 4):
            covered = x[:5].clone()
            covered[:, :, row : row + 4, column : column + 4] = 0
            cost = asked(service, x[:5], where) - asked(service, covered, where)
            assert torch.allclose(
                found[:, row : row + 4, column : column + 4],
                cost.detach()[:, None, None].expand(5, 4, 4),
                atol=1e-4,
            )
    assert found[:, :, 8:].abs().max() < 1e-5, "the half that is not read matters"


def test_integrated_gradients_add_up_to_what_grey_costs(service, pictures):
    x, _ = pictures
    found = integrated_gradients(service, GREY)(x)
    where = own_answer(service, x)
    cost = asked(service, x, where) - asked(service, torch.zeros_like(x), where)
    assert torch.allclose(found.sum((1, 2)), cost.detach(), atol=1e-4)
    assert found[:, :, 8:].abs().max() < 1e-6, "the half that is not read matters"


def test_grad_cam_shows_what_speaks_for_the_answer(service, pictures):
    x, truth = pictures
    found = grad_cam(service, service.module.look)(x)
    assert torch.equal(found > 0, truth.bool()), "positive just where green raises the score"
    assert dice(found > 0, truth).min() == 1


def test_the_page_shows_every_way_and_needs_nothing_else(service, pictures):
    x, truth = pictures
    ways = {"U-Noise <small>": left, "chance": at_random()}
    found, maps = compare(
        ways, service, x, truth, GREY, data="halves", notes=["Something was left out."]
    )
    assert found.raw.value == 1.0 and len(found.curves) == 8 and set(found.seconds) == set(ways)
    kept = {
        name: obscure(x[:1], ranks(one[:1]), 0.3, "grey", GREY)[0].numpy()
        for name, one in maps.items()
    }
    cells = page.strip(
        x[0].numpy(), truth[0].numpy(), {name: one[0].numpy() for name, one in maps.items()}, kept
    )
    html = page.render(found, [cells])
    assert (
        "<small>" not in html
        and "U-Noise &lt;small&gt;" in html
        and "Something was left out." in html
    )
    assert "http://" not in html and "https://" not in html and "<script" not in html
    original = Image.open(io.BytesIO(base64.b64decode(cells[0].png)))
    assert (
        original.size == (16, 16)
        and np.abs(np.asarray(original).transpose(2, 0, 1) / 127.5 - 1 - x[0].numpy()).max() < 0.01
    )
    assert len(cells) == 2 + 2 * len(maps)


def test_a_higher_curve_is_drawn_higher(service, pictures):
    x, truth = pictures
    one = curve("chance", service, x, truth, ranks(at_random()(x)), "grey", GREY)
    lower = replace(
        one, name="lower", scores=tuple(replace(f, value=f.value / 2) for f in one.scores)
    )
    svg = ElementTree.fromstring(str(page.picture([one, lower], ["chance", "lower"], "Dice")))
    spots = {
        way: [float(e.attrib["cy"]) for e in svg.iter() if e.attrib.get("class") == f"dot {way}"]
        for way in ("way0", "way1")
    }
    assert all(high < low for high, low in zip(spots["way0"], spots["way1"], strict=True)) and len(
        spots["way0"]
    ) == len(SHARES)


def our_service(task: str) -> tuple[Service, torch.Tensor]:
    """A service as U-Noise makes it, not taught, whose every layer has both signs, and pictures
    that its squares do not fit."""
    data = halves(24, side=36)
    problem = UNoise().problem(data, ["u"], [task], [], Run(device="cpu"))
    torch.manual_seed(2)
    service = UNoiseNetworks(problem, UNoise(width=0.05)).services[0]
    for norm in service.module.modules():
        if isinstance(norm, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(norm.bias, std=0.5)
            torch.nn.init.normal_(norm.weight)
    return service, prepare(torch.from_numpy(data.records[:3]))


@captum_is_here
@pytest.mark.parametrize("task", ["where", "y"])
def test_explainers_say_what_captum_says(task):
    from captum import attr

    service, x = our_service(task)
    grey = torch.tensor([0.1, -0.2, 0.3])
    base = grey.view(1, -1, 1, 1).expand(x.shape)

    def score(z, where):
        return asked(service, z, where)

    def agree(own, theirs):
        assert torch.allclose(own(x), theirs, atol=1e-4 * float(theirs.abs().max()))
        assert theirs.abs().max() > 0

    where = own_answer(service, x)
    module = service.module
    layer = module.deepest if task == "where" else module.get_submodule("body")
    wrapped = Wrapped(service)
    cam = attr.LayerGradCam(wrapped, layer).attribute(x, additional_forward_args=(where,))
    cam = attr.LayerAttribution.interpolate(cam.relu(), x.shape[2:], "bilinear")
    agree(grad_cam(service, layer), cam.detach().squeeze(1))
    squares = attr.Occlusion(score).attribute(
        x,
        sliding_window_shapes=(3, 8, 8),
        strides=(3, 5, 5),
        baselines=base,
        additional_forward_args=(where,),
    )
    agree(occlusion(service, 8, 5, grey), squares.detach().mean(1))
    parts = attr.IntegratedGradients(score).attribute(
        x, base, additional_forward_args=(where,), n_steps=32
    )
    agree(integrated_gradients(service, grey, 32), parts.sum(1))
    agree(integrated_gradients(service, grey, 32, signed=False), parts.abs().sum(1))


class Wrapped(torch.nn.Module):
    """The service's own answer as a module, in which captum finds its layers."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.module, self.service = service.module, service

    def forward(self, x, where):
        return asked(self.service, x, where)


@pytest.mark.parametrize("task", ["where", "y"])
def test_explainers_leave_our_services_as_they_are(task):
    service, x = our_service(task)
    before = {name: value.clone() for name, value in service.module.state_dict().items()}
    for name, ask in explainers(service, x, GREY).items():
        found = ask(x)
        assert found.shape == (3, 36, 36) and found.isfinite().all()
        assert torch.allclose(ask(x[1:2]), found[1:2], atol=1e-4), (
            f"{name}: a picture's map depends on the others of its batch"
        )
    assert all(
        torch.equal(value, before[name]) for name, value in service.module.state_dict().items()
    )
    assert not any(p.grad is not None for p in service.module.parameters())


def test_what_matters_most_is_deleted_first(service, pictures):
    x, truth = pictures
    order = ranks(left(x))
    deleted = curve("perfect", service, x, truth, order, "noise", GREY, order="deletion")
    turned = curve("worst", service, x, truth, ranks(-left(x)), "noise", GREY)
    perfect = curve("perfect", service, x, truth, order, "noise", GREY)
    assert deleted.area.value == pytest.approx(turned.area.value, abs=0.02)
    assert deleted.area.value < perfect.area.value
    assert deleted.area.better == "lower" and perfect.area.better == "higher"


def test_a_run_is_measured_as_it_goes_and_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(saliency.privet, "load", lambda *_: halves(40, side=32))
    out = tmp_path / "out"
    words = f"--data x --task where --private u --out {out} --levels 4 4 4 --lessons 1 --epochs 1"
    words += " --c 0.01 0.1 1 --around --pictures 4 --examples 2 --device cpu --seconds"
    for seconds, sizes in (("0", 1), ("100", 3)):
        monkeypatch.setattr(sys, "argv", ["saliency.py", *words.split(), seconds])
        assert saliency.main() == 0
        told = json.loads((out / "saliency.json").read_text())
        assert len(told["learned_on_select"]) == sizes, "nothing new is begun when time is up"
    assert len(told["learned_on_select"]["small"]["areas"]) == 3
    assert {name.name for name in out.iterdir()} == {"saliency.json", "saliency.html", "maps.png"}
    record([out / "saliency.json"], "x", "a machine", tmp_path)
    ways, grid = read(tmp_path / "x.json"), read(tmp_path / "x-c.json")
    assert "--sizes small medium large" in ways.command[-1], "the first size tries every c"
    assert [row["way"] for row in ways.rows] == list(told["comparison"]["seconds"])
    area = next(c for c in told["comparison"]["curves"] if c["order"] == "deletion")["area"]
    assert float(ways.rows[0]["deletion_noise"]["value"]) == round(area["value"], 3)
    assert [row["c"] for row in grid.rows] == ["0.01", "0.1", "1"]
    assert sum(bool(row["small"].get("strong")) for row in grid.rows) == 1
