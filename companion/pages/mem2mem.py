"""Helpers of the Mem2Mem page: a model of the planted task step by step, a memory that is computed
by functions of the page or of a learner, an article on its way through a memory, and the costs of
other memories."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, vmap

from companion.claims.verdicts import Effect, Setting, claims_of, effect_of
from companion.pages.checks import Checks, gradients
from companion.pages.frames import Frames
from companion.pages.measured import task_results
from companion.pages.steps import decoding_frames, pointer_steps
from companion.results.kept import stored_numbers
from companion.studies.slots import slots_left
from companion.tasks.memory import GATES
from companion.tasks.synthetic import MARK, PLAIN, planted_sentences
from companion.tasks.task import greedy_words
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import BOS, EOS
from lib.decoding.run import Run
from lib.decoding.search import beam_search, source_sentences
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig, Mem2MemState

NAMES = {MARK: "mark", PLAIN: "plain", EOS: "[EOS]"}


def planted_words(ids: ArrayLike) -> list[str]:
    """Write the words of a planted document: as numbers, except for the first words of sentences
    and the end."""
    return [NAMES.get(int(i), str(int(i))) for i in np.asarray(ids)]


@torch.no_grad()
def planted_steps(model: Mem2Mem, document: EncodedDocument) -> Frames:
    """Make a frame for each word that a model writes by greedy search, and for the end. It writes
    as many words as the document's summary has."""
    count = len(document.target) - 1
    (words,) = greedy_words(model, [document], count, count)
    document = replace(document, target=np.array([*words, EOS], dtype=np.int32))
    batch = make_batch([document], model.config.vocab_size)
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    read = model.seen(output, state)["slots"][0]
    left = slots_left(model, batch, len(document.target))[0]
    every = planted_words(range(model.config.vocab_size))
    steps = pointer_steps(model.pointer, output, document.target, every)
    slots = [list(zip(*pair)) for pair in zip(left.tolist(), read.tolist())]
    steps = [replace(step, slots=of_step) for step, of_step in zip(steps, slots)]
    sentences = np.split(document.source, np.cumsum(document.sentence_lengths)[:-1])
    return decoding_frames(
        list(map(planted_words, sentences)), steps, [f"{j + 1}." for j in range(len(sentences))]
    )


# ---------------------------------------------------------------------------------
# the reading path


@torch.no_grad()
def article_path(run: Run, document: EncodedDocument) -> dict[str, Any]:
    """Compute the arguments of `companion.pages.figures.memory_path` for an article that a run
    summarizes."""
    batch = make_batch([document], len(run.vocabulary))
    state = run.model.encode(batch)
    ids = beam_search(run.model, batch, run.decode)[0][0].ids
    output, _ = run.model.decode(torch.tensor([[BOS, *ids]]), state)
    panels = [{"weights": state.write_attention[0]}, {"weights": output.read[0].T}]
    sentences = [_whole_words(text, 31) for text in source_sentences(document, run.vocabulary)]
    summary = run.vocabulary.text(ids, document.unknown)
    return {
        "panels": panels,
        "sentences": sentences,
        "summary": [_whole_words(summary, 56), _whole_words(summary[::-1], 56)[::-1]],
    }


def _whole_words(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters + 1].rpartition(" ")[0]


def stored(source: str, name: str, scale: float = 1) -> Effect:
    """Read an effect in figures/SOURCE.json."""
    return effect_of(Setting("", source, effect=name, scale=scale))


def _interval(effect: Effect) -> list[float]:
    return [effect.mean, effect.low, effect.high]


def lever_panels(*positions: str) -> list[dict]:
    """Make panels of `companion.pages.figures.interval_panels`: the costs of memories at these
    positions of the lever, and of the text's own."""

    def series(label: str, words: str = "") -> dict[str, list[float]]:
        return {"own": [0.0, 0.0, 0.0]} | {
            p: _interval(stored("mem2mem_lever", f"{label}: {p}{words}")) for p in positions
        }

    places = {
        "all words": series("papers"),
        "first ten words": series("papers", ", first 10 words"),
    }
    return [
        {"title": "the toy, five seeds", "top": 10, "series": {"all words": series("toy")}},
        {"title": "the shipped model, 50 articles", "top": 1.2, "series": places},
    ]


LADDER = (
    "encoder-memory",
    "decoder-memory",
    "transfer",
    "first-regulariser",
    "second-regulariser",
    "full-model",
)


def ladder_series() -> dict[str, dict[str, list[float]]]:
    """Make series of `companion.pages.figures.interval_bars`: the gain of each row of Table 2, in
    the paper and here."""
    series: dict[str, dict[str, list[float]]] = {"paper": {}}
    for claim in sorted(
        (c for c in claims_of("mem2mem") if c.id in LADDER), key=lambda c: LADDER.index(c.id)
    ):
        row = claim.id.replace("-", " ")
        series["paper"][row] = [claim.published or 0.0] * 3
        for setting in claim.settings:
            series.setdefault(setting.label, {})[row] = _interval(effect_of(setting))
    return series


