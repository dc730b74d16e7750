"""Whether a sentence that stands in a summary already is more probable for it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from lib.data.batch import EncodedDocument, make_batch
from lib.models.summarizer import Summarizer


@torch.no_grad()
def log_prob_after(
    model: Summarizer, document: EncodedDocument, sentence: Sequence[int], before: Sequence[Sequence[int]] = ()
) -> float:
    """Mean log-probability of a sentence's words (extended ids), in nats a word, in a summary of a document in which
    the sentences `before` stand before it."""
    words = [np.asarray(part, dtype=np.int32) for part in (*before, sentence)]
    batch = make_batch([replace(document, target=np.concatenate(words))], model.config.vocab_size)
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    return float(model.log_prob(output, batch.target, state)[0, -len(sentence) :].mean())
