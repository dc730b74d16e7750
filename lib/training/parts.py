"""Updates in parts: which documents an update has, and where their gradients are computed.

The documents of an update are shared out among processes. A process computes its documents in
parts, so that each part fits into memory, and on a CPU the documents of a part are shared out among
threads. None of this changes the update: its gradient is the weighted sum of the gradients of all
parts.
"""

import math
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lib.data.batch import Batch, BucketSampler, make_batch
from lib.data.prepared import PreparedCorpus
from lib.layers.dropout import random_numbers
from lib.system.devices import Process, computes_bf16
from lib.system.errors import RunError
from lib.system.threads import in_threads, threads_on, torch_threads
from lib.training.config import TrainConfig
from lib.training.losses import FiniteCheck, sum_terms

# Threads are worth their overhead from this many parameters times source words. Below it, most of
# the time is Python.
WORTH_SHARING = 2e9
# Maximum number of source words, with padding, in a part on a CPU: what the hierarchical
# transformer's authors use.
PART_WORDS = 10_500
# Share of a GPU's memory that a part may fill. The rest is for fragments and for longer documents
# of later epochs.
FILLED = 0.8

Terms = dict[str, Tensor]  # "loss" and what it is the sum of


@dataclass(frozen=True)
class Part:
    """Documents of an update that one process computes at once."""

    documents: np.ndarray  # their numbers in the training split
    share: float  # of the update's loss; the processes' gradients are averaged
    batch: Batch


