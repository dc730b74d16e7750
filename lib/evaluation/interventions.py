"""Interventions: change a part of a model, or what it reads, and measure the log-probability of the
references.

    own = log_probs(run.model, documents)
    changed = log_probs(run.model, documents, changes_of(run.model)["another memory"])
    paired_bootstrap(own, changed)     # nats a word, with an interval over documents

A picture of weights shows what a model attends to; a change shows what the part does to the text
that it writes.

On which units of a text (sentences or paragraphs) a summary rests is measured in three ways
(`MEASURES`). Attention is where a model looks. Erasure is what the log-probability of the summary
loses when [UNK] replaces the words of the unit. Gradient times input says how much the
log-probability moves when a word's embedding does. Where the three rank units differently, a
picture of attention does not explain the summary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.vocabulary import EOS, PAD, UNK
from lib.decoding.run import Run
from lib.decoding.search import search_split
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.models.changes import NOTHING, Change, batch_alone
from lib.models.summarizer import Summarizer, mean_over_words
from lib.system.devices import ALONE, Process
from lib.system.errors import InputError


@torch.no_grad()
def log_probs(
    model: Summarizer,
    documents: Sequence[EncodedDocument],
    change: Change = NOTHING,
    batch_size: int = 16,
    only_known: bool = False,
    process: Process = ALONE,
) -> np.ndarray:
    """Compute the log-probability of each document's reference, in nats a word: [documents].

    A change may use other documents: each document uses the next one, and the last one the first;
    `of_all` uses all. only_known: words outside the vocabulary do not count. process: one of those
    that share the batches; each returns all values.

    Raises InputError for a document whose reference has no word that counts.
    """
    model.eval()
    size, rows = model.config.vocab_size, []
    device = next(model.parameters()).device
    if change.of_all:
        change = change.of_all(model, documents)

    def encoded(some: list[EncodedDocument]) -> tuple[Batch, Any]:
        batch = make_batch(some, size).to(device)
        return batch, model.encode(batch)

    with change.model(model):
        for start in process.share(range(0, len(documents), batch_size)):
            own = range(start, min(start + batch_size, len(documents)))
            neighbours = [documents[(i + 1) % len(documents)] for i in own]
            following = partial(encoded, neighbours)
            batch, state = encoded([change.document(documents[i]) for i in own])
            state = change.state(state, following)
            counted = batch.target_mask
            if only_known or change.only_known:
                counted = known_words(batch, size)
            log_p = change.log_p(model, batch, state, following).masked_fill(~counted, 0)
            rows.append(mean_over_words(log_p, counted).double().cpu().numpy())
    values = np.concatenate(process.gather(rows))
    if np.isnan(values).any():
        name = documents[int(np.isnan(values).argmax())].id
        raise InputError(f"document {name!r} has no word in its reference")
    return values


def known_words(batch: Batch, vocab_size: int) -> Tensor:
    """Return which words of the references the vocabulary has: [B, T]."""
    return batch.target_mask & (batch.target < vocab_size) & (batch.target != UNK)


def changes_of(model: Summarizer) -> dict[str, Change]:
    """Return the changes that apply to a model, by name."""
    return {"nothing": NOTHING, **TEXTS, **model.changes()}


# ---------------------------------------------------------------------------------
# texts


def _reorder_sections(document: Document, order: Sequence[int]) -> Document:
    """Put sections, numbered from 0, in an order; -1 is the last."""
    names = [document.section_names[i] for i in order]
    sections = [document.sections[i] for i in order]
    return replace(document, section_names=names, sections=sections)


def without_unit(document: EncodedDocument, unit: int = 0) -> EncodedDocument:
    """Replace the words of a unit by [UNK], unless it is the only one.

    The other words keep their places. If the unit were removed, they would move to other places in
    the windows of a model that has windows, and the loss would measure that as well.
    """
    if len(document.sentence_lengths) == 1:
        return document
    units = np.arange(len(document.sentence_lengths))
    erased = np.repeat(units == unit, document.sentence_lengths)  # [N] words
    source = np.where(erased, np.int32(UNK), document.source)
    source_ids = document.source_ids
    if source_ids is not None:
        source_ids = np.where(erased, np.int32(UNK), source_ids)
    return replace(document, source=source, source_ids=source_ids)


TEXTS = {
    "last section first": Change(
        "the last section comes first",
        text=lambda d: _reorder_sections(d, range(-1, len(d.sections) - 1)),
        only_known=True,
    ),
    "sections backwards": Change(
        "sections in the opposite order",
        text=lambda d: _reorder_sections(d, range(len(d.sections))[::-1]),
        only_known=True,
    ),
    "first unit erased": Change(
        "the words of the first sentence or paragraph are [UNK]",
        document=without_unit,
        only_known=True,
    ),
}

# ---------------------------------------------------------------------------------
# importance


def _by_unit(words: np.ndarray, document: EncodedDocument) -> np.ndarray:
    """Sum over the words of each unit: [N] -> [L]."""
    lengths = document.sentence_lengths
    return np.add.reduceat(words, np.cumsum(lengths) - lengths)


@torch.no_grad()
def by_attention(model: Summarizer, document: EncodedDocument) -> np.ndarray:
    """Compute the attention to each unit while the model reads the document's reference, summed
    over its words: [L].

    Raises InputError for a model that shows no weights of words.
    """
    model.eval()
    batch = batch_alone(model, document)
    seen = model.attention_weights(batch.target_input, model.encode(batch))
    if "words" not in seen:
        raise InputError(f"a {type(model).__name__} shows no attention to words")
    return _by_unit(seen["words"][0].sum(0).double().cpu().numpy(), document)


def by_erasure(model: Summarizer, document: EncodedDocument, batch_size: int = 16) -> np.ndarray:
    """Compute what the reference's log-probability, in nats a word, loses when each unit is erased:
    [L].

    Words that the vocabulary does not have do not count: those that only the unit has could not be
    copied any more.
    """
    units = range(len(document.sentence_lengths))
    documents = [document, *(without_unit(document, unit) for unit in units)]
    whole, *without = log_probs(model, documents, batch_size=batch_size, only_known=True)
    return whole - np.array(without)


def by_gradient(model: Summarizer, document: EncodedDocument) -> np.ndarray:
    """Compute |gradient of the reference's log-probability x input| of each word (Jain and Wallace
    2019), summed over the words of each unit: [L].

    Raises InputError for a model that does not embed the text before it writes.
    """
    model.eval()
    batch = batch_alone(model, document)
    embedding = source_embedding(model)
    own = embedding.weight
    if batch.source.shape[1] >= len(own):
        raise InputError(f"document {document.id!r} has more words than the vocabulary")
    # Each place of the text is read as a word of its own, whose row is that of the word. Row 0 is
    # for padding.
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
    # |d log P / d e_i . e_i| of each word's embedding e_i
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
    """Compute Spearman's correlation of two measures of the units of a text, [L] each; 0 where one
    is constant."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


