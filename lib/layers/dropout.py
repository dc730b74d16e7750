"""Dropout whose random numbers are cheap on a CPU, and a thread's own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

_this_thread = threading.local()


@contextmanager
def random_numbers(*seeds: int) -> Iterator[None]:
    """On a CPU, dropout in this thread draws what `seeds` determine, whatever other threads draw."""
    _this_thread.generator = torch.Generator().manual_seed(seed_of(*seeds))
    try:
        yield
    finally:
        _this_thread.generator = None


def seed_of(*seeds: int) -> int:
    """One seed of several numbers."""
    (seed,) = np.random.SeedSequence(seeds).generate_state(1, np.uint64)
    return int(seed) >> 1


class Dropout(nn.Dropout):
    """torch.nn.Dropout, whose random numbers take half of a small model's training step on a CPU: there, one draw of
    64 bits decides for four numbers. The probability is p to the nearest 1/65,536."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.p or x.device.type != "cpu":
            return super().forward(x)
        dropped, generator = round(self.p * 2**16), getattr(_this_thread, "generator", None)
        draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None, generator=generator)
        keep = draws.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - 2**15
        return x * keep.to(x.dtype).mul_(2**16 / (2**16 - dropped))
