"""DP-SGD for language models, by Opacus: the gradient of every row is clipped, and noise is added
to their sum.

The guarantee is about one row of at most `longest` tokens: with or without it, the distribution of
the model is nearly the same. For k rows at once - a sentence written k times, or all rows of an
author - epsilon is k times as large and delta grows as `for_rows` says, which soon promises
nothing.

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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privet.core.errors import PrivetError, missing_extra, refuse_if
from privet.core.progress import bar
from privet.data.dataset import Array
from privet.data.schema import PAD
from privet.evidence.sentences import say
from privet.language.models.networks import LanguageModel, losses, perplexity
from privet.language.models.row_lstm import known_to_opacus
from privet.language.models.settings import PrivacyBudget
from privet.train import checkpoint
from privet.train.game import Run

# Rows whose gradients are held at once; a larger batch is clipped and summed piece by piece.
ROWS_AT_ONCE = {"cpu": 64, "cuda": 256}


def for_rows(epsilon: float, delta: float, rows: int) -> tuple[float, float]:
    """Epsilon and delta of so many rows at once: k epsilon, and delta (1 + e^epsilon + ... + e^((k
    - 1) epsilon)), at most 1.

    >>> for_rows(0.5, 1e-6, 1), round(for_rows(0.5, 1e-6, 3)[1] * 1e6, 3), for_rows(8.0, 1e-5, 20)
    ((0.5, 1e-06), 5.367, (160.0, 1.0))
    """
    log_sum = np.logaddexp.reduce(epsilon * np.arange(rows))
    return rows * epsilon, min(1.0, delta * math.exp(min(float(log_sum), 700.0)))


def author_guarantee(spent: dict[str, Any]) -> str:
    """The guarantee for an author as a whole, in a sentence; `spent` is "dp" in a model's card."""
    rows = spent["most_rows_of_an_author"]
    epsilon, delta = for_rows(spent["epsilon"], spent["delta"], rows)
    promise = "nothing" if delta >= 1 else f"epsilon {epsilon:.3g} at delta {delta:.2g}"
    return say(
        "lm_author",
        epsilon=f"{spent['epsilon']:.2f}",
        delta=f"{spent['delta']:.1g}",
        rows=rows,
        promise=promise,
    )


def require_opacus() -> None:
    """Raise the error for a missing package before any long work starts."""
    _opacus("grad_sample")


def lstm_class(model: str) -> Any:
    """The class that replaces nn.LSTM while gradients per row are needed; it has the same
    parameters by the same names."""
    require_opacus()
    return known_to_opacus() if model == "lstm" else nn.LSTM


def copy_weights(source: nn.Module, target: nn.Module) -> None:
    """Between a model and the same one with another class of LSTM. Only its children have
    parameters of the same names."""
    for name, child in source.named_children():
        target.get_submodule(name).load_state_dict(child.state_dict())


def noise_for(budget: PrivacyBudget) -> float:
    """The noise with which so many steps spend the budget's epsilon."""
    try:
        with _without_warning_of_order():
            return float(
                _opacus("accountants.utils").get_noise_multiplier(
                    target_epsilon=budget.epsilon,
                    target_delta=budget.delta,
                    sample_rate=budget.rate,
                    steps=budget.steps,
                    accountant="rdp",
                )
            )
    except ValueError:
        raise PrivetError(
            f"An epsilon of {budget.epsilon:g} is too small for {budget.steps} steps: take a "
            "larger one."
        ) from None


