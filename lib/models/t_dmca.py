"""T-DMCA (Liu et al. 2018): a transformer decoder that reads title, paragraphs and summary as one
sequence.

Two kinds of layers alternate: attention inside blocks of the sequence, and attention to keys and
values of the whole past that a convolution has compressed. Where the paper is silent, the authors'
code decides (tensor2tensor, `transformer_moe` and `multihead_self_attention_reduced`):
normalisation before each part, the first piece always seen, a compressed group seen from after its
last piece. Where the two differ, the paper does: blocks that do not see the one before, and a
convolution of keys and one of values, where the code compresses what both are made of. The numbers
of the equations, (D1) to (D3), are ours; places count from 0.

The mixture of experts that the paper adds in some of its experiments (in the code: 256 instead of
the middle layer's feed-forward part) is left out. The row of Liu and Lapata (2019) that this model
reproduces has five layers of 512 and 2,048 and mentions no experts, so a run with experts would not
be comparable with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch, put, word_places
from lib.layers.attention import full_precision
from lib.layers.dropout import Dropout
from lib.layers.pointer import DecoderOutput
from lib.layers.transformer import (
    FeedForward,
    attend,
    attend_both,
    check_heads,
    extended,
    sinusoids,
)
from lib.models.state import CachedState, PerDocument, per_hypothesis
from lib.models.summarizer import PieceModel, xavier
from lib.system.settings import BelowOne, Count, Layers, Share, checked


@checked
class TDMCAConfig:
    """Sizes of Liu and Lapata's (2019) comparison; block and stride of Liu et al. (2018)."""

    vocab_size: int = 32_000
    width: int = 512
    heads: Count = 8  # of tensor2tensor's transformer_base_v1, from which Liu et al. start
    inner: int = 2048
    layers: Layers = 5  # local, compressed, local, compressed, local
    block: Count = 256  # pieces that see each other in a local layer
    stride: Count = 3  # pieces that a compressed key or value represents
    dropout: Share = 0.1
    smoothing: BelowOne = 0.1

    def __post_init__(self):
        check_heads(self.width, self.heads)


# The part of a source that later words need in one layer: keys and values [B, heads, m, s], and of
# a local layer the places [B, block - 1] of these keys in the sequence; of a compressed one the
# shares of key and value [B, d] that the pieces after the last group have in the next one, with the
# bias.
Remembered = tuple[Tensor, ...]
# keys, values, and which of them each word attends to, as in `attend_both`
Seen = tuple[Tensor, Tensor, Tensor]


