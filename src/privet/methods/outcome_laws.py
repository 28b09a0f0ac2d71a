"""The penalty for several bounds at once: the success of the best adversary over finitely many
outcomes.

What is released of a record has a law over P outcomes: the symbols of an alphabet, or cells of
space that noise around a code falls into. With P_sa the mean law of the people of value a in the
group s, the best adversary who knows the group is right with probability ::

    V_s  =  (1 / k) sum over outcomes z of  max_a P_sa(z)

No draw is needed, so that also a group with few people in a batch has a steady figure: its value is
that of about as many earlier records as the memory holds, its gradient the batch's share of it.
Several releases of a person have the product of their laws, over how often each outcome came: no
order of a person's records says anything about them. Cells are coarser than space, so V of cells is
at most V of numbers; noise is chosen afterwards without cells.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from privet.core.errors import PrivetError

# Most outcomes of one record, and of several in their order.
OUTCOMES, ORDERED_OUTCOMES = 4096, 2**15
# Cells along one axis, at most.
CELLS = 96


def cells_per_axis(dims: int, records: int) -> int:
    """Into how many cells each axis of the codes of so many records is cut."""
    most = OUTCOMES if records == 1 else ORDERED_OUTCOMES
    cells = min(CELLS, int(most ** (1 / (dims * records)) + 1e-9))
    if cells < 2:
        raise PrivetError(
            f"{dims * records} numbers at once are too many to bound for groups or for several "
            "records of a person: fewer dims, or fewer records."
        )
    return cells


class Tallies(nn.Module):
    """How often each outcome came among several records of a person, whatever their order.

    Parameters:
        outcomes: P, of one record.
        records: m, how many are seen together.
    """

    place: Tensor

    def __init__(self, outcomes: int, records: int) -> None:
        super().__init__()
        if records > 1 and outcomes**records > ORDERED_OUTCOMES:
            raise PrivetError(
                f"{records} records with {outcomes} outcomes each are too many to bound: fewer "
                "symbols, or fewer records."
            )
        self.records, self.number, place = records, outcomes, np.arange(outcomes)
        if records > 1:
            ordered = np.indices((outcomes,) * records).reshape(records, -1)
            tallies, place = np.unique(np.sort(ordered, 0), axis=1, return_inverse=True)
            self.number = tallies.shape[1]
        self.register_buffer("place", torch.as_tensor(place.ravel()), persistent=False)

    def forward(self, laws: Tensor) -> Tensor:
        """Laws (n, tallies) of records that are independent given their laws (n, m, P)."""
        joint = product_laws(laws)
        if self.records == 1:
            return joint
        return joint.new_zeros(len(joint), self.number).index_add(1, self.place, joint)


def gaussian_laws(codes: Tensor, sigma: Tensor | float, cells: int) -> Tensor:
    """Laws (n, cells^d) of c + sigma xi over cells of equal width, the outermost being open; codes
    (n, d) lie in [-1, 1]^d."""
    with torch.autocast(codes.device.type, enabled=False):
        codes = codes.float()
        reach = 1 + 2 * sigma
        borders = torch.linspace(-1, 1, cells - 1, device=codes.device) * reach
        below = 0.5 * (
            1 + torch.erf((borders - codes.unsqueeze(2)) / (sigma * math.sqrt(2)))
        )  # (n, d, cells - 1)
        ends = below.new_zeros(*below.shape[:2], 1), below.new_ones(*below.shape[:2], 1)
        return product_laws(torch.cat([ends[0], below, ends[1]], 2).diff(dim=2))


def product_laws(laws: Tensor) -> Tensor:
    """The joint law (n, P^m) of m independent outcomes with the laws (n, m, P)."""
    joint = laws[:, 0]
    for other in laws.unbind(1)[1:]:
        joint = (joint.unsqueeze(2) * other.unsqueeze(1)).flatten(1)
    return joint


def group_success(laws: Tensor, cells: Tensor) -> Tensor:
    """V (groups,) of laws (n, P) of records in cells (n, groups, values)."""
    sums, counts = _cell_sums(laws, cells)
    return _success(sums / counts.clamp(min=1e-6), counts)


def _cell_sums(laws: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """Summed laws (groups, values, P) and numbers (groups, values, 1)."""
    # In half precision a point of balanced accuracy is rounding.
    with torch.autocast(laws.device.type, enabled=False):
        sums = cells.flatten(1).T @ laws.float()
        return sums.view(*cells.shape[1:], -1), cells.sum(0).unsqueeze(2)


def _success(shares: Tensor, counts: Tensor) -> Tensor:
    """The mean over the values that occur, summed over outcomes, of the largest share."""
    occurs = counts > 0
    best = torch.where(occurs, shares, 0.0).amax(1).sum(1)
    return best / occurs.sum((1, 2)).clamp(min=1)


class LawMemory(nn.Module):
    """Mean laws of the people of every cell: running sums over earlier batches, which learn nothing
    by gradient.

    Parameters:
        groups: How many groups have a bound.
        values: Values of the private attribute.
        outcomes: How many there are.
        size: About so many earlier records count.
    """

    sums: Tensor
    counts: Tensor

    def __init__(self, groups: int, values: int, outcomes: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("sums", torch.zeros(groups, values, outcomes))
        self.register_buffer("counts", torch.zeros(groups, values, 1))

    def success(self, laws: Tensor, cells: Tensor, used: Tensor | float = 1.0) -> Tensor:
        """V (groups,) of the records seen so far, this batch included.

        `used` is how much of the memory is used: forget sooner at first, when the code moves fast.
        The gradient is that of the batch's part in the mean, as if all were drawn anew: the best
        adversary of all people, let loose on these. A cell with few people in the batch counts as
        many as it has, not as if it were whole.
        """
        sums, counts = _cell_sums(laws, cells)
        with torch.no_grad():
            fade = torch.as_tensor(1 - len(laws) / (self.size * used)).clamp(min=0)
            self.sums.mul_(fade).add_(sums)
            self.counts.mul_(fade).add_(counts)
            # How many people a batch has per cell, from all batches in memory.
            total = self.counts[:1].sum().clamp(min=1e-6) / counts[:1].sum().clamp(min=1)
            expected = (self.counts / total).clamp(min=1e-6)
        mine = sums / expected
        shares = self.sums / self.counts.clamp(min=1e-6) + mine - mine.detach()
        return _success(shares, self.counts)
