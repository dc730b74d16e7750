"""The named paragraph: a title names one of five paragraphs, and what stands in it after its name is the summary. A
ranker can find that paragraph before the model, or global layers inside it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from companion.tasks.synthetic import planted_clusters
from companion.tasks.task import Task, learn
from companion.tasks.towns import CUTS
from lib.data.batch import Batch, EncodedDocument, make_batch, rows_of
from lib.decoding.search import DecodeConfig, greedy_search
from lib.evaluation.interventions import NOTHING, Change, changes_of, decoder_sees
from lib.models.hierarchical_transformer import HierarchicalTransformer, HierarchicalTransformerConfig
from lib.models.paragraph_ranker import ParagraphRanker, ParagraphRankerConfig, Pooling

VOCAB_SIZE = 24


@dataclass(frozen=True)
class NamedRow:
    global_layers: int
    ranked: bool  # paragraphs in the order of a ranker
    steps: int


ROWS = {
    "HT": NamedRow(2, False, 500),
    "without global layers": NamedRow(0, False, 500),
    "HT, ranked": NamedRow(2, True, 200),
    "without global layers, ranked": NamedRow(0, True, 200),
}


RANKERS: dict[str, Pooling] = {
    "ranker": "max",
    "ranker, mean for maximum": "mean",
    "ranker, last state for maximum": "last",
}
LENGTHS = 2, 60  # words of a paragraph after its name, for the rankers


def named_clusters(count: int, seed: int, words: int = 2) -> list[EncodedDocument]:
    return planted_clusters(count, seed, paragraphs=5, words=words, names=6, vocab_size=VOCAB_SIZE)


def unseen_named(words: int = 2) -> list[EncodedDocument]:
    return named_clusters(200, 10**6, words)


@cache
def named_ranker(seed: int, pooling: Pooling = "max", words: int = 2) -> ParagraphRanker:
    torch.manual_seed(seed)
    config = ParagraphRankerConfig(VOCAB_SIZE, embedding=32, hidden=32, dropout=0.0, pooling=pooling)
    batches = (make_batch(named_clusters(64, i, words), VOCAB_SIZE) for i in range(300))
    return learn(ParagraphRanker(config), batches, 5e-3).eval()


@torch.no_grad()
def _best_first(documents: list[EncodedDocument], ranker: ParagraphRanker) -> Tensor:
    """Numbers of the paragraphs of each document, those that the ranker likes best first: [documents, 5]."""
    scores = ranker.logits(make_batch(documents, VOCAB_SIZE)).view(len(documents), -1)
    return scores.argsort(dim=1, descending=True, stable=True)


def chosen_first(ranker: ParagraphRanker, words: int = 2) -> float:
    """The share of unseen clusters in which the ranker puts the named paragraph first."""
    unseen = unseen_named(words)
    return (1 + _best_first(unseen, ranker)[:, 0] == named_rows(unseen)).double().mean().item()


def _in_order(documents: list[EncodedDocument], ranker: ParagraphRanker) -> list[EncodedDocument]:
    ordered = []
    for document, order in zip(documents, _best_first(documents, ranker).tolist()):
        title, *paragraphs = rows_of(document)
        source = np.concatenate([title, *(paragraphs[i] for i in order)])
        ordered.append(replace(document, source=source))
    return ordered


def train_named(row: str, seed: int) -> HierarchicalTransformer:
    torch.manual_seed(seed)
    layers = ROWS[row].global_layers
    config = HierarchicalTransformerConfig(
        VOCAB_SIZE, width=64, heads=4, inner=128, local_layers=3 - layers, global_layers=layers, dropout=0.0,
        smoothing=0.0,
    )  # fmt: skip
    model = HierarchicalTransformer(config)
    return learn(model, _batches(row, seed), 1e-3).eval()


def _batches(row: str, seed: int) -> Iterator[Batch]:
    for step in range(ROWS[row].steps):
        yield make_batch(_read(named_clusters(32, step), row, seed), VOCAB_SIZE)


def _read(documents: list[EncodedDocument], row: str, seed: int) -> list[EncodedDocument]:
    return _in_order(documents, named_ranker(seed)) if ROWS[row].ranked else documents


def summaries_right(
    model: HierarchicalTransformer, documents: list[EncodedDocument], change: Change = NOTHING
) -> float:
    with change.model(model):
        written = greedy_search(model, make_batch(documents, VOCAB_SIZE), DecodeConfig(max_length=4))
    return float(np.mean([w.ids == d.target[:-1].tolist() for w, d in zip(written, documents)]))


def named_rows(documents: list[EncodedDocument]) -> Tensor:
    """The row of the named paragraph, the title's being 0: [documents]."""
    return torch.tensor([1 + int(d.labels.argmax()) for d in documents])  # type: ignore


def named_under_cuts(model: HierarchicalTransformer, documents: list[EncodedDocument]) -> dict[str, float]:
    """Summaries right under each of the `CUTS` and by what the decoder sees, and its weight on the named
    paragraph."""
    named = torch.eye(6, dtype=torch.bool)[named_rows(documents)]
    changes = changes_of(model)
    changes |= {"decoder sees it": decoder_sees(named), "decoder sees the rest": decoder_sees(~named)}
    found = {f"right, {name}": summaries_right(model, documents, changes[name])
             for name in (*CUTS, "decoder sees it", "decoder sees the rest")}  # fmt: skip
    batch = make_batch(documents, VOCAB_SIZE)
    with torch.no_grad():
        units = model.attention_weights(batch.target_input[:, :2], model.encode(batch))["units"]
    return found | {"decoder's weight on it": (units * named[:, None]).sum(-1).mean().item()}


def _solve(row: str, seed: int) -> dict[str, float]:
    model, unseen = train_named(row, seed), _read(unseen_named(), row, seed)
    found = {"right": summaries_right(model, unseen)}
    if ROWS[row].ranked:
        found["chosen first"] = chosen_first(named_ranker(seed))
    return found | (named_under_cuts(model, unseen) if row == "HT" else {})


def _rank(pooling: Pooling, seed: int) -> dict[str, float]:
    return {f"chosen first, {n} words": chosen_first(named_ranker(seed, pooling, n), n) for n in LENGTHS}


TASK = Task(
    "write what stands in the one of five paragraphs that the title names",
    {row: partial(_solve, row) for row in ROWS} | {row: partial(_rank, pooling) for row, pooling in RANKERS.items()},
)
