"""The flat encoder-decoders of Mem2Mem's Table 1: with attention only, and with copying and coverage on top.

Nallapati et al. 2016 and See et al. 2017 are what that paper compares with; here they are made of the same layers as
its own models, so that a table compares what is added and not how it was built. The numbers of the equations, (P1)
and (P2), are ours; the mixture of generating and copying is in `lib.layers.pointer`.
"""

from typing import Any

import torch
from torch import Tensor, nn

from lib.data.batch import Batch, in_vocabulary
from lib.data.vocabulary import PAD
from lib.layers.attention import Attention, CoverageAttention, full_precision
from lib.layers.pointer import PointerGenerator
from lib.layers.recurrent import GRU, run_packed
from lib.models.summarizer import DecoderState, HierarchicalOutput, PointerModel, per_document, per_hypothesis
from lib.system.fields import Even, checked


@checked
class RecurrentConfig:
    """Sizes of Mem2Mem's appendix A.2, of all recurrent models in its tables."""

    vocab_size: int = 50_000
    embedding: int = 128  # trained from scratch, one table for source and target
    hidden: Even = 256  # of the decoder, and of encoders in both directions: gives the paper's 14.7M parameters
    bottleneck: int = 128  # between [h; c] and the vocabulary, for the same reason


@checked
class Seq2SeqConfig(RecurrentConfig):
    """Sizes, and which of the two models it is."""

    copy: bool = True  # Ptr-Gen-Seq2Seq: copying, and coverage in the attention; without: Attn-Seq2Seq


class RecurrentModel(PointerModel):
    """A GRU decoder that attends and copies. The state of a model has `source`, `hidden` and `coverage`.

    B documents, K hypotheses of each, R = B * K rows, T target words, N source words, d = H = `hidden`.
    """

    embedding: nn.Embedding
    decoder: GRU

    def decode(self, tokens: Tensor, state: Any) -> tuple[HierarchicalOutput, Any]:
        """Read T target words at once. tokens: [R, T] extended ids, of which copy ids are read as [UNK]."""
        embedded = self.embedding(in_vocabulary(tokens, self.config.vocab_size))  # [R, T, E]
        # h_t = GRU(x_t, h_{t-1})
        hidden, last = self.decoder(embedded, state.hidden[None].to(embedded.dtype))
        query, read, state = self.condition(hidden, state)  # [R, T, H]
        alpha, beta, gamma, context, coverage = self._attend(query, state)
        # features V'[h; c] + b, and the switch's w_c^T c + w_d^T h + w_x^T x'   (13 of Mem2Mem)
        # P_g = softmax(V' (V [h_t; c_t] + b) + b'),  p_t = sigmoid(w^T [c_t; h_t; x_t] + b'')   (P2)
        features, switch = self.pointer(torch.cat([query, context], -1), torch.cat([context, query, embedded], -1))
        source = per_hypothesis(state.source, len(tokens))
        output = HierarchicalOutput(features, switch, gamma, source, alpha, beta, read)
        return output, state.replace(hidden=last[0], coverage=coverage)

    def condition(self, hidden: Tensor, state: Any) -> tuple[Tensor, Tensor | None, Any]:
        """Return what attends and predicts instead of `hidden` [R, T, H]; models with a memory override this."""
        return hidden, None, state

    def _attend(self, query: Tensor, state: DecoderState) -> tuple[Tensor, Tensor | None, Tensor, Tensor, Any]:
        """Attend with queries [R, T, H]: alpha of words, beta of sentences, gamma to copy, the context, and the
        coverage after them, R rows each."""
        raise NotImplementedError


class Seq2Seq(RecurrentModel):
    """One bidirectional GRU over the whole source, and a GRU decoder that attends to its words."""

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

    def encode(self, batch: Batch) -> DecoderState:
        # h_1 ... h_N = BiGRU(x_1 ... x_N), and the decoder starts from a linear layer of both last states
        words, last = run_packed(self.encoder, self.embedding(batch.source), batch.source_lengths)
        return DecoderState(
            words=words,  # [B, N, d]
            word_keys=self.word_attention.project(words),  # [B, N, A]
            word_mask=batch.source_mask,
            source=batch.source_extended,
            hypotheses={"hidden", "coverage"},
            hidden=self.bridge(last.transpose(0, 1).flatten(1)),  # [R, H]
            # [R, N] attention that each word has received so far
            coverage=torch.zeros_like(full_precision(words)[0][..., 0]) if self.config.copy else None,
        )

    def _attend(self, query: Tensor, state: DecoderState) -> tuple[Tensor, None, Tensor, Tensor, Tensor | None]:
        # e_ti = v^T tanh(W_e h_i + W_d h_t + w_cov cov_ti),  alpha_t = softmax(e_t),  c_t = sum_i alpha_ti h_i   (P1)
        queries, coverage = per_document(query, len(state.words)), state.coverage  # [B, K, T, H]
        if coverage is None:
            projected = self.word_attention.project_queries(queries.flatten(1, 2))
            alpha = self.word_attention(projected, state.word_keys, state.word_mask)  # [B, K * T, N]
        else:
            coverage = per_document(coverage, len(state.words))
            alpha, coverage = self.word_attention(queries, state.word_keys, state.word_mask, coverage)
            alpha, coverage = alpha.flatten(1, 2), coverage.flatten(0, 1)
        context = alpha.to(state.words.dtype) @ state.words  # [B, K * T, d]
        alpha, context = (x.reshape(*query.shape[:2], -1) for x in (alpha, context))
        return alpha, None, alpha, context, coverage
