"""States of decoders, whose types tell values of documents from values of hypotheses.

B documents, K hypotheses of each, R = B * K rows, the K hypotheses of a document next to each
other.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_type_hints

from torch import Tensor

Value = TypeVar("Value")

# A value is a tensor, None, or a tuple of values.
PerDocument = Annotated[Value, "document"]  # [B, ...], made once by the encoder and never copied
PerHypothesis = Annotated[Value, "hypothesis"]  # [R, ...], moved with its hypothesis by a search


@dataclass(frozen=True, kw_only=True)
class DecoderState:
    """Base of the states of decoders. A model declares its own:

        @dataclass(frozen=True, kw_only=True)
        class GRUState(DecoderState):
            words: PerDocument[Tensor]  # [B, N, d]
            hidden: PerHypothesis[Tensor]  # [R, d]

    A field that is neither raises TypeError when the class is defined. Without the label, a search
    would go on with values of other hypotheses and return wrong summaries without an error.
    """

    # Names of the fields that are `PerHypothesis`.
    hypotheses: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls):
        super().__init_subclass__()
        # The fields of base classes are included: a subclass may declare one again.
        labels = {}
        for name, hint in get_type_hints(cls, include_extras=True).items():
            if name != "hypotheses":
                labels[name] = getattr(hint, "__metadata__", (None,))[0]
        unlabelled = [name for name, label in labels.items() if label not in ("document", "hypothesis")]
        if unlabelled:
            names = ", ".join(unlabelled)
            raise TypeError(f"{cls.__name__}: declare {names} as PerDocument or as PerHypothesis")
        cls.hypotheses = frozenset(name for name, label in labels.items() if label == "hypothesis")

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
        self._check_sizes()
        chosen = {}  # values of documents are shared, not copied, as long as all documents stay
        for name, value in vars(self).items():
            index = rows if name in self.hypotheses else documents
            chosen[name] = value if index is None else _choose(value, index)
        return replace(self, **chosen)

    def _check_sizes(self) -> None:
        # A wrong label is found here as soon as a document has several hypotheses.
        for label, names in (
            ("rows", self.hypotheses),
            ("documents", vars(self).keys() - self.hypotheses),
        ):
            sizes = {name: size for name in sorted(names) for size in _sizes(getattr(self, name))}
            if len(set(sizes.values())) > 1:
                raise ValueError(f"{type(self).__name__}: different numbers of {label}: {sizes}")


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


def per_hypothesis(values: Tensor, rows: int) -> Tensor:
    """Repeat a document's values for each of its hypotheses: [B, ...] -> [R, ...]."""
    return values if len(values) == rows else values.repeat_interleave(rows // len(values), 0)


def per_document(values: Tensor, documents: int) -> Tensor:
    """Group values of hypotheses by document: [R, ...] -> [B, K, ...]."""
    return values.unflatten(0, (documents, -1))
