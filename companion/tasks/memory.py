"""When a memory matters: planted sentences, with all paths from the text to the summary open, or
only the memory."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from companion.tasks.synthetic import planted_at, planted_sentences
from companion.tasks.task import Task, learn
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.evaluation.interventions import log_probs
from lib.layers.pointer import PointerGenerator
from lib.models.changes import NOTHING
from lib.models.hred import HREDState
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig, Mem2MemState, memory_sentences
from lib.models.memory_changes import MEMORY

VOCABULARY = 100
LOSSES = {  # lambda_comp, lambda_read
    "neither": (0.0, 0.0),
    "the paper's": (1e-4, 1e-2),
    "both": (0.01, 0.1),
    "no L(comp)": (0.0, 0.1),
    "no L(read)": (0.01, 0.0),
}
# of the grid
COMP_WEIGHTS, READ_WEIGHTS = (0.0, 1e-4, 1e-3, 0.01, 0.1), (0.0, 1e-3, 0.01, 0.1, 1.0)
GATES = {"plain gate": {}, "gate +3": {"gate_bias": 3.0}, "never written": {"write": False}}


# by its name in rows, each pair of weights: the name in `LOSSES`, or the weights themselves
NAMES = {pair: name for name, pair in LOSSES.items()}
GRID = {
    NAMES.get(pair, "{:g}, {:g}".format(*pair)): pair
    for pair in product(COMP_WEIGHTS, READ_WEIGHTS)
}


class MemoryAlone(Mem2Mem):
    """Mem2Mem whose memory is the only path from the text to the decoder: the decoder's first state
    and all contexts are zeros, and no word is copied. Words and sentences are still attended to,
    for the read loss (11)."""

    def __init__(self, config: Mem2MemConfig):
        super().__init__(config)
        c = config
        self.pointer = PointerGenerator(2 * c.hidden, None, c.bottleneck, c.vocab_size)

    def encode(self, batch: Batch) -> Mem2MemState:
        state = super().encode(batch)
        return state.replace(hidden=torch.zeros_like(state.hidden))

    def _attend(self, query: Tensor, state: HREDState) -> tuple[Tensor, ...]:
        *weights, context, coverage = super()._attend(query, state)
        return *weights, torch.zeros_like(context), coverage


STEPS: dict[Any, int] = {Mem2Mem: 250, MemoryAlone: 600}


def learn_planted(
    kind: Callable[[Mem2MemConfig], Mem2Mem], losses: str, gate: str, seed: int, steps: int = 0
) -> Mem2Mem:
    """Train a small model of a kind with weights of `GRID`, for as many steps as `STEPS` has, or
    for `steps`."""
    torch.manual_seed(seed)
    comp, read = GRID[losses]
    config = Mem2MemConfig(
        VOCABULARY,
        embedding=64,
        hidden=64,
        bottleneck=32,
        slots=4,
        compression=64,
        lambda_comp=comp,
        lambda_read=read,
        **GATES[gate],
    )
    texts = (
        planted_sentences(16, 1000 + step, vocab_size=VOCABULARY)
        for step in range(steps or STEPS[kind])
    )
    return learn(
        kind(config), (make_batch(of_step, VOCABULARY) for of_step in texts), learning_rate=4e-3
    )


def unseen_documents() -> list[EncodedDocument]:
    return planted_sentences(200, seed=1, vocab_size=VOCABULARY)


@torch.no_grad()
def memory_scores(model: Mem2Mem, documents: list[EncodedDocument]) -> dict[str, float]:
    """Measure a model on documents, and the content of its memory: means over documents, by
    name."""
    batch = make_batch(documents, model.config.vocab_size)
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    changes = {
        "nll": NOTHING,
        "nll, another": MEMORY["another memory"],
        "nll, averaged": MEMORY["slots averaged"],
    }
    scores = {
        name: -float(log_probs(model, documents, change).mean()) for name, change in changes.items()
    }
    scores["words right"] = words_right(model, batch)
    return scores | heads_scores(model.seen(output, state)["heads"], documents)


def heads_scores(attention: Tensor, documents: list[EncodedDocument]) -> dict[str, float]:
    """Measure write attention A [B, r, L]: "precision" and "recall" of the sentences on which a
    head is strongest, the mean weight of a head "on marked" sentences, and on its "strongest"
    one."""
    chosen = [set(row) for row in memory_sentences(attention)]
    marked = [planted_at(document) for document in documents]
    hits = [len(c.intersection(m)) for c, m in zip(chosen, marked)]
    on_marked = [
        weights[:, places].sum(1).mean().item() for weights, places in zip(attention, marked)
    ]
    return {
        "precision": float(np.mean([h / len(c) for h, c in zip(hits, chosen)])),
        "recall": float(np.mean([h / len(m) for h, m in zip(hits, marked)])),
        "on marked": float(np.mean(on_marked)),
        "strongest": attention.max(-1).values.mean().item(),
    }


@torch.no_grad()
def words_right(model: Mem2Mem, batch: Batch) -> float:
    """Compute the share of the references' words, without the end, that are the most probable next
    word."""
    state, right = model.encode(batch), []
    for t in range(batch.target.shape[1] - 1):
        output, state = model.decode(batch.target_input[:, t : t + 1], state)
        best = model.distribution(output, state, 0).argmax(1)
        right.append((best == batch.target[:, t]).double().mean().item())
    return float(np.mean(right))


def solved(kind: type[Mem2Mem], losses: str, gate: str, seed: int) -> dict[str, float]:
    scores = memory_scores(learn_planted(kind, losses, gate, seed), unseen_documents())
    return {name: round(score, 4) for name, score in scores.items()}


def _rows(kind: type[Mem2Mem], losses: Iterable[str], gates: Iterable[str]) -> dict[str, partial]:
    paths = "memory alone" if kind is MemoryAlone else "all ways"
    return {
        f"{paths}, {loss}, {gate}": partial(solved, kind, loss, gate)
        for loss in losses
        for gate in gates
    }


ROWS = _rows(MemoryAlone, ("both", "neither"), GATES)
ROWS |= _rows(Mem2Mem, ("neither", "the paper's", "both"), GATES) | _rows(
    Mem2Mem, GRID, ["plain gate"]
)
TASK = Task(
    "when a memory matters: planted sentences, with all paths open or only the memory",
    ROWS,
    (0, 1, 2, 3, 4),
)
