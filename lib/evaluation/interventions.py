"""Interventions: change a part of a model, or what it reads, and measure the log-probability of the references.

    own = log_probs(run.model, documents)
    changed = log_probs(run.model, documents, changes_of(run.model)["another memory"])
    paired_bootstrap(own, changed)     # of lib.evaluation.bootstrap: nats a word, with an interval over documents

A picture of weights shows what a model attends to; a change shows what the part does to the text that it writes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.vocabulary import UNK
from lib.layers.attention import CoverageAttention
from lib.models.hierarchical_transformer import HierarchicalTransformer
from lib.models.mem2mem import Mem2Mem
from lib.models.read_again import LOWEST, ReadAgain
from lib.models.summarizer import PointerModel, Summarizer, mean_over_words
from lib.system.errors import InputError
from lib.training.devices import ALONE, Process

NEVER = 1e4  # score of a switch that always generates: its sigmoid is 1 in all precisions


# makes a batch of the documents which follow those of another batch, and encodes them
Following = Callable[[], tuple[Batch, Any]]


def _log_p(model: Any, batch: Batch, state: Any, _: Following) -> Tensor:
    output, _ = model.decode(batch.target_input, state)
    return model.log_prob(output, batch.target, state)


@dataclass(frozen=True)
class Change:
    """A change of texts, of encoded documents, of a model, of the decoder's first state, or of decoding."""

    what: str  # one line for people
    text: Callable[[Document], Document] | None = None  # before it is encoded
    document: Callable[[EncodedDocument], EncodedDocument] = lambda document: document
    model: Callable[[Any], AbstractContextManager] = nullcontext
    state: Callable[[Any, Following], Any] = lambda state, following: state
    # log-probabilities of the references' words, [B, T]
    log_p: Callable[[Any, Batch, Any, Following], Tensor] = _log_p
    only_known: bool = False  # words that the vocabulary does not have do not count, with the change and without


NOTHING = Change("nothing is changed")


@torch.no_grad()
def log_probs(
    model: Summarizer, documents: Sequence[EncodedDocument], change: Change = NOTHING, batch_size: int = 16,
    only_known: bool = False, process: Process = ALONE,
) -> np.ndarray:  # fmt: skip
    """Compute the log-probability of each document's reference, in nats a word: [documents].

    A change may use other documents: each document uses the next one, and the last one the first. only_known: words
    outside the vocabulary do not count. process: one of those that share the batches; each returns all values.

    Raises InputError for a document whose reference has no word that counts.
    """
    model.eval()
    size, rows = model.config.vocab_size, []
    device = next(model.parameters()).device

    def encoded(some: list[EncodedDocument]) -> tuple[Batch, Any]:
        batch = make_batch(some, size).to(device)
        return batch, model.encode(batch)

    with change.model(model):
        for start in process.share(range(0, len(documents), batch_size)):
            own = documents[start : start + batch_size]
            following = partial(encoded, [documents[(start + i + 1) % len(documents)] for i in range(len(own))])
            batch, state = encoded([change.document(document) for document in own])
            state = change.state(state, following)
            counted = known_words(batch, size) if only_known or change.only_known else batch.target_mask
            log_p = change.log_p(model, batch, state, following).masked_fill(~counted, 0)
            rows.append(mean_over_words(log_p, counted).double().cpu().numpy())
    values = np.concatenate(process.gather(rows))
    if np.isnan(values).any():
        raise InputError(f"document {documents[int(np.isnan(values).argmax())].id!r} has no word in its reference")
    return values


def known_words(batch: Batch, vocab_size: int) -> Tensor:
    """Return which words of the references the vocabulary has: [B, T]."""
    return batch.target_mask & (batch.target < vocab_size) & (batch.target != UNK)


def changes_of(model: Summarizer) -> dict[str, Change]:
    """Return the changes that apply to a model, by name."""
    changes = {"nothing": NOTHING, **TEXTS}
    if isinstance(model, Mem2Mem):
        changes |= MEMORY if model.extracts else {}
        changes |= WRITING if model.config.write else {}
    if any(isinstance(module, CoverageAttention) for module in model.modules()):
        changes["no coverage"] = Change("coverage has no weight in the attention to words", model=_without_coverage)
    if isinstance(model, PointerModel) and getattr(model.config, "copy", True):
        changes["no copying"] = Change("every word is generated", model=_generate_only, only_known=True)
    if isinstance(model, ReadAgain):
        changes |= _of_read_again(model)
    if isinstance(model, HierarchicalTransformer):
        changes |= _between_paragraphs(model)
    return changes


# ------------------------------------------------------------------------------------------------------- texts


