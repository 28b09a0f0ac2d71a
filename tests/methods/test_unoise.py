"""U-Noise: noise where the service can do without the pixel, quiet where it cannot; masks only
where they are tasks."""

from __future__ import annotations

import dataclasses
import io
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from masks import Reader, halves
from privet import METHODS, Release, Run
from privet.auditing.certify import why_not_certifiable
from privet.cli import main as cli
from privet.core.errors import PrivetError
from privet.methods.services.segmentation import (
    dice,
    mask_loss,
    mirrored,
    new_service,
    teaching_phase,
)
from privet.methods.services.service import Service
from privet.methods.unoise import UNoise, UNoiseNetworks, hardened, patchy
from privet.nets.convolutions import prepare
from privet.train.feed import Batch
from privet.train.game import Game, Move, Phase, Player
from small import small

QUIET = Run(progress=False, device="cpu")
SMALL = {"size": "small", "width": 0.05, "batch": 16, "lr": 3e-2}


@pytest.fixture(scope="module")
def data():
    return halves()


@pytest.fixture(scope="module")
def problem(data):
    return UNoise().problem(data, ["u"], ["where"], [], QUIET)


def veiled(problem, c: float) -> UNoiseNetworks:
    """A map learned for a service whose needs are known."""
    torch.manual_seed(0)
    method = UNoise(**SMALL, c=c, epochs=20)
    networks = UNoiseNetworks(problem, method, [Service(problem.utility[0], Reader())])
    Game(networks.modules(), [networks.drown()], problem.feed(), method.batch, 0, "drowning").play(
        QUIET
    )
    return networks


@pytest.fixture(scope="module")
def networks(problem):
    return veiled(problem, 0.3)


def test_noise_is_loud_where_the_service_does_not_look_and_quiet_where_it_does(problem, networks):
    feed = problem.feed("test")
    with torch.inference_mode():
        loudness = networks.veil.eval().map(prepare(feed.batch(np.arange(len(feed))).x)).squeeze(1)
    needed, free = loudness[:, :, :7], loudness[:, :, 9:]
    assert free.mean() > 0.8 > needed.mean() + 0.3
    said = networks.judge(problem.feed("select"))
    assert (
        said["where"]["measure"] == "dice"
        and said["where"]["raw"] == 1
        and said["where"]["released"] > 0.9
    )
    assert (
        0.2 < said["mean map"] < 0.8
        and 0.3 < said["share of pixels kept"] < 0.7
        and said["n"] == len(problem.view("select"))
    )


def test_a_larger_weight_makes_more_noise_and_the_service_does_not_move(problem, networks):
    louder = veiled(problem, 30.0)
    feed = problem.feed("select")
    quiet, loud = networks.judge(feed), louder.judge(feed)
    assert (
        loud["mean map"] > quiet["mean map"] + 0.1
        and loud["where"]["released"] < quiet["where"]["released"]
    )
    assert all(one.services[0].module.sharp.item() == 8.0 for one in (networks, louder))


def test_a_service_learns_its_mask(problem):
    torch.manual_seed(0)
    service = new_service(problem, problem.utility[0], width=0.1)
    Game(
        {"service": service.module},
        [teaching_phase(service, 15, lr=1e-2)],
        problem.feed(),
        16,
        0,
        "teaching",
    ).play(QUIET)
    batch = problem.feed("select").batch(np.arange(len(problem.view("select"))))
    with torch.inference_mode():
        assert dice(service(prepare(batch.x)).squeeze(1) > 0, batch.labels["where"]).mean() > 0.9


def test_a_release_for_a_mask_is_saved_loaded_and_says_what_it_is(data, tmp_path):
    release = UNoise(**SMALL, lessons=1, epochs=1).fit(data, ["u"], ["where", "y"], run=QUIET)
    release.save(tmp_path)
    again = Release.load(tmp_path)
    x = release.schema.inputs(data.part("test"))
    assert np.array_equal(release(x, seed=1), again(x, seed=1)) and again.shape == (3, 16, 16)
    assert again.card["form"] == "record" and {
        "where",
        "y",
        "mean map",
        "share of pixels kept",
    } <= set(again.card["service"])
    assert why_not_certifiable(again), (
        "noise whose loudness depends on the record must not be certified as simply added"
    )


def test_a_killed_run_ends_in_the_same_weights(data, tmp_path, monkeypatch):
    method = UNoise(**SMALL, lessons=1, epochs=1)
    whole = method.fit(data, ["u"], ["where"], run=QUIET)
    run = dataclasses.replace(QUIET, folder=tmp_path, rounds_between=3)
    serve, seen = UNoiseNetworks.serve, []

    def dies(self, batch):
        seen.append(1)
        if len(seen) == 5:
            raise KeyboardInterrupt
        return serve(self, batch)

    monkeypatch.setattr(UNoiseNetworks, "serve", dies)
    with pytest.raises(KeyboardInterrupt):
        method.fit(data, ["u"], ["where"], run=run)
    monkeypatch.setattr(UNoiseNetworks, "serve", serve)
    resumed = method.fit(data, ["u"], ["where"], run=dataclasses.replace(run, resume=True))
    for key, value in whole.module.state_dict().items():
        assert torch.equal(value, resumed.module.state_dict()[key]), key


