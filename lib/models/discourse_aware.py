"""Discourse-aware attention (Cohan et al. 2018), a row of Mem2Mem's Table 1: sections, and words
inside them.

The corpus must have been prepared with sections as units (`CohanOptions(unit="section")`): its
"sentences" are sections then. The equations are numbered as in docs/papers/mem2mem.md. Faults of
the released code are not repeated: padding is attended to nowhere, and a weight belongs to the word
that is copied with it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lib.data.batch import Batch, in_vocabulary, pack, put
from lib.data.vocabulary import PAD
from lib.layers.attention import full_precision, masked_softmax
from lib.layers.pointer import PointerGenerator
from lib.layers.recurrent import LSTM, run_packed
from lib.models.seq2seq import RecurrentConfig
from lib.models.state import DecoderState, PerDocument, PerHypothesis, per_document, per_hypothesis
from lib.models.summarizer import HierarchicalOutput, PointerModel


@dataclass(frozen=True, kw_only=True)
class DiscourseAwareState(DecoderState):
    """Words and sections of the documents, and the state of an LSTM decoder."""

    words: PerDocument[Tensor]  # [B, N, d]
    word_keys: PerDocument[Tensor]  # [B, N, d]
    word_mask: PerDocument[Tensor]  # [B, N]
    source: PerDocument[Tensor]  # [B, N] extended ids
    section_of: PerDocument[Tensor]  # [B, N]
    section_keys: PerDocument[Tensor]  # [B, S, d]
    section_mask: PerDocument[Tensor]  # [B, S]
    hidden: PerHypothesis[Tensor]  # [R, d]
    cell: PerHypothesis[Tensor]  # [R, d]
    context: PerHypothesis[Tensor]  # [R, d] of the previous word
    coverage: PerHypothesis[Tensor]  # [R, N]


class DiscourseAware(PointerModel):
    """Words read section by section, sections read in turn; section weights scale the scores of
    their words.

    B documents, K hypotheses of each, R = B * K rows, T target words, N source words, S sections, d
    = H = `hidden`.
    """

    Config = RecurrentConfig

    def __init__(self, config: RecurrentConfig):
        super().__init__()
        self.config = config
        c, d, half = config, config.hidden, config.hidden // 2
        self.embedding = nn.Embedding(c.vocab_size, c.embedding, padding_idx=PAD)
        self.word_encoder = LSTM(c.embedding, half, bidirectional=True)
        self.reduce_section = nn.Linear(d, d)  # W_r, b
        self.section_encoder = LSTM(d, half, bidirectional=True)
        self.bridge_hidden, self.bridge_cell = nn.Linear(d, d), nn.Linear(d, d)
        self.section_key = nn.Linear(d, d, bias=False)  # W_hs
        self.section_query = nn.Linear(2 * d, d)  # W_ss, b_s
        self.section_v = nn.Linear(d, 1, bias=False)  # v_s
        self.word_key = nn.Linear(d, d, bias=False)  # W_h
        self.word_query = nn.Linear(2 * d, d)  # W_s, b
        self.word_v = nn.Linear(d, 1, bias=False)  # v
        self.word_coverage = nn.Linear(1, d, bias=False)  # w_cov; the released script leaves it out
        self.input = nn.Linear(c.embedding + d, c.embedding)  # W, b
        self.cell = nn.LSTMCell(c.embedding, d)
        self.pointer = PointerGenerator(2 * d, 3 * d + c.embedding, c.bottleneck, c.vocab_size)

    # ---------------------------------------------------------------------------------
    # encoder

    def encode(self, batch: Batch) -> DiscourseAwareState:
        words, sections = self._read_words(batch)
        # g_1 ... g_S = BiLSTM(s_1 ... s_S)   (C3)
        # The decoder starts from ReLU layers of the last states.
        states, (hidden, cell) = run_packed(self.section_encoder, sections, batch.sentence_counts)
        return DiscourseAwareState(
            words=words,
            word_keys=self.word_key(words),
            word_mask=batch.source_mask,
            source=batch.source_extended,
            section_of=batch.sentence_of,
            section_keys=self.section_key(states),
            section_mask=batch.sentence_mask,
            hidden=torch.relu(self.bridge_hidden(hidden.transpose(0, 1).flatten(1))),
            cell=torch.relu(self.bridge_cell(cell.transpose(0, 1).flatten(1))),
            context=words.new_zeros(len(batch), words.shape[2]),
            coverage=torch.zeros_like(full_precision(words)[0][..., 0]),
        )

    def _read_words(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Read the words, section by section: states [B, N, d] and section vectors [B, S, d]."""
        embedded, device = self.embedding(batch.source), batch.source.device
        width, sections = self.config.hidden, batch.rows
        words = embedded.new_zeros(batch.source.numel(), width)
        vectors = embedded.new_zeros(len(batch), int(batch.sentence_counts.max()), width)
        hidden = cell = embedded.new_zeros(2, len(batch), width // 2)
        for number in range(vectors.shape[1]):
            rows = sections.number == number
            # The A documents that have such a section.
            owner = put(torch.from_numpy(sections.owner[rows]), device)
            packed = pack(sections.start[rows], sections.length[rows], device)
            # h_ji, last_j = BiLSTM(x_j1 ... x_jn), each direction from its last_{j-1}   (C1)
            inputs = packed.sequence(embedded.flatten(0, 1).index_select(0, packed.words))
            start = hidden[:, owner], cell[:, owner]
            states, (last, last_cell) = self.word_encoder(inputs, start)
            hidden = hidden.index_copy(1, owner, last.to(hidden.dtype))
            cell = cell.index_copy(1, owner, last_cell.to(cell.dtype))
            words = words.index_copy(0, packed.words, states.data.to(words.dtype))
            # s_j = ReLU(W_r last_j + b)   (C2)
            section = torch.relu(self.reduce_section(last.transpose(0, 1).flatten(1)))
            places = owner, torch.full_like(owner, number)
            vectors = vectors.index_put(places, section.to(vectors.dtype))
        return words.unflatten(0, batch.source.shape), vectors

    # ---------------------------------------------------------------------------------
    # decoder

    def decode(
        self,
        tokens: Tensor,
        state: DiscourseAwareState,
    ) -> tuple[HierarchicalOutput, DiscourseAwareState]:
        """Read T target words [R, T] one after the other, because the context of each enters the
        next."""
        embedded = self.embedding(in_vocabulary(tokens, self.config.vocab_size))  # [R, T, E]
        features, switches, alphas, betas = [], [], [], []
        for word in embedded.unbind(1):
            # x_t = W [e(y_{t-1}); c_{t-1}] + b,
            # h_t, cell_t = LSTM(x_t, h_{t-1}, cell_{t-1})   (C7)
            inputs = self.input(torch.cat([word, state.context], -1))
            hidden, cell = self.cell(inputs, (state.hidden, state.cell))
            alpha, beta, context = self._attend(torch.cat([cell, hidden], -1), state)
            # P_g = softmax(V (V' [h_t; c_t] + b) + b'),
            # p_t = sigmoid(w^T [c_t; cell_t; h_t; x_t] + b'')   (C7)
            feature, switch = self.pointer(
                torch.cat([hidden, context], -1), torch.cat([context, cell, hidden, inputs], -1)
            )
            features.append(feature)
            switches.append(switch)
            alphas.append(alpha)
            betas.append(beta)
            coverage = state.coverage + alpha
            state = state.replace(hidden=hidden, cell=cell, context=context, coverage=coverage)
        alpha = torch.stack(alphas, 1)
        output = HierarchicalOutput(
            features=torch.stack(features, 1),
            switch=torch.stack(switches, 1),
            copy=alpha,
            source=per_hypothesis(state.source, len(tokens)),
            alpha=alpha,
            sentences=torch.stack(betas, 1),
        )
        return output, state

    def _attend(self, query: Tensor, state: DiscourseAwareState) -> tuple[Tensor, Tensor, Tensor]:
        """Attend with queries q_t = [cell_t; h_t], [R, 2H]: alpha [R, N], beta [R, S], context
        [R, d]."""
        documents = len(state.words)
        # beta_t = softmax_j(v_s^T tanh(W_hs g_j + W_ss q_t + b_s))   (C4)
        sections = per_document(self.section_query(query), documents)[:, :, None]  # [B, K, 1, d]
        beta = self.section_v(torch.tanh(state.section_keys[:, None] + sections)).squeeze(-1)
        beta = masked_softmax(beta, state.section_mask[:, None])  # [B, K, S]
        queries = per_document(self.word_query(query), documents)
        coverage = per_document(state.coverage, documents)
        # The backward pass computes the tanh [B, K, N, d] of each step again, as it is large.
        scores = checkpoint(self._scores, queries, state.word_keys, coverage, use_reentrant=False)
        # alpha_t = softmax_ji(beta_tj e_tji),  c_t = sum_ji alpha_tji h_ji   (C6)
        scale = beta.gather(2, state.section_of[:, None].expand_as(scores))
        alpha = masked_softmax(scale * scores, state.word_mask[:, None])  # [B, K, N]
        context = alpha.to(state.words.dtype) @ state.words
        return alpha.flatten(0, 1), beta.flatten(0, 1), context.flatten(0, 1)

    def _scores(self, queries: Tensor, keys: Tensor, coverage: Tensor) -> Tensor:
        """Score words of keys [B, N, d] for queries [B, K, d], with coverage [B, K, N]:
        [B, K, N]."""
        # e_tji = v^T tanh(W_h h_ji + W_s q_t + w_cov cov_tji + b)   (C5)
        covered = coverage[..., None].to(keys.dtype)
        hidden = keys[:, None] + queries[:, :, None] + self.word_coverage(covered)
        return full_precision(self.word_v(torch.tanh(hidden)).squeeze(-1))[0]
