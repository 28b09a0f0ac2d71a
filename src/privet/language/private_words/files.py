"""Private words from files to files: privatize texts, count what happens to words, and attack
private texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from privet.auditing.audit import audit
from privet.core.errors import PrivetError, refuse_if
from privet.core.files import replacing, results_folder, writable_folder, write_text
from privet.data.dataset import Dataset
from privet.data.schema import split_words
from privet.data.word_vectors import Vocabulary, read_texts
from privet.evidence.figures import Audit
from privet.language.models.corpus import load_texts
from privet.language.private_words.attacks import EpsilonFigures, attacker_texts, recover_words
from privet.language.private_words.mechanism import PrivateWords, check_epsilon
from privet.language.private_words.page import curve_page, statistics_page
from privet.language.private_words.priors import LSTMPrior
from privet.language.private_words.statistics import (
    WordStatistics,
    read_target,
    suggest_epsilon,
    word_statistics,
)
from privet.reporting.markdown import summary
from privet.reporting.page import report

# Where the search for an epsilon begins.
START = 10.0
# Limits of an audit of private words, in sentences.
LIMITS = (
    "Words were changed once per text, as they are when texts are sent; who is sent the same text "
    "again with fresh noise can average, and reads more.",
    "Raw texts, for comparison, are the words that have a vector, without marks and capitals: "
    "those are never released.",
)


@dataclass(frozen=True, kw_only=True)
class WordAttack:
    """What is attacked in private texts, and how.

    Parameters:
        private: Attributes that must not be readable.
        utility: Attributes that tasks should still read.
        battery: The adversaries of an audit: quick, lean, standard or strong.
        prior: Of the word decoder: bigrams; lstm, trained on the attacker's texts, beside them; or
            a folder of `privet lm train`.
        most: Texts whose words are decoded.
        longest: Words of a text that adversaries read.
    """

    private: Sequence[str]
    utility: Sequence[str] = ()
    battery: str = "quick"
    prior: str = "bigrams"
    most: int = 2000
    longest: int = 64
    seed: int = 0
    device: str = "auto"
    progress: bool = True


def private_words(
    texts: Path,
    vectors: Path,
    epsilons: Sequence[float] = (),
    *,
    out: Path | None = None,
    audit_folder: Path | None = None,
    attack: WordAttack | None = None,
    schema: Path | None = None,
    **options: Any,
) -> Iterator[str]:
    """Privatize texts, attack private texts, or both: what `privet words` does. Yields a sentence
    on each result.

    Parameters:
        texts, vectors: A table with a column of texts, and a parquet file of words with their
            vectors.
        epsilons: One to privatize with; one or more to attack.
        out: Parquet or CSV file for the private texts.
        audit_folder, attack, schema: Where results of attacks go, what is attacked, and a TOML file
            that describes the columns.
        options: Further arguments of `words_to`.
    """
    refuse_if(
        out is None and audit_folder is None,
        "Say where the private texts go, with --out private.parquet, or where attacks on them "
        "go, with --audit FOLDER.",
    )
    if out is not None:
        refuse_if(
            len(epsilons) > 1,
            "Texts are written with one --epsilon: several are for --audit without --out.",
        )
        epsilon, statistics = words_to(out, texts, vectors, *epsilons, **options)
        epsilons = [epsilon]
        if statistics is not None:
            yield statistics.sentence
        yield f"Private texts:  {out}"
    if audit_folder is not None:
        attack = attack or WordAttack(private=())
        points = audit_words(audit_folder, texts, vectors, epsilons, attack, schema)
        yield from (point.sentence for point in points)
        yield f"The page:  {audit_folder / 'words.html'}"


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
) -> tuple[float, WordStatistics | None]:
    """Write the texts of a file with private words; the epsilon that was used, and what it does.

    Parameters:
        out, texts, vectors: Files of private texts (parquet or CSV), of texts (any table), and of
            words with their vectors (parquet).
        epsilon, target: How little noise, or a target such as "stay=0.3" for which an epsilon is
            suggested.
        column, keep: The column of texts, and others that are written beside the private texts.
        stats, most, draws: Folder for statistics of at most so many words, each changed so many
            times.
        seed: Only to repeat a figure: with it, noise can be taken off again.
        device: cpu, cuda or auto.
    """
    refuse_if(
        (epsilon is None) == (target is None),
        "Say how much noise: either --epsilon 10, or --target stay=0.3 to have one suggested.",
    )
    if target is not None:
        read_target(target, draws)
    check_epsilon(START if epsilon is None else epsilon)
    refuse_if(
        out.suffix not in (".parquet", ".csv"),
        f"The private texts are written as .parquet or .csv: --out {out.with_suffix('.parquet')}.",
    )
    table, name, lines = read_texts(texts, column)
    absent = set(keep) - (set(table.schema.names) - {name})
    if absent:
        raise PrivetError(
            f"--keep names '{min(absent)}', which is not another column of {texts.name}: "
            f"{', '.join(table.schema.names)}."
        )
    with results_folder(out.parent):
        vocabulary, statistics = Vocabulary.read(vectors), None
        words = PrivateWords(vocabulary, START if epsilon is None else epsilon, device)
        codes, lengths = vocabulary.codes(lines)
        refuse_if(not len(codes), f"The column '{name}' of {texts.name} has no words.")
        if target is not None:
            chosen, statistics = suggest_epsilon(
                words, codes, target, min(most, 200), draws, seed or 0
            )
            words = replace(words, epsilon=chosen)
        if stats is not None:
            statistics = word_statistics(words, codes, most, draws, seed or 0)
            _write_statistics(stats, statistics, texts.name)
        private = pa.array(vocabulary.texts(words.change(codes, seed), lengths))
        about = {
            "method": "words",
            "epsilon": words.epsilon,
            "vectors": vectors.name,
            "words": len(vocabulary.words),
        }
        released = pa.table({name: private, **{other: table.column(other) for other in keep}})
        metadata = {b"privet": json.dumps(about).encode()}
        _write_table(out, released.replace_schema_metadata(metadata))
    return words.epsilon, statistics


def audit_words(
    folder: Path,
    spec: str | Path,
    vectors: Path,
    epsilons: Sequence[float],
    attack: WordAttack,
    schema: Path | None = None,
) -> list[EpsilonFigures]:
    """Attack private texts at every epsilon: attributes and tasks with the audit's adversaries,
    words with the decoder.

    Writes `eps-E/audit.json`, `eps-E/report.html` and `eps-E/summary.md`, and words.json and
    words.html over all of them.

    Parameters:
        folder: Where the results go.
        spec, schema: A file of texts with labels, and a TOML file that describes its columns.
        vectors: Parquet file of words with their vectors.
        epsilons: How little noise, one or several.
        attack: What is attacked, and how.
    """
    refuse_if(
        not attack.private, "Say what must not be readable from the private texts: --private A."
    )
    refuse_if(not epsilons, "Say how much noise to attack: --epsilon 10, or several, 5,10,20.")
    for epsilon in epsilons:
        check_epsilon(epsilon)
    data = load_texts(spec, schema, attack.progress)
    refuse_if(
        data.modality != "text",
        f"{data.name} holds {data.modality} records, and private words are for texts.",
    )
    vocabulary = Vocabulary.read(vectors)
    data = without_marks(data, vocabulary)
    with results_folder(folder):
        lstm = _lstm_prior(attack, PrivateWords(vocabulary, epsilons[0], attack.device), data)
        audits: dict[float, Audit] = {}
        for epsilon in sorted(epsilons):
            words = PrivateWords(vocabulary, epsilon, attack.device)
            raw_from = next(iter(audits.values()), None)
            audits[epsilon] = _audit(words, data, attack, raw_from, lstm)
            place = folder / f"eps-{epsilon:g}"
            writable_folder(place)
            audits[epsilon].save(place / "audit.json")
            report(audits[epsilon], place / "report.html")
            write_text(place / "summary.md", summary(audits[epsilon]))
        points = [_figures(epsilon, one) for epsilon, one in audits.items()]
        raw = {r.attribute: r.reference.score for r in audits[epsilon].readings if r.raw}
        content = {
            "data": data.name,
            "battery": attack.battery,
            "points": [asdict(point) for point in points],
            "raw": {name: asdict(figure) for name, figure in raw.items()},
        }
        write_text(folder / "words.json", json.dumps(content, indent=1) + "\n")
        write_text(folder / "words.html", curve_page(points, raw, data.name))
    return points


def _audit(
    words: PrivateWords,
    data: Dataset,
    attack: WordAttack,
    raw_from: Audit | None,
    lstm: LSTMPrior | None,
) -> Audit:
    attacked = audit(
        words.release(attack.private, attack.longest),
        data,
        attack.utility,
        attack.battery,
        seed=attack.seed,
        device=attack.device,
        progress=attack.progress,
        rebuild=False,
        raw_from=raw_from,
    )
    limits = [one for one in attacked.limits if not one.startswith("The release is deterministic")]
    rebuilt = recover_words(words, data, attack.most, attack.seed, lstm=lstm)
    return replace(attacked, rebuilt=rebuilt, limits=(*limits, *LIMITS))


def _lstm_prior(attack: WordAttack, words: PrivateWords, data: Dataset) -> LSTMPrior | None:
    if attack.prior == "bigrams":
        return None
    codes, lengths = attacker_texts(words, data, attack.most, attack.seed)
    if attack.prior == "lstm":
        size, progress = len(words.vocabulary), attack.progress
        return LSTMPrior.learn(codes, lengths, size, device=attack.device, progress=progress)
    refuse_if(
        not Path(attack.prior).is_dir(),
        f"--prior {attack.prior} is neither bigrams nor lstm nor a folder that  "
        "privet lm train  wrote.",
    )
    return LSTMPrior.read(Path(attack.prior), words.vocabulary, codes, attack.device)


def _figures(epsilon: float, attacked: Audit) -> EpsilonFigures:
    private, utility = (
        {
            reading.attribute: reading.worst.score
            for reading in attacked.readings
            if reading.role == role
        }
        for role in ("private", "utility")
    )
    recovered = {one.decoder: one.figures["words"] for one in attacked.rebuilt}
    stays = attacked.rebuilt[-1].value if attacked.rebuilt else 0.0
    return EpsilonFigures(epsilon, private, utility, recovered, stays)


def without_marks(data: Dataset, vocabulary: Vocabulary) -> Dataset:
    """The same texts without the marks that have no vector, which private words drop."""
    known = set(vocabulary.words)
    lines = [
        " ".join(w for w in split_words(text) if w in known or any(map(str.isalnum, w)))
        for text in data.records
    ]
    return replace(data, records=np.array(lines, dtype=object))


def _write_statistics(folder: Path, statistics: WordStatistics, name: str) -> None:
    writable_folder(folder)
    table = {
        "word": list(statistics.words),
        "count": statistics.count.astype(int),
        "stays": statistics.stays,
        "distinct": statistics.distinct,
        "distance": statistics.distance,
        "becomes": [" ".join(words) for words in statistics.examples],
    }
    _write_table(folder / "words.parquet", pa.table(table))
    write_text(folder / "words.html", statistics_page(statistics, name))


def _write_table(path: Path, table: Any) -> None:
    with replacing(path) as temporary:
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(table, temporary)
        else:
            pq.write_table(table, temporary, compression="zstd")