def train_with_dp(
    model: LanguageModel,
    ids: Array,
    budget: PrivacyBudget,
    lr: float,
    run: Run,
    device: torch.device,
    identity: str = "",
    noise: float | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Train a model that was built with `lstm_class`. Noise and batches come from the system's
    entropy, never from a card's seed.

    A run that is resumed goes on with fresh noise, and its steps are counted as one run's. Another
    `noise` than the one that spends the budget's epsilon spends another epsilon.

    Returns what was spent - the noise is in multiples of the clipping norm - and the perplexity of
    the last batch of every epoch.
    """
    noise = noise_for(budget) if noise is None else noise
    model.to(device).train()
    watched = _opacus("grad_sample").GradSampleModule(model)
    inner = torch.optim.Adam(model.parameters(), lr=lr)
    generator = torch.Generator(device)
    generator.seed()
    optimiser = _opacus("optimizers").DPOptimizer(
        inner,
        noise_multiplier=noise,
        max_grad_norm=budget.clip,
        expected_batch_size=max(1, round(budget.rate * len(ids))),
        generator=generator,
    )
    start, history = _resumed(model, inner, run, identity)
    random, rows = np.random.default_rng(), torch.as_tensor(ids, device=device)
    per_epoch, saved = max(1, round(1 / budget.rate)), time.monotonic()
    with (
        checkpoint.CheckpointWriter(beside=device.type == "cuda") as keeper,
        bar("DP-SGD", budget.steps, run.progress) as tick,
    ):
        for done in range(start + 1, budget.steps + 1):
            drawn = np.flatnonzero(random.random(len(ids)) < budget.rate)
            loss = _step(watched, optimiser, rows[torch.as_tensor(drawn, device=device)])
            if done % per_epoch == 0 or done == budget.steps:
                epoch = round(done / per_epoch, 3)
                history.append({"epoch": epoch, "perplexity": perplexity(float(loss))})
            shown = run.progress and done % 20 == 0
            tick(done, f"perplexity {perplexity(float(loss)):.1f}" if shown else "")
            due = (
                time.monotonic() - saved > run.every
                if run.rounds_between is None
                else done % run.rounds_between == 0
            )
            if run.checkpoint and due:
                meta = {"identity": identity, "round": done, "history": history}
                children = dict(model.named_children())
                keeper.save(run.checkpoint, children, {"model": inner}, meta)
                saved = time.monotonic()
    watched.remove_hooks()
    spent = {"epsilon": _spent_epsilon(noise, budget), "delta": budget.delta, "noise": noise}
    return {**spent, "steps": budget.steps}, history


def _resumed(
    model: nn.Module, optimiser: torch.optim.Optimizer, run: Run, identity: str
) -> tuple[int, list[dict[str, Any]]]:
    """Steps done and their history; model and optimiser are as the checkpoint has them."""
    if not (run.resume and run.checkpoint and run.checkpoint.exists()):
        return 0, []
    tensors, meta = checkpoint.load(run.checkpoint)
    refuse_if(
        meta["identity"] != identity,
        f"The checkpoint in {run.folder} was made with other settings or data; repeat those, "
        "or leave out --resume.",
    )
    checkpoint.restore_modules(tensors, dict(model.named_children()))
    checkpoint.restore_optimiser(tensors, "model", optimiser)
    return meta["round"], meta["history"]


def _step(watched: Any, optimiser: Any, x: Tensor) -> Tensor:
    optimiser.zero_grad(set_to_none=True)
    if not len(x):
        # An empty batch is a step of noise alone; leaving it out would reveal that it was empty.
        for parameter in optimiser.params:
            parameter.grad_sample = torch.zeros(0, *parameter.shape, device=parameter.device)
        optimiser.step()
        return torch.zeros(())
    pieces = torch.split(x, ROWS_AT_ONCE.get(x.device.type, ROWS_AT_ONCE["cpu"]))
    total = torch.zeros((), device=x.device)
    for number, piece in enumerate(pieces, 1):
        optimiser.zero_grad(set_to_none=True)  # keeps the sum of clipped gradients so far
        total += _backward(watched, piece)
        optimiser.signal_skip_step(do_skip=number < len(pieces))
        optimiser.step()
    return total / len(x)


def _backward(watched: Any, x: Tensor) -> Tensor:
    """Gradients of each of these rows; the sum of their mean losses."""
    x = x[:, : max(2, int((x != PAD).sum(1).max()))]
    scores, _ = watched(x)
    loss = (losses(scores, x).sum(1) / (x[:, 1:] != PAD).sum(1).clamp(min=1)).mean()
    with warnings.catch_warnings():
        # Token ids have no gradient: Opacus' hooks on embeddings warn of it at every step.
        warnings.filterwarnings("ignore", "Full backward hook is firing")
        loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach() * len(x)


def _spent_epsilon(noise: float, budget: PrivacyBudget) -> float:
    accountant = _opacus("accountants").RDPAccountant()
    accountant.history = [(noise, budget.rate, budget.steps)]
    with _without_warning_of_order():
        return float(accountant.get_epsilon(delta=budget.delta))


@contextmanager
def _without_warning_of_order() -> Iterator[None]:
    """Opacus warns that a bound may not be tight; it holds all the same."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Optimal order is the largest alpha")
        yield


def _opacus(part: str) -> Any:
    try:
        return importlib.import_module(f"opacus.{part}")
    except ImportError:
        raise missing_extra("opacus", "language", "Training with differential privacy") from None
