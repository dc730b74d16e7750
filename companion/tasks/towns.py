"""Towns: many snippets about two invented towns repeat and contradict each other. The title names
the town to summarize. Every fact occurs several times in other words, and perhaps once wrongly.

Every part of the hierarchical transformer has a job here. Local layers bind "it" and a fact to the
town of their paragraph, global layers compare that town with the title's, and the decoder goes with
the majority of the mentions.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from companion.tasks.task import Task, greedy_words, learn
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.vocabulary import CLUSTER_SYMBOLS, EOS, PARAGRAPH_END, TITLE_END, Vocabulary
from lib.evaluation.interventions import changes_of
from lib.models.changes import NOTHING, Change
from lib.models.hierarchical_transformer import (
    HierarchicalTransformer,
    HierarchicalTransformerConfig,
)
from lib.system.files import project_root, write_whole
from lib.training.folder import load_tensors, under

_BEGINNINGS = ("zor", "bel", "quin", "tar", "mel", "os", "vel", "lun", "kar", "dra")
TOWNS = [begin + end for begin in _BEGINNINGS for end in ("via", "mont", "stad", "holm")]
# The values of each fact (year, river, product, mayor), and its phrases.
VALUES = [
    line.split()
    for line in (
        " ".join(str(year) for year in range(1100, 1900, 40)),
        "arno bresk colva drune elt fenna garr hylde istra jarn korb lenn mura narew oder prut "
        "quelle ruhr saale "
        "tisza",
        "amber barley cheese cider clocks copper glass honey lace lamps linen paper pears salt "
        "silk soap timber "
        "tiles wine wool",
        "abel brandt conti dahl eriksen fabre greco haas ivers jansen keller lund moreau novak "
        "olsen petrov quist "
        "rossi sand toth",
    )
]
PHRASES = (
    ("was founded in {}", "dates from {}", "was first settled in {}"),
    ("lies on the {}", "stands on the banks of the {}", "is crossed by the {}"),
    ("is known for its {}", "exports {}", "has a market for {}"),
    ("has a mayor called {}", "elected {} as its mayor", "is governed by {}"),
)
FACTS = len(VALUES)
_SUMMARY = "{} , founded in {} , lies on the {} . it is known for its {} . its mayor is {} ."
_MENTIONS = 3  # of a fact in each group of paragraphs
_PARAGRAPHS = _MENTIONS * FACTS // 2  # of a group: each has two facts


@dataclass(frozen=True)
class Paragraph:
    town: str
    facts: tuple[int, int]  # which of the four
    values: tuple[str, str]
    text: str


@dataclass(frozen=True)
class TownCluster:
    """Paragraphs about several towns; `truth` has the four facts of each, the title's town
    first."""

    truth: dict[str, list[str]]
    paragraphs: list[Paragraph]

    @property
    def title(self) -> str:
        return next(iter(self.truth))

    @property
    def summary(self) -> str:
        return _SUMMARY.format(self.title, *self.truth[self.title])


def town_cluster(
    random: np.random.Generator, towns: int = 2, groups: int = 1, wrong_groups: int = 1
) -> TownCluster:
    """Make a cluster with `groups` times six paragraphs about each town, in random order.

    A paragraph has two facts; the second one is about "it". Each fact of a town occurs three times
    a group. With probability 1/2, one of these three mentions is wrong in each of `wrong_groups`
    groups, always with the same value."""
    names = [TOWNS[i] for i in random.permutation(len(TOWNS))[:towns]]
    truth = {name: [_any(random, values) for values in VALUES] for name in names}
    paragraphs = [
        p for name in names for p in _about(random, name, truth[name], groups, wrong_groups)
    ]
    return TownCluster(truth, [paragraphs[i] for i in random.permutation(len(paragraphs))])


def _any(random: np.random.Generator, choices: Sequence[str]) -> str:
    return choices[int(random.integers(len(choices)))]


def _about(
    random: np.random.Generator, town: str, truth: list[str], groups: int, wrong_groups: int
) -> list[Paragraph]:
    facts = np.concatenate([_pairs(random) for _ in range(groups)])
    values = [[truth[f] for f in pair] for pair in facts]
    for f in range(FACTS):
        if random.random() < 0.5:
            places = np.argwhere(facts == f)  # three of each group, group after group
            first = random.integers(len(places))
            wrong = _any(random, [value for value in VALUES[f] if value != truth[f]])
            for group in range(wrong_groups):
                i, j = places[(first + _MENTIONS * group) % len(places)]
                values[i][j] = wrong
    return [_paragraph(random, town, pair, said) for pair, said in zip(facts.tolist(), values)]


def _pairs(random: np.random.Generator) -> np.ndarray:
    """Draw two different facts for each paragraph of a group: [paragraphs, 2]."""
    while True:
        pairs = random.permutation(np.arange(FACTS).repeat(_MENTIONS)).reshape(_PARAGRAPHS, 2)
        if (pairs[:, 0] != pairs[:, 1]).all():
            return pairs


def _paragraph(
    random: np.random.Generator, town: str, facts: list[int], values: list[str]
) -> Paragraph:
    first, second = (_any(random, PHRASES[f]).format(value) for f, value in zip(facts, values))
    subject = _any(random, (town, f"the town of {town}"))
    one, other = facts
    return Paragraph(
        town, (one, other), (values[0], values[1]), f"{subject} {first} . it {second} ."
    )


# ---------------------------------------------------------------------------------
# pieces


def _words() -> list[str]:
    phrases = [*(phrase for fact in PHRASES for phrase in fact), _SUMMARY, "the town of it . ,"]
    frame = {word for phrase in phrases for word in phrase.split() if word != "{}"}
    return [
        *CLUSTER_SYMBOLS,
        *sorted(frame),
        *TOWNS,
        *(value for values in VALUES for value in values),
    ]


TOWN_PIECES = Vocabulary(_words())


_IDS = {word: i for i, word in enumerate(TOWN_PIECES.words)}


def pieces_of(text: str) -> list[int]:
    return [_IDS[word] for word in text.split()]


# the places of the facts in a summary, counted in pieces
FACT_PLACES = [i for i, word in enumerate(_SUMMARY.split()) if word == "{}"][1:]


def town_document(
    cluster: TownCluster,
    name: str = "",
    flat: bool = False,
    separator: bool = False,
    graph: bool = False,
) -> EncodedDocument:
    """Encode a cluster: a row for the title, which ends with `<T>`, and one for each paragraph.

    flat: all in one row, with `<P>` between paragraphs if separator is set. graph: the weight of
    two paragraphs is 1 if they are about the same town, the title's row being about its own, and
    else 0.
    """
    rows = [
        [*pieces_of(cluster.title), TITLE_END],
        *(pieces_of(p.text) for p in cluster.paragraphs),
    ]
    if separator:
        rows[1:-1] = [[*row, PARAGRAPH_END] for row in rows[1:-1]]
    source = [piece for row in rows for piece in row]
    lengths = [len(source)] if flat else [len(row) for row in rows]
    document = EncodedDocument.of(name, source, lengths, [*pieces_of(cluster.summary), EOS])
    return replace(document, graph=same_town(cluster).ravel()) if graph else document


def same_town(cluster: TownCluster) -> np.ndarray:
    """Join the rows about the same town: [rows, rows], 1 for an edge. The title is the first
    row."""
    about = np.array([cluster.title, *(p.town for p in cluster.paragraphs)])
    return (about[:, None] == about).astype(np.float32)


# ---------------------------------------------------------------------------------
# models

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
# the stored results of those "trained longer" were made on an H100 in float32, all others on a CPU
ROWS = {
    "HT": TownsRow(),
    "without global layers": TownsRow(_NO_GLOBAL),
    "without global layers, trained longer": TownsRow(_NO_GLOBAL, steps=3 * STEPS),
    "without local layers": TownsRow({"local_layers": 0, "global_layers": 4}),
    "flat": TownsRow(_NO_GLOBAL, {"flat": True}),
    "flat, trained longer": TownsRow(_NO_GLOBAL, {"flat": True}, steps=3 * STEPS),
    "flat, separators": TownsRow(_NO_GLOBAL, {"flat": True, "separator": True}),
    "one pooling head": TownsRow({"pooling_heads": 1}, steps=2 * STEPS),
    "graph of towns": TownsRow(reads={"graph": True}),
    "without paragraph positions": TownsRow({"paragraph_positions": False}),
}


def small_transformer(vocab_size: int, **sizes) -> HierarchicalTransformer:
    """Make a model with random weights, by default of width 64."""
    sizes = {"width": 64, "heads": 4, "inner": 128, "dropout": 0.0, "smoothing": 0.0, **sizes}
    return HierarchicalTransformer(HierarchicalTransformerConfig(vocab_size, **sizes))


def town_model(row: str = "HT") -> HierarchicalTransformer:
    sizes = {"inner": 256, "local_layers": 2, "global_layers": 2, **ROWS[row].sizes}
    return small_transformer(len(TOWN_PIECES), **sizes)


def unseen_towns(
    count: int = TESTED, towns: int = 2, groups: int = 1, wrong_groups: int = 1
) -> list[TownCluster]:
    """Make clusters that no training has, always the same ones."""
    random = np.random.default_rng(10**6)
    return [town_cluster(random, towns, groups, wrong_groups) for _ in range(count)]


def train_towns(
    row: str, seed: int, steps: int = 0
) -> tuple[HierarchicalTransformer, dict[str, float]]:
    """Train the model of a row, by default for the row's steps. Returns it, and the share of facts
    right after every 500 steps."""
    torch.manual_seed(seed)
    model, on_the_way = town_model(row), {}

    def batches() -> Iterator[Batch]:
        for step in range(1, 1 + (steps or ROWS[row].steps)):
            random = np.random.default_rng([seed, step - 1])
            yield batch_of([town_cluster(random) for _ in range(BATCH)], row)
            if step % (STEPS // 2) == 0:
                on_the_way[f"right after {step}"] = facts_written(model, row)["right"]
                model.train()

    return learn(model, batches(), 1e-3).eval(), on_the_way


def documents_of(clusters: list[TownCluster], row: str = "HT") -> list[EncodedDocument]:
    return [town_document(cluster, str(i), **ROWS[row].reads) for i, cluster in enumerate(clusters)]


def batch_of(clusters: list[TownCluster], row: str = "HT") -> Batch:
    return make_batch(documents_of(clusters, row), len(TOWN_PIECES))


def write_towns(
    model: HierarchicalTransformer,
    clusters: list[TownCluster],
    row: str = "HT",
    change: Change = NOTHING,
) -> list[list[str]]:
    """Write summaries by greedy search."""
    summaries = greedy_words(model, documents_of(clusters, row), _LONGEST, change=change)
    return [[TOWN_PIECES.words[i] for i in ids] for ids in summaries]


KINDS = ("right", "other town's", "minority's", "nowhere")


def kind_of(cluster: TownCluster, fact: int, word: str) -> str:
    """Name the kind, of `KINDS`, of a word at the place of a fact in a summary."""
    if word == cluster.truth[cluster.title][fact]:
        return "right"
    said = {own: _said(cluster, fact, own) for own in (True, False)}
    return (
        "minority's" if word in said[True] else "other town's" if word in said[False] else "nowhere"
    )


def _said(cluster: TownCluster, fact: int, own: bool) -> set[str]:
    """Collect the values of a fact in the paragraphs about the title's town, or in those about the
    others."""
    chosen = [p for p in cluster.paragraphs if (p.town == cluster.title) == own]
    return {value for p in chosen for f, value in zip(p.facts, p.values) if f == fact}


def facts_written(
    model: HierarchicalTransformer,
    row: str = "HT",
    change: Change = NOTHING,
    groups: int = 1,
    wrong_groups: int = 1,
) -> dict[str, float]:
    """Summarize `unseen_towns` in `groups` of twelve paragraphs. Returns the shares of facts by
    `KINDS`, and the share of summaries that are right from the first word to the last ("whole")."""
    clusters = unseen_towns(groups=groups, wrong_groups=wrong_groups)
    written = write_towns(model, clusters, row, change)
    kinds = Counter(
        kind for cluster, summary in zip(clusters, written) for kind in kinds_of(cluster, summary)
    )
    whole = sum(" ".join(summary) == cluster.summary for cluster, summary in zip(clusters, written))
    return {kind: kinds[kind] / kinds.total() for kind in KINDS} | {"whole": whole / len(clusters)}


def facts_right(
    model: HierarchicalTransformer, clusters: list[TownCluster], change: Change = NOTHING
) -> np.ndarray:
    """Compute the share of facts that are right in each cluster's summary, in percent."""
    pairs = zip(clusters, write_towns(model, clusters, change=change))
    return np.array(
        [100 * kinds_of(cluster, summary).count("right") / FACTS for cluster, summary in pairs]
    )


