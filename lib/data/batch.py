"""Encoded documents, and batches of them: tensors with lengths. Batches are of like length for
training, and in the documents' own order for everything else."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_sequence

from lib.data.vocabulary import BOS, PAD, UNK
from lib.system.errors import InputError

NOWHERE = (-1, -1)  # the place of a symbol, which no text has


@dataclass(frozen=True)
class EncodedDocument:
    """One document in extended ids."""

    id: str
    source: np.ndarray  # [N] extended ids
    sentence_lengths: np.ndarray  # [L], their sum is N
    target: np.ndarray  # [T] extended ids, [EOS] last unless the summary was cut
    unknown: list[str]  # the word of extended id len(vocabulary) + j
    reference: list[str]  # sentences
    source_ids: np.ndarray | None = None  # [N] ids for an encoder that has a vocabulary of its own
    # [L * L] weights between paragraphs, which are stored as sentences
    graph: np.ndarray | None = None
    # to be learned of sentences: [L] 1 for those to extract, or [L - 1] ROUGE-2 recall of
    # paragraphs after a title
    labels: np.ndarray | None = None
    tokenised: bool = False  # whether words of the text were set apart by spaces
    # [N, 2] start and end of each token in `Document.text`, `NOWHERE` for symbols; of texts that
    # are encoded to be summarized, not of those of prepared corpora
    places: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        name: str,
        source,
        sentence_lengths,
        target,
        unknown=(),
        reference=(),
        tokenised: bool = False,
    ) -> "EncodedDocument":
        """A document from ids and lengths in any kind of sequence."""
        source, lengths, target = (
            np.asarray(x, dtype=np.int32) for x in (source, sentence_lengths, target)
        )
        return cls(
            name, source, lengths, target, list(unknown), list(reference), tokenised=tokenised
        )


def with_units(document: EncodedDocument, order: Sequence[int]) -> EncodedDocument:
    """Reduce a document to the given units (sentences or paragraphs), in the given order."""
    lengths = document.sentence_lengths
    places = np.split(np.arange(lengths.sum()), lengths.cumsum()[:-1])
    moved = np.concatenate([places[i] for i in order])
    own = None if document.source_ids is None else document.source_ids[moved]
    changed = replace(
        document,
        source=document.source[moved],
        source_ids=own,
        sentence_lengths=lengths[[*order]],
        places=None if document.places is None else document.places[moved],
    )
    if document.graph is None:
        return changed
    square = document.graph.reshape(len(lengths), len(lengths))
    return replace(changed, graph=square[np.ix_(order, order)].ravel())


def rows_of(document: EncodedDocument) -> list[np.ndarray]:
    """Ids of each sentence of the source; of a cluster, of its title and each paragraph."""
    return np.split(document.source, document.sentence_lengths.cumsum()[:-1])


@dataclass(frozen=True)
class Batch:
    """Tensors of B documents: N source words at most, in L sentences at most; T target words at
    most."""

    ids: list[str]
    unknown: list[list[str]]  # per document, the words of ids vocab_size + j
    sentence_lengths: list[np.ndarray]  # per document, words of each sentence
    source: Tensor  # [B, N] ids for the encoder, unknown words as [UNK]
    source_extended: Tensor  # [B, N] ids, unknown words with their copy ids
    source_mask: Tensor  # [B, N] true where there is a word
    target_input: Tensor  # [B, T] [BOS] and the reference shifted, extended ids
    target: Tensor  # [B, T] extended ids
    target_mask: Tensor  # [B, T]
    target_places: Tensor  # [W] places of the target words in the flat [B * T]
    graph: Tensor | None = None  # [B, L, L] weights between paragraphs, 0 where padded
    labels: Tensor | None = None  # [A] of the paragraphs of all documents
    # whether a loss is the mean over all target words, not over the documents' means
    by_words: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    def to(self, device: torch.device | str) -> "Batch":
        return self._with_each(partial(put, device=device))

    def pinned(self) -> "Batch":
        """The batch in memory from which a GPU copies while it computes; `to` need not put it there
        then."""
        return self._with_each(Tensor.pin_memory)

    def _with_each(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self, **{name: function(x) for name, x in values.items() if isinstance(x, Tensor)}
        )

    # Models that read sentence by sentence need the following; it is made when they first ask for
    # it, on the host.

    @cached_property
    def rows(self) -> "Rows":
        return Rows.of(self.sentence_lengths, self.source.shape[1])

    @cached_property
    def source_lengths(self) -> Tensor:
        """[B] words of each source, on the CPU."""
        return torch.tensor([int(lengths.sum()) for lengths in self.sentence_lengths])

    @cached_property
    def sentence_counts(self) -> Tensor:
        """[B] on the CPU."""
        return torch.tensor([len(lengths) for lengths in self.sentence_lengths])

    @cached_property
    def sentence_mask(self) -> Tensor:
        """[B, L]"""
        mask = torch.arange(int(self.sentence_counts.max())) < self.sentence_counts[:, None]
        return put(mask, self.source.device)

    @cached_property
    def sentence_of(self) -> Tensor:
        """[B, N] m(i): the sentence of word i; 0 where padded."""
        numbers, _ = _pad([np.repeat(np.arange(len(n)), n) for n in self.sentence_lengths])
        return put(numbers, self.source.device)

    @cached_property
    def sentences(self) -> "Sentences":
        return self.rows.padded(self.source.device)

    @cached_property
    def ragged(self) -> "Ragged":
        return self.rows.in_groups(self.source.device)

    @cached_property
    def packed(self) -> "Packed":
        """All sentences as one packed sequence; `rows` are their places in the flat [B * L]."""
        places = self.rows.owner * int(self.sentence_counts.max()) + self.rows.number
        return pack(self.rows.start, self.rows.length, self.source.device, places=places)


@dataclass(frozen=True)
class Rows:
    """Sentences of B documents, A in all, whose words are padded to [B, N]: arrays on the host.

    Indices are made here, with the batch, because a GPU would be waited for to know how many there
    are.
    """

    owner: np.ndarray  # [A] document
    number: np.ndarray  # [A] which of its sentences
    start: np.ndarray  # [A] place of the first word in the flat [B * N]
    length: np.ndarray  # [A] words

    @classmethod
    def of(cls, lengths: Sequence[np.ndarray], width: int) -> "Rows":
        owner = np.repeat(np.arange(len(lengths)), [len(n) for n in lengths])
        number = np.concatenate([np.arange(len(n)) for n in lengths])
        start = np.concatenate([b * width + np.cumsum(n) - n for b, n in enumerate(lengths)])
        return cls(owner, number, start, np.concatenate(lengths).astype(np.int64))

    def padded(self, device: torch.device | str) -> "Sentences":
        step = np.arange(self.length.max())
        mask = step < self.length[:, None]
        place = self.start[:, None] + np.where(mask, step, 0)
        arrays = self.owner, self.number, place, mask, np.flatnonzero(mask)
        return Sentences(*(put(torch.from_numpy(array), device) for array in arrays))

    def in_groups(self, device: torch.device | str = "cpu", min_share: float = 0.75) -> "Ragged":
        """Group the sentences by length. A group ends before a sentence that is shorter than
        `min_share` of its longest one."""
        order = np.argsort(-self.length, kind="stable")
        lengths = self.length[order]
        row = np.repeat(np.arange(len(lengths)), lengths)
        place = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        groups, first = [], 0
        while first < len(lengths):
            last = first + int(
                np.searchsorted(-lengths[first:], -min_share * lengths[first], side="right")
            )
            mask = torch.arange(int(lengths[first])) < torch.from_numpy(lengths[first:last, None])
            full = bool(mask.all())
            slots = None if full else put(mask.flatten().nonzero()[:, 0], device)
            groups.append(
                Group(len(mask), mask.shape[1], slots, None if full else put(mask, device))
            )
            first = last
        arrays = self.start[order][row] + place, row, place, self.owner[order], self.number[order]
        tensors = [put(torch.from_numpy(array), device) for array in arrays]
        return Ragged(*tensors, groups=groups)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Sentences:
    """The sentences of all documents as rows that are padded to the longest, J words."""

    owner: Tensor  # [A] document
    number: Tensor  # [A] which of its sentences
    # [A, J] position of each word in the flat [B * N]; of the first word where padded
    place: Tensor
    mask: Tensor  # [A, J] true where there is a word
    words: Tensor  # [W] places of the words in the flat [A * J]


@dataclass(frozen=True)
class Group:
    """Sentences of similar length, as rows that are padded to the longest of them."""

    rows: int
    longest: int
    # [words of the group] place of each in the flat [rows * longest]; None: no padding
    slots: Tensor | None
    mask: Tensor | None  # [rows, longest] true where there is a word


@dataclass(frozen=True)
class Ragged:
    """All sentences without padding, W words, the longest sentence first, in groups of similar
    length."""

    word: Tensor  # [W] position of each word in the flat [B * N]
    row: Tensor  # [W] its sentence
    place: Tensor  # [W] its place in the sentence
    owner: Tensor  # [A] document of each sentence
    number: Tensor  # [A] which of its sentences
    groups: list[Group]

    @cached_property
    def sizes(self) -> list[int]:
        """Words of each group."""
        return [g.rows * g.longest if g.slots is None else len(g.slots) for g in self.groups]


@dataclass(frozen=True)
class Packed:
    """Rows of words in the order in which a recurrent layer reads them without padding: time step
    by time step, the longest row first."""

    words: Tensor  # [W] position of each packed word in a flat tensor
    sizes: Tensor  # [longest row] how many rows reach each step; on the CPU
    rows: Tensor  # [rows] place of each row, the longest first
    back: Tensor | None  # [rows] where each row is in that order

    def sequence(self, words: Tensor) -> PackedSequence:
        """Values [W, e] of the packed words, as PyTorch's recurrent layers take them. Their last
        states are put back into the rows' own order where `back` gives it."""
        return PackedSequence(
            words, self.sizes, None if self.back is None else self.rows, self.back
        )


