"""From which sentence of its text a reference sentence was copied, and whether a similarity of sentences says so."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lib.data.batch import EncodedDocument
from lib.data.tfidf import tfidf
from lib.data.word_vectors import similarities, target_sentences

RUN = 5  # words in a row that two sentences share by copying


def copied_from(sentence: Sequence[int], source: Sequence[Sequence[int]], least: int = RUN) -> int | None:
    """The index of the only source sentence that shares the longest run of words with a sentence; None where the run
    has fewer than `least` words, or several sentences share it."""
    longest = [_shared_run(sentence, other) for other in source]
    best = max(longest, default=0)
    return longest.index(best) if best >= least and longest.count(best) == 1 else None


def _shared_run(words: Sequence[int], others: Sequence[int]) -> int:
    """Length of the longest run of words that both have."""
    best, before = 0, [0] * (len(others) + 1)
    for word in words:
        now = [0, *(before[j] + 1 if word == other else 0 for j, other in enumerate(others))]
        best, before = max(best, *now), now
    return best


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

    def similarities(self, vectors: np.ndarray, aggregate: str = "sum") -> np.ndarray:
        """(2), (3): [S, L]."""
        summary, source = ((np.concatenate(s), np.array([len(x) for x in s])) for s in (self.reference, self.source))
        return similarities(summary, source, vectors, aggregate)

    @property
    def copies(self) -> Iterator[tuple[int, int]]:
        """(reference sentence, source sentence) of every one that was copied."""
        for i, sentence in enumerate(self.reference):
            j = copied_from(sentence.tolist(), [other.tolist() for other in self.source])
            if j is not None:
                yield i, j


def by_sums(sentences: SentenceLists, vectors: np.ndarray) -> np.ndarray:
    """Cosines of sums of word vectors [V, width], as in the article: [S, L]."""
    return sentences.similarities(vectors)


def by_means(sentences: SentenceLists, vectors: np.ndarray) -> np.ndarray:
    """Dot products of means of vectors of length 1, as in the author's code: [S, L]."""
    return sentences.similarities(vectors, "mean")


def by_centred_sums(sentences: SentenceLists, vectors: np.ndarray) -> np.ndarray:
    """Cosines of sums of word vectors less their mean over the words of the text, which long sums have in common:
    [S, L]."""
    words = np.concatenate(sentences.source)
    mean = vectors[words[words < len(vectors)]].mean(0)
    return sentences.similarities(np.where(vectors.any(1, keepdims=True), vectors - mean, 0))


def by_rare_words(sentences: SentenceLists, vectors: np.ndarray) -> np.ndarray:
    """Cosines of sums of word vectors that are multiplied by log(sentences / sentences with the word), as tf-idf
    weighs words: [S, L]."""
    every = [*sentences.reference, *sentences.source]
    having = np.bincount(np.concatenate([np.unique(s) for s in every]), minlength=len(vectors))[: len(vectors)]
    return sentences.similarities(vectors * np.log(len(every) / np.maximum(having, 1))[:, None])


def by_counts(sentences: SentenceLists, vectors: np.ndarray) -> np.ndarray:
    """Cosines of counts of the words that have a vector, each a dimension of its own: [S, L]."""
    every = [x[x < len(vectors)] for x in (*sentences.reference, *sentences.source)]
    words, places = np.unique(np.concatenate(every), return_inverse=True)
    counts = np.zeros((len(every), len(words)))
    rows, known = np.repeat(np.arange(len(every)), [len(x) for x in every]), np.abs(vectors).sum(1) > 0
    np.add.at(counts, (rows, places), known[words[places]])
    counts /= np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1)
    return counts[: len(sentences.reference)] @ counts[len(sentences.reference) :].T


def by_tfidf(sentences: SentenceLists, _: np.ndarray) -> np.ndarray:
    """Cosines of tf-idf over the sentences of the text and the reference: [S, L]. No vector is needed."""
    every = tfidf([x.tolist() for x in (*sentences.reference, *sentences.source)])
    return every[: len(sentences.reference)] @ every[len(sentences.reference) :].T


Measure = Callable[[SentenceLists, np.ndarray], np.ndarray]  # of sentences and word vectors [V, width]: [S, L]
OF_WORDS = "word counts", "tf-idf"  # measures to which word vectors only say which words are known
MEASURES: dict[str, Measure] = {
    "sums": by_sums, "means": by_means, "sums, centred": by_centred_sums, "sums, by rarity": by_rare_words,
    "word counts": by_counts, "tf-idf": by_tfidf,
}  # fmt: skip


def rank_of(row: np.ndarray, place: int) -> int:
    """The rank of a place in a row of similarities, from 1; of equals the first places come first."""
    return int((np.argsort(-row, kind="stable") == place).nonzero()[0][0]) + 1
