"""Options that the preprocessing of every paper shares: they turn a corpus and texts into what a model reads. Each
paper's own stand in its folder."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

from lib.data.characters import clean, lowered
from lib.data.documents import Document
from lib.data.words import split_words, surfaces, tokenize, word_spans
from lib.system.fields import Count, checked


@dataclass(frozen=True)
class Example:
    """A document in words: `sentences` of the source as it was cut, and the summary's words."""

    id: str
    sentences: list[list[str]]
    summary: list[str]
    reference: list[str]  # the summary's sentences as they were
    tokenised: bool = False  # as the document's texts

    @property
    def words(self) -> list[str]:
        """Words of the source, sentence by sentence."""
        return [word for sentence in self.sentences for word in sentence]


@checked
class Options(ABC):
    """Sizes of a paper's preprocessing, as values that JSON can hold. They raise ValueError for what cannot be."""

    summary_tokens: Count  # [EOS] counted in
    vocab_size: int  # special symbols counted in
    lower: bool = True

    of_paragraphs: ClassVar[bool] = False  # whether a text is a cluster of paragraphs

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols that the vocabulary has after the special ones."""
        return ()

    @property
    def of_corpus(self) -> tuple[str, ...]:
        """Fields that are the corpus's own, whatever was asked for."""
        return ()

    @abstractmethod
    def example(self, document: Document) -> Any:
        """A document as a model reads it: an `Example`, or the `Cluster` of the hierarchical transformer."""

    @abstractmethod
    def prepare(
        self, corpus, limit: int | None = None, folder: str | Path | None = None, progress: bool = True
    ) -> Any:
        """A `PreparedCorpus`: every split of a `lib.data.corpora.Corpus` as a model reads it, of each at most `limit`
        documents. It is saved in `folder`, by default in the cache, and loaded from there the next time. Raises
        CorpusError for a corpus that cannot be read, or is none for a model of these options."""

    @abstractmethod
    def encode(self, documents: Iterable[Document], encoder: Any) -> list[Any]:
        """An `EncodedDocument` of each text, with or without a summary, as `prepare` makes them of a corpus; without
        one the target is [EOS]. Raises ValueError for a text of which nothing is left to read.

        encoder: the corpus's `TextEncoder`.
        """

    def check(self, name: str, examples: Iterable[Any]) -> None:  # noqa: B027
        """Raise CorpusError where a corpus that begins with these training documents (as `example` gives them) is
        none for a model of these options."""

    def words(self, sentence: str, tokenised: bool = False) -> list[str]:
        """Words of a sentence of a document, as `words_of` has them."""
        return words_of(sentence, self.lower, tokenised)

    def surfaces(self, sentence: str, tokenised: bool = False) -> list[str]:
        """Return each of the `words` as the sentence writes it, with the space before it."""
        text = clean(sentence)
        return surfaces(text, word_spans(text, tokenised))

    def cut(self, sentences: Iterable[str], budget: int, tokenised: bool = False) -> list[list[str]]:
        """Sentences in words until `budget` is used up; the last one may be cut."""
        cut_sentences = []
        for sentence in sentences:
            words = self.words(sentence, tokenised)[:budget]
            if words:
                cut_sentences.append(words)
                budget -= len(words)
            if budget <= 0:
                break
        return cut_sentences

    def with_summary(self, document: Document, sentences: list[list[str]]) -> Example:
        """A document of these `sentences`, and of the words of its summary up to `summary_tokens`."""
        summary = [word for sentence in document.summary for word in self.words(sentence, document.tokenised)]
        summary = summary[: self.summary_tokens]
        return Example(document.id, sentences, summary, document.summary, document.tokenised)


def beginning(sentences: Sequence[str], words: int | None) -> Sequence[str]:
    """Whole sentences until there are `words`, counted by white space; None: all of them."""
    if words is None:
        return sentences
    before = accumulate((len(sentence.split()) for sentence in sentences), initial=0)
    return [sentence for sentence, count in zip(sentences, before) if count < words]


def words_of(sentence: str, lower: bool, tokenised: bool = False) -> list[str]:
    """Words of a sentence, in lower case if `lower`; of a `tokenised` one what stands between spaces."""
    sentence = lowered(sentence) if lower else sentence
    return split_words(sentence) if tokenised else tokenize(sentence)
