"""Helpers of the studies of windowed runs: runs and documents, chunks of a text, lists of sentences and
their links."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import lib
from lib.data.batch import EncodedDocument
from lib.data.corpora import load_corpus, unseen
from lib.data.documents import Document
from lib.data.vocabulary import SLIDE
from lib.data.word_vectors import similarities, target_sentences
from lib.decoding.run import Run
from lib.models.windowed import Windowed, count_windows
from lib.system.errors import InputError

CUT = 200  # words of a summary that are scored


def open_papers(
    folder: Path, dataset: str, count: int
) -> tuple[Run, list[Document], dict[str, Any]]:
    """Open a run and the first test documents of a corpus; return also what results are about.

    Raises InputError for a run without windows.
    """
    run = lib.load(folder, device="cpu")
    if not (isinstance(run.model, Windowed) and run.model.config.window):
        raise InputError(f"{folder}: this run has no windows")
    documents = unseen(load_corpus(dataset), "test", [run.config["corpus"]], count)
    about = {"run": str(folder), "corpus": Path(dataset).name, "documents": len(documents)}
    return run, documents, about


def window_counts(run: Run, documents: Sequence[EncodedDocument]) -> list[int]:
    """Count the windows of each document."""
    config = run.model.config
    return [
        int(count_windows(len(document.source), config.window, config.stride))
        for document in documents
    ]


# ---------------------------------------------------------------------------------
# chunks


def equal_chunks(document: EncodedDocument, count: int) -> list[EncodedDocument]:
    """Cut a document into so many chunks of equal length, to a word. A sentence that is cut is one
    in both chunks."""
    cuts = [len(document.source) * i // count for i in range(1, count)]
    ends, parts = np.cumsum(document.sentence_lengths), []
    for begin, end in zip([0, *cuts], [*cuts, len(document.source)]):
        inside = [begin, *ends[(ends > begin) & (ends < end)].tolist(), end]
        lengths = np.diff(inside).astype(document.sentence_lengths.dtype)
        parts.append(replace(document, source=document.source[begin:end], sentence_lengths=lengths))
    return parts


# ---------------------------------------------------------------------------------
# links


RUN = 5  # words in a row that two sentences share by copying


def copied_from(sentence: Sequence[int], source: Sequence[Sequence[int]]) -> int | None:
    """The index of the only source sentence that shares the longest run of words with a sentence;
    None where the run has fewer than `RUN` words, or several sentences share it."""
    longest = [_shared_run(sentence, other) for other in source]
    best = max(longest, default=0)
    return longest.index(best) if best >= RUN and longest.count(best) == 1 else None


def _shared_run(words: Sequence[int], others: Sequence[int]) -> int:
    """Length of the longest run of words that both have."""
    # ends[j]: length of the run that ends at this word and at the j-th of the others
    longest, ends = 0, [0] * (len(others) + 1)
    for word in words:
        ends = [0, *(ends[j] + 1 if word == other else 0 for j, other in enumerate(others))]
        longest = max(longest, *ends)
    return longest


@dataclass(frozen=True)
class SentenceLists:
    """A document's sentences in ids: S of the reference, L of the text that is read."""

    reference: list[np.ndarray]
    source: list[np.ndarray]

    @classmethod
    def of(cls, document: EncodedDocument, lower: bool) -> "SentenceLists":
        lengths = target_sentences(document, lower)
        return cls(
            np.split(document.target[: lengths.sum()], np.cumsum(lengths)[:-1]),
            np.split(document.source, np.cumsum(document.sentence_lengths)[:-1]),
        )

    def similarities(self, vectors: np.ndarray) -> np.ndarray:
        """Compute (2) and (3): [S, L]."""
        summary, source = (
            (np.concatenate(s), np.array([len(x) for x in s]))
            for s in (self.reference, self.source)
        )
        return similarities(summary, source, vectors)

    @property
    def copies(self) -> list[tuple[int, int]]:
        """(reference sentence, source sentence) of every one that was copied."""
        sources = [other.tolist() for other in self.source]
        found = [
            (i, copied_from(sentence.tolist(), sources))
            for i, sentence in enumerate(self.reference)
        ]
        return [(i, j) for i, j in found if j is not None]


def embeddings_of(run: Run) -> np.ndarray:
    """Copy the run's embeddings as word vectors [V, width]; those of symbols are 0."""
    vectors = run.model.embedding.weight.detach().double().cpu().numpy().copy()
    vectors[: SLIDE + 1] = 0
    return vectors
