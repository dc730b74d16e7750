"""Preprocessing in pieces: learned from the training documents, shared by source and summary."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from lib.data.batch import EncodedDocument
from lib.data.characters import lowered
from lib.data.documents import SPLITS, Document
from lib.data.options import Options
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, TextEncoder, check_splits, watched
from lib.data.split import Split
from lib.data.vocabulary import CLUSTER_SYMBOLS, EOS, SENTENCE_END
from lib.system.fields import checked
from lib.system.processes import default_workers, in_processes


@checked
class PieceOptions(Options):
    """Options of models that read and write SentencePiece pieces."""

    symbols: ClassVar[tuple[str, ...]] = CLUSTER_SYMBOLS
    kind: ClassVar[str] = "unigram"  # SentencePiece's model, or "bpe" (byte pairs)

    @abstractmethod
    def texts(self, document: Document) -> Iterable[str]:
        """Texts of a training document that pieces are learned from."""

    @abstractmethod
    def encode_one(self, document: Document, pieces: Pieces) -> EncodedDocument:
        """Encode a text, with or without a summary."""

    def encode_training(self, document: Document, pieces: Pieces) -> EncodedDocument:
        """Encode a document of a corpus, with the labels that a model learns."""
        return self.encode_one(document, pieces)

    def encode(self, documents: Iterable[Document], encoder: TextEncoder) -> list[Any]:
        return [self.encode_one(document, encoder.vocabulary) for document in documents]

    def make(self, corpus, base, limit, progress, folder) -> PreparedCorpus:
        check_splits(corpus)
        pieces, splits = corpus.pieces, {}
        if pieces is None:
            documents = watched(corpus.split("train", limit), f"{corpus.name}, train, read for pieces", progress)
            texts = (text for document in documents for text in cased(self.texts(document), self))
            pieces = Pieces.train(texts, self.vocab_size, kind=self.kind)
        for name in SPLITS:
            documents = watched(corpus.split(name, limit), f"{corpus.name}, {name}", progress)
            splits[name] = encode_split(folder, name, documents, self.encode_training, pieces)
        return PreparedCorpus(corpus.name, TextEncoder(self, pieces), splits, corpus.report(), corpus.remarks())


def cased(texts: Iterable[str], options: Options) -> list[str]:
    """The texts, in lower case where the options ask for it."""
    return [lowered(text) for text in texts] if options.lower else list(texts)


def summary_pieces(summary: Sequence[str], pieces: Pieces, options: Options) -> list[int]:
    """Pieces of a summary: `<Q>` between sentences, [EOS] after the last, cut to `summary_tokens`."""
    ids = [i for row in pieces.encode(cased(summary, options)) for i in (*row.tolist(), SENTENCE_END)]
    return [*ids[:-1], EOS][: options.summary_tokens]


def encode_split(
    folder: Path, name: str, texts: Iterable, encode: Callable[..., EncodedDocument], pieces: Pieces
) -> Split:
    """Encode the texts of a split by several processes. `encode` must be picklable."""
    encoded = in_processes(partial(encode, pieces=pieces), texts, default_workers())
    return Split.write(folder, name, encoded, max_id=2**31 - 1)