def blocking_gain() -> float:
    """Compute how much trigram blocking adds to the R-1 of HRED."""
    rows = {
        row["label"]: row["scores"]["R-1"]["mean"]
        for row in stored_numbers("mem2mem_table2_sumpubmed_eight_epochs")["rows"]
    }
    return rows["hred"] - rows["hred, plain beam search"]


EXTRACTS = {
    "first ten sentences": "first ten sentences",
    "at random": "at random, as long",
    "another article's places": "places of another text's heads, as long",
    "LexRank, whole article": "LexRank of the whole paper, as long",
    "heads": "heads",
}


def extract_series() -> dict[str, dict[str, list[float]]]:
    """Make series of `companion.pages.figures.interval_bars`: R-1 of extracts on two corpora."""
    return {
        label: {
            row: _interval(stored("mem2mem_extracts", f"{corpus}: {name}"))
            for row, name in EXTRACTS.items()
        }
        for label, corpus in (("its own corpus", "sumpubmed"), ("another corpus", "pmc-sample"))
    }


def paths_costs() -> dict[str, list[np.ndarray]]:
    """Compute the cost of another text's memory in the six toys: {paths: [gate][seed]}."""
    rows = task_results("memory")
    paths = {"all paths": "all ways, both", "memory only": "memory alone, both"}
    found = {name: [rows[f"{row}, {gate}"] for gate in GATES] for name, row in paths.items()}
    return {
        name: [np.subtract(r["nll, another"], r["nll"]).round(2) + 0.0 for r in cells]
        for name, cells in found.items()
    }


# ---------------------------------------------------------------------------------
# the building path

Function = Callable[..., Any]


def memory_weights(model: Mem2Mem) -> dict[str, tuple[Tensor, ...]]:
    """Return the weights of the memory: W_a1, W_a2 of (5), Attn's of (7), and W_1, W_2, W_3 of (8)
    and of (9)."""
    attention, writes = (
        model.read_attention,
        (model.write_hidden, model.write_read, model.write_memory),
    )
    gate, update = zip(*(layer.weight.chunk(2) for layer in writes))
    return {
        "heads": (model.compress_heads.weight, model.compress_hidden.weight),
        "read": (attention.query.weight, attention.key.weight, attention.v.weight[0]),
        "gate": gate,
        "update": update,
    }


class HandWritten(Mem2Mem):
    """Mem2Mem whose memory is computed by five functions of one document, (5), (7), (10), (6) and
    (11), for batches of documents of the same size."""

    def __init__(self, functions: Sequence[Function], config: Mem2MemConfig):
        super().__init__(config)
        self.functions = functions

    def compress(self, sentences: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return vmap(lambda H: self.functions[0](H, *memory_weights(self)["heads"]))(sentences)

    def condition(self, hidden: Tensor, state: Mem2MemState) -> tuple[Tensor, Tensor, Mem2MemState]:
        weights, memory, m = memory_weights(self), state.memory, state.read
        read = vmap(lambda h, M: self.functions[1](h, M, *weights["read"]))
        write = vmap(lambda h, m, M: self.functions[2](h, m, M, weights["gate"], weights["update"]))
        psis, reads = [], []
        for h in hidden.unbind(1):
            memory = memory if m is None else write(h, m, memory)
            psi, m = read(h, memory)
            psis.append(psi)
            reads.append(m)
        query = self.read_output(torch.cat([hidden, torch.stack(reads, 1)], -1))
        return query, torch.stack(psis, 1), state.replace(memory=memory, read=m)

    def regularisers(self, output: Any, batch: Any, state: Any) -> dict[str, tuple[float, Tensor]]:
        comp = vmap(self.functions[3])(state.write_attention)
        read = vmap(self.functions[4])(
            output.read, state.encoder_memory, output.sentences, state.sentences
        )
        return {
            "comp": (self.config.lambda_comp, comp.mean()),
            "read": (self.config.lambda_read, read.mean()),
        }


def check_objective(
    checks: Checks, functions: Sequence[Function], trained: Mem2Mem, document: EncodedDocument
) -> None:
    """Compare loss (12) and all gradients of a model with the functions, document by document, with
    the library's: for a trained model, and for one with random weights and a padded batch."""
    torch.manual_seed(1)
    sizes: dict[str, Any] = {
        "embedding": 5,
        "hidden": 6,
        "bottleneck": 4,
        "slots": 3,
        "compression": 4,
    }
    random = Mem2Mem(Mem2MemConfig(20, lambda_comp=0.3, lambda_read=0.7, **sizes))
    for weight in random.parameters():
        torch.nn.init.normal_(weight, std=0.7)
    ragged = [
        planted_sentences(1, 0, sentences, words, 1, 20)[0]
        for sentences, words in ((5, 4), (3, 6), (4, 3))
    ]
    for model, documents in ((trained, [document]), (random, ragged)):
        model = deepcopy(model).double().requires_grad_(True)
        naive = HandWritten(functions, model.config).double()
        naive.load_state_dict(model.state_dict())
        size = model.config.vocab_size
        alone = [naive.loss(make_batch([document], size))["loss"] for document in documents]
        ours, theirs = torch.stack(alone).mean(), model.loss(make_batch(documents, size))["loss"]
        checks.close(ours, theirs, "(12)", "loss of the batch")
        checks.gradients(gradients(naive, ours), gradients(model, theirs), "(12)")
