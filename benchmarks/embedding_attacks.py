"""Attacks on sentence vectors, raw and after LEACE: words by inversion, members, people, records.

    python benchmarks/embedding_attacks.py --data blogs_use512.parquet --words glove100.parquet

Two embeddings of the same posts: the one in the file, and means of word vectors, which alone an
attacker can differentiate. Writes benchmarks/results/embedding-attacks.json.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
from tables import RESULTS, Study, write

import privet
from privet.adversaries.membership import membership
from privet.adversaries.raw_vector_search import raw_vector_search
from privet.adversaries.reidentification import reidentification
from privet.adversaries.released import released_parts
from privet.adversaries.similarity_membership import similarity_membership
from privet.auditing.vector_audit import search_quality
from privet.commands.embed import embed
from privet.evidence.figures import Figure
from privet.language.embeddings import invert
from privet.release.release import Release

INVERSIONS = {
    "": "words, black box: F1",
    ", as a set": "words, multi-set prediction: F1",
    ", white box": "words, white box by optimisation: F1",
}


def cell(figure: Figure, scale: int = 1, digits: int = 3) -> dict[str, Any]:
    """Value and interval as the tables take them."""
    values = {"value": figure.value, "low": figure.low, "high": figure.high}
    return {key: Decimal(str(round(scale * v, digits))) for key, v in values.items()}


def rows_of(name: str, vectors: Path, words: Path | None, private: str) -> list[dict[str, Any]]:
    """All attacks on one embedding."""
    data = privet.load(vectors)
    release = privet.LEACE().fit(data, private, run=privet.Run(progress=False))
    device, rows = torch.device("cpu"), list[dict[str, Any]]()

    def add(attack: str, raw: Figure | None, released: Figure) -> None:
        row: dict[str, Any] = {"embedding": name, "attack": attack}
        row |= {} if raw is None else {"raw": cell(raw)}
        row |= {"released": cell(released), "chance": Decimal(str(round(released.chance, 4)))}
        rows.append(row)
        sys.stderr.write(f"{row}\n")

    found = invert(vectors, release, by=words, device="cpu")
    for ending, title in INVERSIONS.items():
        if f"raw{ending}" in found:
            figures = [found[f"{kind}{ending}"].figures["f1_words"] for kind in ("raw", "released")]
            add(title, *figures)
    for attack, title in (
        (membership, "membership, from the vectors: AUC"),
        (similarity_membership, "membership, from similarity scores: AUC"),
    ):
        people = attack(release, data, device)
        assert not isinstance(people, str), people
        add(title, people.raw["auc"], people.figures["auc"])
    identity = Release.identity(release.schema.plain)
    parts = [released_parts(one, data, [], device) for one in (release, identity)]
    people = reidentification(*parts)
    assert not isinstance(people, str), people
    for key, title in (("top_1", "first"), ("top_5", "among the first five")):
        add(f"linking two posts of an author: found {title}", people.raw[key], people.figures[key])
    people = raw_vector_search(release, data, device)
    assert not isinstance(people, str), people
    add("release found by its raw vector: first", None, people.figures["top_1"])
    add(
        "release found by its raw vector, without the release: first",
        None,
        people.figures["top_1_without_release"],
    )
    for key, figure in search_quality(release, data, device).items():
        if key.startswith(("recall", "drift")):
            add(f"search kept: {figure.measure}", None, figure)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="texts with their vectors")
    parser.add_argument("--words", type=Path, required=True, help="word vectors")
    parser.add_argument("--private", default="gender", help="what LEACE erases")
    parser.add_argument("--out", type=Path, default=RESULTS / "embedding-attacks.json")
    args = parser.parse_args()
    rows = rows_of("sentence encoder", args.data, None, args.private)
    with tempfile.TemporaryDirectory() as folder:
        means = embed(args.data, Path(folder) / "means.parquet", vectors=args.words)
        rows += rows_of("means of word vectors", means, args.words, args.private)
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True)
    columns = {"embedding": "vectors", "attack": "attack", "raw": "raw", "released": "after LEACE"}
    study = Study(
        title="Attacks on sentence vectors of blog posts, raw and after LEACE has erased gender",
        command=[
            "python benchmarks/embedding_attacks.py --data blogs_use512.parquet \\",
            "    --words glove100.parquet",
        ],
        data=(
            "12,000 posts of 1,200 authors: Universal Sentence Encoder lite, 512 numbers, and means"
            " of 100 GloVe numbers; learned, chosen and counted on different authors"
        ),
        n=len(privet.load(args.data).part("test")),
        seeds=1,
        confidence=0.95,
        machine=f"{platform.processor() or platform.machine()}, one core, others busy",
        commit=commit.stdout.decode().strip() or None,
        published_in=None,
        source="Song and Raghunathan, Information leakage in embedding models, CCS 2020",
        columns=[
            *({"key": key, "title": title} for key, title in columns.items()),
            {"key": "chance", "title": "guessing"},
        ],
        rows=rows,
        notes=[
            "Words: the 300 most frequent; guessing is the same words for every text. White box: "
            "300 posts.",
            "LEACE adds no noise, so whoever has it finds a release by repeating it, but for equal posts.",
        ],
    )
    write(args.out, study)


if __name__ == "__main__":
    main()
