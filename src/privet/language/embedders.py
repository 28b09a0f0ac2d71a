"""What makes vectors of texts: a file of word vectors, a Python function, or a model of Hugging
Face or sentence-transformers, from a folder or by its name on the hub.

Models are loaded from safetensors only, and no code that comes with them is run.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from privet.adversaries.inversion import Embedding
from privet.core.errors import PrivetError, first_line, missing_extra, refuse_if
from privet.data.dataset import Array
from privet.data.word_vectors import Vocabulary


class Embedder(NamedTuple):
    """A function from texts to vectors, and the name of the space that they are in.

    Parameters:
        embed: Texts to vectors, (n, d).
        space: The name of the space.
        vocabulary: The words whose vectors are averaged, where that is what it does.
    """

    embed: Embedding
    space: str
    vocabulary: Vocabulary | None = None


def word_means(path: Path) -> Embedder:
    """The mean of the vectors of a text's words, from a parquet file of words and vectors."""
    words = Vocabulary.read(path)
    return Embedder(words.mean_vectors, f"{path.stem}-mean", words)


def python_function(name: str) -> Embedder:
    """The function `package.module:function`, which takes a list of texts and gives an array.

    >>> python_function("privet.language.embedders:nothing").space
    Traceback (most recent call last):
    privet.core.errors.PrivetError: The module privet.language.embedders has no function 'nothing'.
    """
    module, _, attribute = name.partition(":")
    refuse_if(
        not module or not attribute, f"Name the function as package.module:function, not '{name}'."
    )
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # whatever somebody's module does when it is imported
        raise PrivetError(
            f"The module {module} cannot be imported ({first_line(error)})."
        ) from None
    for part in attribute.split("."):
        found = getattr(found, part, None)
    refuse_if(not callable(found), f"The module {module} has no function '{attribute}'.")
    return Embedder(found, name)


def hugging_face(name: str, device: str = "auto") -> Embedder:
    """A model named by its folder or by its name on the hub.

    A folder with a modules.json is a sentence-transformers model, and so is taken what comes from
    the hub where that package is installed; of any other model the last hidden states are averaged
    over the tokens of a text.
    """
    folder = Path(name)
    is_folder = folder.is_dir()
    refuse_if(
        not is_folder and (folder.is_absolute() or name.startswith(".") or name.count("/") > 1),
        f"There is no folder {name}.",
    )
    space = folder.resolve().name if is_folder else name
    wants = is_folder and (folder / "modules.json").is_file()
    if wants or (not is_folder and importlib.util.find_spec("sentence_transformers")):
        return Embedder(_sentence_transformer(name, device), space)
    return Embedder(_mean_of_hidden_states(name, device), space)


def _sentence_transformer(name: str, device: str) -> Embedding:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise missing_extra("sentence-transformers", "embed", f"The model {name}") from None
    from privet.nets.device import pick

    try:
        model = SentenceTransformer(
            name, device=str(pick(device)), model_kwargs={"use_safetensors": True}
        )
    except Exception as error:  # of the network, of a file, of a setting: the package's own errors
        raise _not_loaded(name, error) from None

    def embed(texts: Sequence[str]) -> Array:
        return np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=np.float32)

    return embed


def _mean_of_hidden_states(name: str, device: str) -> Embedding:
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError:
        raise missing_extra("transformers", "embed", f"The model {name}") from None
    import torch

    from privet.nets.device import pick

    where = pick(device)
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModel.from_pretrained(name, use_safetensors=True).to(where).eval()
    except Exception as error:
        raise _not_loaded(name, error) from None
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    longest = min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 512))

    @torch.no_grad()
    def embed(texts: Sequence[str]) -> Array:
        tokens = tokenizer(
            list(texts), padding=True, truncation=True, max_length=longest, return_tensors="pt"
        ).to(where)
        states = model(**tokens).last_hidden_state
        mask = tokens["attention_mask"][:, :, None].to(states.dtype)
        means = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        return np.asarray(means.float().cpu().numpy())

    return embed


def _not_loaded(name: str, error: Exception) -> PrivetError:
    return PrivetError(
        f"The model {name} cannot be loaded ({first_line(error)}): name a folder that holds a "
        "model in safetensors, or a model of the hub that can be reached from here."
    )
