"""Hierarchical Transformer for multi-document summarization (Liu and Lapata 2019): local layers inside paragraphs,
global layers between them. Equation numbers are the paper's; the authors' code differs from them in many places, and
`reading` says which of the two is built."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batching import Batch, in_vocabulary
from lib.data.text import PAD
from lib.layers.attention import full_precision
from lib.layers.transformer import DecoderLayer, FeedForward, TransformerLayer, sinusoids
from lib.models.hred import document_weights
from lib.models.state import State


@dataclass(frozen=True)
class HierarchicalTransformerConfig:
    """Sizes of the authors' code. The paper names 5 local and 2 global layers; the code has 6 and 2."""

    vocab_size: int = 32_000  # shared SentencePiece pieces
    width: int = 256
    heads: int = 8
    inner: int = 1024
    local_layers: int = 6
    global_layers: int = 2
    decoder_layers: int = 1
    reading: str = "code"  # or "paper"
    dropout: float = 0.1
    smoothing: float = 0.1  # of the labels, in training
    paragraph_positions: bool = True
    pooling_heads: int | None = None  # of the global layers; None: as many as `heads`

    def __post_init__(self):
        if self.reading not in ("code", "paper"):
            raise ValueError(f"reading must be 'code' or 'paper', not {self.reading!r}")
        if self.width % (4 * self.heads) or self.width % (self.pooling_heads or self.heads):
            raise ValueError(f"width {self.width} must be a multiple of four times the {self.heads} heads")
        if min(self.local_layers, self.global_layers) < 0 or self.decoder_layers < 1:
            raise ValueError("layers must not be negative, and the decoder needs one")


@dataclass(frozen=True)
class TransformerSteps:
    """What the decoder computed for T target positions of R hypotheses."""

    scores: Tensor  # [R, T, V]


