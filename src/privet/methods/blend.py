"""Blend: what describes a record, moved until the private values cannot be told apart.

    c = A (d(x) - mean)      d: edges, colours, contrast of a picture, and features that are learned
                             without labels, in which pictures of one value differ; A: main
                             components within a value
    z = c + R(c, u)          the code; u guessed, or told

    min_R  mean |R(c, u)|^2                             move little
           + 100 hide * MMD(z | u, z | other values)    distance in four Gaussian kernels
           + 2 hide * perceptrons that must have no idea of u     (restarted in turn)

R learns from components of many random views of every picture. Then a decoder that is told u learns
to draw the record from z. No task is named. What describes a record holds smiles, hats and glasses
in few numbers, and few numbers can be moved together with few people: more of them leave more of u
(docs/methods/blend.md).

MMD: Gretton and others, "A kernel two-sample test", JMLR 13, 2012. Codes matched in it: Louizos and
others, "The variational fair autoencoder", ICLR 2016. Restarted perceptrons are those of Confusion,
networks, guess and decoder those of Veil.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from privet.core.errors import refuse
from privet.core.progress import bar
from privet.data.known_attributes import Given, in_classes, know
from privet.data.schema import ImageSchema
from privet.methods.confusion import uninformed
from privet.methods.known_labels import one_hot_known, split_scores
from privet.methods.method import NUMERIC, Method, Problem, at_least, choices_of, ranges_of
from privet.methods.veil import Veil, VeilNetworks, one_cycle
from privet.nets.blend import Blend as BlendNetwork
from privet.nets.convolutions import prepare
from privet.nets.perceptrons import Perceptrons
from privet.nets.views import moved, relit
from privet.release.noise import Noise
from privet.release.release import Release
from privet.train.feed import Batch
from privet.train.game import Move, Phase, Player, Run

# Weights of the distance in kernels and of the perceptrons, where hide is 1.
KERNEL, PERCEPTRONS = 100.0, 2.0
# Numbers in the layers of the perceptrons.
PANEL = 512
# Rates of the kernels, in inverse squared deviations.
RATES = (0.1, 0.25, 0.6, 1.5)
# Records that are described at once, and components that are kept in learning at most.
AT_ONCE, MOST = 512, 2_000_000
# Share of the moves after which perceptrons start again no more.
LAST_RESTART = 0.8
# A deviation of a descriptor is at least this.
FLOOR = 1e-2
# Records that components are taken from, at most.
COMPONENTS_OF = 20_000
# Components looked for beyond those wanted, and rounds of looking.
SPARE, ROUNDS = 16, 6


@dataclass(kw_only=True)
class Blend(Method):
    """A code of what describes a record, in which the private values cannot be told apart.

    Meant for pictures, and for tasks that nobody has named. A picture is described by its edges,
    colours and contrast, and by features learned without labels where asked for; the main
    components of that are shifted by a small network until kernels and perceptrons cannot tell the
    private values apart. A decoder draws the record from its code, with one value for everybody.

    Parameters:
        hide: Weight of hiding. More hides more, and moves codes further.
        dims: Numbers in the code. Fewer hide more.
        features: Epochs in which features are learned without labels; of pictures only. 0 for none.
        output: What is released: code, or record (drawn with one value for everybody).
        drawn_as: The value that records are drawn with, for every private attribute, with commas
            between them. Empty for the most frequent.
        told: Whether the owner says the private attribute of every record, instead of a guess.
        copies: Random views of every picture that components are taken from for learning.
        sample: Codes that are compared in a move.
        adversaries: How many perceptrons there are.
        restart: Rounds after which a perceptron starts again, in turn; 0 for never.
        bins: Classes that a private number is turned into.
        width: Factor on the layer sizes of networks that see or draw records.
        lessons: Epochs in which the guess of the attribute is learned.
        epochs: How often a record is seen while codes are moved.
        drawing: Epochs in which the decoder learns to draw.
        batch: Records per step.
        lr: Learning rate at its highest; it falls to nearly 0.

    Example:
        >>> import privet
        >>> data = privet.load("portraits:60", progress=False)
        >>> method = privet.Blend(
        ...     dims=4, width=0.05, copies=1, sample=32, lessons=1, epochs=1, drawing=1, batch=16
        ... )
        >>> release = method.fit(data, "beard", run=privet.Run(progress=False))
        >>> release.shape, release.card["form"]
        ((4,), 'code')

    Notes:
        Nothing is certified: a stronger attacker may read more, and several records of one person
        tell more than one. A code has next to no noise, so releasing a record again tells next to
        nothing more. What the descriptors do not hold is lost.
    """

    hide: float = 1.0
    dims: int = 24
    features: float = 0.0
    output: str = "code"
    drawn_as: str = ""
    told: bool = False
    copies: int = 24
    sample: int = 2048
    adversaries: int = 2
    restart: int = 200
    bins: int = 8
    width: float = 1.0
    lessons: float = 25.0
    epochs: float = 115.0
    drawing: float = 60.0
    batch: int = 512
    lr: float = 1e-3

    name = "blend"
    title = "Blend"
    modalities = NUMERIC
    instead = "turn texts into vectors first (privet embed), and blend those"
    numbers = True
    dial = "hide"
    sweep = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    choices = choices_of(output=("code", "record"))
    ranges = ranges_of(
        **dict.fromkeys(("hide", "features", "drawing", "restart", "copies"), at_least(0)),
        **dict.fromkeys(("dims", "adversaries"), at_least(1)),
        bins=(2, 100),
        sample=at_least(8),
        batch=at_least(8),
    )

    def accept(self, problem: Problem) -> Problem:
        refuse(
            (
                self.features and problem.data.modality != "image",
                "Features are learned of pictures only: leave out features.",
            ),
        )
        known = know(problem.data, problem.private, self.bins) if self.told else ()
        classes, private = in_classes(problem.data, problem.private, self.bins)
        problem = replace(problem, data=classes, private=private)
        return replace(problem, schema=Given(problem.schema, known)) if known else problem

    def learn(self, problem: Problem, run: Run) -> Release:
        networks = BlendNetworks(problem, self, run)
        phases = networks.phases()
        game = self.game(problem, networks.modules(), phases, self.batch)
        networks.rounds = game.rounds(phases[-2])
        history = game.play(run)
        for module in networks.modules().values():
            module.eval()
        card = {
            "form": self.output,
            "classes": {a.name: list(a.values) for a in problem.private},
            **networks.judge(problem),
            "history": history,
        }
        noise = Noise("gaussian", (self.dims,), 1.0)
        return Release(problem.schema, ("blend", networks.settings), networks.veil, noise, card)


class Components(nn.Module):
    """Components of the views of all records, with their values. A module, so that it is part of a
    checkpoint.

    Parameters:
        rows: How many there are.
        dims: Numbers of each.
        attributes: Private attributes.
    """

    rows: Tensor
    values: Tensor
    chances: Tensor

    def __init__(self, rows: int, dims: int, attributes: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(rows, dims))
        self.register_buffer("values", torch.full((rows, attributes), -1, dtype=torch.int64))
        self.register_buffer("chances", torch.zeros(rows, dtype=torch.float64))

    def fill(self, rows: Tensor, values: Tensor, classes: list[int]) -> None:
        """Keep these rows; each value of an attribute is drawn about equally often."""
        self.rows.copy_(rows)
        self.values.copy_(values)
        weight = torch.zeros(len(values), dtype=torch.float64, device=values.device)
        for column, count in zip(values.T, classes, strict=True):
            member = one_hot_known(column, count).double()
            weight += (member / member.sum(0).clamp(min=1)).sum(1)
        self.chances.copy_(torch.cumsum(weight, 0) / weight.sum())

    def draw(self, count: int) -> tuple[Tensor, Tensor]:
        """So many rows at random, and their values."""
        at = torch.rand(count, dtype=torch.float64, device=self.rows.device)
        index = torch.searchsorted(self.chances, at).clamp(max=len(self.rows) - 1)
        return self.rows[index], self.values[index]


class BlendNetworks(VeilNetworks):
    """Veil's networks with codes of descriptors, and how these are moved."""

    def __init__(self, problem: Problem, method: Blend, run: Run) -> None:
        self.blend, self.run = method, run
        shared = ("dims", "output", "drawn_as", "told", "adversaries", "restart", "width")
        settings = {name: getattr(method, name) for name in shared}
        super().__init__(problem, Veil(match=0.0, memory=1, batch=8, **settings))
        assert isinstance(self.veil, BlendNetwork)
        self.encoder = self.veil.encoder
        sizes = (method.dims, PANEL, PANEL, sum(self.classes))
        self.panel = Perceptrons(method.adversaries, sizes)
        self.pictures = isinstance(self.schema.plain, ImageSchema)
        views = 1 + method.copies if self.pictures else 1
        views = max(1, min(views, MOST // max(1, len(self.feed))))
        self.views = views + 1 if self.pictures else views  # a mirrored one as well
        rows = self.views * len(self.feed)
        self.components = Components(rows, method.dims, len(self.private))

    def _network(self, problem: Problem) -> BlendNetwork:
        shared = ("classes", "dims", "width", "output", "drawn_as")
        self.settings = {name: self.settings[name] for name in shared}
        self.settings["learned"] = self.blend.features > 0
        return BlendNetwork(self.schema, **self.settings)

    def modules(self) -> dict[str, nn.Module]:
        return {
            "veil": self.veil,
            "panel": self.panel,
            "distance": self.distance,
            "components": self.components,
        }

    def phases(self) -> list[Phase]:
        m = self.blend
        phases = []
        if m.features:
            learned = self.encoder.describe.learned
            assert isinstance(learned, nn.Module)
            player = Player("features", learned, self.see, 2e-3, decay=3e-2)
            phases.append(Phase("learning features", m.features, [player]))
        if self.veil.guess is not None:
            player = Player("guess", self.veil.guess, self.guess, 1e-3, decay=1e-2)
            phases.append(Phase("guessing", m.lessons, [player]))
        players = [
            Player("shift", self.encoder.shift, self.move, m.lr, decay=1e-2),
            Player("panel", self.panel, self.accuse, 2e-3, decay=1e-2),
        ]
        phases.append(Phase("moving codes", m.epochs, players, schedule=self.begin_round))
        drawing = nn.ModuleList([self.veil.decoder, self.distance])
        player = Player("decoder", drawing, self.redraw, 1.5e-3, decay=1e-2)
        phases.append(Phase("drawing", m.drawing, [player]))
        own = self.begin_round
        return [
            replace(one, steady=True, schedule=own if one.players is players else one_cycle)
            for one in phases
        ]

    def begin_round(self, done: float) -> float:
        """Called at the start of every round: the first one takes the components."""
        if done == 0.0:
            self.take_components()
        number, restart = round(done * self.rounds), self.blend.restart
        due = restart and number and number % restart == 0 and done < LAST_RESTART
        if due and number != self.last_round:
            self.panel.renew((number // restart - 1) % self.blend.adversaries)
        self.last_round = number
        return one_cycle(done)

    def records(self, batch: Batch) -> Tensor:
        """Prepared records of a batch, as a random view where they are pictures."""
        own = prepare(self.schema.own(batch.x))
        return relit(moved(own)) if self.pictures else own

    def see(self, batch: Batch) -> Move:
        """Features are learned by finding a picture again among those of the same values."""
        truth = self.truth(batch)
        group = torch.zeros_like(truth[:, 0])
        for column, classes in zip(truth.T, self.classes, strict=True):
            group = group * (classes + 1) + column + 1
        learned: Any = self.encoder.describe.learned
        loss, found = learned.contrast(prepare(self.schema.own(batch.x)).float(), group)
        return Move(loss, {"found again": found})

    @torch.no_grad()
    def take_components(self) -> None:
        """The main components within a value of what describes *fit*, and those of every view."""
        self.encoder.eval()
        with bar("describing", self.views, self.run.progress) as tick:
            plain, truth = self.described(0)
            tick(1)
            more = self.described(1)[0] if self.pictures else plain[:0]
            self.find_axes(torch.cat([plain, more]), truth.repeat(2 if len(more) else 1, 1))
            rows = [self.project(some) for some in (plain, more) if len(some)]
            del plain, more
            for view in range(len(rows), self.views):
                tick(view)
                rows.append(self.project(self.described(view + 1)[0]))
            tick(self.views)
        self.encoder.train()
        self.components.fill(torch.cat(rows), truth.repeat(len(rows), 1), self.classes)

    def described(self, view: int) -> tuple[Tensor, Tensor]:
        """What describes every record of *fit*, and values: as it is (0), mirrored (1), or seen in
        another way."""
        found, values = [], []
        for batch in self.feed.in_order(AT_ONCE):
            own = prepare(self.schema.own(batch.x)).float()
            own = own.flip(-1) if view == 1 else relit(moved(own)) if view > 1 else own
            found.append(self.encoder.describe(own).half().cpu())
            values.append(self.truth(batch))
        return torch.cat(found), torch.cat(values)

    def find_axes(self, rows: Tensor, truth: Tensor) -> None:
        """Each part of the descriptors in deviations, divided by the root of its numbers; then main
        components of what is left of a record beside the mean of its values."""
        rows, truth = rows[:COMPONENTS_OF].float(), truth[:COMPONENTS_OF].cpu()
        mean = rows.mean(0)
        describe = self.encoder.describe
        sizes, weights = describe.sizes, describe.weights
        parts = zip(sizes, weights, strict=True)  # type: ignore[arg-type]
        weight = torch.cat([torch.full((size,), w * size**-0.5) for size, w in parts])
        if self.pictures:
            weight = weight / rows.std(0).clamp(min=FLOOR)
        within = (rows - mean) * weight
        for column, classes in zip(truth.T, self.classes, strict=True):
            member = one_hot_known(column, classes)
            means = member.T @ within / member.sum(0).clamp(min=1).unsqueeze(1)
            within = within - member @ means
        dims = min(self.blend.dims, *within.shape)
        more = min(dims + SPARE, *within.shape)
        axes = torch.svd_lowrank(within, more, niter=ROUNDS)[2][:, :dims]
        deviation = (within @ axes).square().mean(0).sqrt()
        axes = torch.where(deviation > 1e-6, axes / deviation.clamp(min=1e-6), 0.0)
        self.encoder.mean.copy_(mean)
        self.encoder.axes.zero_()
        self.encoder.axes[:, :dims] = weight.unsqueeze(1) * axes

    def project(self, rows: Tensor) -> Tensor:
        device = self.encoder.mean.device
        parts = [
            (some.to(device).float() - self.encoder.mean) @ self.encoder.axes
            for some in torch.split(rows, AT_ONCE)
        ]
        return torch.cat(parts)

    def move(self, batch: Batch) -> Move:
        """The shift: far enough that values look alike, and no further."""
        with torch.autocast(batch.x.device.type, enabled=False):
            c, truth = self.components.draw(self.blend.sample)
            z = self.encoder.shifted(c, self.value(truth))
            way = (z - c).square().mean()
            seen = z / z.detach().std(0).clamp(min=1e-3)
            kernel = near(seen)
            apart = torch.stack(
                [
                    distance_in_kernels(kernel, column, classes)
                    for column, classes in zip(truth.T, self.classes, strict=True)
                ]
            ).mean()
            said = split_scores(self.panel(seen).float().flatten(0, 1), self.private)
            told = torch.stack([uninformed(scores) for scores in said]).mean()
            loss = way + self.blend.hide * (KERNEL * apart + PERCEPTRONS * told)
        return Move(loss, {"moved": way, "apart": apart, "confusion": told})

    def accuse(self, batch: Batch) -> Move:
        """The perceptrons learn from other codes."""
        with torch.autocast(batch.x.device.type, enabled=False):
            c, truth = self.components.draw(self.blend.sample)
            with torch.no_grad():
                z = self.encoder.shifted(c, self.value(truth))
                z = z / z.std(0).clamp(min=1e-3)
            members = self.blend.adversaries
            scores, everybody = self.panel(z).flatten(0, 1), truth.repeat(members, 1)
            loss = members * self.read(scores, everybody)
        return Move(loss, {"panel right": self.right(scores, everybody)})

    def redraw(self, batch: Batch) -> Move:
        """The decoder learns to draw records from their codes."""
        own, u = prepare(self.schema.own(batch.x)), self.value(self.truth(batch))
        self.encoder.eval()
        with torch.no_grad():
            z = self.encoder(own, u)[0]
        rebuilt = self.distance(self.veil.decoder(z, u).float(), own)
        return Move(rebuilt, {"rebuilt": rebuilt})

    def said(self, z: Tensor) -> Tensor:
        said: Tensor = self.panel(z / z.std(0).clamp(min=1e-3)).mean(0).float()
        return said

    def judge(self, problem: Problem) -> dict[str, Any]:
        """As of a veil, but for the rate: a code has next to no noise."""
        return {key: value for key, value in super().judge(problem).items() if key != "rate"}


def near(z: Tensor) -> Tensor:
    """How near codes are to each other in four Gaussian kernels, (n, n); 0 to themselves."""
    apart = torch.cdist(z, z).square() / z.shape[1]
    kernel = torch.stack([torch.exp(-rate * apart) for rate in RATES]).sum(0)
    return torch.diagonal_scatter(kernel, kernel.new_zeros(len(z)))


def distance_in_kernels(kernel: Tensor, truth: Tensor, classes: int) -> Tensor:
    """The unbiased squared distance between the codes of a value and those of the others, mean over
    values.

    >>> z = torch.cat([torch.zeros(4, 2), torch.full((5, 2), 9.0)])
    >>> truth = torch.tensor([0] * 4 + [1] * 5)
    >>> round(float(distance_in_kernels(near(z), truth, 2)), 2)
    8.0
    >>> round(float(distance_in_kernels(near(0 * z), truth, 2)), 2)
    0.0
    """
    member = one_hot_known(truth, classes)
    others = member.sum(1, keepdim=True) - member
    count, rest = member.sum(0).clamp(min=2), others.sum(0).clamp(min=2)
    between = kernel @ member
    inside = (member * between).sum(0) / (count * (count - 1))
    outside = (others * (kernel @ others)).sum(0) / (rest * (rest - 1))
    across = (others * between).sum(0) / (count * rest)
    return (inside + outside - 2 * across).mean()
