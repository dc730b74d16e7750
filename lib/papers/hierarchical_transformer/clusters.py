"""Clusters of paragraphs in pieces (Liu and Lapata 2019): all of them first, then the best of a ranking.

In a corpus of `ParagraphOptions` the first row of a document (a sentence in other corpora) is its title with `<T>`
after it, the others are its paragraphs in their order. `ranking` makes of it what a model reads.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lib.data.batch import EncodedDocument
from lib.data.documents import Document
from lib.data.options import PieceOptions, beginning, cased, summary_pieces, words_of
from lib.data.pieces import Pieces
from lib.data.tokenize import bigram_recall
from lib.data.vocabulary import PARAGRAPH_END, TITLE_END
from lib.system.errors import InputError
from lib.system.fields import Count, Share, checked


@dataclass(frozen=True)
class Cluster:
    """The paragraphs of a document."""

    paragraphs: list[str]
    sources: list[str]  # the document or section that each is from
    recalls: list[float]  # ROUGE-2 recall of the summary by each


# A corpus that comes ranked keeps its own paragraphs and pieces.
_IF_RANKED = {"lower": False, "clones": 1.0, "paragraph_words": sys.maxsize}


@checked
class ParagraphOptions(PieceOptions):
    """Title and all paragraphs of several documents in SentencePiece pieces (Liu and Lapata 2019, section 4)."""

    paragraph_tokens: Count = 200  # pieces of one paragraph (not stated)
    paragraph_words: Count = 100  # a longer section is cut into paragraphs at sentence ends (not stated)
    section_words: Count | None = None  # whole sentences of each section until there are so many; None: all
    summary_tokens: Count = 400
    vocab_size: int = 32_000  # pieces, shared by source and summary
    clones: Share = 0.8  # a paragraph with more of the summary's bigrams is a copy of it, and is left out
    lower: bool = False  # WikiSum's pieces are cased

    of_paragraphs = True

    def example(self, document: Document) -> Cluster:
        """Cut sections into paragraphs of at most `paragraph_words` words, and leave out copies of the summary,
        unless every paragraph is one."""
        paragraphs, sources = [], []
        for source, sentences in zip(document.section_names, document.sections):
            for part in _gather(beginning(sentences, self.section_words), self.paragraph_words):
                paragraphs.append(" ".join(part))
                sources.append(source)
        words = partial(words_of, lower=True, tokenised=document.tokenised)
        summary_words = words(" ".join(document.summary))
        recalls = [bigram_recall(words(p), summary_words) for p in paragraphs]
        kept = [i for i, recall in enumerate(recalls) if recall <= self.clones] or range(len(paragraphs))
        return Cluster([paragraphs[i] for i in kept], [sources[i] for i in kept], [recalls[i] for i in kept])

    def for_corpus(self, corpus) -> "ParagraphOptions":
        return replace(self, **_IF_RANKED) if corpus.ranked else self

    def texts(self, document: Document) -> Iterable[str]:
        return [document.title, *self.example(document).paragraphs, *document.summary]

    def encode_one(self, document: Document, pieces: Pieces) -> EncodedDocument:
        """Encode title and all paragraphs, to be ranked: the title's row ends in `<T>`."""
        cluster = self.example(document)
        if not cluster.paragraphs:
            raise InputError(f"document {document.id!r} has no paragraph: nothing is left to summarize")
        title, *paragraphs = pieces.encode(cased([document.title, *cluster.paragraphs], self))
        rows = [np.append(title[: self.paragraph_tokens - 1], TITLE_END)]
        rows += [row[: self.paragraph_tokens] if len(row) else np.array([PARAGRAPH_END]) for row in paragraphs]
        target = summary_pieces(document.summary, pieces, self)
        lengths, source = [len(row) for row in rows], np.concatenate(rows)
        encoded = EncodedDocument.of(document.id, source, lengths, target, (), document.summary, document.tokenised)
        return replace(encoded, labels=np.array(cluster.recalls, dtype=np.float32))


def _gather(sentences: Sequence[str], words: int) -> list[list[str]]:
    """Sentences in groups of at most `words` words; a longer sentence is a group of its own."""
    groups, count = [], words
    for sentence in sentences:
        length = len(sentence.split())
        if count + length > words:
            groups.append([])
            count = 0
        groups[-1].append(sentence)
        count += length
    return groups