class GlobalLayer(nn.Module):
    """Multi-head pooling of each paragraph, attention between paragraphs, feed-forward: equations 13 to 23.

    `first` is the code's form. It differs from the equations in more than the place of the normalisation: no W_c in
    (16); one normalisation and one set of query, key and value weights for all heads; scores scaled; and the context
    stays in the residual stream of (23).
    """

    def __init__(self, width: int, heads: int, inner: int, dropout: float, first: bool, eps: float = 1e-6):
        super().__init__()
        self.heads, self.first, size = heads, first, width // heads
        self.score = nn.Linear(width, heads, bias=first)  # W_a
        self.value = nn.Linear(width, width, bias=first)  # W_b
        if first:
            self.pool_norm = nn.LayerNorm(size, eps)
            self.between = nn.ModuleList(nn.Linear(size, size) for _ in range(3))  # W_q, W_k, W_v
        else:
            self.pool_output = nn.Parameter(torch.empty(heads, size, size))  # W_c of (16)
            self.pool_norms = nn.ModuleList(nn.LayerNorm(size, eps) for _ in range(heads))
            self.between_weights = nn.Parameter(torch.empty(3, heads, size, size))
            for weight in (*self.pool_output, *self.between_weights.flatten(0, 1)):
                nn.init.xavier_uniform_(weight)
        self.output = nn.Linear(width, width, bias=first)  # W_c of (21)
        self.feed_forward = FeedForward(width, inner, dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps) for _ in range(2 if first else 1))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, mask: Tensor, owner: Tensor, number: Tensor, present: Tensor, graph: Tensor | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Words of all paragraphs that have any.

        Args:
            x: [A, J, d]; mask: [A, J], true where there is a word.
            owner, number: [A] document of each paragraph, and which of its paragraphs it is.
            present: [B, P], true where a document has a paragraph.
            graph: [B, P, P] non-negative weights between paragraphs; takes the place of the first head's attention.

        Returns:
            [A, J, d], and the pooling weights [A, heads, J] and the attention between paragraphs [B, heads, P, P].
        """
        normed = self.norms[0](x) if self.first else x
        heads, pooling = self._pool(normed, mask)  # [A, heads, d / heads]
        grid = heads.new_zeros(*present.shape, *heads.shape[1:]).index_put((owner, number), heads)  # [B, P, heads, s]
        context, attention = self._between(grid.transpose(1, 2), present, graph)  # [B, heads, P, s]
        context = self.dropout(self.output(context.transpose(1, 2).flatten(2)[owner, number]))[:, None]  # [A, 1, d]
        if self.first:
            x = x + context
            x = x + self.dropout(self.feed_forward(self.norms[1](x)))
        else:
            x = self.norms[0](self.dropout(self.feed_forward(x + context)) + x)
        return x, {"pooling": pooling, "between": attention}

    def _pool(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Equations 13 to 16: [A, heads, d / heads] and the weights [A, heads, J]."""
        (scores,) = full_precision(self.score(x).transpose(1, 2))
        weights = scores.masked_fill(~mask[:, None], -torch.inf).softmax(-1)
        values = self.value(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [A, heads, J, s]
        pooled = (self.dropout(weights).to(x.dtype)[:, :, None] @ values).squeeze(2)
        if self.first:
            return self.pool_norm(pooled), weights
        pooled = torch.einsum("zst,azt->azs", self.pool_output, pooled)
        return torch.stack([norm(p) for norm, p in zip(self.pool_norms, pooled.unbind(1))], 1), weights

    def _between(self, heads: Tensor, present: Tensor, graph: Tensor | None) -> tuple[Tensor, Tensor]:
        """Equations 17 to 20, and 24 for a graph: contexts [B, heads, P, s] and weights [B, heads, P, P]."""
        if self.first:
            q, k, v = (linear(heads) for linear in self.between)
            q = q * heads.shape[-1] ** -0.5
        else:
            q, k, v = (torch.einsum("zst,bzpt->bzps", weight, heads) for weight in self.between_weights)
        (scores,) = full_precision(q @ k.transpose(-1, -2))
        weights = scores.masked_fill(~present[:, None, None], -torch.inf).softmax(-1)
        if graph is not None:
            graph = graph * present[:, None]
            rows = graph / graph.sum(-1, keepdim=True).clamp_min(torch.finfo(graph.dtype).tiny)
            weights = torch.cat([rows[:, None].to(weights.dtype), weights[:, 1:]], 1)
        return self.dropout(weights).to(v.dtype) @ v, weights


class HierarchicalTransformer(nn.Module):
    """Encoder of local and global layers over paragraphs, transformer decoder, one embedding table for all.

    The paragraphs of a document are what `Batch` calls its sentences. B documents of P paragraphs of J pieces at
    most, A paragraphs in all, N pieces of a document, K hypotheses of each, R = B * K rows, T target pieces.
    """

    Config = HierarchicalTransformerConfig
    control_symbols: frozenset[int] = frozenset()

    def __init__(self, config: HierarchicalTransformerConfig):
        super().__init__()
        self.config = c = config
        first = c.reading == "code"
        sizes = c.width, c.heads, c.inner, c.dropout, first
        self.embedding = nn.Embedding(c.vocab_size, c.width)
        self.local_layers = nn.ModuleList(TransformerLayer(*sizes) for _ in range(c.local_layers))
        pooled = c.width, c.pooling_heads or c.heads, c.inner, c.dropout, first
        self.global_layers = nn.ModuleList(GlobalLayer(*pooled) for _ in range(c.global_layers))
        self.decoder_layers = nn.ModuleList(DecoderLayer(*sizes) for _ in range(c.decoder_layers))
        if first:
            self.encoder_norm, self.decoder_norm = (nn.LayerNorm(c.width, 1e-6) for _ in range(2))
        self.bias = nn.Parameter(torch.zeros(c.vocab_size))
        self.dropout = nn.Dropout(c.dropout)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)

    # ---------------------------------------------------------------------------------------------- encoder

    def encode(self, batch: Batch, graph: Tensor | None = None) -> State:
        """Everything that is computed once per document. graph: [B, P, P], equation 24."""
        rows = batch.sentences
        owner, number, place, mask = rows.owner, rows.number, rows.place, rows.mask  # [A], [A], [A, J], [A, J]
        token = torch.arange(place.shape[1], device=place.device)
        x = self._embed(batch.source.flatten()[place], number[:, None].expand_as(place), token.expand_as(place))
        for layer in self.local_layers:
            x = layer(x, mask)
        weights = []
        for layer in self.global_layers:
            x, seen = layer(x, mask, owner, number, batch.sentence_mask, graph)
            weights.append(seen)
        if self.config.reading == "code":
            x = self.encoder_norm(x)
        words = x.new_zeros(batch.source.numel(), x.shape[-1]).index_copy(0, place[mask], x[mask])
        words = words.view(*batch.source.shape, -1)  # [B, N, d]: the pieces of all paragraphs in order
        document = {"mask": batch.source_mask}
        for i, layer in enumerate(self.decoder_layers):
            document[f"keys{i}"], document[f"values{i}"] = layer.source_attention.keys_and_values(words)
        for i, seen in enumerate(weights):
            document[f"between{i}"] = seen["between"]
        return State(document, {"position": torch.zeros(len(batch), dtype=torch.long, device=words.device)})

    def _embed(self, ids: Tensor, paragraphs: Tensor, tokens: Tensor) -> Tensor:
        """Equations 7 to 10: [A, J, d]."""
        words, half = self.embedding(ids), self.config.width // 2
        if not self.config.paragraph_positions:
            return self._with_positions(words, sinusoids(tokens, 2 * half))
        halves = [sinusoids(paragraphs, half), sinusoids(tokens, half)]
        return self._with_positions(words, torch.cat(halves if self.config.reading == "paper" else halves[::-1], -1))

    def _with_positions(self, words: Tensor, positions: Tensor) -> Tensor:
        scale = self.config.width**0.5 if self.config.reading == "code" else 1.0
        return self.dropout(words * scale + positions.to(words.dtype))

    # ---------------------------------------------------------------------------------------------- decoder

    def decode(self, tokens: Tensor, state: State) -> tuple[TransformerSteps, State]:
        """Read T target pieces at once. tokens: [R, T] ids."""
        start = state.decoder["position"]  # [R], the same for all
        places = start[:, None] + torch.arange(tokens.shape[1], device=tokens.device)
        embedded = self.embedding(in_vocabulary(tokens, self.config.vocab_size))
        x = self._with_positions(embedded, sinusoids(places, self.config.width))
        document, kept = state.document, {}
        for i, layer in enumerate(self.decoder_layers):
            past = None
            if f"past_keys{i}" in state.decoder:
                past = state.decoder[f"past_keys{i}"], state.decoder[f"past_values{i}"]
            source = document[f"keys{i}"], document[f"values{i}"]
            x, (kept[f"past_keys{i}"], kept[f"past_values{i}"]) = layer(x, past, source, document["mask"])
        if self.config.reading == "code":
            x = self.decoder_norm(x)
        (scores,) = full_precision(F.linear(x, self.embedding.weight, self.bias))
        return TransformerSteps(scores), state.advance(position=start + tokens.shape[1], **kept)

    # ------------------------------------------------------------------------------------------ probabilities

    def log_prob(self, steps: TransformerSteps, target: Tensor, state: State) -> Tensor:
        """log P of the target pieces [R, T]."""
        target = in_vocabulary(target, self.config.vocab_size)
        return steps.scores.log_softmax(-1).gather(-1, target[..., None]).squeeze(-1)

    @torch.no_grad()
    def distribution(self, steps: TransformerSteps, state: State, extra: int, out: Tensor | None = None) -> Tensor:
        """P of every piece after the last step, [R, V + extra], in `out` if given; nothing is copied."""
        p = steps.scores[:, -1].softmax(-1)
        whole = p.new_zeros(len(p), p.shape[1] + extra) if out is None else out.zero_()
        whole[:, : p.shape[1]] = p
        return whole

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """`nll`, and in training `loss`: the cross entropy with labels smoothed over all pieces but [PAD] and the
        right one. Means over documents of means over a summary's pieces."""
        state = self.encode(batch)
        steps, _ = self.decode(batch.target_input, state)
        log_p = steps.scores.log_softmax(-1)
        weights = document_weights(batch.target_mask, log_p.dtype)
        right = log_p.gather(-1, in_vocabulary(batch.target, self.config.vocab_size)[..., None]).squeeze(-1)
        nll = -(weights * right).sum()
        if not self.training or not self.config.smoothing:
            return {"loss": nll, "nll": nll}
        others = (log_p.sum(-1) - right - log_p[..., PAD]) / (self.config.vocab_size - 2)
        smoothed = (1 - self.config.smoothing) * right + self.config.smoothing * others
        return {"loss": -(weights * smoothed).sum(), "nll": nll}

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        return self.loss(batch)
