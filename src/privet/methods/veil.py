"""Veil: a code for tasks that nobody has named, which may use the private value to hide it.

    encoder  z ~ N(mu(x, u), s(x, u)^2)     decoder  x~ = D(z, u)

    min  distance(D(z, u), x)                                    keep everything
         + beta * KL(q(z | x, u) || N(0, I))                     and no more than pays: the dial
         + confuse * perceptrons on z without an idea of u       (restarted in turn)
         + match * sliced distance between the codes of u's values
         + quadratic * distance between the values along a quadratic discriminant's scores
         + view * a network on D(z, v) without an idea of u      v: one value for everybody
         + hold * distance(D(z, v), x)                           the rest of a record in its drawing
         [+ keep * mean over tasks CE(h(z), y)]
    then, with `transport`, a linear map for each value of u, in closed form on *fit*

A network that knows neither u nor a guess of it has no way to take u out of what it releases; a
code that may use u can be independent of u and, together with u, give the record back (functional
representation lemma: Li and El Gamal, IEEE Transactions on Information Theory 64, 2018). u is
guessed by a network that is part of the release, so that z is a function of the record and noise,
or told by the record's owner. (Steering beta towards a given number of nats was tried, and left
codes that kept less: the price swung, and fell where hiding took nats away.)

Close relatives: the variational fair autoencoder (Louizos and others, ICLR 2016), which is told u
and matches codes by their means in a kernel; flexibly fair representations (Creager and others,
2019). Restarted adversaries are those of Confusion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from privet.core.errors import refuse
from privet.data.dataset import Array
from privet.data.known_attributes import Given, in_classes, know
from privet.data.schema import ImageSchema, TableSchema
from privet.methods.class_matching import (
    barycentre_maps,
    quadratic_scores,
    random_directions,
    sliced_distance,
)
from privet.methods.column_likelihood import ColumnLoss
from privet.methods.confusion import class_weights, uninformed
from privet.methods.known_labels import accuracy, class_figures, cross_entropy, split_scores
from privet.methods.method import NUMERIC, Method, Problem, at_least, choices_of, ranges_of
from privet.methods.overlap_penalty import CodeMemory
from privet.methods.vectors import one_length_of, rows_are_vectors
from privet.nets.code import body
from privet.nets.contrast import ContrastiveFeatures
from privet.nets.convolutions import prepare, scaled
from privet.nets.perceptrons import Perceptrons
from privet.nets.pyramid import BandDistance, PixelDistance
from privet.nets.resnet import Jitter
from privet.nets.veil import Veil as VeilNetwork
from privet.nets.veil_maps import sizes_of
from privet.nets.veil_vectors import VectorDecoder, VectorEncoder, begin_at_components
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player, Run

# Random directions along which classes are matched in a step.
SLICES = 64
# Records whose statistics scale the distance between records.
MEASURED = 4096
# Rows that are counted at once.
COUNTED = 65_536
# Shares of the game between which penalties come in.
RAMP = (0.1, 0.4)
# Share of the game after which perceptrons start again no more: rates are low then.
LAST_RESTART = 0.7
# Width beside that of the other networks, and dropout, of who looks at decoded records; and by how
# many pixels decoded pictures are shifted for it, so that it does not learn them by heart.
VIEWER = (0.8, 0.2)
GLANCE = 2
# Records of which vectors' principal components are taken.
COMPONENTS_OF = 16_384
# Combinations of values that codes are moved together over.
MOST_CELLS = 32


@dataclass(kw_only=True)
class Veil(Method):
    """A code, or a record in its own form, that hides an attribute and keeps the rest.

    No task is named: the code has to give the record back, to a decoder that is told the private
    attribute. What it holds of a record has a price, `beta`; perceptrons that start anew,
    a distance between classes and, where asked for, a network that looks at decoded records take
    out what is left of the attribute.

    Parameters:
        beta: Price of a nat that the code holds about a record, in shares of what rebuilding the
            record can win: 1 is the distance of the mean record. More hides more.
        dims: Numbers in the code.
        places: Of pictures and windows: places a side that the code keeps, such as 8, with dims
            dealt out among them; 0 for a code without places.
        output: What is released: code, or record (drawn with one value for everybody).
        drawn_as: The value that records are drawn with, for every private attribute, with commas
            between them. Empty for the most frequent.
        told: Whether the owner says the private attribute of every record, instead of a guess.
        soft: Whether the guess goes in as shares rather than as the likeliest value.
        aware: Whether the code may use the attribute at all; without, for comparison.
        distance: How pictures and windows are compared: aligned (details count more where the mean
            record has them), bands (every place and scale counts the same) or pixels. Of tables
            every column has its own likelihood.
        features: Weight of a distance in features of a network that is first taught on *fit*,
            without labels; of pictures and windows.
        confuse: Weight of perceptrons on the code that must have no idea of the attribute.
        match: Weight of the distance between the codes of the attribute's values.
        quadratic: Weight of the distance between the values along the scores of a quadratic
            discriminant that is fitted to earlier codes, anew at every step.
        view: Weight of a network on decoded records that must have no idea of the attribute.
        hold: Weight of the distance between a record and its drawing with the common value, which
            keeps what else is seen of those who have another value.
        keep: Weight of the tasks, where there are any.
        transport: Whether codes are at last moved together by a linear map for each value.
        guessed: Whether learning encodes with the guess of the attribute, as the release does,
            instead of its true value. It counts where the guess is often wrong.
        averaged: Of how many releases of a record with fresh noise the game sees the mean: what
            hides then hides in such a mean too. 1 for a single release.
        adversaries: How many perceptrons there are.
        steps: Moves of the adversaries for each of the encoder's.
        restart: Rounds after which a perceptron starts again, in turn; 0 for never.
        memory: Earlier codes that perceptrons learn from at a move, and that classes are matched
            over. Fewer are faster on a CPU.
        shift: Of pictures: by how many pixels they are shifted at random in learning.
        bins: Classes that a private number is turned into.
        width: Factor on all layer sizes.
        lessons: Epochs in which the guess of the attribute is learned.
        epochs: How often a record is seen.
        batch: Records per step.
        lr: Learning rate at its highest; it falls to nearly 0.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> method = privet.Veil(beta=1e-3, dims=8, width=0.05, lessons=1, epochs=1, batch=16)
        >>> release = method.fit(data, "beard", run=privet.Run(progress=False))
        >>> release.shape, release.noise.law
        ((8,), 'gaussian')

    Notes:
        Nothing is certified: an attacker stronger than those it was tried against may read more,
        and several records of one person tell more than one. What the distance between records
        does not see is lost. With `told` whoever releases must know the attribute, and mistakes of
        the maps may give it away; a guess is bounded by what raw records tell.
    """

    beta: float = 1e-3
    dims: int = 128
    places: int = 0
    output: str = "code"
    drawn_as: str = ""
    told: bool = False
    soft: bool = False
    aware: bool = True
    distance: str = "aligned"
    features: float = 0.0
    confuse: float = 1.0
    match: float = 1.0
    quadratic: float = 0.0
    view: float = 0.0
    hold: float = 0.0
    keep: float = 1.0
    transport: bool = False
    guessed: bool = False
    averaged: int = 1
    adversaries: int = 4
    steps: int = 3
    restart: int = 300
    memory: int = 2048
    shift: int = 0
    bins: int = 8
    width: float = 1.0
    lessons: float = 15.0
    epochs: float = 150.0
    batch: int = 256
    lr: float = 1.5e-3

    name = "veil"
    title = "Veil"
    tasks = "optional"
    modalities = NUMERIC
    instead = "turn texts into vectors first (privet embed), and veil those"
    numbers = True
    dial = "beta"
    sweep = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
    choices = choices_of(output=("code", "record"), distance=("aligned", "bands", "pixels"))
    ranges = ranges_of(
        **dict.fromkeys(("places", "features", "confuse", "match", "view"), at_least(0)),
        **dict.fromkeys(("quadratic", "hold", "keep", "restart", "shift"), at_least(0)),
        **dict.fromkeys(("dims", "adversaries", "steps", "averaged", "memory"), at_least(1)),
        beta=at_least(0),
        bins=(2, 100),
        batch=at_least(8),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse(
            (
                self.told and (self.soft or self.guessed or not self.aware),
                "What is told is no guess: leave out soft, guessed and aware, or told.",
            ),
        )

    def accept(self, problem: Problem) -> Problem:
        known = know(problem.data, problem.private, self.bins) if self.told else ()
        classes, private = in_classes(problem.data, problem.private, self.bins)
        cells = math.prod(attribute.classes for attribute in private)
        refuse(
            (
                self.features and problem.data.modality == "table",
                "Features are learned of pictures and windows; of rows, leave out features.",
            ),
            (
                self.places and problem.data.modality == "table",
                "Rows have no places: leave out places.",
            ),
            (
                self.transport and cells > MOST_CELLS,
                f"Codes can be moved together for at most {MOST_CELLS} combinations of values, and"
                f" there are {cells}: leave out transport, or hide fewer attributes.",
            ),
        )
        if self.places and problem.data.modality != "table":
            shape = cast(Sequence[int], problem.schema.plain.shape)
            each = math.prod(sizes_of(shape, self.places)[-1])
            refuse(
                (
                    self.dims % each > 0,
                    f"The code has {each} places, and dims={self.dims} is no multiple of that.",
                ),
            )
        problem = replace(problem, data=classes, private=private)
        return replace(problem, schema=Given(problem.schema, known)) if known else problem

    def learn(self, problem: Problem, run: Run) -> Release:
        networks = VeilNetworks(problem, self)
        phases = networks.phases()
        game = self.game(problem, networks.modules(), phases, self.batch)
        networks.rounds = game.rounds(phases[-1])
        history = game.play(run)
        for module in networks.modules().values():
            module.eval()
        if self.transport:
            networks.move_together()
        card = {
            "form": self.output,
            "classes": {a.name: list(a.values) for a in problem.private},
            **networks.judge(problem),
            "history": history,
        }
        noise = Noise("gaussian", (self.dims,), 1.0)
        return Release(problem.schema, ("veil", networks.settings), networks.veil, noise, card)


class VeilNetworks:
    """The release's networks, the adversaries, and their objectives."""

    def __init__(self, problem: Problem, method: Veil) -> None:
        self.method, self.private, self.utility = method, problem.private, problem.utility
        self.feed, self.view = problem.feed(), problem.view()
        self.schema, plain = problem.schema, problem.schema.plain
        self.classes = [attribute.classes for attribute in self.private]
        self.settings: dict[str, Any] = {
            "classes": self.classes,
            "dims": method.dims,
            "width": method.width,
            "output": method.output,
            "soft": method.soft,
            "transport": method.transport,
            "aware": method.aware,
            "drawn_as": self._drawn_as(),
            "places": method.places,
        }
        self.veil = self._network(problem)
        labels = [torch.as_tensor(self.view.labels[a.name]) for a in self.private]
        self.weights = [
            class_weights(column, a.classes).to(problem.device)
            for column, a in zip(labels, self.private, strict=True)
        ]
        scores = sum(self.classes)
        size = scaled(512, method.width)
        self.panel = Perceptrons(method.adversaries, (method.dims, size, size, scores))
        size_of_viewer, dropout = VIEWER
        self.viewer = (
            body(plain, scores, size_of_viewer * method.width, dropout) if method.view else None
        )
        self.readers = nn.ModuleList(
            [Perceptrons(1, (method.dims, size, size, task.classes)) for task in self.utility]
        )
        size = max(min(method.batch, len(self.feed)), min(method.memory, len(self.feed)))
        self.memory = CodeMemory(size, 2 * method.dims, len(self.private))
        self.distance = self._distance()
        self.jitter = Jitter(method.shift) if isinstance(plain, ImageSchema) else None
        self.glance = Jitter(GLANCE) if isinstance(plain, ImageSchema) else nn.Identity()
        shape = cast(Sequence[int], plain.shape)
        self.features = ContrastiveFeatures(shape, method.width) if method.features else None
        # How much of the penalties has come in; moves read it from here.
        self.ramp = torch.zeros((), device=problem.device)
        self.rounds, self.last_round = 0, -1

    def _network(self, problem: Problem) -> VeilNetwork:
        """The release's network; vectors have an encoder and a decoder of their own."""
        is_vector = rows_are_vectors(self.schema.plain)
        if is_vector:
            self.settings |= {"vectors": True, "length": one_length_of(problem) or 0.0}
        veil = VeilNetwork(self.schema, **self.settings)
        if is_vector:
            assert isinstance(veil.encoder, VectorEncoder)
            assert isinstance(veil.decoder, VectorDecoder)
            begin_at_components(veil.encoder, veil.decoder, self._some(COMPONENTS_OF))
        return veil

    def _drawn_as(self) -> list[int]:
        asked = [word.strip() for word in self.method.drawn_as.split(",") if word.strip()]
        if not asked:
            columns = [self.view.labels[a.name] for a in self.private]
            return [int(np.bincount(column[column >= 0]).argmax()) for column in columns]
        known = [a.values for a in self.private]
        refuse(
            (
                len(asked) != len(known)
                or any(word not in values for word, values in zip(asked, known, strict=False)),
                f"drawn_as takes a value of each private attribute: {known}, not '"
                f"{self.method.drawn_as}'.",
            ),
        )
        return [values.index(word) for word, values in zip(asked, known, strict=True)]

    def _distance(self) -> nn.Module:
        plain = self.schema.plain
        if isinstance(plain, TableSchema):
            return ColumnLoss(plain, self._frequencies())
        prepared = [self._some(MEASURED)]
        if self.method.distance == "pixels":
            return PixelDistance(prepared)
        return BandDistance(prepared, self.method.distance == "aligned")

    def _some(self, records: int) -> Tensor:
        """The first so many prepared records of *fit*."""
        batches = islice(self.feed.in_order(), records // 512)
        return torch.cat([prepare(self.schema.own(batch.x)).cpu() for batch in batches])

    def _frequencies(self) -> Array:
        """Mean of every number of the encoded rows; of zeros and ones exactly, however many rows
        are read at once."""
        inputs = self.schema.inputs(self.view)
        parts = (
            np.arange(at, min(at + COUNTED, len(inputs))) for at in range(0, len(inputs), COUNTED)
        )
        sums = [self.schema.own(inputs[part]).sum(0, dtype=np.float64) for part in parts]
        return np.asarray(np.sum(sums, axis=0) / len(inputs))

    def modules(self) -> dict[str, nn.Module]:
        optional = {"viewer": self.viewer, "features": self.features}
        return {
            "veil": self.veil,
            "panel": self.panel,
            "readers": self.readers,
            "memory": self.memory,
            "distance": self.distance,
            **{name: module for name, module in optional.items() if module is not None},
        }

    def phases(self) -> list[Phase]:
        m = self.method
        hidden = nn.ModuleList([self.veil.encoder, self.veil.decoder, self.readers, self.distance])
        players = [Player("veil", hidden, self.hide, m.lr, decay=1e-2)]
        if m.confuse:
            players.append(Player("panel", self.panel, self.accuse, 2e-3, m.steps, decay=1e-2))
        if self.viewer is not None:
            players.append(Player("viewer", self.viewer, self.look, 1e-3, decay=1e-2))
        hiding = Phase("veiling", m.epochs, players, schedule=self.begin_round, steady=True)
        lessons = []
        if self.features is not None:
            seer = Player("features", self.features, self.see, 1e-3, decay=1e-2)
            lessons.append(Phase("learning features", 2 * m.lessons, [seer]))
        if self.veil.guess is not None:
            guesser = Player("guess", self.veil.guess, self.guess, 1e-3, decay=1e-2)
            lessons.append(Phase("guessing", m.lessons, [guesser]))
        return [*(replace(one, schedule=one_cycle, steady=True) for one in lessons), hiding]

    def begin_round(self, done: float) -> float:
        """Called at the start of every round: penalties come in, and perceptrons start again.
        Which round it is follows from the share that is done."""
        number, restart = round(done * self.rounds), self.method.restart
        due = restart and number and number % restart == 0 and done < LAST_RESTART
        if number != self.last_round and due:
            self.panel.renew((number // restart - 1) % self.method.adversaries)
        self.last_round = number
        low, high = RAMP
        self.ramp.fill_(min(max((done - low) / (high - low), 0.0), 1.0))
        return one_cycle(done)

    def records(self, batch: Batch) -> Tensor:
        """Prepared records of a batch, as learning sees them."""
        own = prepare(self.schema.own(batch.x))
        return own if self.jitter is None else self.jitter(own)

    def truth(self, batch: Batch) -> Tensor:
        return torch.stack([batch.labels[a.name] for a in self.private], 1)

    def value(self, truth: Tensor) -> Tensor:
        """u as the networks take it, (n, values): zeros where a label is missing."""
        parts = [
            F.one_hot(column.clamp(min=0), classes) * (column >= 0).unsqueeze(1)
            for column, classes in zip(truth.T, self.classes, strict=True)
        ]
        return torch.cat(parts, 1).float()

    def guess(self, batch: Batch) -> Move:
        """The guess of u learns from records alone."""
        assert self.veil.guess is not None
        scores = split_scores(self.veil.guess(self.records(batch)).float(), self.private)
        columns = self.truth(batch).T
        losses = [cross_entropy(s, c) for s, c in zip(scores, columns, strict=True)]
        right = [accuracy(s, c) for s, c in zip(scores, columns, strict=True)]
        return Move(torch.stack(losses).mean(), {"guessed right": torch.stack(right).mean()})

    def see(self, batch: Batch) -> Move:
        """The network whose features records are compared in learns without labels."""
        assert self.features is not None
        loss, found = self.features.contrast(prepare(self.schema.own(batch.x)))
        return Move(loss, {"found again": found})

    def hide(self, batch: Batch) -> Move:
        """Encoder and decoder, and the readers of tasks."""
        m, x, truth = self.method, self.records(batch), self.truth(batch)
        known = self.known(batch, x, truth)
        mean, log_variance = self.veil.encode(x, known)
        deviation, noise = torch.exp(0.5 * log_variance), torch.randn_like(mean)
        z = mean + deviation * noise
        made = self.veil.decoder(z, known).float()
        rebuilt = self.distance(made, x)
        nats = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
        loss = rebuilt + m.beta * nats
        figures = {"rebuilt": rebuilt, "nats": nats}
        if self.features is not None:
            alike = self.features.distance(made, x)
            loss = loss + m.features * alike
            figures["features"] = alike
        if m.hold:
            held = self.distance(self.drawn(z), x)
            loss = loss + m.hold * held
            figures["held"] = held
        self.memory.add(torch.cat([mean, log_variance], 1), truth)
        # What is hidden from: one code, or the mean of several, which has less noise.
        seen = mean + deviation * noise / math.sqrt(m.averaged)
        if m.confuse:
            said = split_scores(self.panel(seen).float().flatten(0, 1), self.private)
            told = torch.stack([uninformed(scores) for scores in said]).mean()
            loss = loss + m.confuse * self.ramp * told
            figures["confusion"] = told
        if m.match:
            apart = self.apart(seen, truth)
            loss = loss + m.match * self.ramp * apart
            figures["apart"] = apart
        if m.quadratic:
            curved = self.curved(seen, truth)
            loss = loss + m.quadratic * self.ramp * curved
            figures["curved"] = curved
        if self.viewer is not None:
            drawn = self.drawn(seen)
            looked = split_scores(self.viewer(drawn).float(), self.private)
            shown = torch.stack([uninformed(scores) for scores in looked]).mean()
            loss = loss + m.view * self.ramp * shown
            figures["shown"] = shown
        if self.utility:
            missed = torch.stack(
                [
                    cross_entropy(reader(z)[0].float(), batch.labels[task.name])
                    for task, reader in zip(self.utility, self.readers, strict=True)
                ]
            ).mean()
            loss = loss + m.keep * missed
            figures["task loss"] = missed
        return Move(loss, figures)

    def drawn(self, z: Tensor) -> Tensor:
        """Records drawn with one value for everybody, as an adversary sees them."""
        weights: dict[str, Tensor] = dict(self.veil.decoder.named_parameters())
        if self.method.output == "code":
            # The encoder alone has to hide: a decoder that helped would leave the value in z.
            weights = {name: weight.detach() for name, weight in weights.items()}
        made: Tensor = functional_call(self.veil.decoder, weights, (z, self.common(z))).float()
        return made

    def known(self, batch: Batch, x: Tensor, truth: Tensor) -> Tensor:
        """u as encoder and decoder are told it in learning."""
        if self.method.guessed and self.veil.guess is not None:
            self.veil.guess.eval()  # no dropout, as in the release
            with torch.no_grad():
                return self.veil.value(batch.x, x)
        u = self.value(truth)
        return u if self.method.aware else torch.zeros_like(u)

    def common(self, z: Tensor) -> Tensor:
        """The value that everybody is drawn with, once for each code."""
        return self.veil.common.expand(len(z), -1)

    def apart(self, z: Tensor, truth: Tensor) -> Tensor:
        """The distance between classes, over this batch and the memory."""
        earlier, values = self.recall()
        with torch.autocast(z.device.type, enabled=False):
            directions = random_directions(z.shape[1], SLICES, z.device)
            everybody, labels = torch.cat([z.float(), earlier]), torch.cat([truth, values])
            each = [
                sliced_distance(everybody, column, classes, directions)
                for column, classes in zip(labels.T, self.classes, strict=True)
            ]
        return torch.stack(each).mean()

    def curved(self, z: Tensor, truth: Tensor) -> Tensor:
        """The distance between classes in what a quadratic discriminant sees of this batch."""
        earlier, values = self.recall()
        with torch.autocast(z.device.type, enabled=False):
            each = []
            for column, known, classes in zip(truth.T, values.T, self.classes, strict=True):
                scores = quadratic_scores(z.float(), earlier, known, classes)
                alone = torch.eye(classes, device=z.device)
                each.append(sliced_distance(scores, column, classes, alone))
        return torch.stack(each).mean()

    def recall(self) -> tuple[Tensor, Tensor]:
        """Earlier codes with fresh noise, as the game sees them, and their values."""
        mean, log_variance = self.memory.codes.chunk(2, dim=1)
        noise = torch.randn_like(mean) / math.sqrt(self.method.averaged)
        z = mean + torch.exp(0.5 * log_variance) * noise
        return z, self.memory.values

    def accuse(self, batch: Batch) -> Move:
        """The perceptrons learn from earlier codes, values weighing the same."""
        z, truth = self.recall()
        scores, everybody = self.panel(z).flatten(0, 1), truth.repeat(self.method.adversaries, 1)
        loss = self.method.adversaries * self.read(scores, everybody)
        return Move(loss, {"panel right": self.right(scores, everybody)})

    def look(self, batch: Batch) -> Move:
        """The viewer learns from decoded records of a part of the memory."""
        assert self.viewer is not None
        z, truth = self.recall()
        some = torch.randint(0, len(z), (len(batch.x),), device=z.device)
        with torch.no_grad():
            drawn = self.veil.decoder(z[some], self.common(z[some])).float()
        scores = self.viewer(self.glance(drawn))
        return Move(
            self.read(scores, truth[some]), {"viewer right": self.right(scores, truth[some])}
        )

    def said(self, z: Tensor) -> Tensor:
        """What the game's own adversaries say: perceptrons on codes, or who looks at records."""
        alone = None if self.method.confuse else self.viewer
        said: Tensor = self.panel(z).mean(0) if alone is None else alone(self.drawn(z))
        return said.float()

    def read(self, scores: Tensor, truth: Tensor) -> Tensor:
        parts = split_scores(scores.float(), self.private)
        each = zip(parts, truth.T, self.weights, strict=True)
        return torch.stack([cross_entropy(s, column, w) for s, column, w in each]).mean()

    def right(self, scores: Tensor, truth: Tensor) -> Tensor:
        parts = split_scores(scores.float(), self.private)
        return torch.stack(
            [accuracy(s, column) for s, column in zip(parts, truth.T, strict=True)]
        ).mean()

    @torch.no_grad()
    def move_together(self) -> None:
        """The maps that give the codes of all values one mean and covariance, from *fit*."""
        generator = torch.Generator().manual_seed(self.method.seed)
        codes, truth = [], []
        for batch in self.feed.in_order():
            own, labels = prepare(self.schema.own(batch.x)), self.truth(batch)
            known = self.value(labels) if self.method.aware else self.veil.value(batch.x, own)
            mean, log_variance = self.veil.encode(own, known)
            noise = torch.randn(mean.shape, generator=generator).to(mean.device)
            codes.append((mean + torch.exp(0.5 * log_variance) * noise).cpu().numpy())
            truth.append(labels.cpu().numpy())
        values = np.concatenate(truth)
        cell = np.zeros(len(values), dtype=np.int64)
        for column, classes in zip(values.T, self.classes, strict=True):
            cell = np.where((column < 0) | (cell < 0), -1, cell * classes + column)
        maps, shifts = barycentre_maps(np.concatenate(codes), cell, math.prod(self.classes))
        self.veil.maps.copy_(torch.as_tensor(maps, dtype=torch.float32))
        self.veil.shifts.copy_(torch.as_tensor(shifts, dtype=torch.float32))

    @torch.no_grad()
    def judge(self, problem: Problem) -> dict[str, Any]:
        """On people not learned from: what the game's own perceptrons read, how often u is guessed
        right, the rate, and how much of a record is lost."""
        generator = torch.Generator().manual_seed(self.method.seed)
        feed = problem.feed("select")
        said, guessed, nats, lost, weights = [], [], [], [], []
        for batch in feed.in_order():
            own = prepare(self.schema.own(batch.x))
            u = self.veil.value(batch.x, own)
            mean, log_variance = self.veil.encode(own, u)
            noise = torch.randn(mean.shape, generator=generator).to(mean.device)
            z = self.veil.code(own, u, noise)
            said.append(self.said(z))
            guessed.append(u)
            variance = log_variance.exp()
            nats.append(float(0.5 * (mean.square() + variance - 1 - log_variance).sum(1).mean()))
            lost.append(float(self.distance(self.veil.decoder(z, u).float(), own)))
            weights.append(len(own))
        read = split_scores(torch.cat(said), self.private)
        guesses = split_scores(torch.cat(guessed), self.private)
        in_game = {
            a.name: class_figures(scores, feed.labels[a.name]) | {"part": "select"}
            for a, scores in zip(self.private, read, strict=True)
        }
        return {
            **({"in_game": in_game} if self.method.confuse or self.method.view else {}),
            "guess": {
                a.name: class_figures(scores, feed.labels[a.name]) | {"part": "select"}
                for a, scores in zip(self.private, guesses, strict=True)
            },
            "rate": {"nats": float(np.average(nats, weights=weights)), "part": "select"},
            "lost": {"share": float(np.average(lost, weights=weights)), "part": "select"},
        }


def one_cycle(done: float) -> float:
    """Up in the first tenth, then half a cosine down.

    >>> [round(one_cycle(done), 2) for done in (0.0, 0.1, 0.55, 1.0)]
    [0.0, 0.98, 0.42, 0.0]
    """
    return min(done / 0.1, 1.0) * 0.5 * (1 + math.cos(math.pi * done)) + 1e-3
