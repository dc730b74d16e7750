"""Towns: many snippets about two towns repeat and contradict each other, and the title says which town to summarize.

Every part of the hierarchical transformer has a job here. Local layers bind "it" and a fact to the town of their
paragraph, global layers say whether that town is the title's, and the decoder takes what most mentions say.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from companion.tasks.task import Task, greedy_words, learn
from companion.tasks.town_clusters import FACT_PLACES, TOWN_PIECES, TownCluster, town_cluster, town_document
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.evaluation.interventions import NOTHING, Change, changes_of, decoder_sees
from lib.models.hierarchical_transformer import HierarchicalTransformer, HierarchicalTransformerConfig
from lib.system.files import project_root, write_whole
from lib.training.folder import load_tensors, under

STEPS = 1000
BATCH = 32
TESTED = 200  # unseen clusters
_LONGEST = 30  # pieces of a summary that is written


@dataclass(frozen=True)
class TownsRow:
    """A model, what it reads, and for how many steps it is trained."""

    sizes: Mapping[str, Any] = field(default_factory=dict)  # that differ from those of all rows
    reads: Mapping[str, bool] = field(default_factory=dict)  # arguments of `town_document`
    steps: int = STEPS


_NO_GLOBAL = {"local_layers": 4, "global_layers": 0}
ROWS = {
    "HT": TownsRow(),
    "without global layers": TownsRow(_NO_GLOBAL),
    "without local layers": TownsRow({"local_layers": 0, "global_layers": 4}),
    "flat": TownsRow(_NO_GLOBAL, {"flat": True}),
    "flat, separators": TownsRow(_NO_GLOBAL, {"flat": True, "separator": True}),
    "one pooling head": TownsRow({"pooling_heads": 1}, steps=2 * STEPS),
    "graph of towns": TownsRow(reads={"graph": True}),
    "without paragraph positions": TownsRow({"paragraph_positions": False}),
}


def town_model(row: str = "HT") -> HierarchicalTransformer:
    sizes = {"width": 64, "heads": 4, "inner": 256, "local_layers": 2, "global_layers": 2, **ROWS[row].sizes}
    config = HierarchicalTransformerConfig(len(TOWN_PIECES), dropout=0.0, smoothing=0.0, **sizes)
    return HierarchicalTransformer(config)


def unseen_towns(count: int = TESTED, towns: int = 2, groups: int = 1) -> list[TownCluster]:
    """Clusters that no training has, always the same."""
    random = np.random.default_rng(10**6)
    return [town_cluster(random, towns, groups) for _ in range(count)]


def train_towns(row: str, seed: int, steps: int = 0) -> tuple[HierarchicalTransformer, dict[str, float]]:
    """A trained model of a row, by default after as many steps as the row says; and what was measured on the way: the
    share of facts right every 500 steps, and all else of `facts_written` after 1,000."""
    torch.manual_seed(seed)
    model, on_the_way = town_model(row), {}

    def batches() -> Iterator[Batch]:
        for step in range(steps or ROWS[row].steps):
            if step and step % (STEPS // 2) == 0:
                shares = facts_written(model, row)
                model.train()
                kinds = shares if step == STEPS else ["right"]
                on_the_way.update({f"{kind} after {step}": shares[kind] for kind in kinds})
            random = np.random.default_rng([seed, step])
            yield batch_of([town_cluster(random) for _ in range(BATCH)], row)

    return learn(model, batches(), 1e-3).eval(), on_the_way


def documents_of(clusters: list[TownCluster], row: str = "HT") -> list[EncodedDocument]:
    return [town_document(cluster, str(i), **ROWS[row].reads) for i, cluster in enumerate(clusters)]


def batch_of(clusters: list[TownCluster], row: str = "HT") -> Batch:
    return make_batch(documents_of(clusters, row), len(TOWN_PIECES))


def write_towns(
    model: HierarchicalTransformer, clusters: list[TownCluster], row: str = "HT", change: Change = NOTHING
) -> list[list[str]]:
    """Write summaries, always the most probable word."""
    with change.model(model):
        summaries = greedy_words(model, documents_of(clusters, row), _LONGEST)
    return [[TOWN_PIECES.words[i] for i in ids] for ids in summaries]


KINDS = ("right", "other town's", "minority's", "nowhere")


def kind_of(cluster: TownCluster, fact: int, word: str) -> str:
    """What a word is that stands where a fact of the title's town should."""
    if word == cluster.truth[cluster.title][fact]:
        return "right"
    said = {own: _said(cluster, fact, own) for own in (True, False)}
    return "minority's" if word in said[True] else "other town's" if word in said[False] else "nowhere"


