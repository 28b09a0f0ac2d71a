"""FNF (Balunovic, Ruoss and Vechev, Fair normalizing flows, ICLR 2022) by its authors' scripts for
categorical data: records of one group are exchanged for equally likely ones of the other.

    python benchmarks/peers/fnf_peer.py FOLDER CHECKOUT GAMMA

CHECKOUT: github.com/eth-sri/fnf, commit f574012. train_gen_categorical.py learns a density for each
group from *fit* (100 epochs, batches of 256, as its README says), train_enc_categorical.py encodes
and gives the statistical distance of the two densities, of which their bound, (1 + distance) / 2,
follows *if the densities are right*; its adversary is a network of 30 and 30, 60 epochs. Both read
what they call adult.data (*fit*, of which they keep a fifth to validate) and adult.test (all
others), which this script writes into a copy of the checkout.

As published, Adult is six categorical columns: numbers, country and sex are left out. Records with
something missing are kept here (they drop them), "missing" being a value of its own; a value that
one of the two files lacks becomes the most frequent one, since their code needs the same in both.
"""

from __future__ import annotations

import runpy
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
from files import Raw

COLUMNS = ("age", "workclass", "fnlwgt", "education", "education_num", "marital_status",
           "occupation", "relationship", "race", "sex", "capital_gain", "capital_loss",
           "hours_per_week", "native_country", "income")  # fmt: skip
WORDS = ("workclass", "education", "marital_status", "occupation", "relationship", "race")

warnings.simplefilter("ignore")
for alias, kind in (("object", object), ("bool", bool)):  # which numpy no longer has
    if alias not in vars(np):
        setattr(np, alias, kind)


def write_adult(folder: Path, raw: Raw, place: Path) -> None:
    """adult.data and adult.test, from table.parquet."""
    table = pd.read_parquet(folder / "table.parquet")
    table.columns = [name.replace("-", "_").replace(".", "_") for name in table]
    frame = pd.DataFrame(0, index=table.index, columns=list(COLUMNS))
    for name in WORDS:
        values = table[name].astype(object).fillna("missing").replace("?", "missing").astype(str)
        both = set(values[raw.fit]) & set(values[raw.judged])
        frame[name] = values.where(values.isin(both), values.mode()[0])
    frame["sex"] = raw.columns["private"].astype(str)
    frame["native_country"] = "United-States"
    frame.loc[frame.index[raw.fit][0], "native_country"] = "Holand-Netherlands"
    label = np.where(raw.task == 1, ">50K", "<=50K").astype(object)
    place.mkdir(parents=True)
    frame["income"] = label
    frame[raw.fit].to_csv(place / "adult.data", header=False, index=False)
    frame["income"] = label + "."
    frame[raw.judged].to_csv(place / "adult.test", index=False)


def script(checkout: Path, name: str, *words: str) -> dict[str, Any]:
    """What a script of theirs leaves behind."""
    sys.argv = [name, "--dataset", "adult", "--device", "cpu", *words]
    return runpy.run_path(str(checkout / name))


def main(folder: Path, checkout: Path, gamma: str) -> None:
    import os

    import torch

    raw = Raw(folder)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "fnf"
        shutil.copytree(checkout, copy)
        (copy / "adult").mkdir(exist_ok=True)
        write_adult(folder, raw, Path(scratch) / "data/adult")
        os.chdir(copy)
        sys.path.insert(0, str(copy))
        load = torch.load
        torch.load = lambda *a, **k: load(*a, **{**k, "weights_only": False})
        script(copy, "train_gen_categorical.py", "--batch_size", "256", "--n_epochs", "100")
        left = script(copy, "train_enc_categorical.py", "--encode", "--with_test", "--gamma", gamma,
                      "--batch_size", "128", "--weight_decay", "1e-4", "--n_epochs", "0",
                      "--p_val", "0.01")  # fmt: skip
    raw.release(
        left["test_all"].numpy(),
        own=(1 + float(left["stat_dist"])) / 2,
        theirs=float(left["best_adv_test_acc"]),
        setting=f"gamma {gamma}",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
