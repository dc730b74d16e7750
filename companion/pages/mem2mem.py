"""What the Mem2Mem page shows of a model that has learned the task of planted sentences, and of a run on papers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from companion.pages.frames import Frames
from companion.pages.measured import task_results
from companion.pages.steps import decoding_frames, pointer_steps
from companion.studies.slots import slots_left
from companion.tasks.memory import COMP_WEIGHTS, GRID, READ_WEIGHTS
from companion.tasks.synthetic import MARK, PLAIN
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import BOS, EOS
from lib.models.mem2mem import Mem2Mem

NAMES = {MARK: "mark", PLAIN: "plain", EOS: "[EOS]"}


def planted_words(ids: ArrayLike) -> list[str]:
    """How the words of a planted document are written: numbers, but for the first ones of sentences and the end."""
    return [NAMES.get(int(i), str(int(i))) for i in np.asarray(ids)]


def paper_weights(model: Mem2Mem) -> dict[str, Any]:
    """The paper's symbols, those of Attn with what they attend by before them, and the weights of the library's
    modules that they stand for."""
    d, read, sentences, words = (
        model.config.hidden, model.read_attention, model.sentence_attention, model.word_attention,
    )  # fmt: skip
    pointer: Any = model.pointer
    switch = pointer.switch
    return {
        "W_a1": model.compress_heads.weight, "W_a2": model.compress_hidden.weight,  # (5)
        "psi": (read.query.weight, read.key.weight, read.v.weight[0]), "W_m": model.read_output.weight,  # (7)
        "W_z1": model.write_hidden.weight[:d], "W_u1": model.write_hidden.weight[d:],  # (8), (9)
        "W_z2": model.write_read.weight[:d], "W_u2": model.write_read.weight[d:],
        "W_z3": model.write_memory.weight[:d], "W_u3": model.write_memory.weight[d:],
        "beta": (sentences.query.weight, sentences.key.weight, sentences.v.weight[0]),  # (3)
        "W_e": words.key.weight, "W_d": words.query.weight, "w_cov": words.coverage, "v": words.v,  # (17)
        "V'": pointer.bottleneck.weight, "b": pointer.bottleneck.bias,  # P_g
        "V": pointer.vocabulary.weight, "b'": pointer.vocabulary.bias,
        "w_c": switch.weight[0, :d], "w_d": switch.weight[0, d : 2 * d],  # (13)
        "w_x": switch.weight[0, 2 * d :], "b_z": switch.bias[0],
    }  # fmt: skip


@torch.no_grad()
def planted_steps(model: Mem2Mem, document: EncodedDocument) -> Frames:
    """A frame for each word that a model writes, always the most probable one, until the document's summary is as
    long."""
    document = replace(document, target=greedy_words(model, document, len(document.target)))
    batch = make_batch([document], model.config.vocab_size)
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    read = model.seen(output, state)["slots"][0]
    left = slots_left(model, batch, len(document.target))[0]
    every = planted_words(range(model.config.vocab_size))
    steps = [
        replace(step, slots=list(zip(*slots)))
        for step, *slots in zip(
            pointer_steps(model.pointer, output, document.target, every), left.tolist(), read.tolist()
        )
    ]
    sentences = np.split(document.source, np.cumsum(document.sentence_lengths)[:-1])
    return decoding_frames(list(map(planted_words, sentences)), steps, [f"{j + 1}." for j in range(len(sentences))])


@torch.no_grad()
def greedy_words(model: Mem2Mem, document: EncodedDocument, count: int) -> np.ndarray:
    """The first words that a model writes, the most probable one each time, whatever ends a summary: [count]."""
    batch, words = make_batch([document], model.config.vocab_size), [BOS]
    state = model.encode(batch)
    for _ in range(count):
        output, state = model.decode(torch.tensor([words[-1:]]), state)
        words.append(int(model.distribution(output, state, 0).argmax()))
    return np.array(words[1:], dtype=np.int32)


def grid_panels(measures: dict[str, str]) -> tuple[list[dict], list[int]]:
    """Panels of `word_maps`: measures of the task for all pairs of the regularisers' weights, means over the seeds
    that every pair has; and these seeds. measures: {title: measure}."""
    results = task_results("memory")
    names = {pair: name for name, pair in GRID.items()}
    grid = [[results[f"all ways, {names[comp, read]}, plain gate"] for read in READ_WEIGHTS] for comp in COMP_WEIGHTS]
    seeds = sorted(set.intersection(*(set(cell["seed"]) for row in grid for cell in row)))
    rows, columns = ([f"{weight:g}" for weight in weights] for weights in (COMP_WEIGHTS, READ_WEIGHTS))
    axes = {"rows": rows, "columns": columns, "ylabel": "λ1", "xlabel": "λ2"}
    panels = [
        {"title": title, "values": [[_mean_of(cell, measure, seeds) for cell in row] for row in grid], **axes}
        for title, measure in measures.items()
    ]
    return panels, seeds


def _mean_of(cell: dict[str, list], measure: str, seeds: Sequence[int]) -> float:
    return float(np.mean([value for seed, value in zip(cell["seed"], cell[measure]) if seed in seeds]))
