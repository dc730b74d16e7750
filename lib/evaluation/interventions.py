"""Interventions: change a part of a model, or what it reads, and measure the log-probability of the references.

    own = log_probs(run.model, documents)
    changed = log_probs(run.model, documents, changes_of(run.model)["another memory"])
    paired_bootstrap(own, changed)     # of lib.evaluation.bootstrap: nats a word, with an interval over documents

A picture of weights shows what a model attends to; a change shows what the part does to the text that it writes.

On which units of a text (sentences or paragraphs) a summary rests is measured in three ways (`MEASURES`). Attention
is where a model looks. Erasure is what the log-probability of the summary loses when [UNK] replaces the words of the
unit. Gradient times input says how much the log-probability moves when a word's embedding does. Where the three rank
units differently, a picture of attention does not explain the summary.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.vocabulary import PAD, UNK
from lib.layers.attention import CoverageAttention
from lib.models.hierarchical_transformer import HierarchicalTransformer
from lib.models.mem2mem import Mem2Mem
from lib.models.read_again import LOWEST, ReadAgain
from lib.models.summarizer import PointerModel, Summarizer, mean_over_words
from lib.system.errors import InputError
from lib.system.threads import restored
from lib.training.devices import ALONE, Process

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
    # makes the change of a model and of all documents, where one document and its neighbour are not enough
    of_all: Callable[[Any, Sequence[EncodedDocument]], "Change"] | None = None


NOTHING = Change("nothing is changed")


@torch.no_grad()
def log_probs(
    model: Summarizer, documents: Sequence[EncodedDocument], change: Change = NOTHING, batch_size: int = 16,
    only_known: bool = False, process: Process = ALONE,
) -> np.ndarray:  # fmt: skip
    """Compute the log-probability of each document's reference, in nats a word: [documents].

    A change may use other documents: each document uses the next one, and the last one the first; `of_all` uses all.
    only_known: words outside the vocabulary do not count. process: one of those that share the batches; each returns
    all values.

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
        changes["no copying"] = Change("every word is generated", model=GENERATE, only_known=True)
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
    """Replace the words of a unit by [UNK], unless it is the only one.

    The other words keep their places. If the unit were removed, they would move to other places in the windows of a
    model that has windows, and the loss would measure that as well.
    """
    if len(document.sentence_lengths) == 1:
        return document
    erased = np.repeat(np.arange(len(document.sentence_lengths)) == unit, document.sentence_lengths)
    ids = {"source": document.source, "source_ids": document.source_ids}
    return replace(document, **{name: np.where(erased, np.int32(UNK), x) for name, x in ids.items() if x is not None})


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
        "the words of the first sentence or paragraph are [UNK]", document=without_unit, only_known=True
    ),
}  # fmt: skip

# ---------------------------------------------------------------------------------------- changes of a model


def hooks(change: Callable[..., Tensor], *names: str) -> Callable[[Any], AbstractContextManager]:
    """Return a change of a model: what its modules with these names (or names that end in a dot and one of them)
    return becomes `change(output, *other inputs)`."""

    def hook(_: nn.Module, inputs: tuple, output: Tensor) -> Tensor:
        return change(output, *inputs[1:])

    @contextmanager
    def hooked(model: nn.Module) -> Iterator[None]:
        ends = tuple(f".{name}" for name in names)
        with ExitStack() as stack:
            for path, module in model.named_modules():
                if f".{path}".endswith(ends):
                    stack.enter_context(module.register_forward_hook(hook))
            yield

    return hooked


def configured(**changes: Any) -> Callable[[Any], AbstractContextManager]:
    """Return a change of a model: some values of its configuration."""
    return lambda model: patch.object(model, "config", replace(model.config, **changes))


# ------------------------------------------------------------------------------------------------------ memory


def _memory(change: Callable[[Tensor], Tensor]) -> Callable[[Any, Any], Any]:
    """Change M_D [B, r, d] before the first word."""
    return lambda state, following: state.replace(memory=change(state.memory).contiguous())


