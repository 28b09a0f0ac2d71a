"""What a participant knows travels beside the record, and nowhere else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privet import METHODS, Release, Run
from privet.core.errors import PrivetError
from privet.data.known_attributes import Given, Known, in_classes, know, quantiles
from privet.data.schema import learn_schema, schema_from_json
from privet.release.apply import apply
from small import TRACES, small

MODALITIES = [name for name in TRACES if name != "text"]
QUICK = {"aware": True, "width": 0.1, "pre_d": 0, "pre_g": 1, "rounds": 1, "itr_d": 1, "itr_g": 1}


def given(data, *names: str, bins: int = 4) -> Given:
    return Given(
        learn_schema(data, list(names)), know(data, [data.attribute(name) for name in names], bins)
    )


@pytest.mark.parametrize("modality", MODALITIES)
def test_the_record_is_untouched_and_u_stands_beside_it(modality):
    data = small(modality, 60)
    schema = given(data, "u", "y")
    plain, both = schema.plain.inputs(data)[:], schema.inputs(data)[:]
    assert both.shape[1:] == schema.shape and both.dtype == plain.dtype == schema.dtype
    np.testing.assert_array_equal(schema.own(both), plain)
    beside = both[:, plain.shape[1] :].reshape(len(both), 4, -1) / (
        255 if modality == "image" else 1
    )
    assert (beside == beside[:, :, :1]).all(), "constant over a record"
    for start, name in ((0, "u"), (2, "y")):
        np.testing.assert_array_equal(beside[:, start : start + 2, 0], np.eye(2)[data.labels[name]])


@pytest.mark.parametrize("modality", MODALITIES)
def test_batches_are_those_of_the_whole(modality):
    data = small(modality, 60).part("test")
    inputs = given(small(modality, 60), "u").inputs(data)
    index = np.array([3, 0, 3])
    np.testing.assert_array_equal(inputs[index], inputs[:][index])
    assert len(inputs) == len(data) and inputs.nbytes == inputs[:].nbytes


@pytest.mark.parametrize("modality", MODALITIES)
def test_survives_the_card(modality):
    schema = given(small(modality, 60), "u")
    assert schema_from_json(schema.to_json()) == schema
    assert schema.random(5).shape == (5, *schema.shape) and schema.random(5).dtype == schema.dtype
    assert schema.plain.plain is schema.plain


def test_missing_is_all_zeros_and_other_order_is_the_same_value():
    data = small("table", 60)
    schema = given(data, "u")
    data.labels["u"][:5] = -1
    assert not schema.inputs(data)[:][:5, schema.plain.shape[0] :].any()
    turned = Given(schema.base, (Known("u", ("yes", "no")),))
    np.testing.assert_array_equal(turned.inputs(data)[:][:, -2:], schema.inputs(data)[:][:, :-3:-1])


def test_a_number_is_given_as_equally_frequent_classes_of_fit():
    data = _with_number()
    fit = data.part("fit").labels["age"]
    edges = quantiles(data, "age", 4)
    shares = np.histogram(fit, [-np.inf, *edges, np.inf])[0] / len(fit)
    assert np.abs(shares - 0.25).max() < 0.05
    schema = given(data, "age", bins=4)
    own = schema.inputs(data)[:][:, -4:]
    np.testing.assert_array_equal(
        own.argmax(1), np.searchsorted(edges, data.labels["age"], side="right")
    )
    classes, (attribute,) = in_classes(data, [data.attribute("age")], 4)
    assert attribute.is_class and data.attribute("age").kind == "number", (
        "the data itself keeps its numbers"
    )
    np.testing.assert_array_equal(schema.inputs(classes)[:], schema.inputs(data)[:])
    with pytest.raises(PrivetError, match="too few values"):
        quantiles(data, "age", 100)


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        ([0, 1, None], [0, 1, -1]),
        ([True, False, True], [1, 0, 1]),
        (["no", "yes", ""], [0, 1, -1]),
        ([-1.0, 1.0, np.nan], [0, 1, -1]),
    ],
)
def test_files_may_write_yes_and_no_in_many_ways(column, codes):
    found = Known("u", ("no", "yes")).of_column(pd.Series(column, dtype=object), "file")
    np.testing.assert_array_equal(found, codes)


def test_a_value_nobody_knows_is_said():
    with pytest.raises(PrivetError, match="'u' is 'perhaps', and the release knows: no, yes"):
        Known("u", ("no", "yes")).of_column(pd.Series(["no", "perhaps"]), "file")
    np.testing.assert_array_equal(
        Known("u", ("a", "b"), (2.0,)).of_column(pd.Series(["1", "2", "x"]), "file"), [0, 1, -1]
    )


@pytest.fixture(scope="module")
def aware(tmp_path_factory):
    data = small("image", 120)
    folder = tmp_path_factory.mktemp("aware")
    METHODS["gap"](**QUICK).fit(data, ["u"], run=Run(progress=False, device="cpu")).save(folder)
    return data, folder


def test_apply_needs_u_and_pictures_alone_do_not_have_it(aware, tmp_path):
    import io

    from PIL import Image

    data, folder = aware
    release = Release.load(folder)
    buffer = io.BytesIO()
    Image.fromarray(data.records[0].transpose(1, 2, 0)).save(buffer, "PNG")
    (tmp_path / "one.png").write_bytes(buffer.getvalue())
    with pytest.raises(PrivetError, match="the release uses 'u' of every record"):
        apply(folder, [tmp_path / "one.png"], tmp_path / "out.parquet", progress=False)
    pd.DataFrame({"image": [buffer.getvalue()]}).to_parquet(tmp_path / "bare.parquet")
    with pytest.raises(PrivetError, match="a column 'u' beside the image"):
        apply(folder, [tmp_path / "bare.parquet"], tmp_path / "out.parquet", progress=False)
    assert not (tmp_path / "out.parquet").exists() and release.shape == (3, 32, 32)


def test_an_audit_shows_raw_records_without_u(aware):
    """The yardstick, and what decoders are to rebuild, are the plain records: with u beside them
    nothing would be left to read."""
    from privet.adversaries.decoder import ReversedExtractor
    from privet.adversaries.released import released_parts

    data, folder = aware
    release = Release.load(folder)
    raw = released_parts(
        Release.identity(release.schema.plain), data, ["u"], release.module.reach.device
    )
    np.testing.assert_array_equal(
        raw["test"].feed.batch(np.arange(4)).x.numpy(), data.records[data.part("test").rows[:4]]
    )
    parts = released_parts(release, data, ["u"], release.module.reach.device)
    made, trained = ReversedExtractor(epochs=1, width=0.05).attack(
        *parts.values(), release.schema.plain, progress=False
    )
    assert (
        trained.rebuild(parts["test"]).shape == (len(parts["test"]), 3, 32, 32)
        and made.figures["psnr"].value > 0
    )


def test_other_data_must_have_the_attribute(aware):
    _, folder = aware
    without = small("image", 40)
    del without.attributes["u"]
    with pytest.raises(PrivetError, match="has no such attribute"):
        Release.load(folder).schema.inputs(without)


def _with_number():
    from dataclasses import replace

    from privet.data.dataset import Attribute

    data = small("table", 200)
    ages = np.random.default_rng(0).integers(18, 80, len(data)).astype(float)
    attributes = {**data.attributes, "age": Attribute("age", "number")}
    return replace(data, attributes=attributes, labels={**data.labels, "age": ages})
