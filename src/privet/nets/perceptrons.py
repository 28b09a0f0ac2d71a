"""Several perceptrons of one shape side by side, each of which can start again on its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class Perceptrons(nn.Module):
    """Members that share a shape and nothing else: (n, d) to scores (members, n, outputs).

    Parameters:
        members: How many there are.
        sizes: Of the input, of every hidden layer, and of the output.
    """

    def __init__(self, members: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.members = members
        self.weights = nn.ParameterList(torch.empty(members, *pair) for pair in pairwise(sizes))
        self.biases = nn.ParameterList(torch.empty(members, 1, size) for size in sizes[1:])
        for member in range(members):
            self.renew(member)

    @torch.no_grad()
    def renew(self, which: int) -> None:
        """New random weights for one of them, from torch's generator."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            reach = 1 / math.sqrt(weight.shape[1])
            nn.init.uniform_(weight[which], -reach, reach)
            nn.init.uniform_(bias[which], -reach, reach)

    def forward(self, z: Tensor) -> Tensor:
        h = z.unsqueeze(0).expand(self.members, -1, -1)
        for number, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = torch.baddbmm(bias.to(h.dtype), torch.relu(h) if number else h, weight.to(h.dtype))
        return h
