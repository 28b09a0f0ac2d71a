"""Corpus: whose texts the model learns from, which of them are kept back, and whom it never sees.

Authors of *fit* are known to the model. Of each of them most texts are learned from and some are
kept back: one for adversaries to learn from, one to choose on, the rest to count on. Authors of
*attack* teach the reference model. Authors of *select* and *test* teach nobody: they are those who
were not in the training data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from privet.core.errors import PrivetError
from privet.data.dataset import Array, Dataset
from privet.data.schema import PAD, UNKNOWN
from privet.data.schema_file import read_layout
from privet.data.sources import FILES, load
from privet.data.splitting import assign
from privet.language.models.tokens import END, Tokenizer, words_of

ROLES = ("train", "attack", "select", "test")
"""Of an author's texts: learned from, shown to adversaries, to choose on, to count on."""
SIDES = ("known", "reference", "others")
"""Of authors: the model's, the reference model's, nobody's."""


@dataclass(frozen=True)
class Pieces:
    """Texts as rows of at most so many tokens; a longer text is cut into pieces of about the same
    length."""

    ids: Array
    """(n, longest + 1), each row beginning with END, filled up with PAD."""
    word: Array
    """(n, longest + 1): which kind of word a token is part of, by its place in `words`; -1 for
    none."""
    first: Array
    """(n, longest + 1): whether a word begins here."""
    text: Array
    """(n,): which text of the corpus the row is from."""
    words: tuple[str, ...]
    sizes: Array
    """Tokens of each of `words`: a word that a cut has divided has fewer on either side."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tokens(self) -> int:
        """How many tokens are predicted."""
        return int((self.ids[:, 1:] != PAD).sum())


@dataclass(frozen=True)
class Corpus:
    name: str
    fingerprint: str
    texts: Array
    author: Array
    """Codes, 0 .. of all authors on every side."""
    side: Array
    """Index into SIDES."""
    role: Array
    """Index into ROLES."""
    groups: Mapping[str, tuple[tuple[str, ...], Array]] = field(default_factory=dict)
    """Per attribute of authors: names of its values, and a code per text (-1 for missing)."""
    notes: tuple[str, ...] = ()

    def where(self, side: str, *roles: str) -> Array:
        """Places of the texts of a side, in any of these roles."""
        wanted = [ROLES.index(role) for role in roles or ROLES]
        return np.flatnonzero((self.side == SIDES.index(side)) & np.isin(self.role, wanted))

    def authors(self, side: str) -> Array:
        return np.unique(self.author[self.side == SIDES.index(side)])

    def cut(self, where: Array, tokenizer: Tokenizer, longest: int) -> Pieces:
        return cut([str(text) for text in self.texts[where]], where, tokenizer, longest)


def load_texts(spec: str | Path, schema: Path | None = None, progress: bool = True) -> Dataset:
    """The data that `spec` names, for those who want texts: a column called text holds some,
    however short or empty they are."""
    data, path, layout = load(spec, schema, progress), Path(spec).expanduser(), read_layout(schema)
    if data.modality == "text" or layout.x or layout.modality or path.suffix.lower() not in FILES:
        return data
    try:
        return FILES[path.suffix.lower()](
            path, replace(layout, x="text", modality="text"), progress
        )
    except PrivetError:
        return data


def gather(data: Dataset, author: str = "", authors: int | None = None, seed: int = 0) -> Corpus:
    """The corpus in `data`, whose authors are the people of the data or, where there are none, the
    column `author`."""
    if data.modality != "text":
        raise PrivetError(
            f"A language model learns from texts, and {data.name} holds {data.modality} records."
        )
    if authors is not None and authors < 2:
        raise PrivetError(f"--authors {authors} leaves nobody to be told apart: take 2 or more.")
    codes, part = _authors(data, author, seed)
    texts = data.records[data.rows]
    filled = np.array(
        [bool(words_of(text)) if text is not None else False for text in texts], dtype=bool
    ) & (codes >= 0)
    notes = (
        [f"{int((~filled).sum())} texts are empty or have no author, and were left out."]
        if not filled.all()
        else []
    )
    if not filled.any():
        raise PrivetError(f"All texts of {data.name} are empty: there is nothing to learn from.")
    kept = np.flatnonzero(filled)
    codes, part, texts = np.unique(codes[kept], return_inverse=True)[1], part[kept], texts[kept]
    side = np.array([0, 1, 2, 2])[part]
    chosen = np.isin(codes, _drawn(codes, side, authors, seed))
    kept, codes, side, texts = kept[chosen], codes[chosen], side[chosen], texts[chosen]
    role = _deal(codes, seed)
    known = side == 0
    count = len(np.unique(codes[known]))
    if count < 2:
        raise PrivetError(
            f"The fit part of {data.name} has {count} authors, and a model that must not tell authors apart needs 2 or more."
        )
    if not (known & (role == ROLES.index("test"))).any():
        raise PrivetError(
            f"Every author in {data.name} has one text: at least two by somebody are needed, one of them to be kept back."
        )
    single = int((np.bincount(codes[known])[np.unique(codes[known])] == 1).sum())
    if single:
        notes.append(
            f"{single} known authors have one text each: the model learns it, and none of theirs is kept back."
        )
    groups = _groups(data, kept, codes, known)
    return Corpus(data.name, data.fingerprint, texts, codes, side, role, groups, tuple(notes))


def cut(texts: Sequence[str], where: Array, tokenizer: Tokenizer, longest: int) -> Pieces:
    """Rows of the texts, which are the ones at `where`."""
    kinds: dict[str, int] = {}
    flat: list[tuple[int, int, bool]] = []
    lengths = []
    for text in texts:
        before = len(flat)
        for word in words_of(text):
            kind = kinds.setdefault(word, len(kinds))
            flat += [(code, kind, place == 0) for place, code in enumerate(tokenizer.word(word))]
        flat.append((END, -1, False))
        lengths.append(len(flat) - before)
    length = np.array(lengths, dtype=np.int64)
    many = -(-length // longest)
    source = np.repeat(np.arange(len(length)), many)
    turn = np.arange(len(source)) - np.repeat(np.cumsum(many) - many, many)
    inner = [turn * length[source] // many[source], (turn + 1) * length[source] // many[source]]
    start = (np.cumsum(length) - length)[source] + inner[0]
    size = inner[1] - inner[0]
    table = np.array(flat, dtype=np.int64).reshape(-1, 3)
    place = np.arange(int(size.max(initial=1)))
    there = place < size[:, None]
    at = np.where(there, start[:, None] + place, 0)
    blank = np.full((len(source), 1), -1)
    ids = np.hstack([np.full((len(source), 1), END), np.where(there, table[at, 0], PAD)])
    kind_of = np.hstack([blank, np.where(there, table[at, 1], -1)])
    first = np.hstack([blank == 0, there & (table[at, 2] == 1)])
    return Pieces(
        ids,
        kind_of,
        first,
        np.asarray(where)[source],
        tuple(kinds),
        np.array([len(tokenizer.word(word)) for word in kinds]),
    )


def private_words(pieces: Pieces, author: Array) -> Array:
    """Rows (row, start, end) of the words that one author alone uses in these pieces: names above
    all.

    Digits, marks and words of one letter are not counted, nor words the tokenizer does not know,
    nor words with fewer than three tokens before them.
    """
    alone = (
        np.bincount(
            np.unique(
                np.stack([pieces.word[pieces.first], np.repeat(author, pieces.first.sum(1))]),
                axis=1,
            )[0]
        )
        == 1
    )
    proper = np.array([len(word) > 1 and word.isalpha() for word in pieces.words], dtype=bool)
    wanted = pieces.first & np.pad(alone & proper, (0, 1))[pieces.word]
    row, start = np.nonzero(wanted)
    place = np.arange(pieces.ids.shape[1])
    goes_on = (pieces.word[row] == pieces.word[row, start][:, None]) & ~pieces.first[row]
    over = (place > start[:, None]) & ~goes_on
    end = np.where(over.any(1), over.argmax(1), pieces.ids.shape[1])
    whole = end - start == pieces.sizes[pieces.word[row, start]]
    inside = (place >= start[:, None]) & (place < end[:, None])
    learned = ~((pieces.ids[row] == UNKNOWN) & inside).any(1)
    return np.asarray(np.stack([row, start, end], 1)[learned & whole & (start > 3)])


def _authors(data: Dataset, name: str, seed: int) -> tuple[Array, Array]:
    """An author code per text (-1 for none), and the part of each text: no two parts share an
    author."""
    if not name and data.person is not None:
        return np.asarray(data.person), np.asarray(data.part_of)
    if not name and "author" not in data.attributes:
        raise PrivetError(
            f"{data.name} does not say who wrote a text: name the column with --author, or as person in a --schema file."
        )
    column = data.labels[data.attribute(name or "author").name]
    missing = column < 0 if column.dtype.kind in "iu" else ~np.isfinite(column)
    codes = np.where(missing, -1, np.unique(column, return_inverse=True)[1])
    if data.person is not None and _nested(codes, np.asarray(data.part_of)):
        return codes, np.asarray(data.part_of)
    if len(np.unique(codes[codes >= 0])) < 2:
        raise PrivetError(
            f"All texts of {data.name} are by one author: there is nobody to tell them from."
        )
    part, _ = assign(len(codes), codes, None, seed)
    return codes, part


def _nested(codes: Array, part: Array) -> bool:
    """Whether no author has texts in two parts."""
    return len(np.unique(np.stack([codes, part]), axis=1).T) == len(np.unique(codes))


def _drawn(codes: Array, side: Array, authors: int | None, seed: int) -> Array:
    """As many authors of every side, in the order of a draw."""
    random = np.random.default_rng([seed, 1])
    drawn = [random.permutation(np.unique(codes[side == one])) for one in range(len(SIDES))]
    return np.concatenate([one[: authors or len(one)] for one in drawn])


def _deal(codes: Array, seed: int) -> Array:
    """A role per text. Of 8 texts or more, 2 are counted on, 1 is chosen on and 1 shown to
    adversaries; of fewer, less is kept back."""
    random = np.random.default_rng([seed, 2])
    order = np.lexsort((random.random(len(codes)), codes))
    many = np.bincount(codes)[codes[order]]
    rank = np.arange(len(codes)) - np.searchsorted(codes[order], codes[order])
    tests, more = np.where(many >= 8, 2, np.where(many >= 2, 1, 0)), np.where(many >= 5, 1, 0)
    role = np.select([rank < tests, rank < tests + more, rank < tests + 2 * more], [3, 2, 1], 0)
    back = np.empty(len(codes), dtype=np.int64)
    back[order] = role
    return back


def _groups(
    data: Dataset, kept: Array, codes: Array, known: Array
) -> dict[str, tuple[tuple[str, ...], Array]]:
    """What is the same for all texts of an author and has few values; of numbers, thirds."""
    found: dict[str, tuple[tuple[str, ...], Array]] = {}
    for name, attribute in data.attributes.items():
        labels = data.labels[name][kept]
        if attribute.kind == "number":
            names, labels = _thirds(labels, known)
        elif attribute.is_class and attribute.classes <= 6:
            names = attribute.values
        else:
            continue
        if (
            len(np.unique(np.stack([codes, labels]), axis=1).T) == len(np.unique(codes))
            and len(np.unique(labels[known])) > 1
        ):
            found[name] = (names, labels)
    return found


def _thirds(numbers: Array, known: Array) -> tuple[tuple[str, ...], Array]:
    """Bands of a number that hold about a third of the known authors' texts each."""
    there = np.isfinite(numbers)
    edges = (
        np.unique(np.quantile(numbers[known & there], [1 / 3, 2 / 3]))
        if (known & there).any()
        else np.zeros(0)
    )
    band = np.searchsorted(edges, numbers)
    present = np.unique(band[there])
    names = [
        f"{numbers[there & (band == one)].min():g} to {numbers[there & (band == one)].max():g}"
        for one in present
    ]
    return tuple(names), np.where(there, np.searchsorted(present, band), -1)
