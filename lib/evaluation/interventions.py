"""Interventions: a part of a model is changed, or what it reads, and the log-probability of the references says what
that part did.

    own = log_probs(run.model, documents)
    changed = log_probs(run.model, documents, changes_of(run.model)["another memory"])
    paired_bootstrap(own, changed)     # of lib.evaluation.bootstrap: nats a word, with an interval over documents

A picture of weights shows where a model looks; a change shows what that does to the text it writes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.vocabulary import UNK
from lib.layers.coverage import CoverageAttention
from lib.models.hierarchical_transformer import HierarchicalTransformer
from lib.models.mem2mem import Mem2Mem
from lib.models.read_again import ReadAgain
from lib.models.summarizer import PointerModel, Summarizer, mean_over_words
from lib.system.errors import InputError
from lib.training.devices import ALONE, Process

NEVER = 1e4  # score of a switch that always generates: its sigmoid is 1 in all precisions


# gives the documents which follow those of a batch, and what the encoder makes of them
Following = Callable[[], tuple[Batch, Any]]


def _log_p(model: Any, batch: Batch, state: Any, _: Following) -> Tensor:
    output, _ = model.decode(batch.target_input, state)
    return model.log_prob(output, batch.target, state)


@dataclass(frozen=True)
class Change:
    """A change of texts, of encoded documents, of a model for a while, of what its encoder made of a batch, or of how
    a batch is decoded. The last two may ask for the documents which follow."""

    what: str  # one line for people
    text: Callable[[Document], Document] | None = None  # before it is encoded
    document: Callable[[EncodedDocument], EncodedDocument] | None = None
    model: Callable[[Any], AbstractContextManager] = nullcontext
    state: Callable[[Any, Following], Any] | None = None
    # log-probabilities of the references' words, [B, T]
    log_p: Callable[[Any, Batch, Any, Following], Tensor] = _log_p
    only_known: bool = False  # words that the vocabulary does not have do not count, with the change and without


NOTHING = Change("nothing is changed")


@torch.no_grad()
def log_probs(
    model: Summarizer, documents: Sequence[EncodedDocument], change: Change = NOTHING, batch_size: int = 16,
    only_known: bool = False, process: Process = ALONE,
) -> np.ndarray:  # fmt: skip
    """Log-probability of each document's reference, in nats a word: [documents].

    A change may use other documents: each that which follows it, the last one the first. only_known: words that the
    vocabulary does not have do not count. process: one of those that share the batches; each has the values of all.

    Raises ValueError where a document's reference has no word that counts.
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
            batch, state = encoded([with_change(document, change) for document in own])
            if change.state:
                state = change.state(state, following)
            counted = known_words(batch, size) if only_known or change.only_known else batch.target_mask
            log_p = change.log_p(model, batch, state, following).masked_fill(~counted, 0)
            rows.append(mean_over_words(log_p, counted).double().cpu().numpy())
    values = np.concatenate(process.gather(rows))
    if np.isnan(values).any():
        raise InputError(f"document {documents[int(np.isnan(values).argmax())].id!r} has no word in its reference")
    return values


def with_change(document: EncodedDocument, change: Change) -> EncodedDocument:
    """A document as a change of encoded documents makes it."""
    return change.document(document) if change.document else document


def known_words(batch: Batch, vocab_size: int) -> Tensor:
    """The words of the references that the vocabulary has: [B, T]."""
    return batch.target_mask & (batch.target < vocab_size) & (batch.target != UNK)


def changes_of(model: Summarizer) -> dict[str, Change]:
    """The changes that a model has the parts for, by name."""
    changes = {"nothing": NOTHING, **TEXTS, "first unit erased": ERASED}
    if isinstance(model, Mem2Mem):
        changes |= MEMORY if model.extracts else {}
        changes |= WRITING if model.config.write else {}
    if any(isinstance(module, CoverageAttention) for module in model.modules()):
        changes["no coverage"] = Change("coverage has no weight in the attention to words", model=_without_coverage)
    if isinstance(model, PointerModel) and getattr(model.config, "copy", True):
        changes["no copying"] = Change("every word is generated", model=_generating, only_known=True)
    if isinstance(model, ReadAgain):
        changes |= _of_read_again(model)
    if isinstance(model, HierarchicalTransformer):
        changes |= _between_paragraphs(model)
    return changes


# ------------------------------------------------------------------------------------------------------- texts


def _order(document: Document, order: Sequence[int]) -> Document:
    names, sections = ([values[i] for i in order] for values in (document.section_names, document.sections))
    return replace(document, section_names=names, sections=sections)


def _last_first(document: Document) -> Document:
    count = len(document.sections)
    return _order(document, [count - 1, *range(count - 1)])


def _backwards(document: Document) -> Document:
    return _order(document, range(len(document.sections))[::-1])


