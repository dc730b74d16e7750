"""What a made-up task is: rows of a table, each a small model that is trained with several seeds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from lib.data.batch import Batch
from lib.system.threads import torch_threads


@dataclass(frozen=True)
class Task:
    what: str  # one line for people
    rows: Mapping[str, Callable[[int], Mapping[str, float]]]  # by name: trains with a seed, gives measures by name
    seeds: tuple[int, ...] = (0, 1, 2)


def learn(model: Any, batches: Iterator[Batch], learning_rate: float) -> Any:
    """Train a small model on batches that are made as they come: Adam, gradients clipped at norm 2. On one thread:
    its operations are so small that several would wait for each other."""
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, foreach=True)  # to the bit, in fewer calls
    with torch_threads(1):
        for batch in batches:
            loss = model.loss(batch)["loss"]
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
    return model


def by_row(results: Iterable[Mapping]) -> dict[str, dict[str, list]]:
    """{row: {"seed": the seeds, measure: its values, in the same order}} of results as `companion.solve` writes them."""
    table: dict[str, dict[str, list]] = {}
    for result in results:
        measures = table.setdefault(result["row"], {})
        for name, value in result.items():
            if name != "row":
                measures.setdefault(name, []).append(value)
    return table
