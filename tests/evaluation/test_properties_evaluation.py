"""Scores, baselines, intervals and support against their definitions."""

import math
from collections import Counter
from fractions import Fraction
from functools import cache, partial
from itertools import product

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from lib.evaluation.baselines import lexrank, oracle
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.evaluation.rouge import distinct, limited_recall, ngram_counts, repeated_ngrams
from lib.evaluation.support import Names, SourceText, support_counts
from tests.properties import TEXTS, holds

# words of three letters at most, which have no stems, in letters that ASCII has or has not
ALPHABETS = st.sampled_from([["a", "bb", "cc", "d"], ["а", "бб", "вв", "г"], ["猫", "犬", "鳥"]])


def sentences(words: list[str], most: int = 3, longest: int = 4) -> st.SearchStrategy[list[str]]:
    return st.lists(st.lists(st.sampled_from(words), max_size=longest).map(" ".join), max_size=most)


# summary and reference
PAIRS = ALPHABETS.flatmap(lambda words: st.tuples(sentences(words), sentences(words)))


def words_in(texts: list[str]) -> list[str]:
    return [word for text in texts for word in text.split()]


# ---------------------------------------------------------------------------------
# ROUGE


def grams(words, n: int) -> Counter:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


@cache
def longest_common(a: tuple, b: tuple) -> int:
    if not a or not b:
        return 0
    if a[-1] == b[-1]:
        return 1 + longest_common(a[:-1], b[:-1])
    return max(longest_common(a[:-1], b), longest_common(a, b[:-1]))


@holds(
    30,
    summary=sentences(["a", "bb", "cc"]),
    references=st.lists(sentences(["a", "bb", "cc"]), min_size=1, max_size=3),
    limit=st.integers(0, 12),
)
def test_limited_recall(summary, references, limit):
    """Recall of the first bytes: the best of the references, averaged over leaving one of several
    out."""
    shown = tuple(" ".join(summary)[:limit].split())
    scores = []
    for reference in references:
        words = tuple(words_in(reference))
        overlaps = [
            ((grams(shown, n) & grams(words, n)).total(), grams(words, n).total()) for n in (1, 2)
        ]
        overlaps.append((longest_common(shown, words), len(words)))
        scores.append([100 * matched / every if every else 0.0 for matched, every in overlaps])
    left = (
        [scores[:i] + scores[i + 1 :] for i in range(len(scores))] if len(scores) > 1 else [scores]
    )
    expected = np.mean([np.max(some, axis=0) for some in left], axis=0)
    assert np.allclose(limited_recall([summary], [references], limit)[0], expected)


@holds(
    40,
    texts=st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=2, max_size=4),
    n=st.integers(1, 3),
)
def test_repetition(texts, n):
    """Repeated, copied and distinct n-grams are counted one by one."""
    for words in texts:
        parts = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        again = sum(part in parts[:i] for i, part in enumerate(parts))
        assert repeated_ngrams(words, n) == (again, len(parts))
    (summary, source), own = (
        texts[:2],
        [tuple(texts[0][i : i + n]) for i in range(len(texts[0]) - n + 1)],
    )
    copied = sum(any(tuple(source[j : j + n]) == part for j in range(len(source))) for part in own)
    assert ngram_counts(summary, source, [n]) == {n: (copied, len(own))}
    assert distinct(texts) == [float(sum(a == b for b in texts) == 1) for a in texts]


# ---------------------------------------------------------------------------------
# bootstrap

floats = partial(st.floats, allow_subnormal=False)  # a test before may have switched them off
VALUES = st.lists(floats(-100, 100).map(lambda x: round(x, 3)), min_size=1, max_size=12)
SEEDS = st.integers(0, 99)


