"""The flat encoder-decoders of Mem2Mem's Table 1: with attention alone, and with copying and coverage on top.

Nallapati et al. 2016 and See et al. 2017 are what that paper compares with; here they are made of the same layers as
its own models, so that a table compares what is added and not how it was built.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from lib.data.batch import Batch, in_vocabulary
from lib.data.vocabulary import PAD
from lib.layers.attention import Attention, full_precision
from lib.layers.coverage import CoverageAttention
from lib.layers.gru import GRU
from lib.layers.pointer import PointerGenerator, PointerOutput
from lib.layers.sequences import run_packed
from lib.models.decoder_state import HYPOTHESIS, DecoderState, PerHypothesis, per_document, per_hypothesis
from lib.models.summarizer import PointerModel
from lib.system.fields import Even, checked


@checked
class Seq2SeqConfig:
    """Sizes of Mem2Mem's appendix A.2. `hidden` is the decoder's width and the encoder's in both directions."""

    vocab_size: int = 50_000
    embedding: int = 128
    hidden: Even = 256
    bottleneck: int = 128
    copy: bool = True  # Ptr-Gen-Seq2Seq: copying, and coverage in the attention; without: Attn-Seq2Seq


@dataclass(frozen=True)
class Seq2SeqState(DecoderState):
    words: Tensor  # [B, N, d]
    word_keys: Tensor  # [B, N, A]
    word_mask: Tensor  # [B, N]
    source: Tensor  # [B, N] extended ids
    hidden: PerHypothesis  # [R, H]
    coverage: Annotated[Tensor | None, HYPOTHESIS]  # [R, N], where there is one


class Seq2Seq(PointerModel):
    """One bidirectional GRU over the whole source, and a GRU decoder that attends to its words.

    B documents, K hypotheses of each, R = B * K rows, T target words, N source words, d = H = `hidden`.
    """

    Config = Seq2SeqConfig

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        self.config = config
        c = config
        attention = CoverageAttention if c.copy else Attention
        self.embedding = nn.Embedding(c.vocab_size, c.embedding, padding_idx=PAD)
        self.encoder = GRU(c.embedding, c.hidden // 2, bidirectional=True)
        self.bridge = nn.Linear(c.hidden, c.hidden)
        self.decoder = GRU(c.embedding, c.hidden)
        self.word_attention: Any = attention(c.hidden, c.hidden, c.hidden)
        switch = 2 * c.hidden + c.embedding if c.copy else None
        self.pointer = PointerGenerator(2 * c.hidden, switch, c.bottleneck, c.vocab_size)

    def encode(self, batch: Batch) -> Seq2SeqState:
        words, last = run_packed(self.encoder, self.embedding(batch.source), batch.source_lengths)
        return Seq2SeqState(
            words=words,
            word_keys=self.word_attention.project(words),
            word_mask=batch.source_mask,
            source=batch.source_extended,
            hidden=self.bridge(last.transpose(0, 1).flatten(1)),
            coverage=torch.zeros_like(full_precision(words)[0][..., 0]) if self.config.copy else None,
        )

    def decode(self, tokens: Tensor, state: Seq2SeqState) -> tuple[PointerOutput, Seq2SeqState]:
        """Read T target words at once. tokens: [R, T] extended ids, of which copy ids are read as [UNK]."""
        embedded = self.embedding(in_vocabulary(tokens, self.config.vocab_size))  # [R, T, E]
        hidden, last = self.decoder(embedded, state.hidden[None].to(embedded.dtype))
        alpha, context, coverage = self._attend(hidden, state)
        features, switch = self.pointer(torch.cat([hidden, context], -1), torch.cat([context, hidden, embedded], -1))
        output = PointerOutput(features, switch, alpha, per_hypothesis(state.source, len(tokens)))
        return output, replace(state, hidden=last[0], coverage=coverage)

    def _attend(self, hidden: Tensor, state: Seq2SeqState) -> tuple[Tensor, Tensor, Tensor | None]:
        """Weights [R, T, N] and contexts [R, T, d] for hidden states [R, T, H], and the coverage after them."""
        documents, (rows, steps), coverage = len(state.words), hidden.shape[:2], state.coverage
        queries = per_document(hidden, documents)  # [B, K, T, H]
        if coverage is not None:
            before = per_document(coverage, documents)
            alpha, coverage = self.word_attention(queries, state.word_keys, state.word_mask, before)
            alpha, coverage = alpha.flatten(1, 2), coverage.flatten(0, 1)
        else:
            projected = self.word_attention.project_queries(queries.flatten(1, 2))
            alpha = self.word_attention(projected, state.word_keys, state.word_mask)  # [B, K * T, N]
        context = alpha.to(state.words.dtype) @ state.words  # [B, K * T, d]
        return alpha.reshape(rows, steps, -1), context.reshape(rows, steps, -1), coverage
