"""Private words from files to files: read texts and vectors, change the words, count, attack, and
write whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privet.auditing.audit import audit
from privet.core.errors import PrivetError
from privet.core.files import replacing, writable_folder, write_text
from privet.data.dataset import Dataset
from privet.data.schema import split_words
from privet.data.word_vectors import Vocabulary, is_words, read_table
from privet.evidence.figures import Audit
from privet.language.models.corpus import load_texts
from privet.language.private_words.attacks import Point, attackers_words, decode
from privet.language.private_words.lstm_prior import LSTMPrior
from privet.language.private_words.mechanism import PrivateWords, check_epsilon
from privet.language.private_words.statistics import Statistics, read_target, statistics, suggest
from privet.reporting.markdown import summary
from privet.reporting.page import report

START = 10.0
"""Where the search for an epsilon begins."""


def words_to(
    out: Path,
    texts: Path,
    vectors: Path,
    epsilon: float | None = None,
    *,
    target: str | None = None,
    column: str | None = None,
    keep: Sequence[str] = (),
    stats: Path | None = None,
    most: int = 500,
    draws: int = 100,
    seed: int | None = None,
    device: str = "cpu",
) -> tuple[float, Statistics | None]:
    """Write the texts with private words to `out`, and statistics to `stats`; the epsilon that was
    used, and what it does."""
    if (epsilon is None) == (target is None):
        raise PrivetError(
            "Say how much noise: either --epsilon 10, or --target stay=0.3 to have one suggested."
        )
    if epsilon is not None:
        check_epsilon(epsilon)
    if target is not None:
        read_target(target, draws)
    if out.suffix != ".parquet":
        raise PrivetError(
            f"The private texts are written as parquet: --out {out.with_suffix('.parquet')}."
        )
    table = read_table(texts)
    name = text_column(table, column, texts.name)
    absent = next((one for one in keep if one not in table.schema.names or one == name), None)
    if absent is not None:
        raise PrivetError(
            f"--keep names '{absent}', which is not another column of {texts.name}: {', '.join(table.schema.names)}."
        )
    undo = writable_folder(out.parent)
    try:
        words = PrivateWords(
            Vocabulary.read(vectors), START if epsilon is None else epsilon, device
        )
        codes, lengths = words.vocabulary.codes(table.column(name).to_pylist())
        if not len(codes):
            raise PrivetError(f"The column '{name}' of {texts.name} has no words.")
        found = None
        if target is not None:
            chosen, found = suggest(words, codes, target, min(most, 200), draws, seed or 0)
            words = replace(words, epsilon=chosen)
        if stats is not None:
            found = statistics(words, codes, most, draws, seed or 0)
            _write_statistics(stats, found, texts.name)
        private = pa.array(words.vocabulary.texts(words.change(codes, seed), lengths))
        about = {
            "method": "words",
            "epsilon": words.epsilon,
            "vectors": vectors.name,
            "words": len(words.vocabulary.words),
        }
        released = pa.table({name: private, **{one: table.column(one) for one in keep}})
        with replacing(out) as temporary:
            pq.write_table(
                released.replace_schema_metadata({b"privet": json.dumps(about).encode()}),
                temporary,
                compression="zstd",
            )
    except BaseException:
        undo()
        raise
    return words.epsilon, found


def text_column(table: Any, column: str | None, where: str) -> str:
    """The column of texts: the one named, the one called text, or the only one of strings."""
    strings = [name for name in table.schema.names if is_words(table.schema.field(name).type)]
    if column is not None and column not in strings:
        raise PrivetError(
            f"{where} has no column of texts called '{column}'; it has: {', '.join(strings) or 'none'}."
        )
    found = column or ("text" if "text" in strings else strings[0] if len(strings) == 1 else None)
    if found is None:
        raise PrivetError(
            f"Say which column of {where} holds the texts, with --text: {', '.join(strings) or 'it has none of strings'}."
        )
    return found


def audit_words(
    folder: Path,
    spec: str | Path,
    vectors: Path,
    epsilons: Sequence[float],
    private: Sequence[str],
    utility: Sequence[str] = (),
    *,
    battery: str = "quick",
    most: int = 2000,
    longest: int = 64,
    schema: Path | None = None,
    seed: int = 0,
    device: str = "auto",
    progress: bool = True,
    prior: str = "bigrams",
) -> list[Point]:
    """Attack private texts at every epsilon: attributes and tasks with the audit's adversaries,
    words with the decoder.

    The decoder's `prior` is bigrams; or, beside them, an lstm learned from the attacker's texts, or
    one in a folder of `privet lm train`.

    Writes `eps-E/audit.json`, `eps-E/report.html` and `eps-E/summary.md`, and words.json and
    words.html over all of them.
    """
    from privet.language.private_words.page import curve_page

    if not private:
        raise PrivetError("Say what must not be readable from the private texts: --private A.")
    if not epsilons:
        raise PrivetError("Say how much noise to attack: --epsilon 10, or several, 5,10,20.")
    for epsilon in epsilons:
        check_epsilon(epsilon)
    data = load_texts(spec, schema, progress)
    if data.modality != "text":
        raise PrivetError(
            f"{data.name} holds {data.modality} records, and private words are for texts."
        )
    vocabulary = Vocabulary.read(vectors)
    bare = without_marks(data, vocabulary)
    undo = writable_folder(folder)
    try:
        lstm = _prior(
            prior, PrivateWords(vocabulary, epsilons[0], device), bare, most, seed, device, progress
        )
        points: list[Point] = []
        earlier: Audit | None = None
        for epsilon in sorted(epsilons):
            words = PrivateWords(vocabulary, epsilon, device)
            found = _audit(
                words,
                bare,
                private,
                utility,
                battery,
                longest,
                most,
                seed,
                device,
                progress,
                earlier,
                lstm,
            )
            earlier = earlier or found
            place = folder / f"eps-{epsilon:g}"
            writable_folder(place)
            found.save(place / "audit.json")
            report(found, place / "report.html")
            write_text(place / "summary.md", summary(found))
            points.append(_point(epsilon, found))
        raw = {r.attribute: r.reference.score for r in found.readings if r.raw}
        told = {
            "data": data.name,
            "battery": battery,
            "points": [asdict(p) for p in points],
            "raw": {k: asdict(f) for k, f in raw.items()},
        }
        write_text(folder / "words.json", json.dumps(told, indent=1) + "\n")
        write_text(folder / "words.html", curve_page(points, raw, data.name))
    except BaseException:
        undo()
        raise
    return points


ADDED = (
    "Words were changed once per text, as they are when texts are sent; who is sent the same text again with fresh noise can "
    "average, and reads more.",
    "Raw texts, for comparison, are the words that have a vector, without marks and capitals: those are never released.",
)


def _audit(
    words: PrivateWords,
    data: Dataset,
    private: Sequence[str],
    utility: Sequence[str],
    battery: str,
    longest: int,
    most: int,
    seed: int,
    device: str,
    progress: bool,
    earlier: Audit | None,
    lstm: LSTMPrior | None,
) -> Audit:
    release = words.release(private, longest)
    found = audit(
        release,
        data,
        utility,
        battery,
        seed=seed,
        device=device,
        progress=progress,
        rebuild=False,
        raw_from=earlier,
    )
    said = tuple(
        line for line in found.limits if not line.startswith("The release is deterministic")
    )
    return replace(
        found, rebuilt=decode(words, data, most, seed, lstm=lstm), limits=(*said, *ADDED)
    )


def _prior(
    prior: str,
    words: PrivateWords,
    data: Dataset,
    most: int,
    seed: int,
    device: str,
    progress: bool,
) -> LSTMPrior | None:
    if prior == "bigrams":
        return None
    codes, lengths = attackers_words(words, data, most, seed)
    if prior == "lstm":
        return LSTMPrior.learn(
            codes, lengths, len(words.vocabulary), device=device, progress=progress
        )
    if not Path(prior).is_dir():
        raise PrivetError(
            f"--prior {prior} is neither bigrams nor lstm nor a folder that  privet lm train  wrote."
        )
    return LSTMPrior.read(Path(prior), words.vocabulary, codes, device)


def _point(epsilon: float, found: Audit) -> Point:
    private, utility = (
        {r.attribute: r.worst.score for r in found.readings if r.role == role}
        for role in ("private", "utility")
    )
    recovered = {one.decoder: one.figures["words"] for one in found.rebuilt}
    return Point(
        epsilon, private, utility, recovered, found.rebuilt[-1].value if found.rebuilt else 0.0
    )


def without_marks(data: Dataset, vocabulary: Vocabulary) -> Dataset:
    """The same texts without the marks that have no vector, which private words drop."""
    known = set(vocabulary.words)
    lines = [
        " ".join(w for w in split_words(text) if w in known or any(map(str.isalnum, w)))
        for text in data.records
    ]
    return replace(data, records=np.array(lines, dtype=object))


def _write_statistics(folder: Path, found: Statistics, name: str) -> None:
    from privet.language.private_words.page import statistics_page

    writable_folder(folder)
    table = {
        "word": list(found.words),
        "count": found.count.astype(int),
        "stays": found.stays,
        "distinct": found.distinct,
        "distance": found.distance,
        "becomes": [" ".join(words) for words in found.examples],
    }
    with replacing(folder / "words.parquet") as temporary:
        pq.write_table(pa.table(table), temporary, compression="zstd")
    write_text(folder / "words.html", statistics_page(found, name))
