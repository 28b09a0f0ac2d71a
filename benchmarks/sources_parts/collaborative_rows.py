"""Collaborative sanitizers as benchmarks/sources.py plays them.

Services are taught once (services.py) and shared by all rows, of whatever seed. Beside the
settings of `privet.Collaborative`:

    distort   weight of the mean absolute change of a record, in the network's scale
    ramp      share of the game in which alpha rises from 0 to its value
    warm      epochs in which S only keeps the services' answers, before anything is hidden
    rate      learning rate of the privacy model over that of S (two time scales)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.methods.collaborative import Collaborative, CollaborativeNetworks
from privet.methods.method import Problem
from privet.methods.services.service import Service
from privet.nets.convolutions import prepare
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player
from sources_parts.learned import AT_ONCE, Bench, Learned
from sources_parts.services import among_five, balanced, given, held_out

OWN = {"distort": 0.0, "ramp": 0.0, "warm": 0.0, "rate": 1.0}
# Tasks that the provider's services know, beside the private attribute.
SERVED = ("person", "Smiling")
BINS = 20


class Paced(CollaborativeNetworks):
    """The published losses; alpha may rise with time, a change of the record may cost something,
    and the two players may have different rates."""

    def __init__(self, problem: Problem, method: Collaborative, own: dict[str, float]) -> None:
        super().__init__(problem, method)
        self.own = own
        # A tensor, so that a recorded step sees it change.
        self.alpha = torch.tensor(method.alpha, device=problem.device)

    def sanitize(self, batch: Batch) -> Move:
        x = prepare(batch.x)
        z = self.release(x)
        changed = (z - x).abs().mean()
        with torch.no_grad():
            before = [service(x).log_softmax(1) for service in self.utility]
        kept = torch.stack(
            [
                F.kl_div(s(z).log_softmax(1), wanted, log_target=True, reduction="batchmean")
                for s, wanted in zip(self.utility, before, strict=True)
            ]
        ).mean()
        hidden = torch.stack(
            [
                F.kl_div(s(z).log_softmax(1), prior.expand(len(z), -1), reduction="batchmean")
                for s, prior in zip(self.private, self.priors, strict=True)
            ]
        ).mean()
        loss = (1 - self.alpha) * kept + self.alpha * hidden + self.own["distort"] * changed
        return Move(loss, {"utility KL": kept, "private KL": hidden, "change": changed})

    def phases(self) -> list[Phase]:
        m = self.method
        sanitizer = Player("sanitizer", self.sanitizer, self.sanitize, m.lr)
        players = [sanitizer]
        if m.adversarial:
            models = nn.ModuleList([service.module for service in self.private])
            rate = m.lr * self.own["rate"]
            players.append(Player("privacy model", models, self.defeat, rate, steps=m.moves))
        warm = Phase("keeping", self.own["warm"], [sanitizer], schedule=self._warm, steady=True)
        return [warm, Phase("sanitizing", m.epochs, players, schedule=self._rising, steady=True)]

    def _warm(self, done: float) -> float:
        self.alpha.fill_(0.0)
        return 1.0

    def _rising(self, done: float) -> float:
        ramp = self.own["ramp"]
        self.alpha.fill_(self.method.alpha * (min(1.0, done / ramp) if ramp else 1.0))
        return max(0.02, 1 - done)


def learn(bench: Bench, settings: dict[str, Any]) -> Learned:
    settings = dict(settings)
    saved = settings.pop("saved", None)
    own = {key: settings.pop(key, value) for key, value in OWN.items()}
    method = Collaborative(**settings)
    served = [name for name in SERVED if name in bench.data.attributes]
    problem = bench.problem(method, served or bench.tasks)
    torch.manual_seed(method.seed)
    networks = Paced(problem, method, own)
    for module in networks.modules().values():
        module.to(bench.device)
    given(bench, networks.services, method.lessons, method.service)
    networks._copy_private()
    facts: dict[str, Any] = {}
    if saved is None:
        history = bench.play(
            method.game(problem, networks.modules(), networks.phases(), method.batch)
        )
        facts = {"history": history[-1] if history else {}, **judge(bench, networks)}
    else:
        networks.sanitizer.load_state_dict(saved["module"])
        facts = saved["facts"]
    shape = tuple(bench.raw["test"].shape[1:])

    def release(x: Tensor) -> Tensor:
        return networks.release(prepare(x))

    noisy = bool(method.stochastic)
    return Learned(networks.sanitizer.eval(), release, shape, True, noisy, facts["in_game"], facts)


@torch.no_grad()
def judge(bench: Bench, networks: Paced) -> dict[str, Any]:
    """What the provider's models answer about raw and about released records: of *select*; about
    people, of *fit*, whom they know, in pictures that they learned from and in others."""
    networks.sanitizer.eval()
    facts: dict[str, Any] = {"in_game": {}, "services": {}, "answers": {}}
    for service in networks.utility:
        name = service.attribute.name
        if service.attribute.kind != "identity":
            facts["services"][name] = _both(bench, networks, service)[0]
            continue
        people = np.asarray(bench.data.part("fit").labels[name])
        truth, new = (
            torch.as_tensor(some, device=bench.device) for some in (people, held_out(people))
        )
        both = _scores(bench, networks, service, "fit")
        for key, where in ((name, ~new), (f"{name}, new pictures", new)):
            facts["services"][key] = {
                kind: among_five(scores[where], truth[where]) for kind, scores in both.items()
            }
    for service, given_one in zip(networks.private, networks.given, strict=True):
        name = service.attribute.name
        played, after = _both(bench, networks, service)
        came, before = _both(bench, networks, given_one)
        facts["in_game"][name] = {"balanced": played["released"] / 100, "part": "select"}
        facts["services"][name] = {
            **played,
            "as it came": came["released"],
            "before": came["raw"],
        }
        facts["answers"][name] = {
            "before": before["raw"],
            "raw": after["raw"],
            "released": after["released"],
        }
    return facts


def _scores(
    bench: Bench, networks: Paced, service: Service, part: str = "select"
) -> dict[str, Tensor]:
    """A service's scores of raw and of released records."""
    raw, released = [], []
    for x in bench.raw[part].split(AT_ONCE):
        raw.append(service(prepare(x)))
        released.append(service(networks.release(prepare(x))))
    return {"raw": torch.cat(raw), "released": torch.cat(released)}


def _both(
    bench: Bench, networks: Paced, service: Service
) -> tuple[dict[str, float], dict[str, Any]]:
    """Balanced accuracy in per cent on *select*, and how the answers are spread there: of the
    people of each true value, the share in each of BINS equal steps of the probability of the
    last value."""
    name = service.attribute.name
    labels = bench.data.part("select").labels[name]
    truth = torch.as_tensor(labels, device=bench.device)
    both = _scores(bench, networks, service)
    spread = {}
    for kind, scores in both.items():
        step = (scores.softmax(1)[:, -1] * BINS).long().clamp(max=BINS - 1)
        spread[kind] = [
            [
                round(v, 4)
                for v in (
                    torch.bincount(step[truth == c], minlength=BINS)
                    / max(1, int((truth == c).sum()))
                ).tolist()
            ]
            for c in range(scores.shape[1])
        ]
    return {kind: balanced(scores, truth) for kind, scores in both.items()}, spread
