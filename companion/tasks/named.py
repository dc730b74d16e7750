"""The named paragraph: a title names one of five paragraphs, and the words after the name in it are the summary.
Global layers can find that paragraph inside the model."""

from functools import partial

import torch

from companion.tasks.synthetic import planted_clusters
from companion.tasks.task import Task, learn, share_written
from companion.tasks.towns import right_under_cuts, small_transformer
from lib.data.batch import EncodedDocument, make_batch
from lib.models.hierarchical_transformer import HierarchicalTransformer

VOCAB_SIZE = 24
STEPS = 500
ROWS = {"HT": 2, "without global layers": 0}  # global layers, of three


def named_clusters(count: int, seed: int) -> list[EncodedDocument]:
    return planted_clusters(count, seed, paragraphs=5, words=2, names=6, vocab_size=VOCAB_SIZE)


@torch.no_grad()
def named_under_cuts(model: HierarchicalTransformer, documents: list[EncodedDocument]) -> dict[str, float]:
    """Summaries right under cuts."""
    rows = torch.tensor([1 + int(document.labels.argmax()) for document in documents])  # type: ignore[union-attr]
    named = torch.eye(6, dtype=torch.bool)[rows]  # [documents, title and paragraphs]
    return right_under_cuts(model, named, ~named, lambda change: share_written(model, documents, 4, change))


def solve(row: str, seed: int, steps: int = STEPS) -> dict[str, float]:
    """Train a model: the share of unseen summaries that it writes; of HT, also under cuts."""
    torch.manual_seed(seed)
    model = small_transformer(VOCAB_SIZE, local_layers=3 - ROWS[row], global_layers=ROWS[row])
    learn(model, (make_batch(named_clusters(32, step), VOCAB_SIZE) for step in range(steps)), 1e-3)
    unseen = named_clusters(200, 10**6)
    measures = {"right": share_written(model, unseen, 4)}
    return measures | (named_under_cuts(model, unseen) if row == "HT" else {})


TASK = Task(
    "write the words of the one of five paragraphs that the title names",
    {row: partial(solve, row) for row in ROWS},
)
