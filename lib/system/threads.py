"""Threads for work that comes in parts, such as the documents of a batch.

PyTorch's own threads share out every small operation, and wait for each other at its end without
letting go of their cores: beside one other busy process that is a hundred times slower. Here a
thread has a part of its own from beginning to end, and waits asleep.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, TypeVar

import torch

from lib.system.processes import results_in_order

Item = TypeVar("Item")
Result = TypeVar("Result")


def flush_denormals() -> None:
    """Let this thread, and threads that it starts, take numbers below 1e-38 as 0 from now on
    (float64: 1e-308).

    Gradients that run back through hundreds of words become as small as that, and a processor
    multiplies such numbers a hundred times more slowly than others. Threads that PyTorch has
    already started go on as before; so call this first. Processors without the mode are as before
    too.
    """
    torch.set_flush_denormal(True)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="lib", initializer=flush_denormals)


@contextmanager
def restored(read: Callable[[], Any], write: Callable[[Any], object], value: Any) -> Iterator[None]:
    """Set a global value for a while: `write(value)`, and at the end what `read` gave before."""
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


def torch_threads(count: int) -> AbstractContextManager[None]:
    """Use so many of PyTorch's threads for operations of this thread."""
    return restored(torch.get_num_threads, torch.set_num_threads, count)


def threads_on(device: torch.device) -> int:
    """Threads that parts of the work may be given on a device: PyTorch's number on a CPU, elsewhere
    one."""
    return torch.get_num_threads() if device.type == "cpu" else 1


def batches_ahead(device: torch.device) -> int:
    """Updates whose batches are made in the background (`made_ahead`): none where a CPU computes,
    which has no core to spare for it; otherwise the one that is computed and two more."""
    return 0 if device.type == "cpu" else 3


def in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """`function` of every item, in order, computed by `threads` threads that PyTorch gives one
    thread each.

    At most `threads` items are asked for before their results are taken, so that few are in memory
    at once.
    """
    if threads == 1:
        yield from map(function, items)
        return

    def alone(item: Item) -> Result:
        with torch_threads(1):
            return function(item)

    yield from results_in_order(_pool(threads), alone, items, threads)


def made_ahead(
    function: Callable[[Item], Result], items: Iterable[Item], count: int
) -> Generator[Result, None, None]:
    """`function` of every item, in order, made in the background by one thread, which has `count`
    items at most; 0: made when they are asked for. An error is raised where its result is asked
    for. To be closed when no more is wanted."""
    if not count:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as thread:
        yield from results_in_order(thread, function, items, count)
