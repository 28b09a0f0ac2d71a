"""What could raise veil on pictures: a plain game outside the package, with one setting an idea.

    python benchmarks/veil_tried.py --folder DIR --plan benchmarks/veil_parts/tried_plan.json \\
        --out out/tried.jsonl --workers 8 --seconds 300

A record is drawn with one value for everybody, x~ = D(E(x, u) + noise, v), and the picture is what
leaves. Its parts are the package's own networks; on a GPU a whole round is one CUDA graph, which
is several times as fast as playing it move by move. Attackers are those of benchmarks/veil.py that
read pictures: a new network on one release and on the mean of eight, and one taught on raw
pictures. The last column says what the first of them reads of the people of *fit*: where it is
lower than on *test*, hiding was learned by heart.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import math
import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as processes
import torch.nn.functional as F
from torch import Tensor, nn
from veil_parts import attackers
from veil_parts.attackers import PARTS, figure

import privet
from privet.core.progress import console
from privet.data.schema_file import Layout
from privet.methods.class_matching import random_directions, sliced_distance
from privet.methods.confusion import class_weights, uninformed
from privet.methods.veil import Veil, one_cycle
from privet.nets.convolutions import prepare
from privet.nets.device import pick, precision
from privet.nets.pyramid import BandDistance
from privet.nets.resnet import Jitter, ResNet
from privet.nets.veil import decoder_of, encoder_of
from privet.nets.weights_average import update_average

TASKS = ("Smiling", "Mouth_Slightly_Open", "High_Cheekbones", "Eyeglasses", "Young", "Wearing_Hat",
         "Bangs", "Black_Hair")  # fmt: skip
PRIVATE = "Male"
# Steps in which the guess of the attribute is learned.
LESSONS = 400


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One idea.

    Parameters:
        name: Of the row.
        size: Pixels a side.
        places: Places a side that the code keeps; 0 for a vector.
        dims: Numbers in the code.
        width: Of all networks.
        beta: Price of a nat, in shares of the mean record's distance.
        rebuild: Weight of the distance between a record and D(z, u).
        hold: Weight of the distance between a record and D(z, v).
        view: Weight of networks on D(z, v) that must have no idea of u.
        matched: Weight of the distance between the values in these networks' features.
        viewers: How many there are.
        viewer: Their width.
        looks: Their moves in a round, each with records of its own.
        restart: Rounds after which one of them starts again.
        averaged: Of how many releases the game sees the mean.
        aware: Whether encoder and decoder are told u.
        soft: Whether they are told the guess, as shares.
        average: Share of the weights' average that a round keeps; 0 for the last weights.
        shift: By how many pixels records are shifted in learning.
        light: How much their light changes in learning.
        crop: Deviation of their zoom in learning.
        halves: Whether viewers and release learn from different people, in turn.
        extra: Other faces that *fit* is joined by.
        faces: How many records of *fit*; 0 for all.
        discriminator: Weight of a network that tells drawn records from raw ones of value v.
        levels: Values that a number of the code may take; 0 for any, with Gaussian noise.
        steps: Rounds.
        batch: Records in a round.
        lr: Highest learning rate of the release.
        seed: Of everything.
    """

    name: str
    size: int = 32
    places: int = 8
    dims: int = 512
    width: float = 0.5
    beta: float = 1e-4
    rebuild: float = 1.0
    hold: float = 1.0
    view: float = 4.0
    matched: float = 0.0
    viewers: int = 2
    viewer: float = 0.4
    looks: int = 1
    restart: int = 0
    averaged: int = 1
    aware: bool = True
    soft: bool = False
    average: float = 0.999
    shift: int = 2
    light: float = 0.0
    crop: float = 0.0
    halves: bool = False
    extra: str = ""
    faces: int = 0
    discriminator: float = 0.0
    levels: int = 0
    steps: int = 2000
    batch: int = 256
    lr: float = 1.5e-3
    seed: int = 0


