"""Two hops: the title has a name, one paragraph gives its alias, and the answer is in the alias's
paragraph. How many global layers lead there, with attention that is learned or a graph that is
given?"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from companion.tasks.task import Task, learn, share_written
from companion.tasks.towns import small_transformer
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.vocabulary import EOS, SENTENCE_END, TITLE_END

CHAINS = 4
NAMES = range(SENTENCE_END + 1, SENTENCE_END + 7)
ALIASES = range(NAMES.stop, NAMES.stop + 6)
SAME_AS = ALIASES.stop
CONTENT = range(SAME_AS + 1, SAME_AS + 12)
VOCAB_SIZE = CONTENT.stop
STEPS = 500
BATCH = 32
# global layers; whether the first head has the graph of shared names
ROWS = {"no global layer": (0, False)}
ROWS |= {
    f"{layers}, {how}": (layers, how == "given")
    for layers in (1, 2, 3)
    for how in ("learned", "given")
}


def hop_cluster(random: np.random.Generator, graph: bool = False) -> EncodedDocument:
    """Draw four paragraphs that say which alias a name has, and four with an alias and two words,
    in any order. The title is a name, the answer the two words after its alias. No paragraph with
    an answer shares a word with it.

    graph: whether it has the graph of `shared_names`.
    """
    names, aliases = (random.permutation(ids)[:CHAINS].tolist() for ids in (NAMES, ALIASES))
    words = random.integers(CONTENT.start, CONTENT.stop, (CHAINS, 2)).tolist()
    links = [[name, SAME_AS, alias] for name, alias in zip(names, aliases)]
    ends = [[alias, *pair] for alias, pair in zip(aliases, words)]
    paragraphs, asked = links + ends, int(random.integers(CHAINS))
    rows = [[names[asked], TITLE_END], *(paragraphs[i] for i in random.permutation(2 * CHAINS))]
    document = EncodedDocument.of(
        "", np.concatenate(rows), list(map(len, rows)), [*words[asked], EOS]
    )
    return replace(document, graph=shared_names(rows).ravel()) if graph else document


def shared_names(rows: list[list[int]]) -> np.ndarray:
    """Join rows that share a name or an alias: [rows, rows], 1 for an edge and on the diagonal.
    These are the edges that (26) of the hierarchical transformer draws between paragraphs with the
    same entity."""
    called = [{word for word in row if word in NAMES or word in ALIASES} for row in rows]
    return np.array(
        [[float(bool(one & other)) for other in called] for one in called], dtype=np.float32
    )


def _documents(seed: int | list[int], count: int, graph: bool) -> list[EncodedDocument]:
    random = np.random.default_rng(seed)
    return [hop_cluster(random, graph) for _ in range(count)]


def solve(row: str, seed: int, steps: int = STEPS) -> dict[str, float]:
    """Train a model of three layers, at least one of them local. Returns the share of unseen
    clusters whose answer it writes, on the way and at the end. One of the four answers, chosen at
    random, is right in 0.25."""
    layers, graph = ROWS[row]
    torch.manual_seed(seed)
    model = small_transformer(VOCAB_SIZE, local_layers=max(1, 3 - layers), global_layers=layers)
    unseen, measures = _documents(10**6, 200, graph), {}

    def batches() -> Iterator[Batch]:
        for step in range(steps):
            if step and step % 250 == 0:
                measures[f"right after {step}"] = share_written(model, unseen, 4)
                model.train()
            yield make_batch(_documents([seed, step], BATCH, graph), VOCAB_SIZE)

    learn(model, batches(), 1e-3)
    return measures | {"right": share_written(model, unseen, 4)}


TASK = Task(
    "find the paragraph that shares no word with the title, over one that shares a word with each",
    {row: partial(solve, row) for row in ROWS},
)
