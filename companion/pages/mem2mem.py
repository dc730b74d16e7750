"""What the Mem2Mem page shows of a model that has learned the task of planted sentences, and of a run on papers."""

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
from companion.tasks.task import greedy_words
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import EOS
from lib.models.mem2mem import Mem2Mem

NAMES = {MARK: "mark", PLAIN: "plain", EOS: "[EOS]"}


def planted_words(ids: ArrayLike) -> list[str]:
    """How the words of a planted document are written: numbers, but for the first ones of sentences and the end."""
    return [NAMES.get(int(i), str(int(i))) for i in np.asarray(ids)]


def paper_weights(model: Mem2Mem) -> dict[str, Any]:
    """The paper's symbols, those of Attn with what they attend by before them, and the weights of the library's
    modules that they stand for."""
    read, sentences, words = model.read_attention, model.sentence_attention, model.word_attention
    d = model.config.hidden
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
    """A frame for each word that a model writes, always the most probable one, and the end: as many words
    as the document's summary has."""
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
    return decoding_frames(list(map(planted_words, sentences)), steps, [f"{j + 1}." for j in range(len(sentences))])


def grid_panels(measures: dict[str, str]) -> tuple[list[dict], list[int]]:
    """Panels of `word_maps`: measures of the task for all pairs of the regularisers' weights, means over the first
    seeds, those that every pair has; and these seeds. measures: {title: measure}."""
    results = task_results("memory")
    cells = {pair: results[f"all ways, {name}, plain gate"] for name, pair in GRID.items()}
    seeds = min((cell["seed"] for cell in cells.values()), key=len)
    rows, columns = ([f"{weight:g}" for weight in weights] for weights in (COMP_WEIGHTS, READ_WEIGHTS))
    axes = {"rows": rows, "columns": columns, "ylabel": "λ1", "xlabel": "λ2"}
    panels = []
    for title, measure in measures.items():
        means = {pair: np.mean(cell[measure][: len(seeds)]) for pair, cell in cells.items()}
        values = [[means[comp, read] for read in READ_WEIGHTS] for comp in COMP_WEIGHTS]
        panels.append({"title": title, "values": np.array(values), **axes})
    return panels, seeds
