"""DP-SGD for language models, by Opacus: every text's gradient is clipped, and noise is added to
their sum.

The guarantee is about one row of at most `longest` tokens: with or without it, the model's law is
nearly the same. For k rows at once - a sentence written k times, or all rows of an author - epsilon
is k times as large and delta grows as `for_rows` says, which soon promises nothing.

Sources: Abadi et al., Deep learning with differential privacy, CCS (2016); accounting: Mironov,
Talwar and Zhang, Rényi differential privacy of the sampled Gaussian mechanism (2019); groups: Dwork
and Roth, The algorithmic foundations of differential privacy (2014), theorem 2.2, and Vadhan, The
complexity of differential privacy (2017), lemma 2.2.
"""

from __future__ import annotations

import importlib
import math
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privet.core.errors import PrivetError, missing_extra
from privet.core.progress import bar
from privet.data.dataset import Array
from privet.data.schema import PAD
from privet.language.models.networks import LanguageModel, losses
from privet.train import checkpoint
from privet.train.game import Run


@dataclass(frozen=True, kw_only=True)
class Spending:
    """How much privacy may be spent, and in what steps."""

    epsilon: float
    delta: float
    clip: float
    rate: float
    """Share of the rows in a batch, each drawn on its own."""
    steps: int

    def __post_init__(self) -> None:
        if not self.epsilon > 0 or math.isinf(self.epsilon):
            raise PrivetError(
                f"An epsilon of {self.epsilon:g} cannot be spent: give a number above 0, such as --epsilon 8."
            )
        if not 0 < self.delta < 1:
            raise PrivetError(
                f"A delta of {self.delta:g} is not a small probability: take about one in ten times as many as there are texts."
            )


@dataclass
class Spent:
    epsilon: float
    delta: float
    noise: float
    """Standard deviation of the noise, in multiples of the clipping norm."""
    steps: int
    history: list[dict[str, Any]] = field(default_factory=list)


def for_rows(epsilon: float, delta: float, rows: int) -> tuple[float, float]:
    """Epsilon and delta of so many rows at once: k epsilon, and delta (1 + e^epsilon + ... + e^((k
    - 1) epsilon)), at most 1.

    >>> for_rows(0.5, 1e-6, 1), round(for_rows(0.5, 1e-6, 3)[1] * 1e6, 3), for_rows(8.0, 1e-5, 20)
    ((0.5, 1e-06), 5.367, (160.0, 1.0))
    """
    log_sum = np.logaddexp.reduce(epsilon * np.arange(rows))
    return rows * epsilon, min(1.0, delta * math.exp(min(float(log_sum), 700.0)))


def group_note(epsilon: float, delta: float, rows: int) -> str:
    """The same in a sentence."""
    own, worst = for_rows(epsilon, delta, rows)
    means = "nothing" if worst >= 1 else f"epsilon {own:.3g} at delta {worst:.2g}"
    return (
        f"DP-SGD's epsilon of {epsilon:.2f} at delta {delta:.1g} is about one row of tokens. Of an author as a whole, who has up to "
        f"{rows} rows here, it promises {means}."
    )


def require_opacus() -> None:
    """Say so where the package is missing, before any long work starts."""
    _opacus("grad_sample")


def cell(name: str) -> Any:
    """What stands for nn.LSTM while per-text gradients are needed; it has the same parameters by
    the same names."""
    return _opacus("layers").DPLSTM if name == "lstm" else nn.LSTM


def copy_weights(source: nn.Module, target: nn.Module) -> None:
    """Between a model and the same one made with another `cell`, whose parameters have the same
    names only seen from itself."""
    for name, child in _children(source).items():
        target.get_submodule(name).load_state_dict(child.state_dict())


