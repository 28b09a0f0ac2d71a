"""Sentence vectors that no longer tell a linear reader who wrote the sentence.

python examples/embeddings.py FOLDER
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import privet

WORDS = {
    "f": "lovely garden tea sister kitchen painting",
    "m": "great engine beer brother garage football",
    "travel": "train station ticket mountain hotel journey",
    "food": "bread butter soup oven dinner recipe",
}


def draw(texts: int, seed: int = 0) -> pd.DataFrame:
    """Texts by two kinds of writers on two topics."""
    random = np.random.default_rng(seed)
    writer, topic = random.choice(["f", "m"], texts), random.choice(["travel", "food"], texts)
    lines = [
        " ".join([*random.choice(WORDS[w].split(), 4), *random.choice(WORDS[t].split(), 4)])
        for w, t in zip(writer, topic, strict=True)
    ]
    return pd.DataFrame({"text": lines, "writer": writer, "topic": topic})


def embed(lines: list[str], size: int = 32) -> np.ndarray:
    """The mean of a random vector for each word; put your own model here."""
    known = " ".join(WORDS.values()).split()
    table = dict(zip(known, np.random.default_rng(1).normal(size=(len(known), size)), strict=True))
    return np.stack([np.mean([table[word] for word in line.split()], axis=0) for line in lines])


def main(folder: Path, texts: int = 3000) -> tuple[float, float]:
    """Erase the writer; how well a linear reader names writer and topic afterwards."""
    frame = draw(texts)
    frame["vector"] = list(embed(frame["text"].tolist()).astype("float32"))
    frame.drop(columns="text").to_parquet(folder / "vectors.parquet")

    data = privet.load(folder / "vectors.parquet")
    release = privet.LEACE().fit(data, private="writer", utility="topic")
    parts = {name: data.part(name) for name in ("attack", "test")}
    vectors = {name: release(release.schema.inputs(part)) for name, part in parts.items()}
    scores = []
    for label in ("writer", "topic"):
        reader = LogisticRegression(max_iter=1000)
        reader.fit(vectors["attack"], parts["attack"].labels[label])
        scores.append(float(reader.score(vectors["test"], parts["test"].labels[label])))
    print(f"From released vectors: writer {scores[0]:.0%}, topic {scores[1]:.0%}.")
    return scores[0], scores[1]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
