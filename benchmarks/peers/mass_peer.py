"""MaSS (Chen and others, Multi-attribute Selective Suppression, ICML 2024) by its authors' training
scripts: a generator of windows, or of unit vectors, that its own classifiers cannot read the
private attribute from.

    python benchmarks/peers/mass_peer.py FOLDER CHECKOUT NETWORKS EPOCHS

CHECKOUT: github.com/jpmorganchase/MaSS, commit 6fbe9be. Its scripts run one after the other, in one
process: train_sinlge_attribute.py for the private attribute and for the task, train_infonce.py for
whatever else is in a record, train_mass.py. They learn from *fit*. Settings are those of
scripts/NETWORKS.sh: 100 epochs for each of the first three, then EPOCHS (200 there for motionsense,
2,000 for audiomnist). The private attribute is suppressed to 0 nats (m), and the task kept (n) as
far as their condition n <= m + H(task | private) lets it be. With 0 EPOCHS what they would learn
from is released as it is.

NETWORKS is motionsense, for our windows of 6 x 64: as their tools/motionsense_preprocess.py does,
the lengths of rotation and of acceleration, standardised on *fit*. Theirs are 128 steps at 50 Hz
and ours 64 at 25 Hz, the same 2.56 seconds: they are interpolated. Or audiomnist, for vectors:
records of length one, as their features are, in layers as wide as a record where theirs is 768.

Not theirs: there is no GPU, so that nothing is waited for on one, mixed precision is off, and one
process stands for their distributed ones. torchvision is not needed. Their measuring of utility
afterwards, by a classifier tuned on what is released, is left out, since readers of ours do that.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
from files import Array, Raw

PICTURES = ("", ".transforms", ".transforms.functional", ".datasets", ".ops", ".ops.misc",
            ".models", ".models.feature_extraction")  # fmt: skip
"""What timm imports of torchvision; for pictures alone."""
HIDDEN, KEPT = "id", "act"
"""Names of theirs: one of their lines asks for the attribute `id`."""
SETTINGS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "motionsense": (
        ["--model", "motionsense_mlp", "--lr", "0.001", "--weight-decay", "0.0001"],
        ["--model", "motionsense_mlp", "--learning_rate", "0.001"],
        ["--gen_model", "motionsense_gen_mlp", "--disc_model", "motionsense_mlp",
         "--disc_infonce_model", "motionsense_mlp", "--batch-size", "128"],
    ),
    "audiomnist": (
        ["--model", "audiomnist_mlp", "--lr", "0.01", "--weight-decay", "0.05"],
        ["--model", "audiomnist_infonce_mlp", "--learning_rate", "0.05"],
        ["--gen_model", "audiomnist_gen_mlp", "--disc_model", "audiomnist_mlp",
         "--disc_infonce_model", "audiomnist_infonce_mlp", "--batch-size", "256"],
    ),
}  # fmt: skip
"""Of the classifiers, of the features and of the generator."""


class Alone(nn.Module):
    """A model in the form that a distributed one has."""

    def __init__(self, module: nn.Module, **_: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any) -> Any:
        return self.module(*args)


class People:
    """Records of a part in the form that their scripts read: a tensor and its labels."""

    def __init__(self, x: Array, raw: Raw, part: Array) -> None:
        labels = zip(raw.private[part].tolist(), raw.task[part].tolist(), strict=True)
        self.rows = [
            (torch.from_numpy(record), {HIDDEN: private, KEPT: task})
            for record, (private, task) in zip(x[part], labels, strict=True)
        ]
        self.num_classes = {HIDDEN: int(raw.private.max()) + 1, KEPT: int(raw.task.max()) + 1}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, dict[str, int]]:
        return self.rows[i]


def as_they_read(raw: Raw, networks: str) -> Array:
    """Records in the form of their data sets."""
    if networks == "audiomnist":
        return np.asarray(raw.x / np.linalg.norm(raw.x, axis=1, keepdims=True), np.float32)
    lengths = np.linalg.norm(raw.x.reshape(len(raw.x), 2, 3, 64), axis=2)
    lengths -= lengths[raw.fit].mean((0, 2))[:, None]
    lengths /= lengths[raw.fit].std((0, 2))[:, None]
    steps = nn.functional.interpolate(torch.from_numpy(lengths).float(), 128, mode="linear")
    return steps.numpy()


def conditional_entropy(kept: Array, hidden: Array) -> float:
    """H(kept | hidden) in nats."""
    both = np.histogram2d(hidden, kept, (hidden.max() + 1, kept.max() + 1))[0] / len(kept)
    share = both / both.sum(1, keepdims=True)
    return float(-(both * np.log(np.where(share > 0, share, 1))).sum())


class Scripts:
    """Their scripts, on these people.

    Parameters:
        checkout: Where they are.
        networks: Whose settings: motionsense or audiomnist.
        parts: *fit* and *select*, as they read them.
        channels: Channels of a window, or numbers of a vector.
        place: Where they write.
    """

    def __init__(
        self, checkout: str, networks: str, parts: tuple[People, People], channels: int, place: Path
    ) -> None:
        for name in PICTURES:
            sys.modules[f"torchvision{name}"] = MagicMock()
        sys.path.insert(0, checkout)
        torch.serialization.add_safe_globals([argparse.Namespace])
        torch.cuda.synchronize = lambda *_: None  # type: ignore[assignment]
        torch.nn.parallel.DistributedDataParallel = Alone  # type: ignore[misc,assignment]
        self.parser, misc = (importlib.import_module(name) for name in ("parser", "utils.misc"))
        misc.init_distributed_mode = lambda args: vars(args).update(distributed=True, gpu=None)
        names = ("train_sinlge_attribute", "train_infonce", "train_mass")
        self.classify, self.features, self.mass = map(importlib.import_module, names)
        self.networks, self.place, self.made = networks, place, SimpleNamespace()
        for script in (self.classify, self.features, self.mass):
            script.build_dataset = lambda is_train, args: parts[0 if is_train else 1]
            script.create_model = self.creator(script.create_model, channels)
        self.mass.evaluate = self.mass.final_eval = lambda *_: {}

    def creator(self, create: Any, channels: int) -> Any:
        """Their function that makes a network, for records of so many channels."""

        def make(name: str, **how: Any) -> nn.Module:
            net: nn.Module = create(name, **{**how, "in_chans": channels})
            setattr(self.made, name, net)
            return net

        return make

    def given(self, name: str, words: list[str]) -> argparse.Namespace:
        """What their scripts are told on the command line; their checkpoint is where it says."""
        (self.place / name).mkdir()
        words = [*words, "--dataset", self.networks, "--output_dir", str(self.place / name),
                 "--device", "cpu", "--num_workers", "0", "--no-pin-mem",
                 "--deterministic"]  # fmt: skip
        parents = [self.parser.get_args_parser()]
        return argparse.ArgumentParser(parents=parents).parse_args(words)

    def prepare(self) -> None:
        """The classifiers and the features that the generator is taught with."""
        classifier, features, _ = SETTINGS[self.networks]
        for name in (HIDDEN, KEPT):
            words = [*classifier, "--attributes", name, "--batch-size", "256", "--epochs", "100"]
            self.classify.main(self.given(name, words))
        sys.argv = ["train_infonce.py", *features, "--dataset", self.networks, "--epochs", "100",
                    "--weight_decay", "1e-4", "--num_workers", "0",
                    "--output_dir", str(self.place / "infonce")]  # fmt: skip
        self.features.main()

    def generator(self, epochs: str, kept: float) -> Any:
        """Their trained model: `generator`, and its adversaries `discriminators_xp`."""
        weights = [
            f"{name}={self.place / name}/checkpoint.pth" for name in (HIDDEN, KEPT, "infonce")
        ]
        words = [*SETTINGS[self.networks][2], "--epochs", epochs, "--lr", "0.0001",
                 "--attribute_models_weights", *weights, "--loss-m", f"{HIDDEN}=0.0",
                 "--loss-n", f"{KEPT}={kept}"]  # fmt: skip
        self.mass.main(self.given("mass", words))
        return self.made.gan_trainer.eval()


def main(folder: Path, checkout: str, networks: str, epochs: str) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    raw = Raw(folder)
    x = as_they_read(raw, networks)
    if epochs == "0":
        raw.release(x[raw.judged].reshape(raw.judged.sum(), -1), shape=x.shape[1:])
        return
    parts = (People(x, raw, raw.fit), People(x, raw, raw.select))
    kept = np.floor(100 * conditional_entropy(raw.task[raw.fit], raw.private[raw.fit])) / 100
    with (
        tempfile.TemporaryDirectory() as place,
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        scripts = Scripts(checkout, networks, parts, x.shape[1], Path(place))
        scripts.prepare()
        model = scripts.generator(epochs, float(kept))
    torch.manual_seed(0)
    with torch.no_grad():
        z = model.anonymize(torch.from_numpy(x[raw.judged]))
        answers = model.discriminators_xp[HIDDEN](z).argmax(1).numpy()
    test, truth = raw.columns["split"][raw.judged] == "test", raw.private[raw.judged]
    theirs = [(answers == value)[test & (truth == value)].mean() for value in np.unique(truth)]
    raw.release(
        z.flatten(1).numpy(),
        theirs=float(np.mean(theirs)),
        shape=list(z.shape[1:]),
        setting=f"{epochs} epochs",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