@holds(20, values=VALUES, seed=SEEDS, factor=st.sampled_from([0.5, 3.0, -2.0]), shift=floats(-9, 9))
def test_intervals(values, seed, factor, shift):
    """Intervals hold the mean and lie between the least and the largest value; a seed gives the
    same one again; they move and grow with the values."""
    found = interval(values, seed, resamples=400)
    assert math.isclose(found.mean, np.mean(values), abs_tol=1e-9)
    close = 1e-9 * (1 + np.abs(values).max())
    assert min(values) - close <= found.low <= found.mean + close
    assert found.mean - close <= found.high <= max(values) + close
    assert {interval(values, seed, resamples=400)} == {found}, "a value, which may be a key"
    moved = interval(factor * np.array(values) + shift, seed, resamples=400)
    ends = sorted([factor * found.low + shift, factor * found.high + shift])
    assert np.allclose([moved.low, moved.high], ends, atol=1e-6)


@holds(15, values=st.lists(st.integers(-9, 9), min_size=1, max_size=4), seed=SEEDS)
def test_intervals_of_all_resamples(values, seed):
    """Ends of an interval are quantiles of all resamples that there are, up to chance."""
    means = np.sort([np.mean(some) for some in product(values, repeat=len(values))])
    found = interval(values, seed, resamples=1000)
    # five standard errors of a share: 0.025
    for end, share in ((found.low, 0.025), (found.high, 0.975)):
        assert (means < end - 1e-9).mean() <= share + 0.026 and (
            means <= end + 1e-9
        ).mean() >= share - 0.026


@holds(
    20, pairs=st.lists(st.tuples(floats(-9, 9), floats(-9, 9)), min_size=1, max_size=12), seed=SEEDS
)
def test_paired_differences(pairs, seed):
    """The paired difference of a system with itself is 0, that of two the opposite of theirs the
    other way, and that of one which is better by as much everywhere has no spread."""
    first, second = np.array(pairs).T
    none = paired_bootstrap(first, first, seed, resamples=200)
    assert (none.mean, none.low, none.high, none.p, none.is_real) == (0, 0, 0, 1, False)
    one, other = (
        paired_bootstrap(*both, seed, resamples=200) for both in ((first, second), (second, first))
    )
    assert np.allclose(
        [one.mean, one.low, one.high, one.p], [-other.mean, -other.high, -other.low, other.p]
    )
    assert math.isclose(one.mean, second.mean() - first.mean(), abs_tol=1e-9)
    better = paired_bootstrap(first, first + 1, seed, resamples=200)
    assert np.allclose([better.mean, better.low, better.high], 1) and better.p == 0
    runs = paired_bootstrap(
        np.stack([first, second]), np.stack([first, second]), seed, resamples=200
    )
    assert abs(runs.mean) < 1e-9 and runs.low <= 1e-9 and runs.high >= -1e-9


# ---------------------------------------------------------------------------------
# baselines


def numbered(texts: list[str]) -> list[str]:
    """Sentences that differ in marks, which are not counted, and in nothing else."""
    return [text + "!" * i for i, text in enumerate(texts, 1)]


def centralities(
    texts: list[str], threshold: float | None, damping: float
) -> tuple[np.ndarray, float]:
    """The stationary distribution by solving for it, and how near to the threshold a cosine
    comes."""
    words = [text.replace("!", "").split() for text in texts]
    having = Counter(word for own in words for word in set(own))
    vectors = np.array(
        [[own.count(w) * math.log(len(words) / n) for w, n in having.items()] for own in words]
    )
    vectors = vectors.reshape(len(words), -1)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(norms > 0, norms, 1)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, 1)
    edges = cosines if threshold is None else (cosines >= threshold).astype(float)
    off = np.abs(cosines - threshold).min() if threshold is not None else 1.0
    walk = np.eye(len(words)) - damping * edges / edges.sum(0)
    return np.linalg.solve(walk, np.full(len(words), (1 - damping) / len(words))), off


