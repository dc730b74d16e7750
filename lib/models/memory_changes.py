"""Changes of what Mem2Mem hands over to its decoder, and of what the decoder writes."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lib.data.batch import Batch, EncodedDocument
from lib.models.changes import Change, batch_alone, configured


def _memory(change: Callable[[Tensor], Tensor]) -> Callable[[Any, Any], Any]:
    """Change M_D [B, r, d] before the first word."""
    return lambda state, following: state.replace(memory=change(state.memory).contiguous())


def _random_slots(memory: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(memory.shape, generator=generator).to(memory)
    return F.normalize(noise, dim=-1) * memory.norm(dim=-1, keepdim=True)


@torch.no_grad()
def one_memory(model: Any, documents: Sequence[EncodedDocument]) -> Change:
    """Make the change that hands over one memory for every text: the mean of all."""
    memories = [model.encode(batch_alone(model, document)).memory[0] for document in documents]
    mean = torch.stack(memories).mean(0)
    return Change("one memory for all", state=_memory(lambda memory: mean.expand_as(memory)))


MEMORY = {
    "another memory": Change(
        "the memory of the document that follows",
        state=lambda state, following: state.replace(memory=following()[1].memory),
    ),
    "slots averaged": Change(
        "every slot is the mean of all",
        state=_memory(lambda memory: memory.mean(1, keepdim=True).expand_as(memory)),
    ),
    "slots permuted": Change(
        "slots in another order, which no equation uses",
        state=_memory(lambda memory: memory.flip(1)),
    ),
    "memory erased": Change(
        "every slot is 0",
        state=_memory(torch.zeros_like),
    ),
    "random memory": Change(
        "every slot is a random vector with the norm of its own",
        state=_memory(_random_slots),
    ),
    "one memory for all": Change(
        "the mean memory of all documents",
        of_all=one_memory,
    ),
}

_unwritten = configured(write=False)


def _log_p_beside(model: Any, batch: Batch, state: Any, text: Any, words: Batch) -> Tensor:
    """Compute log P [B, T] of a batch's words with memories that other words have written.

    The decoder writes nothing. At each word it reads the memory that is written at the same place,
    or at the last one, while the model reads `words` beside a `text`, which is a state.
    """
    written = []
    rows = torch.arange(len(batch), device=words.target_mask.device)
    last = words.target_mask.sum(1) - 1
    for token in words.target_input.split(1, 1):
        _, text = model.decode(token, text)
        written.append(text.memory)
    memories = torch.stack(written, 1)  # [B, T', r, d]
    log_p = []
    with _unwritten(model):
        for t in range(batch.target.shape[1]):
            state = state.replace(memory=memories[rows, last.clamp(max=t)])
            output, state = model.decode(batch.target_input[:, t : t + 1], state)
            log_p.append(model.log_prob(output, batch.target[:, t : t + 1], state))
    return torch.cat(log_p, 1)


def _beside_another_text(model: Any, batch: Batch, state: Any, following: Callable) -> Tensor:
    _, text = following()
    return _log_p_beside(model, batch, state, text, batch)


def _with_other_words(model: Any, batch: Batch, state: Any, following: Callable) -> Tensor:
    words, _ = following()
    return _log_p_beside(model, batch, state, state, words)


WRITING = {
    "never written": Change(
        "the memory stays as it was handed over",
        model=_unwritten,
    ),
    "written beside another text": Change(
        "at each word the memory that the same words write beside the next document's text",
        log_p=_beside_another_text,
    ),
    "written with other words": Change(
        "at each word the memory that the next document's summary writes beside this text",
        log_p=_with_other_words,
    ),
}
