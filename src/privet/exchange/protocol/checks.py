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

import numpy as np
from scipy import special

from privet.core.errors import PrivetError
from privet.exchange.protocol.envelope import (
    HEADER_STEP,
    MAGIC,
    Array,
    Envelope,
    Labels,
    max_bytes,
    unpack,
)
from privet.exchange.protocol.manifest import ExpectedRecord, Manifest, private_among
from privet.exchange.protocol.seal import OVERHEAD

# How often an honest record may fail one of the tests.
FALSE_ALARM = 1e-9
# Limit of a record whose card names no range.
LARGEST_VALUE = 1e6
# Steps between the values of raw pictures, as they are usually scaled.
PICTURE_STEPS = (1.0, 1 / 255, 1 / 256, 1 / 127.5, 1 / 128)
# Fewer numbers than this are no picture.
PICTURE_NUMBERS = 5
# Fewest numbers of a channel whose values are counted, and how many different ones a channel of
# bytes has.
LEVEL_NUMBERS = 64
LEVELS = (12, 256)
# How pictures begin; long enough that a sealed record hardly ever does, which the two bytes of BMP
# are not.
PICTURE_FILES = (
    b"\x89PNG\r\n",
    b"GIF8",
    b"\xff\xd8\xff\xe0",
    b"\xff\xd8\xff\xe1",
    b"\xff\xd8\xff\xdb",
)


def check_open(manifest: Manifest, campaign: str, submission: str, content: bytes) -> None:
    """PrivetError where this cannot be an open record of the campaign."""
    if content.startswith(PICTURE_FILES):
        raise PrivetError(
            "This is a raw picture. Only what the release lets through is taken: use  privet share."
        )
    check_envelope(manifest, campaign, submission, unpack(content))


def check_envelope(manifest: Manifest, campaign: str, submission: str, envelope: Envelope) -> None:
    """Everything that can be seen in a readable record; the owner asks the same of a sealed one,
    after opening it."""
    if envelope.campaign != campaign or envelope.submission != submission:
        raise PrivetError("The record was made for another campaign or submission.")
    if envelope.release != manifest.release.card:
        raise PrivetError("The record was made by another release than the campaign's.")
    if envelope.consent != manifest.consent_hash:
        raise PrivetError("The record was not made with the consent that the campaign asks for.")
    check_labels(manifest, envelope.labels)
    check_record(manifest.expect, envelope.z)


def check_sealed(manifest: Manifest, content: bytes) -> None:
    """A sealed record cannot be looked into. Its length can be right, and its bytes must look like
    noise."""
    if content.startswith((MAGIC, *PICTURE_FILES)):
        raise PrivetError(
            "This is not sealed. Only records sealed with the campaign's key are taken: "
            "use  privet share."
        )
    header = len(content) - OVERHEAD
    if None in manifest.expect.shape:
        fits = header >= HEADER_STEP
    else:
        header -= 4 * manifest.expect.max_numbers
        fits = header > 0 and header % HEADER_STEP == 0
    if not fits or len(content) > max_bytes(manifest.expect, sealed=True):
        raise PrivetError("This is not as long as a sealed record of this campaign.")
    counts = np.bincount(np.frombuffer(content, np.uint8), minlength=256)
    # Pearson's statistic of 256 equally likely bytes; the mean of so many bits is near a normal law
    # in its cube root (Wilson, Hilferty).
    statistic = float(((counts - len(content) / 256) ** 2).sum() * 256 / len(content))
    if (statistic / 255) ** (1 / 3) > 1 - 2 / (9 * 255) + 8 * (2 / (9 * 255)) ** 0.5:
        raise PrivetError("This is not sealed: its bytes do not look like noise.")


def check_labels(manifest: Manifest, labels: Labels) -> None:
    """PrivetError where an answer was not asked for, is none of the choices, or is absent."""
    if hidden := private_among(labels, manifest.private):
        raise PrivetError(f"'{hidden}' is what the release hides; it cannot be sent beside it.")
    asked = {label.name: label for label in manifest.labels}
    for name, value in labels.items():
        if name not in asked:
            raise PrivetError(f"The campaign does not ask for '{name[:64]}'.")
        choices = asked[name].values
        if value is not None and not (
            value in choices if choices else isinstance(value, int | float)
        ):
            raise PrivetError(
                f"The answer to '{name}' is not one of those that the campaign takes."
            )
    for name, label in asked.items():
        if label.required and labels.get(name) is None:
            raise PrivetError(f"The campaign needs an answer to '{name}'.")


