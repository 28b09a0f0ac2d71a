"""Release: a frozen network, its noise law and its card. What participants run, and what an audit
attacks.

A folder: `card.json` (for people and machines), `weights.safetensors`, `release.onnx`. The card is
written last and holds the SHA-256 of the other two; a folder without a card is not a release.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from privet.core.errors import PrivetError
from privet.core.files import write_bytes, write_text
from privet.core.version import __version__
from privet.data.dataset import Array
from privet.data.schema import Inputs, Schema, schema_from_json
from privet.nets import registry as nets
from privet.nets.device import pick, place
from privet.release.noise import Noise
from privet.release.runtime import FILES, VERSION, read_card, read_part, run_rows

nets.NETWORKS.register("int8", "privet.release.quantised:int8_network")


@dataclass(eq=False)
class Release:
    """A frozen network with its noise law and its card: what participants run and audits attack.

    Parameters:
        network: A word of `nets.NETWORKS` and its settings.
        card: method, settings, private, seed, data, in_game, history, ...: what people want to know
            about it.
        graph: The graph that people run, where the release was read from a folder; None where it
            has to be exported.
    """

    schema: Schema
    network: tuple[str, dict[str, Any]]
    module: nn.Module
    noise: Noise | None
    card: dict[str, Any] = field(default_factory=dict)
    graph: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.module.eval().requires_grad_(False)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Shape of one released record; None for a free axis."""
        return tuple(self.module.shape)  # type: ignore[arg-type]

    @property
    def private(self) -> list[str]:
        return list(self.card.get("private", []))

    @property
    def is_random(self) -> bool:
        """Whether a record looks different in every release: by a noise law, or by noise inside
        somebody else's program."""
        return self.noise is not None or bool(self.card.get("random"))

    @staticmethod
    def identity(schema: Schema) -> Release:
        """The raw data as a release: what an audit compares with."""
        return Release(
            schema,
            ("identity", {}),
            nets.build("identity", schema, {}),
            None,
            {"method": "identity", "private": []},
        )

    def to(self, device: str | torch.device) -> Release:
        place(self.module, torch.device(device))
        return self

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        """Released records of one batch, on the batch's device, with fresh noise for every
        record."""
        if self.noise is None:
            return self.module(x)  # type: ignore[no-any-return]
        if noise is None:
            noise = self.noise.sample(len(x), x.shape[1] if x.dim() > 1 else 0, x.device)
        return self.module(x, noise)  # type: ignore[no-any-return]

    def __call__(
        self,
        x: Array | Tensor | Inputs,
        seed: int | None = None,
        batch: int = 256,
        run: Any = None,
    ) -> Array:
        """Release encoded records. `seed` makes the noise repeatable; leave it out when the result
        leaves the house. `run` as in `stream`."""
        return np.concatenate(list(self.stream(x, seed, batch, run)))

    def transform(self, records: Any, seed: int | None = None) -> pd.DataFrame:
        """What leaves of rows in memory, as a frame with the same index and columns z0, z1, ...

        records: a frame of pandas or polars, an Arrow table, a dataset of Hugging Face, a mapping
            of columns; or an array of pictures or windows.
        seed: makes the noise repeatable; leave it out when the result leaves the house.
        """
        # Running a release on files needs neither.
        from privet.data.in_memory import as_frame
        from privet.data.stream import encoded_rows, record_column

        if isinstance(records, np.ndarray) and records.ndim > 2:
            x, index = self.schema.encode(records), pd.Index(range(len(records)))
        else:
            frame = as_frame(records)
            index, frame = frame.index, frame.reset_index(drop=True).rename(columns=str)
            column = record_column(self.schema.plain, frame, "The frame")
            x, _ = encoded_rows(self.schema, frame, (), column, "The frame")
        z = self(x, seed).reshape(len(x), -1)
        return pd.DataFrame(z, index=index, columns=[f"z{i}" for i in range(z.shape[1])])

    def stream(
        self,
        x: Array | Tensor | Inputs,
        seed: int | None = None,
        batch: int = 256,
        run: Any = None,
    ) -> Iterator[Array]:
        """The same, batch by batch. `run` is a session of the release's graph, which then does the
        work instead of torch."""
        device = next((t.device for t in self.module.state_dict().values()), torch.device("cpu"))
        with torch.inference_mode():
            for start in range(0, len(x), batch):
                rows = np.ascontiguousarray(x[start : start + batch])
                noise = self._unit_noise(rows, seed, start)
                if run is not None:
                    inputs = {"x": rows} if noise is None else {"x": rows, "noise": noise}
                    yield run_rows(run, "z", inputs)
                    continue
                unit = None if noise is None else torch.from_numpy(noise).to(device)
                z = self.forward(torch.from_numpy(rows).to(device), unit)
                yield z.float().cpu().numpy()

    def _unit_noise(self, rows: Array, seed: int | None, start: int) -> Array | None:
        """Noise of a batch, the first of whose records is number `start` of all."""
        if self.noise is None:
            return None
        mixed = seed
        if seed is not None:
            mixed = int(np.random.SeedSequence([seed, start]).generate_state(1)[0])
        return self.noise.draw(len(rows), rows.shape[1] if rows.ndim > 1 else 0, mixed)

    def save(self, folder: str | Path, graph: bytes | None = None) -> None:
        """Write a release folder; `graph` is the release's graph where it was exported already."""
        # Learning needs them at the end only.
        from privet.release.decoder_graph import decoder_graph, has_decoder
        from privet.release.graph import export
        from privet.release.quantised import holds_strange_graph
        from privet.release.strangers import trust

        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "card.json").unlink(missing_ok=True)
            weights = save_tensors(
                {
                    k: v.detach().cpu().contiguous().clone()
                    for k, v in self.module.state_dict().items()
                }
            )
            contents = {"weights": weights, "graph": graph or export(self)}
            (folder / FILES["decoder"]).unlink(missing_ok=True)
            if has_decoder(self):
                contents["decoder"] = decoder_graph(self)
            for part, content in contents.items():
                write_bytes(folder / FILES[part], content)
            if graph is None and not holds_strange_graph(self.module):
                trust(contents["graph"])
                if "decoder" in contents:
                    trust(contents["decoder"])
            self.card["sha256"] = {
                part: hashlib.sha256(content).hexdigest() for part, content in contents.items()
            }
            write_text(
                folder / "card.json",
                json.dumps(self._full_card(), indent=1, ensure_ascii=False) + "\n",
            )
        except OSError as error:
            raise PrivetError(f"Cannot write the release to {folder}: {error.strerror}.") from None

    def _full_card(self) -> dict[str, Any]:
        return {
            "privet": __version__,
            "version": VERSION,
            **self.card,
            "input": self.schema.to_json(),
            "noise": None if self.noise is None else self.noise.to_json(),
            "output": {"dtype": "float32", "shape": list(self.shape)},
            "network": {"name": self.network[0], "settings": self.network[1]},
        }

    @staticmethod
    def load(folder: str | Path, device: str = "cpu") -> Release:
        """Read a release folder, after checking that its parts are those the card was written
        for."""
        folder = Path(folder)
        card = read_card(folder)
        try:
            schema, noise = schema_from_json(card.pop("input")), card.pop("noise")
            name, settings = card["network"]["name"], card["network"]["settings"]
            module = nets.build(name, schema, settings)
            module.load_state_dict(load_tensors(read_part(folder, card, "weights")))
            graph = read_part(folder, card, "graph")
            for key in ("network", "output", "version", "privet"):
                card.pop(key)
        except (KeyError, TypeError, RuntimeError, SafetensorError) as error:
            raise PrivetError(
                f"The release in {folder} cannot be read ({str(error).splitlines()[0]}); learn it"
                " again."
            ) from None
        law = noise and Noise.from_json(noise)
        return Release(schema, (name, settings), module, law, card, graph).to(pick(device))
