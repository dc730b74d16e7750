"""From which sentence of its text a reference sentence was copied, and which similarity of sentences finds it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lib.data.batch import EncodedDocument
from lib.data.tfidf import tfidf
from lib.data.word_vectors import similarities, target_sentences

RUN = 5  # words in a row that two sentences share by copying


def copied_from(sentence: Sequence[int], source: Sequence[Sequence[int]]) -> int | None:
    """The index of the only source sentence that shares the longest run of words with a sentence; None where the run
    has fewer than `RUN` words, or several sentences share it."""
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

    @property
    def all(self) -> list[np.ndarray]:
        return [*self.reference, *self.source]

    def similarities(self, vectors: np.ndarray, aggregate: str = "sum") -> np.ndarray:
        """(2), (3): [S, L]."""
        summary, source = ((np.concatenate(s), np.array([len(x) for x in s])) for s in (self.reference, self.source))
        return similarities(summary, source, vectors, aggregate)

    def counts(self, size: int) -> np.ndarray:
        """How often each of the first words of the vocabulary occurs in each sentence [S + L, size]."""
        return np.stack([np.bincount(words[words < size], minlength=size) for words in self.all])

    @property
    def copies(self) -> list[tuple[int, int]]:
        """(reference sentence, source sentence) of every one that was copied."""
        sources = [other.tolist() for other in self.source]
        found = [(i, copied_from(sentence.tolist(), sources)) for i, sentence in enumerate(self.reference)]
        return [(i, j) for i, j in found if j is not None]


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
    weights words: [S, L]."""
    sentences_with_word = (sentences.counts(len(vectors)) > 0).sum(0)
    rarity = np.log(len(sentences.all) / np.maximum(sentences_with_word, 1))
    return sentences.similarities(vectors * rarity[:, None])


def by_counts(sentences: SentenceLists, vectors: np.ndarray) -> np.ndarray:
    """Cosines of counts of the words that have a vector, each a dimension of its own: [S, L]."""
    counts = sentences.counts(len(vectors)) * (np.abs(vectors).sum(1) > 0)
    counts = counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1)
    return counts[: len(sentences.reference)] @ counts[len(sentences.reference) :].T


def by_tfidf(sentences: SentenceLists, _: np.ndarray) -> np.ndarray:
    """Cosines of tf-idf over the sentences of the text and the reference: [S, L]. No vector is needed."""
    weights = tfidf([words.tolist() for words in sentences.all])
    return weights[: len(sentences.reference)] @ weights[len(sentences.reference) :].T


Measure = Callable[[SentenceLists, np.ndarray], np.ndarray]  # of sentences and word vectors [V, width]: [S, L]
OF_WORDS = "word counts", "tf-idf"  # measures that use word vectors only to know which words are known
MEASURES: dict[str, Measure] = {
    "sums": by_sums, "means": by_means, "sums, centred": by_centred_sums, "sums, by rarity": by_rare_words,
    "word counts": by_counts, "tf-idf": by_tfidf,
}  # fmt: skip


def rank_of(row: np.ndarray, place: int) -> int:
    """The rank of a place in a row of similarities, from 1; of equals the first places come first."""
    return int((np.argsort(-row, kind="stable") == place).nonzero()[0][0]) + 1
