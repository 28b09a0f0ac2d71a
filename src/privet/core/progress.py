"""A progress bar with the figures that matter, on anything that may take more than two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from privet.core.terminal import PlainConsole

# Everything that is not a result goes to standard error.
console = PlainConsole(stderr=True)

# tick(done, text="") - how many are done in all, and what to show beside the bar.
Tick = Callable[..., None]

_PLAIN_EVERY = 15.0


@contextmanager
def bar(title: str, total: int, show: bool = True) -> Iterator[Tick]:
    """A bar for a person at a terminal; a line now and then where the output is a file; nothing if
    not `show`."""
    if not show:
        yield lambda done, text="": None
    elif console.is_terminal:
        title_column, figures = (
            TextColumn("{task.description:<22}"),
            TextColumn("{task.fields[text]}"),
        )
        columns = (
            title_column,
            BarColumn(24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            figures,
        )
        with Progress(*columns, console=console) as progress:
            task = progress.add_task(title, total=total, text="")
            yield lambda done, text="": progress.update(task, completed=done, text=text)
    else:
        started = last = time.monotonic()

        def line(done: int, text: str = "") -> None:
            nonlocal last
            now = time.monotonic()
            if now - last > _PLAIN_EVERY or (done >= total and text):
                last = now
                left = time_left(now - started, done, total)
                console.print(
                    f"{title}: {done}/{total}{left} {text}", highlight=False, soft_wrap=True
                )

        yield line


def time_left(seconds: float, done: int, total: int) -> str:
    """How long the rest will take at this pace, to follow what is done; empty where nobody knows.

    >>> time_left(60, 1, 3), time_left(600, 2, 12), time_left(9, 0, 3), time_left(9, 3, 3)
    (', 2 min left', ', 50 min left', '', '')
    """
    if not 0 < done < total:
        return ""
    left = seconds * (total - done) / done
    if left < 90:
        return f", {max(round(left), 1)} s left"
    return f", {round(left / 60)} min left" if left < 5400 else f", {left / 3600:.1f} h left"


def counted(tick: Tick) -> Callable[[str], Callable[[float], None]]:
    """Gives out a hundred steps of a bar at a time, to be told the share that is done; several
    hundreds may be under way at once."""
    shares: list[float] = []

    def count(text: str) -> Callable[[float], None]:
        place = len(shares)
        shares.append(0.0)

        def say(share: float) -> None:
            shares[place] = share
            tick(round(100 * sum(shares)), text)

        return say

    return count