def kinds_of(cluster: TownCluster, summary: list[str]) -> list[str]:
    """Name the kind of each fact of a summary, of `KINDS`."""
    return [kind_of(cluster, f, "".join(summary[at : at + 1])) for f, at in enumerate(FACT_PLACES)]


# ---------------------------------------------------------------------------------
# what each part does

CUTS = "layer 1 cut", "layer 2 cut", "layers cut"  # of `lib.models.paragraph_changes`


@torch.no_grad()
def towns_under_changes(model: HierarchicalTransformer) -> dict[str, float]:
    """Measure the share of facts right with longer inputs and under `CUTS`. The last longer input
    has as large a share of wrong mentions as in training."""
    found = {
        f"right, {12 * groups} paragraphs": facts_written(model, groups=groups)["right"]
        for groups in (2, 4)
    }
    found["right, 48 paragraphs, as many wrong"] = facts_written(model, groups=4, wrong_groups=4)[
        "right"
    ]
    changes = changes_of(model)
    return found | {
        f"right, {cut}": facts_written(model, change=changes[cut])["right"] for cut in CUTS
    }


def rows_about(clusters: list[TownCluster], own: bool) -> Tensor:
    """Mark the rows that are paragraphs about the title's town, or about the others:
    [clusters, rows]."""
    return torch.tensor(
        [[False, *((p.town == c.title) == own for p in c.paragraphs)] for c in clusters]
    )


