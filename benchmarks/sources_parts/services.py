"""The provider's services of benchmarks/sources.py's collaborative games: taught once on raw
pictures of *fit*, saved, and given to every game.

The service that knows people learns from all pictures of a person but one; that one is asked about
too, since a picture that it has learned says little about being known.
"""

from __future__ import annotations

import fcntl
import math
import time
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.progress import console
from privet.data.dataset import Array
from privet.methods.services.service import Service
from privet.nets.convolutions import prepare
from privet.nets.device import place
from privet.nets.resnet import Jitter
from sources_parts.learned import Bench
from sources_parts.recorded import Lessons

TOP_RATE, DECAY, BATCH = 2e-3, 2e-2, 256
# Epochs of the service that knows people, over those of the others: it tells a thousand of them
# apart by a few pictures each.
PATIENCE = 5


def given(bench: Bench, services: Sequence[Service], lessons: float, width: float) -> None:
    """Fills in the weights of the services; the first row that asks teaches them for all, whatever
    its seed."""
    names, side = [s.attribute.name for s in services], bench.raw["fit"].shape[-1]
    key = f"services-{'-'.join(names)}-{side}-{width}-{lessons}.pt"
    modules = nn.ModuleList([service.module for service in services])
    with (bench.folder / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = bench.folder / key
        if not path.exists():
            torch.manual_seed(0)
            begin = time.monotonic()
            for service in services:
                teach(bench, service, lessons)
            torch.save(modules.state_dict(), path)
            console.print(f"services taught in {time.monotonic() - begin:.0f} s", highlight=False)
        modules.load_state_dict(torch.load(path, bench.device, weights_only=True))


def teach(bench: Bench, service: Service, lessons: float) -> None:
    """By mirrored and shifted pictures, at a rate that rises and falls."""
    name, people = service.attribute.name, service.attribute.kind == "identity"
    labels = np.asarray(bench.data.part("fit").labels[name])
    known = np.flatnonzero(~held_out(labels) if people else labels >= 0)
    places = torch.as_tensor(known, device=bench.device)
    truth = torch.as_tensor(labels, device=bench.device)
    net, x = place(service.module, bench.device), bench.raw["fit"]
    jitter = Jitter(max(1, x.shape[2] // 16))

    def loss(index: Tensor) -> Tensor:
        scores = net(jitter(prepare(x[index])))
        return F.cross_entropy(scores.float(), truth[index])

    learner = Lessons(net, loss, TOP_RATE, DECAY, bench.device)
    size = min(BATCH, len(known))
    steps = max(2, round(lessons * (PATIENCE if people else 1) * len(known) / size))
    for step in range(steps):
        done = step / steps
        factor = min(done / 0.1, 1.0) * 0.5 * (1 + math.cos(math.pi * done)) + 1e-3
        learner.step(places[torch.randint(0, len(places), (size,), device=bench.device)], factor)


def held_out(people: Array) -> Array:
    """Where the last record of each person is, of those who have several.

    >>> held_out(np.array([3, 5, 3, 5, 3, 7])).tolist()
    [False, False, False, True, True, False]
    """
    last = {person: place for place, person in enumerate(people.tolist())}
    several = {
        person
        for person, count in zip(*np.unique(people, return_counts=True), strict=True)
        if count > 1
    }
    out = np.zeros(len(people), bool)
    out[[place for person, place in last.items() if person in several]] = True
    return out


def among_five(scores: Tensor, truth: Tensor) -> float:
    """In per cent: how often the right one is among the first five."""
    first = scores.topk(min(5, scores.shape[1]), 1).indices == truth[:, None]
    return 100 * float(first.any(1).float().mean())


def balanced(scores: Tensor, truth: Tensor) -> float:
    """Balanced accuracy in per cent."""
    right = scores.argmax(1) == truth
    each = [right[truth == c].float().mean() for c in range(scores.shape[1])]
    return 100 * float(torch.stack(each).nanmean())