def with_units(document: EncodedDocument, order: Sequence[int]) -> EncodedDocument:
    """A document of these of its units (sentences or paragraphs) alone, in this order."""
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
    """A document without one of its units; one that has no other stays."""
    others = [i for i in range(len(document.sentence_lengths)) if i != unit]
    return with_units(document, others) if others else document


def paragraphs_backwards(document: EncodedDocument) -> EncodedDocument:
    """The same paragraphs in the opposite order after the first, the title. (With sections in the opposite order,
    which are cut afterwards, others may be read.)"""
    return with_units(document, [0, *range(len(document.sentence_lengths) - 1, 0, -1)])


ERASED = Change("the first sentence or paragraph is not there", document=without_unit, only_known=True)
TEXTS = {
    "last section first": Change("the last section comes first", text=_last_first, only_known=True),
    "sections backwards": Change("sections in the opposite order", text=_backwards, only_known=True),
}

# ------------------------------------------------------------------------------------------------------ memory


def _memory(change: Callable[[Tensor], Tensor]) -> Callable[[Any, Any], Any]:
    """A change of M_D [B, r, d] before the first word."""
    return lambda state, following: replace(state, memory=change(state.memory).contiguous())


MEMORY = {
    "another memory": Change(
        "the memory of the document that follows",
        state=lambda state, following: replace(state, memory=following()[1].memory),
    ),
    "slots averaged": Change(
        "every slot is the mean of all", state=_memory(lambda m: m.mean(1, keepdim=True).expand_as(m))
    ),
    "slots permuted": Change(
        "slots in another order, which no equation knows of", state=_memory(lambda m: m.flip(1))
    ),
    "memory erased": Change("every slot is 0", state=_memory(torch.zeros_like)),
}


@contextmanager
def _with(thing: Any, **values: Any) -> Iterator[None]:
    """An object some of whose attributes have other values for a while."""
    own = {name: vars(thing)[name] for name in values if name in vars(thing)}
    for name, value in values.items():
        setattr(thing, name, value)
    try:
        yield
    finally:
        for name in values:
            if name in own:
                setattr(thing, name, own[name])
            else:
                delattr(thing, name)


def _configured(**changes: Any) -> Callable[[Any], AbstractContextManager]:
    return lambda model: _with(model, config=replace(model.config, **changes))


_unwritten = _configured(write=False)


def _written(model: Mem2Mem, tokens: Tensor, state: Any) -> Tensor:
    """M_D as it is read at each of some words [B, T] that the decoder is fed: [B, T, r, d]."""
    memories = []
    for t in range(tokens.shape[1]):
        _, state = model.decode(tokens[:, t : t + 1], state)
        memories.append(state.memory)
    return torch.stack(memories, 1)


def _reading(model: Mem2Mem, batch: Batch, state: Any, memories: Tensor, mask: Tensor) -> Tensor:
    """Log-probabilities [B, T] of a batch's words where the decoder writes nothing and reads memories [B, T', r, d]:
    at each word that of the same place, and the last one of `mask` [B, T'] where there are fewer."""
    rows, last, log_p = torch.arange(len(batch), device=mask.device), mask.sum(1) - 1, []
    with _unwritten(model):
        for t in range(batch.target.shape[1]):
            state = replace(state, memory=memories[rows, last.clamp(max=t)])
            output, state = model.decode(batch.target_input[:, t : t + 1], state)
            log_p.append(model.log_prob(output, batch.target[:, t : t + 1], state))
    return torch.cat(log_p, 1)


def _of_another_text(model: Mem2Mem, batch: Batch, state: Any, following: Following) -> Tensor:
    _, other = following()
    return _reading(model, batch, state, _written(model, batch.target_input, other), batch.target_mask)


def _of_other_words(model: Mem2Mem, batch: Batch, state: Any, following: Following) -> Tensor:
    others, _ = following()
    return _reading(model, batch, state, _written(model, others.target_input, state), others.target_mask)


WRITING = {
    "never written": Change("the memory stays as it was handed over", model=_unwritten),
    "written beside another text": Change(
        "at each word the memory that the same words write beside the next document's text", log_p=_of_another_text
    ),
    "written with other words": Change(
        "at each word the memory that the next document's summary writes beside this text", log_p=_of_other_words
    ),
}

# ------------------------------------------------------------------------------------------ attention and copying


@contextmanager
def _without_coverage(model: nn.Module) -> Iterator[None]:
    weights = [module.coverage.data for module in model.modules() if isinstance(module, CoverageAttention)]
    before = [weight.clone() for weight in weights]
    try:
        for weight in weights:
            weight.zero_()
        yield
    finally:
        for weight, values in zip(weights, before):
            weight.copy_(values)


def _generating(model: PointerModel) -> AbstractContextManager:
    decode = model.decode

    def generating(tokens: Tensor, state: Any) -> tuple[Any, Any]:
        output, state = decode(tokens, state)
        return replace(output, switch=torch.full_like(output.switch, NEVER)), state

    return _with(model, decode=generating)


