"""TLM (Subramanian et al. 2020), rows of Mem2Mem's Table 1: a language model with GPT-2's
architecture, which reads an introduction, extracted sentences and the summary as one sequence. The
equations are numbered as in docs/papers/mem2mem.md."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch, in_vocabulary, put, word_places
from lib.layers.attention import full_precision
from lib.layers.dropout import Dropout
from lib.layers.pointer import DecoderOutput
from lib.layers.transformer import (
    MultiHeadAttention,
    attend_both,
    causal_mask,
    check_heads,
    extended,
)
from lib.models.state import CachedState, PerDocument, per_hypothesis
from lib.models.summarizer import SoftmaxModel
from lib.system.errors import InputError
from lib.system.settings import Count, Layers, Share, checked


@checked
class TLMConfig:
    """Sizes of the paper."""

    vocab_size: int = 50_257
    width: int = 768
    heads: Count = 12
    inner: int = 3072
    layers: Layers = 20
    window: Count = 1024  # pieces of a sequence: so many positions are learned
    dropout: Share = 0.1  # GPT-2's; not stated

    def __post_init__(self):
        check_heads(self.width, self.heads)


class CausalLayer(nn.Module):
    """Attention to the pieces before, and feed-forward, each after a normalisation (equations S6
    and S7)."""

    def __init__(self, config: TLMConfig):
        super().__init__()
        c = config
        self.attention = MultiHeadAttention(c.width, c.heads, c.dropout)
        self.inner = nn.Linear(c.width, c.inner)  # W_1, b_1
        self.outer = nn.Linear(c.inner, c.width)  # W_2, b_2
        self.norms: Any = nn.ModuleList(nn.LayerNorm(c.width) for _ in range(2))
        self.dropout = Dropout(c.dropout)

    def forward(
        self,
        x: Tensor,
        past: tuple[Tensor, Tensor] | None = None,
        source: tuple[Tensor, Tensor] | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Read pieces x [R, T, d] after `past` ones, all of them after a source or from the
        beginning of a sequence.

        past: keys and values [R, heads, P, s], or None. source: the same [B, heads, N, s], mask
        [B, N]: R is a multiple of B. Returns the output, and keys and values of all P + T pieces.
        """
        # Y = X + Attention_<=(LN(X)): each piece attends to itself and to those before   (S6)
        attention = self.attention
        normed = self.norms[0](x)
        keys, values = attention.keys_and_values(normed)
        keys, values = extended(past, keys, values)
        causal = causal_mask(x.shape[1], keys)  # [T, P + T]
        if source is None or mask is None:
            found = attention(normed, keys, values, causal[None, None])
        else:
            source_keys, source_values = source
            in_source = mask[:, None].expand(-1, x.shape[1], -1)
            both = attend_both(
                attention.split(attention.query(normed)),
                far=(source_keys, source_values, in_source),
                own=(keys, values, causal.expand(len(mask), -1, -1)),
                dropout=attention.dropout,
            )
            found = attention.output(both.transpose(1, 2).flatten(2))
        x = x + self.dropout(found)
        # X' = Y + W_2 gelu(W_1 LN(Y) + b_1) + b_2   (S7)
        found = self.outer(F.gelu(self.inner(self.norms[1](x)), approximate="tanh"))
        return x + self.dropout(found), (keys, values)


@dataclass(frozen=True, kw_only=True)
class TLMState(CachedState):
    """`source` and `past`: keys and values of each layer.

    They are [B, heads, N, s] and [R, heads, written, s].
    """

    mask: PerDocument[Tensor]  # [B, N]
    features: PerDocument[Tensor | None]  # [B, N, d] of the source, in training


