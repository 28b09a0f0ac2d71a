"""Channels: a record goes in, a record of the same form comes out, in the network's scale.

    autoencoder    made = decoder(standard(encoder(x, u)) + noise xi)
                   the *encoding* is perturbed, to keep the result plausible
    shift          made = x + b_u + g xi
                   the form of the Gaussian toy's optimum; b and g learned
    residual       made = x + h(x, u, xi), of a table's row
                   any channel: it starts as the identity, and noise enters beside the record
    released = x + reach (made - x)

u is there where the schema is `Given`. The code is standardised before noise is added to it: an
encoder could otherwise outgrow its noise. `reach` is 1 unless a budget limits how far records may
be moved on average. Of a table, columns may be *sampled*: the network gives the odds of each of a
column's values and the release draws one, so that a category stays a category:
    P(x~ = v) = (1 - reach) [v = x] + reach odds(v).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.data.dataset import Dataset
from privet.data.known_attributes import Given
from privet.data.schema import ImageSchema, Schema, TableSchema
from privet.nets import convolutions, vectors
from privet.nets.code import Rows
from privet.nets.convolutions import prepare

# A sampled column: the first of its places in a row, and what each of its values looks like there.
Level = tuple[int, Sequence[Sequence[float]]]
Distance = Literal["l1", "l2"]
TINY = 1e-12
# Values of a number that is still sampled rather than moved.
MOST_SAMPLED = 8


class Proposal(NamedTuple):
    """What a channel would release for a record, before noise.

    Parameters:
        own: The record itself.
        made: What the channel would release in its place; at the places of sampled columns, the
            record itself.
        odds: Of every sampled column, (n, values).
    """

    own: Tensor
    made: Tensor
    odds: tuple[Tensor, ...]


class Spent(NamedTuple):
    """E d(x, x~) = square reach^2 + line reach, of a batch."""

    square: Tensor
    line: Tensor

    def reach(self, budget: float) -> Tensor:
        """How far one may go towards the proposal: the root, and never beyond the proposal
        itself."""
        root = (self.line.square() + 4 * self.square * budget + TINY).sqrt()
        return (2 * budget / (self.line + root)).clamp(max=1.0)


class Channel(nn.Module):
    """A random channel W(x~ | x, u): it moves a record towards a proposal, as far as a budget
    allows.

    Parameters:
        schema: Of the records, with the private attribute beside them where the channel sees it.
        levels: Columns that are sampled: where each starts, and the values it may take.
    """

    reach: Tensor

    def __init__(self, schema: Schema, levels: Sequence[Level] = ()) -> None:
        super().__init__()
        self.schema = schema
        self.shape = schema.plain.shape
        self.register_buffer("reach", torch.ones(()))
        self.starts = [start for start, _ in levels]
        for place, (_, values) in enumerate(levels):
            self.register_buffer(
                f"values{place}", torch.tensor(values, dtype=torch.float32), persistent=False
            )

    @abstractmethod
    def propose(self, x: Tensor, noise: Tensor | None) -> Proposal:
        """What would be released of encoded records."""

    @property
    @abstractmethod
    def draws(self) -> tuple[int, ...]:
        """Shape of the unit Gaussian noise of one record; empty where there is none."""

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        return self.settle(self.propose(x, noise), self.reach, noise)

    def settle(
        self, proposal: Proposal, reach: Tensor, noise: Tensor | None, between: bool = False
    ) -> Tensor:
        """The released records. Sampled columns are drawn; backwards, a draw counts as its odds
        (straight through).

        With `between`, for gradients alone, a draw lies anywhere on the way to another value: a
        reader's mean slope along that way is the difference that the other value makes to it, and
        its slope at either end need not be.
        """
        released = proposal.own + reach * (proposal.made - proposal.own)
        if not self.starts:
            return released
        assert noise is not None, "sampled columns come with noise"
        pieces, done, used = [], 0, noise.shape[1] - sum(odds.shape[1] for odds in proposal.odds)
        for place, odds in enumerate(proposal.odds):
            start, values = self.starts[place], self._values(place)
            mixed = (1 - reach) * self._stays(proposal, place) + reach * odds
            unit = (
                0.5 * (1 + torch.erf(noise[:, used : used + odds.shape[1]] / math.sqrt(2)))
            ).clamp(1e-7, 1 - 1e-7)
            used += odds.shape[1]
            raced = (
                mixed.clamp(min=TINY).log() - (-unit.log()).log()
            )  # the largest wins with the odds of `mixed` (Gumbel)
            drawn = (raced == raced.amax(1, keepdim=True)).to(mixed.dtype)
            drawn = _on_the_way(drawn) if between else drawn
            if self.training:  # elsewhere not even the rounding of this sum may tell the odds
                drawn = drawn + mixed - mixed.detach()
            pieces += [released[:, done:start], drawn @ values]
            done = start + values.shape[1]
        return torch.cat([*pieces, released[:, done:]], 1)

    def spent(self, proposal: Proposal, distance: Distance) -> Spent:
        """What going all the way costs on average: mean over records and places; of sampled
        columns, expected."""
        moved = (proposal.made - proposal.own).flatten(1)
        size = moved.shape[1]
        line = proposal.own.new_zeros(())
        for place, odds in enumerate(proposal.odds):
            apart = self._piece(proposal, place).unsqueeze(1) - self._values(place)
            cost = apart.abs().sum(2) if distance == "l1" else apart.square().sum(2)
            line = line + (odds * cost).sum(1).mean() / size
        if distance == "l1":
            return Spent(torch.zeros_like(line), line + moved.abs().mean())
        return Spent(moved.square().mean(), line)

    def _values(self, place: int) -> Tensor:
        return self.get_buffer(f"values{place}")

    def _piece(self, proposal: Proposal, place: int) -> Tensor:
        start = self.starts[place]
        return proposal.own[:, start : start + self._values(place).shape[1]]

    def _stays(self, proposal: Proposal, place: int) -> Tensor:
        """One for the value that a record has, or for the nearest where it has one that was never
        seen."""
        apart = (self._piece(proposal, place).unsqueeze(1) - self._values(place)).square().sum(2)
        return F.one_hot(apart.argmin(1), apart.shape[1]).to(proposal.own.dtype)


def _on_the_way(drawn: Tensor) -> Tensor:
    """From one value to another one, both equally likely to be the start: (n, values) with two
    entries that sum to one."""
    n, values = drawn.shape
    step = torch.randint(1, max(values, 2), (n, 1), device=drawn.device)
    other = drawn.gather(1, (torch.arange(values, device=drawn.device) - step) % values)
    return torch.lerp(drawn, other, torch.rand(n, 1, device=drawn.device))


class Autoencoder(Channel):
    """A channel whose proposal is made by an encoder and a decoder.

    Parameters:
        schema, levels: As for Channel.
        width: Of all layers, relative to the published ones.
        noise: Standard deviation of noise on the code.
    """

    def __init__(
        self, schema: Schema, width: float = 1.0, noise: float = 0.0, levels: Sequence[Level] = ()
    ) -> None:
        super().__init__(schema, levels)
        self.noise = noise
        inside, outside = (cast(Sequence[int], s) for s in (schema.shape, schema.plain.shape))
        self.options = [len(values) for _, values in levels]
        if isinstance(schema.plain, TableSchema):
            self.encoder: nn.Module = vectors.Extractor(inside[0], width)
            code = cast(Sequence[int], self.encoder.shape)
            self.decoder: nn.Module = vectors.Decoder(outside[0] + sum(self.options), code, width)
        else:
            self.encoder = convolutions.Extractor(inside, width)
            code = cast(Sequence[int], self.encoder.shape)
            self.decoder = convolutions.Decoder(
                outside, code, width, isinstance(schema.plain, ImageSchema)
            )
        norm: dict[int, Any] = {1: nn.BatchNorm1d, 2: nn.BatchNorm1d, 3: nn.BatchNorm2d}
        self.standard = norm[len(code)](code[0], affine=False)
        self.code = tuple(code)

    @property
    def draws(self) -> tuple[int, ...]:
        if not self.options:
            return self.code if self.noise else ()
        return ((self.code[0] if self.noise else 0) + sum(self.options),)

    def propose(self, x: Tensor, noise: Tensor | None) -> Proposal:
        own = prepare(self.schema.own(x))
        code = self.standard(self.encoder(x)).float()
        if self.noise and noise is not None:
            code = code + self.noise * (noise[:, : self.code[0]] if self.options else noise)
        made = self.decoder(code).float()
        if isinstance(self.schema.plain, ImageSchema):
            return Proposal(own, made / 127.5 - 1.0, ())
        if not self.options:
            return Proposal(own, made, ())
        made, *scores = torch.split(made, [own.shape[1], *self.options], dim=1)
        return Proposal(
            own,
            torch.where(self._free(own), made, own),
            tuple(score.softmax(1) for score in scores),
        )

    def _free(self, own: Tensor) -> Tensor:
        """Positions of a row that are not of a sampled column."""
        free = torch.ones(own.shape[1], dtype=torch.bool, device=own.device)
        for place, start in enumerate(self.starts):
            free[start : start + self._values(place).shape[1]] = False
        return free


class Shift(Channel):
    """A channel that moves records by an amount for each value of the private attribute."""

    def __init__(self, schema: Schema, noise: float = 0.0) -> None:
        super().__init__(schema)
        self.known = schema.extra if isinstance(schema, Given) else 0
        self.shift = nn.Parameter(torch.zeros(max(1, self.known), *cast(Sequence[int], self.shape)))
        self.deviation = nn.Parameter(torch.tensor(float(noise))) if noise else None

    @property
    def draws(self) -> tuple[int, ...]:
        return () if self.deviation is None else cast(tuple[int, ...], self.shape)

    def propose(self, x: Tensor, noise: Tensor | None) -> Proposal:
        own = prepare(self.schema.own(x))
        made = own + torch.tensordot(self._u(x), self.shift, 1)
        return Proposal(
            own,
            made if noise is None or self.deviation is None else made + self.deviation * noise,
            (),
        )

    def _u(self, x: Tensor) -> Tensor:
        """What is known of each record, as zeros and ones; a single one where nothing ever is."""
        if not self.known:
            return torch.ones(len(x), 1, device=x.device)
        known = x[:, -self.known :].flatten(2)[..., 0] if x.dim() > 2 else x[:, -self.known :]
        return known.float() / (255.0 if x.dtype == torch.uint8 else 1.0)


class Residual(Channel):
    """A channel that adds to a row what a network makes of the row and of noise.

    An autoencoder spends distortion on giving the record back, since what it perturbs is the only
    way through. Here the record passes unchanged, and only what is added costs anything.

    Parameters:
        schema: Of the records, with the private attribute beside them where the channel sees it.
        width: Of all layers.
        noise: Standard deviation of the noise beside the record; 0 for a deterministic channel.
    """

    def __init__(self, schema: Schema, width: float = 1.0, noise: float = 0.0) -> None:
        super().__init__(schema)
        self.noise = noise
        inside, outside = (cast(Sequence[int], s)[0] for s in (schema.shape, schema.plain.shape))
        self.added = Rows(inside + (outside if noise else 0), outside, width, dropout=0.0)
        last = cast(nn.Linear, self.added.last[1])
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    @property
    def draws(self) -> tuple[int, ...]:
        return cast(tuple[int, ...], self.shape) if self.noise else ()

    def propose(self, x: Tensor, noise: Tensor | None) -> Proposal:
        own = self.schema.own(x)
        beside = x if noise is None else torch.cat([x, self.noise * noise], 1)
        return Proposal(own, own + self.added(beside).float(), ())


CHANNELS = ("autoencoder", "shift", "residual")


def channel_of(
    schema: Schema,
    kind: str = "autoencoder",
    width: float = 1.0,
    noise: float = 0.0,
    levels: Sequence[Level] = (),
) -> Channel:
    """The channel of this kind."""
    if kind == "shift":
        return Shift(schema, noise)
    if kind == "residual":
        return Residual(schema, width, noise)
    return Autoencoder(schema, width, noise, levels)


def levels_of(schema: Schema, fit: Dataset) -> list[Level]:
    """The columns of a table that can be sampled: categories, and numbers that have few values
    among the *fit* records."""
    found, start, rows = list[Level](), 0, schema.inputs(fit)[:]
    for column in schema.columns if isinstance(schema, TableSchema) else ():
        if column.values:
            found.append((start, torch.eye(column.size).tolist()))
        elif len(values := np.unique(rows[:, start])) <= MOST_SAMPLED:
            found.append((start, values[:, None].astype(float).tolist()))
        start += column.size
    return found
