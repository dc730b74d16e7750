"""A synthetic task: rows of a table, each a small model that is trained with several seeds and
measured."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.decoding.config import DecodeConfig
from lib.decoding.search import greedy_search
from lib.models.changes import NOTHING, Change
from lib.system.threads import flush_denormals, torch_threads


@dataclass(frozen=True)
class Task:
    what: str  # a description in one line
    # by name: trains with a seed, returns measures by name
    rows: Mapping[str, Callable[[int], Mapping[str, float]]]
    seeds: tuple[int, ...] = (0, 1, 2)


def learn(model: Any, batches: Iterator[Batch], learning_rate: float) -> Any:
    """Train a small model on batches as they come: Adam, gradients clipped at norm 2. On one
    thread: its operations are so small that several threads would wait for each other."""
    flush_denormals()
    # in fewer calls
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, foreach=True)
    with torch_threads(1):
        for batch in batches:
            loss = model.loss(batch)["loss"]
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
    return model


def greedy_words(
    model: Any,
    documents: Sequence[EncodedDocument],
    max_length: int,
    min_length: int = 0,
    change: Change = NOTHING,
) -> list[list[int]]:
    """Write summaries by greedy search, perhaps with a changed model: ids without [EOS]."""
    batch = make_batch(documents, model.config.vocab_size)
    with change.model(model):
        found = greedy_search(
            model.eval(), batch, DecodeConfig(min_length=min_length, max_length=max_length)
        )
    return [hypothesis.ids for hypothesis in found]


def share_written(
    model: Any, documents: Sequence[EncodedDocument], max_length: int, change: Change = NOTHING
) -> float:
    """Compute the share of documents whose whole target a model writes."""
    words = greedy_words(model, documents, max_length, change=change)
    return float(
        np.mean([ids == document.target[:-1].tolist() for ids, document in zip(words, documents)])
    )


def by_row(results: Iterable[Mapping]) -> dict[str, dict[str, list]]:
    """Gather results of `companion.train_task`: {row: {"seed": seeds, measure: its values, in the same
    order}}."""
    table: dict[str, dict[str, list]] = {}
    for result in results:
        for name in [name for name in result if name != "row"]:
            table.setdefault(result["row"], {}).setdefault(name, []).append(result[name])
    return table