def pack(
    starts: np.ndarray,
    lengths: np.ndarray,
    device: torch.device,
    backwards: bool = False,
    places: np.ndarray | None = None,
) -> Packed:
    """Pack rows that begin at `starts` [rows] of a flat tensor and have `lengths` [rows] words.

    `pack_padded_sequence` would wait for a GPU, and its backward pass copies the gradient of each
    step.

    backwards: each row is read from its last word to its first.
    places: [rows] where the caller puts the last states, which then stay in packed order.
    """
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order].astype(np.int64)
    steps = np.arange(lengths[0])
    # rows that are longer than the number of the step
    sizes = np.searchsorted(-lengths, -steps, side="left")
    step = np.repeat(steps, sizes)
    row = np.arange(len(step)) - np.repeat(sizes.cumsum() - sizes, sizes)
    words = starts[row] + (lengths[row] - 1 - step if backwards else step)

    rows = order if places is None else places[order]
    back = put(torch.from_numpy(np.argsort(order)), device) if places is None else None
    words, rows = (put(torch.from_numpy(x), device) for x in (words, rows))
    return Packed(words, torch.from_numpy(sizes), rows, back)


def put(tensor: Tensor, device: torch.device | str) -> Tensor:
    """A tensor on `device`; from the CPU through pinned memory, without which a GPU is waited
    for."""
    pinned = tensor.device.type == "cpu" != torch.device(device).type
    return (tensor.pin_memory() if pinned else tensor).to(device, non_blocking=True)


