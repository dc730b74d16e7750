"""A paper's own preprocessing, as named steps from a `Document` to words.

`cohan` is what Mem2Mem says of its data: "generally" the steps of Cohan et al. 2018 with 4 sections of 500 tokens and
200 summary tokens (facts of the paper's appendix A.2), lower-cased. `article` keeps the first words of a
text, as the windowed model does.
"""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lib.data.documents import Document
from lib.data.text import CLUSTER_SYMBOLS, SLIDE_SYMBOL, tokenize


@dataclass(frozen=True)
class CohanOptions:
    """Sizes of Cohan et al.'s preprocessing as Mem2Mem uses it."""

    sections: int = 4  # introduction, the next ones, conclusion
    section_tokens: int = 500
    summary_tokens: int = 200  # [EOS] counted in
    vocab_size: int = 50_000  # special symbols counted in
    lower: bool = True
    unit: str = "sentence"  # or "section": what an encoder reads before it reads the document

    def __post_init__(self):
        for name in ("sections", "section_tokens", "summary_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.unit not in ("sentence", "section"):
            raise ValueError(f"unit must be 'sentence' or 'section', not {self.unit!r}")
        if self.vocab_size < 5:
            raise ValueError(f"vocab_size must hold the four special symbols and a word, not {self.vocab_size}")

    @property
    def symbols(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class ArticleOptions:
    """Sizes of the windowed model's preprocessing, and how its reference summaries are marked."""

    source_tokens: int | None = 400  # None: the whole text
    summary_tokens: int = 100  # [EOS] counted in, [SLIDE] not
    vocab_size: int = 50_000  # special symbols and [SLIDE] counted in
    lower: bool = True
    window: int | None = None  # words; where given, [SLIDE] tells when to move on
    stride: int | None = None  # words by which the window moves
    aggregate: str = "sum"  # of word vectors to compare sentences: "sum" and cosine, or "mean" and dot product
    vectors: str = ""  # a file of word vectors; empty: learned from the training documents

    def __post_init__(self):
        if self.summary_tokens < 1 or (self.source_tokens is not None and self.source_tokens < 1):
            raise ValueError("source_tokens and summary_tokens must be at least 1")
        if self.vocab_size < 6:
            raise ValueError(f"vocab_size must hold five special symbols and a word, not {self.vocab_size}")
        if (self.window is None) != (self.stride is None):
            raise ValueError("window and stride are given both or not at all")
        if self.window is not None:
            check_window(self.window, self.stride)
        if self.aggregate not in ("sum", "mean"):
            raise ValueError(f"aggregate must be 'sum' or 'mean', not {self.aggregate!r}")

    @property
    def symbols(self) -> tuple[str, ...]:
        return (SLIDE_SYMBOL,)


@dataclass(frozen=True)
class HeadlineOptions:
    """Gigaword's preparation (Rush et al. 2015), for Read-Again: the first sentences, and a headline."""

    sentences: int = 1  # of the text; the paper also reads two
    source_tokens: int = 100
    summary_tokens: int = 50  # [EOS] counted in
    vocab_size: int = 15_000  # |Y|, the most frequent words of the headlines; special symbols counted in
    source_vocab_size: int = 110_000  # words that the encoder knows
    fewest: int = 5  # occurrences of a word in the training set, for the encoder to know it
    lower: bool = True
    digits: bool = True  # to be written as #
    filtered: bool = True  # training and validation pairs that the published filters drop are left out

    def __post_init__(self):
        for name in ("sentences", "source_tokens", "summary_tokens", "fewest"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if min(self.vocab_size, self.source_vocab_size) < 5:
            raise ValueError("vocab_size and source_vocab_size must hold the four special symbols and a word")

    @property
    def symbols(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class ClusterOptions:
    """Paragraphs of several documents in SentencePiece pieces (Liu and Lapata 2019, section 4)."""

    paragraphs: int = 24  # L', the best ones, besides the title
    source_tokens: int | None = None  # pieces of title and paragraphs together; None: all of them
    paragraph_tokens: int = 200  # pieces of one paragraph (not stated)
    paragraph_words: int = 100  # a longer section is cut into paragraphs at sentence ends (not stated)
    summary_tokens: int = 400  # [EOS] counted in
    vocab_size: int = 32_000  # pieces, shared by source and summary; special symbols counted in
    lower: bool = True
    clones: float = 0.8  # a paragraph with more of the summary's bigrams is a copy of it, and is left out
    ranking: str = "learned"  # "similarity": by tf-idf to the title; "order": as they come
    ranker_width: int = 256
    ranker_steps: int = 20_000  # not stated
    ranker_batch: int = 8  # clusters; not stated
    ranker_rate: float = 0.15  # of Adagrad
    graph: str = ""  # "similarity" or "discourse"
    flat: bool = False  # one sequence in place of paragraphs

    def __post_init__(self):
        for name in (
            "paragraphs",
            "paragraph_tokens",
            "paragraph_words",
            "summary_tokens",
            "ranker_width",
            "ranker_steps",
            "ranker_batch",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.ranking not in ("learned", "similarity", "order"):
            raise ValueError(f"ranking must be 'learned', 'similarity' or 'order', not {self.ranking!r}")
        if self.graph not in ("", "similarity", "discourse"):
            raise ValueError(f"graph must be 'similarity', 'discourse' or empty, not {self.graph!r}")
        if self.graph and self.flat:
            raise ValueError("a flat sequence has no paragraphs for a graph")

    @property
    def symbols(self) -> tuple[str, ...]:
        return CLUSTER_SYMBOLS


def check_window(window: int, stride: int) -> None:
    """ValueError unless every word is in a window of `window` words that moves on by `stride`."""
    if not 1 <= stride <= window:
        raise ValueError(f"a window of {window} words must move on by 1 to {window} words, not {stride}")


@dataclass(frozen=True)
class Example:
    """A document in words: `sentences` of the kept source, and the summary's words."""

    id: str
    sentences: list[list[str]]
    summary: list[str]
    reference: list[str]  # the summary's sentences as they were


def cohan(document: Document, options: CohanOptions) -> Example:
    """Keep introduction, middle sections and conclusion, cut each to its first tokens, and lower-case.

    A document without sections keeps its first `sections * section_tokens` tokens. Nothing is discarded: Cohan et
    al.'s reader leaves out documents with odd lengths, from the test set too.
    """
    if len(document.sections) == 1:
        kept, budget = document.sections, options.sections * options.section_tokens
    else:
        chosen = choose_sections(document.section_names, options.sections)
        kept, budget = [document.sections[i] for i in chosen], options.section_tokens
    sections = [_cut(section, budget, options.lower) for section in kept]
    if options.unit == "section":  # each stands as one sentence
        sections = [[[w for words in section for w in words]] for section in sections if section]
    sentences = [words for section in sections for words in section]
    summary = [w for s in document.summary for w in words_of(s, options.lower)]
    return Example(document.id, sentences, summary[: options.summary_tokens], document.summary)


def article(document: Document, options: ArticleOptions) -> Example:
    """The first words of the text, whatever its sections, and of the summary."""
    sentences = _cut(document.sentences, options.source_tokens or sys.maxsize, options.lower)
    summary = [w for s in document.summary for w in words_of(s, options.lower)]
    return Example(document.id, sentences, summary[: options.summary_tokens], document.summary)


def headline(document: Document, options: HeadlineOptions) -> Example:
    """The first sentences and the headline, lower-cased, digits as #. Clitics and marks are words, as in PTB."""

    def words(sentence: str) -> list[str]:
        if not options.digits:
            return words_of(sentence, options.lower)
        # a # that is there already stands for a digit, so that ##.# is one word
        return [re.sub(r"\d", "#", w) for w in words_of(sentence.replace("#", "0"), options.lower)]

    sentences, left = [], options.source_tokens
    for sentence in document.sentences[: options.sentences]:
        if kept := words(sentence)[:left]:
            sentences.append(kept)
            left -= len(kept)
    summary = [w for s in document.summary for w in words(s)]
    return Example(document.id, sentences, summary[: options.summary_tokens], document.summary)


@dataclass(frozen=True)
class Cluster:
    """Title, paragraphs and summary as texts."""

    id: str
    title: str
    paragraphs: list[str]
    sources: list[str]  # the document of each paragraph
    summary: list[str]  # sentences


def cluster(document: Document, options: ClusterOptions) -> Cluster:
    """Sections as paragraphs of at most `paragraph_words` words, without copies of the summary.

    Where every paragraph would be a copy, all are kept: there would be nothing to summarize.
    """
    paragraphs, sources = [], []
    for source, sentences in zip(document.section_names, document.sections):
        for part in _gather(sentences, options.paragraph_words):
            paragraphs.append(" ".join(part))
            sources.append(source)
    wanted = words_of(" ".join(document.summary), lower=True)
    copies = [bigram_recall(words_of(p, lower=True), wanted) > options.clones for p in paragraphs]
    kept = [i for i, copy in enumerate(copies) if not copy] or range(len(paragraphs))
    return Cluster(
        document.id, document.title, [paragraphs[i] for i in kept], [sources[i] for i in kept], document.summary
    )


def bigram_recall(paragraph: Sequence, summary: Sequence) -> float:
    """Share of the summary's bigrams that the paragraph has, each as often as it has it (ROUGE-2 recall)."""
    wanted, there = (Counter(pairwise(words)) for words in (summary, paragraph))
    return (wanted & there).total() / wanted.total() if wanted else 0.0


def _gather(sentences: list[str], words: int) -> list[list[str]]:
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


STEPS = {
    CohanOptions: cohan,
    ArticleOptions: article,
    HeadlineOptions: headline,
    ClusterOptions: cluster,
}  # options -> the function that takes them


def choose_sections(names: list[str], count: int) -> list[int]:
    """Which sections are kept, in order (Cohan et al. 2018).

    From the first whose name has "intro" to the last whose name has "conclu" (where there are any); of those the
    first, the ones after it, and the last: `count` in all.
    """
    lowered = [name.lower() for name in names]
    first = next((i for i, name in enumerate(lowered) if "intro" in name), 0)
    last = max((i for i, name in enumerate(lowered) if "conclu" in name), default=len(names) - 1)
    span = list(range(first, last + 1)) if first <= last else list(range(len(names)))
    if len(span) <= count:
        return span
    return [*span[: count - 1], span[-1]] if count > 1 else span[:1]


def words_of(sentence: str, lower: bool) -> list[str]:
    """Words of a sentence, in lower case if `lower`."""
    return tokenize(sentence.lower() if lower else sentence)


def _cut(section: list[str], budget: int, lower: bool) -> list[list[str]]:
    """Sentences in words until `budget` is used up; the last one may be cut."""
    kept = []
    for sentence in section:
        words = words_of(sentence, lower)[:budget]
        if words:
            kept.append(words)
            budget -= len(words)
        if budget <= 0:
            break
    return kept
