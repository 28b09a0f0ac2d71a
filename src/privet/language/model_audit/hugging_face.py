"""The audit of a causal language model that somebody else trained, in the format of Hugging Face.

Nothing is trained here. What the model was trained on is said by the data: it has seen the texts of
the *fit* authors, and none of the authors of *select* and *test*, who show what comes from knowing
the language. Three attacks:

    exposure      of secrets that you name, as in exposure.py: log2 |R| - log2 rank, R all sentences
                  with other digits in the place of the secret's
    tab           a text is cut before a word that its author alone uses; is it among the model's k
                  likeliest completions?
    extraction    the model writes freely; how many of its texts repeat a run of words of a text it
                  has seen?

Sources: Carlini and others, The Secret Sharer, USENIX Security (2019), and Extracting training data
from large language models, USENIX Security (2021).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from privet.core.errors import PrivetError, first_line, missing_extra, refuse_if
from privet.core.files import results_folder, write_text
from privet.core.progress import bar
from privet.data.dataset import Array
from privet.evidence.figures import Figure
from privet.language.mean_figure import mean_figure
from privet.language.model_audit.exposure import (
    SAMPLE,
    exposure_by_fit,
    exposure_by_listing,
    fit,
)
from privet.language.model_audit.extraction import RUN, TOKENS, TOP, repeated_figure, runs_of
from privet.language.models.corpus import Corpus, build_corpus, load_texts
from privet.nets.device import pick

TRIES = (1, 5, 20)
PROMPTS_PER_AUTHOR = 10
# Texts that the model writes.
WRITTEN = 200
# Words before a private word that the model is shown, at most.
BEFORE = 48
BATCH = 32
# Largest space of a secret that is listed; beyond it, exposure is fitted.
LARGEST_LISTED = 10_000


class Loaded(NamedTuple):
    """A causal language model with its tokenizer, and where it runs."""

    model: Any
    tokenizer: Any
    device: torch.device

    def codes(self, text: str) -> list[int]:
        """Tokens of a text, without those that mark its ends."""
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    @property
    def start(self) -> int:
        """The token that a text begins with."""
        for token in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        raise PrivetError("The model's tokenizer has no token for the beginning or end of a text.")

    @torch.inference_mode()
    def logits(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores (n, t, vocabulary) of rows of tokens, filled up at their ends, and the rows."""
        longest = max(map(len, rows))
        ids = torch.tensor([[*row, *[self.start] * (longest - len(row))] for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        ids, mask = ids.to(self.device), mask.to(self.device)
        return self.model(input_ids=ids, attention_mask=mask).logits.float(), ids


def load_model(name: str, device: str = "auto") -> Loaded:
    """The model in a folder, or of that name on a hub; only weights in the safetensors format are
    read, and no code that comes with it is run."""
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ModuleNotFoundError:
        raise missing_extra("transformers", "language", "A model of Hugging Face") from None
    where = pick(device)
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        model: Any = AutoModelForCausalLM.from_pretrained(
            name, trust_remote_code=False, use_safetensors=True
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise PrivetError(
            f"{name} cannot be read as a causal language model of Hugging Face "
            f"({first_line(error)}): name its folder, with config.json, model.safetensors and the "
            "tokenizer's files."
        ) from None
    return Loaded(model.to(where).eval(), tokenizer, where)


@dataclass(frozen=True)
class Secret:
    """A secret that was in the training texts, and its exposure.

    Parameters:
        text: The sentence; its digits are the secret.
        bits: Exposure.
        most: log2 of the number of sentences that it is ranked among.
        listed: Whether all of them were scored; else the exposure is fitted.
    """

    text: str
    bits: float
    most: float
    listed: bool


@dataclass(frozen=True)
class ForeignModelAudit:
    """What a model that somebody else trained remembers.

    Parameters:
        model: Its folder or name.
        data: The texts it has seen, by name.
        secrets: Exposure of the secrets named.
        tab: Per number of tries, the share of private words completed; chance is that of authors
            the model has not seen.
        repeated: Share of freely written texts that repeat a run of words of a text it has seen;
            chance is the share that repeats one of authors it has not seen.
        longest: Words of the longest run repeated.
        example: That run.
    """

    model: str
    data: str
    secrets: tuple[Secret, ...]
    tab: tuple[Figure, ...]
    repeated: Figure
    longest: int
    example: str

    def to_json(self) -> str:
        """The layout of language-model.json."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    def sentences(self) -> list[str]:
        """What was found, for people."""
        lines = [
            f"Secret '{one.text}': exposure {one.bits:.1f} of {one.most:.1f} bits (1.4 by chance)."
            for one in self.secrets
        ]
        for figure in (*self.tab, self.repeated):
            lines.append(
                f"{figure.measure}: {100 * figure.value:.1f} % ({100 * figure.low:.1f} to "
                f"{100 * figure.high:.1f}); by chance {100 * figure.chance:.1f} %."
            )
        if self.longest >= RUN:
            lines.append(f"The longest run repeated has {self.longest} words: {self.example}")
        return lines


def audit_model(
    model: str,
    spec: str,
    folder: Path | None = None,
    *,
    secrets: Sequence[str] = (),
    author: str = "",
    authors: int | None = 80,
    schema: Path | None = None,
    written: int = WRITTEN,
    seed: int = 0,
    device: str = "auto",
    progress: bool = True,
) -> ForeignModelAudit:
    """Attack a causal language model of Hugging Face, and write language-model.json.

    Parameters:
        model: A folder, or a name on a hub.
        spec: A parquet or CSV file of texts. Those of *fit* authors are what it was trained on.
        folder: Where the result goes; None writes nothing.
        secrets: Sentences with digits that were in the training texts.
        author, authors, schema: As for `audit_to`.
        written: How many texts the model writes freely.
        seed: Of what is drawn.
        device: cpu, cuda or auto.
        progress: Whether progress is shown.
    """
    for text in secrets:
        refuse_if(
            not any(sign.isdigit() for sign in text),
            f"The secret '{text}' has no digits: its exposure is counted over other digits.",
        )
    corpus = build_corpus(load_texts(spec, schema, progress), author, authors, seed)
    loaded = load_model(model, device)
    with bar("attacking the model", 3, progress) as tick:
        bits = tuple(exposure_of(loaded, text, seed) for text in secrets)
        tick(1, "tab attack")
        tab = tab_figures(loaded, corpus, seed)
        tick(2, f"{written} texts are written")
        texts = write_texts(loaded, written, seed)
        seen, others = (runs_of(words_of_side(corpus, side)) for side in ("known", "others"))
        repeated, run = repeated_figure([text.split() for text in texts], seen, others)
        tick(3, "done")
    example = " ".join(map(str, run))
    found = ForeignModelAudit(model, corpus.name, bits, tab, repeated, len(run), example)
    if folder is not None:
        with results_folder(folder):
            write_text(folder / "language-model.json", found.to_json())
    return found


def exposure_of(loaded: Loaded, secret: str, seed: int) -> Secret:
    """Exposure of one secret among the sentences with other digits."""
    places = [i for i, sign in enumerate(secret) if sign.isdigit()]
    space = 10 ** len(places)
    own = int("".join(secret[i] for i in places))
    listed = space <= LARGEST_LISTED
    drawn = np.random.default_rng([seed, 5]).integers(0, min(space, 2**62), SAMPLE)
    fills = np.arange(space) if listed else drawn[drawn != own]

    def filled(number: int) -> str:
        signs = list(secret)
        for place, digit in zip(places, f"{number:0{len(places)}d}", strict=True):
            signs[place] = digit
        return "".join(signs)

    nats = text_nats(loaded, [filled(int(number)) for number in fills])
    if listed:
        bits = float(exposure_by_listing(nats, nats[[own]])[0])
    else:
        here = text_nats(loaded, [secret])
        bits = float(np.minimum(exposure_by_fit(fit(nats), here), math.log2(space))[0])
    return Secret(secret, bits, math.log2(space), listed)


def text_nats(loaded: Loaded, texts: Sequence[str]) -> Array:
    """-log p of every text."""
    found = []
    for some in _batches(texts):
        rows = [[loaded.start, *loaded.codes(text)] for text in some]
        logits, ids = loaded.logits(rows)
        each = logits[:, :-1].log_softmax(2).gather(2, ids[:, 1:, None])[..., 0]
        for line, row in zip(each, rows, strict=True):
            found.append(-float(line[: len(row) - 1].sum()))
    return np.array(found)


class Prompt(NamedTuple):
    """What the model is shown, the private word after it, and whose it is."""

    before: str
    word: str
    author: int


def private_prompts(corpus: Corpus, side: str, seed: int) -> list[Prompt]:
    """Texts of a side cut before words that their author alone uses, a few of each author."""
    texts = corpus.select(side, "train")
    users: dict[str, set[int]] = {}
    for row in corpus.select("known", "train").tolist() + corpus.select("others").tolist():
        for word in set(str(corpus.texts[row]).split()):
            users.setdefault(word, set()).add(int(corpus.author[row]))
    found = []
    for row in texts.tolist():
        words = str(corpus.texts[row]).split()
        for place in range(4, len(words)):
            word = words[place]
            if word.isalpha() and len(word) > 2 and len(users[word]) == 1:
                shown = " ".join(words[max(0, place - BEFORE) : place])
                found.append(Prompt(shown, word, int(corpus.author[row])))
    kept: list[Prompt] = []
    count: Counter[int] = Counter()
    for at in np.random.default_rng([seed, 6]).permutation(len(found)).tolist():
        count[found[at].author] += 1
        if count[found[at].author] <= PROMPTS_PER_AUTHOR:
            kept.append(found[at])
    return kept


def completion_ranks(loaded: Loaded, prompts: Sequence[Prompt]) -> Array:
    """How many completions the model tries before the private word: the rank of its first token,
    where each further one is the likeliest; else the size of the vocabulary."""
    ranks = []
    for some in _batches(prompts):
        heads = [[loaded.start, *loaded.codes(prompt.before)] for prompt in some]
        tails = [loaded.codes(" " + prompt.word) for prompt in some]
        logits, _ = loaded.logits([head + tail for head, tail in zip(heads, tails, strict=True)])
        for row, head, tail in zip(logits, heads, tails, strict=True):
            scores = row[len(head) - 1 : len(head) - 1 + len(tail)]
            true = scores[torch.arange(len(tail)), torch.tensor(tail)]
            before = (scores >= true[:, None]).sum(1) - 1
            finished = bool((before[1:] == 0).all())
            ranks.append(int(before[0]) if finished else scores.shape[1])
    return np.array(ranks, dtype=np.int64)


def tab_figures(loaded: Loaded, corpus: Corpus, seed: int) -> tuple[Figure, ...]:
    """The share of private words completed, for each number of tries."""
    strange = loaded.tokenizer.unk_token_id
    asked = {
        side: [
            prompt
            for prompt in private_prompts(corpus, side, seed)
            if strange is None or strange not in loaded.codes(" " + prompt.word)
        ]
        for side in ("known", "others")
    }
    refuse_if(
        not asked["known"],
        f"No author of {corpus.name} uses a word that nobody else does and that the model's "
        "tokenizer knows: the tab attack needs some.",
    )
    ranks = {side: completion_ranks(loaded, prompts) for side, prompts in asked.items()}
    people = np.array([prompt.author for prompt in asked["known"]])
    return tuple(
        mean_figure(
            (ranks["known"] < k).astype(float),
            people,
            f"private words among the first {k} completions",
            chance=float((ranks["others"] < k).mean()) if len(ranks["others"]) else 0.0,
            note="Chance: words of authors whose texts the model has not seen.",
        )
        for k in TRIES
    )


@torch.inference_mode()
def write_texts(loaded: Loaded, number: int, seed: int) -> list[str]:
    """Texts that the model writes freely, each token drawn of the likeliest."""
    torch.manual_seed(seed)
    texts = []
    for some in _batches(range(number)):
        start = torch.full((len(some), 1), loaded.start, device=loaded.device)
        ids = loaded.model.generate(
            input_ids=start,
            attention_mask=torch.ones_like(start),
            do_sample=True,
            top_k=TOP,
            max_new_tokens=TOKENS,
            pad_token_id=loaded.start,
        )
        texts += loaded.tokenizer.batch_decode(ids[:, 1:], skip_special_tokens=True)
    return texts


def words_of_side(corpus: Corpus, side: str) -> list[list[str]]:
    """The words of the texts of a side; of known authors, those that were learned from."""
    roles = ("train",) if side == "known" else ()
    return [str(corpus.texts[row]).split() for row in corpus.select(side, *roles)]


def _batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for begin in range(0, len(items), BATCH):
        yield items[begin : begin + BATCH]
