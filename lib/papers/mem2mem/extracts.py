"""Papers in pieces, for extractors and for a language model after them (Subramanian et al. 2020).

An extractor reads sentences (`encode_sentences`), a language model a sequence (`encode_sequence`): introduction,
extracted sentences, summary, and in training the rest of the paper.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from lib.data.batch import EncodedDocument
from lib.data.documents import SPLITS, CorpusError, Document
from lib.data.piece_corpora import PieceOptions, cased, encode_split, summary_pieces
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, TextEncoder, watched
from lib.data.sections import choose_sections
from lib.data.vocabulary import PARAGRAPH_END, UNK, Vocabulary
from lib.decoding.search import choose_sentences
from lib.evaluation.baselines import matches
from lib.models.sentence_extractors import SentencePointer, SentencePointerConfig
from lib.system.errors import InputError
from lib.system.fields import Count, Layers, Natural, Share, as_kind, checked
from lib.training.config import TrainConfig
from lib.training.devices import device_named
from lib.training.folder import chooser_model
from lib.training.loop import train_in_cache


@checked
class ExtractOptions(PieceOptions):
    """Options of what Sent-CLF and Sent-PTR read: sentences in byte pairs, which summaries share."""

    sentences: Count = 300  # of a paper, the first ones
    matches: Count = 2  # sentences of the paper that stand for each of the summary's
    summary_tokens: Count = 300  # not stated
    vocab_size: int = 50_257  # 40,000 merges and the characters; in all as many as give TLM its 220M parameters

    kind = "bpe"

    def texts(self, document: Document) -> Iterable[str]:
        return [*document.sentences, *document.summary]

    def encode_one(self, document: Document, pieces: Pieces) -> EncodedDocument:
        return encode_sentences(document, pieces, self)

    def encode_training(self, document: Document, pieces: Pieces) -> EncodedDocument:
        """Label the sentences that an extractor learns to choose."""
        if not document.summary:
            raise CorpusError(f"document {document.id!r} has no summary")
        return encode_sentences(document, pieces, self, right_sentences(document, self))


@checked
class SequenceOptions(ExtractOptions):
    """Options of what TLM reads, and of the Sent-PTR that extracts for it."""

    window: int = 1024  # pieces of a sequence
    extracts: bool = True  # whether extracted sentences stand after the introduction
    extract_tokens: Count = 300  # at most; not stated
    rest_tokens: Natural | None = None  # of the rest of a paper, in training; None: all
    pointer_embedding: Count = 300
    pointer_hidden: Count = 512
    pointer_layers: Layers = 2
    pointer_dropout: Share = 0.5
    pointer_steps: Count = 20_000  # not stated: until 50 validations, 200 steps apart, bring nothing
    pointer_batch: Count = 32
    pointer_rate: float = 1e-3

    def __post_init__(self):
        least = self.summary_tokens + 1 + self.extracts * (self.extract_tokens + 1)
        if self.window < least:
            raise InputError(
                f"a window of {self.window} pieces has no room for an introduction beside the summary and the "
                f"extracted sentences: it must be at least {least}"
            )

    @property
    def base(self) -> ExtractOptions:
        """Options of the sentences that Sent-PTR reads."""
        return as_kind(self, ExtractOptions)

    def make(self, corpus, base, limit, progress, folder) -> PreparedCorpus:
        """Put extracted sentences after the introduction: in training those that are right, which the paper found to
        be best, otherwise those that Sent-PTR chooses, which is trained on the same documents."""
        pointer = train_pointer(base, self, progress) if self.extracts else None
        pieces, splits = base.vocabulary, {}
        for name in SPLITS:
            texts = watched(corpus.split(name, limit), f"{corpus.name}, {name}, as sequences", progress)
            pairs = zip(texts, _chosen(base[name], pieces, pointer if name != "train" else None), strict=True)
            splits[name] = encode_split(folder, name, pairs, partial(self.encode_pair, rest=name == "train"), pieces)
        weights = None if pointer is None else {n: v.cpu().numpy() for n, v in pointer.state_dict().items()}
        return replace(base, encoder=TextEncoder(self, pieces, chooser=weights), splits=splits)

    def encode_pair(self, pair: tuple[Document, Sequence[int]], pieces: Pieces, rest: bool) -> EncodedDocument:
        document, chosen = pair
        return encode_sequence(document, chosen, pieces, self, rest)

    def encode(self, documents: Iterable[Document], encoder: TextEncoder) -> list[EncodedDocument]:
        """Encode documents as those that TLM is tested on."""
        documents, pieces = list(documents), encoder.vocabulary
        encoded = super().encode(documents, encoder)
        chosen: Iterable[Sequence[int]] = [()] * len(encoded)
        if self.extracts:
            pointer = chooser_model(lambda: _pointer(pieces, self), encoder)
            chosen = _chosen(encoded, pieces, pointer.to(device_named()))
        return [encode_sequence(d, c, pieces, self) for d, c in zip(documents, chosen, strict=True)]


def encode_sentences(
    document: Document, pieces: Pieces, options: ExtractOptions, labels: Sequence[int] | None = None
) -> EncodedDocument:
    """Pieces of the first sentences, and of the summary with `<Q>` between its sentences; without one, [EOS].

    labels: numbers of the sentences that are right. Raises ValueError for a document without a sentence.
    """
    if not document.sentences:
        raise InputError(f"document {document.id!r} has no sentence: nothing is left to summarize")
    rows = _rows(document.sentences[: options.sentences], pieces, options)
    lengths = [len(row) for row in rows]
    target = summary_pieces(document.summary, pieces, options)
    encoded = EncodedDocument.of(document.id, np.concatenate(rows), lengths, target, (), document.summary)
    if labels is None:
        return encoded
    return replace(encoded, labels=np.isin(np.arange(len(rows)), labels).astype(np.float32))


def encode_sequence(
    document: Document, chosen: Sequence[int], pieces: Pieces, options: SequenceOptions, rest: bool = False
) -> EncodedDocument:
    """Rows of a paper. The first is what the summary is written from: the introduction, cut to what the window leaves
    it, `<P>`, and the `chosen` sentences in their order. The others, if `rest`, are windows of what it leaves out.

    The introduction is the first section that is called one, or the first.
    """
    (number,) = choose_sections(document.section_names, 1)
    before = sum(map(len, document.sections[:number]))
    introduction = range(before, before + len(document.sections[number]))
    rows, extracted = _rows(document.sentences, pieces, options), []
    if options.extracts:
        extract = [piece for i in chosen for piece in rows[i].tolist()]
        extracted = [PARAGRAPH_END, *extract[: options.extract_tokens]]
    opening = list(chain.from_iterable(rows[i].tolist() for i in introduction))
    others = (rows[i].tolist() for i in range(len(rows)) if i not in introduction)
    room = options.window - options.summary_tokens - len(extracted)
    left = [*opening[room:], *chain.from_iterable(others)][: options.rest_tokens] if rest else []
    windows = [left[start : start + options.window] for start in range(0, len(left), options.window)]
    lengths = [len(opening[:room]) + len(extracted), *map(len, windows)]
    target = summary_pieces(document.summary, pieces, options)
    source = [*opening[:room], *extracted, *left]
    return EncodedDocument.of(document.id, source, lengths, target, (), document.summary)


def _rows(sentences: Sequence[str], pieces: Pieces, options: PieceOptions) -> list[np.ndarray]:
    """Pieces of each sentence; one of which nothing is left is [UNK]."""
    return [row if len(row) else np.array([UNK]) for row in pieces.encode(cased(sentences, options))]


def right_sentences(document: Document, options: ExtractOptions) -> list[int]:
    """Numbers of the sentences that an extractor learns to choose, of those that it reads."""
    return matches(document.sentences[: options.sentences], document.summary, options.matches)


def summary_sentences(corpus: PreparedCorpus) -> int:
    """Sentences that a summary of the training documents has on average, to the nearest whole one."""
    return max(1, round(float(np.mean([len(document.reference) for document in corpus["train"]]))))


def _chosen(split: Sequence[EncodedDocument], pieces: Pieces, pointer: SentencePointer | None) -> Iterable[list[int]]:
    """Numbers of the sentences that stand for each document: by Sent-PTR, or those that are right."""
    if pointer is None:
        return (np.flatnonzero(document.labels).tolist() for document in split)  # type: ignore[arg-type]
    return choose_sentences(pointer, split, pieces)


def pointer_training(options: SequenceOptions) -> TrainConfig:
    """Training with Adam, as Sent-PTR's is; its duration is not stated there."""
    return TrainConfig(
        batch_size=options.pointer_batch,
        steps=options.pointer_steps,
        learning_rate=options.pointer_rate,
        weight_decay=1e-5,
        validate_every=min(200, max(1, options.pointer_steps // 5)),
    )


def train_pointer(prepared: PreparedCorpus, options: SequenceOptions, progress: bool = True) -> SentencePointer:
    """The Sent-PTR of a corpus of sentences, with its best weights. Saved in the cache."""
    config = pointer_training(options)
    return train_in_cache("pointer", lambda: _pointer(prepared.vocabulary, options), prepared, config, progress)[0]


def _pointer(pieces: Vocabulary, options: SequenceOptions) -> SentencePointer:
    sizes = options.pointer_embedding, options.pointer_hidden, options.pointer_layers, options.pointer_dropout
    return SentencePointer(SentencePointerConfig(len(pieces), *sizes))
