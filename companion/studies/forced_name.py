"""Does a model of the task `towns` believe the title that it has read, or the name that it has just
written?

    python -m companion.studies.forced_name --output figures/forced_name.json \\
        --weights figures/forced_name.safetensors

The first word of a summary is the name of the town. We write that word, the model writes the rest
by greedy search, and we count whose facts it reports: those of the title's town or those of the
other town. Facts that both towns share are not counted. A model is measured once it has learned the
task, since before that it reports the facts of either town by chance.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from companion.command import this_command
from companion.stored import effect_row, open_store
from companion.tasks.task import learn
from companion.tasks.towns import (
    BATCH,
    FACT_PLACES,
    ROWS,
    TOWN_PIECES,
    TOWNS,
    TownCluster,
    pieces_of,
    save_towns,
    town_cluster,
    town_document,
    town_model,
    unseen_towns,
)
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.vocabulary import BOS, TITLE_END
from lib.models.changes import NOTHING, Change
from lib.models.hierarchical_transformer import HierarchicalTransformer
from lib.system.command_line import run_command

LEARNED = 98.0  # % of facts right, with the title's name as the first word
EVERY = 100  # steps between two measures of it


@dataclass(frozen=True)
class TrainedRow:
    """A model of the task that is trained until it has learned, for `most` steps at most."""

    row: str  # of `companion.tasks.towns.ROWS`
    most: int
    titled: bool = False  # every paragraph begins with the title
    learning_rate: float = 1e-3
    sizes: Mapping[str, Any] = field(default_factory=dict)  # that differ from the row's


TRAINED = {
    "HT": TrainedRow("HT", most=2_000),
    "without global layers": TrainedRow("without global layers", most=6_000),
    "without global layers, the title in every paragraph": TrainedRow(
        "without global layers", most=2_000, titled=True
    ),
}

# whose name the title has that the encoder reads, and whose name is written first
CONDITIONS = {
    "own name": ("title", "title"),
    "other name forced": ("title", "other"),
    "absent name forced": ("title", "absent"),
    "absent title, own name": ("absent", "title"),
}


def forced_name(
    rows: tuple[str, ...] = (),
    /,
    *,
    output: Path,
    weights: Path | None = None,
    seeds: tuple[int, ...] = (0, 1, 2),
) -> None:
    """Train models of the task until they have learned it, force names on them, count facts.

    Args:
        rows: names of `TRAINED`; by default all.
        output: a JSON file. A command that was stopped continues.
        weights: a file for the first seed's models, in 16 bits.
        seeds: of the trainings.
    """
    store = open_store(output, "a study of towns", {"study": "forced_name"})
    models: dict[str, HierarchicalTransformer] = {}

    def measure(name: str, seed: int) -> dict[str, Any]:
        model, found = train(name, seed)
        if seed == seeds[0]:
            models[name] = model
        for condition in CONDITIONS:
            title, other = facts_of(model, TRAINED[name], condition).T
            found[condition] = {"title": title.round(2).tolist(), "other": other.round(2).tolist()}
            print(f"{name}, seed {seed}, {condition}: {title.mean():.1f} and {other.mean():.1f} %")
        return found

    functions = {name: partial(measure, name) for name in rows or TRAINED}
    results = store.results(functions, seeds, [*TRAINED])
    store.numbers["command"] = this_command("companion.studies.forced_name")
    store.replace("effects", effects_of(results))
    if weights:
        save_towns(models, weights)


def train(name: str, seed: int) -> tuple[HierarchicalTransformer, dict[str, Any]]:
    """Train a model of `TRAINED` until it has learned. Returns it, and the steps that it took."""
    about = TRAINED[name]
    torch.manual_seed(seed)
    model = town_model(about.row, **about.sizes)
    found: dict[str, Any] = {"steps": about.most, "learned": False}

    def batches() -> Iterator[Batch]:
        for step in range(about.most):
            random = np.random.default_rng([seed, step])
            clusters = [town_cluster(random) for _ in range(BATCH)]
            yield batch_of(clusters, [cluster.title for cluster in clusters], about)
            if (step + 1) % EVERY == 0:
                right = facts_of(model, about, "own name")[:, 0].mean()
                model.train()
                if right >= LEARNED:
                    found.update(steps=step + 1, learned=True)
                    return

    return learn(model, batches(), about.learning_rate).eval(), found


def batch_of(clusters: list[TownCluster], titles: list[str], about: TrainedRow) -> Batch:
    """Encode clusters, each with a title of any town."""
    documents = [
        _document(cluster, title, about, str(number))
        for number, (cluster, title) in enumerate(zip(clusters, titles))
    ]
    return make_batch(documents, len(TOWN_PIECES))


def _document(cluster: TownCluster, title: str, about: TrainedRow, name: str) -> EncodedDocument:
    made = town_document(cluster, name, **ROWS[about.row].reads)
    head = [*pieces_of(title), TITLE_END]
    if not about.titled:
        source = made.source.copy()
        source[: len(head)] = head
        return replace(made, source=source)
    rows = [head, *(head + pieces_of(p.text) for p in cluster.paragraphs)]
    source = [piece for row in rows for piece in row]
    return EncodedDocument.of(name, source, [*map(len, rows)], made.target)


@torch.no_grad()
def facts_of(
    model: HierarchicalTransformer,
    about: TrainedRow,
    condition: str,
    change: Change = NOTHING,
) -> np.ndarray:
    """Compute which share of the facts are those of the cluster's title's town, and of the other
    town, in percent: [clusters, 2]."""
    clusters = unseen_towns()
    title, first = CONDITIONS[condition]
    titles = [_named(cluster, title, i) for i, cluster in enumerate(clusters)]
    names = [_named(cluster, first, i) for i, cluster in enumerate(clusters)]
    with change.model(model):
        summaries = write_after(model, batch_of(clusters, titles, about), names)
    return np.array([_shares(*pair) for pair in zip(clusters, summaries)])


def write_after(model: HierarchicalTransformer, batch: Batch, names: list[str]) -> list[list[str]]:
    """Write summaries by greedy search after a given first word, up to the last fact."""
    state = model.eval().encode(batch)
    _, state = model.decode(torch.full((len(batch), 1), BOS), state)
    written = [torch.tensor([pieces_of(name) for name in names])]
    for _ in range(FACT_PLACES[-1]):
        output, state = model.decode(written[-1], state)
        written.append(model.distribution(output, state, 0).argmax(-1, keepdim=True))
    return [[TOWN_PIECES.words[i] for i in ids] for ids in torch.cat(written, 1).tolist()]


def _named(cluster: TownCluster, who: str, number: int) -> str:
    """Name a town of the cluster, or one that it does not mention."""
    own, other = cluster.truth
    absent = [name for name in TOWNS if name not in cluster.truth]
    return {"title": own, "other": other, "absent": absent[number % len(absent)]}[who]


def _shares(cluster: TownCluster, summary: list[str]) -> tuple[float, float]:
    own, other = cluster.truth.values()
    written = [summary[place] for place in FACT_PLACES]
    told = [(w, a, b) for w, a, b in zip(written, own, other) if a != b]
    of_title = sum(word == fact for word, fact, _ in told)
    of_other = sum(word == fact for word, _, fact in told)
    return 100 * of_title / len(told), 100 * of_other / len(told)


def effects_of(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compute means and intervals over the seeds that have learned."""
    effects = []
    for name in TRAINED:
        learned = [r for r in results if r["row"] == name and r["learned"]]
        for condition in CONDITIONS if learned else ():
            for town in ("title", "other"):
                effects.append(
                    effect_row(
                        f"{name}, {condition}: {town}'s facts",
                        "% of facts",
                        [r[condition][town] for r in learned],
                        [r["seed"] for r in learned],
                    )
                )
    return effects


main = partial(run_command, "companion.studies.forced_name", __doc__, forced_name)

if __name__ == "__main__":
    main()