def test_a_mask_is_refused_in_one_sentence_where_a_class_is_needed(data):
    for name, method in METHODS.items():
        if "image" not in method.modalities:
            continue
        with pytest.raises(
            PrivetError, match=f"'where' is a mask, and {name} needs a class there"
        ) as refused:
            method().problem(data, ["where"], ["y"] if method.tasks == "needed" else [], [], QUIET)
        assert str(refused.value).count(".") == 1
        if method.tasks != "none" and not method.masks:
            with pytest.raises(PrivetError, match="'where' is a mask"):
                method().problem(data, ["u"], ["where"], [], QUIET)


def test_the_command_line_refuses_a_mask_with_exit_code_2_and_takes_it_as_a_task(
    data, tmp_path, monkeypatch, capsys
):
    files = [
        [_png(picture.transpose(1, 2, 0)), _png(255 * mask)]
        for picture, mask in zip(data.records, data.labels["where"], strict=True)
    ]
    frame = pd.DataFrame(files, columns=["image", "mask"]).assign(
        u=data.labels["u"], y=data.labels["y"]
    )
    frame.to_parquet(tmp_path / "pictures.parquet")
    words = [
        "--data",
        str(tmp_path / "pictures.parquet"),
        "--device",
        "cpu",
        "--out",
        str(tmp_path / "r"),
    ]
    for wrong in (
        ["tiprdc", "--private", "mask"],
        ["unoise", "--private", "mask", "--utility", "y"],
    ):
        monkeypatch.setattr(sys, "argv", ["privet", "learn", *wrong, *words])
        with pytest.raises(SystemExit) as left:
            cli.main()
        assert (
            left.value.code == 2
            and "'mask' is a mask" in capsys.readouterr().err
            and not (tmp_path / "r").exists()
        )
    quick = [
        word
        for key in ("size=small", "width=0.05", "lessons=1", "epochs=1")
        for word in ("--set", key)
    ]
    result = CliRunner().invoke(
        cli.app, ["learn", "unoise", "--private", "u", "--utility", "mask", *quick, *words]
    )
    assert result.exit_code == 0, result.output
    assert Release.load(tmp_path / "r").card["service"]["mask"]["measure"] == "dice"


def _png(picture: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG")
    return buffer.getvalue()


def test_bad_words_are_refused():
    with pytest.raises(PrivetError, match="no size of unoise 'huge'"):
        UNoise(size="huge")
    with pytest.raises(PrivetError, match="The setting c of unoise"):
        UNoise(c=-1)
    with pytest.raises(PrivetError, match="does not take table records"):
        UNoise().problem(small("table"), ["u"], ["y"], [], QUIET)


def test_dice_and_its_loss_agree_about_what_is_best():
    truth = (torch.rand(5, 8, 8, generator=torch.Generator().manual_seed(0)) < 0.3).to(torch.uint8)
    sure = 20 * (2 * truth.float() - 1).unsqueeze(1)
    assert torch.equal(dice(truth, truth), torch.ones(5)) and float(mask_loss(sure, truth)) < 1e-3
    assert float(dice(1 - truth, truth).max()) == 0 and float(mask_loss(-sure, truth)) > 1
    a, b = truth[0].numpy().astype(bool), truth[1].numpy().astype(bool)
    assert float(dice(truth[:1], truth[1:2])) == pytest.approx(
        2 * (a & b).sum() / (a.sum() + b.sum())
    )


def test_a_picture_and_its_mask_are_mirrored_together():
    torch.manual_seed(0)
    x = torch.rand(64, 1, 4, 6)
    seen, mask = mirrored(x, x[:, 0])
    assert torch.equal(seen[:, 0], mask)
    turned = (mask != x[:, 0]).flatten(1).any(1)
    assert 16 < int(turned.sum()) < 48 and torch.equal(mask[turned], x[turned, 0].flip(2))


def test_a_service_is_taught_on_pictures_that_are_noisy_in_places_and_clean_in_others():
    torch.manual_seed(0)
    x = torch.zeros(400, 3, 16, 16)
    seen = patchy(x, 2.0)
    loudness = seen.square().mean(1).sqrt()
    untouched = (seen == 0).flatten(1).all(1).float().mean()
    assert (
        0.15 < untouched < 0.35
        and float(loudness.max()) > 3
        and 0.1 < float((loudness == 0).float().mean()) < 0.6
    )
    phase = Phase(
        "lesson",
        1,
        [Player("service", Reader(), lambda batch: Move(batch.x.float().square().mean()))],
    )
    batch = Batch(torch.full((8, 3, 16, 16), 127, dtype=torch.uint8), {})
    clean, noisy = (
        float(hardened(phase, rough).players[0].objective(batch).loss) for rough in (0.0, 1.0)
    )
    assert noisy > 0.1 and clean == pytest.approx(127**2), (
        "without roughness the lesson is left as it is"
    )
