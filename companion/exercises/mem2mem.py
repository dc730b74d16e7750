"""Exercises of the page on Mem2Mem."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from math import atanh

import torch
from torch import Tensor
from torch.nn import functional as F

from companion.exercises.exercise import Case, Exercises, logit
from companion.tasks.synthetic import planted_sentences
from companion.tasks.task import learn
from lib.data.batch import make_batch
from lib.evaluation.interventions import changes_of, log_probs
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig, compression_loss

VOCABULARY = 20
PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress


def small_mem2mem(width: int = 8, **changes) -> Mem2Mem:
    """With random weights."""
    torch.manual_seed(0)
    sizes = {"embedding": width, "hidden": width, "bottleneck": 8, "slots": 3}
    return Mem2Mem(Mem2MemConfig(VOCABULARY, **{**sizes, "compression": width, **changes}))


@cache
def _of_two_texts() -> tuple:
    """A model whose attention is not uniform, texts of five and of three sentences, their encoding and the decoder's
    output."""
    model = small_mem2mem().double().requires_grad_(False)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.7)
    texts = [planted_sentences(1, 0, sentences, 4, 1, VOCABULARY)[0] for sentences in (5, 3)]
    batch = make_batch(texts, VOCABULARY)
    state = model.encode(batch)
    return model, batch, state, model.decode(batch.target_input, state)[0]


@PAGE.cases(1, points=2)
def reads_of_memory() -> Iterator[Case]:
    model, batch, state, _ = _of_two_texts()
    hidden, _ = model.decoder(model.embedding(batch.target_input), state.hidden[None])

    def read(h: Tensor, M: Tensor) -> Tensor:
        return model.read(model.read_attention.project_queries(h[None, None]), M[None])[1][0, 0]

    def gate_and_update(h: Tensor, m: Tensor, M: Tensor) -> list[Tensor]:
        return [x[0] for x in model.gate_and_update(M[None], m[None], model.write_hidden(h)[None])]

    for steps, b in ((3, 0), (2, 1), (hidden.shape[1], 0), (1, 1)):
        reads = [model.condition(hidden[:, : t + 1], state)[2].read[b] for t in range(steps)]
        yield Case(f"{steps} steps", (state.memory[b], hidden[b, :steps], read, gate_and_update), torch.stack(reads))


@PAGE.exercise(2, points=3, cases=[[[1, 1, 3, 3, 3]], [[4, 0, 2]], [[0] * 6], [[7]], [[5, 2, 5, 2]]])
def loss_of_sharp_heads(on: list[int]) -> Tensor:
    return compression_loss(F.one_hot(torch.tensor(on), 8).double()[None])[0]


SLOTS = [(3, 0.5, 2.0, 0.4), (10, 0.9, -1.0, 0.7), (1, 0.2, 0.5, -0.5), (0, 0.3, 0.8, 0.1)]


@PAGE.exercise(3, points=3, cases=SLOTS)
@torch.no_grad()
def slot_after(k: int, z: float, M: float, u: float) -> Tensor:
    """A number of a slot after k words, by a model whose gates are at z and whose updates are u, whatever is read."""
    model = small_mem2mem(gate_bias=logit(z)).double()
    for layer in (model.write_hidden, model.write_read, model.write_memory):
        layer.weight.zero_()
    model.write_hidden.bias[8:] = atanh(u)
    memory, nothing = torch.full((1, 3, 8), M).double(), torch.zeros(1, 8).double()
    for _ in range(k):
        memory = model.write(memory, nothing, model.write_hidden(nothing))
    return memory[0, 0, 0]


def _learned(steps: int, sentences: int, planted: int, learning_rate: float, comp: float, read: float) -> Mem2Mem:
    """After some steps on new texts."""
    model = small_mem2mem(24, lambda_comp=comp, lambda_read=read)
    texts = (planted_sentences(16, step, sentences, 4, planted, VOCABULARY) for step in range(steps))
    learn(model, (make_batch(of_step, VOCABULARY) for of_step in texts), learning_rate)
    return model.requires_grad_(False)


@PAGE.prediction(4, points=3)
@cache
def with_heavy_regulariser() -> dict[str, str]:
    """The mean weight of a head on its strongest sentence, and the loss of the words, after 30 steps."""
    neither, comp, read = (_learned(30, 6, 2, 5e-3, *weights) for weights in ((0.0, 0.0), (1.0, 0.0), (0.0, 3.0)))
    batch = make_batch(planted_sentences(16, 30, 6, 4, 2, VOCABULARY), VOCABULARY)

    def weight(model: Mem2Mem) -> float:
        state = model.encode(batch)
        return model.compress(state.sentences, state.sentence_mask)[0].max(2).values.mean().item()

    heavier, worse = weight(comp) > weight(neither), read.loss(batch)["nll"] > neither.loss(batch)["nll"]
    return {"the weight": "larger" if heavier else "smaller", "the words": "larger" if worse else "smaller"}


@PAGE.prediction(5, points=3)
@cache
def more_than_half_a_nat() -> dict[str, list[int]]:
    model, texts = _learned(60, 4, 1, 1e-2, 0.01, 0.1), planted_sentences(64, 60, 4, 4, 1, VOCABULARY)
    firsts = [replace(text, target=text.target[:1]) for text in texts]

    def lost(name: str) -> list[int]:
        change = changes_of(model)[name]
        return [int((log_probs(model, t) - log_probs(model, t, change)).mean() > 0.5) for t in (firsts, texts)]

    return {name: lost(name) for name in ("another memory", "never written", "no copying")}


MEMORIES = {
    "slots in another order": lambda M: M[:, [2, 0, 1]],
    "one slot twice": lambda M: M[:, [0, 1, 2, 2]],
    "each slot twice": lambda M: M[:, [0, 1, 2, 0, 1, 2]],
    "all slots their mean": lambda M: M.mean(1, keepdim=True).expand_as(M).contiguous(),
}


@PAGE.prediction(6, points=3)
def same_probabilities() -> dict[str, bool]:
    model, batch, state, output = _of_two_texts()
    own = model.log_prob(output, batch.target, state)

    def same(change: Callable[[Tensor], Tensor]) -> bool:
        other = state.replace(memory=change(state.memory))
        changed = model.log_prob(model.decode(batch.target_input, other)[0], batch.target, other)
        return torch.allclose(own, changed, rtol=0, atol=1e-9)

    return {what: same(change) for what, change in MEMORIES.items()}
