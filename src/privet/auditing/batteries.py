"""Batteries: which adversaries attack a release, how large and how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from privet.adversaries.adversary import Adversary
from privet.adversaries.convolutional import VCL19, ResCL, Table1Classifier
from privet.adversaries.coordinate_pairs import Pairs
from privet.adversaries.decoder import ReversedExtractor
from privet.adversaries.kernel import Kernel
from privet.adversaries.linear import SVM, Logistic
from privet.adversaries.low_bits import Bits
from privet.adversaries.mlp import MLP
from privet.adversaries.neighbours import Neighbours
from privet.adversaries.network import ResidualMLP
from privet.adversaries.quadratic import Quadratic
from privet.adversaries.reader import ReaderFunction
from privet.adversaries.rebuilder import Rebuilder
from privet.adversaries.recurrent import Recurrent
from privet.adversaries.registry import ADVERSARIES
from privet.adversaries.resnet import ResNet
from privet.adversaries.transformer import Transformer
from privet.adversaries.trees import TUNED, Boosting, Forest
from privet.adversaries.view import View
from privet.core.errors import unknown
from privet.data.dataset import Attribute


@dataclass(frozen=True)
class Battery:
    """A set of attackers for `privet.audit`. Anyone can build one, or extend one of Privet's.

    Parameters:
        adversaries: Read private attributes and tasks; those that suit the released records are
            used.
        scouts: Read every attribute that nobody declared, all at once.
        decoders: Rebuild records from released ones.
        averages: How many releases of one record to average, where releases are noisy.
        reread: Whether to attack rebuilt records as well.
        pools: Whether to attack several records of a person at once.
        curves: Whether to learn from fewer people too, to see whether more would read more.
        people: Whether to find people again, and whether they were learned from.
        estimates: Whether to estimate what released records tell of the records themselves.
        readers: Models that learned elsewhere: functions from encoded raw records (uint8 pictures,
            float rows or windows, word ids) to features or scores, or ONNX files. They look at raw
            and rebuilt records, and at released ones of the same form.
        name: What audits call it.

    >>> from privet.adversaries.linear import Logistic
    >>> mine = Battery((Logistic(),), name="only logistic")
    >>> len(BATTERIES["quick"].plus(Logistic(strengths=(1.0,))).adversaries)
    10
    """

    adversaries: tuple[Adversary, ...]
    scouts: tuple[MLP, ...] = ()
    decoders: tuple[ReversedExtractor | Rebuilder, ...] = ()
    averages: tuple[int, ...] = ()
    reread: bool = True
    pools: bool = True
    curves: bool = True
    people: bool = True
    estimates: bool = False
    readers: tuple[ReaderFunction | Path, ...] = ()
    name: str = "custom"

    def against(self, view: View, attribute: Attribute) -> Sequence[Adversary]:
        """The adversaries that can read this attribute from records of this form."""
        return [adversary for adversary in self.adversaries if adversary.suits(view, attribute)]

    def plus(self, *adversaries: Adversary) -> Battery:
        """The same battery with more adversaries, which come first."""
        return replace(self, adversaries=(*adversaries, *self.adversaries))


def find_battery(battery: str | Battery) -> Battery:
    """A battery by its name, joined by the adversaries that installed packages bring; or as it is.

    >>> find_battery("quick").name
    'quick'
    """
    if isinstance(battery, Battery):
        return battery
    if battery not in BATTERIES:
        raise unknown("battery", battery, BATTERIES)
    outside = (kind() for kind in ADVERSARIES.from_outside.values())
    return replace(BATTERIES[battery], name=battery).plus(*outside)


# quick: seconds to a minute on two cores; lean: the kinds that win most often and nothing else, to
# compare many releases on a GPU; standard: the published sizes; strong: everything, tuned, for a
# GPU or for patience.
BATTERIES: dict[str, Battery] = {
    "quick": Battery(
        (
            Logistic(strengths=(1e-3, 1e-1)),
            Quadratic(shrinkages=(0.1, 0.5, 0.9)),
            Pairs(rounds=50),
            Boosting(settings=((("max_iter", 60),),), columns=256),
            Neighbours(counts=(5, 50)),
            MLP(shapes=((128,),), rates=(3e-3, 3e-2), decays=(1e-2,), epochs=10),
            Bits(),
            ResCL(epochs=6, least=150, batch=64, rates=(3e-3,), width=0.25),
            Recurrent(epochs=6, least=150, batch=64, rates=(3e-3,), width=0.25),
        ),
        (MLP(shapes=((64,),), epochs=8, whites=(False,)),),
        (ReversedExtractor(epochs=4, width=0.125),),
        averages=(16,),
        reread=False,
        curves=False,
        name="quick",
    ),
    "lean": Battery(
        (
            Logistic(strengths=(1e-3, 1e-1)),
            Quadratic(shrinkages=(0.1, 0.5, 0.9)),
            Pairs(rounds=50),
            Boosting(settings=((("max_iter", 100),),), columns=128),
            Neighbours(counts=(5, 50)),
            MLP(shapes=((256, 256),), rates=(3e-3,), decays=(1e-2,), epochs=20),
            Bits(),
            ResNet(rates=(2e-3,), epochs=12, width=0.5),
            Recurrent(epochs=10, batch=64, rates=(3e-3,), width=0.5),
        ),
        (),
        (),
        averages=(16,),
        reread=False,
        curves=False,
        people=False,
        name="lean",
    ),
    "standard": Battery(
        (
            Logistic(),
            Boosting(),
            Neighbours(),
            Kernel(features=1024),
            Quadratic(),
            Pairs(),
            MLP(),
            Bits(),
            Table1Classifier(),
            ResCL(),
            Recurrent(),
            Transformer(),
            ResidualMLP(epochs=12),
        ),
        (MLP(shapes=((),), epochs=10), MLP(shapes=((128,),), epochs=15)),
        (ReversedExtractor(epochs=15), Rebuilder()),
        averages=(4, 16),
        estimates=True,
        name="standard",
    ),
    "strong": Battery(
        (
            Logistic(strengths=(1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)),
            SVM(),
            Neighbours(counts=(1, 5, 15, 50, 150, 400)),
            Boosting(settings=TUNED, whites=(False, True)),
            Forest(trees=400),
            Kernel(features=4096, widths=(0.25, 0.5, 1.0, 2.0), ridges=(1e-5, 1e-3, 1e-1)),
            Quadratic(),
            Pairs(singles=64, pairs=64, rounds=150),
            MLP(finalists=48),
            Bits(),
            Table1Classifier(rates=(3e-4, 1e-3)),
            VCL19(rates=(3e-4, 1e-3)),
            ResCL(rates=(1e-3, 3e-3), epochs=25),
            ResNet(rates=(1e-3, 3e-3), epochs=25),
            Recurrent(rates=(1e-3, 3e-3)),
            Transformer(rates=(3e-4, 1e-3)),
            ResidualMLP(rates=(3e-4, 1e-3, 3e-3), epochs=40),
        ),
        (MLP(shapes=((),), epochs=10), MLP(shapes=((256, 256),), epochs=20)),
        (ReversedExtractor(epochs=30), Rebuilder()),
        averages=(4, 16, 64),
        estimates=True,
        name="strong",
    ),
}