def noise_for(spending: Spending) -> float:
    """The noise that spends the epsilon in so many steps."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Optimal order is the largest alpha"
            )  # the bound holds, if not tightly
            found: float = _opacus("accountants.utils").get_noise_multiplier(
                target_epsilon=spending.epsilon,
                target_delta=spending.delta,
                sample_rate=spending.rate,
                steps=spending.steps,
                accountant="rdp",
            )
    except ValueError:
        raise PrivetError(
            f"An epsilon of {spending.epsilon:g} is too small for {spending.steps} steps: take a larger one."
        ) from None
    return found


def learn_private(
    model: LanguageModel,
    ids: Array,
    spending: Spending,
    lr: float,
    run: Run,
    identity: str,
    device: torch.device,
    noise: float | None = None,
) -> Spent:
    """Teach the model, made with `cell`, with DP-SGD. Noise and batches come from the system's
    entropy, never from a card's seed.

    A run that is resumed goes on with fresh noise, and its steps are counted as one run's. Another
    `noise` than the one that spends the epsilon spends another one, which is told.
    """
    noise = noise_for(spending) if noise is None else noise
    model.to(device).train()
    watched = _opacus("grad_sample").GradSampleModule(model)
    inner = torch.optim.Adam(model.parameters(), lr=lr)
    expected = max(1, round(spending.rate * len(ids)))
    generator = torch.Generator(device)
    generator.seed()
    optimiser = _opacus("optimizers").DPOptimizer(
        inner,
        noise_multiplier=noise,
        max_grad_norm=spending.clip,
        expected_batch_size=expected,
        generator=generator,
    )
    start, history, random = 0, [], np.random.default_rng()
    if run.resume and run.checkpoint and run.checkpoint.exists():
        tensors, meta = checkpoint.load(run.checkpoint)
        if meta["identity"] != identity:
            raise PrivetError(
                f"The checkpoint in {run.folder} was made with other settings or data; repeat those, or leave out --resume."
            )
        checkpoint.restore_modules(tensors, _children(model))
        checkpoint.restore_optimiser(tensors, "model", inner)
        start, history = meta["round"], meta["history"]
    per_epoch, saved, rows = (
        max(1, round(1 / spending.rate)),
        time.monotonic(),
        torch.as_tensor(ids, device=device),
    )
    with (
        checkpoint.Keeper(beside=device.type == "cuda") as keeper,
        bar("DP-SGD", spending.steps, run.progress) as tick,
    ):
        for done in range(start, spending.steps):
            chosen = torch.as_tensor(
                np.flatnonzero(random.random(len(ids)) < spending.rate), device=device
            )
            loss = _step(watched, optimiser, rows[chosen])
            if (done + 1) % per_epoch == 0 or done + 1 == spending.steps:
                history.append(
                    {
                        "epoch": round((done + 1) / per_epoch, 3),
                        "perplexity": math.exp(min(float(loss), 50.0)),
                    }
                )
            tick(
                done + 1,
                f"perplexity {math.exp(min(float(loss), 50.0)):.1f}"
                if run.progress and done % 20 == 19
                else "",
            )
            due = (
                time.monotonic() - saved > run.every
                if run.rounds_between is None
                else (done + 1) % run.rounds_between == 0
            )
            if run.checkpoint and due:
                meta = {"identity": identity, "round": done + 1, "history": history}
                keeper.save(run.checkpoint, _children(model), {"model": inner}, meta)
                saved = time.monotonic()
    watched.remove_hooks()
    return Spent(_spent(noise, spending), spending.delta, noise, spending.steps, history)


def _step(watched: Any, optimiser: Any, x: Tensor) -> Tensor:
    optimiser.zero_grad(set_to_none=True)
    if not len(x):
        # A batch nobody was drawn for is noise alone; leaving the step out would tell that it was
        # empty.
        for parameter in optimiser.params:
            parameter.grad_sample = torch.zeros(0, *parameter.shape, device=parameter.device)
        optimiser.step()
        return torch.zeros(())
    x = x[:, : max(2, int((x != PAD).sum(1).max()))]
    scores, _ = watched(x)
    per_text = losses(scores, x).sum(1) / (x[:, 1:] != PAD).sum(1).clamp(min=1)
    loss = per_text.mean()
    with warnings.catch_warnings():
        # Word ids have no gradient, and need none: Opacus' hooks on embeddings say so at every
        # step.
        warnings.filterwarnings("ignore", "Full backward hook is firing")
        loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return loss.detach()


def _children(model: nn.Module) -> dict[str, nn.Module]:
    return dict(model.named_children())


def _spent(noise: float, spending: Spending) -> float:
    """The epsilon that the steps which were taken have spent."""
    accountant = _opacus("accountants").RDPAccountant()
    accountant.history = [(noise, spending.rate, spending.steps)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Optimal order is the largest alpha")
        return float(accountant.get_epsilon(delta=spending.delta))


def _opacus(part: str) -> Any:
    try:
        return importlib.import_module(f"opacus.{part}")
    except ImportError:
        raise missing_extra("opacus", "language", "Training with differential privacy") from None
