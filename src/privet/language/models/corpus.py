"""Corpus: whose texts the model is trained on, which of them are held out, and whom it never sees.

Authors of *fit* are known to the model. It is trained on most texts of each; the others are held
out: one for adversaries to learn from, one to choose on, the rest to count on. The reference model
is trained on authors of *attack*. No model is trained on authors of *select* and *test*: they are
the non-members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from privet.core.errors import PrivetError, refuse_if
from privet.data.dataset import Array, Dataset
from privet.data.schema import PAD
from privet.data.schema_file import read_layout
from privet.data.sources import FILES, load
from privet.data.splitting import assign
from privet.language.models.tokens import END, Tokenizer, words_of

# Of an author's texts: trained on, shown to adversaries, to choose on, to count on.
ROLES = ("train", "attack", "select", "test")
# Of authors: the model's, the reference model's, nobody's.
SIDES = ("known", "reference", "others")


@dataclass(frozen=True)
class TokenRows:
    """Texts as rows of a bounded number of tokens; a longer text is cut into rows of about the same
    length.

    Parameters:
        ids: (n, longest + 1), each row beginning with END, filled up with PAD.
        word: (n, longest + 1): of which word a token is part, as an index into `words`; -1 for
            none.
        first: (n, longest + 1): whether a word begins here.
        text: (n,): the text of the corpus that the row is from.
        sizes: Tokens of each of `words`: a word that a cut has divided has fewer on either side.
    """

    ids: Array
    word: Array
    first: Array
    text: Array
    words: tuple[str, ...]
    sizes: Array

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> Array:
        """(n,): the tokens that are predicted in each row."""
        return np.asarray((self.ids[:, 1:] != PAD).sum(1))


@dataclass(frozen=True)
class Corpus:
    """Texts with their authors, and what each is used for.

    Parameters:
        author: A code per text, from 0, over the authors of every side.
        side: Index into SIDES.
        role: Index into ROLES.
        groups: Per attribute of authors: names of its values, and a code per text (-1 for missing).
        notes: Sentences on texts that were left out.
    """

    name: str
    fingerprint: str
    texts: Array
    author: Array
    side: Array
    role: Array
    groups: Mapping[str, tuple[tuple[str, ...], Array]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def select(self, side: str, *roles: str) -> Array:
        """Indices of the texts of a side, in any of these roles."""
        wanted = [ROLES.index(role) for role in roles or ROLES]
        return np.flatnonzero((self.side == SIDES.index(side)) & np.isin(self.role, wanted))

    def authors(self, side: str) -> Array:
        """Codes of the authors of a side."""
        return np.unique(self.author[self.side == SIDES.index(side)])

    def token_rows(self, selected: Array, tokenizer: Tokenizer, longest: int) -> TokenRows:
        """The selected texts as rows of at most `longest` tokens after END."""
        return cut([str(text) for text in self.texts[selected]], selected, tokenizer, longest)


def load_texts(spec: str | Path, schema: Path | None = None, progress: bool = True) -> Dataset:
    """The data that `spec` names. A column called text counts as texts, however short or empty they
    are."""
    data, path, layout = load(spec, schema, progress), Path(spec).expanduser(), read_layout(schema)
    if data.modality == "text" or layout.x or layout.modality or path.suffix.lower() not in FILES:
        return data
    try:
        layout = replace(layout, x="text", modality="text")
        return FILES[path.suffix.lower()](path, layout, progress)
    except PrivetError:
        return data


def build_corpus(
    data: Dataset, author: str = "", authors: int | None = None, seed: int = 0
) -> Corpus:
    """The corpus in `data`, whose authors are the people of the data or, where there are none, the
    column `author`; at most `authors` of each side."""
    refuse_if(
        data.modality != "text",
        f"A language model learns from texts, and {data.name} holds {data.modality} records.",
    )
    refuse_if(
        authors is not None and authors < 2,
        f"--authors {authors} leaves nobody to be told apart: take 2 or more.",
    )
    codes, part = _authors(data, author, seed)
    texts = data.records[data.rows]
    filled = np.array([text is not None and bool(words_of(text)) for text in texts], dtype=bool)
    filled &= codes >= 0
    refuse_if(
        not filled.any(), f"All texts of {data.name} are empty: there is nothing to learn from."
    )
    used = np.flatnonzero(filled)
    codes, side = np.unique(codes[used], return_inverse=True)[1], np.array([0, 1, 2, 2])[part[used]]
    drawn = np.isin(codes, _draw_authors(codes, side, authors, seed))
    used, codes, side = used[drawn], codes[drawn], side[drawn]
    role, known = _assign_roles(codes, seed), side == 0
    texts_each = np.bincount(codes[known])
    _check_size(data.name, int((texts_each > 0).sum()), role[known])
    notes = []
    if not filled.all():
        notes = [f"{int((~filled).sum())} texts are empty or have no author, and were left out."]
    if (texts_each == 1).any():
        notes.append(
            f"{int((texts_each == 1).sum())} known authors have one text each: the model learns "
            "it, and none of theirs is kept back."
        )
    groups = _groups(data, used, codes, known)
    return Corpus(data.name, data.fingerprint, texts[used], codes, side, role, groups, tuple(notes))


def cut(texts: Sequence[str], numbers: Array, tokenizer: Tokenizer, longest: int) -> TokenRows:
    """Rows of texts that have these numbers in their corpus."""
    words: dict[str, int] = {}
    rows, source = [np.zeros((0, 3), dtype=np.int64)], []
    for text, number in zip(texts, numbers, strict=True):
        tokens = [
            (code, words.setdefault(word, len(words)), place == 0)
            for word in words_of(text)
            for place, code in enumerate(tokenizer.word(word))
        ]
        tokens.append((END, -1, False))
        count = -(-len(tokens) // longest)
        borders = np.arange(1, count) * len(tokens) // count
        rows += np.split(np.array(tokens, dtype=np.int64), borders)
        source += [number] * count
    lengths = np.array([len(row) for row in rows[1:]], dtype=np.int64)
    table = np.full((len(lengths), 1 + int(lengths.max(initial=1)), 3), (PAD, -1, 0))
    table[:, 0, 0] = END
    table[:, 1:][np.arange(table.shape[1] - 1) < lengths[:, None]] = np.concatenate(rows)
    ids, word_index, first = np.moveaxis(table, 2, 0)
    return TokenRows(
        ids.copy(),
        word_index.copy(),
        first == 1,
        np.array(source, dtype=np.int64),
        tuple(words),
        np.array([len(tokenizer.word(word)) for word in words]),
    )


def _authors(data: Dataset, name: str, seed: int) -> tuple[Array, Array]:
    """An author code per text (-1 for none), and the part of each text: no two parts share an
    author."""
    parts = np.asarray(data.part_of)
    if not name and data.person is not None:
        return np.asarray(data.person), parts
    refuse_if(
        not name and "author" not in data.attributes,
        f"{data.name} does not say who wrote a text: name the column with --author, or as "
        "person in a --schema file.",
    )
    column = data.labels[data.attribute(name or "author").name]
    missing = column < 0 if column.dtype.kind in "iu" else ~np.isfinite(column)
    codes = np.where(missing, -1, np.unique(column, return_inverse=True)[1])
    if data.person is not None and _one_value_each(codes, parts):
        return codes, parts
    refuse_if(
        len(np.unique(codes[codes >= 0])) < 2,
        f"All texts of {data.name} are by one author: there is nobody to tell them from.",
    )
    return codes, assign(len(codes), codes, None, seed)[0]


def _one_value_each(codes: Array, values: Array) -> bool:
    """Whether all texts of every author have the same value."""
    return len(np.unique(np.stack([codes, values]), axis=1).T) == len(np.unique(codes))


def _check_size(name: str, authors: int, known_roles: Array) -> None:
    refuse_if(
        authors < 2,
        f"The fit part of {name} has {authors} authors, and a model that must not tell authors "
        "apart needs 2 or more.",
    )
    refuse_if(
        not (known_roles == ROLES.index("test")).any(),
        f"Every author in {name} has one text: at least two by somebody are needed, one of "
        "them to be kept back.",
    )


def _draw_authors(codes: Array, side: Array, authors: int | None, seed: int) -> Array:
    """At most so many authors of every side."""
    random = np.random.default_rng([seed, 1])
    drawn = [random.permutation(np.unique(codes[side == one])) for one in range(len(SIDES))]
    return np.concatenate([one[: authors or len(one)] for one in drawn])


def _assign_roles(codes: Array, seed: int) -> Array:
    """A role per text. Of 8 texts or more, 2 are counted on, 1 is chosen on and 1 shown to
    adversaries; of fewer, less is held out."""
    random = np.random.default_rng([seed, 2])
    order = np.lexsort((random.random(len(codes)), codes))
    texts = np.bincount(codes)[codes[order]]
    rank = np.arange(len(codes)) - np.searchsorted(codes[order], codes[order])
    tests, more = np.where(texts >= 8, 2, np.where(texts >= 2, 1, 0)), np.where(texts >= 5, 1, 0)
    role = np.empty(len(codes), dtype=np.int64)
    role[order] = np.select(
        [rank < tests, rank < tests + more, rank < tests + 2 * more], [3, 2, 1], 0
    )
    return role


def _groups(
    data: Dataset, used: Array, codes: Array, known: Array
) -> dict[str, tuple[tuple[str, ...], Array]]:
    """Attributes that are the same for all texts of an author and have few values; of numbers,
    thirds."""
    groups: dict[str, tuple[tuple[str, ...], Array]] = {}
    for name, attribute in data.attributes.items():
        names, labels = attribute.values, data.labels[name][used]
        if attribute.kind == "number":
            names, labels = _thirds(labels, known)
        elif not attribute.is_class or attribute.classes > 6:
            continue
        if _one_value_each(codes, labels) and len(np.unique(labels[known])) > 1:
            groups[name] = (names, labels)
    return groups


def _thirds(numbers: Array, known: Array) -> tuple[tuple[str, ...], Array]:
    """Bands of a number that hold about a third of the known authors' texts each."""
    finite = np.isfinite(numbers)
    known_numbers = numbers[known & finite]
    edges = (
        np.unique(np.quantile(known_numbers, [1 / 3, 2 / 3])) if len(known_numbers) else np.zeros(0)
    )
    band = np.searchsorted(edges, numbers)
    present = np.unique(band[finite])
    members = [numbers[finite & (band == one)] for one in present]
    names = tuple(f"{inside.min():g} to {inside.max():g}" for inside in members)
    return names, np.where(finite, np.searchsorted(present, band), -1)
