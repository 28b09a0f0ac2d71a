"""What it takes to run a release where people are: the card, the graph and the noise law, without
PyTorch.

PyTorch alone is 200 MB of memory and a second or two before the first record; running the exported
graph needs none of it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from privet.core.errors import PrivetError, first_line
from privet.data.dataset import Array
from privet.data.schema import PAD, Schema, schema_from_json
from privet.release.noise import Noise
from privet.release.randomness import Randomness

# Version of the layout of a release folder.
VERSION = 1

FILES = {"weights": "weights.safetensors", "graph": "release.onnx", "decoder": "decoder.onnx"}


class Released(NamedTuple):
    """What the graph gave of some records.

    Parameters:
        z: The released records.
        x: The encoded ones, without the padding that no text of the batch needs.
        places: A random word for each, by which a file is shuffled; none where nobody asked.
    """

    z: Array
    x: Array
    places: Array


@dataclass(frozen=True)
class Runnable:
    """A release whose graph does the work: its network is not built, and its weights are not
    read.

    Parameters:
        shape: Shape of one released record; None for a free axis.
    """

    schema: Schema
    shape: tuple[int | None, ...]
    noise: Noise | None
    card: dict[str, Any]

    @property
    def private(self) -> list[str]:
        return list(self.card.get("private", []))

    @property
    def size(self) -> int:
        """Numbers in a released record; a free axis counts as one."""
        return math.prod(size or 1 for size in self.shape)

    @staticmethod
    def load(folder: Path) -> Runnable:
        try:
            return Runnable.from_card(read_card(folder))
        except (KeyError, TypeError) as error:
            raise PrivetError(
                f"The release in {folder} cannot be read ({error}); learn it again."
            ) from None

    @staticmethod
    def from_card(card: dict[str, Any]) -> Runnable:
        """KeyError or TypeError where it is not the card of a release."""
        noise = None if card["noise"] is None else Noise.from_json(card["noise"])
        return Runnable(
            schema_from_json(card["input"]), tuple(card["output"]["shape"]), noise, card
        )

    def release(
        self,
        run: Any,
        x: Array,
        randomness: Randomness,
        start: int = 0,
        ids: Sequence[str] | None = None,
        places: bool = True,
    ) -> Released:
        """Run the graph on encoded records, with noise.

        Parameters:
            run: A session of the release's graph.
            x: At most `NOISE_BATCH` encoded records.
            randomness: Where the noise comes from.
            start: The number of the first record in the whole file.
            ids: What tells records with the same content apart; without them, their numbers.
            places: Whether the records are to be shuffled. Where they are not, a release without
                noise draws nothing.
        """
        if self.schema.modality == "text":
            x = np.ascontiguousarray(x[:, : int((x != PAD).sum(1).max())])
        if self.noise is None and not places:
            return Released(run_rows(run, "z", {"x": x}), x, np.empty(0, np.uint64))
        noise, words = randomness.draw(self.noise, x, start, ids)
        inputs = {"x": x} if noise is None else {"x": x, "noise": noise}
        return Released(run_rows(run, "z", inputs), x, words)


def run_rows(run: Any, output: str, inputs: dict[str, Array]) -> Array:
    """One output of a graph, row by row the same however many rows are asked for at once.

    onnxruntime multiplies a single row by a kernel of its own, which adds up in another order: five
    of a thousand released numbers then fall on the next step of their grid. One row is run twice.
    """
    if len(inputs["x"]) == 1:
        inputs = {name: np.repeat(value, 2, axis=0) for name, value in inputs.items()}
        return np.asarray(run.run([output], inputs)[0][:1])
    return np.asarray(run.run([output], inputs)[0])


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a release folder."""
    try:
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PrivetError(
            f"There is no release in {folder}: it has no card.json. Make one with  privet learn."
        ) from None
    except (OSError, ValueError):
        raise PrivetError(
            f"The card of the release in {folder} cannot be read; learn it again."
        ) from None
    if not isinstance(card, dict) or card.get("version") != VERSION:
        raise PrivetError(
            f"The release in {folder} has a layout this Privet does not read (it reads version"
            f" {VERSION})."
        )
    return card


def read_graph(folder: Path) -> bytes:
    """The ONNX graph of a release folder, checked against the card's hash."""
    return read_part(folder, read_card(folder), "graph")


def read_part(folder: Path, card: dict[str, Any], part: str) -> bytes:
    try:
        content = (folder / FILES[part]).read_bytes()
    except OSError:
        raise PrivetError(
            f"The release in {folder} has no {FILES[part]}; learn it again."
        ) from None
    if hashlib.sha256(content).hexdigest() != card["sha256"][part]:
        raise PrivetError(
            f"{folder / FILES[part]} is not the file the card was written for; do not use this"
            " release."
        )
    return content


def session(graph: bytes, threads: int = 0) -> Any:
    """An onnxruntime session on the CPU, which is what a participant has.

    PrivetError where it is no graph, or where it takes data from a file: onnxruntime would read
    that relative to the current folder, and what is in somebody's file would then be in what the
    graph gives.
    """
    refuse_external_data(graph)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    # Else bytes that say so are read in onnxruntime's own format, which was not looked through.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # whatever the runtime says about a graph that it cannot run
        raise PrivetError(f"The graph cannot be run as ONNX ({first_line(error)}).") from None


def refuse_external_data(graph: bytes) -> None:
    """PrivetError where any tensor of an ONNX graph is kept in another file.

    Looks at every message of the file, so at tensors in attributes, subgraphs, functions, sparse
    tensors and training information too.
    """
    import onnx

    try:
        model = onnx.ModelProto.FromString(graph)
    except Exception:  # protobuf's own error, which has no types
        raise PrivetError("The graph cannot be run as ONNX: it cannot be parsed.") from None
    waiting: list[Any] = [model]
    while waiting:
        message = waiting.pop()
        if isinstance(message, onnx.TensorProto) and (
            message.external_data or message.data_location == onnx.TensorProto.EXTERNAL
        ):
            raise PrivetError(
                f"The graph is not run: its tensor {message.name[:60]!a} is read from another "
                "file, and a graph must hold all of its data itself."
            )
        for field, value in message.ListFields():
            if field.message_type is not None:
                waiting.extend([value] if hasattr(value, "ListFields") else value)
