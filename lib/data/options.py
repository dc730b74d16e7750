"""Options of preprocessing, of which each paper has its own.

They turn a corpus and texts into what a model reads, in words or in SentencePiece pieces.
"""

import json
import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from lib.data.batch import NOWHERE, EncodedDocument, rows_of
from lib.data.characters import clean, lowered
from lib.data.documents import SPLITS, CorpusError, Document, Example
from lib.data.pieces import Pieces
from lib.data.prepared import PreparedCorpus, TextEncoder, prepare, watched
from lib.data.split import Split
from lib.data.tokenize import split_words, surfaces, tokenize, word_spans
from lib.data.vocabulary import CLUSTER_SYMBOLS, EOS, SENTENCE_END, Vocabulary
from lib.system.errors import InputError
from lib.system.processes import default_workers, in_processes
from lib.system.settings import Count, checked


@checked
class Options(ABC):
    """Sizes of a paper's preprocessing, as values that JSON can hold. They raise ValueError for
    impossible ones."""

    summary_tokens: Count  # [EOS] counted in
    vocab_size: int  # special symbols counted in
    lower: bool = True
    # whether a longer summary is cut behind its last whole sentence, and ends with [EOS] there;
    # what has no end mark behind the last sentence, such as keywords, is left out
    whole_sentences: bool = False

    of_paragraphs: ClassVar[bool] = False  # whether a text is a cluster of paragraphs
    symbols: ClassVar[tuple[str, ...]] = ()  # that the vocabulary has after the special ones

    def for_corpus(self, corpus) -> "Options":
        """Take over what a corpus determines. Raises CorpusError where it lacks what the options
        need."""
        return self

    @property
    def base(self) -> "Options | None":
        """Options of the prepared corpus that these make another one of; None: it is made of the
        texts."""
        return None

    @property
    def outside(self) -> str:
        """Name what else determines the corpus, such as the contents of a file."""
        return ""

    def prepare(self, corpus, limit: int | None = None, progress: bool = True) -> PreparedCorpus:
        """Encode every split of a `lib.data.corpus.Corpus` as a model reads it, of each at most
        `limit` documents.

        The result is saved in the cache, and loaded from there the next time. Raises CorpusError
        for a corpus that cannot be read, or is none for a model of these options.
        """
        options = self.for_corpus(corpus)
        base = options.base.prepare(corpus, limit, progress=progress) if options.base else None
        key = [corpus.identity, limit, options.outside]

        def make(folder: Path) -> PreparedCorpus:
            # a missing split or a bad first record is found before hours go into the others
            for name in SPLITS:
                next(corpus.split(name))
            return options.make(corpus, base, limit, progress, folder)

        return prepare(corpus.name, options, key, make)

    @abstractmethod
    def make(
        self, corpus, base: PreparedCorpus | None, limit: int | None, progress: bool, folder: Path
    ) -> Any:
        """Make what `prepare` returns, a `PreparedCorpus`, with the files of its splits in
        `folder`."""

    @abstractmethod
    def encode(self, documents: Iterable[Document], encoder: TextEncoder) -> list[Any]:
        """Encode texts, with or without a summary, as `prepare` does it for a corpus; without one
        the target is [EOS]. Raises ValueError for a text of which nothing is left to read."""

    def words(self, sentence: str, tokenised: bool = False) -> list[str]:
        """Words of a sentence of a document, as `words_of` has them."""
        return words_of(sentence, self.lower, tokenised)

    def spans(self, sentence: str, tokenised: bool = False) -> list[tuple[int, int]]:
        """Start and end of each of the `words` in a sentence."""
        return word_spans(lowered(sentence) if self.lower else sentence, tokenised)

    def surfaces(self, sentence: str, tokenised: bool = False) -> list[str]:
        """Return each of the `words` as the sentence writes it, with the space before it."""
        text = clean(sentence)
        return surfaces(text, self.spans(text, tokenised))

    def with_summary(self, document: Document, sentences: list[list[str]]) -> Example:
        """A document of these `sentences`, and of the words of its summary that a model learns.
        Raises InputError where there is no sentence."""
        if not sentences:
            raise InputError(f"document {document.id!r} has no words: nothing is left to summarize")
        reference = finished(document.summary) if self.whole_sentences else document.summary
        own = [self.words(sentence, document.tokenised) for sentence in reference]
        summary = self.cut_summary(own)
        return Example(document.id, sentences, summary, document.summary, document.tokenised)

    def cut_summary(self, sentences: Sequence[list]) -> list:
        """Words or pieces of the sentences of a summary, up to `summary_tokens` with [EOS]; whole
        sentences only where the options ask for it, and where the first one is not too long."""
        if self.whole_sentences:
            ends = list(accumulate(map(len, sentences)))
            sentences = sentences[: max(1, bisect_left(ends, self.summary_tokens))]
        return list(chain.from_iterable(sentences))[: self.summary_tokens]


