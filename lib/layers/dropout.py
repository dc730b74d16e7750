"""Dropout whose random numbers are cheap on a CPU, and a thread's own there, so that threads that
share a training step repeat their draws."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lib.layers.cpu_kernels import arrays, compiled, drop

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


DRAWS = 2**16  # values of 16 random bits


class Dropout(nn.Dropout):
    """`torch.nn.Dropout`, on a CPU with draws that cost less; under `random_numbers` they are the
    thread's own.

    PyTorch's draws take a third of a small transformer's update. Here 64 random bits decide for
    four numbers, so that the probability is p to the nearest 1/65,536. It must be below 1 -
    1/65,536; otherwise PyTorch drops all.
    """

    def forward(self, x: Tensor) -> Tensor:
        dropped = round(self.p * DRAWS)  # of the draws, so many drop a number
        if not self.training or dropped in (0, DRAWS) or x.device.type != "cpu":
            return super().forward(x)
        generator = getattr(_this_thread, "generator", None)
        # Four draws of 16 bits are made as one number of 64 bits.
        bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64)
        bits.random_(-(2**63), None, generator=generator)
        draws = bits.view(torch.int16)[: x.numel()].view(x.shape)
        least = dropped - DRAWS // 2  # draws are from -DRAWS / 2 up
        factor = DRAWS / (DRAWS - dropped)  # keeps the mean
        if compiled(x):
            return _Drop.apply(x, draws, least, factor)
        return x * (draws >= least).to(x.dtype).mul_(factor)


class _Drop(torch.autograd.Function):
    """Multiply by `factor` where the draw is at least `least`, in one pass; elsewhere 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, draws: Tensor, least: int, factor: float) -> Tensor:
        ctx.save_for_backward(draws)
        ctx.least = np.int16(least)
        ctx.factor = x.new_tensor(factor).numpy()[()]  # in the type of x
        return _drop(x, draws, ctx.least, ctx.factor)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        (draws,) = ctx.saved_tensors
        return _drop(d_out, draws, ctx.least, ctx.factor), None, None, None


def _drop(x: Tensor, draws: Tensor, least: np.int16, factor: Any) -> Tensor:
    out = x.new_empty(x.shape)
    values, drawn, kept = arrays(x.reshape(-1), draws.reshape(-1), out.view(-1))
    drop(values, drawn, least, factor, kept)
    return out
