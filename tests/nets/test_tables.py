"""The networks are those of TIPRDC's tables, and behave as their readers expect."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from privet.core.errors import PrivetError
from privet.data.schema import learn_schema
from privet.nets import convolutions, sequences
from privet.nets import plan as nets
from small import TRACES, small


def _convolutions(module: nn.Module) -> list[int]:
    return [
        m.out_channels
        for m in module.modules()
        if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)
    ]


def _linear(module: nn.Module) -> list[int]:
    return [m.out_features for m in module.modules() if isinstance(m, nn.Linear)]


def test_table_1():
    with torch.device("meta"):
        extractor = convolutions.Extractor((3, 218, 178))
        classifier = convolutions.Classifier(extractor.shape, 2)
        estimator = convolutions.Estimator((3, 218, 178), extractor.shape, 2)
    assert extractor.shape == (128, 54, 44), "Table 3 gives the features as 54 x 44 x 128"
    assert _convolutions(extractor) == [64] * 2 + [128] * 2
    assert _convolutions(classifier) == [256] * 3 + [512] * 6 and _linear(classifier) == [
        4096,
        4096,
        2,
    ]
    assert _convolutions(estimator) == [64] * 3 + [128] * 2 + [256] * 3 + [512] * 6
    assert estimator.pair.of_x.out_features == 4096 and _linear(estimator.pair.score) == [512, 1]


def test_table_3():
    with torch.device("meta"):
        nineteen = convolutions.Classifier((128, 54, 44), 2, plan=convolutions.TRUNK_19)
        residual = convolutions.ResidualClassifier((128, 54, 44), 2)
    assert _convolutions(nineteen) == [256] * 4 + [512] * 8 and _linear(nineteen) == [4096, 4096, 2]
    assert _convolutions(residual) == [128, 128, 256, 256, 512, 512] and _linear(residual) == [2]


def test_table_2():
    extractor = sequences.Extractor(1000)
    classifier = sequences.Classifier(extractor.shape, 2)
    estimator = sequences.Estimator(1000, extractor.shape, 2)
    assert (
        extractor.words.embedding_dim == extractor.lstm.hidden_size == 300
        and extractor.lstm.num_layers == 1
    )
    assert (
        classifier.trunk.lstm.hidden_size == 300
        and classifier.trunk.lstm.num_layers == 2
        and _linear(classifier) == [150, 2]
    )
    assert (
        estimator.trunk.lstm.num_layers == 2
        and estimator.pair.of_x.out_features == 150
        and _linear(estimator.pair.score) == [1]
    )


@pytest.mark.parametrize("modality", TRACES)
def test_every_plan_fits_together(modality):
    data = small(modality, 60)
    schema = learn_schema(data, ["u", "y"])
    plan = nets.plan(schema)
    x = torch.from_numpy(schema.inputs(data)[np.arange(8)])
    extractor = plan.extractor(0.05)
    z = extractor(x)
    assert all(
        size is None or size == given
        for size, given in zip(extractor.shape, z.shape[1:], strict=True)
    )
    assert plan.classifier(extractor.shape, 5, 0.05)(z).shape == (8, 5)
    together, apart = plan.estimator(extractor.shape, 2, 0.05)(
        x, z, torch.eye(2)[torch.arange(8) % 2]
    )
    assert together.shape == apart.shape == (8,)
    assert plan.decoder(extractor.shape, 0.05)(z).shape[:2] == (8, x.shape[1])


def test_the_shifted_pair_is_another_record_with_the_same_features():
    """M(x', z, u) computed by shifting inside is M computed on shifted records outside."""
    torch.manual_seed(0)
    pair = convolutions.Pair(6, 2, 16, 8)
    x, z, u = torch.randn(7, 6), torch.randn(7, 6), torch.randn(7, 2)
    torch.testing.assert_close(pair(x, z, u)[1], pair(x.roll(1, 0), z, u)[0])


def test_padding_changes_nothing():
    """A text is released and classified alike, however much padding its batch brings."""
    torch.manual_seed(0)
    extractor = sequences.Extractor(50, 0.1).eval()
    classifier = sequences.Classifier(extractor.shape, 2, 0.1).eval()
    x = torch.randint(2, 50, (3, 6))
    padded = torch.nn.functional.pad(x, (0, 5))
    torch.testing.assert_close(extractor(padded)[:, :6], extractor(x))
    assert (extractor(padded)[:, 6:] == 0).all()
    torch.testing.assert_close(classifier(extractor(padded)), classifier(extractor(x)))


def test_too_small_a_picture_is_said():
    with pytest.raises(PrivetError, match="at least 32"):
        convolutions.Extractor((3, 20, 40))
