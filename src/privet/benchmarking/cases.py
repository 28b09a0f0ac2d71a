"""What `privet bench` measures: each case makes two pieces of work that do the same, ours and the
reference."""

from __future__ import annotations

import io
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import torch
from PIL import Image

from privet.adversaries import released as cached
from privet.adversaries.mlp import MLP
from privet.adversaries.stacked_mlps import Member, Target, train_stack
from privet.benchmarking.ratios import Case, Work
from privet.core.parallel_map import cores, in_order
from privet.data.portraits.source import portraits
from privet.data.schema import ImageSchema, Schema, learn_schema
from privet.data.sources import load
from privet.data.word_vectors import Vocabulary
from privet.language.private_words.mechanism import PrivateWords
from privet.methods.tiprdc import TIPRDC
from privet.nets import registry as nets
from privet.release.apply import ApplyOptions, apply, at_once
from privet.release.noise import Noise
from privet.release.release import Release
from privet.release.runtime import read_graph, session
from privet.train.game import Run

# Of a CelebA picture.
HEIGHT, WIDTH = 218, 178


def release_rows(folder: Path, rows: int = 40_000) -> tuple[Work, Work]:
    """Rows of six numbers and six categories, released by hedge at its published width."""
    rng = np.random.default_rng(0)
    columns = {f"n{i}": rng.standard_normal(rows) for i in range(6)}
    columns |= {
        f"c{i}": np.array([f"value {j}" for j in range(4 + 2 * i)])[
            rng.integers(0, 4 + 2 * i, rows)
        ]
        for i in range(6)
    }
    frame = pd.DataFrame(columns)
    frame.to_parquet(folder / "rows.parquet")
    schema = learn_schema(load(folder / "rows.parquet", progress=False))
    return _releasing(hedge(schema, folder / "release"), folder / "rows.parquet", rows, folder)


def release_pictures(folder: Path, pictures: int = 128, width: float = 1.0) -> tuple[Work, Work]:
    """JPEGs of a photograph's size, released by TIPRDC's extractor at 64 x 64."""
    photographs(folder / "photos", pictures)
    return _releasing(
        extractor(ImageSchema(3, 64, 64), folder / "release", width),
        folder / "photos",
        pictures,
        folder,
    )


def hedge(schema: Schema, folder: Path) -> Path:
    """A hedge release at its published width whose network has learned nothing, which takes as long
    as one that has."""
    torch.manual_seed(0)
    settings = {"dims": 2, "sigma": 0.4}
    card = {"method": "hedge", "private": []}
    Release(
        schema,
        ("hedge", settings),
        nets.build("hedge", schema, settings),
        Noise("gaussian", (2,), 0.4),
        card,
    ).save(folder)
    return folder


def extractor(schema: Schema, folder: Path, width: float = 1.0) -> Path:
    """The same of TIPRDC."""
    torch.manual_seed(0)
    settings = {"width": width}
    card = {"method": "tiprdc", "private": []}
    Release(
        schema, ("extractor", settings), nets.build("extractor", schema, settings), None, card
    ).save(folder)
    return folder


def _releasing(release: Path, source: Path, n: int, folder: Path) -> tuple[Work, Work]:
    options = ApplyOptions(home=folder)
    return lambda: apply(
        release, [source], folder / "out.parquet", progress=False, options=options
    ), bare(release, n)


