"""One release per person: the mean code with noise once, the same whenever it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

import privet
from privet.core.errors import PrivetError
from privet.data.schema import learn_schema
from privet.nets import registry as nets
from privet.release.apply import ApplyOptions, apply
from privet.release.noise import Noise
from privet.release.per_person import check_additive
from privet.release.release import Release
from small import small

PEOPLE, EACH, SIGMA = 60, 5, 0.4


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> tuple[Path, pd.DataFrame, np.ndarray]:
    """A hedge release that has learned nothing, people with five records each, and their codes."""
    folder = tmp_path_factory.mktemp("people")
    data = small("table", PEOPLE * EACH)
    torch.manual_seed(0)
    schema, settings = learn_schema(data, ["u", "y"]), {"dims": 2, "sigma": SIGMA, "width": 0.1}
    release = Release(
        schema,
        ("hedge", settings),
        nets.build("hedge", schema, settings),
        Noise("gaussian", (2,), SIGMA),
        {"method": "hedge", "private": ["u"]},
    )
    release.save(folder / "release")
    who = np.random.default_rng(0).permutation(np.repeat(np.arange(PEOPLE), EACH))
    frame = data.records.assign(
        person=[f"p{i:02}" for i in who], town=who % 3, day=np.arange(len(who))
    )
    x = torch.from_numpy(schema.encode(data.records))
    codes = release.forward(x, torch.zeros(len(x), 2)).detach().numpy()
    return folder / "release", frame, codes


def _apply(world, tmp_path, frame=None, keep=("person",), seed=None, **options) -> pd.DataFrame:
    folder, whole, _ = world
    (whole if frame is None else frame).to_parquet(tmp_path / "in.parquet")
    out = apply(
        folder,
        [tmp_path / "in.parquet"],
        tmp_path / "out.parquet",
        keep,
        seed=seed,
        progress=False,
        options=ApplyOptions(per="person", **options),
    )
    given = pq.read_table(out).to_pandas()
    return given.assign(z=[tuple(z) for z in given["z"]]).set_index("person")


def test_it_is_the_mean_code_and_noise_once(world, tmp_path):
    _, frame, codes = world
    given = _apply(world, tmp_path, seed=1).sort_index()
    assert len(given) == PEOPLE
    means = pd.DataFrame(codes).groupby(frame["person"].to_numpy()).mean().to_numpy()
    noise = (np.array(given["z"].tolist()) - means) / SIGMA
    assert abs(noise.mean()) < 4 / np.sqrt(noise.size)
    assert abs(noise.std() - 1) < 4 / np.sqrt(2 * noise.size), "not that of five records averaged"
    step = 2.0**-2 / 4096
    steps = np.array(given["z"].tolist()) / step
    np.testing.assert_array_equal(steps, np.round(steps))


def test_the_same_records_give_the_same_numbers_in_any_order(world, tmp_path):
    _, frame, _ = world
    before = _apply(world, tmp_path)
    after = _apply(world, tmp_path, frame.sample(frac=1, random_state=1))
    assert (before["z"] == after["z"][before.index]).all()
    other = _apply(world, tmp_path, campaign="another")
    assert (before["z"] != other["z"][before.index]).all()
    assert list(before.index) != sorted(before.index), "people are shuffled"
    names = {f"p{i:02}": f"q{i:02}" for i in range(PEOPLE)}
    renamed = _apply(world, tmp_path, frame.assign(person=frame["person"].map(names)))
    assert not set(before["z"]) & set(renamed["z"]), "equal records of another person"


def test_a_changed_or_a_further_record_changes_its_person_alone(world, tmp_path):
    _, frame, _ = world
    before = _apply(world, tmp_path)
    changed = frame.copy()
    changed.iloc[7, 0] += 1e-3
    after = _apply(world, tmp_path, changed)
    differs = before["z"] != after["z"][before.index]
    assert list(differs[differs].index) == [frame["person"].iloc[7]]
    less = _apply(world, tmp_path, frame.drop(index=frame.index[7]))
    differs = before["z"] != less["z"][before.index]
    assert list(differs[differs].index) == [frame["person"].iloc[7]]


def test_at_most_so_many_records_of_a_person(world, tmp_path):
    """The noise-free part is the mean of two of the five codes, not always of the first two."""
    _, frame, codes = world
    given = _apply(world, tmp_path, seed=1, records=EACH)
    assert (given["z"] == _apply(world, tmp_path, seed=1)["z"]).all()
    two = _apply(world, tmp_path, seed=1, records=2).sort_index()
    noise = np.array(given.sort_index()["z"].tolist()) - np.array(
        pd.DataFrame(codes).groupby(frame["person"].to_numpy()).mean()
    )
    pairs = np.array(two["z"].tolist()) - noise
    first = 0
    for name, found in zip(two.index, pairs, strict=True):
        own = codes[frame["person"].to_numpy() == name]
        means = [(i, j, (own[i] + own[j]) / 2) for i in range(EACH) for j in range(i)]
        i, j, nearest = min(means, key=lambda pair: np.abs(pair[2] - found).max())
        assert np.abs(nearest - found).max() < 1e-3
        first += {i, j} == {0, 1}
    assert first < PEOPLE / 3, "one pair in ten is the first two"


def test_the_file_says_that_nothing_links_records(world, tmp_path):
    _apply(world, tmp_path, keep=("person", "town"), records=3)
    about = json.loads(pq.read_schema(tmp_path / "out.parquet").metadata[b"privet"])
    assert about["per"] == "person" and about["records"] == 3
    assert about["leaves"]["records"] == 1 and about["leaves"]["kept"] == ["person", "town"]


def test_what_cannot_be_done_is_one_sentence(world, tmp_path):
    folder, frame, _ = world
    with pytest.raises(PrivetError, match="'day' differs between records of a person"):
        _apply(world, tmp_path, keep=("day",))
    with pytest.raises(PrivetError, match="--person COLUMN"):
        _apply(world, tmp_path, frame.rename(columns={"person": "who"}), keep=())
    with pytest.raises(PrivetError, match="'town' has gaps"):
        _apply(world, tmp_path, frame.assign(town=None), keep=(), person="town")
    with pytest.raises(PrivetError, match="goes with --per person"):
        ApplyOptions(records=2)
    with pytest.raises(PrivetError, match="record or person"):
        ApplyOptions(per="group")  # type: ignore[arg-type]
    with pytest.raises(PrivetError, match="on one machine"):
        privet.apply(
            folder, tmp_path / "in.parquet", tmp_path / "x.parquet", ray="auto",
            options=ApplyOptions(per="person"),
        )  # fmt: skip
    assert not (tmp_path / "x.parquet").exists()


@pytest.mark.parametrize("network", ["extractor", "codebook"])
def test_other_releases_are_refused(world, tmp_path, network):
    """One without noise, and one whose noise replaces a symbol."""
    _, frame, _ = world
    data = small("table", 40)
    schema = learn_schema(data, ["u", "y"])
    settings = {
        "extractor": {"width": 0.05},
        "codebook": {"symbols": 4, "dims": 2, "flip": 0.2, "width": 0.1},
    }
    noise = None if network == "extractor" else Noise("uniform", (2,), 0.2)
    torch.manual_seed(0)
    module = nets.build(network, schema, settings[network])
    Release(schema, (network, settings[network]), module, noise, {"private": ["u"]}).save(
        tmp_path / "release"
    )
    with pytest.raises(PrivetError, match="--per person needs a release that adds noise"):
        _apply((tmp_path / "release", frame, None), tmp_path)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("how", ["adds", "multiplies", "adds more"])
def test_that_a_graph_adds_is_tried(how):
    class Graph:
        def run(self, _, given):
            code, noise = given["x"][:, :2], given["noise"]
            louder = {"adds": 0.4, "multiplies": 0.4 * code, "adds more": 0.41}[how]
            return [code + louder * noise]

    x = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    law = Noise("gaussian", (2,), 0.4)
    if how == "adds":
        check_additive(Graph(), law, x)
    else:
        with pytest.raises(PrivetError, match="does something else"):
            check_additive(Graph(), law, x)
