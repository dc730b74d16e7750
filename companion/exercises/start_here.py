"""Exercises of the page that all others stand on."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

from companion.exercises.exercise import Case, Exercises, logit, slope
from companion.tasks.synthetic import planted_sentences
from companion.tasks.task import learn
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import EOS
from lib.decoding.search import DecodeConfig
from lib.evaluation.bootstrap import paired_bootstrap
from lib.evaluation.rouge import repeated_ngrams, rouge
from lib.models.seq2seq import Seq2Seq, Seq2SeqConfig

VOCABULARY = 12  # ids from 12 on are of words that it does not have
ALWAYS = 1e9  # score of a switch that always generates; with the opposite sign, always copies
PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress


def _of_text(source: list[int], switch: float | None = None, steps: int = 3) -> tuple:
    """A model with random weights, its output for [BOS], 6, 12 after reading a text, and the state then. switch: the
    score that its switch has at every step."""
    torch.manual_seed(0)
    model = Seq2Seq(Seq2SeqConfig(VOCABULARY, embedding=4, hidden=6, bottleneck=4)).double().requires_grad_(False)
    batch = make_batch([EncodedDocument.of("", source, [len(source)], [6, 12, EOS], ["zebra", "ibex"])], VOCABULARY)
    output, state = model.decode(batch.target_input[:, :steps], model.encode(batch))
    if switch is not None:
        output = replace(output, switch=torch.full_like(output.switch, switch))
    return model, output, state


@PAGE.cases(1, points=2)
def generated_or_copied() -> Iterator[Case]:
    size = VOCABULARY + 2
    for source, steps in (([4, 5, 12, 6, 12, 13], 3), ([12, 13, 7], 2), ([6, 6, 6, 12, 12], 1)):
        model, output, state = _of_text(source, steps=steps)
        generated = model.distribution(*_of_text(source, ALWAYS, steps)[1:], extra=2)[0, :VOCABULARY]
        z, alpha = output.switch[0, -1].sigmoid(), output.copy[0, -1]
        P = model.distribution(output, state, extra=2)[0]
        yield Case(f"a text of {source}", (z, generated, alpha, torch.tensor(source), size), P)


Chain = Mapping[str, Mapping[str, float]]  # by the word before, "" at the beginning
TABLE: Chain = {
    "": {"zebra": 0.6, "cat": 0.4},
    "zebra": {"ran": 0.52, "saw": 0.48},
    "cat": {"slept": 0.9, "ran": 0.1},
    **{word: {"[EOS]": 1.0} for word in ("ran", "saw", "slept")},
}
CATS: Chain = {
    "": {"cats": 0.9, "dogs": 0.1},
    "cats": {"[EOS]": 0.5, "sleep": 0.3, "run": 0.2},
    "dogs": {"sleep": 0.5, "run": 0.5},
    "sleep": {"and": 0.6, "[EOS]": 0.4},
    "run": {"and": 0.7, "[EOS]": 0.3},
    "and": {"eat": 1.0},
    "eat": {"[EOS]": 1.0},
}
LATE_CATS: Chain = CATS | {
    "cats": {"sleep": 0.7, "[EOS]": 0.3},
    "sleep": {"and": 0.9, "[EOS]": 0.1},
}


def _next_words(chain: Chain) -> Callable[[list[str]], Mapping[str, float]]:
    return lambda words: chain.get(words[-1] if words else "", {})


def _all_summaries(chain: Chain, words: tuple[str, ...] = (), p: float = 1.0) -> Iterator[tuple[float, list[str]]]:
    """Every summary that ends, and its probability."""
    if words[-1:] == ("[EOS]",):
        yield p, list(words)
    for word, p_word in _next_words(chain)([*words]).items():
        yield from _all_summaries(chain, (*words, word), p * p_word)


@PAGE.cases(2, points=2, shown=4)
def best_of_beam() -> Iterator[Case]:
    for number, (chain, K, most) in enumerate(((CATS, 3, 5), (TABLE, 2, 3), (LATE_CATS, 3, 5)), start=1):
        best = max(_all_summaries(chain))[1]  # which a beam of this size finds
        yield Case(f"model {number}, a beam of {K}", (_next_words(chain), K, most), best)
        if chain is TABLE:
            yield Case(f"model {number}, a beam of 1", (_next_words(chain), 1, most), ["zebra", "ran", "[EOS]"])


@PAGE.cases(3, points=2)
def deceiving_summary() -> Iterator[Case]:
    def scores(reference: str) -> Callable[[list[str]], list[float]]:
        return lambda summary: rouge([[" ".join(summary)]], [[reference]])[0, :2].tolist()

    for reference in ("the cat saw the dog", "a fox saw the cat", "the fox and the fox ran", "an ox ate it all up"):
        yield Case(f"R-1 and R-2, {reference!r}", (reference.split(),), [100.0, 0.0], of=scores(reference))


@PAGE.exercise(4, points=3, cases=[[5], [3], [10], [100]])
def repeated_when_written_twice(n: int) -> float:
    repeated, trigrams = repeated_ngrams([str(i) for i in range(n)] * 2)
    return repeated / trigrams


def _coverage_loss(alphas: Tensor) -> float:
    """The sum of (16) over the steps of weights [T, N]."""
    covered = alphas.cumsum(0) - alphas
    return torch.minimum(alphas, covered).sum().item()


@PAGE.exercise(5, points=3, shown=2, cases=[(7, 5), (3, 5), (20, 4), (1, 6), (9, 9)])
def extremes_of_coverage_loss(T: int, N: int) -> list[float]:
    everywhere = torch.full((T, N), 1 / N)
    in_turn = torch.eye(N)[torch.arange(T) % N]  # each word once before any word twice
    return [_coverage_loss(everywhere), _coverage_loss(in_turn)]


@PAGE.exercise(6, points=3, cases=[(0.3, 0.8, 0.2), (0.5, 0.0, 0.4), (0.9, 0.3, 0.3), (0.01, 0.5, 0.001)])
def push_on_the_switch(p: float, P_g: float, P_c: float) -> Tensor:
    return slope(lambda q: (q.sigmoid() * P_g + (1 - q.sigmoid()) * P_c).log(), logit(p))


@PAGE.exercise(7, points=3, cases=[(-2.0, 5, -3.0, 10), (-1.0, 4, -2.5, 16), (-7.0, 20, -7.1, 21)])
def exponent_of_a_tie(a: float, n: int, b: float, m: int) -> float:
    """The exponent at which the shorter hypothesis is ahead no more, found by halving."""
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        rule = DecodeConfig(length_penalty=middle)
        low, high = (middle, high) if rule.rank(a, n) > rule.rank(b, m) else (low, middle)
    return low


@PAGE.cases(8, points=3)
def still_possible() -> Iterator[Case]:
    source = [4, 5, 12, 6, 12, 13]
    model, output, state = _of_text(source, -ALWAYS)
    P = model.distribution(output, state, extra=2)[0]
    for what, summary in (("three words", [6, 7, 13]), ("all words", [*range(4, 14)])):
        yield Case(what, (source, summary), [int(P[word] > 0) for word in [*summary, EOS]])


@PAGE.cases(9, points=3)
def shown_by_intervals() -> Iterator[Case]:
    random = np.random.default_rng(0)
    first = random.normal(40, 8, 60)
    second = first + random.normal(1, 1, 60)
    for number, (what, scores) in enumerate((("as they are", second), ("sorted by mistake", np.sort(second)))):
        apart = [scores[random.integers(0, 60, (2000, 60))].mean(1) for scores in (first, scores)]
        low, high = np.percentile(apart[1] - apart[0], [2.5, 97.5])
        real = [int(paired_bootstrap(first, scores).is_real), int(low > 0 or high < 0)]
        yield Case(what, (), real, of=lambda result, number=number: result[2 * number : 2 * number + 2])


@cache
def _learned(copy: bool) -> Seq2Seq:
    """After 30 steps on summaries whose words the vocabulary lacks."""
    torch.manual_seed(0)
    model = Seq2Seq(Seq2SeqConfig(6, embedding=8, hidden=16, bottleneck=8, copy=copy))
    return learn(model, (make_batch(planted_sentences(16, step, 3, 4, 1, 20), 6) for step in range(30)), 1e-2)


@PAGE.prediction(10, points=3)
def smaller_loss_and_better_summary() -> dict[str, str]:
    models = {"plain": _learned(copy=False), "pointer": _learned(copy=True)}
    batch = make_batch(planted_sentences(16, 30, 3, 4, 1, 20), 6)
    loss = {name: model.loss(batch)["loss"].item() for name, model in models.items()}
    first = {name: _of_first_word(model, batch) for name, model in models.items()}
    return {"the loss": min(loss, key=loss.__getitem__), "the summary": max(first, key=first.__getitem__)}


@torch.no_grad()
def _of_first_word(model: Seq2Seq, batch) -> float:
    """The mean probability of the summaries' first words, by their own ids and not as [UNK]."""
    P = model.distribution(*model.decode(batch.target_input[:, :1], model.encode(batch)), extra=14)
    return P.gather(1, batch.target[:, :1]).mean().item()