def _of_read_again(model: ReadAgain) -> dict[str, Change]:
    changes = {}
    if model.config.copy:
        changes["no copying"] = Change("every word is generated", model=_without_copies, only_known=True)
        changes["[UNK] fed back"] = Change("a copied word is read as [UNK], not by its context", model=_fed_unknown)
    if model.config.encoder in ("read-again gru", "read-again lstm"):
        changes["text not told"] = Change(
            "the second read gets zeros in place of the vector of the text", model=_untold
        )
    if model.config.encoder == "read-again gru":
        changes["importance averaged"] = Change("α of each word is the text's mean", model=_averaged)
    return changes


def _without_copies(model: ReadAgain) -> AbstractContextManager:
    scores = model._copy_scores
    return _with(model, _copy_scores=lambda output, state: scores(output, replace(state, embedded=None)))


def _fed_unknown(model: ReadAgain) -> AbstractContextManager:
    size = model.config.vocab_size
    return _with(model, _embed=lambda tokens, source, state: model.target_embedding(tokens.where(tokens < size, UNK)))


def _untold(model: ReadAgain) -> AbstractContextManager:
    if model.config.encoder == "read-again gru":
        importance = model._importance
        return _with(model, _importance=lambda first, text, x: importance(first, torch.zeros_like(text), x))
    second: Any = model.second_read
    read, width = second.forward, model.config.hidden

    def untold(inputs: Tensor) -> Any:  # the vector stands last in what enters (8)
        return read(torch.cat([inputs[..., :-width], torch.zeros_like(inputs[..., -width:])], -1))

    return _with(second, forward=untold)


def _averaged(model: ReadAgain) -> AbstractContextManager:
    """α [B, N, d or 1] of which every word has the mean of its text."""
    importance, read = model._importance, model._read
    masks = []

    def averaged(first: Tensor, text: Tensor, embedded: Tensor) -> Tensor:
        mask = masks[-1][..., None]
        alpha = importance(first, text, embedded)
        return ((alpha * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)).expand_as(alpha)

    def masked(batch: Any) -> Any:
        masks[:] = [batch.source_mask]
        return read(batch)

    return _with(model, _read=masked, _importance=averaged)


# ------------------------------------------------------------------------------------------ between paragraphs


def _between_paragraphs(model: HierarchicalTransformer) -> dict[str, Change]:
    layers = range(len(model.global_layers))
    changes = {
        f"layer {i + 1} cut": Change(
            f"in global layer {i + 1} a paragraph attends to itself alone", model=partial(_cut, [i], _itself)
        )
        for i in layers
    }
    if layers:
        changes["layers cut"] = Change("a paragraph attends to itself alone", model=partial(_cut, layers, _itself))
        changes["first paragraph cut"] = Change(
            "no paragraph attends to the first but itself", model=partial(_cut, layers, _not_the_first)
        )
    if len(layers) > 1:
        changes |= {
            f"first paragraph cut in layer {i + 1}": Change(
                f"in global layer {i + 1} no paragraph attends to the first but itself",
                model=partial(_cut, [i], _not_the_first),
            )
            for i in layers
        }
    changes["paragraphs backwards"] = Change(
        "the paragraphs that are read in the opposite order, the first at its place", document=paragraphs_backwards
    )
    if model.config.paragraph_positions:
        changes["no paragraph positions"] = Change(
            "pieces have no number of their paragraph", model=_configured(paragraph_positions=False)
        )
    return changes


def _itself(paragraphs: int) -> Tensor:
    return torch.eye(paragraphs, dtype=torch.bool)


def _not_the_first(paragraphs: int) -> Tensor:
    open_ = torch.ones(paragraphs, paragraphs, dtype=torch.bool)
    open_[1:, 0] = False
    return open_


def _cut(layers: Sequence[int], open_: Callable[[int], Tensor], model: HierarchicalTransformer) -> ExitStack:
    """Global layers in which each paragraph attends to those alone that are `open_`: [P, P] of P."""

    def reachable(present: Tensor) -> Tensor:
        itself = _itself(present.shape[1]).to(present.device)
        return (present[:, None] & open_(present.shape[1]).to(present.device)) | (itself & ~present[..., None])

    with ExitStack() as stack:
        for i in layers:
            stack.enter_context(_with(model.global_layers[i], reachable=reachable))
        return stack.pop_all()


def decoder_sees(paragraphs: Tensor) -> Change:
    """The decoder attends to the words of some paragraphs alone: [B, P] of one batch, true where it may."""

    def change(model: HierarchicalTransformer) -> AbstractContextManager:
        encode = model.encode

        def encoded(batch: Batch, graph: Tensor | None = None) -> Any:
            state = encode(batch, graph)
            return replace(state, mask=state.mask & paragraphs.gather(1, state.paragraph_of))

        return _with(model, encode=encoded)

    return Change("the decoder attends to the words of some paragraphs alone", model=change)
