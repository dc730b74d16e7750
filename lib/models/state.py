"""What a decoder carries from one call to the next."""

from dataclasses import dataclass, replace

from torch import Tensor


@dataclass(frozen=True)
class State:
    """Tensors of `documents` (one row a document, made once by the encoder, never copied) and of the `decoder` (one
    row a hypothesis, the K hypotheses of a document next to each other)."""

    document: dict[str, Tensor]
    decoder: dict[str, Tensor]

    def advance(self, **decoder: Tensor) -> "State":
        """The state after a call of `decode`."""
        return replace(self, decoder={**self.decoder, **decoder})

    def reorder(self, rows: Tensor, documents: Tensor | None = None) -> "State":
        """Choose hypotheses by row (repeats allowed), and documents when some of them leave the batch.

        `rows` must keep as many hypotheses for each document that stays, in the order of the documents.
        """
        kept = self.document
        if documents is not None:
            kept = {name: value[documents] for name, value in kept.items()}
        return State(kept, {name: value[rows] for name, value in self.decoder.items()})