class TLM(SoftmaxModel):
    """The first row of a document (`lib.papers.mem2mem.extracts.encode_sequence`), [BOS] and the
    summary are one sequence; each further row, of the rest of the paper, is one too. In training it
    learns to predict all of them, every piece of a document alike.

    B documents, K hypotheses of each, R = B * K rows, T target pieces, N pieces of the source.
    """

    Config = TLMConfig
    by_words = False  # a mean over the pieces of the source as well
    no_bias: Tensor

    def __init__(self, config: TLMConfig):
        super().__init__()
        self.config = c = config
        self.embedding = nn.Embedding(c.vocab_size, c.width)
        self.position = nn.Embedding(c.window, c.width)
        self.layers: Any = nn.ModuleList(CausalLayer(c) for _ in range(c.layers))
        self.norm = nn.LayerNorm(c.width)
        self.output = nn.Linear(c.width, c.vocab_size, bias=False)
        self.register_buffer("no_bias", torch.zeros(c.vocab_size), persistent=False)
        self.dropout = Dropout(c.dropout)
        # GPT-2's, but no weight is scaled by the depth
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def output_layer(self) -> tuple[Tensor, Tensor]:
        return self.output.weight, self.no_bias

    def encode(self, batch: Batch) -> TLMState:
        ids, mask, *_ = _rows(batch, first=True)
        features, source = self._read(ids)
        kept = features if self.training else None
        return TLMState(source=tuple(source), mask=mask, features=kept)

    def decode(self, tokens: Tensor, state: TLMState) -> tuple[DecoderOutput, TLMState]:
        """Read T target pieces at once: tokens [R, T] ids -> features [R, T, d]."""
        # A summary's places go on where its own source ends, not where the longest does.
        begin = per_hypothesis(state.mask.sum(1), len(tokens))[:, None] + state.written
        places = begin + torch.arange(tokens.shape[1], device=tokens.device)
        longest = state.mask.shape[1] + state.written + tokens.shape[1]
        x = self._embed(tokens, places, longest)
        x, after = state.read_on(self.layers, x, state.mask)
        return DecoderOutput(self.norm(x)), after

    def _read(self, ids: Tensor) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Read sequences [n, N] from their beginning: features [n, N, d], and keys and values of
        each layer."""
        x = self._embed(ids, torch.arange(ids.shape[1], device=ids.device), ids.shape[1])
        kept = []
        for layer in self.layers:
            x, keys_and_values = layer(x)
            kept.append(keys_and_values)
        return self.norm(x), kept

    def _embed(self, ids: Tensor, places: Tensor, longest: int) -> Tensor:
        """Embed pieces at their places. Raises InputError where a sequence is longer than the
        window.

        longest: pieces of a sequence at most; a GPU is asked for its places only where they may be
        too many.
        """
        window = self.config.window
        if longest > window and int(places.max()) >= window:
            advice = "write shorter summaries, or prepare the corpus with that window"
            raise InputError(
                f"a sequence of {int(places.max()) + 1} pieces does not fit into the model's "
                f"window of {window}: {advice}"
            )
        words = self.embedding(in_vocabulary(ids, self.config.vocab_size))
        return self.dropout(words + self.position(places))

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Compute the loss: in training the mean over all pieces of a document.

        `source` and `rest` are the shares that both parts of the paper have in it; the summary's
        own `nll` is only reported.
        """
        if not self.training:
            return super().loss(batch)
        # -mean of log P(x_i | x_1 ... x_{i-1}),
        # over i > 1 of [source; BOS; summary] and of the rest   (S8)
        state = self.encode(batch)
        rows = batch.sentences
        # A document's pieces are divided by their number in the mean over documents of their
        # means. The first piece of a row is not predicted.
        pieces = batch.target_mask.sum(1).index_add(0, rows.owner, rows.mask.sum(1) - 1)
        divisors = pieces * len(batch)  # [B]
        output, _ = self.decode(batch.target_input, state)
        with torch.no_grad():
            nll = self.nll(output, batch, state)
        summary = self._share(
            features=output.features,
            target=batch.target,
            mask=batch.target_mask,
            places=batch.target_places,
            divisors=divisors,
        )
        assert state.features is not None, "the source's features are kept in training"
        ids, mask, _, places = _rows(batch, first=True)
        source = self._share(state.features[:, :-1], ids[:, 1:], mask[:, 1:], places, divisors)
        ids, mask, owner, places = _rows(batch, first=False)
        rest = source.new_zeros(())
        if ids.shape[1] > 1:
            features, _ = self._read(ids[:, :-1])
            rest = self._share(features, ids[:, 1:], mask[:, 1:], places, divisors[owner])
        return {"loss": summary + source + rest, "nll": nll, "source": source, "rest": rest}

    def _share(
        self, features: Tensor, target: Tensor, mask: Tensor, places: Tensor, divisors: Tensor
    ) -> Tensor:
        """Compute the share of sequences in the mean over documents.

        features: [n, T, d]; target, mask: [n, T]; places: of the pieces in the flat [n * T];
        divisors: [n].
        """
        weights = mask.to(full_precision(features)[0].dtype) / divisors[:, None]
        return -self.words_of(features, target).weighted_sum(weights, places)


def _rows(batch: Batch, first: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Select the documents' first rows, or all others.

    Returns their ids and mask [n, N]; their documents [n]; and the places in the flat [n * (N - 1)]
    of all pieces that are predicted, which are all but the first of a row.
    """
    # Chosen on the host: it would wait for a GPU to know how many rows there are, and how long.
    rows, device = batch.sentences, batch.source.device
    chosen = np.flatnonzero((batch.rows.number == 0) == first)
    lengths = torch.from_numpy(batch.rows.length[chosen])
    longest = int(lengths.max()) if len(lengths) else 0
    index = put(torch.from_numpy(chosen), device)
    places = put(word_places(lengths - 1, max(0, longest - 1)), device)
    ids = batch.source.flatten()[rows.place[index, :longest]]
    return ids, rows.mask[index, :longest], rows.owner[index], places