# ---------------------------------------------------------------------------------
# rows of tables


def intervene(
    run: Run,
    documents: Sequence[Document],
    changes: dict[str, Change],
    of: str = "references",
    process: Process = ALONE,
) -> Iterator[dict]:
    """Yield a row for each change: the mean log-probability in nats a word, its difference from the
    unchanged texts with a paired interval, and the values of all documents."""
    encoded, values_of = run.encode(documents), partial(log_probs, run.model, process=process)
    texts = _written(run, encoded, process) if of == "summaries" else encoded
    own = {
        only: values_of(texts, only_known=only)
        for only in sorted({c.only_known for c in changes.values()})
    }
    for name, change in changes.items():
        read = texts
        if change.text:
            read = run.encode([change.text(document) for document in documents])
            # copy ids of the other reading are other words here: they are [UNK]
            known = len(run.vocabulary)
            targets = [
                np.where(text.target < known, text.target, UNK).astype(np.int32) for text in texts
            ]
            read = [replace(document, target=target) for document, target in zip(read, targets)]
        values = own[change.only_known] if change is NOTHING else values_of(read, change)
        seen = paired_bootstrap(own[change.only_known], values)
        yield {
            "change": name,
            "what": change.what,
            "mean": float(values.mean()),
            "difference": seen.mean,
            "low": seen.low,
            "high": seen.high,
            "p": seen.p,
            "text": seen.text(3),
            "values": np.round(values, 5).tolist(),
        }


def agreements(
    run: Run, documents: Sequence[Document], of: str = "references", process: Process = ALONE
) -> Iterator[dict]:
    """Yield a row for each pair of MEASURES: the mean rank agreement over documents of the
    importance of units, with its interval, and the values of all documents. A document of one unit
    has no ranks and is left out."""
    encoded = run.encode(documents)
    texts = _written(run, encoded, process) if of == "summaries" else encoded
    texts = [text for text in texts if len(text.sentence_lengths) > 1]
    if not texts:
        raise InputError("no document has two sentences or paragraphs: there is nothing to rank")
    ranked = {
        name: process.gather(measure(run.model, text) for text in process.share(texts))
        for name, measure in MEASURES.items()
    }
    for first, second in combinations(MEASURES, 2):
        values = np.array([rank_agreement(*pair) for pair in zip(ranked[first], ranked[second])])
        yield mean_row(first, second, values)


def mean_row(name: str, what: str, values: np.ndarray, digits: int = 5, **more: Any) -> dict:
    """Make a row of the mean of a measure over documents, with its interval and their values."""
    mean = interval(values)
    return {
        "change": name,
        "what": what,
        "mean": mean.mean,
        "low": mean.low,
        "high": mean.high,
        "text": str(mean),
        **more,
        "values": np.round(values, digits).tolist(),
    }


def _written(
    run: Run, documents: Sequence[EncodedDocument], process: Process
) -> list[EncodedDocument]:
    """Replace the reference of each document by what the run writes of it."""
    best = search_split(run.model, documents, run.vocabulary, run.decode, process=process)
    targets = [np.array([*hypothesis.ids, EOS], dtype=np.int32) for hypothesis in best]
    return [replace(document, target=target) for document, target in zip(documents, targets)]
