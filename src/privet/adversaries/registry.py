"""All adversaries that read an attribute, by name. A new one is a file in this folder and a line
here; another package adds its own by an entry point of the group `privet.adversaries`.

Attacks on whole records and on people are in rebuilder.py, decoder.py, reidentification.py and
membership.py.
"""

from __future__ import annotations

from privet.adversaries.adversary import Adversary
from privet.core.registry import Registry

ADVERSARIES: Registry[type[Adversary]] = Registry(
    "adversary",
    {
        "logistic": "privet.adversaries.linear:Logistic",
        "svm": "privet.adversaries.linear:SVM",
        "neighbours": "privet.adversaries.neighbours:Neighbours",
        "boosting": "privet.adversaries.trees:Boosting",
        "forest": "privet.adversaries.trees:Forest",
        "kernel": "privet.adversaries.kernel:Kernel",
        "quadratic": "privet.adversaries.quadratic:Quadratic",
        "pairs": "privet.adversaries.coordinate_pairs:Pairs",
        "mlp": "privet.adversaries.mlp:MLP",
        "bits": "privet.adversaries.low_bits:Bits",
        "network": "privet.adversaries.network:ResidualMLP",
        "table-1": "privet.adversaries.convolutional:Table1Classifier",
        "v-cl-19": "privet.adversaries.convolutional:VCL19",
        "res-cl": "privet.adversaries.convolutional:ResCL",
        "resnet": "privet.adversaries.resnet:ResNet",
        "lstm": "privet.adversaries.recurrent:Recurrent",
        "transformer": "privet.adversaries.transformer:Transformer",
    },
    "privet.adversaries",
)
