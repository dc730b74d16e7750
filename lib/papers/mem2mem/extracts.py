"""Papers in pieces, for extractors and for a language model after them (Subramanian et al. 2020).

An extractor reads sentences (`ExtractOptions`), a language model a sequence (`encode_sequence`):
introduction, extracted sentences, summary, and in training the rest of the paper.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lib.data.batch import NOWHERE, EncodedDocument
from lib.data.corpus import Corpus
from lib.data.documents import SPLITS, CorpusError, Document
from lib.data.options import PieceOptions, cased, encode_split, piece_places, summary_pieces
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, TextEncoder, watched
from lib.data.sections import choose_sections
from lib.data.vocabulary import PARAGRAPH_END, UNK, Vocabulary
from lib.decoding.search import choose_sentences
from lib.evaluation.baselines import matches
from lib.models.sentence_extractors import (
    SentenceClassifier,
    SentenceExtractorConfig,
    SentencePointer,
)
from lib.papers.paper import read_presets
from lib.system.devices import device_named
from lib.system.errors import InputError
from lib.system.settings import Count, Layers, Natural, as_kind, checked
from lib.training.config import TrainConfig
from lib.training.folder import chooser_model, chooser_weights
from lib.training.loop import train_in_cache


@checked
class ExtractOptions(PieceOptions):
    """Options of what Sent-CLF and Sent-PTR read: sentences in byte pairs, which summaries
    share."""

    sentences: Count = 300  # of a paper, the first ones
    matches: Count = 2  # sentences of the paper for each sentence of the summary
    summary_tokens: Count = 300  # not stated
    # 40,000 merges and the characters; in all as many as give TLM its 220M parameters
    vocab_size: int = 50_257

    kind = "bpe"

    def texts(self, document: Document) -> Iterable[str]:
        return [*document.sentences, *document.summary]

    def row_places(self, document: Document) -> list[tuple[int, int]]:
        return document.places[: self.sentences]

    def encode_one(self, document: Document, pieces: Pieces) -> EncodedDocument:
        """Encode the first sentences, and the summary with `<Q>` between its sentences; without
        one, [EOS]."""
        if not document.sentences:
            reason = "has no sentence: nothing is left to summarize"
            raise InputError(f"document {document.id!r} {reason}")
        rows = _rows(document.sentences[: self.sentences], pieces, self)
        lengths = [len(row) for row in rows]
        target = summary_pieces(document.summary, pieces, self)
        return EncodedDocument.of(
            document.id, np.concatenate(rows), lengths, target, (), document.summary
        )

    def encode_training(self, document: Document, pieces: Pieces) -> EncodedDocument:
        """Label the sentences that an extractor learns to choose, of those that it reads."""
        if not document.summary:
            raise CorpusError(f"document {document.id!r} has no summary")
        encoded = self.encode_one(document, pieces)
        labels = np.zeros(len(encoded.sentence_lengths), dtype=np.float32)
        read = document.sentences[: self.sentences]
        labels[matches(read, document.summary, self.matches)] = 1
        return replace(encoded, labels=labels)


@checked
class SequenceOptions(ExtractOptions):
    """Options of what TLM reads, and of the Sent-PTR that extracts for it."""

    window: int = 1024  # pieces of a sequence
    extracts: bool = True  # whether extracted sentences follow the introduction
    extract_tokens: Count = 300  # at most; not stated
    rest_tokens: Natural | None = None  # of the rest of a paper, in training; None: all
    pointer_embedding: Count = 300
    pointer_hidden: Count = 512
    pointer_layers: Layers = 2
    # not stated: until 50 validations, 200 steps apart, bring nothing
    pointer_steps: Count = 20_000
    pointer_batch: Count = 32
    pointer_rate: float = 1e-3

    def __post_init__(self):
        least = self.summary_tokens + 1 + self.extracts * (self.extract_tokens + 1)
        if self.window < least:
            reason = "to hold extracted sentences and the summary"
            raise InputError(f"window must be at least {least}, {reason}")

    @property
    def base(self) -> ExtractOptions:
        """Options of the sentences that Sent-PTR reads."""
        return as_kind(self, ExtractOptions)

    def make(
        self, corpus: Corpus, base: Any, limit: int | None, progress: bool, folder: Path
    ) -> PreparedCorpus:
        """Put extracted sentences after the introduction: in training those that are right, which
        the paper found to be best, otherwise those that Sent-PTR chooses, which is trained on the
        same documents."""
        pointer = train_pointer(base, self, progress) if self.extracts else None
        pieces = base.vocabulary
        splits = {}
        for name in SPLITS:
            what = f"{corpus.name}, {name}, as sequences"
            texts = watched(corpus.split(name, limit), what, progress)
            chosen = _chosen(base[name], pieces, pointer if name != "train" else None)
            pairs = zip(texts, chosen, strict=True)
            encode = partial(encode_sequence, options=self, rest=name == "train")
            splits[name] = encode_split(folder, name, pairs, encode, pieces)
        weights = chooser_weights(pointer) if pointer else None
        return replace(base, encoder=TextEncoder(self, pieces, chooser=weights), splits=splits)

    def encode(self, documents: Iterable[Document], encoder: TextEncoder) -> list[EncodedDocument]:
        """Encode documents as those that TLM is tested on."""
        documents = list(documents)
        pieces = encoder.vocabulary
        encoded = super().encode(documents, encoder)
        chosen: Iterable[Sequence[int]] = [()] * len(encoded)
        if self.extracts:
            pointer = chooser_model(lambda: _pointer(pieces, self), encoder)
            chosen = _chosen(encoded, pieces, pointer.to(device_named()))
        pairs = zip(documents, chosen, strict=True)
        return [encode_sequence(pair, pieces, self, with_places=True) for pair in pairs]


def encode_sequence(
    pair: tuple[Document, Sequence[int]],
    pieces: Pieces,
    options: SequenceOptions,
    rest: bool = False,
    with_places: bool = False,
) -> EncodedDocument:
    """Encode a paper of which some sentences are chosen. The first row is what the summary is
    written from: the introduction, cut to what the window leaves it, `<P>`, and the chosen
    sentences in their order. The others, if `rest`, are windows of what it leaves out.

    The introduction is the first section that is called one, or the first.
    """
    document, chosen = pair
    (number,) = choose_sections(document.section_names, 1)
    start = sum(map(len, document.sections[:number]))
    end = start + len(document.sections[number])
    rows = _rows(document.sentences, pieces, options)
    # What is read is chosen by numbers of tokens; `<P>` is the one after all of the document's.
    ids = np.append(np.concatenate(rows), PARAGRAPH_END)
    tokens = np.split(np.arange(len(ids) - 1), np.cumsum([len(row) for row in rows])[:-1])
    extracted: list[int] = []
    if options.extracts:
        extracts = _joined(tokens[i] for i in chosen)
        extracted = [len(ids) - 1, *extracts[: options.extract_tokens]]
    introduction = _joined(tokens[start:end])
    others = _joined(tokens[:start] + tokens[end:])
    room = options.window - options.summary_tokens - len(extracted)
    order = introduction[:room] + extracted
    lengths = [len(order)]
    if rest:
        left = (introduction[room:] + others)[: options.rest_tokens]
        for begin in range(0, len(left), options.window):
            lengths.append(len(left[begin : begin + options.window]))
        order += left
    target = summary_pieces(document.summary, pieces, options)
    encoded = EncodedDocument.of(document.id, ids[order], lengths, target, (), document.summary)
    if not with_places:
        return encoded
    places = piece_places(document, zip(document.places, rows), pieces, options)
    return replace(encoded, places=np.vstack([places, NOWHERE])[order])


def _joined(tokens: Iterable[np.ndarray]) -> list[int]:
    return [token for row in tokens for token in row.tolist()]


def _rows(sentences: Sequence[str], pieces: Pieces, options: PieceOptions) -> list[np.ndarray]:
    """Pieces of each sentence; one of which nothing is left is [UNK]."""
    rows = pieces.encode(cased(sentences, options))
    return [row if len(row) else np.array([UNK]) for row in rows]


def make_sentence_classifier(
    config: SentenceExtractorConfig, corpus: PreparedCorpus
) -> SentenceClassifier:
    """Make Sent-CLF, which chooses as many sentences as a summary of the training documents has on
    average."""
    if config.summary_sentences is None:
        mean = np.mean([len(document.reference) for document in corpus["train"]])
        config = replace(config, summary_sentences=max(1, round(float(mean))))
    return SentenceClassifier(config)


def _chosen(
    split: Sequence[EncodedDocument], pieces: Pieces, pointer: SentencePointer | None
) -> Iterable[list[int]]:
    """Return the sentences that are extracted of each document: by Sent-PTR, or by the labels."""
    if pointer is None:
        labels = [document.labels for document in split]
        return (np.flatnonzero(of_one).tolist() for of_one in labels)  # type: ignore[arg-type]
    return choose_sentences(pointer, split, pieces)


def train_pointer(
    prepared: PreparedCorpus, options: SequenceOptions, progress: bool = True
) -> SentencePointer:
    """Train the Sent-PTR of a corpus of sentences, or load it from the cache.

    With Adam, as Sent-PTR is trained by itself; for how long is not stated.
    """
    config = TrainConfig(
        batch_size=options.pointer_batch,
        steps=options.pointer_steps,
        learning_rate=options.pointer_rate,
        weight_decay=1e-5,
        validate_every=min(200, max(1, options.pointer_steps // 5)),
    )

    def make() -> SentencePointer:
        return _pointer(prepared.vocabulary, options)

    return train_in_cache("pointer", make, prepared, config, progress)


def _pointer(pieces: Vocabulary, options: SequenceOptions) -> SentencePointer:
    config = SentenceExtractorConfig(
        vocab_size=len(pieces),
        embedding=options.pointer_embedding,
        hidden=options.pointer_hidden,
        layers=options.pointer_layers,
    )
    return SentencePointer(config)


_FOLDER = Path(__file__).parent
EXTRACTOR_PRESETS = read_presets(_FOLDER / "extractor_presets.toml", ExtractOptions)
TLM_PRESETS = read_presets(_FOLDER / "tlm_presets.toml", SequenceOptions)
