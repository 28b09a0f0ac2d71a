"""Ways to attack a release, one file each. A new one is a file here and a line in ADVERSARIES."""

from __future__ import annotations

from privet.adversaries.adversary import Adversary, Trained
from privet.adversaries.boosting import Boosting
from privet.adversaries.convolutional import VCL19, Default, ResCL
from privet.adversaries.coordinate_pairs import Pairs
from privet.adversaries.forest import Forest
from privet.adversaries.kernel import Kernel
from privet.adversaries.logistic import Logistic
from privet.adversaries.low_bits import Bits
from privet.adversaries.mlp import MLP
from privet.adversaries.neighbours import Neighbours
from privet.adversaries.network import Deep
from privet.adversaries.quadratic import Quadratic
from privet.adversaries.recurrent import Recurrent
from privet.adversaries.released import Released
from privet.adversaries.resnet import ResNet
from privet.adversaries.svm import SVM
from privet.adversaries.transformer import Transformer
from privet.adversaries.view import View

ADVERSARIES: dict[str, type[Adversary]] = {
    adversary.name: adversary
    for adversary in (
        Logistic,
        SVM,
        Neighbours,
        Boosting,
        Forest,
        Kernel,
        Quadratic,
        Pairs,
        MLP,
        Bits,
        Deep,
        Default,
        VCL19,
        ResCL,
        ResNet,
        Recurrent,
        Transformer,
    )
}
"""What reads an attribute. Attacks on whole records and on people are in rebuilder.py, decoder.py,
reidentification.py, membership.py."""

__all__ = ["ADVERSARIES", "Adversary", "Released", "Trained", "View"]
