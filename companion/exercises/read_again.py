"""The cases of the exercises of the page on Read-Again, and the reader's own model.

The solutions are on the page, below each exercise: `notebooks/read_again.py`.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from companion.exercises.exercise import Case, Exercises
from companion.pages.frames import Frames
from companion.pages.read_again import copying_frames, gates
from companion.studies.importance import EQUAL
from companion.studies.word_dependence import embeddings_of, encoder_states
from companion.tasks import short_news
from companion.tasks.short_news import (
    RATE,
    SIX,
    STEPS,
    WRITTEN,
    dispatch_batches,
    dispatches,
    reader,
)
from companion.tasks.task import greedy_words, learn
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import EOS, UNK
from lib.models.read_again import ReadAgain, ReadAgainOutput
from lib.models.state import per_hypothesis

PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress
TEXT = [4, 7, 12, 5, 12, 6, 8]  # words from 7 on are names, which the decoder's vocabulary lacks


def _small_reader(encoder: str = "read-again gru") -> ReadAgain:
    return reader(3, encoder).requires_grad_(False).eval()


def _weights(model: ReadAgain) -> tuple[Tensor, ...]:
    parts = model.importance_word, model.importance_text, model.importance_input
    return *(part.weight for part in parts), model.importance_word.bias


def _numbers(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


# ---------------------------------------------------------------------------------
# the reader's own model

SIZES = {"one text": (1, 5), "three texts": (3, 4)}
READS = {
    name: (_numbers(B, n, 12), _numbers(B, 12), 2 * _numbers(B, n, 12), *_weights(_small_reader()))
    for name, (B, n) in SIZES.items()
}
STEPS_BY_HAND = {
    "one number": tuple(torch.tensor([value]) for value in (1.0, 0.6, 0.0, 0.5)),
    "two texts": (
        _numbers(2, 3),
        _numbers(2, 3).sigmoid(),
        _numbers(2, 3).tanh(),
        _numbers(3, 2).T.sigmoid(),
    ),
}
NAMES = {
    12: "a name at two places",
    5: "in Y and in the text",
    13: "in neither",
    4: "in Y",
    8: "a name",
}
SCORES = {
    f"words: {T}": (_numbers(T, 7), _numbers(T, 7).flip(1), torch.tensor(TEXT), 6) for T in (1, 3)
}


@PAGE.exercise(1, points=2, cases=READS)
def importance_of_words(
    first: Tensor, text: Tensor, x: Tensor, W_e: Tensor, U_e: Tensor, V_e: Tensor, b: Tensor
) -> Tensor:
    return torch.sigmoid(first @ W_e.T + b + (text @ U_e.T)[:, None] + x @ V_e.T)


@PAGE.exercise(2, points=2, cases=STEPS_BY_HAND)
def gated_update(h: Tensor, z: Tensor, new: Tensor, alpha: Tensor) -> Tensor:
    return (1 - alpha * z) * h + alpha * z * new


@PAGE.exercise(
    3,
    points=2,
    cases={what: (w, TEXT, _numbers(7, 4), _numbers(7, 4) + 9) for w, what in NAMES.items()},
)
def embed_word(word: int, source: list[int], table: Tensor, p: Tensor) -> Tensor:
    return (
        table[word]
        if word < len(table)
        else p[source.index(word)]
        if word in source
        else table[UNK]
    )


@PAGE.exercise(4, points=3, cases=SCORES)
def joint_distribution(g: Tensor, k: Tensor, source: Tensor, unknown: int) -> Tensor:
    P = torch.cat([g, k], 1).softmax(1)
    return F.pad(P[:, : g.shape[1]], (0, unknown)).index_add(1, source, P[:, g.shape[1] :])


def own_model(*functions: Callable, steps: int = STEPS) -> Frames | None:
    """Train a model whose new parts are computed by a reader's four functions, and the library's.
    Print how many headlines are right, and return the steps of one; nothing where a function is not
    right yet."""
    if not PAGE.ready(1, 2, 3, 4):
        return None
    importance, update, embed, joint = functions

    class Own(ReadAgain):
        def _importance(self, first: Tensor, text: Tensor, embedded: Tensor) -> Tensor:
            return importance(first, text, embedded, *_weights(self))

        def _embed(self, tokens: Tensor, source: Tensor, state: Any) -> Tensor:
            table, p = self.target_embedding.weight, per_hypothesis(state.embedded, len(tokens))
            rows = zip(tokens.tolist(), source.tolist(), p)
            return torch.stack(
                [torch.stack([embed(w, text, table, p) for w in words]) for words, text, p in rows]
            )

        def probabilities(self, output: ReadAgainOutput, extra: int) -> Tensor:
            rows = zip(self.generate(output.features), output.copy, output.source)
            return torch.stack([joint(g, k, text, extra) for g, k, text in rows])

        def log_prob(
            self, output: ReadAgainOutput, target: Tensor, state: Any, places: Any = None
        ) -> Tensor:
            P = self.probabilities(output, int(output.source.max()) + 1 - self.config.vocab_size)
            return P.gather(2, target[..., None]).squeeze(2).log()

        def distribution(self, output: ReadAgainOutput, state: Any, extra: int) -> Tensor:
            return self.probabilities(output, extra)[:, -1]

    def second_read(inputs: Tensor, alpha: Tensor) -> Tensor:
        states = [torch.zeros_like(alpha[:, 0])]
        for x, alpha_i in zip(inputs.unbind(1), alpha.unbind(1)):
            states.append(update(states[-1], *gates(x, states[-1], own.second_read.gru), alpha_i))
        return torch.stack(states[1:], 1)

    own, unseen, six = (
        reader(0, "read-again gru", Own),
        dispatches(200, 10**7),
        short_news.dispatch(*SIX[0]),
    )
    own.second_read.forward = second_read  # type: ignore[method-assign]
    for name, model in (("Your model", own), ("The library's", reader(0, "read-again gru"))):
        learn(model, dispatch_batches(0, range(steps)), RATE)
        print(
            f"{name}: {short_news.share_right(model, unseen):.0%} of 200 unseen headlines are right"
        )
    (words,) = greedy_words(own, [six], max_length=6, min_length=1)
    return copying_frames(own, six, [*words, EOS], [*WRITTEN.words, *six.unknown])


# ---------------------------------------------------------------------------------
# exercises


@PAGE.cases(5, points=2)
def importance_in_a_batch() -> Iterator[Case]:
    model = _small_reader()
    for lengths in ((12, 5), (5, 14, 1)):
        batch = make_batch(
            [EncodedDocument.of("", range(4, 4 + n), [n], [EOS]) for n in lengths], 20
        )
        mask, x = batch.source_mask, model.source_embedding(batch.source)
        arguments = model.first_read(x)[0], x, mask, *_weights(model)
        importance = model.encode(batch).importance
        assert importance is not None, "a GRU that reads again"
        expected = importance[mask]
        yield Case(
            f"texts of {', '.join(map(str, lengths))} words",
            arguments,
            expected,
            of=itemgetter(mask),
        )


SHARES = {
    "5 words": (torch.tensor([0.5, 0.8, 0.1, 0.6, 0.3]), torch.tensor([0.6, 0.5, 0.9, 0.8, 0.2])),
    "some α below 0": (torch.tensor([0.5, -0.7, 0.1, -0.2]), torch.tensor([0.4, 0.6, 0.3, 0.9])),
    "2 words": (torch.tensor([0.9, 0.7]), torch.tensor([0.4, 0.5])),
}


@PAGE.exercise(6, points=3, cases=SHARES)
def share_of_each_word(alpha: Tensor, z: Tensor) -> Tensor:
    shares = torch.zeros(len(z))
    for i, candidate in enumerate(torch.eye(len(z))):
        shares = (1 - alpha[i] * z[i]) * shares + alpha[i] * z[i] * candidate
    return shares


@PAGE.cases(7, points=3)
def acting_together() -> Iterator[Case]:
    text = EncodedDocument.of("", range(4, 13), [9], [EOS])
    for encoder in ("read-again gru", "bidirectional gru", "gru"):
        model = _small_reader(encoder).double()
        x, states = embeddings_of(model, text), partial(encoder_states, model, text)
        a, b = (0.5 * (torch.arange(9) == place)[:, None].expand_as(x) for place in (2, 7))
        yield Case(
            encoder,
            (states, x, a, b),
            states(x + a + b) - states(x + a) - states(x + b) + states(x),
        )


@PAGE.cases(8, points=3)
def equal_copying() -> Iterator[Case]:
    model = (
        learn(reader(0, "read-again gru"), dispatch_batches(0, range(40)), RATE)
        .requires_grad_(False)
        .eval()
    )
    for count in (1, 8):
        batch = make_batch(dispatches(count, 2), len(WRITTEN))
        state = model.encode(batch)
        output, _ = model.decode(batch.target_input, state)

        def loss(k: Tensor, output=output, batch=batch, state=state) -> Tensor:
            return model.nll(replace(output, copy=k), batch, state)

        with EQUAL["copying equal"].model(model):
            expected = model.loss(batch)["loss"]
        yield Case(
            f"loss of a trained model, texts: {count}",
            (output.copy, batch.source_mask),
            expected,
            loss,
        )
