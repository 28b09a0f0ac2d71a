"""Where a game stands, as one safetensors file that is either whole or not there.

On a GPU learning goes on while the file is written: what is kept is copied at once, and the copy
goes to disk in a thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from privet.core.errors import PrivetError
from privet.core.files import replacing

# Name of the file, in the folder that the result will be written to.
CHECKPOINT = "checkpoint.safetensors"


class CheckpointWriter:
    """Saves, one file after the other. On leaving its block, by whatever way, what was to be saved
    is on disk."""

    def __init__(self, beside: bool) -> None:
        """`beside`: whoever saves does not wait for the disk. Memory then holds the copy beside
        what learning needs."""
        self._thread = ThreadPoolExecutor(1, "privet-checkpoint") if beside else None
        self._last: Future[None] | None = None

    def __enter__(self) -> CheckpointWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._thread.shutdown()
        if error is None:
            self._wait()

    def save(
        self,
        path: Path,
        modules: Mapping[str, nn.Module],
        optimisers: Mapping[str, torch.optim.Optimizer],
        meta: dict[str, Any],
    ) -> None:
        self._wait()
        tensors = {
            f"module/{name}/{key}": value
            for name, m in modules.items()
            for key, value in m.state_dict().items()
        }
        for name, optimiser in optimisers.items():
            for index, state in optimiser.state_dict()["state"].items():
                tensors |= {
                    f"optimiser/{name}/{index}/{key}": torch.as_tensor(value)
                    for key, value in state.items()
                }
        copies, words = {key: _copied(value) for key, value in tensors.items()}, json.dumps(meta)
        if self._thread is None:
            _write(path, copies, words)
        else:
            self._last = self._thread.submit(_write, path, copies, words)

    def _wait(self) -> None:
        """For the file before; says what went wrong with it."""
        if self._last is not None:
            self._last.result()


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the meta data of a checkpoint."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            return tensors, json.loads(file.metadata()["privet"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        raise PrivetError(
            f"The checkpoint {path} cannot be read; start again without --resume."
        ) from None


def restore_modules(tensors: Mapping[str, Tensor], modules: Mapping[str, nn.Module]) -> None:
    for name, module in modules.items():
        head = f"module/{name}/"
        module.load_state_dict(
            {key[len(head) :]: value for key, value in tensors.items() if key.startswith(head)}
        )


def restore_optimiser(
    tensors: Mapping[str, Tensor], name: str, optimiser: torch.optim.Optimizer
) -> None:
    head, state = f"optimiser/{name}/", {}  # type: tuple[str, dict[int, dict[str, Tensor]]]
    for key, value in tensors.items():
        if key.startswith(head):
            index, field = key[len(head) :].split("/")
            state.setdefault(int(index), {})[field] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
    for parameter, held in optimiser.state.items():
        held.update(
            {
                key: like(parameter, value)
                for key, value in held.items()
                if value.shape == parameter.shape and key != "step"
            }
        )


def like(parameter: Tensor, value: Tensor) -> Tensor:
    """The value in the parameter's memory layout, which optimisers in one kernel insist on."""
    return (
        value if value.stride() == parameter.stride() else torch.empty_like(parameter).copy_(value)
    )


def _copied(value: Tensor) -> Tensor:
    """On the CPU, contiguous and with memory of its own, as safetensors wants it; one copy,
    whatever the device."""
    value = value.detach()
    return torch.empty(value.shape, dtype=value.dtype).copy_(value)


def _write(path: Path, tensors: dict[str, Tensor], meta: str) -> None:
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata={"privet": meta})
