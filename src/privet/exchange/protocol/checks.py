"""What an open campaign refuses: anything that cannot have come out of its release.

A server that can read records can also look at them. Each test has a false alarm of at most one in
a billion for an honest participant, and none of them proves that noise was added: whoever wants to
send a photo in disguise can. They stop mistakes and careless clients.

For noise that is simply added, z = c + s e with a code c in [low, high], and for every code,
whatever it is (Anderson's inequality: a symmetric unimodal law puts less mass on a centred convex
set when it is shifted):

    gaussian    P(sum over pairs (z_2i - z_2i+1)^2 / 2 s^2 < q) <= P(chi2 with d/2 degrees < q)
    laplace     P(sum |z_i| / s < q) <= P(gamma(d) < q)

so records that vary less than the noise alone would are refused: they were made without it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import special

from privet.core.errors import PrivetError
from privet.exchange.protocol.envelope import (
    MAGIC,
    STEP,
    Array,
    Envelope,
    Labels,
    most_bytes,
    unpack,
)
from privet.exchange.protocol.manifest import Expect, Manifest, private_among
from privet.exchange.protocol.seal import OVERHEAD

ALARM = 1e-9
"""How often an honest record may fail one of the tests."""
FAR = 1e6
"""Limit of a record whose card names no range."""
GRIDS = (1.0, 1 / 255, 1 / 256, 1 / 127.5, 1 / 128)
"""Steps between the values of raw pictures, as they are usually scaled."""
PICTURES = (b"\x89PNG\r\n", b"GIF8", b"\xff\xd8\xff\xe0", b"\xff\xd8\xff\xe1", b"\xff\xd8\xff\xdb")
"""How pictures begin; long enough that a sealed record hardly ever does, which the two bytes of BMP
are not."""
FEW = 5
"""Fewer numbers than this are no picture."""


def check_open(manifest: Manifest, campaign: str, submission: str, content: bytes) -> Envelope:
    """The record of an open submission, or a sentence why it is refused."""
    if content.startswith(PICTURES):
        raise PrivetError(
            "This is a raw picture. Only what the release lets through is taken: use  privet share."
        )
    envelope = unpack(content)
    check_envelope(manifest, campaign, submission, envelope)
    return envelope


def check_envelope(manifest: Manifest, campaign: str, submission: str, envelope: Envelope) -> None:
    """Everything that can be seen in a readable record; the owner asks the same of a sealed one,
    after opening it."""
    if envelope.campaign != campaign or envelope.submission != submission:
        raise PrivetError("The record was made for another campaign or submission.")
    if envelope.release != manifest.release.card:
        raise PrivetError("The record was made by another release than the campaign's.")
    check_labels(manifest, envelope.labels)
    check_record(manifest.expect, envelope.z)


def check_sealed(manifest: Manifest, content: bytes) -> None:
    """A sealed record cannot be looked into. Its length can be right, and its bytes must look like
    noise."""
    if content.startswith((MAGIC, *PICTURES)):
        raise PrivetError(
            "This is not sealed. Only records sealed with the campaign's key are taken: use  privet share."
        )
    inner = len(content) - OVERHEAD
    fixed = None not in manifest.expect.shape
    wrong = (inner - 4 * manifest.expect.most) % STEP if fixed else inner < STEP
    if (
        inner <= 0
        or wrong
        or (fixed and inner <= 4 * manifest.expect.most)
        or len(content) > most_bytes(manifest.expect, sealed=True)
    ):
        raise PrivetError("This is not as long as a sealed record of this campaign.")
    counts = np.bincount(np.frombuffer(content, np.uint8), minlength=256)
    # Pearson's statistic of 256 equally likely bytes; the mean of so many bits is near a normal law
    # in its cube root (Wilson, Hilferty).
    statistic = float(((counts - len(content) / 256) ** 2).sum() * 256 / len(content))
    if (statistic / 255) ** (1 / 3) > 1 - 2 / (9 * 255) + 8 * (2 / (9 * 255)) ** 0.5:
        raise PrivetError("This is not sealed: its bytes do not look like noise.")


def check_labels(manifest: Manifest, labels: Labels) -> None:
    if hidden := private_among(labels, manifest.private):
        raise PrivetError(f"'{hidden}' is what the release hides; it cannot be sent beside it.")
    asked = {label.name: label for label in manifest.labels}
    for name, value in labels.items():
        if name not in asked:
            raise PrivetError(f"The campaign does not ask for '{name[:64]}'.")
        values = asked[name].values
        if value is not None and not (
            value in values if values else isinstance(value, int | float)
        ):
            raise PrivetError(
                f"The answer to '{name}' is not one of those that the campaign takes."
            )
    absent = next(
        (name for name, label in asked.items() if label.required and labels.get(name) is None), None
    )
    if absent is not None:
        raise PrivetError(f"The campaign needs an answer to '{absent}'.")


def check_record(expect: Expect, z: Array) -> None:
    fits = len(z.shape) == len(expect.shape) and all(
        size <= expect.longest if wanted is None else size == wanted
        for size, wanted in zip(z.shape, expect.shape, strict=False)
    )
    if not fits:
        raise PrivetError(
            f"The release gives records of shape {expect.shape}, not {list(z.shape)}."
        )
    if not np.isfinite(z).all():
        raise PrivetError("A released record holds finite numbers only.")
    values = z.astype(np.float64).ravel()
    low, high = limits(expect, values.size)
    if values.min() < low or values.max() > high:
        raise PrivetError(
            f"The release gives numbers between {low:.4g} and {high:.4g}, and this record goes beyond them."
        )
    if expect.step is not None and np.any(values != np.round(values / expect.step) * expect.step):
        raise PrivetError(
            "The release rounds to a grid, and this record is not on it: it was not made by the release."
        )
    if (step := on_grid(values, finer=expect.step or 0.0)) is not None:
        raise PrivetError(
            f"All numbers are multiples of {step:.4g}, as in a raw picture: this was not made by the release."
        )
    if (
        expect.law is not None
        and expect.scale is not None
        and spread(expect.law, values / expect.scale) < ALARM
    ):
        raise PrivetError(
            "The record varies less than the release's noise alone would: it was made without the noise."
        )


def limits(expect: Expect, size: int) -> tuple[float, float]:
    """Between which values a record of so many numbers lies, but for one in a billion."""
    reach = 0.0
    if expect.law is not None and expect.scale is not None:
        tail = ALARM / (2 * size)
        reach = expect.scale * float(
            -special.ndtri(tail) if expect.law == "gaussian" else -np.log(2 * tail)
        )
        reach += expect.step or 0.0
    return (
        -FAR if expect.low is None else expect.low - reach,
        FAR if expect.high is None else expect.high + reach,
    )


def spread(law: str, values: Array) -> float:
    """How likely at most a record of noise of scale 1, whatever its code, varies as little as these
    values do."""
    if law == "laplace":
        return float(special.gammainc(values.size, np.abs(values).sum()))
    half = values.size // 2
    if half == 0:
        return 1.0
    pairs = values[: 2 * half].reshape(half, 2)
    return float(special.gammainc(half / 2, ((pairs[:, 0] - pairs[:, 1]) ** 2).sum() / 4))


def on_grid(values: Array, finer: float = 0.0) -> float | None:
    """The usual step of pictures that all values are multiples of, counted from 0 or from -1; only
    steps much coarser than `finer`."""
    if values.size < FEW:
        return None
    for step in (grid for grid in GRIDS if grid > 16 * finer):
        for start in (0.0, -1.0):
            whole = (values - start) / step
            if np.abs(whole).max() < 2**20 and np.all(np.abs(whole - np.round(whole)) < 2e-3):
                return step
    return None


def expected(
    card: Mapping[str, object], released: Array, without_noise: Array | None, noise: Array | None
) -> Expect:
    """What to expect of a release, from its card and from records that its graph gave, with noise
    and with none.

    A law is expected only where the graph is seen to add it: the difference that the noise makes
    must be its scale times the noise.
    """
    output, given, about = card["output"], card["input"], card.get("noise")
    assert isinstance(output, dict) and isinstance(given, dict)
    low, high = output.get("range") or (None, None)
    law, scale, step = None, None, None
    if (
        isinstance(about, dict)
        and noise is not None
        and without_noise is not None
        and noise.shape == released.shape
    ):
        scale = float(about["scale"])
        grid = 2.0 ** np.floor(np.log2(scale)) / 4096 if scale > 0 else 0.0
        adds = (
            scale > 0
            and np.abs(released - without_noise - scale * noise).max() <= 2 * grid + 1e-4 * scale
        )
        law = str(about["law"]) if adds and about["law"] in ("gaussian", "laplace") else None
        on = (
            np.array_equal(
                released.astype(np.float64), np.round(released.astype(np.float64) / grid) * grid
            )
            if adds
            else False
        )
        step = float(grid) if law and on else None
        scale = scale if law else None
        bounded = without_noise.min() >= -1 - 1e-3 and without_noise.max() <= 1 + 1e-3
        if (
            law
            and low is None
            and bounded
            and isinstance(network := card.get("network"), dict)
            and network.get("name") == "hedge"
        ):
            low, high = -1.0, 1.0
    if (
        low is None
        and card.get("form") == "record"
        and given.get("modality") == "image"
        and law is None
    ):
        low, high = -1.0, 1.0
    return Expect(
        shape=list(output["shape"]),
        longest=int(given.get("longest") or 1) if None in output["shape"] else 1,
        low=None if low is None else float(low),
        high=None if high is None else float(high),
        law=law,  # type: ignore[arg-type]
        scale=scale,
        step=step,
    )
