"""Where a game stands, as one safetensors file that is either whole or not there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from privet.errors import PrivetError
from privet.files import replacing


def save(path: Path, modules: Mapping[str, nn.Module], optimisers: Mapping[str, torch.optim.Optimizer], meta: dict[str, Any]) -> None:
    tensors = {f"module/{name}/{key}": value for name, m in modules.items() for key, value in m.state_dict().items()}
    for name, optimiser in optimisers.items():
        for index, state in optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser/{name}/{index}/{key}": torch.as_tensor(value) for key, value in state.items()}
    with replacing(path) as temporary:
        save_file(_plain(tensors), temporary, metadata={"privet": json.dumps(meta)})


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the meta data of a checkpoint."""
    try:
        with safe_open(path, framework="pt") as file:
            return {key: file.get_tensor(key) for key in file.keys()}, json.loads(file.metadata()["privet"])  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        raise PrivetError(f"The checkpoint {path} cannot be read; start again without --resume.") from None


def restore_modules(tensors: Mapping[str, Tensor], modules: Mapping[str, nn.Module]) -> None:
    for name, module in modules.items():
        head = f"module/{name}/"
        module.load_state_dict({key[len(head) :]: value for key, value in tensors.items() if key.startswith(head)})


def restore_optimiser(tensors: Mapping[str, Tensor], name: str, optimiser: torch.optim.Optimizer) -> None:
    head, state = f"optimiser/{name}/", {}  # type: tuple[str, dict[int, dict[str, Tensor]]]
    for key, value in tensors.items():
        if key.startswith(head):
            index, field = key[len(head) :].split("/")
            state.setdefault(int(index), {})[field] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})


def _plain(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """safetensors wants every tensor contiguous and with memory of its own."""
    return {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
