"""Measure which paragraphs a model of the task `towns` marks for its decoder, and whether the marks
are used.

    python -m companion.studies.town_marks --output figures/town_marks.json

c (21) is the vector that a global layer adds to all words of a paragraph. The command measures its
length in the paragraphs about each town, and what is still right where it is left out of some
paragraphs.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from companion.tasks.towns import (
    TownCluster,
    batch_of,
    facts_right,
    open_towns,
    rows_about,
    unseen_towns,
)
from lib.evaluation.interventions import mean_row
from lib.models.changes import Change
from lib.models.hierarchical_transformer import HierarchicalTransformer
from lib.system.command_line import run_command
from lib.system.files import write_json


def measure_marks(*, output: Path) -> None:
    """Measure the marks of the shipped model.

    Args:
        output: a JSON file for the numbers of each cluster.
    """
    effects = [effect for layer in (0, 1) for effect in effects_in(open_towns()["HT"], layer)]
    print(*(f"{effect['change']}: {effect['text']}" for effect in effects), sep="\n")
    command = "python -m companion.studies.town_marks --output figures/town_marks.json"
    write_json(output, {"command": command, "model": "HT, seed 0", "effects": effects})


def effects_in(model: HierarchicalTransformer, layer: int) -> Iterator[dict]:
    """Measure the length of a layer's c on unseen clusters, and what is lost without c, in percent
    of facts."""
    clusters, mean = unseen_towns(), {}
    lengths, right = context_lengths(model, clusters, layer), facts_right(model, clusters)
    for name, own in {"the title's town": True, "the other town": False}.items():
        rows = rows_about(clusters, own)
        mean[own] = (lengths * rows).sum(1).div(rows.sum(1)).numpy()
        yield mean_row(
            f"layer {layer + 1}: length, {name}", "mean over its paragraphs", mean[own], 3
        )
        change = Change(name, model=partial(without_context, layer=layer, rows=rows))
        lost = right - facts_right(model, clusters, change)
        yield mean_row(f"layer {layer + 1}: left out, {name}", "% of facts that are lost", lost, 3)
    longer = 100.0 * (mean[False] > mean[True])
    yield mean_row(f"layer {layer + 1}: longer for the other town", "% of clusters", longer, 3)


@torch.no_grad()
def context_lengths(
    model: HierarchicalTransformer, clusters: Sequence[TownCluster], layer: int
) -> Tensor:
    """Compute the length of c for the title and each paragraph: [clusters, rows]."""
    batch, found = batch_of(list(clusters)), []
    with (
        model.global_layers[layer]
        .get_submodule("output")
        .register_forward_hook(lambda *passed: found.append(passed[2]))
    ):
        model.encode(batch)
    lengths = torch.zeros(batch.sentence_mask.shape)
    lengths[batch.ragged.owner, batch.ragged.number] = found[0].norm(dim=1)
    return lengths


@contextmanager
def without_context(model: HierarchicalTransformer, layer: int, rows: Tensor) -> Iterator[None]:
    """Leave c out of the paragraphs that `rows` [clusters, rows] names."""
    part, seen = model.global_layers[layer], []
    with (
        part.register_forward_pre_hook(lambda _, given: seen.append(given[1])),
        part.get_submodule("output").register_forward_hook(
            lambda *given: given[2] * ~rows[seen[-1].owner, seen[-1].number][:, None]
        ),
    ):
        yield


main = partial(run_command, "companion.studies.town_marks", __doc__, measure_marks)

if __name__ == "__main__":
    main()
