"""Extractive summaries that need no training: Lead, random, LexRank, the greedy oracle."""

from collections import Counter
from collections.abc import Callable, Sequence
from textwrap import shorten

import numpy as np
from scipy.sparse import csr_array
from tqdm import tqdm

from lib.data.batch import EncodedDocument
from lib.data.documents import Document
from lib.data.prepared import PreparedCorpus
from lib.data.tfidf import sparse_tfidf
from lib.data.tokenize import counted_words, need_all_letters
from lib.evaluation.measures import ngrams
from lib.system.errors import InputError

# LexRank with a threshold compares all pairs of sentences: its time grows with their square.
MAX_SENTENCES = 100_000  # which take a few minutes
MAX_EDGES = 2**27  # pairs that reach the threshold; each takes five bytes
PAIRS_AT_ONCE = 2**20  # cosines that are in memory at the same time
BAR_DELAY = 2  # seconds after which a progress bar appears


def lead(sentences: Sequence[str], count: int) -> list[str]:
    """Return the first sentences."""
    return list(sentences[:count])


def baselines(
    documents: Sequence[Document], training: Sequence[list[str]]
) -> dict[str, list[list[str]]]:
    """Make the summaries of "lead", "lexrank" and "oracle".

    Lead has as many sentences and LexRank as many words as the `training` references on average.
    Words are those that ROUGE counts on these documents.
    """
    all_letters = counted_in(documents)
    sentences = np.mean([len(reference) for reference in training])
    words = np.mean([len(" ".join(reference).split()) for reference in training])
    count, length = round(float(sentences)), round(float(words))
    return {
        "lead": [lead(d.sentences, count) for d in documents],
        "lexrank": [lexrank(d.sentences, length, all_letters=all_letters) for d in documents],
        "oracle": [oracle(d.sentences, d.summary, all_letters=all_letters) for d in documents],
    }


def counted_in(documents: Sequence[Document]) -> bool:
    """Return whether words of all letters are counted in summaries of these documents, by their
    references."""
    return need_all_letters(sentence for document in documents for sentence in document.summary)


def random_sentences(
    sentences: Sequence[str], count: int, random: np.random.Generator
) -> list[str]:
    """Choose sentences at random, in document order: what any choice has to beat."""
    chosen = random.choice(len(sentences), min(count, len(sentences)), replace=False)
    return [sentences[int(i)] for i in sorted(chosen)]


def lexrank(
    sentences: Sequence[str],
    words: int,
    threshold: float | None = 0.1,
    damping: float = 0.85,
    all_letters: bool | None = None,
) -> list[str]:
    """Choose the most central sentences (`by_centrality`), in document order, until there are
    `words`."""
    if not sentences:
        return []
    ranked = by_centrality(sentences, threshold, damping, all_letters)
    # The words of all better ones: a sentence is chosen as long as these are too few.
    lengths = np.array([len(sentences[int(i)].split()) for i in ranked])
    before = np.cumsum(lengths) - lengths
    return [sentences[int(i)] for i in sorted(ranked[before < words])]


def by_centrality(
    sentences: Sequence[str],
    threshold: float | None = 0.1,
    damping: float = 0.85,
    all_letters: bool | None = None,
) -> np.ndarray:
    """Rank sentences by LexRank, the most central first: their numbers [L] (Erkan and Radev 2004).

    Two sentences are connected when the cosine of their tf-idf vectors reaches `threshold`; in
    tf-idf, a sentence counts as a document. Without a threshold (continuous LexRank), the cosine is
    the weight of their edge. Centrality is the stationary distribution of a walk that follows edges
    with probability `damping`. Of equally central sentences the earlier one comes first.

    all_letters: which words are counted (`counted_words`); None: as the sentences need it.

    Raises InputError where a threshold is given and there are more than MAX_SENTENCES sentences, or
    more than MAX_EDGES connected pairs.
    """
    all_letters = need_all_letters(sentences) if all_letters is None else all_letters
    vectors = sparse_tfidf([counted_words(s, all_letters) for s in sentences])
    follow = _weighted(vectors) if threshold is None else _connected(vectors, threshold, sentences)
    degrees = follow(np.ones(len(sentences)))
    rank = np.full(len(sentences), 1 / len(sentences))
    for _ in range(100):
        # p = (1 - d) / L + d A (p / degrees)
        following = (1 - damping) / len(rank) + damping * follow(rank / degrees)
        if np.abs(following - rank).sum() < 1e-6:
            break
        rank = following
    # Rounding errors must not decide between equally central sentences.
    return np.argsort(-(rank * len(rank)).round(9), kind="stable")