def make_batch(documents: Sequence[EncodedDocument], vocab_size: int) -> Batch:
    """Pad `documents`. Of a summary there may be [EOS] only."""
    if empty := [d.id for d in documents if not len(d.source)]:
        raise InputError(f"document {empty[0]!r} has no source words: nothing is left of its text")
    extended, source_mask = _pad([d.source for d in documents])
    source = in_vocabulary(extended, vocab_size)
    if own := [d.source_ids for d in documents if d.source_ids is not None]:
        source, _ = _pad(own)
    graphs = [d.graph for d in documents if d.graph is not None]
    labels = [d.labels for d in documents if d.labels is not None]
    target, target_mask = _pad([d.target for d in documents])
    shifted = torch.cat([torch.full((len(documents), 1), BOS), target[:, :-1]], dim=1)
    return Batch(
        ids=[d.id for d in documents],
        unknown=[d.unknown for d in documents],
        sentence_lengths=[d.sentence_lengths for d in documents],
        source=source,
        source_extended=extended,
        source_mask=source_mask,
        target_input=shifted.masked_fill(~target_mask, PAD),
        target=target,
        target_mask=target_mask,
        target_places=word_places(
            torch.tensor([len(d.target) for d in documents]), target.shape[1]
        ),
        graph=_squares(graphs) if graphs else None,
        labels=torch.from_numpy(np.concatenate(labels)) if labels else None,
    )


def in_vocabulary(extended: Tensor, vocab_size: int) -> Tensor:
    """Extended ids as the embedding knows them: copy ids become [UNK]."""
    return extended.masked_fill(extended >= vocab_size, UNK)


def _pad(rows: list[np.ndarray]) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(row) for row in rows])
    padded = pad_sequence(
        [torch.from_numpy(row) for row in rows], batch_first=True, padding_value=PAD
    )
    return padded.long(), torch.arange(padded.shape[1]) < lengths[:, None]


