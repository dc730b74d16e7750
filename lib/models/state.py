"""States of decoders, whose types tell values of documents from values of hypotheses.

B documents, K hypotheses of each, R = B * K rows, the K hypotheses of a document next to each
other.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_type_hints

from torch import Tensor

Value = TypeVar("Value")

# A value is a tensor, None, or a tuple of values.
PerDocument = Annotated[Value, "document"]  # [B, ...], made once by the encoder and never copied
PerHypothesis = Annotated[Value, "hypothesis"]  # [R, ...], moved with its hypothesis by a search
# [1, ...], one value for the whole batch; or [B, ...], like `PerDocument`.
PerBatch = Annotated[Value, "batch"]

LABELS = {"document": "PerDocument", "hypothesis": "PerHypothesis", "batch": "PerBatch"}


@dataclass(frozen=True, kw_only=True)
class DecoderState:
    """Base of the states of decoders. A model declares its own:

        @dataclass(frozen=True, kw_only=True)
        class GRUState(DecoderState):
            words: PerDocument[Tensor]  # [B, N, d]
            hidden: PerHypothesis[Tensor]  # [R, d]

    A field without a label raises TypeError when the class is defined. Without the label, a search
    would go on with values of other hypotheses and return wrong summaries without an error.
    """

    # Names of the fields that are `PerHypothesis`, and of those that are `PerBatch`.
    hypotheses: ClassVar[frozenset[str]] = frozenset()
    of_batch: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls):
        super().__init_subclass__()
        # The fields of base classes are included: a subclass may declare one again.
        labels = {}
        for name, hint in get_type_hints(cls, include_extras=True).items():
            if name not in ("hypotheses", "of_batch"):
                labels[name] = getattr(hint, "__metadata__", (None,))[0]
        unlabelled = [name for name, label in labels.items() if label not in LABELS]
        if unlabelled:
            names = ", ".join(unlabelled)
            choice = ", ".join(LABELS.values())
            raise TypeError(f"{cls.__name__}: declare {names} as one of {choice}")
        cls.hypotheses = frozenset(name for name in labels if labels[name] == "hypothesis")
        cls.of_batch = frozenset(name for name in labels if labels[name] == "batch")

    def replace(self, **values: Any) -> Self:
        """Copy the state with other values. Raises TypeError for an unknown name."""
        return replace(self, **values)

    def reorder(self, rows: Tensor, documents: Tensor | None = None) -> Self:
        """Choose hypotheses by row (repeats allowed), and documents when some leave the batch.

        Args:
            rows: [R'] rows of the next state, the same number for each document that stays, in the
                documents' order.
            documents: [B'] documents of the next state; None: all.

        Raises ValueError where the sizes of the values contradict their labels.
        """
        of_hypotheses, of_documents = self._values()
        _one_size(self, "rows", of_hypotheses)
        size = _one_size(self, "documents", of_documents)
        # Values of documents are shared, not copied, as long as all documents stay.
        chosen = {name: _choose(value, rows) for name, value in of_hypotheses.items()}
        if documents is not None:
            for name in self.of_batch:
                value = getattr(self, name)
                if _sizes(value) == [size]:
                    of_documents[name] = value
            chosen |= {name: _choose(value, documents) for name, value in of_documents.items()}
        return replace(self, **chosen)

    def _values(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the values of hypotheses and those of documents, by name."""
        of_hypotheses, of_documents = {}, {}
        for name, value in vars(self).items():
            if name in self.hypotheses:
                of_hypotheses[name] = value
            elif name not in self.of_batch:
                of_documents[name] = value
        return of_hypotheses, of_documents


def _one_size(state: DecoderState, label: str, values: dict[str, Any]) -> int | None:
    """Return the common first dimension of values, None where there is no tensor.

    Raises ValueError where they differ: a wrong label is found here as soon as a document has
    several hypotheses.
    """
    sizes = {}
    for name in sorted(values):
        for size in _sizes(values[name]):
            sizes[name] = size
    if len(set(sizes.values())) > 1:
        raise ValueError(f"{type(state).__name__}: different numbers of {label}: {sizes}")
    return next(iter(sizes.values()), None)


def _choose(value: Any, index: Tensor) -> Any:
    """Choose rows of a value [n, ...]."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(_choose(part, index) for part in value)
    return value[index]


def _sizes(value: Any) -> list[int]:
    """List the first dimensions of the tensors of a value."""
    if value is None:
        return []
    if isinstance(value, tuple):
        return [size for part in value for size in _sizes(part)]
    return [len(value)]


@dataclass(frozen=True, kw_only=True)
class CachedState(DecoderState):
    """The state of a Transformer decoder, whose layers keep keys and values of all pieces read."""

    source: PerDocument[tuple[Any, ...]]  # what each layer needs of the documents
    past: PerHypothesis[tuple[Any, ...]] = ()  # keys and values of each layer

    @property
    def written(self) -> int:
        """The number of pieces written so far, the same for all hypotheses."""
        return self.past[0][0].shape[-2] if self.past else 0

    def read_on(self, layers: Iterable[Any], x: Tensor, *shared: Tensor) -> tuple[Tensor, Self]:
        """Let all layers read further pieces x [R, T, d].

        shared: arguments of every layer besides its own keys and values.

        Returns:
            the last output [R, T, d] and the next state.
        """
        kept = []
        for layer, past, source in zip(layers, self.past or repeat(None), self.source):
            x, keys_and_values = layer(x, past, source, *shared)
            kept.append(keys_and_values)
        return x, self.replace(past=tuple(kept))


def per_hypothesis(values: Tensor, rows: int) -> Tensor:
    """Repeat a document's values for each of its hypotheses: [B, ...] -> [R, ...]."""
    return values if len(values) == rows else values.repeat_interleave(rows // len(values), 0)


def per_document(values: Tensor, documents: int) -> Tensor:
    """Group values of hypotheses by document: [R, ...] -> [B, K, ...]."""
    return values.unflatten(0, (documents, -1))
