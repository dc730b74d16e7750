"""Two hops: the title has a name, one paragraph says its alias, and the answer stands in the alias's paragraph. How
many global layers lead there, with attention that is learned or a graph that is given?"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

from companion.tasks.hop_clusters import VOCAB_SIZE, HopCluster, hop_cluster, hop_document
from companion.tasks.task import Task, learn
from lib.data.batch import Batch, make_batch
from lib.decoding.search import DecodeConfig, greedy_search
from lib.models.hierarchical_transformer import HierarchicalTransformer, HierarchicalTransformerConfig

STEPS = 500
BATCH = 32
ROWS = {
    "no global layer": (0, False),
    "1, learned": (1, False),
    "1, given": (1, True),
    "2, learned": (2, False),
    "2, given": (2, True),
    "3, learned": (3, False),
    "3, given": (3, True),
}  # global layers; whether the first head has the graph of shared names


def train_hops(row: str, seed: int, steps: int = STEPS) -> tuple[HierarchicalTransformer, dict[str, float]]:
    """A trained model, and the shares of answers that were right on the way. Three layers in all, at least one of
    them local."""
    layers, graph = ROWS[row]
    torch.manual_seed(seed)
    config = HierarchicalTransformerConfig(
        VOCAB_SIZE, width=64, heads=4, inner=128, local_layers=max(1, 3 - layers), global_layers=layers, dropout=0.0,
        smoothing=0.0,
    )  # fmt: skip
    model = HierarchicalTransformer(config)
    on_the_way: dict[str, float] = {}
    return learn(model, _batches(model, graph, seed, steps, on_the_way), 1e-3).eval(), on_the_way


def _batches(
    model: HierarchicalTransformer, graph: bool, seed: int, steps: int, on_the_way: dict[str, float]
) -> Iterator[Batch]:
    for step in range(steps):
        if step and step % 250 == 0:
            on_the_way[f"right after {step}"] = answers_right(model, graph)
            model.train()
        random = np.random.default_rng([seed, step])
        yield _batch([hop_cluster(random) for _ in range(BATCH)], graph)


def _batch(clusters: list[HopCluster], graph: bool) -> Batch:
    return make_batch([hop_document(c, str(i), graph) for i, c in enumerate(clusters)], VOCAB_SIZE)


def answers_right(model: HierarchicalTransformer, graph: bool, count: int = 200) -> float:
    """The share of unseen clusters whose answer a model writes. One of the four answers taken at random: 0.25."""
    random = np.random.default_rng(10**6)
    clusters = [hop_cluster(random) for _ in range(count)]
    written = greedy_search(model.eval(), _batch(clusters, graph), DecodeConfig(max_length=4))
    return float(np.mean([hypothesis.ids == c.answer for hypothesis, c in zip(written, clusters)]))


def _solve(row: str, seed: int) -> dict[str, float]:
    model, on_the_way = train_hops(row, seed)
    return on_the_way | {"right": answers_right(model, ROWS[row][1])}


TASK = Task(
    "find the paragraph that shares no word with the title, over one that shares a word with each",
    {row: partial(_solve, row) for row in ROWS},
)
