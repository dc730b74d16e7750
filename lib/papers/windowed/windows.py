"""A text in windows, and summaries that say when to move to the next one (windowed attention; Schüller 2019).

Where a reference summary moves on is not known: each of its sentences is linked to the source sentence that is most
like it, and [SLIDE] is put wherever the linked sentences lie in a later window.
"""

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from lib.data.batch import EncodedDocument
from lib.data.documents import CorpusError, Document
from lib.data.options import Example, beginning, words_of
from lib.data.prepared import PreparedCorpus, WordOptions, cached_corpus
from lib.data.split import Split
from lib.data.vocabulary import EOS, PAD, SLIDE, SLIDE_SYMBOL, SPECIALS, Vocabulary
from lib.models.windowed import check_window, window_of
from lib.system.errors import InputError
from lib.system.fields import Count, Rule
from lib.system.fingerprints import contents_digest

_HOLDS_SLIDE = Rule("at least 6, to hold five special symbols and a word", lambda n: n > SLIDE + 1)


@dataclass(frozen=True)
class ArticleOptions(WordOptions):
    """Sizes of the windowed model's preprocessing, and how its reference summaries are marked."""

    source_tokens: Count | None = 400  # None: the whole text
    section_words: Count | None = None  # whole sentences of each section until there are so many; None: all
    summary_tokens: Count = 100  # [SLIDE] not counted in
    vocab_size: Annotated[int, _HOLDS_SLIDE] = 50_000  # [SLIDE] counted in
    window: int | None = None  # words; None: there is none
    stride: int | None = None  # words by which the window moves
    marks: bool = True  # whether [SLIDE] tells in the summaries when a window moves on
    aggregate: Literal["sum", "mean"] = "sum"  # of word vectors, to compare: by the cosine, or by the dot product
    vectors: str = ""  # a file of word vectors; empty: learned from the training documents

    def __post_init__(self):
        super().__post_init__()
        check_window(self.window, self.stride)

    @property
    def symbols(self) -> tuple[str, ...]:
        return (SLIDE_SYMBOL,)

    def example(self, document: Document) -> Example:
        """The first words of the text, or of each section and then of these, and of the summary."""
        sentences = [s for section in document.sections for s in beginning(section, self.section_words)]
        return self.with_summary(document, self.cut(sentences, self.source_tokens or sys.maxsize, document.tokenised))

    @property
    def marked(self) -> bool:
        """Whether [SLIDE] stands in the summaries."""
        return self.window is not None and self.marks

    def prepare(
        self, corpus, limit: int | None = None, folder: str | Path | None = None, progress: bool = True, **keep
    ) -> PreparedCorpus:
        """Prepare with [SLIDE] in the summaries where they are `marked`: then what has none is in the cache."""
        if not self.marked:
            return super().prepare(corpus, limit, folder, progress, **keep)
        plain = replace(self, window=None, stride=None).prepare(corpus, limit, progress=progress, **keep)
        read = Path(self.vectors)
        contents = contents_digest(read.parent, [read]) if read.is_file() else ""
        key = [plain.fingerprint, asdict(self), contents]
        return cached_corpus(
            "windows", key, ArticleOptions, lambda parts: with_transitions(plain, self, parts), folder
        )


# ----------------------------------------------------------------------------------------------------- word vectors


