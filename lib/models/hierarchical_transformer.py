"""Hierarchical Transformer for multi-document summarization: local layers inside paragraphs, global
layers between.

Liu and Lapata (2019). Equation numbers are the paper's. The authors' code differs from the
equations in many places; `form` chooses between the two.

Shapes: B documents of P paragraphs at most, A paragraphs and W pieces in all, N pieces of a
document, K hypotheses of each, R = B * K decoder rows, T target pieces, d `width`.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lib.data.batch import Batch, Ragged
from lib.layers.attention import Attention, full_precision
from lib.layers.dropout import Dropout
from lib.layers.pointer import DecoderOutput, PointerOutput
from lib.layers.transformer import (
    DecoderLayer,
    DroppedLinear,
    FeedForward,
    TransformerLayer,
    check_heads,
    sinusoids,
)
from lib.models.changes import Change
from lib.models.paragraph_changes import between_paragraphs
from lib.models.state import CachedState, PerDocument, per_document, per_hypothesis
from lib.models.summarizer import PieceModel, PointerModel, Tap, xavier
from lib.system.errors import InputError
from lib.system.fields import BelowOne, Count, FewLayers, Layers, Share, checked


@checked
class HierarchicalTransformerConfig:
    """Sizes of the authors' code. The paper names 5 local and 2 global layers; the code has 6 and
    2."""

    vocab_size: int = 32_000  # shared SentencePiece pieces
    width: int = 256
    heads: Count = 8
    inner: int = 1024
    local_layers: FewLayers = 6
    global_layers: FewLayers = 2
    decoder_layers: Layers = 1
    form: Literal["code", "paper"] = "code"
    dropout: Share = 0.1
    smoothing: BelowOne = 0.1  # of the labels, in training
    paragraph_positions: bool = True
    pooling_heads: Count | None = None  # of the global layers; None: as many as `heads`

    def __post_init__(self):
        if self.width % (4 * self.heads):
            raise InputError(
                f"width {self.width} must be a multiple of four times the {self.heads} heads"
            )
        if self.pooling_heads is not None:
            check_heads(self.width, self.pooling_heads, "pooling_heads")


class GlobalLayer(nn.Module):
    """Pool each paragraph with several heads, attend between paragraphs, feed forward: equations 13
    to 23.

    `pre_norm` is the code's form. It differs from the equations in more than the place of the
    normalisation: no W_c in (16); one normalisation and one set of query, key and value weights for
    all heads; scores scaled; and the context stays in the residual stream of (23). Dropout as in
    `TransformerLayer`.
    """

    def __init__(
        self, width: int, heads: int, inner: int, dropout: float, pre_norm: bool, eps: float = 1e-6
    ):
        super().__init__()
        self.heads, self.pre_norm, size = heads, pre_norm, width // heads
        after, before = (dropout, 0.0) if pre_norm else (0.0, dropout)
        self.dropout, self.dropout_before = Dropout(after), Dropout(before)
        self.score = DroppedLinear(width, heads, before, bias=pre_norm)  # W_a
        self.value = DroppedLinear(width, width, before, bias=pre_norm)  # W_b
        if pre_norm:
            self.pool_norm = nn.LayerNorm(size, eps)
            self.between = nn.ModuleList(nn.Linear(size, size) for _ in range(3))  # W_q, W_k, W_v
        else:
            self.pool_output = nn.Parameter(torch.empty(heads, size, size))  # W_c of (16)
            self.pool_norms = nn.ModuleList(nn.LayerNorm(size, eps) for _ in range(heads))
            self.between_weights = nn.Parameter(torch.empty(3, heads, size, size))
            for weight in (*self.pool_output, *self.between_weights.flatten(0, 1)):
                nn.init.xavier_uniform_(weight)
        self.output = DroppedLinear(width, width, before, bias=pre_norm)  # W_c of (21)
        self.feed_forward = FeedForward(width, inner, dropout, not pre_norm)
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps) for _ in range(2 if pre_norm else 1))
        self.reachable = Tap()

    def forward(
        self, x: Tensor, rows: Ragged, present: Tensor, graph: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the layer for the words of all paragraphs.

        Args:
            x: [W, d]. rows: which word is in which of the A paragraphs.
            present: [B, P], true where a document has a paragraph.
            graph: [B, P, P] non-negative weights between paragraphs; replaces the first head's
                attention.

        Returns:
            [W, d], the pooling weights [W, heads] and the attention between paragraphs
                [B, heads, P, P].
        """
        # [A, heads, d / heads]
        heads, pooling = self._pool(self.norms[0](x) if self.pre_norm else x, rows)
        grid = heads.new_zeros(*present.shape, *heads.shape[1:])  # [B, P, heads, s]
        grid = grid.index_put((rows.owner, rows.number), heads).transpose(1, 2)
        context, attention = self._between(grid, present, graph)  # [B, heads, P, s]
        # c_i = W_c [context^1_i; ...; context^heads_i]   (21)
        context = self.output(context.transpose(1, 2).flatten(2)[rows.owner, rows.number])  # [A, d]
        # [W, d], the same for all words of a paragraph
        context = self.dropout(context).index_select(0, rows.row)
        # g_ij = W_o2 relu(W_o1 (x_ij + c_i)),  x_ij := LN(g_ij + x_ij)   (22, 23)
        if self.pre_norm:
            x = x + context
            x = x + self.dropout(self.feed_forward(self.norms[1](x)))
        else:
            x = self.norms[0](self.dropout(self.feed_forward(x + context)) + x)
        return x, pooling, attention

    def _pool(self, x: Tensor, rows: Ragged) -> tuple[Tensor, Tensor]:
        """Pool the words of each paragraph: [A, heads, d / heads] and the weights [W, heads]."""
        # a^z_ij = W^z_a x_ij,  a^_ij = softmax_j(a_ij)   (13, 15)
        (scores,) = full_precision(self.score(x))  # [W, heads]
        weights = _softmax_inside(scores, rows.row, len(rows.owner))
        # b^z_ij = W^z_b x_ij,  head^z_i = LN(W^z_c sum_j a^_ij b_ij)   (14, 16)
        values = self.value(x).unflatten(-1, (self.heads, -1))  # [W, heads, s]
        values = self.dropout(weights).to(values.dtype)[..., None] * values
        pooled = values.new_zeros(len(rows.owner), *values.shape[1:]).index_add(0, rows.row, values)
        if self.pre_norm:
            return self.pool_norm(pooled), weights
        pooled = torch.einsum("zst,azt->azs", self.pool_output, self.dropout_before(pooled))
        return torch.stack(
            [norm(p) for norm, p in zip(self.pool_norms, pooled.unbind(1))], 1
        ), weights

    def _between(
        self, heads: Tensor, present: Tensor, graph: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Attend between the paragraphs: contexts [B, heads, P, s] and weights [B, heads, P, P]."""
        # q^z_i = W^z_q head^z_i,  k^z_i = W^z_k head^z_i,  v^z_i = W^z_v head^z_i   (17 to 19)
        if self.pre_norm:
            q, k, v = (linear(heads) for linear in self.between)
            q = q * heads.shape[-1] ** -0.5
        else:
            q, k, v = (
                torch.einsum("zst,bzpt->bzps", weight, self.dropout_before(heads))
                for weight in self.between_weights
            )
        # context^z_i = sum_i' softmax_i'(q_i^T k_i') v_i'   (20)
        (scores,) = full_precision(q @ k.transpose(-1, -2))  # [B, heads, P, P]
        # [B, P or 1, P] the paragraphs that each may attend to: all
        reachable = self.reachable(present[:, None])
        weights = scores.masked_fill(~reachable[:, None], -torch.inf).softmax(-1)
        if graph is not None:
            # context^1_i = sum_i' G_ii' / (sum_o G_io) v_i': a graph replaces the first head's
            # weights   (24)
            edges: Tensor = graph.to(weights.dtype) * reachable
            rows = edges / edges.sum(-1, keepdim=True).clamp_min(torch.finfo(edges.dtype).tiny)
            weights = torch.cat([rows[:, None], weights[:, 1:]], 1)
        return self.dropout(weights).to(v.dtype) @ v, weights


def _softmax_inside(scores: Tensor, row: Tensor, rows: int) -> Tensor:
    """Compute the softmax over the words of each row: scores [W, heads], row [W] -> [W, heads]."""
    index = row[:, None].expand_as(scores)
    largest = scores.new_full((rows, scores.shape[1]), -torch.inf).scatter_reduce(
        0, index, scores.detach(), "amax"
    )
    weights = (scores - largest[row]).exp()
    return weights / weights.new_zeros(rows, scores.shape[1]).index_add(0, row, weights)[row]


@dataclass(frozen=True, kw_only=True)
class HierarchicalState(CachedState):
    """`source` and `past`: keys and values of each layer.

    They are [B, heads, N, s] and [R, heads, written, s].
    """

    words: PerDocument[Tensor]  # [B, N, d] the pieces of all paragraphs in order
    mask: PerDocument[Tensor]  # [B, N]
    paragraph_of: PerDocument[Tensor]  # [B, N]
    # Of each global layer: attention between paragraphs [B, heads, P, P], and weights of the words
    # in their paragraphs [B, N, heads].
    between: PerDocument[tuple[Tensor, ...]]
    pooling: PerDocument[tuple[Tensor, ...]]


class HierarchicalTransformer(PieceModel):
    """Encoder of local and global layers over paragraphs, transformer decoder, one embedding table
    for all.

    The paragraphs of a document are what `Batch` calls its sentences. A flat transformer is one
    without global layers that reads one paragraph.
    """

    Config = HierarchicalTransformerConfig

    def __init__(self, config: HierarchicalTransformerConfig):
        c, pre_norm = config, config.form == "code"
        super().__init__(c, scale=pre_norm)
        sizes = c.width, c.heads, c.inner, c.dropout, pre_norm
        pooled = c.width, c.pooling_heads or c.heads, c.inner, c.dropout, pre_norm
        self.local_layers = nn.ModuleList(TransformerLayer(*sizes) for _ in range(c.local_layers))
        self.global_layers = nn.ModuleList(GlobalLayer(*pooled) for _ in range(c.global_layers))
        self.decoder_layers: Any = nn.ModuleList(
            DecoderLayer(*sizes) for _ in range(c.decoder_layers)
        )
        if pre_norm:
            self.encoder_norm, self.decoder_norm = (nn.LayerNorm(c.width, 1e-6) for _ in range(2))
        # on embeddings, as in the code; or before the layer that scores pieces, which is a linear
        # one
        self.dropout, self.output_dropout = (
            Dropout(c.dropout if on else 0.0) for on in (pre_norm, not pre_norm)
        )
        xavier(self)

    def encode(self, batch: Batch, graph: Tensor | None = None) -> HierarchicalState:
        """Encode the paragraphs. graph: [B, P, P] weights between them (24); by default the
        batch's."""
        rows, graph = batch.ragged, batch.graph if graph is None else graph
        # x^0_ij = w_ij + pe_ij   (10)
        # [W, d]
        x = self.embed(
            batch.source.flatten()[rows.word], self.positions(rows.number[rows.row], rows.place)
        )
        for layer in self.local_layers:
            x = layer(x, rows)
        between, pooling = [], []
        for layer in self.global_layers:
            x, weights, attention = layer(x, rows, batch.sentence_mask, graph)
            between.append(attention)
            pooling.append(_in_place(weights.detach(), rows, batch))
        if self.config.form == "code":
            x = self.encoder_norm(x)
        words = _in_place(x, rows, batch)  # [B, N, d]
        return HierarchicalState(
            words=words,
            mask=batch.source_mask,
            source=tuple(
                layer.source_attention.keys_and_values(words) for layer in self.decoder_layers
            ),
            between=tuple(between),
            pooling=tuple(pooling),
            paragraph_of=batch.sentence_of,
        )

    def positions(self, paragraphs: Tensor, tokens: Tensor) -> Tensor:
        """Embed the numbers [...] of paragraphs and of the tokens inside them: [..., d]."""
        # pe_ij = [e_i; e_j], e_p[2i] = sin(p / 10000^(2i / (d / 2))), e_p[2i + 1] = cos(the same)
        # (7 to 9)
        half = self.config.width // 2
        if not self.config.paragraph_positions:
            return sinusoids(tokens, 2 * half)
        halves = [sinusoids(paragraphs, half), sinusoids(tokens, half)]
        return torch.cat(halves if self.config.form == "paper" else halves[::-1], -1)

    def decode(
        self,
        tokens: Tensor,
        state: HierarchicalState,
    ) -> tuple[DecoderOutput, HierarchicalState]:
        """Read T target pieces at once: tokens [R, T] ids -> features [R, T, d]."""
        places = state.written + torch.arange(tokens.shape[1], device=tokens.device)
        x = self.embed(tokens, sinusoids(places, self.config.width))
        x, after = state.read_on(self.decoder_layers, x, state.mask)
        if self.config.form == "code":
            x = self.decoder_norm(x)
        return DecoderOutput(self.output_dropout(x)), after

    def changes(self) -> dict[str, Change]:
        return {**super().changes(), **between_paragraphs(self)}

    def attention_weights(self, tokens: Tensor, state: HierarchicalState) -> dict[str, Tensor]:
        """Return the attention weights of the last decoder layer, the mean over its heads."""
        inputs: list[Tensor] = []
        last = self.decoder_layers[-1].source_attention
        with last.register_forward_pre_hook(lambda _, given: inputs.extend(given)):
            self.decode(tokens, state)
        x, keys, _, mask = inputs
        return with_paragraphs(last.weights(x, keys, mask).mean(1), state)


def with_paragraphs(words: Tensor, state: HierarchicalState) -> dict[str, Tensor]:
    """Return the weights of words [B, T, N], and their sums over each paragraph [B, T, L] as
    "units"."""
    units = words.new_zeros(*words.shape[:2], int(state.paragraph_of.max()) + 1)
    return {
        "words": words,
        "units": units.scatter_add(2, state.paragraph_of[:, None].expand_as(words), words),
    }


def _in_place(values: Tensor, rows: Ragged, batch: Batch) -> Tensor:
    """Put the values [W, n] of all words at their places in the padded batch: [B, N, n]."""
    placed = values.new_zeros(batch.source.numel(), values.shape[1]).index_copy(
        0, rows.word, values
    )
    return placed.view(*batch.source.shape, -1)


# -------------------------------------------------------------------------------- copying


@checked
class CopyingTransformerConfig(HierarchicalTransformerConfig):
    """Sizes, without smoothed labels: a copied piece has no scores to smooth."""

    smoothing: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        if self.smoothing:
            raise InputError(f"smoothing must be 0 in a model that copies, not {self.smoothing}")


@dataclass(frozen=True, kw_only=True)
class CopyingState(HierarchicalState):
    """The words that may be copied as well."""

    word_keys: PerDocument[Tensor]  # [B, N, d]
    ids: PerDocument[Tensor]  # [B, N] extended


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

    def encode(self, batch: Batch, graph: Tensor | None = None) -> HierarchicalState:
        state = super().encode(batch, graph)
        keys = self.copy_attention.project(state.words)
        return CopyingState(**vars(state), word_keys=keys, ids=batch.source_extended)

    def decode(self, tokens: Tensor, state: Any) -> tuple[PointerOutput, Any]:
        """Read T target pieces at once: tokens [R, T] extended ids, of which copy ids are read as
        [UNK]."""
        output, state = super().decode(tokens, state)
        features = output.features  # [R, T, d]
        # [B, K * T, d]
        queries = (
            per_document(features, len(state.words)).flatten(1, 2) * features.shape[-1] ** -0.5
        )
        # gamma_i = softmax_i(f^T W h_i / sqrt(d))   (K1)
        copy = self.copy_attention(queries, state.word_keys, state.mask)  # [B, K * T, N]
        # z = sigmoid(w_f^T f + w_c^T sum_i gamma_i h_i + b)   (K2)
        context = (copy.to(state.words.dtype) @ state.words).view_as(features)
        (switch,) = full_precision(self.switch(torch.cat([features, context], -1)).squeeze(-1))
        copy = copy.view(*tokens.shape, -1)
        return PointerOutput(features, switch, copy, per_hypothesis(state.ids, len(tokens))), state

    def attention_weights(self, tokens: Tensor, state: Any) -> dict[str, Tensor]:
        """Return the attention weights of the pointer, and "generate", as every model that
        copies."""
        output, _ = self.decode(tokens, state)
        seen = self.seen(output, state)
        return {**seen, **with_paragraphs(seen["words"], state)}
