"""Documents in batches: of like length for training, in their own order for everything else."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.system.errors import InputError


class BucketSampler:
    """Batches of documents of like length, shuffled by seed and epoch; the same for every process.

    Documents are shuffled, sorted by length within pools of `pool` batches, cut into batches, and the batches
    shuffled. What does not fill a batch is left out of that epoch, other documents in each, so that every step has
    the same number of documents; a corpus smaller than one batch is one batch.

    With a budget of `tokens`, a batch has as many documents as fit into it when all are padded to the longest, at
    most `batch_size` and at least `least` (processes that share it).
    """

    def __init__(
        self, lengths, batch_size: int, seed: int, pool: int = 50, tokens: int | None = None, least: int = 1
    ):
        self.lengths, self.seed, self.pool = np.asarray(lengths), seed, pool
        if not len(self.lengths):
            raise InputError("there is no document to train on")
        self.batch_size, self.tokens, self.least = min(batch_size, len(self.lengths)), tokens, least
        if tokens and tokens < least * self.lengths.max():
            raise InputError(
                f"{tokens} tokens do not hold {least} x the longest document, {self.lengths.max()} words"
            )
        self.epoch = lru_cache(1)(self._make_epoch)  # steps are asked for one after the other
        self._firsts = [0]  # the first step of each epoch, as far as they are known

    def batches_in(self, epochs: int) -> int:
        """Count the batches in the first `epochs` epochs."""
        for number in range(len(self._firsts) - 1, epochs):
            size = len(self.epoch(number)) if self.tokens else len(self.lengths) // self.batch_size
            self._firsts.append(self._firsts[-1] + size)
        return self._firsts[epochs]

    def _make_epoch(self, epoch: int) -> list[np.ndarray]:
        random = np.random.default_rng([self.seed, epoch])
        order = random.permutation(len(self.lengths))
        if self.tokens is None:  # before they are sorted: no document is left out for its length
            order = order[: len(order) - len(order) % self.batch_size]
        size = self.batch_size * self.pool
        pools = [order[i : i + size] for i in range(0, len(order), size)]
        ranked = np.concatenate([p[np.argsort(self.lengths[p], kind="stable")] for p in pools])
        parts = cut(ranked.tolist(), self.lengths.__getitem__, self.batch_size, self.tokens)
        batches = [np.array(part) for part in parts if not self.tokens or len(part) >= self.least]
        return [batches[i] for i in random.permutation(len(batches))]

    def batch(self, step: int) -> np.ndarray:
        """Indices of the documents of training step `step`, counted from 0 over all epochs."""
        while step >= self._firsts[-1]:
            self.batches_in(len(self._firsts))
        number = bisect_right(self._firsts, step) - 1
        return self.epoch(number)[step - self._firsts[number]]


def in_order(
    split: Sequence[EncodedDocument], batch_size: int, vocab_size: int, tokens: int | None = None
) -> Iterator[Batch]:
    """Batches of a split in its own order, for validation and generation.

    tokens: at most so many source words in a batch, padding counted in; a longer document is alone.
    """
    for part in cut(split, lambda document: len(document.source), batch_size, tokens):
        yield make_batch(part, vocab_size)


def cut(items: Iterable, length: Callable[[Any], int], size: int, tokens: int | None) -> Iterator[list]:
    """Cut items, in their order, into parts of at most `size`, and of at most `tokens` when all are padded."""
    part, longest = [], 0
    for item in items:
        longest = max(longest, length(item))
        over = tokens is not None and (len(part) + 1) * longest > tokens
        if part and (over or len(part) == size):
            yield part
            part, longest = [], length(item)
        part.append(item)
    if part:
        yield part
