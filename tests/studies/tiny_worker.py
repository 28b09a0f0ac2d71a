"""The real worker with a battery that takes a second."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from privet.adversaries.convolutional import ResCL
from privet.adversaries.decoder import ReversedExtractor
from privet.adversaries.linear import Logistic
from privet.adversaries.mlp import MLP
from privet.auditing.batteries import BATTERIES, Battery
from privet.studies import worker

sys.path.append(str(Path(__file__).parents[1]))
from exported_once import one_table_of_operators

BRIEF = MLP(shapes=((8,),), rates=(3e-3,), decays=(1e-2,), whites=(False,), epochs=1, least=5)
ATTACKERS = Logistic(strengths=(0.1,)), BRIEF, ResCL(epochs=1, least=5, width=0.1, rates=(3e-3,))

if __name__ == "__main__":
    BATTERIES["quick"] = Battery(
        ATTACKERS, (BRIEF,), (ReversedExtractor(epochs=1, width=0.1),), people=False
    )
    one_table_of_operators(pytest.MonkeyPatch())
    worker.main()