def _reorder_sections(document: Document, order: Sequence[int]) -> Document:
    """Put sections, numbered from 0, in an order; -1 is the last."""
    names, sections = ([values[i] for i in order] for values in (document.section_names, document.sections))
    return replace(document, section_names=names, sections=sections)


def with_units(document: EncodedDocument, order: Sequence[int]) -> EncodedDocument:
    """Reduce a document to the given units (sentences or paragraphs), in the given order."""
    lengths = document.sentence_lengths
    places = np.split(np.arange(lengths.sum()), lengths.cumsum()[:-1])
    moved = np.concatenate([places[i] for i in order])
    own = None if document.source_ids is None else document.source_ids[moved]
    changed = replace(document, source=document.source[moved], source_ids=own, sentence_lengths=lengths[[*order]])
    if document.graph is None:
        return changed
    square = document.graph.reshape(len(lengths), len(lengths))
    return replace(changed, graph=square[np.ix_(order, order)].ravel())


def without_unit(document: EncodedDocument, unit: int = 0) -> EncodedDocument:
    """Remove a unit of a document, unless it is the only one."""
    others = [i for i in range(len(document.sentence_lengths)) if i != unit]
    return with_units(document, others) if others else document


def reverse_paragraphs(document: EncodedDocument) -> EncodedDocument:
    """Reverse the paragraphs after the first one, the title.

    Unlike reversed sections, which are cut afterwards, they are the same paragraphs.
    """
    return with_units(document, [0, *range(len(document.sentence_lengths) - 1, 0, -1)])


TEXTS = {
    "last section first": Change(
        "the last section comes first", text=lambda d: _reorder_sections(d, range(-1, len(d.sections) - 1)),
        only_known=True,
    ),
    "sections backwards": Change(
        "sections in the opposite order", text=lambda d: _reorder_sections(d, range(len(d.sections))[::-1]),
        only_known=True,
    ),
    "first unit erased": Change(
        "the first sentence or paragraph is not there", document=without_unit, only_known=True
    ),
}  # fmt: skip

# ---------------------------------------------------------------------------------------- changes of a model


