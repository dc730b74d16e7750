"""Dispatches of two sentences, an offer and an answer, whose headline says who buys or who is
rejected.

    kestrel says norbalt wants to buy tessera . the board of tessera agrees .      norbalt to buy tessera
    kestrel says norbalt may be sold to tessera . the board of norbalt refuses .   norbalt rejects tessera

Which name begins depends on the answer, which name is which on the offer, and either sentence may
come first. The decoder's vocabulary has no name, so that names can only be copied; half of them the
encoder does not know either.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from companion.tasks.read_twice import LastStateOnly
from companion.tasks.task import Task, greedy_words, learn
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.vocabulary import EOS, UNK, Vocabulary
from lib.models.read_again import ReadAgain, ReadAgainConfig, ReadAgainState

NAMES = [
    begin + end
    for begin in ("ald", "bren", "cor", "dun", "ev")
    for end in ("ane", "ick", "ost", "ulm")
]
WRITTEN = Vocabulary(["to", "buy", "rejects"])  # Y
PLAIN = [
    "to",
    "buy",
    "says",
    "wants",
    "may",
    "be",
    "sold",
    "the",
    "board",
    "of",
    "agrees",
    "refuses",
    ".",
]
READ = Vocabulary([*PLAIN, *NAMES])
STEPS, BATCH, RATE, WIDTH = 150, 32, 0.01, 12
EARLY = 60  # batches before the first measurement
UNSEEN = 500
# names of three companies, whether the second wants to buy the third or may be sold to it, the
# answer, the order
SIX = (
    ("kestrel", "norbalt", "tessera", True, True, False),
    ("velmora", "ostervik", "kestrel", False, False, False),
    ("tessera", "norbalt", "velmora", False, True, True),
    ("ostervik", "tessera", "norbalt", True, False, False),
    ("norbalt", "velmora", "kestrel", True, False, True),
    ("tessera", "kestrel", "ostervik", False, True, False),
)


def dispatch(
    teller: str, first: str, second: str, buys: bool, agrees: bool, answer_first: bool = False
) -> EncodedDocument:
    """Encode one dispatch, with its headline as the target.

    teller, first, second: names; buys: the first wants to buy the second, or else may be sold to
    it.
    """
    buyer, other = (first, second) if buys else (second, first)
    offer = f"{teller} says {first} {'wants to buy' if buys else 'may be sold to'} {second} ."
    answer = f"the board of {other} {'agrees' if agrees else 'refuses'} ."
    headline = f"{buyer} to buy {other}" if agrees else f"{other} rejects {buyer}"
    sentences = [text.split() for text in ([answer, offer] if answer_first else [offer, answer])]
    words = [word for sentence in sentences for word in sentence]
    source, unknown = WRITTEN.encode_source(words)
    target = [*WRITTEN.encode_target(headline.split(), unknown), EOS]
    known, _ = READ.encode_source(words)
    read = np.array([i if i < len(READ) else UNK for i in known], dtype=np.int32)
    return replace(
        EncodedDocument.of(
            headline, source, list(map(len, sentences)), target, unknown, [headline]
        ),
        source_ids=read,
    )


def dispatches(count: int, seed: int) -> list[EncodedDocument]:
    """Draw dispatches. In each place the name is, with probability 1/2, one that the encoder does
    not know."""
    random, made = np.random.default_rng(seed), []
    for _ in range(count):
        teller, first, second = (
            NAMES[int(i)] if random.random() < 0.5 else f"stranger{i}"
            for i in random.choice(len(NAMES), 3, False)
        )
        buys, agrees, answer_first = (random.random(3) < 0.5).tolist()
        made.append(dispatch(teller, first, second, buys, agrees, answer_first))
    return made


class UnknownFedBack(ReadAgain):
    """Feed [UNK] back to the decoder instead of a word that is embedded by its context."""

    def _embed(self, tokens: Tensor, source: Tensor, state: ReadAgainState) -> Tensor:
        return super()._embed(tokens.where(tokens < self.config.vocab_size, UNK), source, state)


def reader(seed: int, encoder: str, kind: type[ReadAgain] = ReadAgain, **changes) -> ReadAgain:
    """Make a small model with random weights."""
    torch.manual_seed(seed)
    sizes = {"source_vocab_size": len(READ), "embedding": WIDTH, "hidden": WIDTH, "dropout": 0.0}
    made_of = {"encoder": encoder, "importance": "sigmoid", **sizes, **changes}
    return kind(ReadAgainConfig(len(WRITTEN), **made_of))


def dispatch_batches(seed: int, steps: range = range(STEPS)) -> Iterator[Batch]:
    return (make_batch(dispatches(BATCH, 10_000 * seed + step), len(WRITTEN)) for step in steps)


def headlines(model: ReadAgain, documents: Sequence[EncodedDocument]) -> list[str]:
    """Write headlines by greedy search."""
    words = greedy_words(model, documents, max_length=6, min_length=1)
    return [WRITTEN.text(ids, document.unknown) for ids, document in zip(words, documents)]


def shares_of_seed(
    encoder: str, kind: type[ReadAgain], seed: int, **changes
) -> Mapping[str, float]:
    """Train a small model. Returns the shares of unseen dispatches whose headline is right, early
    and at the end."""
    model, unseen = reader(seed, encoder, kind, **changes), dispatches(UNSEEN, 10**7 + seed)
    learn(model, dispatch_batches(seed, range(EARLY)), RATE)
    early = share_right(model, unseen)
    learn(model.train(), dispatch_batches(seed, range(EARLY, STEPS)), RATE)
    return {"right early": early, "right": share_right(model, unseen)}


def share_right(model: ReadAgain, documents: Sequence[EncodedDocument]) -> float:
    written = headlines(model, documents)
    return float(
        np.mean([one == document.reference[0] for one, document in zip(written, documents)])
    )


TASK = Task(
    f"headlines of an offer and an answer: whole ones that are right after {EARLY} and {STEPS} "
    "batches",
    {
        "twice, GRU": partial(shares_of_seed, "read-again gru", ReadAgain),
        "twice, LSTM": partial(shares_of_seed, "read-again lstm", ReadAgain),
        "once, GRU": partial(shares_of_seed, "gru", ReadAgain),
        "option 1": partial(shares_of_seed, "option 1", ReadAgain),
        "option 2": partial(shares_of_seed, "option 2", ReadAgain),
        "twice, GRU, without copying": partial(
            shares_of_seed, "read-again gru", ReadAgain, copy=False
        ),
        "twice, GRU, [UNK] fed back": partial(shares_of_seed, "read-again gru", UnknownFedBack),
        "twice, GRU, no attention": partial(shares_of_seed, "read-again gru", LastStateOnly),
    },
)
