"""A network that is an ONNX graph in int8: what `privet export --int8` makes of a release's own,
and what an audit of it then attacks.

The graph's bytes are the module's only state, so they are saved, hashed and loaded as weights are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privet.nets.additive import Additive
from privet.release.strangers import is_trusted, release_session


class Quantised(nn.Module):
    """An int8 graph as a network.

    Parameters:
        size: Bytes of the graph.
        shape: Of one released record.
    """

    graph: Tensor

    def __init__(self, size: int, shape: Sequence[int | None]) -> None:
        super().__init__()
        self.shape = tuple(shape)
        self.register_buffer("graph", torch.zeros(size, dtype=torch.uint8))
        self._session: Any = None

    @staticmethod
    def of(content: bytes, shape: Sequence[int | None]) -> Quantised:
        module = Quantised(len(content), shape)
        module.graph.copy_(torch.from_numpy(np.frombuffer(content, dtype=np.uint8).copy()))
        return module

    @property
    def content(self) -> bytes:
        return self.graph.cpu().numpy().tobytes()

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        if self._session is None:
            self._session = release_session(self.content)
        inputs = {"x": x.cpu().numpy()} | ({} if noise is None else {"noise": noise.cpu().numpy()})
        return torch.from_numpy(self._session.run(["z"], inputs)[0]).to(x.device)

    def __getstate__(self) -> dict[str, Any]:
        """Without the session, which cannot be copied; it is made again from the graph."""
        return {**self.__dict__, "_session": None}


def holds_strange_graph(module: nn.Module) -> bool:
    """Whether a network has a graph in it that was not made on this machine."""
    graphs = (part.content for part in module.modules() if isinstance(part, Quantised))
    return not all(map(is_trusted, graphs))


def int8_network(
    schema: Any, size: int, shape: Sequence[int | None], scale: float | None = None
) -> nn.Module:
    """The graph as a release's network, with noise behind it where the release adds some."""
    return Quantised(size, shape) if scale is None else Additive(Quantised(size, shape), scale)