def solve(row: str, seed: int) -> dict[str, float]:
    model, on_the_way = train_towns(row, seed)
    return (
        facts_written(model, row) | on_the_way | (towns_under_changes(model) if row == "HT" else {})
    )


# ---------------------------------------------------------------------------------
# shipped models

SHIPPED = ("HT", "without global layers")  # of seed 0, in 16 bits


def shipped_towns() -> Path:
    return project_root() / "figures" / "task_towns.safetensors"


def save_towns(models: Mapping[str, HierarchicalTransformer], path: Path) -> None:
    """Write the weights of models, by the name of their row, in 16 bits."""
    weights = {
        f"{row}.{name}": w.half()
        for row, model in models.items()
        for name, w in model.state_dict().items()
    }
    write_whole(path, save({name: weight.contiguous() for name, weight in weights.items()}))


def open_towns() -> dict[str, HierarchicalTransformer]:
    """Open the shipped models of the rows `SHIPPED`."""
    weights, models = load_tensors(shipped_towns()), {}
    for row in SHIPPED:
        models[row] = town_model(row).eval()
        models[row].load_state_dict(under(row, weights))
    return models


TASK = Task(
    "twelve paragraphs about two towns: summarize the town that the title names, by majority",
    {row: partial(solve, row) for row in ROWS},
)
