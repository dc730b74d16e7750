"""Scores, baselines, intervals, support and interventions against their definitions."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import torch
from hypothesis import assume
from hypothesis import strategies as st

from companion.studies.repetition import log_prob_after
from lib.data.characters import clean, lowered
from lib.evaluation.baselines import lead, lexrank, oracle
from lib.evaluation.bootstrap import interval, paired_bootstrap
from lib.evaluation.interventions import Change, _with, changes_of, log_probs
from lib.evaluation.metrics import (
    copied_ngrams,
    distinct,
    limited_recall,
    longest_common_recall,
    ngram_counts,
    repeated_ngrams,
    rouge,
    rouge_in_one_line,
)
from lib.evaluation.support import Names, SourceText, support_counts, terms
from tests.conftest import VOCAB
from tests.properties import TEXTS, documents, holds
from tests.test_interventions import MODELS

# words of three letters at most, which have no stems, in letters that ASCII has or has not
ALPHABETS = st.sampled_from([["a", "bb", "cc", "d"], ["а", "бб", "вв", "г"], ["猫", "犬", "鳥"]])


def sentences(words: list[str], most: int = 3, longest: int = 4) -> st.SearchStrategy[list[str]]:
    return st.lists(st.lists(st.sampled_from(words), max_size=longest).map(" ".join), max_size=most)


PAIRS = ALPHABETS.flatmap(lambda words: st.tuples(sentences(words), sentences(words)))  # summary and reference


def words_in(texts: list[str]) -> list[str]:
    return [word for text in texts for word in text.split()]


# ------------------------------------------------------------------------------------------------------------ ROUGE


def grams(words, n: int) -> Counter:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def percent(matched: int, ours: int, theirs: int) -> float:
    return 200 * matched / (ours + theirs) if matched else 0.0


@cache
def longest_common(a: tuple, b: tuple) -> int:
    if not a or not b:
        return 0
    if a[-1] == b[-1]:
        return 1 + longest_common(a[:-1], b[:-1])
    return max(longest_common(a[:-1], b), longest_common(a, b[:-1]))


@cache
def common_places(a: tuple, b: tuple) -> frozenset[frozenset[int]]:
    """Places in `a` of each of the longest common subsequences."""
    if not a or not b:
        return frozenset([frozenset()])
    found = set()
    if a[-1] == b[-1]:
        found |= {places | {len(a) - 1} for places in common_places(a[:-1], b[:-1])}
    for shorter in ((a[:-1], b), (a, b[:-1])):
        if longest_common(*shorter) == longest_common(a, b):
            found |= common_places(*shorter)
    return frozenset(found)


def summary_level(summary: list[str], reference: list[str]) -> set[int]:
    """Words of the reference that unions of longest common subsequences hit (Lin 2004, section 3.2), each as often as
    the summary has it: the numbers that there may be, for a sentence may have several longest ones."""
    cut = [[tuple(text.split()) for text in texts] for texts in (summary, reference)]
    hits = {()}
    for sentence in cut[1]:
        unions = {frozenset().union(*some) for some in product(*(common_places(sentence, s) for s in cut[0]))}
        hits = {tuple(sorted([*before, *(sentence[i] for i in union)])) for before in hits for union in unions}
    there = Counter(words_in(summary))
    return {(Counter(words) & there).total() for words in hits}


@holds(60, pair=PAIRS)
def test_rouge(pair):
    """ROUGE: R-1 and R-2 are the overlaps of n-grams, R-L of sentences and of summaries the longest common
    subsequences by recursion."""
    summary, reference = pair
    ours, theirs = words_in(summary), words_in(reference)
    found = rouge([summary], [reference])[0]
    for n in (1, 2):
        matched = (grams(ours, n) & grams(theirs, n)).total()
        assert math.isclose(found[n - 1], percent(matched, grams(ours, n).total(), grams(theirs, n).total()))
    possible = [percent(hits, len(ours), len(theirs)) for hits in summary_level(summary, reference)]
    assert any(math.isclose(found[2], value) for value in possible)
    common = longest_common(tuple(ours), tuple(theirs))
    assert math.isclose(rouge_in_one_line([summary], [reference])[0], percent(common, len(ours), len(theirs)))
    recall = longest_common_recall(["\n".join(summary)], [reference])[0]
    assert math.isclose(recall, 100 * common / len(theirs) if theirs else 0.0)


@holds(40, pair=PAIRS, stemmed=st.booleans())
def test_symmetries_of_rouge(pair, stemmed):
    """ROUGE is between 0 and 100, the same when summary and reference change places, and 100 of a copy; order of
    sentences does not matter to R-1 and R-Lsum of a copy."""
    if stemmed and all(text.isascii() for texts in pair for text in texts):
        pair = [[f"{text} running" for text in texts] for texts in pair]
    summary, reference = pair
    one, other = rouge([summary], [reference])[0], rouge([reference], [summary])[0]
    assert (one >= 0).all() and (one <= 100 + 1e-9).all()
    if words_in(summary) and words_in(reference):  # or other words would be counted
        assert np.allclose(one[:2], other[:2])
        lines = (rouge_in_one_line([a], [b])[0] for a, b in ((summary, reference), (reference, summary)))
        assert math.isclose(*lines)
    if words_in(reference):
        copy = rouge([reference[::-1]], [reference])[0]
        assert math.isclose(copy[0], 100) and math.isclose(copy[2], 100)
        assert len(words_in(reference)) < 2 or math.isclose(rouge([reference], [reference])[0, 1], 100)


@holds(
    30,
    summary=sentences(["a", "bb", "cc"]),
    references=st.lists(sentences(["a", "bb", "cc"]), min_size=1, max_size=3),
    limit=st.integers(0, 12),
)
def test_limited_recall(summary, references, limit):
    """Recall of the first bytes: the best of the references, averaged over leaving one of several out."""
    shown = tuple(" ".join(summary)[:limit].split())
    scores = []
    for reference in references:
        words = tuple(words_in(reference))
        overlaps = [((grams(shown, n) & grams(words, n)).total(), grams(words, n).total()) for n in (1, 2)]
        overlaps.append((longest_common(shown, words), len(words)))
        scores.append([100 * matched / every if every else 0.0 for matched, every in overlaps])
    left = [scores[:i] + scores[i + 1 :] for i in range(len(scores))] if len(scores) > 1 else [scores]
    expected = np.mean([np.max(some, axis=0) for some in left], axis=0)
    assert np.allclose(limited_recall([summary], [references], limit)[0], expected)


@holds(40, texts=st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=2, max_size=4), n=st.integers(1, 3))
def test_repetition(texts, n):
    """Repeated, copied and distinct n-grams are counted one by one."""
    for words in texts:
        parts = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        again = sum(part in parts[:i] for i, part in enumerate(parts))
        assert repeated_ngrams(words, n) == (again, len(parts))
    (summary, source), own = texts[:2], [tuple(texts[0][i : i + n]) for i in range(len(texts[0]) - n + 1)]
    copied = sum(any(tuple(source[j : j + n]) == part for j in range(len(source))) for part in own)
    assert ngram_counts(summary, source, [n]) == {n: (copied, len(own))}
    pooled = copied_ngrams([summary, summary], [source, summary], [n])[n]
    assert math.isclose(pooled, 100 * (copied + len(own)) / (2 * len(own)) if own else 0.0)
    assert distinct(texts) == [float(sum(a == b for b in texts) == 1) for a in texts]


# -------------------------------------------------------------------------------------------------------- bootstrap

VALUES = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=1, max_size=12)
SEEDS = st.integers(0, 99)


@holds(20, values=VALUES, seed=SEEDS, factor=st.sampled_from([0.5, 3.0, -2.0]), shift=st.floats(-9, 9))
def test_intervals(values, seed, factor, shift):
    """Intervals hold the mean and lie between the least and the largest value; a seed gives the same one again; they
    move and grow with the values."""
    found = interval(values, seed, resamples=400)
    assert math.isclose(found.mean, np.mean(values), abs_tol=1e-9)
    close = 1e-9 * (1 + np.abs(values).max())
    assert min(values) - close <= found.low <= found.mean + close
    assert found.mean - close <= found.high <= max(values) + close
    assert interval(values, seed, resamples=400) == found
    moved = interval(factor * np.array(values) + shift, seed, resamples=400)
    ends = sorted([factor * found.low + shift, factor * found.high + shift])
    assert np.allclose([moved.low, moved.high], ends, atol=1e-6)


@holds(15, values=st.lists(st.integers(-9, 9), min_size=1, max_size=4), seed=SEEDS)
def test_intervals_of_all_resamples(values, seed):
    """Ends of an interval are quantiles of all resamples that there are, up to chance."""
    means = np.sort([np.mean(some) for some in product(values, repeat=len(values))])
    found = interval(values, seed, resamples=1000)
    for end, share in ((found.low, 0.025), (found.high, 0.975)):  # five standard errors of a share: 0.025
        assert (means < end - 1e-9).mean() <= share + 0.026 and (means <= end + 1e-9).mean() >= share - 0.026


@holds(20, pairs=st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=12), seed=SEEDS)
def test_paired_differences(pairs, seed):
    """The paired difference of a system with itself is 0, that of two the opposite of theirs the other way, and that
    of one which is better by as much everywhere has no spread."""
    first, second = np.array(pairs).T
    none = paired_bootstrap(first, first, seed, resamples=200)
    assert (none.mean, none.low, none.high, none.p, none.is_real) == (0, 0, 0, 1, False)
    one, other = (paired_bootstrap(*both, seed, resamples=200) for both in ((first, second), (second, first)))
    assert np.allclose([one.mean, one.low, one.high, one.p], [-other.mean, -other.high, -other.low, other.p])
    assert math.isclose(one.mean, second.mean() - first.mean(), abs_tol=1e-9)
    better = paired_bootstrap(first, first + 1, seed, resamples=200)
    assert np.allclose([better.mean, better.low, better.high], 1) and better.p == 0
    runs = paired_bootstrap(np.stack([first, second]), np.stack([first, second]), seed, resamples=200)
    assert abs(runs.mean) < 1e-9 and runs.low <= 1e-9 and runs.high >= -1e-9


# -------------------------------------------------------------------------------------------------------- baselines


def numbered(texts: list[str]) -> list[str]:
    """Sentences that differ in marks, which are not counted, and in nothing else."""
    return [text + "!" * i for i, text in enumerate(texts, 1)]


def centralities(texts: list[str], threshold: float | None, damping: float) -> tuple[np.ndarray, float]:
    """The stationary distribution by solving for it, and how near to the threshold a cosine comes."""
    words = [text.replace("!", "").split() for text in texts]
    having = Counter(word for own in words for word in set(own))
    vectors = np.array([[own.count(w) * math.log(len(words) / n) for w, n in having.items()] for own in words])
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
    40, texts=sentences(["a", "bb", "cc", "d", "ee"], most=7).map(numbered), words=st.integers(1, 12),
    threshold=st.sampled_from([0.1, 0.5, None]), damping=st.sampled_from([0.85, 0.5]), random=st.randoms(),
)  # fmt: skip
def test_lexrank(texts, words, threshold, damping, random):
    """LexRank: the sentences that the solved stationary distribution ranks highest, until there are as many words, in
    document order, whatever the order of the document."""
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
        ours, theirs = (sum((grams(words, n) for words in texts), Counter()) for texts in (chosen, wanted))
        total += Fraction(2 * (ours & theirs).total(), max(1, ours.total() + theirs.total()))
    return total


def greedy_choices(source, wanted, count: int) -> set[tuple[int, ...]]:
    """The choices that a greedy search may make, with any of two equals first."""
    found, opened = set(), {()}
    while opened:
        chosen = opened.pop()
        before = agreement([source[i] for i in chosen], wanted)
        scores = {
            i: agreement([source[j] for j in (*chosen, i)], wanted) for i in range(len(source)) if i not in chosen
        }
        best = max(scores.values(), default=Fraction(0))
        if len(chosen) == count or best <= before:
            found.add(tuple(sorted(chosen)))
        else:
            opened |= {tuple(sorted((*chosen, i))) for i, score in scores.items() if score == best}
    return found


@holds(
    50,
    pair=ALPHABETS.flatmap(lambda words: st.tuples(sentences(words, most=5), sentences(words))),
    count=st.integers(1, 4),
)
def test_oracle(pair, count):
    """The oracle: a greedy choice by R-1 F1 + R-2 F1; no sentence alone, such as Lead's, is better than its first,
    and more sentences are not worse."""
    texts, reference = numbered(pair[0]), pair[1]
    cut = [text.replace("!", "").split() for text in texts]
    wanted = [text.split() for text in reference]
    assume(words_in(reference))  # or the text's own letters decide what is counted

    def choice(count: int | None) -> tuple[int, ...]:
        return tuple(texts.index(text) for text in oracle(texts, reference, count))

    assert choice(count) in greedy_choices(cut, wanted, count)
    assert choice(None) in greedy_choices(cut, wanted, len(texts))
    score = [agreement([cut[i] for i in choice(n)], wanted) for n in (1, 2, 3, None)]
    assert score == sorted(score)
    for text in lead(cut, len(cut)):
        assert agreement([text], wanted) <= score[0]


# ---------------------------------------------------------------------------------------------------------- support


@holds(60, texts=st.lists(TEXTS, min_size=1, max_size=4), more=TEXTS, random=st.randoms())
def test_support(texts, more, random):
    """Support: a copy has nothing that is not in the text, and one sentence carries each of its own; a longer text
    lets say more; counts of two summaries add up."""
    text, names = SourceText(texts), Names(texts)
    copy = support_counts(random.sample(texts, len(texts)), text, names)
    for kind in ("numbers", "names", "words", "pairs"):
        assert copy[kind][0] == 0, kind
    assert copy["carried"][0] == copy["carried"][1]
    other, longer = support_counts([more], text, names), SourceText([*texts, more])
    for kind in ("numbers", "names", "words", "pairs"):
        assert 0 <= support_counts([more], longer, names)[kind][0] <= other[kind][0] <= other[kind][1]
    both = support_counts([*texts, more], text, names)
    alone = support_counts(texts, text, names)
    assert both == {kind: tuple(a + b for a, b in zip(alone[kind], other[kind])) for kind in both}


@holds(60, text=TEXTS)
def test_terms(text):
    """Numbers and words of a sentence stand in it one after the other, and a word is compared as it is written."""
    shown, end = lowered(clean(text)), 0
    for term in terms(text):
        assert end <= term.start < term.end <= len(shown)
        assert term.is_number or not term.key or shown[term.start : term.end].replace("’", "'") == term.key
        end = term.end


@holds(
    40,
    number=st.integers(0, 10**9),
    decimals=st.integers(0, 999),
    zeros=st.integers(0, 3),
    behind=st.sampled_from(["%", " mg", "", ")"]),
)
def test_numbers_however_they_are_written(number, decimals, zeros, behind):
    """A number is the same with commas, spaces or nothing between its thousands, and with zeros at its end."""
    plain = f"{number}.{decimals:03}"
    ways = [plain, plain + "0" * zeros, f"{number:,}.{decimals:03}", f"{number:,}.{decimals:03}".replace(",", " ")]
    values = {terms(f"about {way}{behind} of it")[1].key for way in ways}
    assert values == {str(number) if not decimals else plain.rstrip("0")}


# ---------------------------------------------------------------------------------------------------- interventions


def in_the_padding(word: int) -> Change:
    """Another word where a text has none."""

    def change(model):
        encode = model.encode

        def encoded(batch, *more):
            source, extended = (
                x.where(batch.source_mask, torch.full_like(x, word)) for x in (batch.source, batch.source_extended)
            )
            return encode(replace(batch, source=source, source_extended=extended), *more)

        return _with(model, encode=encoded)

    return Change("another word in the padding", model=change)


def slots_in_order(order) -> Change:
    return Change("slots in another order", state=lambda state, _: replace(state, memory=state.memory[:, order]))


_MODELS = {name: make() for name, make in MODELS.items()}


@holds(
    30, name=st.sampled_from(sorted(MODELS)), texts=documents(VOCAB), size=st.integers(1, 4), random=st.randoms(),
    word=st.integers(0, VOCAB - 1),
)  # fmt: skip
def test_changes_of_nothing(name, texts, size, random, word):
    """What must change nothing changes no log P: no change, other batches, another order of documents or of slots,
    other words in the padding, a text before which none stands."""
    model = _MODELS[name]
    own = log_probs(model, texts, batch_size=1)
    assert np.isfinite(own).all()
    order = random.sample(range(len(texts)), len(texts))
    same = {
        "batches": log_probs(model, texts, batch_size=size),
        "order": log_probs(model, [texts[i] for i in order], batch_size=size)[np.argsort(order)],
        "nothing": log_probs(model, texts, changes_of(model)["nothing"]),
        "padding": log_probs(model, texts, in_the_padding(word)),
        "no repetition": [log_prob_after(model, text, text.target) for text in texts],
    }
    if "slots permuted" in changes_of(model):
        slots = random.sample(range(model.config.slots), model.config.slots)
        same |= {"slots": log_probs(model, texts, slots_in_order(slots))}
        same |= {"slots permuted": log_probs(model, texts, changes_of(model)["slots permuted"])}
    for what, values in same.items():
        assert np.allclose(values, own, rtol=0, atol=1e-11), what