def word_places(lengths: Tensor, width: int) -> Tensor:
    """Places [W] in the flat [B * width] of rows of `lengths` [B] words, all on the CPU."""
    return (torch.arange(width) < lengths[:, None]).flatten().nonzero()[:, 0]


def _squares(graphs: list[np.ndarray]) -> Tensor:
    """Flat square matrices, padded with 0: [B, L, L]."""
    sizes = [math.isqrt(len(graph)) for graph in graphs]
    padded = torch.zeros(len(graphs), max(sizes), max(sizes))
    for row, graph, n in zip(padded, graphs, sizes):
        row[:n, :n] = torch.from_numpy(graph.reshape(n, n))
    return padded


# ---------------------------------------------------------------------------------
# documents in batches


class BucketSampler:
    """Batches of documents of like length, shuffled by seed and epoch; the same for every process.

    Documents are shuffled, sorted by length within pools of `pool` batches, cut into batches, and
    the batches shuffled. What does not fill a batch is left out of that epoch, other documents in
    each, so that every step has the same number of documents; a corpus smaller than one batch is
    one batch.

    With a budget of `tokens`, a batch has as many documents as fit into it when all are padded to
    the longest, at most `batch_size` and at least `least` (processes that share it).
    """

    def __init__(
        self,
        lengths,
        batch_size: int,
        seed: int,
        pool: int = 50,
        tokens: int | None = None,
        least: int = 1,
    ):
        self.lengths, self.seed, self.pool = np.asarray(lengths), seed, pool
        if not len(self.lengths):
            raise InputError("there is no document to train on")
        self.batch_size, self.tokens, self.least = min(batch_size, len(self.lengths)), tokens, least
        if tokens and tokens < least * self.lengths.max():
            raise InputError(
                f"{tokens} tokens do not hold {least} x the longest document, {self.lengths.max()} "
                "words"
            )
        self.epoch = lru_cache(1)(self._make_epoch)  # steps are asked for one after the other
        self._firsts = [0]  # the first step of each epoch, as far as they are known

    def batches_in(self, epochs: int) -> int:
        """Count the batches in the first `epochs` epochs."""
        for number in range(len(self._firsts) - 1, epochs):
            size = len(self.epoch(number)) if self.tokens else len(self.lengths) // self.batch_size
            self._firsts.append(self._firsts[-1] + size)
        return self._firsts[epochs]

    def _make_epoch(self, epoch: int) -> list[np.ndarray]:
        random = np.random.default_rng([self.seed, epoch])
        order = random.permutation(len(self.lengths))
        if self.tokens is None:  # before they are sorted: no document is left out for its length
            order = order[: len(order) - len(order) % self.batch_size]
        size = self.batch_size * self.pool
        pools = [order[i : i + size] for i in range(0, len(order), size)]
        ranked = np.concatenate([p[np.argsort(self.lengths[p], kind="stable")] for p in pools])
        parts = cut(ranked.tolist(), self.lengths.__getitem__, self.batch_size, self.tokens)
        batches = [np.array(part) for part in parts if not self.tokens or len(part) >= self.least]
        return [batches[i] for i in random.permutation(len(batches))]

    def batch(self, step: int) -> np.ndarray:
        """Indices of the documents of training step `step`, counted from 0 over all epochs."""
        while step >= self._firsts[-1]:
            self.batches_in(len(self._firsts))
        number = bisect_right(self._firsts, step) - 1
        return self.epoch(number)[step - self._firsts[number]]


def in_order(
    split: Sequence[EncodedDocument], batch_size: int, vocab_size: int, tokens: int | None = None
) -> Iterator[Batch]:
    """Yield the batches of a split in its own order, for validation and generation.

    tokens: the most source words in a batch, padding included; a longer document has a batch of its
    own.
    """
    for part in cut(split, lambda document: len(document.source), batch_size, tokens):
        yield make_batch(part, vocab_size)


def cut(
    items: Iterable, length: Callable[[Any], int], size: int, tokens: int | None
) -> Iterator[list]:
    """Cut items, in their order, into parts of at most `size`, and of at most `tokens` when all are
    padded."""
    part, longest = [], 0
    for item in items:
        longest = max(longest, length(item))
        over = tokens is not None and (len(part) + 1) * longest > tokens
        if part and (over or len(part) == size):
            yield part
            part, longest = [], length(item)
        part.append(item)
    if part:
        yield part
