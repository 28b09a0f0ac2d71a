"""Settings of a language model and of the privacy budget that its training may spend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from privet.core.errors import PrivetError, refuse_if, unknown
from privet.core.settings import settings_from_words

REGULARIZERS = ("none", "adversarial", "triplet", "dp")
# What the models of one audit have in common.
SHARED = ("tokens", "vocabulary", "longest", "seed")


@dataclass(frozen=True, kw_only=True)
class PrivacyBudget:
    """How much privacy DP-SGD may spend, and in what steps.

    Parameters:
        clip: Norm to which a row's gradient is clipped.
        rate: Probability with which each row is in a batch.
    """

    epsilon: float
    delta: float
    clip: float
    rate: float
    steps: int

    def __post_init__(self) -> None:
        refuse_if(
            not 0 < self.epsilon < math.inf,
            f"An epsilon of {self.epsilon:g} cannot be spent: give a number above 0, such as "
            "--epsilon 8.",
        )
        refuse_if(
            not 0 < self.delta < 1,
            f"A delta of {self.delta:g} is not a small probability: take about one in ten "
            "times as many as there are texts.",
        )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a language model, its training and its regulariser.

    Parameters:
        model: The network, `lstm` or `gpt`.
        tokens: The tokenizer, `word` or `subword`.
        vocabulary: Most codes of the tokenizer.
        longest: Tokens in a row; longer texts are cut.
        width, layers, dropout: Of the network.
        epochs, batch, lr: Of training: passes over the rows, rows in a batch, learning rate.
        regularizer: `none`, `adversarial`, `triplet` or `dp`.
        weight: Of the privacy term, for adversarial and triplet.
        margin: Of the triplet loss.
        epsilon: To spend at most, for dp.
        delta: For dp; 0 takes one in ten times as many as there are rows, at most 1e-5.
        clip: Norm to which a row's gradient is clipped, for dp.
    """

    model: str = "lstm"
    tokens: str = "word"
    vocabulary: int = 5000
    longest: int = 64
    width: int = 256
    layers: int = 1
    dropout: float = 0.2
    epochs: int = 15
    batch: int = 32
    lr: float = 2e-3
    regularizer: str = "none"
    weight: float = 1.0
    margin: float = 0.5
    epsilon: float = 8.0
    delta: float = 0.0
    clip: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.regularizer not in REGULARIZERS:
            raise unknown("regularizer", self.regularizer, REGULARIZERS)
        for name in ("vocabulary", "longest", "width", "layers", "epochs", "batch", "lr", "clip"):
            refuse_if(
                not getattr(self, name) > 0,
                f"The setting {name} must be above 0, and {getattr(self, name)} is not.",
            )
        refuse_if(
            not 0 <= self.dropout < 1 or not 0 <= self.weight < math.inf or self.margin < 0,
            "Dropout lies between 0 and 1, and neither weight nor margin is below 0.",
        )
        if self.regularizer == "dp":
            self.budget(1)

    @staticmethod
    def from_options(
        assignments: Sequence[str] = (), *, regularizer: str = "none", **options: Any
    ) -> Settings:
        """Settings from what a user gave: options that are None keep their default, and then come
        `assignments` such as "width=128"."""
        refuse_if(
            options.get("weight") is not None and regularizer not in ("adversarial", "triplet"),
            f"--weight is for adversarial and triplet: the regulariser {regularizer} has none.",
        )
        refuse_if(
            options.get("epsilon") is not None and regularizer != "dp",
            "--epsilon is for --regularizer dp.",
        )
        chosen = {name: value for name, value in options.items() if value is not None}
        return Settings(regularizer=regularizer, **chosen).updated(assignments)

    @property
    def label(self) -> str:
        """The regulariser and its strength, as in "none", "triplet:0.5" or "dp:8"."""
        strength = self.epsilon if self.regularizer == "dp" else self.weight
        return "none" if self.regularizer == "none" else f"{self.regularizer}:{strength:g}"

    def label_beside(self, plain: Settings) -> str:
        """The label, and the settings in which this differs from `plain`, as in
        "dp:8,batch=1024,lr=0.01"."""
        named = {"regularizer", "weight", "epsilon"}
        own = [
            f",{key}={value:g}" if isinstance(value, float) else f",{key}={value}"
            for key, value in asdict(self).items()
            if key not in named and value != getattr(plain, key)
        ]
        return self.label + "".join(own)

    def updated(self, assignments: Sequence[str]) -> Settings:
        """The same with assignments such as "width=128" made."""
        return replace(self, **settings_from_words(Settings, assignments))

    def with_regularizer(self, label: str) -> Settings:
        """The same with another regulariser, named as in `label`; without a strength its default
        stays. Settings of its own stand behind commas, as in "dp:8,batch=1024,lr=0.01"."""
        label, *own = label.split(",")
        name, _, strength = label.partition(":")
        changed: dict[str, Any] = {}
        try:
            if strength:
                changed["epsilon" if name == "dp" else "weight"] = float(strength)
        except ValueError:
            raise PrivetError(
                f"'{label}' should be a regulariser and its strength, such as adversarial:1."
            ) from None
        other = replace(self, regularizer=name, **changed).updated(own)
        for key in SHARED:
            refuse_if(
                getattr(other, key) != getattr(self, key),
                f"'{label}' cannot have a {key} of its own: the attacks compare models that read "
                "the same tokens.",
            )
        return other

    def budget(self, rows: int) -> PrivacyBudget:
        """What DP-SGD on so many rows of tokens may spend."""
        rate = min(1.0, self.batch / rows)
        return PrivacyBudget(
            epsilon=self.epsilon,
            delta=self.delta or min(1e-5, 1 / (10 * rows)),
            clip=self.clip,
            rate=rate,
            steps=max(1, round(self.epochs / rate)),
        )
