"""The cases of the exercises of the page on Mem2Mem.

The solutions are on the page, below each exercise: `notebooks/mem2mem.py`.
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from companion.exercises.exercise import Case, Exercises, Function
from companion.pages.frames import Frames
from companion.pages.measured import over_seeds, task_results
from companion.pages.mem2mem import HandWritten, memory_weights, planted_steps
from companion.tasks.memory import MemoryAlone, learn_planted, memory_scores, unseen_documents
from companion.tasks.synthetic import planted_sentences
from companion.tasks.task import learn
from lib.data.batch import make_batch
from lib.evaluation.interventions import log_probs
from lib.models import mem2mem
from lib.models.changes import NOTHING
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from lib.models.memory_changes import MEMORY

VOCABULARY = 20
TEXTS = 5, 3  # sentences
PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress


@cache
def _of_two_texts() -> tuple:
    """A model whose attention is not uniform, a batch of two texts, their encoding, the decoder's
    output, its GRU's states, and what is read before the first word."""
    torch.manual_seed(0)
    model = Mem2Mem(
        Mem2MemConfig(VOCABULARY, embedding=8, hidden=8, bottleneck=8, slots=3, compression=8)
    ).double()
    for weight in model.requires_grad_(False).parameters():
        torch.nn.init.normal_(weight, std=0.7)
    texts = [planted_sentences(1, 0, sentences, 4, 1, VOCABULARY)[0] for sentences in TEXTS]
    batch = make_batch(texts, VOCABULARY)
    state = model.encode(batch)
    hidden, _ = model.decoder(model.embedding(batch.target_input), state.hidden[None])
    output, _ = model.decode(batch.target_input, state)
    return model, batch, state, output, hidden, model.condition(hidden[:, :1], state)[2].read


@PAGE.cases(1, points=2)
def compress() -> Iterator[Case]:
    model, _, state, *_ = _of_two_texts()
    for b, count in enumerate(TEXTS):
        given = state.sentences[b, :count], *memory_weights(model)["heads"]
        answer = torch.cat([state.write_attention[b, :, :count], state.memory[b]], 1)
        yield Case(f"{count} sentences", given, answer, of=partial(torch.cat, dim=1))


@PAGE.cases(2, points=2)
def read() -> Iterator[Case]:
    model, _, state, output, hidden, reads = _of_two_texts()
    for b, count in enumerate(TEXTS):
        given = hidden[b, 0], state.memory[b], *memory_weights(model)["read"]
        yield Case(
            f"{count} sentences", given, torch.cat([output.read[b, 0], reads[b]]), of=torch.cat
        )


@PAGE.cases(3, points=3)
def write() -> Iterator[Case]:
    model, _, state, _, hidden, reads = _of_two_texts()
    weights = memory_weights(model)
    for b, after in enumerate(model.write(state.memory, reads, model.write_hidden(hidden[:, 1]))):
        given = hidden[b, 1], reads[b], state.memory[b], weights["gate"], weights["update"]
        yield Case(f"{TEXTS[b]} sentences", given, after)


@PAGE.cases(4, points=1)
def compression_loss() -> Iterator[Case]:
    attention = _of_two_texts()[2].write_attention
    for b, loss in enumerate(mem2mem.compression_loss(attention)):
        yield Case(f"{TEXTS[b]} sentences", (attention[b],), loss)


@PAGE.cases(5, points=1)
def read_loss() -> Iterator[Case]:
    model, _, state, output, *_ = _of_two_texts()
    for b, distances in enumerate(model._read_distance(output, state)):
        given = output.read[b], state.encoder_memory[b], output.sentences[b], state.sentences[b]
        yield Case(f"{TEXTS[b]} sentences", given, distances.mean())


def own_model(*functions: Function, steps: int = 250) -> Frames | None:
    """Put a learner's five functions into a model, train it on the toy task, pull the lever, and
    show its steps."""
    if not PAGE.ready(1, 2, 3, 4, 5):
        return None
    model = learn_planted(partial(HandWritten, functions), "both", "plain gate", 3, steps)
    texts = unseen_documents()
    scores, own = memory_scores(model, texts), log_probs(model, texts)
    by_lib = over_seeds(task_results("memory")["all ways, both, plain gate"]["words right"])
    print(
        f"Your model: {scores['words right']:.2f} of the words are right (the library's, five "
        f"seeds: {by_lib})."
    )
    print(
        f"Its heads find {scores['recall']:.2f} of the marked sentences. Nats a word that it loses "
        "with"
    )
    for name in ("another memory", "memory erased", "one memory for all"):
        print(f"  {name}: {(own - log_probs(model, texts, MEMORY[name])).mean():.2f}")
    return planted_steps(model, texts[0])