class Faces:
    """The records of one size on the device, with what is asked about."""

    def __init__(
        self, folder: Path, size: int, extra: str, device: torch.device, few: int = 0
    ) -> None:
        layout = Layout(size=(size, size))
        data = privet.load(folder / "celeba64.parquet", layout, progress=False)
        self.schema = Veil().problem(data, [PRIVATE]).schema
        views = {part: data.part(part) for part in ("fit", *PARTS)}
        self.x = {
            part: torch.as_tensor(self.schema.inputs(view)[:], device=device)
            for part, view in views.items()
        }
        self.truth = {
            name: {
                part: torch.as_tensor(view.labels[name], device=device)
                for part, view in views.items()
            }
            for name in (PRIVATE, *TASKS)
        }
        if few:
            self.x = {part: x[:few] for part, x in self.x.items()}
            self.truth = {
                name: {part: one[:few] for part, one in parts.items()}
                for name, parts in self.truth.items()
            }
        self.truth_of_fit = self.truth[PRIVATE]["fit"]
        if extra:
            more = privet.load(folder / extra, layout, progress=False)
            parts = [more.part(part) for part in ("fit", *PARTS)]
            schema = Veil().problem(more, [PRIVATE]).schema
            joined = [torch.as_tensor(schema.inputs(view)[:], device=device) for view in parts]
            labels = [torch.as_tensor(view.labels[PRIVATE], device=device) for view in parts]
            self.x["fit"] = torch.cat([self.x["fit"], *joined])
            self.truth_of_fit = torch.cat([self.truth_of_fit, *labels])

    def draw(self, part: str, index: Tensor | None) -> Tensor:
        x = self.x[part] if index is None else self.x[part][index]
        return prepare(x)


class Light(nn.Module):
    """Pictures moved, zoomed and under another light, at random."""

    def __init__(self, shift: int, light: float, crop: float) -> None:
        super().__init__()
        self.jitter, self.light, self.crop = Jitter(shift), light, crop

    def forward(self, x: Tensor) -> Tensor:
        x = self.jitter(x)
        if self.crop:
            turn = 0.5 * self.crop * torch.randn(len(x), device=x.device)
            zoom = 1 - self.crop * torch.randn(len(x), device=x.device).abs()
            cosine, sine, zero = zoom * turn.cos(), zoom * turn.sin(), torch.zeros_like(turn)
            moved = torch.stack([cosine, -sine, zero, sine, cosine, zero], 1).view(-1, 2, 3)
            grid = F.affine_grid(moved, list(x.shape), align_corners=False)
            x = F.grid_sample(x, grid, padding_mode="border", align_corners=False)
        if self.light:
            gain = 1 + self.light * torch.randn(len(x), 1, 1, 1, device=x.device)
            tint = self.light * torch.randn(len(x), 3, 1, 1, device=x.device)
            x = (x * gain + tint).clamp(-1, 1)
        return x


