"""One wrong word among those that a decoder is fed: what it costs the words after it, and whether a phrase that is
fed twice goes on as it did the first time."""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from companion.tasks.synthetic import PLAIN, planted_sentences
from companion.tasks.task import Task, learn
from lib.data.batch import Batch, make_batch
from lib.models.seq2seq import Seq2Seq, Seq2SeqConfig

VOCABULARY, PHRASE = 100, 5  # ids; words of a planted sentence: three of them are the summary
STEPS, BATCH, RATE = 300, 32, 3e-3
SLIP, TESTED = 6, 200  # the place of the wrong word, from 0: the second of the second sentence; texts


def _batch(seed: int, count: int = BATCH) -> Batch:
    return make_batch(planted_sentences(count, seed, vocab_size=VOCABULARY), VOCABULARY)


def with_wrong_words(batch: Batch, share: float, generator: torch.Generator) -> Batch:
    """Replace a share of the words that are fed, except [BOS], by random ones; the target is the same."""
    fed = batch.target_input
    wrong = torch.rand(fed.shape, generator=generator) < share
    wrong[:, 0] = False
    words = torch.randint(PLAIN + 1, VOCABULARY, fed.shape, generator=generator)
    return replace(batch, target_input=words.where(wrong, fed))


@torch.no_grad()
def _log_probs(model: Seq2Seq, batch: Batch, fed: Tensor, words: Tensor) -> Tensor:
    """log P of words [B, T] at each step while others are fed."""
    state = model.encode(batch)
    output, _ = model.decode(fed, state)
    return model.log_prob(output, words, state)


def solve(share: float, seed: int) -> dict[str, float]:
    """Train a pointer-generator that is fed so large a share of wrong words. Measures: nats a word after the place of
    the slip, with the true word fed there and with a random one; and, where the beginning of the first sentence is
    fed instead of that of the second, the probability of the word that came next the first time."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Seq2Seq(Seq2SeqConfig(VOCABULARY, embedding=24, hidden=48, bottleneck=24))
    made = (_batch(1000 * (seed + 1) + i) for i in range(STEPS))
    learn(model, (with_wrong_words(batch, share, generator) for batch in made), RATE).eval()

    batch = _batch(0, TESTED)
    true, fed = batch.target, batch.target_input
    slipped = fed.clone()
    generator = torch.Generator().manual_seed(0)
    slipped[:, SLIP + 1] = torch.randint(PLAIN + 1, VOCABULARY, (TESTED,), generator=generator)
    twice, again = fed.clone(), true.clone()
    twice[:, PHRASE + 1 : PHRASE + 3] = true[:, :2]
    again[:, PHRASE + 2] = true[:, 2]
    return {
        "nats after the true word": -float(_log_probs(model, batch, fed, true)[:, SLIP + 1 :].mean()),
        "nats after a wrong word": -float(_log_probs(model, batch, slipped, true)[:, SLIP + 1 :].mean()),
        "goes on as before, twice": float(_log_probs(model, batch, twice, again)[:, PHRASE + 2].exp().mean()),
    }


TASK = Task(
    "one wrong word among those that a decoder is fed, and phrases that it is fed twice",
    {"references alone": partial(solve, 0.0), "one word in five wrong": partial(solve, 0.2)},
)
