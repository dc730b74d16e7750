"""Exercises of the page that all others stand on."""

from collections.abc import Iterator, Mapping
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
from lib.evaluation.bootstrap import paired_bootstrap
from lib.models.seq2seq import Seq2Seq, Seq2SeqConfig

VOCABULARY = 12  # ids from 12 on are of words that it does not have
PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress


@PAGE.cases(1, points=2)
def generated_or_copied() -> Iterator[Case]:
    torch.manual_seed(0)
    model = Seq2Seq(Seq2SeqConfig(VOCABULARY, embedding=4, hidden=6, bottleneck=4)).double().requires_grad_(False)
    for source, steps in (([4, 5, 12, 6, 12, 13], 3), ([12, 13, 7], 2), ([6, 6, 6, 12, 12], 1)):
        document = EncodedDocument.of("", source, [len(source)], [6, 12, EOS], ["zebra", "ibex"])
        batch = make_batch([document], VOCABULARY)
        output, state = model.decode(batch.target_input[:, :steps], model.encode(batch))
        generating = replace(output, switch=torch.full_like(output.switch, 1e9))
        P_g = model.distribution(generating, state, extra=2)[0, :VOCABULARY]
        z, alpha = output.switch[0, -1].sigmoid(), output.copy[0, -1]
        P = model.distribution(output, state, extra=2)[0]
        yield Case(f"a text of {source}", (z, P_g, alpha, torch.tensor(source), VOCABULARY + 2), P)


Chain = Mapping[str, Mapping[str, float]]  # by the word before, "" at the beginning
END = {"[EOS]": 1.0}
TABLE: Chain = {
    "": {"zebra": 0.6, "cat": 0.4},
    "zebra": {"ran": 0.52, "saw": 0.48},
    "cat": {"slept": 0.9, "ran": 0.1},
    **dict.fromkeys(("ran", "saw", "slept"), END),
}
CATS: Chain = {
    "": {"cats": 0.9, "dogs": 0.1},
    "cats": {"[EOS]": 0.5, "sleep": 0.3, "run": 0.2},
    "dogs": {"sleep": 0.5, "run": 0.5},
    "sleep": {"and": 0.6, "[EOS]": 0.4},
    "run": {"and": 0.7, "[EOS]": 0.3},
    **{"and": {"eat": 1.0}, "eat": END},
}
LATE_CATS: Chain = CATS | {"cats": {"sleep": 0.7, "[EOS]": 0.3}, "sleep": {"and": 0.9, "[EOS]": 0.1}}


BEAMS = (  # the size of the beam, the most symbols, and the best summary that such a beam finds
    (CATS, 3, 5, "cats [EOS]"),
    (TABLE, 2, 3, "cat slept [EOS]"),
    (TABLE, 1, 3, "zebra ran [EOS]"),
    (LATE_CATS, 3, 5, "cats sleep and eat [EOS]"),
)


@PAGE.cases(2, points=2, shown=len(BEAMS))
def best_of_beam() -> Iterator[Case]:
    for number, (chain, K, most, best) in enumerate(BEAMS, start=1):

        def next_words(words: list[str], chain=chain) -> Mapping[str, float]:
            return chain.get(words[-1] if words else "", {})

        yield Case(f"model {number}, a beam of {K}", (next_words, K, most), best.split())


@PAGE.exercise(3, points=3, shown=2, cases=[(7, 5), (3, 5), (20, 4), (1, 6), (9, 9)])
def extremes_of_coverage_loss(T: int, N: int) -> list[float]:
    everywhere = torch.full((T, N), 1 / N)
    in_turn = torch.eye(N)[torch.arange(T) % N]  # each word once before any word twice
    return [torch.minimum(alphas, alphas.cumsum(0) - alphas).sum().item() for alphas in (everywhere, in_turn)]


@PAGE.exercise(4, points=3, cases=[(0.3, 0.8, 0.2), (0.5, 0.0, 0.4), (0.9, 0.3, 0.3), (0.01, 0.5, 0.001)])
def push_on_the_switch(p: float, P_g: float, P_c: float) -> Tensor:
    return slope(lambda q: (q.sigmoid() * P_g + (1 - q.sigmoid()) * P_c).log(), logit(p))


@PAGE.prediction(5, points=3)
def shown_by_intervals() -> dict[str, bool]:
    random = np.random.default_rng(0)
    first = random.normal(40, 8, 60)
    second = first + random.normal(1, 1, 60)
    real = {}
    for what, scores in (("as they are", second), ("sorted by mistake", np.sort(second))):
        apart = [scores[random.integers(0, 60, (2000, 60))].mean(1) for scores in (first, scores)]
        low, high = np.percentile(apart[1] - apart[0], [2.5, 97.5])
        real[f"paired, {what}"] = bool(paired_bootstrap(first, scores).is_real)
        real[f"unpaired, {what}"] = bool(low > 0 or high < 0)
    return real


@PAGE.prediction(6, points=3)
@cache
def smaller_loss_and_better_summary() -> dict[str, str]:
    """Of summaries whose words the vocabulary lacks: the loss, and the mean probability of their first words by their
    own ids, not as [UNK]."""
    loss, first = {}, {}
    for name in ("plain", "pointer"):
        torch.manual_seed(0)
        model = Seq2Seq(Seq2SeqConfig(6, embedding=8, hidden=16, bottleneck=8, copy=name == "pointer"))
        *batches, last = (make_batch(planted_sentences(16, step, 3, 4, 1, 20), 6) for step in range(31))
        loss[name] = learn(model, iter(batches), 1e-2).loss(last)["loss"].item()
        P = model.distribution(*model.decode(last.target_input[:, :1], model.encode(last)), extra=14)
        first[name] = P.gather(1, last.target[:, :1]).mean().item()
    return {"the loss": min(loss, key=loss.__getitem__), "the summary": max(first, key=first.__getitem__)}
