"""A text in windows, and summaries that say when to move to the next one (windowed attention;
Schüller 2019).

Where a reference summary moves on is not known: each of its sentences is linked to the source
sentence that is most like it, and [SLIDE] is put wherever the linked sentences lie in a later
window.
"""

import sys
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from pydantic import Field

from lib.data.batch import EncodedDocument
from lib.data.corpora import Corpus
from lib.data.documents import Document
from lib.data.options import Part, WordOptions, beginnings
from lib.data.prepared import PreparedCorpus
from lib.data.split import Split
from lib.data.vocabulary import SLIDE, SLIDE_SYMBOL
from lib.data.word_vectors import learn_vectors, read_vectors, similarities, target_sentences
from lib.models.windowed import Windowed, WindowedConfig, check_window, window_of
from lib.system.errors import InputError
from lib.system.fingerprints import files_digest
from lib.system.settings import Count, checked

_HOLDS_SLIDE = Field(ge=SLIDE + 2)  # a vocabulary of the special symbols, [SLIDE] and a word


@checked
class ArticleOptions(WordOptions):
    """Sizes of the windowed model's preprocessing, and how its reference summaries are marked."""

    symbols: ClassVar[tuple[str, ...]] = (SLIDE_SYMBOL,)
    source_tokens: Count | None = 400  # None: the whole text
    # whole sentences of each section until there are so many; None: all
    section_words: Count | None = None
    summary_tokens: Count = 100  # [SLIDE] not counted in
    vocab_size: Annotated[int, _HOLDS_SLIDE] = 50_000  # [SLIDE] counted in
    window: int | None = None  # words; None: there is none
    stride: int | None = None  # words by which the window moves
    marks: bool = True  # whether [SLIDE] marks in the summaries where a window moves on
    # how sentences choose their windows: see `link`
    links: Literal["never back", "best path"] = "never back"
    vectors: str = ""  # a file of word vectors; empty: learned from the training documents
    start_from_vectors: bool = False  # whether the model's embeddings start from them, too

    def __post_init__(self):
        check_window(self.window, self.stride)

    def parts(self, document: Document) -> list[Part]:
        """The first words of the text, or of the beginnings of its sections."""
        numbers = beginnings(document, self.section_words)
        return [Part(list(chain.from_iterable(numbers)), self.source_tokens or sys.maxsize)]

    @property
    def marked(self) -> bool:
        """Return whether the summaries contain [SLIDE]."""
        return self.window is not None and self.marks

    def mark(self, document: EncodedDocument, vectors: np.ndarray) -> EncodedDocument:
        """Put [SLIDE] into the target where its sentences are linked to a later window; vectors: of
        words, [V, width]."""
        lengths = target_sentences(document, self.lower)
        return mark_transitions(document, lengths, link(document, lengths, vectors, self))

    @property
    def base(self) -> "ArticleOptions | None":
        """Marked summaries are made of the prepared corpus without marks."""
        return replace(self, window=None, stride=None, links="never back") if self.marked else None

    @property
    def outside(self) -> str:
        file = Path(self.vectors)
        return files_digest(file.parent, [file]) if file.is_file() else ""

    def make(
        self,
        corpus: Corpus,
        base: PreparedCorpus | None,
        limit: int | None,
        progress: bool,
        folder: Path,
    ) -> PreparedCorpus:
        """Put [SLIDE] into the summaries of a corpus without it, or make such a corpus."""
        if base is None:
            return super().make(corpus, base, limit, progress, folder)
        vectors = vectors_for(base, self)
        splits = {}
        for name, split in base.splits.items():
            marked = (self.mark(document, vectors) for document in split)
            splits[name] = Split.write(folder, name, marked, len(base.vocabulary) + split.longest)
        return replace(base, encoder=replace(base.encoder, options=self), splits=splits)


# ---------------------------------------------------------------------------------
# the links


def link(
    document: EncodedDocument, lengths: np.ndarray, vectors: np.ndarray, options: ArticleOptions
) -> np.ndarray:
    """The window that each summary sentence was written from, never an earlier one than the
    sentence before: [S].

    lengths: [S] of `target_sentences`. A sentence without a known word is linked to the first
    source sentence.
    """
    summary = document.target[: lengths.sum()], lengths
    source = document.source, document.sentence_lengths
    similar = similarities(summary, source, vectors)
    assert options.window and options.stride  # only a text with windows is linked to them
    windows = windows_of(document, options.window, options.stride)
    if options.links == "best path":
        return best_path(similar, windows)
    # The window of the most similar sentence, but never back.
    return np.maximum.accumulate(windows[similar.argmax(1)])


def windows_of(document: EncodedDocument, window: int, stride: int) -> np.ndarray:
    """Find the window of each source sentence: [L]."""
    words = len(document.source)
    ends = np.cumsum(document.sentence_lengths)
    starts = ends - document.sentence_lengths
    windows = []
    for start, end in zip(starts.tolist(), ends.tolist()):
        windows.append(window_of(start, end, words, window, stride))
    return np.array(windows)


def best_path(similar: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Find the windows of S sentences that never go back and have the largest sum of similarities
    (Viterbi).

    similar: [S, L], to source sentences of `windows` [L].
    """
    scores = np.full((len(similar), windows.max() + 1), -np.inf)
    for window in set(windows.tolist()):
        scores[:, window] = similar[:, windows == window].max(1)
    # The sums of the best paths to each window, sentence by sentence.
    totals = list(accumulate(scores, lambda best, row: row + np.maximum.accumulate(best)))
    path = [int(windows.max())]
    for total in reversed(totals):
        path.append(int(total[: path[-1] + 1].argmax()))
    return np.array(path[:0:-1])


def mark_transitions(
    document: EncodedDocument, lengths: np.ndarray, windows: ArrayLike
) -> EncodedDocument:
    """Put [SLIDE] before each sentence of the target, as often as its window is later than that of
    the one before."""
    starts = np.cumsum(lengths) - lengths
    places = np.repeat(starts, np.diff(windows, prepend=0))
    return replace(document, target=np.insert(document.target, places, SLIDE).astype(np.int32))


def make_windowed(config: WindowedConfig, corpus: PreparedCorpus) -> Windowed:
    """Make a model. Where the options ask for it, words that have a vector start with it as their
    embedding, at length 1. Raises InputError for vectors of another width."""
    model = Windowed(config)
    if not corpus.options.start_from_vectors:
        return model
    vectors = vectors_for(corpus, corpus.options)
    width = vectors.shape[1]
    if width != config.embedding:
        raise InputError(
            f"word vectors of {width} numbers, embeddings of {config.embedding}: they must be "
            "the same"
        )
    known = vectors.any(1)
    with torch.no_grad():
        rows = torch.from_numpy(vectors[known]).to(model.embedding.weight)
        model.embedding.weight[torch.from_numpy(known)] = rows / rows.norm(dim=1, keepdim=True)
    return model


def vectors_for(corpus: PreparedCorpus, options: ArticleOptions) -> np.ndarray:
    """Word vectors [V, width]: the file that the options name, or learned from the training
    documents."""
    if options.vectors:
        return read_vectors(options.vectors, corpus.vocabulary)
    return learn_vectors(corpus["train"], len(corpus.vocabulary))
