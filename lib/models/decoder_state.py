"""The state that a decoder carries from one call to the next, and the way between documents and their hypotheses."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import repeat
from typing import Annotated, Any, Self, get_type_hints

from torch import Tensor

HYPOTHESIS = "one row a hypothesis"  # marks the fields of a state that a search chooses from
PerHypothesis = Annotated[Tensor, HYPOTHESIS]


@dataclass(frozen=True)
class DecoderState:
    """Each model's state is a dataclass of its own: tensors of B documents (made once by the encoder, never copied),
    and those marked `PerHypothesis` of R = B * K hypotheses, the K of a document next to each other.

    A field may also be None, or a tuple of tensors or of such tuples.
    """

    def reorder(self, rows: Tensor, documents: Tensor | None = None) -> Self:
        """Choose hypotheses by row (repeats allowed), and documents when some of them leave the batch.

        `rows` must keep as many hypotheses for each document that stays, in the order of the documents.
        """
        hypotheses = _hypotheses(type(self))
        chosen = {f.name: rows if f.name in hypotheses else documents for f in fields(self)}
        return replace(self, **{name: _choose(getattr(self, name), index) for name, index in chosen.items()})


@cache
def _hypotheses(kind: type[DecoderState]) -> set[str]:
    hints = get_type_hints(kind, include_extras=True)
    return {name for name, hint in hints.items() if HYPOTHESIS in getattr(hint, "__metadata__", ())}


def _choose(value: Any, index: Tensor | None) -> Any:
    if value is None or index is None:
        return value
    if isinstance(value, tuple):
        return tuple(_choose(v, index) for v in value)
    return value[index]


@dataclass(frozen=True, kw_only=True)
class CachedState(DecoderState):
    """The state of a Transformer decoder, whose layers keep the keys and values of all pieces that they have read."""

    source: tuple[Any, ...]  # what each layer needs of the B documents
    past: Annotated[tuple[tuple[Tensor, Tensor], ...], HYPOTHESIS] = ()  # keys and values of each layer, of R rows

    @property
    def written(self) -> int:
        """The number of pieces written so far, the same for all hypotheses."""
        return self.past[0][0].shape[-2] if self.past else 0

    def read_on(self, layers: Iterable[Any], x: Tensor, *shared: Tensor) -> tuple[Tensor, Self]:
        """Let all layers read further pieces x [R, T, d]: the last one's output [R, T, d], and the next state.

        shared: what every layer needs beside its own keys and values.
        """
        kept = []
        for layer, past, source in zip(layers, self.past or repeat(None), self.source):
            x, keys_and_values = layer(x, past, source, *shared)
            kept.append(keys_and_values)
        return x, replace(self, past=tuple(kept))


def per_hypothesis(values: Tensor, rows: int) -> Tensor:
    """Repeat values of documents for each of their hypotheses: [B, ...] -> [R, ...]."""
    return values if len(values) == rows else values.repeat_interleave(rows // len(values), 0)


def per_document(values: Tensor, documents: int) -> Tensor:
    """Group values of hypotheses by document: [R, ...] -> [B, K, ...]."""
    return values.unflatten(0, (documents, -1))