def _random_slots(memory: Tensor) -> Tensor:
    noise = torch.randn(memory.shape, generator=torch.Generator().manual_seed(0)).to(memory)
    return F.normalize(noise, dim=-1) * memory.norm(dim=-1, keepdim=True)


@torch.no_grad()
def one_memory(model: Mem2Mem, documents: Sequence[EncodedDocument]) -> Change:
    """Make the change that hands over one memory whatever the text is: the mean of those of `documents`."""
    mean = torch.stack([model.encode(batch_alone(model, document)).memory[0] for document in documents]).mean(0)
    return Change("one memory for all", state=_memory(lambda memory: mean.expand_as(memory)))


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
    "random memory": Change("every slot is a random vector with the norm of its own", state=_memory(_random_slots)),
    "one memory for all": Change("the mean memory of all documents", of_all=one_memory),
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

GENERATE = hooks(lambda switch: torch.full_like(switch, 1e4), "switch")  # its sigmoid is 1 in all precisions


def _without_coverage(model: nn.Module) -> AbstractContextManager:
    (layer,) = (module for module in model.modules() if isinstance(module, CoverageAttention))
    put = torch.no_grad()(layer.coverage.copy_)  # in place, so that every device sees it
    return restored(lambda: layer.coverage.detach().clone(), put, torch.zeros_like(layer.coverage))


def _of_read_again(model: ReadAgain) -> dict[str, Change]:
    changes = {}
    if model.config.copy:
        no_copies = hooks(lambda scores: torch.full_like(scores, LOWEST), "copy_scores")
        changes["no copying"] = Change("every word is generated", model=no_copies, only_known=True)
        unknown = model.target_embedding.weight[UNK]
        read_unknown = hooks(lambda words: unknown.to(words).expand_as(words), "copied_word")
        changes["[UNK] fed back"] = Change("a copied word is read as [UNK], not by its context", model=read_unknown)
    if model.config.encoder in ("read-again gru", "read-again lstm"):
        no_text = hooks(torch.zeros_like, "text")
        changes["text not told"] = Change("the second read gets zeros for the text's vector", model=no_text)
    if model.config.encoder == "read-again gru":
        average = hooks(_average_importance, "alpha")
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
        layer = f"layer {i + 1}"
        changes[f"{layer} cut"] = Change(f"in global {layer} {itself}", model=_cut([i], _see_itself))
        first = _cut([i], _see_all_but_the_first)
        changes[f"first paragraph cut in {layer}"] = Change(f"in global {layer} {others}", model=first)
    if every:
        changes["layers cut"] = Change(itself, model=_cut(every, _see_itself))
        changes["first paragraph cut"] = Change(others, model=_cut(every, _see_all_but_the_first))
    # Unlike reversed sections, which are cut afterwards, they are the same paragraphs.
    changes["paragraphs backwards"] = Change(
        "the paragraphs that are read in the opposite order, the first at its place",
        document=lambda document: with_units(document, [0, *range(len(document.sentence_lengths) - 1, 0, -1)]),
    )
    if model.config.paragraph_positions:
        what = "all paragraphs have number 1; the places of tokens in them stay"
        changes["no paragraph positions"] = Change(what, model=_number_alike)
    return changes


def _number_alike(model: HierarchicalTransformer) -> AbstractContextManager:
    """Give all paragraphs the number 1. The code of a token's place is as it was in training."""
    positions = model.positions
    return patch.object(model, "positions", lambda numbers, tokens: positions(torch.ones_like(numbers), tokens))


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

    return hooks(reachable, *(f"global_layers.{i}.reachable" for i in layers))


def decoder_sees(paragraphs: Tensor) -> Change:
    """Let the decoder attend only to the words of some paragraphs: [B, P] of one batch, true where it may."""

    def hide(state: Any) -> Any:
        return state.replace(mask=state.mask & paragraphs.gather(1, state.paragraph_of))

    return Change(
        "the decoder attends only to the words of some paragraphs",
        model=lambda model: patch.object(model, "encode", lambda *read: hide(type(model).encode(model, *read))),
    )


# -------------------------------------------------------------------------------------- importance


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
    """Compute what the reference's log-probability, in nats a word, loses when each unit is erased: [L].

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
