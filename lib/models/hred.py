"""The hierarchical recurrent encoder-decoder that Mem2Mem extends: equations 1 to 3 and 13 to 17 of that paper."""

import torch
from torch import Tensor, nn

from lib.data.batch import Batch
from lib.data.vocabulary import PAD
from lib.layers.attention import Attention, CoverageAttention, Score, full_precision
from lib.layers.pointer import PointerGenerator
from lib.layers.recurrent import GRU, run_packed
from lib.models.seq2seq import RecurrentConfig, RecurrentModel
from lib.models.summarizer import DecoderState, per_document
from lib.system.fields import checked


@checked
class HREDConfig(RecurrentConfig):
    """Sizes of the paper (appendix A.2)."""

    score: Score = "concat"  # of sentence attention and memory read


class HRED(RecurrentModel):
    """Sentence encoder, document encoder, and a decoder with hierarchical attention, coverage and copying.

    B documents, K hypotheses of each, R = B * K rows, T target words, N source words, L sentences, d = H = `hidden`.
    """

    Config = HREDConfig

    def __init__(self, config: HREDConfig):
        super().__init__()
        self.config = config
        c, half = config, config.hidden // 2
        self.embedding = nn.Embedding(c.vocab_size, c.embedding, padding_idx=PAD)
        self.sentence_encoder = GRU(c.embedding, half, bidirectional=True)
        self.document_encoder = GRU(c.hidden, half, bidirectional=True)
        self.bridge = nn.Linear(c.hidden, c.hidden)
        self.decoder = GRU(c.embedding, c.hidden)
        self.word_attention = CoverageAttention(c.hidden, c.hidden, c.hidden)
        self.sentence_attention = Attention(c.hidden, c.hidden, c.hidden, c.score)
        self.pointer = PointerGenerator(2 * c.hidden, 2 * c.hidden + c.embedding, c.bottleneck, c.vocab_size)

    # ---------------------------------------------------------------------------------------------- encoder

    def encode(self, batch: Batch) -> DecoderState:
        words, embedded = self._read_sentences(batch)
        # h_j = BiGRU(embedding of sentence j, h_{j-1}), and the decoder starts from the last states   (2)
        sentences, last = run_packed(self.document_encoder, embedded, batch.sentence_counts)
        return DecoderState(
            words=words,  # [B, N, d]
            word_keys=self.word_attention.project(words),  # [B, N, A]
            word_mask=batch.source_mask,
            source=batch.source_extended,
            sentence_of=batch.sentence_of,  # [B, N]
            sentences=sentences,  # [B, L, d]
            sentence_keys=self.sentence_attention.project(sentences),  # [B, L, A]
            sentence_mask=batch.sentence_mask,
            hypotheses={"hidden", "coverage"},
            hidden=self.bridge(last.transpose(0, 1).flatten(1)),  # [R, H]
            coverage=torch.zeros_like(full_precision(words)[0][..., 0]),  # [R, N] attention received so far
        )

    def _read_sentences(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Read the words of all sentences as one packed batch: states [B, N, d] and sentence embeddings [B, L, d]."""
        # h_i = BiGRU(x_i, h_{i-1}) inside a sentence, and its embedding is [last forwards; last backwards]   (1)
        packed = batch.packed
        embedded = self.embedding(batch.source.flatten()[packed.words])
        states, last = self.sentence_encoder(packed.sequence(embedded))
        last = last.transpose(0, 1).flatten(1)  # [all sentences, d]: last forward, first backward
        words = states.data.new_zeros(batch.source.numel(), states.data.shape[1])
        words = words.index_copy(0, packed.words, states.data)
        embedded = last.new_zeros(batch.sentence_mask.numel(), last.shape[1])
        embedded = embedded.index_copy(0, packed.rows, last)
        return words.view(*batch.source.shape, -1), embedded.view(*batch.sentence_mask.shape, -1)

    def _attend(self, query: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        documents, (rows, steps) = len(state.words), query.shape[:2]
        query = per_document(query, documents)  # [B, K, T, H]
        coverage = per_document(state.coverage, documents)
        # alpha_t of words, with coverage   (16, 17)
        alpha, coverage = self.word_attention(query, state.word_keys, state.word_mask, coverage)  # [B, K, T, N]
        alpha = alpha.flatten(1, 2)  # [B, K * T, N]
        # beta_t of sentences,  gamma_ti = beta_{t,m(i)} alpha_ti / their sum,  c_t = sum_i gamma_ti h_i   (3)
        by_sentence = self.sentence_attention.project_queries(query.flatten(1, 2))
        beta = self.sentence_attention(by_sentence, state.sentence_keys, state.sentence_mask)
        gamma = alpha * beta.gather(2, state.sentence_of[:, None].expand_as(alpha))
        gamma = gamma / gamma.sum(-1, keepdim=True).clamp_min(torch.finfo(gamma.dtype).tiny)
        context = gamma.to(state.words.dtype) @ state.words  # [B, K * T, d]
        alpha, beta, gamma, context = (x.reshape(rows, steps, -1) for x in (alpha, beta, gamma, context))
        return alpha, beta, gamma, context, coverage.flatten(0, 1)