def learn_vectors(split: Split, vocab_size: int, width: int = 100, reach: int = 5, limit: int = 20_000) -> np.ndarray:
    """Word vectors [V, width] from the sources of at most `limit` documents: the positive pointwise mutual
    information of words up to `reach` apart, factorised (Levy and Goldberg 2014). Special symbols have zeros."""
    counts = _sparse(torch.zeros(2, 0, dtype=torch.long), torch.zeros(0).double(), vocab_size)
    for pairs in _pairs_of(split, vocab_size, reach, limit):
        counts = (counts + _sparse(pairs, torch.ones(pairs.shape[1]).double(), vocab_size)).coalesce()
    counts = (counts + counts.T).coalesce()
    (a, b), n = counts.indices(), counts.values()
    of_word = torch.sparse.sum(counts, 1).to_dense()
    information = torch.log(n * n.sum() / (of_word[a] * of_word[b])).clamp_min(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        matrix = _sparse(counts.indices(), information, vocab_size)
        u, s, _ = torch.svd_lowrank(matrix, q=min(width, vocab_size), niter=4)
    vectors = (u * s.sqrt()).numpy()
    vectors[: SLIDE + 1] = 0
    return vectors


def _sparse(indices: torch.Tensor, values: torch.Tensor, size: int) -> torch.Tensor:
    return torch.sparse_coo_tensor(indices, values, (size, size), check_invariants=True)


def _pairs_of(split: Split, vocab_size: int, reach: int, limit: int, chunk: int = 500) -> Iterator[torch.Tensor]:
    """Pairs [2, n] of words of the vocabulary that stand at most `reach` apart in one document."""
    gap = np.full(reach, vocab_size)
    for start in range(0, min(limit, len(split)), chunk):
        ids = [x for i in range(start, min(start + chunk, limit, len(split))) for x in (split[i].source, gap)]
        flat = np.concatenate(ids).astype(np.int64)
        pairs = np.concatenate([np.stack([flat[:-o], flat[o:]]) for o in range(1, reach + 1)], axis=1)
        inside = ((pairs > SLIDE) & (pairs < vocab_size)).all(0)
        yield torch.from_numpy(pairs[:, inside])


def read_vectors(path: str | Path, vocabulary: Vocabulary, limit: int = 200_000) -> np.ndarray:
    """Word vectors [V, width] from the first `limit` lines of a text file (`word x1 x2 ...`, as fastText writes);
    words that it does not have get zeros. Raises CorpusError with file and line."""
    ids, vectors = {word: i for i, word in enumerate(vocabulary.words)}, None
    if not Path(path).is_file():
        raise CorpusError(f"{path}: cannot be read; a file of word vectors, or none to learn them, is needed")
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in zip(range(1, limit + 1), lines):
            word, *values = line.rstrip().split(" ")
            if number == 1 and len(values) == 1:
                continue  # how many rows and columns follow
            vectors = np.zeros((len(vocabulary), len(values))) if vectors is None else vectors
            try:
                vectors[ids.get(word, PAD)] = np.array(values, dtype=float).reshape(vectors.shape[1])
            except ValueError:
                raise CorpusError(f"{path}, line {number}: not a word and {vectors.shape[1]} numbers") from None
    if vectors is None or not vectors[len(SPECIALS) :].any():
        raise CorpusError(f"{path}: no vector for any of the {len(vocabulary)} words of the vocabulary")
    vectors[: len(SPECIALS)] = 0
    return vectors


# ------------------------------------------------------------------------------------------------------- the links

Rows = tuple[np.ndarray, np.ndarray]  # sentences: ids [words] and lengths [sentences]


def similarities(summary: Rows, source: Rows, vectors: np.ndarray, aggregate: str = "sum") -> np.ndarray:
    """Similarities of each summary sentence and each source sentence: [S, L].

    Args:
        summary, source: ids without a vector count for nothing.
        aggregate: "sum", the cosine of summed vectors (the text); "mean", the dot product of the means of vectors of
            length 1 (the author's code).
    """
    if aggregate == "mean":
        vectors = _unit(vectors)
    a, b = (_summed(*sentences, vectors, aggregate == "mean") for sentences in (summary, source))
    return a @ b.T if aggregate == "mean" else _unit(a) @ _unit(b).T


def _unit(rows: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)


def _summed(ids: np.ndarray, lengths: np.ndarray, vectors: np.ndarray, mean: bool) -> np.ndarray:
    known = np.append(vectors, np.zeros((1, vectors.shape[1])), axis=0)
    rows = known[np.minimum(ids, len(vectors))]
    starts = np.cumsum(lengths) - lengths
    sums = np.add.reduceat(rows, starts)
    if mean:
        sums /= np.maximum(np.add.reduceat(rows.any(1).astype(float), starts), 1)[:, None]
    return sums


def link(document: EncodedDocument, lengths: np.ndarray, vectors: np.ndarray, options: ArticleOptions) -> np.ndarray:
    """The window that each summary sentence was written from, never an earlier one than the sentence before: [S].

    lengths: [S] of `target_sentences`. A sentence without a known word is linked to the first source sentence.
    Raises ValueError for options without a window.
    """
    if options.window is None or options.stride is None:
        raise InputError("sentences are linked to windows, and these options have none")
    summary = document.target[: lengths.sum()], lengths
    source = document.source, document.sentence_lengths
    best = similarities(summary, source, vectors, options.aggregate).argmax(1)
    ends = np.cumsum(document.sentence_lengths)
    starts, size = ends - document.sentence_lengths, len(document.source)
    windows = [window_of(int(starts[i]), int(ends[i]), size, options.window, options.stride) for i in best]
    return np.maximum.accumulate(windows)


def target_sentences(document: EncodedDocument, lower: bool) -> np.ndarray:
    """Words of each sentence of a target without [SLIDE]; what was cut off is not counted, nor is [EOS]."""
    words = len(document.target) - int(document.target[-1] == EOS)
    ends = np.cumsum([len(words_of(sentence, lower, document.tokenised)) for sentence in document.reference])
    lengths = np.diff(np.minimum(ends, words), prepend=0)
    return lengths[lengths > 0]


def mark_transitions(document: EncodedDocument, lengths: np.ndarray, windows: ArrayLike) -> EncodedDocument:
    """Put [SLIDE] before each sentence of the target, as often as its window is later than that of the one before."""
    starts = np.cumsum(lengths) - lengths
    places = np.repeat(starts, np.diff(windows, prepend=0))
    return replace(document, target=np.insert(document.target, places, SLIDE).astype(np.int32))


def with_transitions(plain: PreparedCorpus, options: ArticleOptions, parts: Path) -> PreparedCorpus:
    """A corpus with [SLIDE] in the summaries of every split, in files of `parts`; word vectors are read, or learned
    from "train"."""
    vectors = vectors_for(plain, options)

    def marked(document: EncodedDocument) -> EncodedDocument:
        lengths = target_sentences(document, options.lower)
        return mark_transitions(document, lengths, link(document, lengths, vectors, options))

    splits = {}
    for name, split in plain.splits.items():
        splits[name] = Split.write(parts, name, map(marked, split), len(plain.vocabulary) + split.longest)
    return replace(plain, encoder=replace(plain.encoder, options=options), splits=splits)


def vectors_for(corpus: PreparedCorpus, options: ArticleOptions) -> np.ndarray:
    """Word vectors [V, width]: the file that the options name, or learned from the training documents."""
    if options.vectors:
        return read_vectors(options.vectors, corpus.vocabulary)
    return learn_vectors(corpus["train"], len(corpus.vocabulary))