_END = re.compile(r"""[.?!。！？…۔।][\"'”’»›)\]]*\s*$""")


def finished(sentences: Sequence[str]) -> Sequence[str]:
    """Leave out what stands behind the last sentence with an end mark; nothing where no sentence
    has one."""
    ends = [number for number, text in enumerate(sentences, start=1) if _END.search(text)]
    return sentences[: ends[-1]] if ends else sentences


class Part(NamedTuple):
    """A part of a document that is read."""

    sentences: Sequence[int]  # numbers, in the order of reading
    words: int  # at most


@checked
class WordOptions(Options):
    """Options of models that read and write words."""

    @abstractmethod
    def parts(self, document: Document) -> list[Part]:
        """Parts of a document that a model reads, in their order."""

    def cut(self, document: Document) -> list[list[tuple[int, list[str]]]]:
        """Cut each part to its words: the number and the words of its sentences, the last one of
        which may be cut."""
        sentences = document.sentences
        cut_parts = []
        for part in self.parts(document):
            cut_parts.append([])
            budget = part.words
            for number in part.sentences:
                words = self.words(sentences[number], document.tokenised)[:budget]
                if words:
                    cut_parts[-1].append((number, words))
                    budget -= len(words)
                if budget <= 0:
                    break
        return cut_parts

    def rows(self, parts: list[list[tuple[int, list[str]]]]) -> list[list[str]]:
        """Rows of words that a model encodes, in the order of the parts: sentences."""
        return [words for part in parts for _, words in part]

    def example(self, document: Document) -> Example:
        """Make of a document what a model reads of it, in words."""
        return self.with_summary(document, self.rows(self.cut(document)))

    def keeps(self, split_name: str, example: Example) -> bool:
        """Whether a document stays in its split."""
        return True

    def learn_encoder(self, source: Counter, summary: Counter) -> TextEncoder:
        """Learn the vocabulary from the counts of words in the training documents."""
        return TextEncoder(
            self, Vocabulary.from_counts(source + summary, self.vocab_size, self.symbols)
        )

    def make(self, corpus, base, limit, progress, folder) -> PreparedCorpus:
        """Two passes: documents to words, by several processes, in files of JSON lines; then words
        to ids."""
        source, summary, longest, left_out = (
            Counter(),
            Counter(),
            dict.fromkeys(SPLITS, 0),
            Counter(),
        )
        for name in SPLITS:
            documents = watched(corpus.split(name, limit), f"{corpus.name}, {name}", progress)
            with open(folder / f"{name}.words", "w", encoding="utf-8") as file:
                for example in in_processes(self.example, documents, default_workers()):
                    if not example.summary:
                        raise CorpusError(f"document {example.id!r} has no words in its summary")
                    if not self.keeps(name, example):
                        left_out[name] += 1
                        continue
                    file.write(json.dumps(list(vars(example).values()), ensure_ascii=False) + "\n")
                    longest[name] = max(longest[name], len(example.words))
                    if name == "train":
                        source.update(example.words)
                        summary.update(example.summary)

        known, splits = corpus.encoder, {}
        encoder = replace(known, options=self) if known else self.learn_encoder(source, summary)
        largest = max(len(encoder.vocabulary), len(encoder.source_vocabulary or ()))
        for name in SPLITS:
            words = folder / f"{name}.words"
            with open(words, encoding="utf-8") as lines:
                encoded = (encoder.encode_example(Example(*json.loads(line))) for line in lines)
                splits[name] = Split.write(folder, name, encoded, largest + longest[name])
            words.unlink()
        filtered = f" Left out by the filters: {dict(left_out)}." if left_out else ""
        return PreparedCorpus(
            corpus.name, encoder, splits, corpus.report() + filtered, corpus.remarks()
        )

    def encode(self, documents: Iterable[Document], encoder: TextEncoder) -> list[Any]:
        return [self._encode_text(document, encoder) for document in documents]

    def _encode_text(self, document: Document, encoder: TextEncoder) -> EncodedDocument:
        parts = self.cut(document)
        encoded = encoder.encode_example(self.with_summary(document, self.rows(parts)))
        sentences = document.sentences
        starts = [start for start, _ in document.places]
        places: list[tuple[int, int]] = []
        for number, words in chain.from_iterable(parts):
            spans = self.spans(sentences[number], document.tokenised)[: len(words)]
            places += [(starts[number] + start, starts[number] + end) for start, end in spans]
        return replace(encoded, places=np.array(places))


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

    @abstractmethod
    def row_places(self, document: Document) -> list[tuple[int, int]]:
        """Start and end in `Document.text` of each text that `encode_one` makes a row of."""

    def encode(self, documents: Iterable[Document], encoder: TextEncoder) -> list[Any]:
        return [self._encode_text(document, encoder.vocabulary) for document in documents]

    def _encode_text(self, document: Document, pieces: Pieces) -> EncodedDocument:
        encoded = self.encode_one(document, pieces)
        rows = zip(self.row_places(document), rows_of(encoded))
        return replace(encoded, places=piece_places(document, rows, pieces, self))

    def make(self, corpus, base, limit, progress, folder) -> PreparedCorpus:
        pieces, splits = corpus.pieces, {}
        if corpus.encoder:
            pieces = corpus.encoder.vocabulary
        if pieces is None:
            documents = watched(
                corpus.split("train", limit), f"{corpus.name}, train, read for pieces", progress
            )
            texts = (text for document in documents for text in cased(self.texts(document), self))
            pieces = Pieces.train(texts, self.vocab_size, kind=self.kind)
        for name in SPLITS:
            documents = watched(corpus.split(name, limit), f"{corpus.name}, {name}", progress)
            splits[name] = encode_split(folder, name, documents, self.encode_training, pieces)
        return PreparedCorpus(
            corpus.name, TextEncoder(self, pieces), splits, corpus.report(), corpus.remarks()
        )