def hooks(
    modules: Callable[[Any], Sequence[nn.Module]], change: Callable[..., Tensor]
) -> Callable[[Any], AbstractContextManager]:
    """Return a change of a model: what some of its modules return becomes `change(output, *other inputs)`."""

    @contextmanager
    def hooked(model: nn.Module) -> Iterator[None]:
        handles = [
            module.register_forward_hook(lambda _, inputs, output: change(output, *inputs[1:]))
            for module in modules(model)
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    return hooked


def configured(**changes: Any) -> Callable[[Any], AbstractContextManager]:
    """Return a change of a model: some values of its configuration."""
    return lambda model: patch.object(model, "config", replace(model.config, **changes))


# ------------------------------------------------------------------------------------------------------ memory


def _memory(change: Callable[[Tensor], Tensor]) -> Callable[[Any, Any], Any]:
    """Change M_D [B, r, d] before the first word."""
    return lambda state, following: state.replace(memory=change(state.memory).contiguous())


MEMORY = {
    "another memory": Change(
        "the memory of the document that follows",
        state=lambda state, following: state.replace(memory=following()[1].memory),
    ),
    "slots averaged": Change(
        "every slot is the mean of all", state=_memory(lambda m: m.mean(1, keepdim=True).expand_as(m))
    ),
    "slots permuted": Change("slots in another order, which no equation uses", state=_memory(lambda m: m.flip(1))),
    "memory erased": Change("every slot is 0", state=_memory(torch.zeros_like)),
}

_unwritten = configured(write=False)


def _log_p_beside(model: Mem2Mem, batch: Batch, state: Any, text: Any, words: Batch) -> Tensor:
    """Compute log P [B, T] of a batch's words where the decoder writes nothing, and reads at each of them what is
    written of other `words` beside a `text`, a state: the memory of the same place, or of the last where there are
    fewer."""
    written = []
    rows = torch.arange(len(batch), device=words.target_mask.device)
    last = words.target_mask.sum(1) - 1
    for token in words.target_input.split(1, 1):
        _, text = model.decode(token, text)
        written.append(text.memory)
    memories, log_p = torch.stack(written, 1), []  # [B, T', r, d]
    with _unwritten(model):
        for t in range(batch.target.shape[1]):
            state = state.replace(memory=memories[rows, last.clamp(max=t)])
            output, state = model.decode(batch.target_input[:, t : t + 1], state)
            log_p.append(model.log_prob(output, batch.target[:, t : t + 1], state))
    return torch.cat(log_p, 1)


WRITING = {
    "never written": Change("the memory stays as it was handed over", model=_unwritten),
    "written beside another text": Change(
        "at each word the memory that the same words write beside the next document's text",
        log_p=lambda model, batch, state, following: _log_p_beside(model, batch, state, following()[1], batch),
    ),
    "written with other words": Change(
        "at each word the memory that the next document's summary writes beside this text",
        log_p=lambda model, batch, state, following: _log_p_beside(model, batch, state, state, following()[0]),
    ),
}

# ------------------------------------------------------------------------------------------ attention and copying


def _generate_only(model: Any) -> AbstractContextManager:
    layers = [layer for name, layer in model.named_modules() if name.split(".")[-1] == "switch"]
    return hooks(lambda _: layers, lambda switch: torch.full_like(switch, NEVER))(model)


@contextmanager
def _without_coverage(model: nn.Module) -> Iterator[None]:
    (layer,) = (module for module in model.modules() if isinstance(module, CoverageAttention))
    weights = layer.coverage.data.clone()
    layer.coverage.data.zero_()
    try:
        yield
    finally:
        layer.coverage.data.copy_(weights)


def _of_read_again(model: ReadAgain) -> dict[str, Change]:
    changes = {}
    if model.config.copy:
        no_copies = hooks(lambda model: [model.copy_scores], lambda scores: torch.full_like(scores, LOWEST))
        changes["no copying"] = Change("every word is generated", model=no_copies, only_known=True)
        unknown = model.target_embedding.weight[UNK]
        read_unknown = hooks(lambda model: [model.copied_word], lambda words: unknown.to(words).expand_as(words))
        changes["[UNK] fed back"] = Change("a copied word is read as [UNK], not by its context", model=read_unknown)
    if model.config.encoder in ("read-again gru", "read-again lstm"):
        no_text = hooks(lambda model: [model.text], torch.zeros_like)
        changes["text not told"] = Change("the second read gets zeros for the text's vector", model=no_text)
    if model.config.encoder == "read-again gru":
        average = hooks(lambda model: [model.alpha], _average_importance)
        changes["importance averaged"] = Change("α of each word is the text's mean", model=average)
    return changes


def _average_importance(alpha: Tensor, mask: Tensor) -> Tensor:
    """Replace alpha [B, N, d or 1] by its mean over the words of each text."""
    words = mask[..., None]
    return ((alpha * words).sum(1, keepdim=True) / words.sum(1, keepdim=True)).expand_as(alpha)


# ------------------------------------------------------------------------------------------ between paragraphs


def _between_paragraphs(model: HierarchicalTransformer) -> dict[str, Change]:
    changes = {}
    itself = "a paragraph attends to itself alone"
    others = "no paragraph attends to the first but itself"
    every = range(len(model.global_layers))
    for i in every:
        where = f"layer {i + 1}"
        changes[f"{where} cut"] = Change(f"in global {where} {itself}", model=_cut([i], _see_itself))
        changes[f"first paragraph cut in {where}"] = Change(
            f"in global {where} {others}", model=_cut([i], _see_all_but_the_first)
        )
    if every:
        changes["layers cut"] = Change(itself, model=_cut(every, _see_itself))
        changes["first paragraph cut"] = Change(others, model=_cut(every, _see_all_but_the_first))
    changes["paragraphs backwards"] = Change(
        "the paragraphs that are read in the opposite order, the first at its place", document=reverse_paragraphs
    )
    if model.config.paragraph_positions:
        without = configured(paragraph_positions=False)
        changes["no paragraph positions"] = Change("pieces have no number of their paragraph", model=without)
    return changes


def _see_itself(paragraphs: int) -> Tensor:
    return torch.eye(paragraphs, dtype=torch.bool)


def _see_all_but_the_first(paragraphs: int) -> Tensor:
    sees = torch.ones(paragraphs, paragraphs, dtype=torch.bool)
    sees[1:, 0] = False
    return sees


def _cut(layers: Sequence[int], sees: Callable[[int], Tensor]) -> Callable[[Any], AbstractContextManager]:
    """Let each paragraph attend only to those that it `sees`, [P, P] of P, in some global layers."""

    def reachable(present: Tensor) -> Tensor:  # [B, 1, P]
        count, device = present.shape[2], present.device
        # What is no paragraph attends to itself: a softmax needs an entry.
        itself = _see_itself(count).to(device) & ~present.transpose(1, 2)
        return present & sees(count).to(device) | itself

    return hooks(lambda model: [model.global_layers[i].reachable for i in layers], reachable)


def decoder_sees(paragraphs: Tensor) -> Change:
    """Let the decoder attend only to the words of some paragraphs: [B, P] of one batch, true where it may."""

    def hide(state: Any) -> Any:
        return state.replace(mask=state.mask & paragraphs.gather(1, state.paragraph_of))

    return Change(
        "the decoder attends to the words of some paragraphs alone",
        model=lambda model: patch.object(model, "encode", lambda *read: hide(type(model).encode(model, *read))),
    )
