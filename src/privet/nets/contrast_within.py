"""Features of pictures that nobody labelled, in which records of one private value differ.

A network finds a picture again, moved, under another light and with a hole, among other pictures of
the *same* private value: knowing the value does not help, so there is no reason to keep it. After
Ma and others, "Conditional contrastive learning for improving fairness in self-supervised
learning" (2021), and Chen and others, "A simple framework for contrastive learning", ICML 2020.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.nets.convolutions import scaled
from privet.nets.views import grey, holed, moved, relit

# Channels of the maps, each of which halves the one before from the second on.
CHANNELS = (64, 64, 128, 256)
# Channels that the last maps are laid flat with, numbers of the features, and of what is compared.
FLAT, FEATURES, COMPARED = 32, 256, 128
TEMPERATURE = 0.15
GREY = 0.15


class Residual(nn.Module):
    """Two convolutions with batch normalisation, and a short cut."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)])
        same = stride == 1 and inside == outside
        self.short = nn.Identity() if same else nn.Conv2d(inside, outside, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norms[0](self.first(x)))
        made: Tensor = F.relu(self.short(x) + self.norms[1](self.second(h)))
        return made


class ContrastWithin(nn.Module):
    """A picture to numbers in which pictures of one private value are told apart.

    Parameters:
        shape: Of a picture: channels, height, width.
        width: Factor on all layer sizes.
    """

    def __init__(self, shape: Sequence[int], width: float) -> None:
        super().__init__()
        first, *deeper = (scaled(size, width) for size in CHANNELS)
        layers: list[nn.Module] = [
            nn.Conv2d(shape[0], first, 3, padding=1),
            nn.BatchNorm2d(first),
            nn.ReLU(),
        ]
        inside = first
        for size in deeper:
            layers.append(Residual(inside, size, 2))
            inside = size
        flat = scaled(FLAT, width)
        layers += [Residual(inside, inside, 1), nn.Conv2d(inside, flat, 1), nn.BatchNorm2d(flat)]
        self.body = nn.Sequential(*layers, nn.ReLU(), nn.Flatten())
        with torch.no_grad():
            self.body.eval()
            size = self.body(torch.zeros(1, *shape)).numel()
        self.dims = scaled(FEATURES, width)
        self.mix = nn.Sequential(nn.Linear(size, self.dims), nn.BatchNorm1d(self.dims))
        compared = scaled(COMPARED, width)
        self.head = nn.Sequential(
            nn.ReLU(),
            nn.Linear(self.dims, 4 * compared),
            nn.BatchNorm1d(4 * compared),
            nn.ReLU(),
            nn.Linear(4 * compared, compared),
        )

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.mix(self.body(x))
        return made

    def contrast(self, x: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of finding each picture's other view among those of its group, and how often it
        is found."""
        one, other = (F.normalize(self.head(self(self._view(x))).float(), dim=1) for _ in range(2))
        near = (one @ other.T) / TEMPERATURE
        near = near.masked_fill(group.unsqueeze(1) != group, -1e4)
        wanted = torch.arange(len(near), device=near.device)
        loss = (F.cross_entropy(near, wanted) + F.cross_entropy(near.T, wanted)) / 2
        return loss, (near.argmax(1) == wanted).float().mean()

    def _view(self, x: Tensor) -> Tensor:
        """The same pictures turned, moved, relit, some without colours and most with a hole."""
        x = relit(moved(x, turn=0.12, zoom=0.12, shift=0.06), light=0.3)
        return holed(grey(x, GREY))