@holds(
    40,
    texts=sentences(["a", "bb", "cc", "d", "ee"], most=7).map(numbered),
    words=st.integers(1, 12),
    threshold=st.sampled_from([0.1, 0.5, None]),
    damping=st.sampled_from([0.85, 0.5]),
    random=st.randoms(),
)
def test_lexrank(texts, words, threshold, damping, random):
    """LexRank: the sentences that the solved stationary distribution ranks highest, until there are
    as many words, in document order, whatever the order of the document."""
    assume(texts)
    scores, off = centralities(texts, threshold, damping)
    assume(off > 1e-9)

    def chosen(order: list[str]) -> set[str]:
        found = lexrank(order, words, threshold, damping)
        assert found == [text for text in order if text in found]
        return set(found)

    def length(some) -> int:
        return sum(len(text.split()) for text in some)

    found, score = chosen(texts), dict(zip(texts, scores))
    least = min(score[text] for text in found)
    assert all(score[text] <= least + 1e-5 for text in score.keys() - found)
    assert length(found) >= words or found == set(texts)
    assert any(score[t] <= least + 1e-5 and length(found - {t}) < words for t in found)
    if len(texts) == 1 or np.diff(np.sort(scores)).min() > 1e-4:
        assert chosen(random.sample(texts, len(texts))) == found


def agreement(chosen, wanted: list[list[str]]) -> Fraction:
    """R-1 F1 + R-2 F1 of sentences in words, n-grams inside of sentences alone."""
    total = Fraction(0)
    for n in (1, 2):
        ours, theirs = (
            sum((grams(words, n) for words in texts), Counter()) for texts in (chosen, wanted)
        )
        total += Fraction(2 * (ours & theirs).total(), max(1, ours.total() + theirs.total()))
    return total


@holds(
    50,
    pair=ALPHABETS.flatmap(lambda words: st.tuples(sentences(words, most=5), sentences(words))),
    count=st.integers(1, 4),
)
def test_oracle(pair, count):
    """Each sentence of the oracle's greedy choice is as good as any other, and no further one would
    help."""
    texts, reference = numbered(pair[0]), pair[1]
    cut = [text.replace("!", "").split() for text in texts]
    wanted = [text.split() for text in reference]
    assume(words_in(reference))  # or the text's own letters decide what is counted
    score = []
    for n in range(1, count + 1):
        chosen = [texts.index(text) for text in oracle(texts, reference, n)]
        assert chosen == sorted(set(chosen)) and len(chosen) <= n
        score.append(agreement([cut[i] for i in chosen], wanted))
        further = [
            agreement([cut[j] for j in (*chosen, i)], wanted)
            for i in range(len(cut))
            if i not in chosen
        ]
        assert len(chosen) == n or max(further, default=0) <= score[-1]
    assert score == sorted(score) and score[0] == max(
        (agreement([words], wanted) for words in cut), default=0
    )


# ---------------------------------------------------------------------------------
# support


@holds(60, texts=st.lists(TEXTS, min_size=1, max_size=4), more=TEXTS, random=st.randoms())
def test_support(texts, more, random):
    """Support: a copy has nothing that is not in the text, and one sentence carries each of its
    own; a longer text lets say more; counts of two summaries add up."""
    text, names = SourceText(texts), Names(texts)
    copy = support_counts(random.sample(texts, len(texts)), text, names)
    for kind in ("numbers", "names", "words", "pairs"):
        assert copy[kind][0] == 0, kind
    assert copy["carried"][0] == copy["carried"][1]
    other, longer = support_counts([more], text, names), SourceText([*texts, more])
    for kind in ("numbers", "names", "words", "pairs"):
        assert (
            0 <= support_counts([more], longer, names)[kind][0] <= other[kind][0] <= other[kind][1]
        )
    both = support_counts([*texts, more], text, names)
    alone = support_counts(texts, text, names)
    assert both == {kind: tuple(a + b for a, b in zip(alone[kind], other[kind])) for kind in both}
