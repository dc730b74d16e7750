"""Measure the slots of a memory while a summary is written, and the places that its heads attend
to."""

import numpy as np
import torch
from torch import Tensor

from lib.data.batch import Batch, in_vocabulary
from lib.data.documents import Document
from lib.data.prepared import TextEncoder
from lib.models.changes import batch_alone
from lib.models.mem2mem import Mem2Mem


@torch.no_grad()
def slots_left(model: Mem2Mem, batch: Batch, count: int) -> Tensor:
    """Compute the share of each slot that is left before each of the first words of the references,
    by the product of its write gates: [B, count, r], 1 before the first word.

    It is a lower bound: the update (9) reads the slots as well, and may write their content back.
    """
    tokens, state = in_vocabulary(batch.target_input, model.config.vocab_size), model.encode(batch)
    hidden, _ = model.decoder(model.embedding(tokens), state.hidden[None])
    queries, memory = model.read_attention.project_queries(hidden), state.memory
    left = [torch.ones_like(memory)]
    for t in range(count - 1):
        _, read = model.read(queries[:, t : t + 1], memory)
        z, u = model.gate_and_update(memory, read[:, 0], model.write_hidden(hidden[:, t + 1]))
        memory = z * memory + (1 - z) * u
        left.append(z * left[-1])
    return torch.stack(left, 1).mean(-1)


@torch.no_grad()
def head_places(model: Mem2Mem, document: Document, encoder: TextEncoder) -> np.ndarray:
    """Find the sentence on which each head is strongest [3, r]: its section, its place from the
    section's beginning, and its place from the end, all counted from 1."""
    ends = np.cumsum([len(section) for section in encoder.options.cut(document)])
    (read,) = encoder.encode([document])
    attention = model.encode(batch_alone(model, read)).write_attention
    assert attention is not None
    best = attention[0].argmax(1).cpu().numpy()
    section = np.searchsorted(ends, best, side="right")
    starts = np.concatenate([[0], ends])[section]
    return np.stack([section + 1, best - starts + 1, ends[section] - best])


def mean_cosine(memory: Tensor) -> float:
    """Compute the mean cosine of two different rows (slots, or sentences) of each document in
    [B, r, d]."""
    unit = torch.nn.functional.normalize(memory, dim=-1)
    others = ~torch.eye(memory.shape[1], dtype=torch.bool, device=memory.device)
    return (unit @ unit.transpose(1, 2))[:, others].mean().item()
