"""Work on every core with the results in the order they were asked for, a few of them ahead of the
reader and no more.

Threads are enough where the work is done outside the interpreter's lock, as Pillow, numpy, pyarrow
and onnxruntime do theirs.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int, ahead: int
) -> Iterator[Result]:
    """work(item) of each item. At most `ahead` + 1 are worked on or waiting to be taken; `items` is
    read by the caller's thread.

    >>> list(in_order(lambda n: n * n, range(5), workers=2, ahead=2))
    [0, 1, 4, 9, 16]
    """
    flying: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in items:
                flying.append(pool.submit(work, item))
                if len(flying) > ahead:
                    yield flying.popleft().result()
            while flying:
                yield flying.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
