"""One wrong word among those that a decoder is fed: what it costs the words after it, and whether a phrase that was
written twice goes on as it did the first time."""

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
    """A batch in which a share of the words that are fed, [BOS] apart, are random ones; the target is the same."""
    fed = batch.target_input
    wrong = torch.rand(fed.shape, generator=generator) < share
    wrong[:, 0] = False
    words = torch.randint(PLAIN + 1, VOCABULARY, fed.shape, generator=generator)
    return replace(batch, target_input=words.where(wrong, fed))


def learn_slips(seed: int, share: float) -> Seq2Seq:
    """A pointer-generator that was fed so large a share of wrong words in training."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Seq2Seq(Seq2SeqConfig(VOCABULARY, embedding=24, hidden=48, bottleneck=24))
    made = (_batch(1000 * (seed + 1) + i) for i in range(STEPS))
    return learn(model, (with_wrong_words(batch, share, generator) for batch in made), RATE).eval()


@torch.no_grad()
def read(model: Seq2Seq, batch: Batch, words: Tensor) -> tuple[Tensor, Tensor]:
    """log P of words [B, T] at each step, and attention [B, T, N], while a batch's fed words are read."""
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    return model.log_prob(output, words, state), output.copy


def _row(seed: int, share: float) -> dict[str, float]:
    """Nats a word of what follows the place of the slip, with the true word fed there and with a random one; the
    probability of the true next word and of the one that followed the phrase the first time, where the beginning of
    the first sentence is fed in place of that of the second; the attention to the place of either."""
    model, batch = learn_slips(seed, share), _batch(0, TESTED)
    true, generator = batch.target, torch.Generator().manual_seed(0)
    slipped = batch.target_input.clone()
    slipped[:, SLIP + 1] = torch.randint(PLAIN + 1, VOCABULARY, (TESTED,), generator=generator)
    right, _ = read(model, batch, true)
    wrong, _ = read(model, replace(batch, target_input=slipped), true)
    return {
        "nats after the true word": -float(right[:, SLIP + 1 :].mean()),
        "nats after a wrong word": -float(wrong[:, SLIP + 1 :].mean()),
        **{f"nats {i} later": -float(wrong[:, SLIP + i].mean()) for i in (1, 2, 3)},
        **_said_again(model, batch),
    }


def _said_again(model: Seq2Seq, batch: Batch) -> dict[str, float]:
    """What comes after the first two words of the first sentence when they are fed a second time, and a third."""
    measures = {}
    for times, begin in (("twice", PHRASE), ("three times", 2 * PHRASE)):
        fed = batch.target_input.clone()
        for start in range(PHRASE, begin + 1, PHRASE):
            fed[:, start + 1 : start + 3] = batch.target[:, :2]
        again = batch.target.clone()
        again[:, begin + 2] = batch.target[:, 2]
        log_p, attention = read(model, replace(batch, target_input=fed), again)
        true_p, _ = read(model, replace(batch, target_input=fed), batch.target)
        place = (batch.source[:, :, None] == batch.target[:, None, 2:3]).squeeze(2)
        measures |= {
            f"goes on as before, {times}": float(log_p[:, begin + 2].exp().mean()),
            f"goes on rightly, {times}": float(true_p[:, begin + 2].exp().mean()),
            f"looks where it looked, {times}": float((attention[:, begin + 2] * place).sum(1).mean()),
        }
    return measures


TASK = Task(
    "one wrong word among those that a decoder is fed, and phrases that it is fed twice",
    {"references alone": partial(_row, share=0.0), "one word in five wrong": partial(_row, share=0.2)},
)
