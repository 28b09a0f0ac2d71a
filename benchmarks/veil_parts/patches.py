"""Features of pictures that nobody labelled: a network that finds a patch again, moved and under
another light, among the patches of other records at the same place.

Half of what it must tell apart are patches of the same person's other pictures, where *fit* has
them. After Chen and others, "A simple framework for contrastive learning", ICML 2020.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.methods.veil import one_cycle
from privet.nets.contrast_within import Residual
from privet.nets.device import precision

# Pixels a side of a patch, and where patches of a picture of 64 pixels have their centres.
SIDE = 24
CENTRES = (14, 26, 38, 50)
PLACES = len(CENTRES) ** 2
# Places of one batch: a record meets those that are seen at the same place.
GROUPS = 8
TEMPERATURE = 0.15


class PatchNetwork(nn.Module):
    """`dims` numbers of a patch, by a network that is told its place.

    Parameters:
        width: Channels of the first layer.
        dims: Numbers for each patch.
    """

    def __init__(self, width: int = 64, dims: int = 64) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            Residual(width, width, 2),
            Residual(width, 2 * width, 2),
            Residual(2 * width, 2 * width, 1),
            Residual(2 * width, 4 * width, 2),
        )
        flat = 4 * width * (SIDE // 8) ** 2
        self.place = nn.Embedding(PLACES, flat)
        self.mix = nn.Sequential(
            nn.Linear(flat, 256),
            nn.BatchNorm1d(256),
            nn.ReLU(),
            nn.Linear(256, dims),
            nn.BatchNorm1d(dims),
        )
        self.head = nn.Sequential(nn.Linear(dims, 256), nn.ReLU(), nn.Linear(256, 64))

    def features(self, patches: Tensor, place: Tensor) -> Tensor:
        made: Tensor = self.mix(self.body(patches).flatten(1) + self.place(place))
        return made

    def forward(self, patches: Tensor, place: Tensor) -> Tensor:
        compared: Tensor = self.head(F.relu(self.features(patches, place)))
        return compared


def cut(x: Tensor, place: Tensor, shift: float = 2.0, zoom: float = 0.12, turn: float = 0.1):  # type: ignore[no-untyped-def]
    """One patch of each record (n, 3, 64, 64), moved, zoomed and turned a little at random."""
    n, device = len(x), x.device
    centres = torch.tensor([(y, x) for y in CENTRES for x in CENTRES], device=device)
    centre = centres[place].float() + shift * torch.randn(n, 2, device=device)
    centre = (centre + 0.5) / 32 - 1
    size = SIDE / 64 * (1 + zoom * torch.randn(n, device=device))
    angle = turn * torch.randn(n, device=device)
    rows = [size * angle.cos(), -size * angle.sin(), centre[:, 1]]
    rows += [size * angle.sin(), size * angle.cos(), centre[:, 0]]
    where = torch.stack(rows, 1).view(n, 2, 3)
    grid = F.affine_grid(where, [n, 3, SIDE, SIDE], align_corners=False)
    return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)


def relit(x: Tensor) -> Tensor:
    """The same pictures under another light, some of them grey."""

    def some(*shape: int) -> Tensor:
        return torch.randn(len(x), *shape, device=x.device)

    x = x * (1 + 0.3 * some(1, 1, 1)) + 0.15 * some(1, 1, 1) + 0.12 * some(3, 1, 1)
    grey = (torch.rand(len(x), 1, 1, 1, device=x.device) < 0.15).float()
    return x * (1 - grey) + x.mean(1, keepdim=True) * grey


def contrast(one: Tensor, other: Tensor, record: Tensor, group: Tensor) -> Tensor:
    """The loss of finding each record's other view among those of its group."""
    one, other = F.normalize(one.float(), dim=1), F.normalize(other.float(), dim=1)
    near = one @ other.T / TEMPERATURE
    itself = torch.eye(len(near), dtype=torch.bool, device=near.device)
    twice = (record[:, None] == record) & ~itself
    near = near.masked_fill(twice | (group[:, None] != group), -1e4)
    wanted = torch.arange(len(near), device=near.device)
    return (F.cross_entropy(near, wanted) + F.cross_entropy(near.T, wanted)) / 2


def teach(
    fit: Tensor, people: Tensor, more: Tensor | None, steps: int, width: int = 64, size: int = 700
) -> PatchNetwork:
    """A network taught on bytes (n, 3, 64, 64), five pictures of a person at a time, and on as many
    other faces (`more`)."""
    device = fit.device
    net = PatchNetwork(width).to(device)
    optimiser = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=2e-2)
    order, count = torch.argsort(people, stable=True), torch.bincount(people)
    start = torch.cumsum(count, 0) - count
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = 2e-3 * one_cycle(step / steps)
        who = torch.randint(0, len(count), (max(1, size // 5), 1), device=device)
        which = torch.randperm(30, device=device)[:5]
        record = order[(start[who] + which % count[who]).flatten()]
        x = fit[record]
        if more is not None:
            others = torch.randint(0, len(more), (size,), device=device)
            x, record = torch.cat([x, more[others]]), torch.cat([record, -1 - others])
        x = x.float() / 127.5 - 1
        mirrored = torch.rand(len(x), 1, 1, 1, device=device) < 0.5
        x = torch.where(mirrored, x.flip(3), x)
        group = torch.arange(len(x), device=device) * GROUPS // len(x)
        place = torch.randint(0, PLACES, (GROUPS,), device=device)[group]
        with precision(device):
            views = [net(relit(cut(x, place)), place) for _ in range(2)]
            loss = contrast(*views, record, group)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    return net.eval()


@torch.no_grad()
def features(net: PatchNetwork, x: Tensor) -> Tensor:
    """All places' numbers of records, side by side."""
    rows = []
    for part in x.split(1000):
        own = part.float() / 127.5 - 1
        each = []
        for number in range(PLACES):
            place = torch.full((len(own),), number, device=x.device)
            with precision(x.device):
                patches = cut(own, place, 0.0, 0.0, 0.0)
                each.append(net.features(patches, place).float())
        rows.append(torch.cat(each, 1))
    return torch.cat(rows)


def components(
    sets: dict[str, Tensor], dims: int, learned_on: tuple[str, ...]
) -> dict[str, Tensor]:
    """Principal components of features, standardised, of one deviation each."""
    some = torch.cat([sets[name] for name in learned_on])
    mean = some.mean(0)
    values, axes = torch.linalg.eigh(torch.cov(some.T))
    axes, values = axes[:, -dims:].flip(1), values[-dims:].flip(0)
    turned = axes / values.clamp(min=1e-12).sqrt()
    return {name: (x - mean) @ turned for name, x in sets.items()}
