"""Corpora for the systems of Subramanian et al. (2020): sentences with labels for their extractors."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path

import numpy as np

from lib.data.batch import EncodedDocument
from lib.data.documents import SPLITS, CorpusError, Document
from lib.data.extracts import ExtractOptions, encode_sentences
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, TextEncoder, cached_corpus, chunked, code_of, watched
from lib.data.processes import default_workers, in_processes
from lib.data.split import Split
from lib.extractive import matches


def prepare_extracts(
    corpus, options: ExtractOptions, limit: int | None = None, progress: bool = True
) -> PreparedCorpus:
    """A corpus in byte pairs learned from its training documents, with the sentences that are to be extracted. Kept
    in the cache. Raises CorpusError for a document without a sentence or a summary."""
    key = [corpus.identity, code_of(type(corpus)), asdict(options), limit, code_of(matches)]
    return cached_corpus(
        "extracts", key, ExtractOptions, lambda parts: _prepare(corpus, options, limit, progress, parts)
    )


def _prepare(corpus, options: ExtractOptions, limit: int | None, progress: bool, parts: Path) -> PreparedCorpus:
    pieces = Pieces.train(_texts(corpus, options, limit), options.vocab_size, kind="bpe")
    splits = {}
    for name in SPLITS:
        documents = watched(corpus.split(name, limit), f"{corpus.name}, {name}", progress)
        chunks = in_processes(partial(_label_chunk, pieces.model, options), chunked(documents), default_workers())
        splits[name] = Split.write(parts, name, (d for chunk in chunks for d in chunk), len(pieces))
    return PreparedCorpus(corpus.name, TextEncoder(options, pieces), splits, corpus.report())


def _texts(corpus, options: ExtractOptions, limit: int | None) -> Iterator[str]:
    for document in corpus.split("train", limit):
        for text in (*document.sentences, *document.summary):
            yield text.lower() if options.lower else text


def _label_chunk(model: bytes, options: ExtractOptions, documents: list[Document]) -> list[EncodedDocument]:
    return [labelled(document, _pieces(model), options) for document in documents]


@cache
def _pieces(model: bytes) -> Pieces:
    """A process opens a SentencePiece model once."""
    return Pieces(model)


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
