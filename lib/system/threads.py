"""Threads for work that comes in parts, such as the documents of a batch.

PyTorch's own threads share out every small operation, and wait for each other at its end without letting go of their
cores: beside one other busy process that is a hundred times slower. Here a thread has a part of its own from
beginning to end, and waits asleep.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import islice
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="lib")


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Use so many of PyTorch's threads for what this thread asks of it."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def threads_on(device: torch.device) -> int:
    """Threads that parts of the work may be given on a device: PyTorch's number on a CPU, elsewhere one."""
    return torch.get_num_threads() if device.type == "cpu" else 1


def in_threads(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """`function` of every item, in order, computed by `threads` threads that PyTorch gives one thread each.

    At most `threads` items are asked for before their results are taken, so that few are in memory at once.
    """
    if threads == 1:
        yield from map(function, items)
        return

    def alone(item: Item) -> Result:
        with torch_threads(1):
            return function(item)

    items, running = iter(items), deque()
    try:
        for item in islice(items, threads):
            running.append(_pool(threads).submit(alone, item))
        while running:
            yield running.popleft().result()
            running.extend(_pool(threads).submit(alone, item) for item in islice(items, 1))
    finally:
        for left in running:  # after an error nothing goes on behind its back
            left.cancel() or left.exception()
