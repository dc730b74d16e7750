"""Vectors of texts by tf-idf."""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from scipy.sparse import csr_array


def tfidf(paragraphs: Sequence[Sequence[Hashable]]) -> np.ndarray:
    """Vectors of length 1 (or 0) of paragraphs in words: [P, words] (equation 25).

    The weight of a word is its count times log(P / paragraphs that have it).
    """
    return sparse_tfidf(paragraphs).toarray()


def sparse_tfidf(paragraphs: Sequence[Sequence[Hashable]]) -> csr_array:
    """Sparse `tfidf` vectors of very many paragraphs: [P, words], only what is not 0."""
    counts = [Counter(words) for words in paragraphs]
    having = Counter(word for count in counts for word in count)
    index = {word: i for i, word in enumerate(having)}
    rarity = np.array([np.log(len(counts) / n) for n in having.values()])
    words = np.array([index[word] for count in counts for word in count], dtype=np.int32)
    numbers = np.array([n for count in counts for n in count.values()], dtype=float)
    ends = np.cumsum([0, *map(len, counts)], dtype=np.int32)
    weights = csr_array((numbers * rarity[words], words, ends), shape=(len(counts), len(index)))
    norms = np.sqrt((weights * weights).sum(1))
    weights.data /= np.repeat(np.where(norms > 0, norms, 1), np.diff(weights.indptr))
    return weights