class Viewer(nn.Module):
    """Who looks at pictures: scores, and the features behind them."""

    def __init__(self, shape: Any, outputs: int, width: float) -> None:
        super().__init__()
        self.net = ResNet(shape, outputs, width, 0.2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.net.body(self.net.stem(x)).flatten(2).mean(2)
        return self.net.head(features).float(), features.float()


class Game:
    """The release, those who look at it, and a round of both."""

    def __init__(self, faces: Faces, s: Settings, device: torch.device) -> None:
        torch.manual_seed(s.seed)
        self.s, self.device, self.faces = s, device, faces
        shape = faces.schema.shape
        build = (faces.schema, 2, s.dims, s.width, s.places)
        self.release = nn.ModuleDict(
            {"encoder": encoder_of(*build), "decoder": decoder_of(*build)}
        ).to(device, memory_format=torch.channels_last)
        self.average = copy.deepcopy(self.release)
        self.viewers = nn.ModuleList(Viewer(shape, 2, s.viewer) for _ in range(s.viewers)).to(
            device, memory_format=torch.channels_last
        )
        self.critic = Viewer(shape, 1, s.viewer).to(device, memory_format=torch.channels_last)
        self.guess = ResNet(shape, 2, 0.5, 0.2).to(device, memory_format=torch.channels_last)
        self.move = Light(s.shift, s.light, s.crop).to(device)
        self.common = torch.tensor([1.0, 0.0], device=device)
        truth = faces.truth_of_fit
        count = s.faces or len(truth)
        self.x, self.truth = faces.x["fit"][:count], truth[:count]
        self.weights = class_weights(self.truth.cpu(), 2).to(device)
        self.distance = BandDistance([prepare(self.x[:4096]).cpu()], True).to(device)
        self.ramp = torch.zeros((), device=device)
        self.side = torch.zeros((), dtype=torch.long, device=device)
        self.figures: dict[str, Tensor] = {}
        self.players: dict[str, tuple[list[nn.Parameter], torch.optim.Optimizer, float]] = {}
        for name, module, lr in (
            ("release", self.release, s.lr),
            ("viewers", self.viewers, 1e-3),
            ("critic", self.critic, 1e-3),
            ("guess", self.guess, 1e-3),
        ):
            weights = list(module.parameters())
            optimiser = torch.optim.AdamW(
                weights,
                lr=torch.tensor(lr, device=device) if device.type == "cuda" else lr,
                weight_decay=1e-2,
                betas=(0.9, 0.99),
                capturable=device.type == "cuda",
            )
            self.players[name] = (weights, optimiser, lr)

    def step(self, name: str, loss: Tensor) -> None:
        weights, optimiser, _ = self.players[name]
        slopes = torch.autograd.grad(loss, weights, allow_unused=True)
        for weight, slope in zip(weights, slopes, strict=True):
            weight.grad = slope
        optimiser.step()

    def some(self, other: bool = False) -> tuple[Tensor, Tensor]:
        """Moved records of a batch, and their values."""
        size, count = self.s.batch, len(self.x)
        index = torch.randint(0, count, (size,), device=self.device)
        if self.s.halves:  # even places and odd ones, in turn
            index = index // 2 * 2 + (self.side + int(other)) % 2
            index = index.clamp(max=count - 1)
        return self.move(prepare(self.x[index])), self.truth[index]

    def told(self, x: Tensor, truth: Tensor) -> Tensor:
        if not self.s.aware:
            return torch.zeros(len(x), 2, device=self.device)
        if self.s.soft:
            with torch.no_grad():
                return self.guess(x).float().softmax(1)
        return F.one_hot(truth, 2).float()

    def code(self, release: nn.ModuleDict, x: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = release["encoder"](x, u)
        return mean.float(), log_variance.float().clamp(-8.0, 4.0)

    def quantised(self, mean: Tensor) -> Tensor:
        """Every number to one of so many levels, with a slope straight through."""
        half = (self.s.levels - 1) / 2
        bounded = torch.tanh(mean) * half
        return (bounded + (bounded.round() - bounded).detach()) / half

    def drawn(self, release: nn.ModuleDict, z: Tensor, u: Tensor | None = None) -> Tensor:
        values = self.common.expand(len(z), -1) if u is None else u
        made: Tensor = release["decoder"](z, values).float()
        return made

    def lesson(self) -> None:
        x, truth = self.some()
        with precision(self.device):
            scores = self.guess(x).float()
        self.step("guess", F.cross_entropy(scores, truth))

    def round(self) -> None:
        """A move of the release, and moves of those who look."""
        s = self.s
        x, truth = self.some()
        with self.cast():
            u = self.told(x, truth)
            mean, log_variance = self.code(self.release, x, u)
            noise = torch.randn_like(mean)
            deviation = torch.exp(0.5 * log_variance)
            if s.levels:
                z = seen = self.quantised(mean)
                nats = mean.new_zeros(())
            else:
                z = mean + deviation * noise
                seen = mean + deviation * noise / math.sqrt(s.averaged)
                nats = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
            shown = self.drawn(self.release, seen)
            loss = s.beta * nats
            held = self.distance(shown, x)
            loss = loss + s.hold * held
            if s.rebuild:
                loss = loss + s.rebuild * self.distance(self.drawn(self.release, z, u), x)
            told = mean.new_zeros(())
            if s.view or s.matched:
                looked = [viewer(shown) for viewer in self.viewers]
                told = torch.stack([uninformed(scores) for scores, _ in looked]).mean()
                loss = loss + s.view * self.ramp * told
            if s.matched:
                apart = []
                for _, features in looked:
                    lines = random_directions(features.shape[1], 64, self.device)
                    scaled = features / features.detach().std(0).clamp(min=1e-3)
                    apart.append(sliced_distance(scaled, truth, 2, lines))
                loss = loss + s.matched * self.ramp * torch.stack(apart).mean()
            if s.discriminator:
                loss = loss - s.discriminator * self.critic(shown)[0].mean()
        self.step("release", loss)
        if s.average:
            update_average(self.average, self.release, 1 - s.average)
        if s.view or s.matched:
            for number in range(s.looks):
                self.look(shown.detach(), truth, number)
        if s.discriminator:
            self.judge(x, shown.detach(), truth)
        for name, value in (("nats", nats), ("held", held), ("told", told)):
            self.note(name, value)

    def cast(self) -> Any:
        if self.device.type != "cuda":
            return precision(self.device)
        return torch.autocast("cuda", dtype=torch.bfloat16, cache_enabled=False)

    def look(self, shown: Tensor, truth: Tensor, number: int) -> None:
        """Those who look learn; with fresh records at every move but the first, or always where
        they learn from other people."""
        with self.cast():
            if number or self.s.halves:
                with torch.no_grad():
                    x, truth = self.some(other=True)
                    mean, log_variance = self.code(self.release, x, self.told(x, truth))
                    noise = torch.randn_like(mean) / math.sqrt(self.s.averaged)
                    z = (
                        self.quantised(mean)
                        if self.s.levels
                        else mean + torch.exp(0.5 * log_variance) * noise
                    )
                    shown = self.drawn(self.release, z)
            loss, right = shown.new_zeros(()), []
            for viewer in self.viewers:
                scores, _ = viewer(self.move.jitter(shown))
                loss = loss + F.cross_entropy(scores, truth, self.weights)
                right.append((scores.argmax(1) == truth).float().mean())
        self.step("viewers", loss)
        self.note("viewers right", torch.stack(right).mean())

    def judge(self, x: Tensor, shown: Tensor, truth: Tensor) -> None:
        """The discriminator tells drawn records from raw ones of the common value."""
        with self.cast():
            real, made = self.critic(x)[0][:, 0], self.critic(shown)[0][:, 0]
            of_value = (truth == 0).float()
            loss = (F.relu(1 - real) * of_value).sum() / of_value.sum().clamp(min=1)
            loss = loss + F.relu(1 + made).mean()
        self.step("critic", loss)

    def note(self, name: str, value: Tensor) -> None:
        if name not in self.figures:
            self.figures[name] = torch.zeros((), device=self.device)
        self.figures[name].lerp_(value.detach().float(), 0.02)

    def play(self) -> None:
        lessons = min(LESSONS, self.s.steps)
        self.repeat(self.lesson, lessons, lambda n: self.rate("guess", one_cycle(n / lessons)))
        self.guess.eval()
        self.repeat(self.round, self.s.steps, self.begin)
        if not self.s.average:
            self.average = self.release
        self.average.eval()

    def rate(self, name: str, share: float) -> None:
        _, optimiser, lr = self.players[name]
        for group in optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr * share)
            else:
                group["lr"] = lr * share

    def begin(self, step: int) -> None:
        s, done = self.s, step / self.s.steps
        for name in ("release", "critic"):
            self.rate(name, one_cycle(done))
        self.rate("viewers", max(one_cycle(done), 0.1))
        self.ramp.fill_(min(max((done - 0.05) / 0.25, 0.0), 1.0))
        self.side.fill_(step % 2)
        if s.restart and step and step % s.restart == 0 and done < 0.8:
            which = step // s.restart % s.viewers
            fresh = Viewer(self.faces.schema.shape, 2, s.viewer).to(self.device)
            self.viewers[which].load_state_dict(fresh.state_dict())

    def repeat(self, move: Callable[[], None], times: int, begin: Callable[[int], Any]) -> None:
        """Play a round so many times; on a GPU as one graph."""
        if self.device.type != "cuda":
            for step in range(times):
                begin(step)
                move()
            return
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for step in range(4):
                begin(step)
                move()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            move()
        for step in range(4, times):
            begin(step)
            graph.replay()
            if step % 50 == 0:
                torch.cuda.synchronize()
        torch.cuda.synchronize()


class Pictures:
    """Released pictures of a part, drawn as often as asked."""

    def __init__(self, game: Game, x: Tensor) -> None:
        self.game, rows = game, []
        with torch.no_grad(), precision(game.device):
            for part in x.split(512):
                own = prepare(part)
                scores = game.guess(own).float()
                u = F.one_hot(scores.argmax(1), 2).float()
                if game.s.soft:
                    u = scores.softmax(1)
                u = u if game.s.aware else torch.zeros_like(u)
                rows.append(game.code(game.average, own, u))
        self.mean, log_variance = (torch.cat(column) for column in zip(*rows, strict=True))
        self.deviation = torch.exp(0.5 * log_variance)
        self.nats = 0.5 * (self.mean.square() + log_variance.exp() - 1 - log_variance).sum(1)

    def draw(self, index: Tensor | None = None, releases: int = 1) -> Tensor:
        """Pictures; of several releases, their mean."""
        mean, deviation = (
            (self.mean, self.deviation)
            if index is None
            else (self.mean[index], self.deviation[index])
        )
        game, rows = self.game, []
        with torch.no_grad(), precision(game.device):
            for m, d in zip(mean.split(1024), deviation.split(1024), strict=True):
                made = [
                    game.drawn(
                        game.average,
                        game.quantised(m) if game.s.levels else m + d * torch.randn_like(m),
                    )
                    for _ in range(1 if game.s.levels else releases)
                ]
                rows.append(torch.stack(made).mean(0))
        return torch.cat(rows)


def read(game: Game, epochs: int, eight: bool, raw: nn.Module | None) -> dict[str, Any]:
    """What new attackers read of released pictures, and what tasks are read."""
    faces = game.faces
    released = {part: Pictures(game, faces.x[part][:6800]) for part in ("fit", *PARTS)}
    private, tasks = {PRIVATE: 2}, dict.fromkeys(TASKS, 2)
    row: dict[str, Any] = {"nats": float(released["test"].nats.mean())}
    found = {}
    for releases in (1, 8) if eight else (1,):

        def draw(part: str, index: Tensor | None, k: int = releases) -> Tensor:
            return released[part].draw(index, k)

        truth = {PRIVATE: faces.truth[PRIVATE]}
        scores, net = attackers.network(faces.schema, draw, truth, private, epochs)
        mark = f"network, {releases}"
        found[mark] = figure(scores[PRIVATE], faces.truth[PRIVATE], 2)
        if releases == 1:
            row["of fit"] = balanced_of_fit(net, draw, faces)
        if raw is not None:
            said = attackers.read(raw, draw, [PRIVATE, *TASKS], [2] * (1 + len(TASKS)))
            found[f"raw reader, {releases}"] = figure(said[PRIVATE], faces.truth[PRIVATE], 2)
    worst = max(found, key=lambda key: found[key].select)
    row["attackers"] = {key: dataclasses.asdict(one) for key, one in found.items()}
    row["worst"] = {"by": worst, **dataclasses.asdict(found[worst])}
    truth = {task: faces.truth[task] for task in TASKS}
    on_drawn, _ = attackers.network(
        faces.schema, lambda part, index: released[part].draw(index), truth, tasks, epochs
    )
    row["tasks"] = {
        task: dataclasses.asdict(figure(on_drawn[task], truth[task], 2)) for task in TASKS
    }
    row["mean"] = sum(one["value"] for one in row["tasks"].values()) / len(TASKS)
    return row


def balanced_of_fit(net: nn.Module, draw: Any, faces: Faces) -> float:
    truth = faces.truth[PRIVATE]["fit"]
    with torch.no_grad(), precision(truth.device):
        said = torch.cat([net(part).float() for part in draw("fit", None).split(1000)]).argmax(1)
    right = (said == truth).float()
    return 100 * float(torch.stack([right[truth == value].mean() for value in (0, 1)]).mean())


def grid(game: Game, path: Path) -> None:
    """Twelve people of *test*, raw and as they leave."""
    from PIL import Image

    x = game.faces.x["test"][:12]
    raw, made = prepare(x), Pictures(game, x).draw()
    rows = torch.cat([torch.cat(list(part), 2) for part in (raw, made)], 1)
    shown = ((rows + 1) * 127.5).clamp(0, 255).byte().permute(1, 2, 0).cpu().numpy()
    Image.fromarray(shown).resize((shown.shape[1] * 2, shown.shape[0] * 2)).save(path)


def work(number: int, args: argparse.Namespace, plan: list[dict[str, Any]], begin: float) -> None:
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // args.workers))
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 3
    device, faces = pick(args.device), {}
    for row in plan[number :: args.workers]:
        if time.time() - begin > args.seconds:
            return
        s = Settings(**row)
        try:
            key = (s.size, s.extra)
            if key not in faces:
                faces[key] = Faces(args.folder, s.size, s.extra, device, args.few)
            start = time.monotonic()
            game = Game(faces[key], s, device)
            game.play()
            learned = time.monotonic() - start
            figures = {name: float(value) for name, value in game.figures.items()}
            line = {"figures": figures, "learning": learned}
            line |= read(game, args.reading, not args.quick, None)
            line["reading"] = time.monotonic() - start - learned
            grid(game, args.out.parent / f"tried-{s.name.replace(' ', '-')}.png")
        except Exception as error:  # one row that fails must not cost the others
            line = {"failed": f"{type(error).__name__}: {error}"}
            traceback.print_exc()
        line = {"settings": row, "at": time.time() - begin, **line}
        with args.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        if "failed" not in line:
            said = {k: round(one["value"], 1) for k, one in line["attackers"].items()}
            kept = {k[:5]: round(one["value"], 1) for k, one in line["tasks"].items()}
            figures = {k: round(v, 3) for k, v in line["figures"].items()}
            console.print(
                f"[{line['at']:.0f} s] {s.name}: {said} fit {line['of fit']:.1f}; tasks {kept}"
                f" mean {line['mean']:.1f}; nats {line['nats']:.0f} {figures}"
                f" learning {learned:.0f} s, reading {line['reading']:.0f} s",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--reading", type=int, default=12, help="epochs of attackers")
    parser.add_argument("--seconds", type=float, default=1e9, help="no row is begun after these")
    parser.add_argument("--few", type=int, default=0, help="records of a part, to try it out")
    parser.add_argument("--quick", action="store_true", help="no means of eight releases")
    args = parser.parse_args()
    begin, plan = time.time(), json.loads(args.plan.read_text())
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for size, extra in {(row.get("size", 32), row.get("extra", "")) for row in plan}:
        Faces(args.folder, size, extra, torch.device("cpu"))  # packed once, before workers read
    if args.workers == 1:
        work(0, args, plan, begin)
    else:
        processes.spawn(work, (args, plan, begin), nprocs=args.workers)


if __name__ == "__main__":
    main()
