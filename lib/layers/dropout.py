"""Dropout whose random numbers are cheap on a CPU, and a thread's own; there it is one pass, and so is dropout of the
weights of attention together with their softmax."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from lib.layers.kernels import arrays, compiled, drop, dropped_softmax, dropped_softmax_backward, for_each_document

DRAWS = 2**16  # values of 16 bits

_this_thread = threading.local()


@contextmanager
def random_numbers(*seeds: int) -> Iterator[None]:
    """Draw, for dropout on a CPU in this thread, what `seeds` determine, whatever other threads draw."""
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
    """torch.nn.Dropout, which takes half of a small model's training step on a CPU: there, one draw of 64 bits
    decides for four numbers, in a compiled loop. The probability is p to the nearest 1/65,536; what that makes 1 is
    left to torch."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.p or self._dropped == DRAWS or not _compiled(x):
            return super().forward(x)
        return _Dropped.apply(x, *self._draws(x))

    def softmax(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Dropout, in training on a CPU, of the softmax of scores [B, h, m, n] where `mask` is true, whose shape can
        be expanded to theirs. What is between is in float32 for scores in bfloat16."""
        if self._dropped == DRAWS:
            return super().forward(scores.masked_fill(~mask, -torch.inf).softmax(-1))
        seen = mask[(None,) * (4 - mask.dim())].to(torch.int16)
        seen = seen.expand(*seen.shape[:3], scores.shape[3]).contiguous()
        return _DroppedSoftmax.apply(scores, seen, *self._draws(scores))

    def _draws(self, x: Tensor) -> tuple[Tensor, int]:
        """16 random bits for each number, and how many of the `DRAWS` that they can be drop it."""
        generator = getattr(_this_thread, "generator", None)
        draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None, generator=generator)
        return draws.view(torch.int16)[: x.numel()].view(x.shape), self._dropped

    @property
    def _dropped(self) -> int:
        """The number of the `DRAWS` that drop a number."""
        return round(self.p * DRAWS)


def _compiled(x: Tensor) -> bool:
    return compiled(x) or (x.device.type == "cpu" and x.dtype == torch.bfloat16)


def _rule(dropped: int, dtype: torch.dtype) -> tuple:
    """The least draw that keeps a number, and the factor of what is kept, which keeps the mean."""
    wide = np.float64 if dtype == torch.float64 else np.float32
    return np.int16(dropped - DRAWS // 2), wide(DRAWS / (DRAWS - dropped))


class _Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, draws, dropped):
        ctx.save_for_backward(draws)
        ctx.dropped = dropped
        return _drop(x, draws, dropped)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_out):
        (draws,) = ctx.saved_tensors
        return _drop(d_out, draws, ctx.dropped), None, None


def _drop(x: Tensor, draws: Tensor, dropped: int) -> Tensor:
    out = x.new_empty(x.shape)
    values, drawn, made = (array.reshape(-1) for array in arrays(x, draws, out))
    drop(values, drawn, *_rule(dropped, x.dtype), made)
    return out if x.is_contiguous() else torch.empty_like(x).copy_(out)


class _DroppedSoftmax(torch.autograd.Function):
    """Softmax and dropout that save the scores; documents are shared out among threads."""

    @staticmethod
    def forward(ctx, scores, seen, draws, dropped):
        weights, ctx.dropped = scores.new_empty(scores.shape), dropped
        wide = torch.promote_types(scores.dtype, torch.float32)
        tops, sums = scores.new_empty(2, *scores.shape[:3], dtype=wide)
        ctx.save_for_backward(scores, seen, draws, tops, sums)
        s, see, drawn, w, t, z = arrays(scores, seen, draws, weights, tops, sums)
        rule = _rule(dropped, scores.dtype)

        def of_document(b: int, n: int) -> None:
            dropped_softmax(s[b], see[b % len(see)], drawn[b], *rule, w[b], t[b], z[b])

        for_each_document(of_document, [scores.shape[3]] * len(s))
        return weights

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_weights):
        scores, *_ = ctx.saved_tensors
        d_scores = scores.new_empty(scores.shape)
        s, see, drawn, t, z, dw, ds = arrays(*ctx.saved_tensors, d_weights, d_scores)
        rule = _rule(ctx.dropped, scores.dtype)

        def of_document(b: int, n: int) -> None:
            dropped_softmax_backward(s[b], see[b % len(see)], drawn[b], *rule, t[b], z[b], dw[b], ds[b])

        for_each_document(of_document, [scores.shape[3]] * len(s))
        return d_scores, None, None, None
