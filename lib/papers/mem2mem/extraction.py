"""Corpora for the systems of Subramanian et al. (2020): sentences with labels for their extractors, and sequences for
their language model, with the sentences that a Sent-PTR of its own chooses."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lib.data.batch import EncodedDocument
from lib.data.documents import SPLITS, CorpusError, Document
from lib.data.piece_corpora import encode_split, learn_pieces
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, TextEncoder, cached_corpus, check_splits, code_of, watched
from lib.data.text import Vocabulary
from lib.evaluation.baselines import matches
from lib.models.sentence_extractors import SentencePointer, SentencePointerConfig
from lib.papers.mem2mem.extracts import ExtractOptions, SequenceOptions, encode_sentences, encode_sequence
from lib.runs.config import TrainConfig
from lib.runs.loop import train_in_cache
from lib.runs.search import batches, choices


def prepare_extracts(
    corpus,
    options: ExtractOptions,
    limit: int | None = None,
    folder: str | Path | None = None,
    progress: bool = True,
) -> PreparedCorpus:
    """A corpus in byte pairs learned from its training documents, with the sentences that are to be extracted. Kept
    in `folder`, by default in the cache. Raises CorpusError for a document without a sentence or a summary."""
    key = [corpus.identity, code_of(type(corpus)), asdict(options), limit, code_of(matches)]
    return cached_corpus(
        "extracts", key, ExtractOptions, lambda parts: _prepare(corpus, options, limit, progress, parts), folder
    )


def _prepare(corpus, options: ExtractOptions, limit: int | None, progress: bool, parts: Path) -> PreparedCorpus:
    check_splits(corpus)
    texts = ((*document.sentences, *document.summary) for document in corpus.split("train", limit))
    pieces, splits = learn_pieces(texts, options, corpus.name, progress, "bpe"), {}
    for name in SPLITS:
        documents = watched(corpus.split(name, limit), f"{corpus.name}, {name}", progress)
        splits[name] = encode_split(parts, name, documents, partial(_labelled, options=options), pieces)
    return PreparedCorpus(corpus.name, TextEncoder(options, pieces), splits, corpus.report(), corpus.remarks())


def _labelled(documents: list[Document], pieces: Pieces, options: ExtractOptions) -> list[EncodedDocument]:
    return [labelled(document, pieces, options) for document in documents]


def right_sentences(document: Document, options: ExtractOptions) -> list[int]:
    """Numbers of the sentences that an extractor learns to choose, of those that it reads."""
    return matches(document.sentences[: options.sentences], document.summary, options.matches)


def labelled(document: Document, pieces: Pieces, options: ExtractOptions) -> EncodedDocument:
    """A training document: its sentences, and which of them are right."""
    if not document.summary:
        raise CorpusError(f"document {document.id!r} has no summary")
    return encode_sentences(options.example(document), pieces, options, right_sentences(document, options))


def encode_extracts(documents: Iterable[Document], encoder: TextEncoder) -> list[EncodedDocument]:
    """Texts, with or without a summary, as an extractor reads them. Raises ValueError for one without a sentence."""
    options = encoder.options
    return [encode_sentences(options.example(document), encoder.vocabulary, options) for document in documents]


def summary_sentences(corpus: PreparedCorpus) -> int:
    """Sentences that a summary of the training documents has on average, to the nearest whole one."""
    return max(1, round(float(np.mean([len(document.reference) for document in corpus["train"]]))))


# ----------------------------------------------------------------------------- sequences with extracted sentences


def prepare_sequences(
    corpus,
    options: SequenceOptions,
    limit: int | None = None,
    folder: str | Path | None = None,
    progress: bool = True,
) -> PreparedCorpus:
    """A corpus as TLM reads it. Kept in `folder`, by default in the cache, where its sentences and Sent-PTR are.

    Behind the introduction stand in training the sentences that are right, otherwise those that Sent-PTR chooses,
    which is trained on the same documents: so their paper found it to be best. The validation documents are read as
    those of the test are.
    """
    found = prepare_extracts(corpus, _of_extracts(options), limit, progress=progress)
    key = [found.fingerprint, corpus.identity, asdict(options), limit]

    def make(parts: Path) -> PreparedCorpus:
        return _sequences(corpus, options, limit, progress, parts, found)

    return cached_corpus("sequences", key, SequenceOptions, make, folder)


def _of_extracts(options: SequenceOptions) -> ExtractOptions:
    return ExtractOptions(**{f.name: getattr(options, f.name) for f in fields(ExtractOptions)})


def _sequences(
    corpus, options: SequenceOptions, limit: int | None, progress: bool, parts: Path, found: PreparedCorpus
) -> PreparedCorpus:
    pointer = train_pointer(found, options, progress) if options.extracts else None
    pieces: Any = found.vocabulary
    splits = {}
    for name in SPLITS:
        texts = watched(corpus.split(name, limit), f"{corpus.name}, {name}, as sequences", progress)
        pairs = zip(texts, _chosen(found[name], pieces, pointer if name != "train" else None), strict=True)
        encode = partial(_as_sequences, options=options, rest=name == "train")
        splits[name] = encode_split(parts, name, pairs, encode, pieces)
    weights = None if pointer is None else {n: v.cpu().numpy() for n, v in pointer.state_dict().items()}
    encoder = TextEncoder(options, pieces, ranker=weights)
    return PreparedCorpus(corpus.name, encoder, splits, found.report, found.remarks)


def _chosen(split: Sequence[EncodedDocument], pieces: Pieces, pointer: SentencePointer | None) -> Iterable[list[int]]:
    """Numbers of the sentences that stand for each document: by Sent-PTR, or those that are right."""
    if pointer is None:
        return (np.flatnonzero(document.labels).tolist() for document in split)  # type: ignore[arg-type]
    return choices(pointer, batches(pointer, split, 16, pieces))


def _as_sequences(
    pairs: list[tuple[Document, list[int]]], pieces: Pieces, options: SequenceOptions, rest: bool
) -> list[EncodedDocument]:
    return [encode_sequence(options.example(document), chosen, pieces, options, rest) for document, chosen in pairs]


def pointer_training(options: SequenceOptions) -> TrainConfig:
    """Adam, as Sent-PTR's is; its duration is not stated there."""
    return TrainConfig(
        batch_size=options.pointer_batch,
        steps=options.pointer_steps,
        learning_rate=options.pointer_rate,
        weight_decay=1e-5,
        validate_every=min(200, max(1, options.pointer_steps // 5)),
    )


def train_pointer(found: PreparedCorpus, options: SequenceOptions, progress: bool = True) -> SentencePointer:
    """The Sent-PTR of a corpus of sentences, with its best weights. Kept in the cache."""
    config = pointer_training(options)
    return train_in_cache("pointer", lambda: _pointer(found.vocabulary, options), found, config, progress)[0]


def _pointer(pieces: Vocabulary, options: SequenceOptions) -> SentencePointer:
    sizes = options.pointer_embedding, options.pointer_hidden, options.pointer_layers, options.pointer_dropout
    return SentencePointer(SentencePointerConfig(len(pieces), *sizes))


def encode_sequences(documents: Iterable[Document], encoder: TextEncoder) -> list[EncodedDocument]:
    """Texts, with or without a summary, as `prepare_sequences` encodes those that TLM is tested on. Raises ValueError
    for one without a sentence."""
    documents, options, pieces = list(documents), encoder.options, encoder.vocabulary
    found = encode_extracts(documents, encoder)
    chosen: Iterable[Sequence[int]] = [()] * len(found)
    if options.extracts:
        pointer = _pointer(pieces, options)
        pointer.load_state_dict({name: torch.from_numpy(value) for name, value in (encoder.ranker or {}).items()})
        chosen = _chosen(found, pieces, pointer.eval())
    return [encode_sequence(options.example(d), c, pieces, options) for d, c in zip(documents, chosen, strict=True)]
