"""Synthetic documents with a known answer."""

from dataclasses import replace

import numpy as np

from lib.data.batch import EncodedDocument
from lib.data.vocabulary import EOS, SENTENCE_END, SLIDE, SPECIALS, TITLE_END

# the first word of a planted sentence, and of any other
MARK, PLAIN = len(SPECIALS), len(SPECIALS) + 1


def planted_sentences(
    count: int,
    seed: int,
    sentences: int = 12,
    words: int = 6,
    planted: int = 3,
    vocab_size: int = 100,
) -> list[EncodedDocument]:
    """Documents of random words in which some sentences begin with MARK: the summary is the rest of
    those, in order.

    Each has `sentences` sentences of `words` ids below `vocab_size`; the target ends with [EOS].
    """
    random = np.random.default_rng(seed)
    documents = []
    for number in range(count):
        source = random.integers(PLAIN + 1, vocab_size, (sentences, words), dtype=np.int32)
        chosen = np.sort(random.choice(sentences, planted, replace=False))
        source[:, 0] = PLAIN
        source[chosen, 0] = MARK
        target = np.append(source[chosen, 1:].ravel(), EOS)
        documents.append(
            EncodedDocument.of(str(number), source.ravel(), [words] * sentences, target)
        )
    return documents


FACT = SLIDE + 1  # the word before a fact


def planted_facts(
    count: int,
    seed: int,
    windows: int,
    window: int = 20,
    step: int = 16,
    words: int = 4,
    vocab_size: int = 60,
) -> list[EncodedDocument]:
    """Documents of `windows` windows, each with one fact where only that window sees it: FACT and
    `words` words.

    The summary is the facts in order, with [SLIDE] between them and [EOS] at the end. Words are
    random ids below `vocab_size`. A fact needs words + 1 <= 2 step - window.
    """
    random, length = np.random.default_rng(seed), window + (windows - 1) * step
    documents = []
    for number in range(count):
        source = random.integers(FACT + 1, vocab_size, length, dtype=np.int32)
        target = []
        for begin in range(0, windows * step, step):
            start = begin + random.integers(window - step, step - words)
            source[start] = FACT
            target += [SLIDE] * (begin > 0) + source[start + 1 : start + 1 + words].tolist()
        documents.append(EncodedDocument.of(str(number), source, [length], [*target, EOS]))
    return documents


def planted_at(document: EncodedDocument) -> list[int]:
    """Indices of the planted sentences."""
    starts = np.cumsum(document.sentence_lengths) - document.sentence_lengths
    return np.flatnonzero(document.source[starts] == MARK).tolist()


def planted_clusters(
    count: int,
    seed: int,
    paragraphs: int = 8,
    words: int = 4,
    names: int = 16,
    vocab_size: int = 48,
) -> list[EncodedDocument]:
    """Make clusters whose title names one of the paragraphs. The summary is the words after that
    name.

    As `ParagraphOptions` of the hierarchical transformer encodes them: a row for the title, ended
    by `<T>`, and one for each paragraph: a name and `words` random words. Names are the first ids
    after the symbols. The asked paragraph alone has the label 1.
    """
    random, first = np.random.default_rng(seed), SENTENCE_END + 1
    documents = []
    for number in range(count):
        called = random.choice(np.arange(first, first + names), paragraphs, replace=False)
        content = random.integers(first + names, vocab_size, (paragraphs, words))
        asked = int(random.integers(paragraphs))
        rows = np.column_stack([called, content]).ravel()
        source = np.concatenate([[called[asked], TITLE_END], rows])
        lengths = [2, *[words + 1] * paragraphs]
        document = EncodedDocument.of(str(number), source, lengths, [*content[asked], EOS])
        documents.append(replace(document, labels=np.eye(paragraphs, dtype=np.float32)[asked]))
    return documents