def check_record(expect: ExpectedRecord, z: Array) -> None:
    """PrivetError where these numbers cannot have come out of the release."""
    if not _has_shape(expect, z):
        raise PrivetError(
            f"The release gives records of shape {expect.shape}, not {list(z.shape)}."
        )
    if not np.isfinite(z).all():
        raise PrivetError("A released record holds finite numbers only.")
    values = z.astype(np.float64).ravel()
    low, high = value_range(expect, values.size)
    if values.min() < low or values.max() > high:
        raise PrivetError(
            f"The release gives numbers between {low:.4g} and {high:.4g}, and this record goes "
            "beyond them."
        )
    if expect.step is not None and np.any(values != np.round(values / expect.step) * expect.step):
        raise PrivetError(
            "The release rounds to a grid, and this record is not on it: it was not made by the "
            "release."
        )
    if (step := picture_step(values, expect.step or 0.0)) is not None:
        raise PrivetError(
            f"All numbers are multiples of {step:.4g}, as in a raw picture: this was not made by "
            "the release."
        )
    if (levels := pixel_levels(z.astype(np.float64), expect.step or 0.0)) is not None:
        raise PrivetError(
            f"The numbers take only {levels} different values, evenly apart, as the bytes of a "
            "picture do: this was not made by the release."
        )
    law, scale = expect.law, expect.scale
    if law and scale and noise_probability(law, values / scale) < FALSE_ALARM:
        raise PrivetError(
            "The record varies less than the release's noise alone would: it was made without the "
            "noise."
        )


def _has_shape(expect: ExpectedRecord, z: Array) -> bool:
    return len(z.shape) == len(expect.shape) and all(
        size <= expect.longest if wanted is None else size == wanted
        for size, wanted in zip(z.shape, expect.shape, strict=True)
    )


def value_range(expect: ExpectedRecord, size: int) -> tuple[float, float]:
    """Between which values a record of so many numbers lies, but for one in a billion."""
    reach = 0.0
    if expect.law is not None and expect.scale is not None:
        tail = FALSE_ALARM / (2 * size)
        quantile = -special.ndtri(tail) if expect.law == "gaussian" else -np.log(2 * tail)
        reach = expect.scale * float(quantile) + (expect.step or 0.0)
    return (
        -LARGEST_VALUE if expect.low is None else expect.low - reach,
        LARGEST_VALUE if expect.high is None else expect.high + reach,
    )


def noise_probability(law: str, values: Array) -> float:
    """How likely at most a record of noise of scale 1, whatever its code, varies as little as these
    values do."""
    if law == "laplace":
        return float(special.gammainc(values.size, np.abs(values).sum()))
    half = values.size // 2
    if half == 0:
        return 1.0
    pairs = values[: 2 * half].reshape(half, 2)
    return float(special.gammainc(half / 2, ((pairs[:, 0] - pairs[:, 1]) ** 2).sum() / 4))


def picture_step(values: Array, grid: float = 0.0) -> float | None:
    """The usual step of pictures that all values are multiples of, counted from 0 or from -1; only
    steps much coarser than the release's own `grid`."""
    if values.size < PICTURE_NUMBERS:
        return None
    for step in (step for step in PICTURE_STEPS if step > 16 * grid):
        for start in (0.0, -1.0):
            multiples = (values - start) / step
            off = np.abs(multiples - np.round(multiples))
            if np.abs(multiples).max() < 2**20 and np.all(off < 2e-3):
                return step
    return None


def pixel_levels(z: Array, grid: float = 0.0) -> int | None:
    """How many values the numbers of a record take, where they are evenly spaced and at most 256 in
    every channel, as bytes are that were scaled and shifted; None where they are not.

    A picture that was standardised channel by channel has steps that no list of usual ones has. Of
    numbers that are not spaced evenly, twelve different ones lie on such a scale by chance once in
    10**15. The steps of the release's own `grid` are finer.
    """
    counts: list[int] = []
    for channels in _channels(z):
        counts = []
        for channel in channels:
            levels = _levels(np.unique(channel), grid) if channel.size >= LEVEL_NUMBERS else None
            if levels is None:
                break
            counts.append(levels)
        else:
            return max(counts)
    return None


def _channels(z: Array) -> list[list[Array]]:
    """A record as one channel, and as three or four, where it may be a picture of so many."""
    ways = [[z.ravel()]]
    if z.ndim >= 2 and z.shape[0] <= 4:
        ways.append([part.ravel() for part in z])
    if z.ndim >= 2 and z.shape[-1] <= 4:
        ways.append([z[..., k].ravel() for k in range(z.shape[-1])])
    if z.ndim == 1 and z.size % 3 == 0:
        ways += [list(z.reshape(3, -1)), list(z.reshape(-1, 3).T)]
    return ways


def _levels(values: Array, grid: float) -> int | None:
    """How many steps apart different values lie, in order, where all are evenly spaced."""
    if not LEVELS[0] <= len(values) <= LEVELS[1]:
        return None
    reach, least = float(values[-1] - values[0]), float(np.diff(values).min())
    for part in (1, 2, 3):  # no two neighbouring bytes may occur
        steps = round(reach * part / least)
        if not 0 < steps < LEVELS[1] or reach / steps <= 16 * grid:
            continue
        places = (values - values[0]) * (steps / reach)
        if np.all(np.abs(places - np.round(places)) < 0.02):
            return len(values)
    return None