def _said(cluster: TownCluster, fact: int, own: bool) -> set[str]:
    """What paragraphs about the title's town say of a fact; or those about the others."""
    chosen = [p for p in cluster.paragraphs if (p.town == cluster.title) == own]
    return {value for p in chosen for f, value in zip(p.facts, p.values) if f == fact}


def facts_written(
    model: HierarchicalTransformer, row: str = "HT", change: Change = NOTHING, groups: int = 1
) -> dict[str, float]:
    """Of summaries of `unseen_towns` in `groups` of twelve paragraphs: shares of facts by `KINDS`, and of summaries
    that are right from the first word to the last ("whole")."""
    clusters = unseen_towns(groups=groups)
    pairs = list(zip(clusters, write_towns(model, clusters, row, change)))
    words = [(c, f, "".join(s[at : at + 1])) for c, s in pairs for f, at in enumerate(FACT_PLACES)]
    kinds = Counter(kind_of(*word) for word in words)
    whole = sum(" ".join(summary) == cluster.summary for cluster, summary in pairs)
    return {kind: kinds[kind] / len(words) for kind in KINDS} | {"whole": whole / len(pairs)}


# ------------------------------------------------------------------------------------------- what each part does

CUTS = {  # of `lib.evaluation.interventions`, where the first paragraph is the title; and in the words of the page
    "first paragraph cut in layer 1": "no look at the title in layer 1",
    "first paragraph cut in layer 2": "no look at the title in layer 2",
    "first paragraph cut": "no look at the title",
    "layer 1 cut": "layer 1: each paragraph sees itself alone",
    "layer 2 cut": "layer 2: each paragraph sees itself alone",
    "layers cut": "both layers: each sees itself alone",
}
SEEN = {"the title's town": True, "the other town": False}


def rows_about(clusters: list[TownCluster], own: bool) -> Tensor:
    """Which rows are paragraphs about the title's town, or about the others: [clusters, rows]."""
    return torch.tensor([[False, *((p.town == c.title) == own for p in c.paragraphs)] for c in clusters])


@torch.no_grad()
def towns_under_cuts(model: HierarchicalTransformer) -> dict[str, float]:
    """Facts right with longer inputs, under each of `CUTS`, and by what the decoder sees; and the decoder's weights
    on the title and on paragraphs of its town where it writes a fact."""
    clusters = unseen_towns()
    found = {f"right, {12 * groups} paragraphs": facts_written(model, groups=groups)["right"] for groups in (2, 4)}
    known = changes_of(model)
    changes = {name: known[name] for name in CUTS}
    changes |= {f"decoder sees {name}": decoder_sees(rows_about(clusters, own)) for name, own in SEEN.items()}
    for name, change in changes.items():
        kinds = facts_written(model, change=change)
        found |= {f"{kind}, {name}": kinds[kind] for kind in KINDS[:2]}
    batch = batch_of(clusters)
    attention = model.eval().attention_weights(batch.target_input, model.encode(batch))
    weights = attention["units"][:, FACT_PLACES]  # [clusters, facts, rows]
    town = rows_about(clusters, own=True)[:, None]
    return found | {
        "decoder's weight on the title": weights[..., 0].mean().item(),
        "decoder's weight on its town": (weights * town).sum(-1).mean().item(),
    }


def solve(row: str, seed: int) -> dict[str, float]:
    model, on_the_way = train_towns(row, seed)
    return facts_written(model, row) | on_the_way | (towns_under_cuts(model) if row == "HT" else {})


# ------------------------------------------------------------------------------------------------ shipped models

SHIPPED = ("HT", "without global layers")  # of seed 0, in 16 bits


def shipped_towns() -> Path:
    return project_root() / "figures" / "task_towns.safetensors"


def save_towns(models: Mapping[str, HierarchicalTransformer], path: Path) -> None:
    """Weights in 16 bits, of models by the name of their row."""
    weights = {f"{row}.{name}": w.half() for row, model in models.items() for name, w in model.state_dict().items()}
    write_whole(path, save({name: weight.contiguous() for name, weight in weights.items()}))


def open_towns(steps: int = 0, seed: int = 0) -> dict[str, HierarchicalTransformer]:
    """The models of the rows `SHIPPED`: the shipped ones, or trained here for a number of steps."""
    if steps:
        return {row: train_towns(row, seed, steps)[0] for row in SHIPPED}
    weights, models = load_tensors(shipped_towns()), {}
    for row in SHIPPED:
        models[row] = town_model(row).eval()
        models[row].load_state_dict(under(row, weights))
    return models


TASK = Task(
    "of two towns in twelve paragraphs, write what most mentions say of the one that the title names",
    {row: partial(solve, row) for row in ROWS},
)
