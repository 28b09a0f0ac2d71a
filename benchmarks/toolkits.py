"""The strong battery against published toolkits, on the same released vectors.

    python benchmarks/toolkits.py --data adult.parquet --private sex --utility income --out DIR

Learns a TIPRDC release (or takes one with --release), releases the attack, select and test people
once, and lets three parties read the private attribute from the same vectors: `privet audit
--battery strong`; every attack model of ART's AttributeInferenceBaseline (Nicolae et al.,
arXiv:1807.01069; its attack on a feature given other features, here given the release); and
scikit-learn's classifiers with default settings. The toolkits' answers are held to the same
measure: balanced accuracy on *test*, at the threshold that is best on *select* where a model gives
probabilities. Needs adversarial-robustness-toolbox.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, LinearSVC

import privet
from privet.core.progress import console
from privet.evidence.leakage import balanced_accuracy
from privet.evidence.predictions import guesses_of
from privet.release.foreign import from_vectors

PROBES = {
    "LogisticRegression": LogisticRegression,
    "RidgeClassifier": RidgeClassifier,
    "LinearSVC": LinearSVC,
    "SVC": SVC,
    "KNeighborsClassifier": KNeighborsClassifier,
    "GaussianNB": GaussianNB,
    "RandomForestClassifier": RandomForestClassifier,
    "ExtraTreesClassifier": ExtraTreesClassifier,
    "HistGradientBoostingClassifier": HistGradientBoostingClassifier,
    "AdaBoostClassifier": AdaBoostClassifier,
    "MLPClassifier": MLPClassifier,
}


def main() -> None:
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("--data", required=True)
    words.add_argument("--private", required=True)
    words.add_argument("--utility", default="")
    words.add_argument("--out", type=Path, required=True)
    words.add_argument("--release", type=Path)
    words.add_argument("--epochs", type=float, default=20)
    words.add_argument("--battery", default="strong")
    words.add_argument(
        "--most",
        type=int,
        default=8000,
        help="attack records for the toolkits' kernel machines, which grow with the square",
    )
    said = words.parse_args()
    warnings.simplefilter("ignore")
    said.out.mkdir(parents=True, exist_ok=True)
    utility = [name for name in said.utility.split(",") if name]
    path = said.out / "released.parquet"
    if not path.exists():
        data = privet.load(said.data)
        release = (
            privet.Release.load(said.release)
            if said.release
            else privet.TIPRDC(epochs=said.epochs).fit(data, [said.private], without=utility)
        )
        _write(path, release, data, [said.private, *utility])

    started = time.monotonic()
    release, data = from_vectors(path, [said.private], utility)
    found = privet.audit(release, data, utility, said.battery, raw=False, rebuild=False)
    found.save(said.out / "audit.json")
    reading = found.reading(said.private)
    figure = reading.worst.score
    rows = [("privet", reading.worst.called, figure.value, time.monotonic() - started)]

    attribute = data.attribute(said.private)
    parts = {part: data.part(part) for part in ("attack", "select", "test")}
    x = {part: release.schema.inputs(view)[:] for part, view in parts.items()}
    y = {part: view.labels[said.private] for part, view in parts.items()}
    rng = np.random.default_rng(0)
    few = rng.permutation(len(x["attack"]))[: said.most]
    for name, probe in PROBES.items():
        started = time.monotonic()
        rows_for = few if probe is SVC else slice(None)
        model = probe().fit(x["attack"][rows_for], y["attack"][rows_for])
        rows.append(
            ("scikit-learn", name, _balanced(model, x, y, attribute), time.monotonic() - started)
        )
    rows += [("ART", *row) for row in _art(x, y, attribute, few)]
    reached = (
        f"{100 * figure.value:.1f} ({100 * figure.low:.1f} to {100 * figure.high:.1f}), n ="
        f" {figure.n}"
    )
    console.print(f"{said.private}: privet {found.battery} {reached}", highlight=False)
    for party, name, value, seconds in sorted(rows, key=lambda row: -row[2]):
        beyond = "beyond the interval" if value > figure.high else ""
        console.print(
            f"{party:14} {name:34} {100 * value:5.1f}  {seconds:6.1f} s  {beyond}",
            highlight=False,
            soft_wrap=True,
        )
    (said.out / "toolkits.json").write_text(json.dumps(rows))


def _write(path: Path, release: privet.Release, data: privet.Dataset, names: list[str]) -> None:
    """Released records of attack, select and test with labels and people, as a collector would hold
    them."""
    kept = data.take(np.flatnonzero(data.part_of > 0))
    z = release(release.schema.inputs(kept)).reshape(len(kept), -1)
    columns = {
        name: pa.array(np.asarray([*data.attribute(name).values])[kept.labels[name]])
        for name in names
    }
    split = np.asarray(["fit", "train", "valid", "test"])[kept.part_of]
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(np.ascontiguousarray(z, dtype=np.float32).ravel()), z.shape[1]
    )
    pq.write_table(
        pa.table(
            {"z": vectors, "person": pa.array(kept.people), "split": pa.array(split), **columns}
        ),
        path,
    )


def _balanced(model, x, y, attribute) -> float:
    if hasattr(model, "predict_proba"):
        select, test = (model.predict_proba(x[part]) for part in ("select", "test"))
    elif hasattr(model, "decision_function"):
        scores = [model.decision_function(x[part]) for part in ("select", "test")]
        if scores[0].ndim == 1:
            spread = np.abs(scores[0]).max() or 1.0
            select, test = (
                np.stack([1 - p, p], 1) for p in (1 / (1 + np.exp(-s / spread)) for s in scores)
            )
        else:
            return balanced_accuracy(y["test"], model.predict(x["test"]))
    return balanced_accuracy(y["test"], guesses_of(y["select"], select, test, attribute))


def _art(x, y, attribute, few):
    from art.attacks.inference.attribute_inference import AttributeInferenceBaseline

    for kind in ("nn", "rf", "gb", "lr", "dt", "knn", "svm"):
        started = time.monotonic()
        attack = AttributeInferenceBaseline(attack_model_type=kind, attack_feature=0)
        rows = few if kind in ("svm", "gb") else slice(None)
        attack.fit(
            np.concatenate([y["attack"][rows, None].astype(np.float32), x["attack"][rows]], axis=1)
        )
        values = list(range(attribute.classes))
        guesses = np.asarray(attack.infer(x["test"], values=values)).astype(int).reshape(-1)
        yield (
            f"AttributeInferenceBaseline {kind}",
            balanced_accuracy(y["test"], guesses),
            time.monotonic() - started,
        )


if __name__ == "__main__":
    main()
