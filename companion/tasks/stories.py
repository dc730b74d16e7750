"""Random stories of three sentences. The summary repeats one of them, in the active voice.

Ten of the thirteen animals are outside the vocabulary, so that a model can only copy their names.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from companion.tasks.task import learn
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.vocabulary import EOS, Vocabulary
from lib.models.seq2seq import Seq2Seq, Seq2SeqConfig

VERBS = {
    "seen": "saw",
    "known": "knew",
    "drawn": "drew",
    "bitten": "bit",
    "chosen": "chose",
    "forgotten": "forgot",
}
IDLE, KNOWN = ["slept", "ran", "ate", "sat"], ["cat", "dog", "cow"]
RARE = ["zebra", "quokka", "okapi", "lynx", "panda", "otter", "llama", "koala", "tapir", "ibex"]
VOCABULARY = Vocabulary(["the", "was", "by", ".", *VERBS, *VERBS.values(), *IDLE, *KNOWN])
CONFIG = Seq2SeqConfig(len(VOCABULARY), embedding=24, hidden=48, bottleneck=24)

TEXT = ["the dog slept .", "the cat was seen by the zebra .", "the okapi ran ."]
SUMMARY = "the zebra saw the cat ."


def tell(rng: random.Random) -> tuple[list[str], str]:
    """Make up a text, in sentences, and its summary."""
    # known animals twice, so that they are less rare; a cat may see a cat
    who, whom, *others = rng.sample(2 * KNOWN + RARE, 4)
    verb = rng.choice(list(VERBS))
    text = [f"the {other} {rng.choice(IDLE)} ." for other in others]
    text.insert(rng.randrange(3), f"the {whom} was {verb} by the {who} .")
    return text, f"the {who} {VERBS[verb]} the {whom} ."


def story_of(text: Sequence[str], summary: str) -> EncodedDocument:
    """Encode a text and its summary; words outside the vocabulary have ids after it."""
    sentences = [sentence.split() for sentence in text]
    source, unknown = VOCABULARY.encode_source(w for words in sentences for w in words)
    target = [*VOCABULARY.encode_target(summary.split(), unknown), EOS]
    return EncodedDocument.of(
        "story", source, [len(words) for words in sentences], target, unknown, [summary]
    )


def unseen_stories(count: int = 100) -> list[EncodedDocument]:
    """Make stories that no training has, always the same."""
    return [story_of(*tell(random.Random(1000 + i))) for i in range(count)]


def batches(seed: int, steps: int) -> Iterator[Batch]:
    rng = random.Random(seed)
    for _ in range(steps):
        yield make_batch([story_of(*tell(rng)) for _ in range(32)], len(VOCABULARY))


def learned(
    seed: int, kind: Any = Seq2Seq, config: Seq2SeqConfig = CONFIG, steps: int = 300
) -> Any:
    """Train a small model on `steps` batches of 32 new stories."""
    torch.manual_seed(seed)
    return learn(kind(config), batches(seed, steps), learning_rate=3e-3)
