"""Exercises of the page on Read-Again."""

from collections.abc import Iterator
from functools import cache
from operator import itemgetter

import torch
from torch import Tensor, nn

from companion.exercises.exercise import Case, Exercises
from companion.tasks.synthetic import planted_sentences
from companion.tasks.task import learn
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.vocabulary import BOS, EOS
from lib.models.read_again import ReadAgain, ReadAgainConfig

KNOWN = 12  # words of both vocabularies; ids from here on are unknown words
PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress


def small_reader(seed: int = 0, **changes) -> ReadAgain:
    """With random weights; both tables have 12 rows where nothing else is said."""
    torch.manual_seed(seed)
    sizes = {"vocab_size": KNOWN, "source_vocab_size": KNOWN, "embedding": 4, "hidden": 5, "dropout": 0.0}
    return ReadAgain(ReadAgainConfig(**{**sizes, **changes})).requires_grad_(False)


def _texts(*texts: list[int]) -> Batch:
    return make_batch([EncodedDocument.of("", text, [len(text)], [EOS]) for text in texts], KNOWN)


@PAGE.cases(1, points=2)
def importance_in_a_batch() -> Iterator[Case]:
    reader = small_reader(encoder="read-again gru")
    parts = reader.importance_word, reader.importance_text, reader.importance_input
    weights = *(part.weight for part in parts), reader.importance_word.bias
    for texts in (([4, 7, 10, 5, 8, 6], [9, 4, 5]), ([5, 5, 8], [7, 11, 6, 4, 9, 5, 8], [6])):
        batch, mask = _texts(*texts), _texts(*texts).source_mask
        x, state = reader.source_embedding(batch.source), reader.encode(batch)
        what = f"texts of {', '.join(str(len(text)) for text in texts)} words"
        arguments = reader.first_read(x)[0], x, mask, *weights
        yield Case(what, arguments, state.importance[mask], of=itemgetter(mask))  # type: ignore[index]


@PAGE.cases(2, points=2, shown=2)
def shared_softmax() -> Iterator[Case]:
    reader, text = small_reader(), [4, 7, 12, 5, 12, 6, 7]
    batch = _texts(text)
    state = reader.encode(batch)
    output, _ = reader.decode(torch.tensor([[BOS]]), state)
    g, k = reader.generate(output.features)[0, 0], output.copy[0, 0]
    names = {12: "not in Y, at two places", 5: "in Y, at one place", 8: "in Y alone", 7: "in Y, at two places"}
    for word, what in names.items():
        P = reader.log_prob(output, torch.tensor([[word]]), state).exp()
        yield Case(f"word {word}, {what}", (word, g, k, text), P[0, 0])


SHARES = {
    "5 words": (torch.tensor([0.5, 0.8, 0.1, 0.6, 0.3]), torch.tensor([0.6, 0.5, 0.9, 0.8, 0.2])),
    "some α below 0": (torch.tensor([0.5, -0.7, 0.1, -0.2]), torch.tensor([0.4, 0.6, 0.3, 0.9])),
    "2 words": (torch.tensor([0.9, 0.7]), torch.tensor([0.4, 0.5])),
}


@PAGE.exercise(3, points=3, cases=SHARES)
def share_of_each_word(alpha: Tensor, z: Tensor) -> Tensor:
    shares = torch.zeros(len(z))
    for i, candidate in enumerate(torch.eye(len(z))):
        shares = (1 - alpha[i] * z[i]) * shares + alpha[i] * z[i] * candidate
    return shares


@PAGE.prediction(4, points=3)
def never_meet() -> dict[str, bool]:
    """Whether words 3 and 8 of nine, both changed, change the state of word 5 by the sum of what each does."""
    texts = torch.arange(9).repeat(4, 1) % 4 + 4
    texts[:, 2], texts[:, 7] = torch.tensor([4, 9, 4, 9]), torch.tensor([6, 6, 11, 11])

    def of_reader(encoder: str) -> Tensor:
        return small_reader(encoder=encoder).double().encode(_texts(*texts.tolist())).words

    def of_both_sides(layers: int) -> Tensor:
        torch.manual_seed(0)
        table = torch.randn(KNOWN, 4).double()
        return nn.GRU(4, 5, layers, batch_first=True, bidirectional=True).double()(table[texts])[0]

    states = {"one read": of_reader("gru"), "bidirectional": of_both_sides(1)}
    states |= {"two bidirectional layers": of_both_sides(2), "read again": of_reader("read-again gru")}
    changes = {name: (one[0] - one[1] - one[2] + one[3]) for name, of in states.items() for one in [of[:, 4]]}
    return {name: bool(change.abs().max() <= 1e-12) for name, change in changes.items()}


@PAGE.prediction(5, points=3)
def next_word_changes() -> dict[str, bool]:
    text = _texts([4, 12, 7, 13, 6])

    def changes(one: int, other: int, copy: bool = True) -> bool:
        reader = small_reader(copy=copy)
        fed = (reader.decode(torch.tensor([[BOS, word]]), reader.encode(text))[0] for word in (one, other))
        first, second = (output.features[0, 1] for output in fed)
        return not torch.allclose(first, second)

    found = {"both in the text": changes(12, 13), "neither in the text": changes(14, 15)}
    return found | {"without copying": changes(12, 13, copy=False)}


@PAGE.prediction(6, points=3)
@cache
def smaller_loss() -> dict[str, str]:
    def loss(copy: bool, size: int) -> float:
        sizes = {"embedding": 16, "hidden": 16, "copy": copy, "vocab_size": size, "source_vocab_size": size}
        reader = small_reader(**sizes).requires_grad_()
        *batches, last = (make_batch(planted_sentences(16, i, 4, 6, 1, 30), size) for i in range(31))
        return learn(reader, iter(batches), 1e-2).loss(last)["loss"].item()

    sizes = {"all words in Y": 30, "no word in Y": 6}
    return {what: "copying" if loss(True, n) < loss(False, n) else "without" for what, n in sizes.items()}
