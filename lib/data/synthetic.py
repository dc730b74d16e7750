"""Synthetic documents with a known answer."""

import numpy as np

from lib.data.prepared import EncodedDocument
from lib.data.text import EOS, SPECIALS

MARK, PLAIN = len(SPECIALS), len(SPECIALS) + 1  # the first word of a planted sentence, and of any other


def planted_sentences(
    count: int, seed: int, sentences: int = 12, words: int = 6, planted: int = 3, vocab_size: int = 100
) -> list[EncodedDocument]:
    """Documents of random words in which some sentences begin with MARK: the summary is the rest of those, in order.

    Each has `sentences` sentences of `words` ids below `vocab_size`; the target ends with [EOS].
    """
    random = np.random.default_rng(seed)
    documents = []
    for number in range(count):
        source = random.integers(PLAIN + 1, vocab_size, (sentences, words), dtype=np.int32)
        chosen = np.sort(random.choice(sentences, planted, replace=False))
        source[:, 0] = PLAIN
        source[chosen, 0] = MARK
        target = np.append(source[chosen, 1:].ravel(), EOS).astype(np.int32)
        lengths = np.full(sentences, words, dtype=np.int32)
        documents.append(EncodedDocument(str(number), source.ravel(), lengths, target, [], []))
    return documents


def planted_at(document: EncodedDocument) -> list[int]:
    """Indices of the planted sentences."""
    starts = np.cumsum(document.sentence_lengths) - document.sentence_lengths
    return np.flatnonzero(document.source[starts] == MARK).tolist()