@PAGE.cases(6, points=2)
def reads_of_memory() -> Iterator[Case]:
    model, _, state, _, hidden, _ = _of_two_texts()

    def read(h: Tensor, M: Tensor) -> Tensor:
        return model.read(model.read_attention.project_queries(h[None, None]), M[None])[1][0, 0]

    def gate_and_update(h: Tensor, m: Tensor, M: Tensor) -> list[Tensor]:
        return [x[0] for x in model.gate_and_update(M[None], m[None], model.write_hidden(h)[None])]

    for steps, b in ((3, 0), (2, 1), (hidden.shape[1], 0), (1, 1)):
        reads = [model.condition(hidden[:, : t + 1], state)[2].read[b] for t in range(steps)]
        yield Case(
            f"{steps} steps",
            (state.memory[b], hidden[b, :steps], read, gate_and_update),
            torch.stack(reads),
        )


@PAGE.exercise(
    7, points=2, cases=[[[1, 1, 3, 3, 3]], [[4, 0, 2]], [[0] * 6], [[7]], [[5, 2, 5, 2]]]
)
def loss_of_sharp_heads(on: list[int]) -> Tensor:
    return mem2mem.compression_loss(F.one_hot(torch.tensor(on), 8).double()[None])[0]


MEMORIES = {
    "slots in another order": lambda M: M[:, [2, 0, 1]],
    "one slot twice": lambda M: M[:, [0, 1, 2, 2]],
    "each slot twice": lambda M: M[:, [0, 1, 2, 0, 1, 2]],
    "all slots their mean": lambda M: M.mean(1, keepdim=True).expand_as(M).contiguous(),
}


def _log_p(memory: Tensor) -> Tensor:
    """Compute log P [2] of a word of each reference of `_of_two_texts` if these memories [2, r, d]
    are handed over."""
    model, batch, state, *_ = _of_two_texts()
    other = state.replace(memory=memory)
    return model.log_prob(model.decode(batch.target_input, other)[0], batch.target, other).mean(1)


@PAGE.cases(8, points=3)
def same_probabilities() -> Iterator[Case]:
    memory = _of_two_texts()[2].memory
    own, others = _log_p(memory), [_log_p(change(memory)) for change in MEMORIES.values()]
    yield Case("all four", (), [torch.allclose(own, other, rtol=0, atol=1e-9) for other in others])


@PAGE.cases(9, points=2)
def cost_of_one_memory() -> Iterator[Case]:
    own = _of_two_texts()[2].memory
    for count in (3, 1, 5):
        others = torch.randn(
            count, *own.shape[1:], generator=torch.Generator().manual_seed(count)
        ).double()
        one = others.sum(0) / count
        yield Case(
            f"{count} others",
            (own, others, _log_p),
            (_log_p(own) - _log_p(torch.stack([one, one]))).mean(),
        )


class _Gated(MemoryAlone):
    """A memory as the only path, with a gate of the reader's."""

    gate: Function

    def gate_and_update(
        self, memory: Tensor, read: Tensor, from_hidden: Tensor
    ) -> tuple[Tensor, Tensor]:
        z, u = (self.write_memory(memory) + (from_hidden + self.write_read(read))[:, None]).chunk(
            2, -1
        )
        return self.gate(z), u.tanh()


def _cost_with(gate: Function) -> float:
    """Train a memory as the only path with a gate. Returns what another text's memory costs, in
    nats a word."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "embedding": 24,
        "hidden": 24,
        "bottleneck": 16,
        "slots": 3,
        "compression": 24,
    }
    model = _Gated(Mem2MemConfig(VOCABULARY, lambda_comp=0.01, lambda_read=0.1, **sizes))
    model.gate = gate
    texts = [planted_sentences(16, step, 6, 4, 3, VOCABULARY) for step in range(151)]
    learn(model, (make_batch(some, VOCABULARY) for some in texts[:150]), 1e-2)
    own, another = (
        log_probs(model, texts[150], change) for change in (NOTHING, MEMORY["another memory"])
    )
    return float((own - another).mean())


@PAGE.cases(10, points=3)
def better_gate() -> Iterator[Case]:
    def is_gate(gate: Function) -> list[bool]:
        kept = gate(torch.linspace(-3, 3, 7))
        return [bool(kept.min() >= 0 and kept.max() <= 1), bool((kept.diff() > 0).all())]

    yield Case("between 0 and 1, and growing", (), [1, 1], of=is_gate)
    yield Case(
        "another text's memory costs half a nat", (), 1, of=lambda gate: _cost_with(gate) > 0.5
    )
