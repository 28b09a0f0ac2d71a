"""Network adversaries take every shape they say they suit, and read what is written plainly."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from privet import METHODS, Run
from privet.adversaries import raw_classifiers, released
from privet.adversaries.convolutional import VCL19, ResCL, Table1Classifier
from privet.adversaries.network import CUT, Dropout, ResidualMLP, StandardisedInput
from privet.adversaries.recurrent import Recurrent
from privet.adversaries.released import Released
from privet.adversaries.resnet import ResNet
from privet.adversaries.transformer import Transformer
from privet.adversaries.view import View
from privet.data.dataset import Attribute
from privet.data.schema import learn_schema
from privet.evidence.leakage import auc
from privet.nets import registry as nets
from privet.release.release import Release
from small import small

CPU = torch.device("cpu")
CLASS, NUMBER = Attribute("u", "binary", ("0", "1")), Attribute("age", "number")

MAPS = [
    View(shape)
    for shape in ((3, 32, 32), (3, 64, 64), (128, 16, 16), (64, 8, 8), (256, 4, 4), (5, 2, 9))
]
SERIES = [View(shape) for shape in ((6, 64), (32, 16), (2, 70))]
TEXTS = [View((None,), 50), View((None, 20))]
VECTORS = [View((size,)) for size in (1, 7, 128)]
READS = {
    Table1Classifier: MAPS + SERIES,
    VCL19: MAPS + SERIES,
    ResCL: MAPS + SERIES,
    ResNet: MAPS + SERIES,
    Recurrent: TEXTS,
    Transformer: TEXTS + SERIES,
    ResidualMLP: VECTORS,
}
CASES = [
    pytest.param(kind, view, id=f"{kind.name}-{view.shape}")
    for kind, views in READS.items()
    for view in views
]


def _records(view: View, n: int = 5, length: int = 9) -> torch.Tensor:
    torch.manual_seed(1)
    if view.vocabulary:
        return torch.randint(1, view.vocabulary, (n, length))
    if view.shape[0] == 3:
        return torch.randint(0, 256, (n, *view.shape), dtype=torch.uint8)
    return torch.randn(n, *(length if size is None else size for size in view.shape))


def _parts(data, release):
    return [Released(release, data.part(part), ["u"], CPU) for part in ("attack", "select", "test")]


def _raw(data) -> Release:
    return Release.identity(learn_schema(data, ["u", "y"]))


def _extracted(data, width: float = 0.1) -> Release:
    """Features that nobody taught to hide anything."""
    schema = learn_schema(data, ["u", "y"])
    torch.manual_seed(0)
    return Release(
        schema,
        ("extractor", {"width": width}),
        nets.build("extractor", schema, {"width": width}),
        None,
    )


@pytest.mark.parametrize("kind,view", CASES)
def test_one_answer_per_record_the_same_every_time(kind, view):
    z = _records(view)
    for attribute, outputs in ((CLASS, 3), (NUMBER, 1)):
        assert kind().suits(view, attribute)
        net = kind(width=0.1).build(view, outputs)
        taught = net.train()(z)
        assert taught.shape == (len(z), outputs) and torch.isfinite(taught).all()
        taught.sum().backward()
        assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in net.parameters()), (
            "a part that cannot learn is no part"
        )
        with torch.no_grad():
            first, second, alone = net.eval()(z), net(z), net(z[:1])
        assert torch.isfinite(first).all()
        torch.testing.assert_close(first, second, rtol=0, atol=0)
        torch.testing.assert_close(first[:1], alone, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", READS)
def test_suits_nothing_else(kind):
    others = [view for view in MAPS + SERIES + TEXTS + VECTORS if view not in READS[kind]]
    assert others and not any(kind().suits(view, CLASS) for view in others)
    assert not any(kind().suits(view, Attribute("face", "mask")) for view in READS[kind])


def test_what_the_poolings_would_leave_nothing_of_is_left_to_others():
    thin = View((8, 1, 16))
    assert not Table1Classifier().suits(thin, CLASS) and not VCL19().suits(thin, CLASS)
    for kind in (ResCL, ResNet):
        assert kind().suits(thin, CLASS)
        assert torch.isfinite(kind(width=0.1).build(thin, 2)(_records(thin))).all()


@pytest.mark.parametrize("kind", [Recurrent, Transformer])
@pytest.mark.parametrize("view", TEXTS, ids=["ids", "vectors"])
def test_padding_changes_nothing(kind, view):
    torch.manual_seed(0)
    net = kind(width=0.1).build(view, 2).eval()
    z = _records(view)
    z[1:3, 4:] = 0
    longer = torch.cat([z, torch.zeros_like(z)], dim=1)
    torch.testing.assert_close(net(longer), net(z))
    torch.testing.assert_close(net(z[1:3, :4]), net(z)[1:3])
    assert not torch.allclose(net(z[1:3, :3]), net(z)[1:3], atol=1e-6), (
        "a word less is another text"
    )


@pytest.mark.parametrize("kind", [Recurrent, Transformer])
@pytest.mark.parametrize("view", TEXTS, ids=["ids", "vectors"])
def test_the_order_of_words_and_the_empty_text_have_answers(kind, view):
    torch.manual_seed(0)
    net = kind(width=0.1).build(view, 2).eval()
    z = _records(view)
    assert not torch.allclose(net(z.flip(1)), net(z), atol=1e-6)
    assert torch.isfinite(net(torch.zeros_like(z))).all()


def test_words_are_left_out_in_training_only():
    net = Recurrent(width=0.1, word_dropout=0.5).build(TEXTS[0], 2).words
    x = torch.full((50, 20), 7)
    assert 0.4 < (net.train()(x)[0] == 0).all(2).float().mean() < 0.6
    assert not (net.eval()(x)[0] == 0).all(2).any()


@pytest.mark.parametrize("shape", [(4,), (4, 6), (4, 5, 6)])
def test_scale_and_offset_of_a_release_do_not_matter(shape):
    """One channel is a million times smaller than another, and lies far from zero."""
    torch.manual_seed(0)
    z = torch.randn(400, *shape)
    change = torch.tensor([1.0, 1e-3, 1e3, 10.0]), torch.tensor([0.0, 1.0, -1e4, 500.0])
    factor, offset = (c.view(-1, *(1,) * (len(shape) - 1)) for c in change)
    plain, moved = StandardisedInput(4).train(), StandardisedInput(4).train()
    for batch in z.split(50):
        one, other = plain(batch), moved(batch * factor + offset)
    torch.testing.assert_close(one, other, rtol=0.01, atol=0.01)
    one = plain.eval()(z).transpose(0, 1).flatten(1)
    assert one.mean(1).abs().max() < 0.05 and (one.std(1) - 1).abs().max() < 0.05
    assert plain(1e9 * z).abs().max() <= CUT


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_dropout_leaves_out_its_share_and_keeps_the_mean(share):
    torch.manual_seed(0)
    x = torch.ones(500, 301, requires_grad=True)
    dropout = Dropout(share)
    out = dropout(x)
    assert float((out == 0).float().mean()) == pytest.approx(share, abs=0.005)
    assert float(out.detach().mean()) == pytest.approx(1, abs=0.01)
    out.sum().backward()
    torch.testing.assert_close(x.grad, out.detach())
    assert not torch.equal(dropout(x), out), "another mask every time"
    torch.manual_seed(0)
    assert torch.equal(dropout(x), out), "and the same for the same seed"
    assert dropout.eval()(x) is x


def test_padding_is_no_part_of_a_channels_mean():
    z = torch.randn(300, 3, 8) + 5.0
    where = torch.arange(8).expand(300, 8) < 3
    standard = StandardisedInput(3).train()
    standard(z * where.unsqueeze(1), where)
    torch.testing.assert_close(standard.mean, z[:, :, :3].mean((0, 2)))
    torch.testing.assert_close(standard.variance, z[:, :, :3].var((0, 2), correction=0))


@pytest.mark.parametrize(
    "kind,modality",
    [
        (Table1Classifier, "image"),
        (VCL19, "signal"),
        (ResCL, "signal"),
        (ResNet, "image"),
        (ResNet, "signal"),
        (Recurrent, "text"),
        (Transformer, "text"),
        (Transformer, "signal"),
        (ResidualMLP, "table"),
    ],
)
def test_reads_what_is_written_plainly(kind, modality):
    image = modality == "image"
    data = small(modality, 300 if image else 600)
    seen, select, test = _parts(data, _raw(data))
    trained = kind(epochs=1, least=30 if image else 100, batch=16, rates=(3e-3,), width=0.1).attack(
        seen, select, data.attribute("u")
    )
    assert auc(test.labels("u"), trained.answers(test)) > 0.85


@pytest.mark.parametrize("kind", [Recurrent, Transformer])
def test_reads_released_vectors_of_words(kind):
    data = small("text", 600)
    seen, select, test = _parts(data, _extracted(data))
    trained = kind(epochs=1, least=120, batch=32, rates=(3e-3,), width=0.1).attack(
        seen, select, data.attribute("u")
    )
    assert auc(test.labels("u"), trained.answers(test)) > 0.85


def test_what_was_learned_from_raw_pictures_is_taken_to_the_release(monkeypatch):
    monkeypatch.setattr(raw_classifiers, "_memory", {})
    data = small("image", 300)
    seen, select, test = _parts(data, _extracted(data))
    attack = ResNet(epochs=1, least=30, batch=16, rates=(3e-3,), width=0.1)
    ticks: list[float] = []
    taught = attack.pretrained(seen, select, data.attribute("u"), 0, ticks.append)
    own = attack.build(seen.view, 2).state_dict()
    assert taught and all(
        name in own and own[name].shape == value.shape for name, value in taught.items()
    ), "all of it fits"
    left = {name.split(".")[1] for name in own if name not in taught and name.startswith("net")}
    assert left == {"stem"} and ticks[-1] == 1.0
    # Without a single step of adaptation the body is the one that was taught.
    frozen = ResNet(epochs=1, least=1, batch=32, rates=(0.0,), width=0.1)
    _, start = frozen.train(0.0, seen, select, data.attribute("u"), 0, taught, lambda _: None)
    for name, value in start.net.state_dict().items():
        if name in taught and not name.endswith(
            ("running_mean", "running_var", "num_batches_tracked")
        ):
            torch.testing.assert_close(value, taught[name])
    assert (
        auc(test.labels("u"), attack.attack(seen, select, data.attribute("u")).answers(test)) > 0.85
    )


def test_raw_records_have_nothing_to_be_taught_before():
    data = small("image", 60)
    seen, select, _ = _parts(data, _raw(data))
    assert (
        ResNet(epochs=1, least=1, width=0.1).pretrained(
            seen, select, data.attribute("u"), 0, lambda _: None
        )
        is None
    )


def test_only_pictures_are_mirrored_and_only_if_wanted():
    def moves(attack: ResNet, view: View) -> bool:
        z, front = _records(view), attack.build(view, 2).train().front
        torch.manual_seed(0)
        return not np.array_equal(front(z), z)

    assert moves(ResNet(width=0.1), MAPS[0])
    assert not moves(ResNet(width=0.1, augment=False), MAPS[0])
    assert not any(moves(ResNet(width=0.1), view) for view in (*MAPS[2:5], *SERIES))


def test_released_records_are_kept_where_memory_is_free(monkeypatch):
    """And say the same whether they are kept or computed again."""
    data = small("image", 80)
    release = METHODS["tiprdc"](width=0.05, warmup=0, epochs=0).fit(
        data, ["u"], [], run=Run(progress=False, device="cpu")
    )
    monkeypatch.setitem(released.STORED_BYTES, "cpu", 1.0)
    found = {}
    for free in (0.0, 1e12):
        monkeypatch.setattr(released, "free_memory", lambda free=free: free)
        seen = Released(release, data.part("attack"), ["u"], CPU)
        found[free] = seen._storing is not None, seen.vectors()
    assert [kept for kept, _ in found.values()] == [False, True]
    torch.testing.assert_close(*(vectors for _, vectors in found.values()))
