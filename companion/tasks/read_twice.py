"""A task for a second read: the first and the last word together determine which word of a text
matters.

Each text has one word of each of four kinds, in any order, between two numbers. The kind whose
number is their sum, modulo four, is asked for, and the headline is the text's word of this kind. A
forward read reaches the last number after all words, and a backward read the first number. Until
then any of the four words may be the answer. Only a second read begins with both numbers. A model
that knows the words and not the kind, or the kind and not the word, is right in a quarter of the
texts.

In half of the texts to learn from the first number is 0, so that the last one is learned before the
sum is.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
import torch

from companion.tasks.task import Task, greedy_words, learn
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.vocabulary import EOS, SPECIALS
from lib.models.read_again import Encoder, ReadAgain, ReadAgainConfig, ReadAgainState

KINDS, WORDS = 4, 4  # kinds, and words of each
NUMBERS = len(SPECIALS)  # the id of the number 0
FIRST_WORD = NUMBERS + KINDS  # the words of a kind stand next to each other
SIZE = FIRST_WORD + KINDS * WORDS  # of the vocabulary
STEPS, BATCH, RATE, WIDTH = 1000, 128, 0.01, 32
UNSEEN = 1000  # texts that are asked for their word


def words_between_numbers(count: int, seed: int, zeros: float = 0.0) -> list[EncodedDocument]:
    """Make texts of a number, a word of each kind and a number. The target is the word that is
    asked for and [EOS].

    zeros: the share of the texts whose first number is 0 for certain.
    """
    random = np.random.default_rng(seed)
    first, last = random.integers(0, KINDS, (2, count))
    first = np.where(random.random(count) < zeros, 0, first)
    words = FIRST_WORD + WORDS * np.arange(KINDS) + random.integers(0, WORDS, (count, KINDS))
    targets = words[np.arange(count), (first + last) % KINDS]
    texts = np.column_stack([NUMBERS + first, random.permuted(words, axis=1), NUMBERS + last])
    return [
        EncodedDocument.of(str(i), x, [len(x)], [y, EOS])
        for i, (x, y) in enumerate(zip(texts, targets))
    ]


class LastStateOnly(ReadAgain):
    """A decoder that starts from the encoder's last state, and whose attention gets zeros from
    every word."""

    def encode(self, batch: Batch) -> ReadAgainState:
        state = super().encode(batch)
        return state.replace(words=torch.zeros_like(state.words))


def asked(encoder: Encoder, kind: type[ReadAgain], seed: int) -> Mapping[str, float]:
    """Train a small model. Returns the shares of unseen texts for which it writes the right word,
    and the right kind."""
    torch.manual_seed(seed)
    sizes = {"embedding": WIDTH, "hidden": WIDTH, "dropout": 0.0}
    model = kind(
        ReadAgainConfig(SIZE, SIZE, encoder=encoder, copy=False, importance="sigmoid", **sizes)
    )
    batches = (
        make_batch(words_between_numbers(BATCH, seed * STEPS + step, 0.5), SIZE)
        for step in range(STEPS)
    )
    learn(model, batches, RATE)
    unseen = words_between_numbers(UNSEEN, 10**6 + seed)
    words = np.array([ids[0] for ids in greedy_words(model, unseen, max_length=2, min_length=1)])
    right = np.array([document.target[0] for document in unseen])
    kinds = (words - FIRST_WORD) // WORDS == (right - FIRST_WORD) // WORDS
    return {"right": float(np.mean(words == right)), "right kind": float(np.mean(kinds))}


TASK = Task(
    "the word that the numbers at both ends ask for (chance: 0.25)",
    {
        "once, last state": partial(asked, "gru", LastStateOnly),
        "bidirectional, last states": partial(asked, "bidirectional gru", LastStateOnly),
        "twice, last state": partial(asked, "read-again gru", LastStateOnly),
        "once, all states": partial(asked, "gru", ReadAgain),
    },
)
