"""Floating-point operations of a step of TIPRDC."""

from __future__ import annotations

from collections.abc import Sequence


def layers(
    size: tuple[int, int], width: float, plan: Sequence[tuple[int, int]], channels: int
) -> tuple[list[tuple[int, int, int]], int, int]:
    """(channels in, out, places) of every 3 x 3 convolution of a plan; then the channels and places
    that come out."""
    height, across = size
    found = []
    for count, wide in plan:
        out = max(4, round(wide * width))
        for _ in range(count):
            found.append((channels, out, height * across))
            channels = out
        height, across = height // 2, across // 2
    return found, channels, height * across


def convolutions(
    size: tuple[int, int], width: float = 1.0
) -> dict[str, list[tuple[int, int, int]]]:
    """The convolutions of extractor, estimator's lift, and one pass of a trunk."""
    extractor, channels, _ = layers(size, width, ((2, 64), (2, 128)), 3)
    lift, _, _ = layers(size, width, ((3, 64), (2, 128)), 3)
    trunk, _, _ = layers(
        (size[0] // 4, size[1] // 4), width, ((3, 256), (3, 512), (3, 512)), channels
    )
    return {"extractor": extractor, "lift": lift, "trunk": trunk}


def operations(size: tuple[int, int], width: float = 1.0) -> dict[str, float]:
    """Floating-point operations of one picture in one round, a multiplication and an addition
    counting as two.

    Ours: extractor and lift once, the trunk three times (adversary; estimator on x and z), forwards
    and twice that backwards, but for the first layers, which hand nothing on. The reference: see
    its step.
    """
    made = convolutions(size, width)
    forwards = {
        name: sum(18.0 * a * b * places for a, b, places in found) for name, found in made.items()
    }
    first = sum(18.0 * a * b * places for a, b, places in (made["extractor"][0], made["lift"][0]))
    places, out = (size[0] // 32) * (size[1] // 32), max(4, round(512 * width))
    hidden, second = max(4, round(4096 * width)), max(4, round(512 * width))
    heads = 2.0 * (out * places * hidden + hidden * hidden)
    pair = 2.0 * (2 * out * places * hidden + 2 * hidden * second)
    once = forwards["extractor"] + forwards["lift"] + 3 * forwards["trunk"] + heads + pair
    estimator = 2 * (forwards["lift"] + 2 * forwards["trunk"]) + 2 * pair
    accused = forwards["trunk"] + heads
    reference = 5 * forwards["extractor"] + 6 * accused + 6 * estimator
    return {"ours": 3 * once - first, "reference": reference, "forwards": once}
