"""Work on chunks of documents in several processes."""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import chain, islice
from multiprocessing import get_context


def default_workers() -> int:
    """The number of processes: on Linux, where they are forked, one for each core that this one may use, which on a
    shared machine are often not all; elsewhere one."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def in_processes(function: Callable, chunks: Iterator, workers: int) -> Iterator:
    """Results of `function` in order. A single chunk is not worth a process."""
    first = list(islice(chunks, 2))
    if workers == 1 or len(first) < 2:
        yield from map(function, chain(first, chunks))
        return
    # forked: the workers only handle text, and a script need not guard its main module
    watch = {"initializer": _end_with, "initargs": (os.getpid(),)}
    with ProcessPoolExecutor(workers, mp_context=get_context("fork"), **watch) as pool:
        yield from results_in_order(pool, function, chain(first, chunks), 2 * workers)


def results_in_order(pool: Executor, function: Callable, items: Iterable, ahead: int) -> Iterator:
    """Yield `function` of every item. A pool is given `ahead` items before the first result is taken, then one for
    each."""
    items, running = iter(items), deque()
    try:
        for item in islice(items, ahead):
            running.append(pool.submit(function, item))
        while running:
            yield running.popleft().result()
            running.extend(pool.submit(function, item) for item in islice(items, 1))
    finally:
        for left in running:  # after an error nothing goes on behind its back
            left.cancel() or left.exception()


def _end_with(parent: int) -> None:
    """End this process when `parent` has ended: a worker whose parent was killed would wait for work for ever."""

    def watch():
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