def bare(release: Path, n: int) -> Work:
    """onnxruntime alone with the same graph, batches and threads: one batch, which stays in memory,
    again and again."""
    loaded = Release.load(release)
    run, size = session(read_graph(release), threads=1), at_once(loaded.schema)
    inputs = {"x": loaded.schema.random(size)}
    if loaded.noise is not None:
        inputs["noise"] = loaded.noise.draw(size, seed=0)

    def work() -> None:
        for _ in in_order(
            lambda _: run.run(["z"], inputs), range(-(-n // size)), cores(), 2 * cores()
        ):
            pass

    return work


def packing(folder: Path, pictures: int = 1000) -> tuple[Work, Work]:
    paths = photographs(folder / "photos", pictures)

    def ours() -> None:
        with mock.patch.dict("os.environ", PRIVET_CACHE=str(folder / "cache")):
            load(folder / "photos", progress=False)
        shutil.rmtree(folder / "cache")

    return ours, lambda: bare_pillow(paths)


def bare_pillow(paths: list[Path], chunk: int = 64) -> None:
    """Every picture decoded to an array, in as many threads as ours takes, and forgotten."""

    def decode(some: list[Path]) -> None:
        for path in some:
            with Image.open(path) as picture:
                np.asarray(picture)

    with ThreadPoolExecutor(cores()) as pool:
        list(
            pool.map(
                decode, [paths[start : start + chunk] for start in range(0, len(paths), chunk)]
            )
        )


def photographs(folder: Path, n: int, drawn: int = 200) -> list[Path]:
    """JPEGs of the size of CelebA's, with a CSV file: drawn faces, enlarged."""
    folder.mkdir(parents=True)
    faces = portraits(drawn, progress=False).records
    encoded = []
    for face in faces:
        target = io.BytesIO()
        Image.fromarray(face.transpose(1, 2, 0)).resize(
            (WIDTH, HEIGHT), Image.Resampling.BICUBIC
        ).save(target, "JPEG", quality=90)
        encoded.append(target.getvalue())
    paths = [folder / f"{i:06d}.jpg" for i in range(n)]
    for i, path in enumerate(paths):
        path.write_bytes(encoded[i % len(encoded)])
    labels = {
        "file": [path.name for path in paths],
        "person": np.arange(n),
        "tall": np.arange(n) % 2,
    }
    pd.DataFrame(labels).to_csv(folder / "labels.csv", index=False)
    return paths


def stacked(folder: Path, records: int = 4000, length: int = 64) -> tuple[Work, Work]:
    def vectors(n: int, seed: int) -> tuple[torch.Tensor, np.ndarray]:
        x = torch.randn(n, length, generator=torch.Generator().manual_seed(seed))
        return x, np.asarray(x[:, 0] * x[:, 1] > 0).astype(np.int64)

    (x, y), (other, truth) = vectors(records, 0), vectors(records // 4, 1)
    members = [Member(0, rate, decay, 0) for rate, decay in product(MLP.rates, MLP.decays)]

    def train(some: list[Member]) -> None:
        train_stack(
            lambda: x,
            [Target(y, 2, truth)],
            other,
            some,
            hidden=(128,),
            dropout=0.1,
            epochs=3,
            least=0,
            batch=MLP.batch,
        )

    def one_by_one() -> None:
        for member in members:
            train([member])

    return lambda: train(members), one_by_one


def step(folder: Path) -> tuple[Work, Work]:
    data = portraits(800, progress=False)

    def learn(fused: bool) -> None:
        TIPRDC(width=0.125, warmup=0, epochs=3, fused=fused).fit(
            data, ["beard"], run=Run(device="cpu", progress=False)
        )

    return lambda: learn(True), lambda: learn(False)


def features(folder: Path, passes: int = 8) -> tuple[Work, Work]:
    data = portraits(600, progress=False)
    schema, settings = learn_schema(data), {"width": 0.125}
    release = Release(
        schema,
        ("extractor", settings),
        nets.build("extractor", schema, settings),
        None,
        {"private": ["beard"]},
    )

    def look(held: bool) -> None:
        with nullcontext() if held else mock.patch.object(cached, "storage", lambda _device: 0.0):
            seen = cached.Released(release, data.part("attack"), ["beard"], torch.device("cpu"))
            for seed in range(passes):
                for _ in seen.batches(64, seed):
                    pass

    return lambda: look(True), lambda: look(False)


def words(folder: Path, size: int = 2000, length: int = 100, n: int = 3000) -> tuple[Work, Work]:
    rng = np.random.default_rng(0)
    points = 0.5 * rng.standard_normal((size, length))
    private = PrivateWords(Vocabulary.of([f"word{i}" for i in range(size)], points), 10.0, "cpu")
    codes = rng.integers(1, size, n)
    single = points.astype(np.float32)

    def loop() -> None:
        for code in codes:
            direction = rng.standard_normal(length).astype(np.float32)
            y = single[code] + direction / np.linalg.norm(direction) * np.float32(
                rng.gamma(length, 0.1)
            )
            np.argmin(((single - y) ** 2).sum(1))

    return lambda: private.change(codes), loop


CASES = {
    case.name: case
    for case in (
        Case(
            "apply-rows",
            "`privet apply` on rows",
            "onnxruntime alone on one resident batch",
            release_rows,
        ),
        Case(
            "apply-pictures",
            "`privet apply` on JPEGs",
            "onnxruntime alone on one resident batch",
            release_pictures,
        ),
        Case(
            "packing",
            "reading a folder of JPEGs into the cache",
            "Pillow decoding them and keeping nothing",
            packing,
        ),
        Case("stack", "eight perceptrons trained as a stack", "one after the other", stacked),
        Case("step", "TIPRDC with one fused step", "three steps, one a player", step),
        Case(
            "features",
            "eight passes over released records that are kept",
            "releasing them for every pass",
            features,
        ),
        Case("words", "private words, many at once", "a loop over words", words),
    )
}
