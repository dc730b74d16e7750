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
from lib.system.settings import BelowOne, Count, FewLayers, Layers, Share, checked


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
            factor = f"four times the {self.heads} heads"
            raise InputError(f"width {self.width} must be a multiple of {factor}")
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
        self.heads = heads
        self.pre_norm = pre_norm
        size = width // heads
        after, before = (dropout, 0.0) if pre_norm else (0.0, dropout)
        self.dropout = Dropout(after)
        self.dropout_before = Dropout(before)
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
        place = rows.owner, rows.number  # document and number of each paragraph
        heads, pooling = self._pool(self.norms[0](x) if self.pre_norm else x, rows)
        grid = heads.new_zeros(present.shape + heads.shape[1:])  # [B, P, heads, s]
        grid = grid.index_put(place, heads).transpose(1, 2)
        context, attention = self._between(grid, present, graph)  # [B, heads, P, s]
        # c_i = W_c [context^1_i; ...; context^heads_i]   (21)
        context = self.output(context.transpose(1, 2).flatten(2)[place])  # [A, d]
        # The same for all words of a paragraph: [W, d].
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
        pooled = values.new_zeros(rows.owner.shape + values.shape[1:])  # [A, heads, s]
        pooled = pooled.index_add(0, rows.row, values)
        if self.pre_norm:
            return self.pool_norm(pooled), weights
        pooled = torch.einsum("zst,azt->azs", self.pool_output, self.dropout_before(pooled))
        # Each head has a normalisation of its own.
        heads = [norm(head) for norm, head in zip(self.pool_norms, pooled.unbind(1))]
        return torch.stack(heads, 1), weights

    def _between(
        self, heads: Tensor, present: Tensor, graph: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Attend between the paragraphs: contexts [B, heads, P, s] and weights [B, heads, P, P]."""
        # q^z_i = W^z_q head^z_i,  k^z_i = W^z_k head^z_i,  v^z_i = W^z_v head^z_i   (17 to 19)
        if self.pre_norm:
            q, k, v = [linear(heads) for linear in self.between]
            q = q * heads.shape[-1] ** -0.5
        else:
            made = []
            for weight in self.between_weights:
                dropped = self.dropout_before(heads)  # draws for each product anew
                made.append(torch.einsum("zst,bzpt->bzps", weight, dropped))
            q, k, v = made
        # context^z_i = sum_i' softmax_i'(q_i^T k_i') v_i'   (20)
        (scores,) = full_precision(q @ k.transpose(-1, -2))  # [B, heads, P, P]
        # The paragraphs that each may attend to: all, [B, 1, P]; a hook may return [B, P, P].
        reachable = self.reachable(present[:, None])
        weights = scores.masked_fill(~reachable[:, None], -torch.inf).softmax(-1)
        if graph is not None:
            # context^1_i = sum_i' G_ii' / (sum_o G_io) v_i'   (24)
            # A graph replaces the first head's weights.
            edges: Tensor = graph.to(weights.dtype) * reachable
            tiny = torch.finfo(edges.dtype).tiny  # instead of 0, to divide by
            rows = edges / edges.sum(-1, keepdim=True).clamp_min(tiny)
            weights = torch.cat([rows[:, None], weights[:, 1:]], 1)
        return self.dropout(weights).to(v.dtype) @ v, weights


def _softmax_inside(scores: Tensor, row: Tensor, rows: int) -> Tensor:
    """Compute the softmax over the words of each row: scores [W, heads], row [W] -> [W, heads]."""
    heads = scores.shape[1]
    index = row[:, None].expand_as(scores)
    largest = scores.new_full((rows, heads), -torch.inf)
    # A constant that is subtracted from all scores of a row changes nothing: no gradient is needed.
    largest = largest.scatter_reduce(0, index, scores.detach(), "amax")
    weights = (scores - largest[row]).exp()
    sums = weights.new_zeros(rows, heads).index_add(0, row, weights)
    return weights / sums[row]


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
    """Encoder of local and global layers over paragraphs, and a transformer decoder.

    One table embeds all pieces. The paragraphs of a document are what `Batch` calls its sentences.
    A flat transformer is one without global layers that reads one paragraph.
    """

    Config = HierarchicalTransformerConfig

    def __init__(self, config: HierarchicalTransformerConfig):
        c, pre_norm = config, config.form == "code"
        super().__init__(c, scale=pre_norm)
        sizes: dict[str, Any] = {
            "width": c.width,
            "inner": c.inner,
            "dropout": c.dropout,
            "pre_norm": pre_norm,
        }
        pooling_heads = c.pooling_heads or c.heads
        self.local_layers = nn.ModuleList()
        for _ in range(c.local_layers):
            self.local_layers.append(TransformerLayer(heads=c.heads, **sizes))
        self.global_layers = nn.ModuleList()
        for _ in range(c.global_layers):
            self.global_layers.append(GlobalLayer(heads=pooling_heads, **sizes))
        self.decoder_layers: Any = nn.ModuleList()
        for _ in range(c.decoder_layers):
            self.decoder_layers.append(DecoderLayer(heads=c.heads, **sizes))
        if pre_norm:
            self.encoder_norm = nn.LayerNorm(c.width, 1e-6)
            self.decoder_norm = nn.LayerNorm(c.width, 1e-6)
        # The code drops embeddings; the paper drops before the linear layer that scores pieces.
        self.dropout = Dropout(c.dropout if pre_norm else 0.0)
        self.output_dropout = Dropout(0.0 if pre_norm else c.dropout)
        xavier(self)

    def encode(self, batch: Batch, graph: Tensor | None = None) -> HierarchicalState:
        """Encode the paragraphs. graph: [B, P, P] weights between them (24); by default the
        batch's."""
        rows = batch.ragged
        graph = batch.graph if graph is None else graph
        # x^0_ij = w_ij + pe_ij   (10)
        ids = batch.source.flatten()[rows.word]
        x = self.embed(ids, self.positions(rows.number[rows.row], rows.place))  # [W, d]
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
        source = [layer.source_attention.keys_and_values(words) for layer in self.decoder_layers]
        return HierarchicalState(
            words=words,
            mask=batch.source_mask,
            source=tuple(source),
            between=tuple(between),
            pooling=tuple(pooling),
            paragraph_of=batch.sentence_of,
        )

    def positions(self, paragraphs: Tensor, tokens: Tensor) -> Tensor:
        """Embed the numbers [...] of paragraphs and of the tokens inside them: [..., d]."""
        # pe_ij = [e_i; e_j] with e_p[2i] = sin(p / 10000^(2i / (d / 2))) and
        # e_p[2i + 1] = cos(p / 10000^(2i / (d / 2)))   (7 to 9)
        half = self.config.width // 2
        if not self.config.paragraph_positions:
            return sinusoids(tokens, 2 * half)
        halves = [sinusoids(paragraphs, half), sinusoids(tokens, half)]
        if self.config.form == "code":
            halves.reverse()
        return torch.cat(halves, -1)

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
        # The layer keeps no weights, so its inputs are taken, and the weights computed from them.
        with last.register_forward_pre_hook(lambda _, arguments: inputs.extend(arguments)):
            self.decode(tokens, state)
        x, keys, _, mask = inputs
        return with_paragraphs(last.weights(x, keys, mask).mean(1), state)


def with_paragraphs(words: Tensor, state: HierarchicalState) -> dict[str, Tensor]:
    """Return the weights of words [B, T, N], and their sums over each paragraph [B, T, L] as
    "units"."""
    rows, steps, _ = words.shape
    units = words.new_zeros(rows, steps, int(state.paragraph_of.max()) + 1)
    paragraphs = state.paragraph_of[:, None].expand_as(words)
    return {"words": words, "units": units.scatter_add(2, paragraphs, words)}


def _in_place(values: Tensor, rows: Ragged, batch: Batch) -> Tensor:
    """Put the values [W, n] of all words at their places in the padded batch: [B, N, n]."""
    placed = values.new_zeros(batch.source.numel(), values.shape[1])
    return placed.index_copy(0, rows.word, values).unflatten(0, batch.source.shape)


# ---------------------------------------------------------------------------------
# copying


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
        queries = per_document(features, len(state.words)).flatten(1, 2)  # [B, K * T, d]
        queries = queries * features.shape[-1] ** -0.5
        # gamma_i = softmax_i(f^T W h_i / sqrt(d))   (K1)
        copy = self.copy_attention(queries, state.word_keys, state.mask)  # [B, K * T, N]
        # z = sigmoid(w_f^T f + w_c^T sum_i gamma_i h_i + b)   (K2)
        context = (copy.to(state.words.dtype) @ state.words).view_as(features)
        (switch,) = full_precision(self.switch(torch.cat([features, context], -1)).squeeze(-1))
        rows, steps = tokens.shape
        pointer = PointerOutput(
            features=features,
            switch=switch,
            copy=copy.view(rows, steps, -1),
            source=per_hypothesis(state.ids, rows),
        )
        return pointer, state

    def attention_weights(self, tokens: Tensor, state: Any) -> dict[str, Tensor]:
        """Return the attention weights of the pointer, and "generate", as every model that
        copies."""
        output, _ = self.decode(tokens, state)
        seen = self.seen(output, state)
        return {**seen, **with_paragraphs(seen["words"], state)}