class _DecoderOnlyLayer(nn.Module):
    """Self-attention and feed-forward, with the normalisation before each part.

    A sequence is read in two calls or more: `read` takes the source of every document, `forward`
    the words of every hypothesis after it. Keys and values are split into heads only after they
    have been compressed.
    """

    # attends inside sources: q, k, v [B, N, d] and lengths [B] -> what is found [B, heads, N, s],
    # and `Remembered`
    attend: Callable[..., tuple[Tensor, Remembered]]
    # what words after the first `start` attend to, of the source and of all words' k, v [R, t, d]
    seen: Callable[..., tuple[Seen, Seen]]

    def __init__(self, config: TDMCAConfig):
        super().__init__()
        self.config = config
        width = config.width
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width, 1e-6) for _ in range(2))
        self.feed_forward = FeedForward(width, config.inner, config.dropout)
        self.dropout = Dropout(config.dropout)

    def split(self, x: Tensor) -> Tensor:
        """[B, n, d] -> [B, heads, n, s]."""
        return x.unflatten(-1, (self.config.heads, -1)).transpose(1, 2)

    def read(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Remembered]:
        """Read sources x [B, N, d] of `lengths` [B]: the output [B, N, d], and keys and values for
        later words."""
        normed = self.norms[0](x)
        q, k, v = self.query(normed), self.key(normed), self.value(normed)
        found, remembered = self.attend(q, k, v, lengths)
        return self._add(x, found), remembered

    def forward(
        self, x: Tensor, past: tuple[Tensor, Tensor] | None, source: Remembered, lengths: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Read words x [R, T, d] that follow `past` others after sources of `lengths` [B]; R is a
        multiple of B.

        past: keys and values [R, start, d] of those others. Returns the output, and keys and values
        of all of them.
        """
        normed = self.norms[0](x)
        q = self.split(self.query(normed))
        k, v = extended(past, self.key(normed), self.value(normed))
        of_source, of_words = self.seen(k, v, source, lengths, k.shape[1] - x.shape[1])
        found = attend_both(q, far=of_source, own=of_words, dropout=self.dropout)
        return self._add(x, found), (k, v)

    def _add(self, x: Tensor, found: Tensor) -> Tensor:
        """Add to x [.., n, d] what attention has found [.., heads, n, s], and then the feed-forward
        part."""
        x = x + self.dropout(self.output(found.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.feed_forward(self.norms[1](x)))


class LocalLayer(_DecoderOnlyLayer):
    """Attention to the earlier pieces of a block; blocks begin at every `block`-th piece of the
    sequence."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> tuple[Tensor, Remembered]:
        n, block = q.shape[1], self.config.block
        # softmax_j(q_t k_j / sqrt(s)) v_j over j <= t with
        # floor(j / block) = floor(t / block)   (D1)
        queries, keys, values = self._in_blocks(q), self._in_blocks(k), self._in_blocks(v)
        causal = torch.ones(block, block, dtype=torch.bool, device=q.device).tril()
        found = attend(queries, keys, values, causal, self.dropout)  # [B * blocks, heads, block, s]
        found = found.transpose(1, 2).reshape(len(q), -1, self.config.heads, found.shape[-1])
        # A word of the summary sees at most the last block - 1 pieces of its source: these,
        # right-aligned.
        places = lengths[:, None] + torch.arange(-block + 1, 0, device=k.device)  # [B, block - 1]
        index = places.clamp_min(0)[..., None].expand(-1, -1, k.shape[-1])
        remembered = self.split(k.gather(1, index)), self.split(v.gather(1, index)), places
        return found[:, :n].transpose(1, 2), remembered

    def _in_blocks(self, y: Tensor) -> Tensor:
        """Pad and cut a sequence: [B, N, d] -> [B * blocks, heads, block, s]."""
        block = self.config.block
        padded = F.pad(y, (0, 0, 0, -y.shape[1] % block))
        return self.split(padded.unflatten(1, (-1, block)).flatten(0, 1))

    def seen(
        self, k: Tensor, v: Tensor, source: Remembered, lengths: Tensor, start: int
    ) -> tuple[Seen, Seen]:
        keys, values, places = source
        step = torch.arange(k.shape[1], device=k.device)
        block = (lengths[:, None] + step) // self.config.block  # [B, t]
        own = block[:, start:, None]  # [B, T, 1]
        # places before the source are in block -1
        in_source = places[:, None] // self.config.block == own
        in_summary = (block[:, None] == own) & (step <= step[start:, None])  # [B, T, t]
        return (keys, values, in_source), (self.split(k), self.split(v), in_summary)


class CompressedLayer(_DecoderOnlyLayer):
    """Attention to the whole past, of which a convolution makes one key and one value for every
    `stride` pieces.

    A group is seen from after its last piece. The first piece of the sequence is always seen as it
    is, so that there is something to see before the first group is complete.
    """

    def __init__(self, config: TDMCAConfig):
        super().__init__(config)
        width, stride = config.width, config.stride
        self.compress_key = nn.Linear(stride * width, width)  # C_k, b_k
        self.compress_value = nn.Linear(stride * width, width)  # C_v, b_v

    def attend(self, q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> tuple[Tensor, Remembered]:
        stride = self.config.stride
        keys = self._compress(k, self.compress_key)
        values = self._compress(v, self.compress_value)
        keys, values = self.split(keys), self.split(values)
        # softmax_m(q_t kappa_m / sqrt(s)) nu_m over stride m + stride - 1 < t,
        # and over the first piece   (D3)
        step = torch.arange(q.shape[1], device=q.device)
        group = torch.arange(keys.shape[2] - 1, device=q.device)
        complete = stride * group + stride - 1 < step[:, None]
        seen = F.pad(complete, (1, 0), value=True)  # [N, 1 + groups]
        found = attend(self.split(q), keys, values, seen, self.dropout)
        begun_key = self._begin(k, self.compress_key, lengths)
        begun_value = self._begin(v, self.compress_value, lengths)
        return found, (keys, values, begun_key, begun_value)

    def _compress(self, y: Tensor, convolution: nn.Linear) -> Tensor:
        """Compress keys or values [B, N, d] to the first piece as it is and complete groups
        [B, 1 + groups, d]."""
        # kappa_m = C_k [k_3m; k_3m+1; k_3m+2] + b_k with a stride of 3, and nu_m of values
        # likewise   (D2)
        stride = self.config.stride
        groups = y.shape[1] // stride
        in_groups = y[:, : groups * stride].unflatten(1, (groups, stride))
        return torch.cat([y[:, :1], convolution(in_groups.flatten(2))], 1)

    def _begin(self, y: Tensor, convolution: nn.Linear, lengths: Tensor) -> Tensor:
        """Compute the share [B, d] that the pieces after a source's last complete group have in the
        next group."""
        stride = self.config.stride
        width = y.shape[-1]
        complete = lengths - lengths % stride
        places = complete[:, None] + torch.arange(stride - 1, device=y.device)  # [B, stride - 1]
        left = (places < lengths[:, None])[..., None]
        index = places.clamp_max(y.shape[1] - 1)[..., None].expand(-1, -1, width)
        pieces = (y.gather(1, index) * left).flatten(1)
        # At most stride - 1 pieces are left, so that the last place of the group is empty.
        return convolution(F.pad(pieces, (0, width)))

    def seen(
        self, k: Tensor, v: Tensor, source: Remembered, lengths: Tensor, start: int
    ) -> tuple[Seen, Seen]:
        keys, values, begun_key, begun_value = source
        stride = self.config.stride
        group = torch.arange(keys.shape[2] - 1, device=k.device)
        in_source = F.pad(group < lengths[:, None] // stride, (1, 0), value=True)  # [B, 1 + groups]
        in_source = in_source[:, None].expand(-1, k.shape[1] - start, -1)
        # Each word's place from the beginning of the group that the source has begun: [B, t].
        slot = lengths[:, None] % stride + torch.arange(k.shape[1], device=k.device)
        own_keys = self._go_on(k, self.compress_key, begun_key, slot)
        own_values = self._go_on(v, self.compress_value, begun_value, slot)
        last = stride * torch.arange(1, own_keys.shape[2] + 1, device=k.device) - 1
        return (keys, values, in_source), (own_keys, own_values, last < slot[:, start:, None])

    def _go_on(self, y: Tensor, convolution: nn.Linear, begun: Tensor, slot: Tensor) -> Tensor:
        """Compress the words' keys or values [R, t, d] after the pieces `begun` [B, d]:
        [R, heads, groups, s].

        slot: [B, t], each word's place from the beginning of the first group. The last groups may
        be incomplete: they are never seen.
        """
        stride = self.config.stride
        count = -(-(y.shape[1] + stride - 1) // stride)
        slots = per_hypothesis(slot, len(y))[..., None].expand_as(y)
        grid = y.new_zeros(len(y), count * stride, y.shape[-1]).scatter(1, slots, y)
        groups = convolution(grid.unflatten(1, (count, stride)).flatten(2))  # [R, groups, d]
        # The first group has a share of the source. The bias is in both parts of it.
        share = per_hypothesis(begun, len(y)) - convolution.bias
        first = groups[:, :1] + share[:, None]
        return self.split(torch.cat([first, groups[:, 1:]], 1))


@dataclass(frozen=True, kw_only=True)
class TDMCAState(CachedState):
    """`source`: `Remembered` of each layer; `past`: its keys and values [R, written, d]."""

    lengths: PerDocument[Tensor]  # [B]
    features: PerDocument[Tensor | None]  # [B, N, d] of the source, in training


class TDMCA(PieceModel):
    """The language model over source, [BOS] and summary. In training it learns to predict the
    source as well.

    B documents of N pieces at most, K hypotheses of each, R = B * K rows, T target pieces, s = d /
    heads.
    """

    Config = TDMCAConfig
    by_words = False  # a mean over the pieces of the source as well

    def __init__(self, config: TDMCAConfig):
        super().__init__(config, scale=True)
        kinds = (LocalLayer, CompressedLayer)
        self.layers: Any = nn.ModuleList(kinds[i % 2](config) for i in range(config.layers))
        self.norm = nn.LayerNorm(config.width, 1e-6)
        xavier(self)

    def encode(self, batch: Batch) -> TDMCAState:
        lengths = batch.source_mask.sum(1)
        places = torch.arange(batch.source.shape[1], device=lengths.device)
        x = self.embed(batch.source, sinusoids(places, self.config.width))
        source = []
        for layer in self.layers:
            x, remembered = layer.read(x, lengths)
            source.append(remembered)
        features = self.norm(x) if self.training else None
        return TDMCAState(source=tuple(source), lengths=lengths, features=features)

    def decode(self, tokens: Tensor, state: TDMCAState) -> tuple[DecoderOutput, TDMCAState]:
        """Read T target pieces at once: tokens [R, T] ids -> features [R, T, d]."""
        begin = per_hypothesis(state.lengths, len(tokens))[:, None] + state.written
        places = begin + torch.arange(tokens.shape[1], device=tokens.device)
        x = self.embed(tokens, sinusoids(places, self.config.width))
        x, after = state.read_on(self.layers, x, state.lengths)
        return DecoderOutput(self.norm(x)), after

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Compute the loss: in training the mean over all pieces of a document, with smoothed
        labels.

        `source` is the source's share of it; the summary's own `nll` is only reported.
        """
        if not self.training:
            return super().loss(batch)
        state = self.encode(batch)
        output, _ = self.decode(batch.target_input, state)
        with torch.no_grad():
            nll = self.nll(output, batch, state)
        summary = self._share_of_mean(
            features=output.features,
            target=batch.target,
            mask=batch.target_mask,
            places=batch.target_places,
            batch=batch,
        )
        # Each piece of the source but the first is predicted from those before it.
        assert state.features is not None, "the source's features are kept in training"
        target = batch.source[:, 1:]
        source = self._share_of_mean(
            features=state.features[:, :-1],
            target=target,
            mask=batch.source_mask[:, 1:],
            places=put(word_places(batch.source_lengths - 1, target.shape[1]), target.device),
            batch=batch,
        )
        return {"loss": summary + source, "nll": nll, "source": source}

    def _share_of_mean(
        self, features: Tensor, target: Tensor, mask: Tensor, places: Tensor, batch: Batch
    ) -> Tensor:
        """Compute the share of some pieces [B, n] in the mean smoothed loss of a document's source
        and summary."""
        pieces = batch.target_mask.sum(1) + batch.source_mask[:, 1:].sum(1)
        weights = mask.to(full_precision(features)[0].dtype) / (pieces[:, None] * len(batch))
        nll = -self.words_of(features, target).weighted_sum(weights, places)
        return self.smoothed(nll, features, target, weights)
