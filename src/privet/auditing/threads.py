"""Two threads: work done side by side, with half of the processor's cores for each. Small matrices
do not keep all of them busy, and what a GPU does keeps hardly any.

torch has one generator of random numbers for the whole process. Work that draws from it stays on
the first thread, one piece after the other, so that the same seed gives the same numbers however
the two happen to run; the second takes the rest, and the first helps once its own is done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

Work = Callable[[], None]


def run_in_two_threads(first: Sequence[Work], others: Sequence[Work]) -> None:
    """Do all the work; where torch has a single thread, one after the other, in the order given.

    Parameters:
        first: Work for the first thread, done in this order.
        others: Work that may run at any time, the longest first.
    """
    threads = torch.get_num_threads()
    if threads < 2 or not others:
        for work in (*first, *others):
            work()
        return
    waiting = deque(others)

    def run(own: Sequence[Work]) -> None:
        # The number of OpenMP's threads is each thread's own, that of other libraries is the
        # process's.
        with threadpool_limits(threads // 2, user_api="openmp"):
            torch.set_num_threads(threads // 2)
            try:
                for work in own:
                    work()
                while (more := _next(waiting)) is not None:
                    more()
            except BaseException:
                waiting.clear()  # the other thread is not to begin anything new
                raise

    try:
        with threadpool_limits(threads // 2, user_api="blas"), ThreadPoolExecutor(1) as pool:
            second = pool.submit(run, ())
            run(first)
            second.result()
    finally:
        torch.set_num_threads(threads)


@contextmanager
def one_thread(only: bool = True) -> Iterator[None]:
    """torch on one thread, where `only`: for small networks, whose steps are too short to be
    shared. On a busy machine each step would wait for the other thread to get its turn."""
    threads = torch.get_num_threads()
    if only:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _next(waiting: deque[Work]) -> Work | None:
    with suppress(IndexError):
        return waiting.popleft()
    return None
