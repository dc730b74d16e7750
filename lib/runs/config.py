"""How a model is trained: batches, optimizer and rate, what is kept and how often."""

import math
from dataclasses import dataclass

from lib.system.errors import InputError


@dataclass(frozen=True)
class TrainConfig:
    """The paper's training (appendix A.2), and what it leaves to the machine."""

    batch_size: int = 16  # documents
    batch_tokens: int | None = None  # at most so many source words in a batch, padding counted in
    accumulate: int = 1  # parts in which a batch is computed, to save memory
    epochs: int = 15
    steps: int | None = None  # in place of epochs
    optimizer: str = "adam"  # or "sgd", plain, or "adagrad"
    learning_rate: float = 2e-4
    warmup: int | None = None  # steps; given, the rate is learning_rate * min(step^-1/2, step * warmup^-3/2)
    cosine: int | None = None  # steps; given, the rate rises in a line for `warmup` steps and falls in a cosine to 0
    halve_after: int | None = None  # epochs; given, the rate is halved after each further epoch
    anneal: float | None = None  # the rate is divided by it after each validation with a higher loss than the last
    beta2: float = 0.999  # Adam's
    epsilon: float = 1e-8  # Adam's
    weight_decay: float = 0.0  # the L2 term
    max_norm: float | None = 2.0  # of the gradient; None: as it is
    seed: int = 0
    validate_every: int | None = None  # steps; None: each epoch
    save_every: int = 500  # steps; also after each validation
    keep_best: int = 1  # checkpoints with the least validation loss; several can be averaged
    log_every: int = 10  # steps
    bf16: bool = False  # products in bfloat16: on a GPU, or for transformers on a CPU that has them

    def __post_init__(self):
        for name in (
            "batch_size",
            "batch_tokens",
            "accumulate",
            "epochs",
            "steps",
            "warmup",
            "cosine",
            "halve_after",
            "validate_every",
            "save_every",
            "log_every",
            "keep_best",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, not {value}")
        if self.anneal is not None and self.anneal < 1:
            raise InputError(f"anneal must be at least 1, not {self.anneal}")
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed must be at least 0 and below 2^63, not {self.seed}")
        for name in ("learning_rate", "epsilon", "max_norm"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"{name} must be a number above 0, not {value}")
        if not 0 <= self.weight_decay < float("inf"):
            raise InputError(f"weight_decay must be a number of at least 0, not {self.weight_decay}")
        if not 0 <= self.beta2 < 1:
            raise InputError(f"beta2 must be in [0, 1), not {self.beta2}")
        if self.cosine is not None and self.warmup is None:
            raise InputError("cosine needs a warmup before it")
        if self.optimizer not in ("adam", "sgd", "adagrad"):
            raise InputError(f"optimizer must be 'adam', 'sgd' or 'adagrad', not {self.optimizer!r}")

    def rate(self, step: int, epoch: float = 0.0, rises: int = 0) -> float:
        """The learning rate of a step, counted from 1, in an epoch, counted from 0, after so many rises of the
        validation loss (with a warm-up: Vaswani et al. 2017, equation 3)."""
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
