"""The configuration of training: batches, optimizer and rate, what is saved and how often."""

import math
from typing import Annotated, Literal

from pydantic import Field

from lib.system.errors import InputError
from lib.system.settings import BelowOne, Count, Positive, Weight, checked


@checked
class TrainConfig:
    """The paper's training (appendix A.2), and what it leaves to the machine."""

    batch_size: Count = 16  # documents
    # batches whose documents are sorted by length before they are made; 1: shuffled documents
    pool: Count = 50
    batch_tokens: Count | None = None  # at most so many source words in a batch, padding counted in
    # parts in which a batch is computed, shared out among processes; None: as few as the device's
    # memory allows
    accumulate: Count | None = 1
    # of an update: of documents' means, or of all its words
    loss_mean: Literal["documents", "words"] = "documents"
    epochs: Count = 15
    steps: Count | None = None  # instead of epochs
    optimizer: Literal["adam", "sgd", "adagrad"] = "adam"
    learning_rate: Positive = 2e-4
    # steps; given, the rate is learning_rate * min(step^-1/2, step * warmup^-3/2)
    warmup: Count | None = None
    # steps; given, the rate rises in a line for `warmup` and falls in a cosine to 0
    cosine: Count | None = None
    halve_after: Count | None = None  # epochs; given, the rate is halved after each further epoch
    # the rate is divided by it when the validation loss has risen
    anneal: Annotated[float, Field(ge=1)] | None = None
    beta2: BelowOne = 0.999  # Adam's
    epsilon: Positive = 1e-8  # Adam's
    weight_decay: Weight = 0.0  # the L2 term
    max_norm: Positive | None = 2.0  # of the gradient; None: as it is
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    validate_every: Count | None = None  # steps; None: each epoch
    save_every: Count = 500  # steps; also after each validation
    keep_best: Count = 1  # checkpoints with the least validation loss; several can be averaged
    log_every: Count = 10  # steps
    # products in bfloat16, on a GPU or a CPU that has them; elsewhere it has no effect
    bf16: bool = False
    # of float32 products; high: TF32 on a GPU
    matmul_precision: Literal["highest", "high", "medium"] = "highest"

    def __post_init__(self):
        if self.cosine is not None and self.warmup is None:
            raise InputError("cosine needs a warmup before it")

    def rate(self, step: int, epoch: float = 0.0, rises: int = 0) -> float:
        """The learning rate of a step, counted from 1, in an epoch, counted from 0, after so many
        rises of the validation loss (with a warm-up: Vaswani et al. 2017, equation 3)."""
        rate = self.learning_rate
        if self.cosine is not None and self.warmup is not None:
            fallen = min(1.0, max(0, step - self.warmup) / self.cosine)
            rate *= min(1.0, step / self.warmup) * (1 + math.cos(math.pi * fallen)) / 2
        elif self.warmup is not None:
            rate *= min(step**-0.5, step * self.warmup**-1.5)
        if self.halve_after is not None:
            rate *= 0.5 ** max(0, int(epoch) - self.halve_after + 1)
        if self.anneal is not None:
            rate /= self.anneal**rises
        return rate
