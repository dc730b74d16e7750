"""Work on many documents in several processes."""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from itertools import chain, islice
from multiprocessing import get_context

CHUNK = 256  # documents


def default_workers() -> int:
    """The number of processes: on Linux, where they are forked, one for each core that this one may
    use (on a shared machine often not all); elsewhere one."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def in_processes(function: Callable, items: Iterable, workers: int, size: int = CHUNK) -> Iterator:
    """Yield `function` of each item, in order; processes share the items in chunks of `size`. A
    single chunk is not worth a process."""
    chunks = chunked(items, size)
    first = list(islice(chunks, 2))
    if workers == 1 or len(first) < 2:
        yield from map(function, chain.from_iterable(chain(first, chunks)))
        return
    # forked: the workers only handle text, and a script need not guard its main module
    watch = {"initializer": _end_with, "initargs": (os.getpid(),)}
    with ProcessPoolExecutor(workers, mp_context=get_context("fork"), **watch) as pool:
        every = chain(first, chunks)
        results = results_in_order(pool, partial(_of_each, function), every, 2 * workers)
        yield from chain.from_iterable(results)


def chunked(items: Iterable, size: int) -> Iterator[list]:
    items = iter(items)
    while chunk := list(islice(items, size)):
        yield chunk


def _of_each(function: Callable, items: list) -> list:
    return list(map(function, items))


def results_in_order(pool: Executor, function: Callable, items: Iterable, ahead: int) -> Iterator:
    """Yield `function` of every item. A pool is given `ahead` items before the first result is
    taken, then one for each."""
    items = iter(items)
    running = deque()
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
    """End this process when `parent` has ended: a worker whose parent was killed would wait for
    work for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
