"""Which units of a text (sentences or paragraphs) a summary rests on: by attention, by erasing them, by the gradient.

Attention is where a model looks. Erasure is what the log-probability of the summary loses without the unit. Gradient
times input says how much the log-probability moves when a word's embedding does. Where the three rank units
differently, a picture of attention does not explain the summary.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import nn
from torch.nn import functional as F

from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.vocabulary import PAD
from lib.evaluation.interventions import known_words, log_probs, without_unit
from lib.models.summarizer import Summarizer
from lib.system.errors import InputError


def batch_alone(model: Summarizer, document: EncodedDocument) -> Batch:
    """Make a batch of one document, where the model computes."""
    return make_batch([document], model.config.vocab_size).to(next(model.parameters()).device)


def _by_unit(words: np.ndarray, document: EncodedDocument) -> np.ndarray:
    """Sum over the words of each unit: [N] -> [L]."""
    lengths = document.sentence_lengths
    return np.add.reduceat(words, np.cumsum(lengths) - lengths)


@torch.no_grad()
def by_attention(model: Summarizer, document: EncodedDocument) -> np.ndarray:
    """Compute the attention to each unit while the model reads the document's reference, summed over its words: [L].

    Raises InputError for a model that shows no weights of words.
    """
    model.eval()
    batch = batch_alone(model, document)
    seen = model.attention_weights(batch.target_input, model.encode(batch))
    if "words" not in seen:
        raise InputError(f"a {type(model).__name__} shows no attention to words")
    return _by_unit(seen["words"][0].sum(0).double().cpu().numpy(), document)


def by_erasure(model: Summarizer, document: EncodedDocument, batch_size: int = 16) -> np.ndarray:
    """Compute what the reference's log-probability, in nats a word, loses without each unit: [L].

    Words that the vocabulary does not have do not count: those that only the unit has could not be copied any more.
    """
    units = range(len(document.sentence_lengths))
    documents = [document, *(without_unit(document, unit) for unit in units)]
    whole, *without = log_probs(model, documents, batch_size=batch_size, only_known=True)
    return whole - np.array(without)


def by_gradient(model: Summarizer, document: EncodedDocument) -> np.ndarray:
    """Compute |gradient of the reference's log-probability x input| of each word (Jain and Wallace 2019), summed over
    the words of each unit: [L].

    Raises InputError for a model that does not embed the text before it writes.
    """
    model.eval()
    batch = batch_alone(model, document)
    embedding = source_embedding(model)
    own = embedding.weight
    if batch.source.shape[1] >= len(own):
        raise InputError(f"document {document.id!r} has more words than the vocabulary")
    # Each place of the text is read as a word of its own, whose row is that of the word. Row 0 is for padding.
    table = nn.Parameter(own[F.pad(batch.source[0], (1, 0), value=PAD)].detach())
    places = torch.arange(1, len(table), device=own.device)
    embedding.weight = table
    try:
        state = model.encode(replace(batch, source=places[None]))
    finally:
        embedding.weight = own
    output, _ = model.decode(batch.target_input, state)
    log_p = model.log_prob(output, batch.target, state)
    known = known_words(batch, model.config.vocab_size)
    (gradient,) = torch.autograd.grad(log_p[known].mean(), table, allow_unused=True)
    if gradient is None:
        raise InputError(f"a {type(model).__name__} does not embed the text before it writes")
    words = (gradient * table.detach()).sum(1)[1:]
    return _by_unit(words.abs().double().cpu().numpy(), document)


def source_embedding(model: Any) -> nn.Embedding:
    """Return the table of the words of a text."""
    return getattr(model, "source_embedding", None) or model.embedding


MEASURES = {"attention": by_attention, "erasure": by_erasure, "gradient times input": by_gradient}


def rank_agreement(first: np.ndarray, second: np.ndarray) -> float:
    """Compute Spearman's correlation of two measures of the units of a text, [L] each; 0 where one is constant."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])