def beginnings(document: Document, words: int | None) -> list[list[int]]:
    """Numbers of the sentences with which each section begins: whole ones until there are `words`,
    counted by white space; None: all of them."""
    numbers, first = [], 0
    for section in document.sections:
        before = accumulate((len(sentence.split()) for sentence in section), initial=0)
        count = sum(words is None or read < words for read, _ in zip(before, section))
        numbers.append(list(range(first, first + count)))
        first += len(section)
    return numbers


def words_of(sentence: str, lower: bool, tokenised: bool = False) -> list[str]:
    """Words of a sentence, in lower case if `lower`; of a `tokenised` one those between spaces."""
    sentence = lowered(sentence) if lower else sentence
    return split_words(sentence) if tokenised else tokenize(sentence)


def cased(texts: Iterable[str], options: Options) -> list[str]:
    """The texts, in lower case where the options ask for it."""
    return [lowered(text) for text in texts] if options.lower else list(texts)


def summary_pieces(summary: Sequence[str], pieces: Pieces, options: Options) -> list[int]:
    """Pieces of a summary: `<Q>` between sentences, [EOS] after the last, up to
    `summary_tokens`."""
    summary = finished(summary) if options.whole_sentences else summary
    first, *others = pieces.encode(cased(summary, options)) or [np.array([], dtype=int)]
    rows = [first.tolist(), *([SENTENCE_END, *row.tolist()] for row in others)]
    return [*options.cut_summary(rows), EOS][: options.summary_tokens]


def piece_places(
    document: Document,
    rows: Iterable[tuple[tuple[int, int], np.ndarray]],
    pieces: Pieces,
    options: Options,
) -> np.ndarray:
    """Find the place of each piece in `Document.text`: [N, 2].

    rows: start and end of a text, and the pieces with which it begins, among symbols.
    """
    (text,) = cased([document.text], options)
    places = []
    for (start, end), ids in rows:
        spans = pieces.spans(text[start:end])[: len(ids)]
        own = np.full((len(ids), 2), NOWHERE)
        own[: len(spans)] = np.array(spans).reshape(-1, 2) + start
        own[pieces.are_symbols(ids)] = NOWHERE
        places.append(own)
    return np.concatenate(places)


def encode_split(
    folder: Path, name: str, texts: Iterable, encode: Callable[..., EncodedDocument], pieces: Pieces
) -> Split:
    """Encode the texts of a split by several processes. `encode` must be picklable."""
    encoded = in_processes(partial(encode, pieces=pieces), texts, default_workers())
    return Split.write(folder, name, encoded, max_id=2**31 - 1)
