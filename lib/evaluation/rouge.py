"""Scores of summaries: ROUGE and the share of copied n-grams."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
from nltk.stem.porter import PorterStemmer
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenize import tokenize
from rouge_score.tokenizers import Tokenizer

from lib.data.characters import lowered, unified
from lib.data.tokenize import counted_words, is_word, need_all_letters, other_letters
from lib.evaluation.measures import METRICS, ngrams


class _Stems(Tokenizer):
    """The words and stems of rouge-score: ASCII letters and digits only. Each word is stemmed once,
    because stemming takes most of the time of scoring."""

    def __init__(self):
        self.stem = lru_cache(maxsize=2**17)(PorterStemmer().stem)

    def tokenize(self, text: str) -> list[str]:
        return tokenize(lowered(unified(text)), self)


class _Words(Tokenizer):
    """Words of all letters, without stems: the stemmer is for English only."""

    def tokenize(self, text: str) -> list[str]:
        return counted_words(text, all_letters=True)


_STEMS, _WORDS = _Stems(), _Words()


def words_for(references: Sequence[Sequence[str]]) -> list[Tokenizer]:
    """What cuts each document's reference and summary into the words that ROUGE counts: one choice
    for all of a corpus, made of its references (`need_all_letters`). In a corpus of English, a
    document whose own reference is mostly of other letters counts all letters, because ASCII words
    are no measure of it."""
    if need_all_letters(sentence for reference in references for sentence in reference):
        return [_WORDS] * len(references)
    return [_WORDS if other_letters(reference) > 0.5 else _STEMS for reference in references]


def rouge(summaries: Sequence[list[str]], references: Sequence[list[str]]) -> np.ndarray:
    """Compute F1 of R-1, R-2 and R-Lsum for each document: [documents, 3], in percent.

    Words are `words_for` the references: English ones with stemming, as published.

    Summaries and references are lists of sentences. Raises ValueError when their numbers differ.
    """
    metrics = [*METRICS.values()]
    rows = []
    words_of_each = words_for(references)
    for words, summary, reference in zip(words_of_each, summaries, references, strict=True):
        scorer = RougeScorer(metrics, tokenizer=words)
        scores = scorer.score("\n".join(reference), "\n".join(summary))
        rows.append([scores[metric].fmeasure for metric in metrics])
    return 100 * np.array(rows)


def rouge_in_one_line(
    summaries: Sequence[list[str]], references: Sequence[list[str]]
) -> np.ndarray:
    """Compute F1 of sentence-level R-L, of summaries and references in one line each: [documents],
    in percent.

    Words are as `rouge` has them. Raises ValueError when their numbers differ.
    """
    pairs = _word_pairs([" ".join(summary) for summary in summaries], references)
    return 100 * np.array([2 * _longest_common(a, b) / max(1, len(a) + len(b)) for a, b in pairs])


def limited_recall(
    summaries: Sequence[list[str]], references: Sequence[list[list[str]]], limit: int = 75
) -> np.ndarray:
    """Compute recall of R-1, R-2 and R-L of each summary's first `limit` bytes: [documents, 3], in
    percent.

    DUC 2004's measure. Words are as `rouge` has them. Of several references the best counts,
    averaged over leaving one out (Lin 2004, 2.1).
    """
    rows = []
    words_of_each = words_for([list(chain.from_iterable(texts)) for texts in references])
    for words, summary, texts in zip(words_of_each, summaries, references, strict=True):
        scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=words)
        shown = " ".join(summary).encode()[:limit].decode(errors="ignore")
        scores = []
        for text in texts:
            of_text = scorer.score(" ".join(text), shown)
            scores.append([score.recall for score in of_text.values()])
        subsets = [scores]
        if len(scores) > 1:
            subsets = [scores[:i] + scores[i + 1 :] for i in range(len(scores))]
        rows.append(np.mean([np.max(subset, axis=0) for subset in subsets], axis=0))
    return 100 * np.array(rows)


def longest_common_recall(texts: Sequence[str], references: Sequence[list[str]]) -> np.ndarray:
    """Compute ROUGE-L recall of each text, taken as one sequence of stemmed words: [documents], in
    percent.

    The measure of Liu and Lapata's (2019) Table 1. rouge-score gives the same, in a hundred times
    the time.
    """
    pairs = _word_pairs(texts, references)
    recalls = [_longest_common(text, wanted) / max(1, len(wanted)) for text, wanted in pairs]
    return 100 * np.array(recalls)


def _word_pairs(
    texts: Sequence[str], references: Sequence[list[str]]
) -> Iterable[tuple[list[str], list[str]]]:
    """Yield the words of each text and of its reference."""
    for words, text, reference in zip(words_for(references), texts, references, strict=True):
        yield words.tokenize(text), words.tokenize(" ".join(reference))


def _longest_common(text: list[str], reference: list[str]) -> int:
    """Compute the length of the longest common subsequence: a bit for each reference word (Hyyrö
    2004)."""
    places = dict.fromkeys(reference, 0)
    for i, word in enumerate(reference):
        places[word] |= 1 << i
    everything = row = (1 << len(reference)) - 1
    for word in text:
        matched = row & places.get(word, 0)
        row = ((row + matched) | (row - matched)) & everything
    return len(reference) - row.bit_count()


def ngram_counts(
    summary: list[str], source: list[str], sizes: Sequence[int]
) -> dict[int, tuple[int, int]]:
    """Count for each n how many of a summary's n-grams its source has, and how many there are."""
    counts = {}
    for n in sizes:
        known = set(ngrams(source, n))
        grams = list(ngrams(summary, n))
        counts[n] = sum(gram in known for gram in grams), len(grams)
    return counts


def repeated_ngrams(words: list[str], n: int = 3) -> tuple[int, int]:
    """Count how many of a text's n-grams have occurred in it before, and how many there are."""
    grams = list(ngrams(words, n))
    return len(grams) - len(set(grams)), len(grams)


def distinct(summaries: Sequence[Sequence[str]]) -> list[float]:
    """Return 1 for each summary, in words, that no other document has, and 0 for the others."""
    times = Counter(map(tuple, summaries))
    return [float(times[tuple(summary)] == 1) for summary in summaries]


def count_words(sentences: Sequence[str]) -> int:
    """Count the words of a summary, by white space, without marks on their own."""
    return sum(map(is_word, " ".join(sentences).split()))