class Updates:
    """The updates of a training run, for one of its processes."""

    def __init__(
        self,
        model: nn.Module,
        corpus: PreparedCorpus,
        config: TrainConfig,
        process: Process,
        device: torch.device,
    ):
        self.model = model
        self.config = config
        self.process = process
        self.device = device
        self.documents = corpus["train"]
        self.vocab_size = len(corpus.vocabulary)
        self.finite = FiniteCheck()
        self.threads = threads_on(device) if process.world == 1 else 1
        self.parameters = sum(p.numel() for p in model.parameters())

        self.by_words = config.loss_mean == "words"
        if self.by_words and not getattr(model, "by_words", False):
            raise RunError(
                f"the loss of {type(model).__name__} has no mean over words: loss_mean must be "
                "documents"
            )

        lengths = self.documents.source_lengths
        self.sampler = BucketSampler(
            lengths,
            config.batch_size,
            config.seed,
            pool=config.pool,
            tokens=config.batch_tokens,
            least=process.world,
        )
        if self.sampler.batch_size < process.world:
            size = self.sampler.batch_size
            raise RunError(f"{process.world} processes cannot share a batch of {size} documents")
        longest = self.sampler.batch_size * int(lengths.max())
        words = min(config.batch_tokens or sys.maxsize, longest)
        self.count = config.accumulate or math.ceil(words / PART_WORDS)  # parts of an update

    # ----------------------------------------------------------------------- documents of an update

    def make(self, step: int) -> list[Part]:
        """Make the parts of an update that this process computes; `step` is counted from 0."""
        documents = self.sampler.batch(step)
        size = self._weight(documents)
        parts = []
        for own in split_documents(documents, self.count, self.process):
            # Gradients are averaged over the processes, hence the factor `world`.
            share = self.process.world * self._weight(own) / size
            parts.append(Part(own, share, self._batch(own)))
        return parts

    def _weight(self, documents: np.ndarray) -> int:
        """Return the weight of documents in the loss: their number, or their target words."""
        if self.by_words:
            return int(self.documents.target_lengths[documents].sum())
        return len(documents)

    def _batch(self, documents: np.ndarray) -> Batch:
        batch = make_batch([self.documents[i] for i in documents], self.vocab_size)
        batch = replace(batch, by_words=self.by_words)
        if self.device.type != "cuda":
            return batch
        with torch.cuda.device(self.device):
            return batch.pinned()

    # ------------------------------------------------------------------------------------ gradients

    def compute(self, model: Any, parts: Sequence[Part], step: int) -> Terms:
        """Add the gradients of all parts of an update; return the update's loss terms."""
        terms = []
        for part in parts:
            # Processes exchange gradients once, with the last part.
            waits = self.process.world > 1 and part is not parts[-1]
            with model.no_sync() if waits else nullcontext():
                terms.append(self.backward(model, part, step))
        return sum_terms(terms)

    def backward(self, model: nn.Module, part: Part, step: int) -> Terms:
        """Add the gradients of one part; return its loss terms, weighted by its share."""
        words = int(self.documents.source_lengths[part.documents].sum())
        threads = min(self.threads, len(part.documents))
        if threads > 1 and self.parameters * words > WORTH_SHARING:
            return self.backward_in_threads(part, threads, step)
        # PyTorch's own threads help only where one document has large operations.
        with torch_threads(self.threads if len(part.documents) == 1 else 1):
            losses = self._losses(model, part.batch, step)
            (losses["loss"] * part.share).backward()
        return {name: value.detach() * part.share for name, value in losses.items()}

    def backward_in_threads(self, part: Part, threads: int, step: int) -> Terms:
        """Do what `backward` does, with the documents shared out among threads."""
        parameters = list(self.model.parameters())
        shares = [part.documents[i::threads] for i in range(threads)]

        def gradients(number: int) -> tuple[Sequence[Tensor | None], Terms]:
            documents = shares[number]
            weight = part.share * self._weight(documents) / self._weight(part.documents)
            with random_numbers(self.config.seed, step, number):
                losses = self._losses(self.model, self._batch(documents), step)
            found = torch.autograd.grad(losses["loss"] * weight, parameters, allow_unused=True)
            return found, {name: value.detach() * weight for name, value in losses.items()}

        terms = []
        # The sums are taken in the order of the shares, so that they do not depend on which thread
        # is first.
        for found, losses in in_threads(gradients, range(threads), threads):
            for parameter, gradient in zip(parameters, found, strict=True):
                if gradient is None:
                    continue
                if parameter.grad is None:
                    parameter.grad = gradient
                else:
                    parameter.grad.add_(gradient)
            terms.append(losses)
        return sum_terms(terms)

    def _losses(self, model: nn.Module, batch: Batch, step: int) -> Terms:
        batch = batch.to(self.device)
        with self.autocast():
            losses = model(batch)
        self.finite.add(step + 1, batch.ids, losses["loss"])
        return losses

    def autocast(self) -> Any:
        """Compute products in bfloat16 where the configuration asks for it and the device has
        them."""
        if self.config.bf16 and computes_bf16(self.device):
            return torch.autocast(self.device.type, torch.bfloat16)
        return nullcontext()

    # --------------------------------------------------------------------------------------- memory

    def fit_memory(self, has_moments: bool) -> None:
        """Use the fewest parts that fit into the GPU's memory, the same number in all processes.

        has_moments: whether the optimizer has made a step, so that its moments are in memory.
        """
        memory = torch.cuda.get_device_properties(self.device).total_memory
        # `split_documents` gives every process the same number of parts.
        parts = math.ceil(self.count / self.process.world) * self.process.world
        peak, rest = self.measure(parts, has_moments)
        self.count = max(self.process.gather([parts_that_fit(peak, rest, parts, memory)]))

    def measure(self, parts: int, has_moments: bool) -> tuple[int, int]:
        """Measure a GPU's peak bytes with the largest of an update's `parts`, and without it.

        The part is of the first epoch's update with the most padded words. Nothing remains of it.
        """
        lengths = self.documents.source_lengths

        def padded(documents: np.ndarray) -> int:
            return len(documents) * int(lengths[documents].max())

        update = max(self.sampler.epoch(0), key=padded)
        largest = max(split_documents(update, parts, self.process), key=padded)
        torch.cuda.reset_peak_memory_stats(self.device)
        rest = torch.cuda.memory_allocated(self.device)
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            self.backward(self.model.train(), Part(largest, 1.0, self._batch(largest)), 0)
        peak = torch.cuda.max_memory_allocated(self.device)
        self.model.zero_grad(set_to_none=True)
        self.finite.clear()
        torch.cuda.empty_cache()
        # Not in memory yet: gradients, and the two moments of an optimizer that has not made a
        # step.
        weights = sum(p.numel() * p.element_size() for p in self.model.parameters())
        later = weights if has_moments else 3 * weights
        return peak + later, rest + later


def split_documents(batch: np.ndarray, parts: int, process: Process) -> list[np.ndarray]:
    """Split a process's documents of a batch into its share of the `parts`."""
    mine = batch[process.rank :: process.world]
    return np.array_split(mine, min(math.ceil(parts / process.world), len(mine)))


def parts_that_fit(peak: int, rest: int, parts: int, memory: int) -> int:
    """Compute the fewest parts of an update that fit into the share `FILLED` of `memory` bytes.

    One of `parts` parts has reached `peak` bytes, `rest` of them without it; a part needs memory in
    proportion to its size. The result is rounded up to a power of two, so that a small change of
    the measurement does not change the run. Where not even the rest fits, the number of parts does
    not change.
    """
    room = FILLED * memory - rest
    least = math.ceil((peak - rest) * parts / room) if room > 0 else parts
    return 1 << (max(1, least) - 1).bit_length()
