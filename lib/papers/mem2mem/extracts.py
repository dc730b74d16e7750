"""Papers in pieces, for extractors and for a language model behind them (Subramanian et al. 2020).

An extractor reads sentences (`encode_sentences`), a language model a sequence (`encode_sequence`): introduction,
extracted sentences, summary, and in training the rest of the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from lib.data.batch import EncodedDocument
from lib.data.documents import Document
from lib.data.options import Options
from lib.data.piece_corpora import cased, summary_pieces
from lib.data.pieces import Pieces
from lib.data.text import CLUSTER_SYMBOLS, PARAGRAPH_END, UNK
from lib.papers.mem2mem.sections import choose_sections
from lib.system.errors import InputError


@dataclass(frozen=True)
class Article:
    """A paper in sentences, and which of them are its introduction."""

    id: str
    sentences: list[str]
    introduction: range
    summary: list[str]  # sentences


@dataclass(frozen=True)
class ExtractOptions(Options):
    """What Sent-CLF and Sent-PTR read: sentences in byte pairs, which summaries share."""

    sentences: int = 300  # of a paper, the first ones
    matches: int = 2  # sentences of the paper that stand for each of the summary's
    summary_tokens: int = 300  # not stated
    vocab_size: int = 50_257  # 40,000 merges and the characters; in all as many as give TLM its 220M parameters

    def __post_init__(self):
        self._at_least_one("sentences", "matches", "summary_tokens")

    @property
    def symbols(self) -> tuple[str, ...]:
        return CLUSTER_SYMBOLS

    def example(self, document: Document) -> Article:
        """Everything of the document: the introduction is the first section that is called one, or the first."""
        (number,) = choose_sections(document.section_names, 1)
        before = sum(len(section) for section in document.sections[:number])
        opening = range(before, before + len(document.sections[number]))
        return Article(document.id, document.sentences, opening, document.summary)


@dataclass(frozen=True)
class SequenceOptions(ExtractOptions):
    """What TLM reads, and the Sent-PTR that extracts for it."""

    window: int = 1024  # pieces of a sequence
    extracts: bool = True  # whether extracted sentences stand behind the introduction
    extract_tokens: int = 300  # at most; not stated
    rest_tokens: int | None = None  # of the rest of a paper, in training; None: all
    pointer_embedding: int = 300
    pointer_hidden: int = 512
    pointer_layers: int = 2
    pointer_dropout: float = 0.5
    pointer_steps: int = 20_000  # not stated: until 50 validations, 200 steps apart, bring nothing
    pointer_batch: int = 32
    pointer_rate: float = 1e-3

    def __post_init__(self):
        super().__post_init__()
        self._at_least_one("extract_tokens", "pointer_embedding", "pointer_hidden", "pointer_layers")
        self._at_least_one("pointer_steps", "pointer_batch")
        if self.rest_tokens is not None and self.rest_tokens < 0:
            raise InputError(f"rest_tokens must be at least 0, not {self.rest_tokens}")
        if not 0 <= self.pointer_dropout <= 1:
            raise InputError(f"pointer_dropout must be in [0, 1], not {self.pointer_dropout}")
        least = self.summary_tokens + 1 + self.extracts * (self.extract_tokens + 1)
        if self.window < least:
            raise InputError(
                f"a window of {self.window} pieces has no room for an introduction beside the summary and the "
                f"extracted sentences: it must be at least {least}"
            )


def encode_sentences(
    article: Article, pieces: Pieces, options: ExtractOptions, labels: Sequence[int] | None = None
) -> EncodedDocument:
    """Pieces of the first sentences, and of the summary with `<Q>` between its sentences; without one, [EOS].

    labels: numbers of the sentences that are right. Raises ValueError for an article without a sentence.
    """
    if not article.sentences:
        raise InputError(f"document {article.id!r} has no sentence: nothing is left to summarize")
    rows = _rows(article.sentences[: options.sentences], pieces, options)
    lengths = [len(row) for row in rows]
    target = summary_pieces(article.summary, pieces, options)
    made = EncodedDocument.of(article.id, np.concatenate(rows), lengths, target, (), article.summary)
    return made if labels is None else replace(made, labels=np.isin(np.arange(len(rows)), labels).astype(np.float32))


def encode_sequence(
    article: Article, chosen: Sequence[int], pieces: Pieces, options: SequenceOptions, rest: bool = False
) -> EncodedDocument:
    """The first row is what the summary is written from: the introduction, cut to what the window leaves it, `<P>`,
    and the `chosen` sentences in their order. The others, if `rest`, are windows of what it leaves out."""
    rows, found = _rows(article.sentences, pieces, options), []
    if options.extracts:
        extract = [piece for i in chosen for piece in rows[i].tolist()]
        found = [PARAGRAPH_END, *extract[: options.extract_tokens]]
    opening = list(chain.from_iterable(rows[i].tolist() for i in article.introduction))
    others = (rows[i].tolist() for i in range(len(rows)) if i not in article.introduction)
    room = options.window - options.summary_tokens - len(found)
    left = [*opening[room:], *chain.from_iterable(others)][: options.rest_tokens] if rest else []
    windows = [left[start : start + options.window] for start in range(0, len(left), options.window)]
    lengths = [len(opening[:room]) + len(found), *map(len, windows)]
    target = summary_pieces(article.summary, pieces, options)
    return EncodedDocument.of(article.id, [*opening[:room], *found, *left], lengths, target, (), article.summary)


def _rows(sentences: Sequence[str], pieces: Pieces, options: Options) -> list[np.ndarray]:
    """Pieces of each sentence; one of which nothing is left is [UNK]."""
    return [row if len(row) else np.array([UNK]) for row in pieces.encode(cased(sentences, options))]
