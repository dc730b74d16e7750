"""The hierarchical transformer with copying (See et al. 2017): ours and not the paper's, to measure what copying is
worth to it. The mixture is Mem2Mem's (14) and (15); the numbers of these equations are ours:

    (C1)  gamma_i = softmax_i(f^T W h_i / sqrt(d)), of features f of the decoder and the encoder's pieces h_i
    (C2)  z = sigmoid(w_f^T f + w_c^T sum_i gamma_i h_i + b)
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lib.data.batch import Batch
from lib.layers.attention import Attention, full_precision
from lib.layers.pointer import PointerOutput
from lib.models.decoder_state import per_document, per_hypothesis
from lib.models.hierarchical_transformer import (
    HierarchicalTransformer,
    HierarchicalTransformerConfig,
    HierarchicalTransformerState,
    with_paragraphs,
)
from lib.models.summarizer import PointerModel
from lib.system.errors import InputError
from lib.system.fields import checked


@checked
class CopyingTransformerConfig(HierarchicalTransformerConfig):
    """Labels are not smoothed: what is copied has no scores to smooth."""

    smoothing: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        if self.smoothing:
            raise InputError(f"smoothing must be 0 in a model that copies, not {self.smoothing}")


@dataclass(frozen=True, kw_only=True)
class CopyingTransformerState(HierarchicalTransformerState):
    word_keys: Tensor  # [B, N, d] W h
    ids: Tensor  # [B, N] extended ids of the source


class CopyingTransformer(PointerModel, HierarchicalTransformer):
    """A hierarchical transformer that generates a piece or copies one of its source."""

    Config = CopyingTransformerConfig

    def __init__(self, config: CopyingTransformerConfig):
        super().__init__(config)
        self.copy_attention = Attention(config.width, config.width, config.width, "general")
        self.switch = nn.Linear(2 * config.width, 1)
        for layer in (self.copy_attention.key, self.switch):
            nn.init.xavier_uniform_(layer.weight)

    def output_layer(self) -> tuple[Tensor, Tensor]:
        """Score pieces by their embeddings, as the model without copying does."""
        return self.embedding.weight, self.bias

    def encode(self, batch: Batch, graph: Tensor | None = None) -> CopyingTransformerState:
        state = super().encode(batch, graph)
        keys = self.copy_attention.project(state.words)
        return CopyingTransformerState(**vars(state), word_keys=keys, ids=batch.source_extended)

    def decode(self, tokens: Tensor, state: Any) -> tuple[PointerOutput, Any]:
        """Read T target pieces at once: tokens [R, T] extended ids, of which copy ids are read as [UNK]."""
        output, state = super().decode(tokens, state)
        features = output.features  # [R, T, d]
        queries = per_document(features, len(state.words)).flatten(1, 2) * features.shape[-1] ** -0.5  # [B, K * T, d]
        # gamma_i = softmax_i(f^T W h_i / sqrt(d))   (C1)
        copy = self.copy_attention(queries, state.word_keys, state.mask)  # [B, K * T, N]
        # z = sigmoid(w_f^T f + w_c^T sum_i gamma_i h_i + b)   (C2)
        context = (copy.to(state.words.dtype) @ state.words).view_as(features)
        (switch,) = full_precision(self.switch(torch.cat([features, context], -1)).squeeze(-1))
        copy = copy.view(*tokens.shape, -1)
        return PointerOutput(features, switch, copy, per_hypothesis(state.ids, len(tokens))), state

    def attention_weights(self, tokens: Tensor, state: Any) -> dict[str, Tensor]:
        """Attention weights of the pointer, as of every model that copies, and "generate"."""
        output, _ = self.decode(tokens, state)
        seen = self.seen(output, state)
        return {**seen, **with_paragraphs(seen["words"], state)}
