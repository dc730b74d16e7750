"""Dropout whose random numbers are a thread's own, so that threads that share a training step repeat their draws."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

_this_thread = threading.local()


@contextmanager
def random_numbers(*seeds: int) -> Iterator[None]:
    """Draw dropout on a CPU in this thread from a generator that `seeds` determine."""
    _this_thread.generator = torch.Generator().manual_seed(seed_of(*seeds))
    try:
        yield
    finally:
        _this_thread.generator = None


def seed_of(*seeds: int) -> int:
    """Combine several numbers into one seed."""
    (seed,) = np.random.SeedSequence(seeds).generate_state(1, np.uint64)
    return int(seed) >> 1


class Dropout(nn.Dropout):
    """`torch.nn.Dropout`; under `random_numbers` its draws are those of the thread's generator."""

    def forward(self, x: Tensor) -> Tensor:
        generator = getattr(_this_thread, "generator", None)
        if generator is None or not self.training or self.p in (0, 1) or x.device.type != "cpu":
            return super().forward(x)
        return x * torch.empty_like(x).bernoulli_(1 - self.p, generator=generator).div_(1 - self.p)
