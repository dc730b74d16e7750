"""The named paragraph: a title names one of five paragraphs, and the words after the name in it are the summary.
Global layers can find that paragraph inside the model."""

from functools import partial

import torch

from companion.tasks.synthetic import planted_clusters
from companion.tasks.task import Task, learn, share_written
from companion.tasks.towns import CUTS
from lib.data.batch import EncodedDocument, make_batch
from lib.evaluation.interventions import changes_of, decoder_sees
from lib.models.hierarchical_transformer import HierarchicalTransformer, HierarchicalTransformerConfig

VOCAB_SIZE = 24
STEPS = 500
ROWS = {"HT": 2, "without global layers": 0}  # global layers, of three


def named_clusters(count: int, seed: int) -> list[EncodedDocument]:
    return planted_clusters(count, seed, paragraphs=5, words=2, names=6, vocab_size=VOCAB_SIZE)


def solve(row: str, seed: int, steps: int = STEPS) -> dict[str, float]:
    """Train a model: the share of unseen summaries that it writes; of HT, also under cuts."""
    torch.manual_seed(seed)
    layers = ROWS[row]
    config = HierarchicalTransformerConfig(
        VOCAB_SIZE, width=64, heads=4, inner=128, local_layers=3 - layers, global_layers=layers, dropout=0.0,
        smoothing=0.0,
    )  # fmt: skip
    batches = (make_batch(named_clusters(32, step), VOCAB_SIZE) for step in range(steps))
    model, unseen = learn(HierarchicalTransformer(config), batches, 1e-3).eval(), named_clusters(200, 10**6)
    measures = {"right": share_written(model, unseen, 4)}
    return measures | (named_under_cuts(model, unseen) if row == "HT" else {})


@torch.no_grad()
def named_under_cuts(model: HierarchicalTransformer, documents: list[EncodedDocument]) -> dict[str, float]:
    """Summaries right under each of the `CUTS` and by what the decoder sees, and its weight on the named
    paragraph."""
    rows = torch.tensor([1 + int(document.labels.argmax()) for document in documents])  # type: ignore[union-attr]
    named = torch.eye(6, dtype=torch.bool)[rows]  # [documents, title and paragraphs]
    known = changes_of(model)
    changes = {name: known[name] for name in CUTS}
    changes |= {"decoder sees it": decoder_sees(named), "decoder sees the rest": decoder_sees(~named)}
    measures = {}
    for name, change in changes.items():
        with change.model(model):
            measures[f"right, {name}"] = share_written(model, documents, 4)
    batch = make_batch(documents, VOCAB_SIZE)
    units = model.attention_weights(batch.target_input[:, :2], model.encode(batch))["units"]
    return measures | {"decoder's weight on it": (units * named[:, None]).sum(-1).mean().item()}


TASK = Task(
    "write the words of the one of five paragraphs that the title names",
    {row: partial(solve, row) for row in ROWS},
)