def _weighted(vectors: csr_array) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that multiplies the cosines of all pairs [L, L] by a vector [L].

    The cosines themselves are never computed: (V V^T) p = V (V^T p).
    vectors: [L, words], of length 1, or 0 for a sentence without words.
    """
    # A sentence without words has an edge to itself, too.
    missing = 1 - vectors.power(2).sum(1)
    return lambda values: vectors @ (vectors.T @ values) + missing * values


def _connected(
    vectors: csr_array,
    threshold: float,
    sentences: Sequence[str],
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that multiplies the edges [L, L] by a vector [L].

    An edge is 1 where the cosine of two sentences reaches the threshold. Cosines are computed for a
    block of rows at a time, and only the edges are stored.
    """
    count = len(sentences)
    text = f"the text that begins {shorten(sentences[0], 60)!r}"
    if count > MAX_SENTENCES:
        raise InputError(
            f"{text} has {count:,} sentences; LexRank compares all pairs of at most "
            f"{MAX_SENTENCES:,}. Split the text, for example into chapters"
        )
    rows = max(1, PAIRS_AT_ONCE // count)
    starts = range(0, count, rows)
    bar = tqdm(
        starts,
        "LexRank",
        unit=" blocks",
        delay=BAR_DELAY,
        leave=False,
        disable=len(starts) == 1,
    )
    columns = vectors.T.tocsr()
    blocks: list[csr_array] = []
    stored = 0
    for start in bar:
        block = vectors[start : start + rows] @ columns  # cosines [rows, L]
        block.data = block.data >= threshold
        block.eliminate_zeros()
        block.sort_indices()
        blocks.append(block)
        stored += block.nnz
        if stored > MAX_EDGES:
            bar.close()
            raise InputError(
                f"{text} has {count:,} sentences, and more than {MAX_EDGES:,} pairs of them are "
                "similar: too many for LexRank. Remove repeated sentences, or split the text"
            )
    # A sentence without words has an edge to itself, too.
    diagonal = [block.diagonal(start) for block, start in zip(blocks, starts)]
    missing = 1 - np.concatenate(diagonal)
    return lambda values: np.concatenate([block @ values for block in blocks]) + missing * values


def oracle(
    sentences: Sequence[str],
    reference: Sequence[str],
    count: int | None = None,
    all_letters: bool | None = None,
) -> list[str]:
    """Choose sentences one by one for the largest R-1 F1 + R-2 F1 against the reference, until
    nothing improves it (Nallapati et al. 2017) or `count` are chosen. Return them in document
    order. Words are lower-cased, not stemmed.

    all_letters: which words are counted (`counted_words`); None: the reference determines it.
    """
    all_letters = need_all_letters(reference) if all_letters is None else all_letters
    source = [counted_words(s, all_letters) for s in sentences]
    wanted = [counted_words(s, all_letters) for s in reference]
    overlaps = [_Overlap(source, wanted, n) for n in (1, 2)]
    chosen: list[int] = []
    best = 0.0
    while len(chosen) < min(count or len(sentences), len(sentences)):
        gains = np.sum([o.f1_with_each() for o in overlaps], 0)
        gains[chosen] = -1
        winner = int(gains.argmax())
        if gains[winner] <= best:
            break
        best = gains[winner]
        chosen.append(winner)
        for o in overlaps:
            o.add(winner)
    return [sentences[i] for i in sorted(chosen)]


def matches(
    sentences: Sequence[str],
    reference: Sequence[str],
    each: int = 2,
    all_letters: bool | None = None,
) -> list[int]:
    """Find, for each sentence of the reference, the `each` most similar sentences; return their
    numbers in order.

    These are the labels of Subramanian et al. (2020). Similarity is R-1 F1 + R-2 F1; they do not
    say which ROUGE. A sentence that shares no word is not chosen. If no sentence shares one, the
    first is returned.

    all_letters: which words are counted (`counted_words`); None: the reference determines it.
    """
    all_letters = need_all_letters(reference) if all_letters is None else all_letters
    source = [counted_words(s, all_letters) for s in sentences]
    chosen: set[int] = set()
    for sentence in reference:
        words = counted_words(sentence, all_letters)
        scores = np.sum([_Overlap(source, [words], n).f1_with_each() for n in (1, 2)], 0)
        best = np.argsort(-scores, kind="stable")[:each]
        chosen.update(best[scores[best] > 0].tolist())
    return sorted(chosen) or [0]


class _Overlap:
    """n-gram F1 of a growing extract: only n-grams of the reference are counted by name."""

    def __init__(self, sentences: list[list[str]], reference: list[list[str]], n: int):
        grams: Counter[tuple[str, ...]] = Counter()
        for words in reference:
            grams.update(ngrams(words, n))
        index = {gram: i for i, gram in enumerate(grams)}
        self.wanted = np.array(list(grams.values()), dtype=float)
        self.counts = np.zeros((len(sentences), len(index)))
        for row, words in enumerate(sentences):
            for gram in ngrams(words, n):
                if gram in index:
                    self.counts[row, index[gram]] += 1
        self.lengths = np.array([max(0, len(s) - n + 1) for s in sentences], dtype=float)
        self.have = np.zeros(len(index))
        self.length = 0.0

    def f1_with_each(self) -> np.ndarray:
        # F1 = 2 matched / (n-grams of the extract + n-grams of the reference)
        matched = np.minimum(self.have + self.counts, self.wanted).sum(1)
        return 2 * matched / np.maximum(self.length + self.lengths + self.wanted.sum(), 1)

    def add(self, row: int) -> None:
        self.have += self.counts[row]
        self.length += self.lengths[row]


def text_baselines(
    documents: Sequence[Document], encoded: Sequence[EncodedDocument], prepared: PreparedCorpus
) -> dict[str, list[list[str]]]:
    """Lead, LexRank and the oracle over the whole texts, Lead and LexRank as long as training
    references; Lead-3 and Lead-10."""
    systems = baselines(documents, [document.reference for document in prepared["train"]])
    for n in (3, 10):
        systems[f"lead-{n}"] = [lead(d.sentences, n) for d in documents]
    return systems
