"""T-DMCA (Liu et al. 2018): a transformer decoder that reads title, paragraphs and summary as one sequence.

Layers take turns: attention inside blocks of the sequence, and attention to keys and values of the whole past that a
convolution has compressed. Where the paper is silent, the authors' code decides (tensor2tensor, `transformer_moe` and
`multihead_self_attention_reduced`): normalisation before each part, the first piece always seen, a compressed group
seen from after its last piece. Where the two differ, the paper does: blocks that do not see the one before, and a
convolution of keys and one of values, where the code compresses what both are made of.

The mixture of experts that the paper adds in some of its experiments (in the code: 256 in place of the middle layer's
feed-forward part) is left out. The row that this model stands for, Liu and Lapata's (2019), has five layers of 512
and 2,048 and speaks of no experts; a run that has them would not be comparable with it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch, put, word_places
from lib.layers.dropout import Dropout
from lib.layers.pointer import DecoderOutput
from lib.layers.transformer import FeedForward, attend, attend_both, check_heads, sinusoids
from lib.models.decoder_state import HYPOTHESIS, DecoderState, PerHypothesis, per_hypothesis
from lib.models.piece_model import PieceModel, xavier
from lib.system.fields import BelowOne, Count, Layers, Share, checked


@checked
class TDMCAConfig:
    """Sizes of Liu and Lapata's (2019) comparison; block and stride of Liu et al. (2018)."""

    vocab_size: int = 32_000
    width: int = 512
    heads: int = 8  # of tensor2tensor's transformer_base_v1, from which Liu et al. start
    inner: int = 2048
    layers: Layers = 5  # local, compressed, local, compressed, local
    block: Count = 256  # pieces that see each other in a local layer
    stride: Count = 3  # pieces that a compressed key or value stands for
    dropout: Share = 0.1
    smoothing: BelowOne = 0.1

    def __post_init__(self):
        check_heads(self.width, self.heads)


# The part of a source that later words need in one layer: keys and values [B, heads, m, s], and of a local layer the
# places [B, block - 1] of these keys in the sequence; of a compressed one the shares of key and value [B, d] that the
# pieces after the last group have in the next one, with the bias.
Remembered = tuple[Tensor, ...]


class _DecoderOnlyLayer(nn.Module):
    """Self-attention and feed-forward, with the normalisation before each part.

    A sequence is read in two calls or more: `read` takes the source of every document, `extend` the words of every
    hypothesis after it. Both see keys and values [.., heads, n, s] and what `remember` saved of the source.
    """

    memory: Callable  # keys and values that words of the source see
    attend: Callable
    remember: Callable
    visible: Callable  # what words of the summary see of it
    behind: Callable  # and of each other

    def __init__(self, config: TDMCAConfig):
        super().__init__()
        self.config, width = config, config.width
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(width, 1e-6) for _ in range(2))
        self.feed_forward = FeedForward(width, config.inner, config.dropout)
        self.dropout = Dropout(config.dropout)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.config.heads, -1)).transpose(1, 2)

    def read(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Remembered]:
        """Sources x [B, N, d] of `lengths` [B]: the layer's output, and what later words need of it."""
        normed = self.norms[0](x)
        q, k, v = self.query(normed), self.key(normed), self.value(normed)
        seen = self.memory(k, v)
        x = x + self.dropout(self.output(self.attend(q, *seen).transpose(1, 2).flatten(2)))
        return self._finish(x), self.remember(k, v, *seen, lengths)

    def extend(
        self, x: Tensor, past: tuple[Tensor, Tensor] | None, kept: Remembered, lengths: Tensor, start: int
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Words x [R, T, d] that follow `start` others after sources of `lengths` [B]; R is a multiple of B.

        past: keys and values [R, start, d] of those others. Returns the output, and keys and values of all of them.
        """
        normed = self.norms[0](x)
        q, k, v = self.split(self.query(normed)), self.key(normed), self.value(normed)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        keys, values, seen = self.behind(k, v, kept, lengths, start)  # own ones, and which each word sees
        far = self.visible(kept, lengths, start, x.shape[1])  # [B, T, m]
        found = attend_both(q, (kept[0], kept[1], far), (keys, values, seen), self.dropout)
        x = x + self.dropout(self.output(found.transpose(1, 2).flatten(2)))
        return self._finish(x), (k, v)

    def _finish(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.feed_forward(self.norms[1](x)))


class LocalLayer(_DecoderOnlyLayer):
    """Attention to the earlier pieces of a block; blocks begin at every `block`-th piece of the sequence."""

    def memory(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return k, v

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        n, block = q.shape[1], self.config.block
        q, k, v = (F.pad(y, (0, 0, 0, -n % block)).unflatten(1, (-1, block)).flatten(0, 1) for y in (q, k, v))
        causal = torch.ones(block, block, dtype=torch.bool, device=q.device).tril()
        found = attend(self.split(q), self.split(k), self.split(v), causal, self.dropout)
        blocks = found.transpose(1, 2).reshape(-1, -(-n // block) * block, self.config.heads, found.shape[-1])
        return blocks[:, :n].transpose(1, 2)

    def remember(self, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, lengths: Tensor) -> Remembered:
        """The last block - 1 pieces of each source, right-aligned: of its last block there are no more."""
        places = lengths[:, None] + torch.arange(-self.config.block + 1, 0, device=k.device)  # [B, block - 1]
        index = places.clamp_min(0)[..., None].expand(-1, -1, k.shape[-1])
        return self.split(k.gather(1, index)), self.split(v.gather(1, index)), places

    def visible(self, kept: Remembered, lengths: Tensor, start: int, count: int) -> Tensor:
        places, block = kept[2], self.config.block
        own = lengths[:, None] + start + torch.arange(count, device=places.device)  # [B, T]
        return places[:, None] // block == own[..., None] // block  # places before the source are in block -1

    def behind(
        self, k: Tensor, v: Tensor, kept: Remembered, lengths: Tensor, start: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        step = torch.arange(k.shape[1], device=k.device)
        block = (lengths[:, None] + step) // self.config.block  # [B, t]
        seen = (block[:, start:, None] == block[:, None]) & (step[start:, None] >= step)  # [B, T, t]
        return self.split(k), self.split(v), seen


class CompressedLayer(_DecoderOnlyLayer):
    """Attention to the whole past, of which a convolution makes one key and one value for every `stride` pieces.

    A group is seen from after its last piece. The first piece of the sequence is always seen as it is, so that there
    is something to see before the first group is complete.
    """

    def __init__(self, config: TDMCAConfig):
        super().__init__(config)
        width, stride = config.width, config.stride
        self.compress_key, self.compress_value = (nn.Linear(stride * width, width) for _ in range(2))

    def memory(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The first piece as it is, and complete groups: [B, 1 + groups, d] each."""
        stride, found = self.config.stride, []
        groups = k.shape[1] // stride
        for y, compress in self._both(k, v):
            whole = compress(y[:, : groups * stride].unflatten(1, (groups, stride)).flatten(2))
            found.append(torch.cat([y[:, :1], whole], 1))
        return found[0], found[1]

    def attend(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        step, stride = torch.arange(q.shape[1], device=q.device), self.config.stride
        group = torch.arange(keys.shape[1] - 1, device=q.device)
        seen = F.pad(stride * group + stride - 1 < step[:, None], (1, 0), value=True)  # [N, 1 + groups]
        return attend(self.split(q), self.split(keys), self.split(values), seen, self.dropout)

    def remember(self, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, lengths: Tensor) -> Remembered:
        """Compressed keys and values, and the share that the pieces after the last group have in the next one."""
        stride = self.config.stride
        begin = lengths - lengths % stride
        places = begin[:, None] + torch.arange(stride - 1, device=k.device)  # [B, stride - 1]
        left = (places < lengths[:, None])[..., None]
        index = places.clamp_max(k.shape[1] - 1)[..., None].expand(-1, -1, k.shape[-1])
        begun_key, begun_value = (
            f(F.pad((y.gather(1, index) * left).flatten(1), (0, y.shape[-1]))) for y, f in self._both(k, v)
        )
        return self.split(keys), self.split(values), begun_key, begun_value

    def visible(self, kept: Remembered, lengths: Tensor, start: int, count: int) -> Tensor:
        groups = torch.arange(kept[0].shape[2] - 1, device=lengths.device)
        whole = F.pad(groups < lengths[:, None] // self.config.stride, (1, 0), value=True)
        return whole[:, None].expand(-1, count, -1)

    def behind(
        self, k: Tensor, v: Tensor, kept: Remembered, lengths: Tensor, start: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Groups that end after the source: complete ones, and one that is not and is never seen."""
        stride = self.config.stride
        slot = lengths[:, None] % stride + torch.arange(k.shape[1], device=k.device)  # [B, t] from the group begun
        count = -(-(k.shape[1] + stride - 1) // stride)
        slots = per_hypothesis(slot, len(k))
        own = []
        for (y, f), begun in zip(self._both(k, v), kept[2:]):
            grid = y.new_zeros(len(y), count * stride, y.shape[-1])
            grid = grid.scatter(1, slots[..., None].expand_as(y), y).unflatten(1, (count, stride)).flatten(2)
            first = per_hypothesis(begun, len(k)) - f.bias
            made = F.linear(grid, f.weight, f.bias)
            own.append(self.split(torch.cat([made[:, :1] + first[:, None], made[:, 1:]], 1)))
        last = stride * torch.arange(1, count + 1, device=k.device) - 1
        return *own, last < slot[:, start:, None]

    def _both(self, k: Tensor, v: Tensor):
        return (k, self.compress_key), (v, self.compress_value)


@dataclass(frozen=True)
class TDMCAState(DecoderState):
    lengths: Tensor  # [B]
    features: Tensor | None  # [B, N, d] of the source, for training
    layers: tuple[Remembered, ...]
    position: PerHypothesis  # [R] pieces written
    past: Annotated[tuple[tuple[Tensor, Tensor], ...] | None, HYPOTHESIS] = None  # keys, values [R, position, d]


class TDMCA(PieceModel):
    """The language model over source, [BOS] and summary. In training it learns to predict the source as well.

    B documents of N pieces at most, K hypotheses of each, R = B * K rows, T target pieces.
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
        x, layers = self.embed(batch.source, sinusoids(places, self.config.width)), []
        for layer in self.layers:
            x, kept = layer.read(x, lengths)
            layers.append(kept)
        features = self.norm(x) if self.training else None
        return TDMCAState(lengths, features, tuple(layers), torch.zeros_like(lengths))

    def decode(self, tokens: Tensor, state: TDMCAState) -> tuple[DecoderOutput, TDMCAState]:
        """Read T target pieces at once: tokens [R, T] ids -> features [R, T, d]."""
        start = state.past[0][0].shape[1] if state.past else 0  # pieces written, the same for all
        begin = per_hypothesis(state.lengths, len(tokens))[:, None] + start
        places = begin + torch.arange(tokens.shape[1], device=tokens.device)
        x, kept = self.embed(tokens, sinusoids(places, self.config.width)), []
        for layer, past, source in zip(self.layers, state.past or repeat(None), state.layers):
            x, keys_and_values = layer.extend(x, past, source, state.lengths, start)
            kept.append(keys_and_values)
        after = replace(state, position=state.position + tokens.shape[1], past=tuple(kept))
        return DecoderOutput(self.norm(x)), after

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """The loss: in training the mean over all pieces of a document, with smoothed labels, and the share of it
        that is the `source`'s; the summary's own `nll` is only reported."""
        if not self.training:
            return super().loss(batch)
        state = self.encode(batch)
        output, _ = self.decode(batch.target_input, state)
        with torch.no_grad():
            nll = self.nll(output, batch, state)
        summary = self._share_of_mean(output.features, batch.target, batch.target_mask, batch.target_places, batch)
        assert state.features is not None, "in training"
        features, target = state.features[:, :-1], batch.source[:, 1:]
        places = put(word_places(batch.source_lengths - 1, target.shape[1]), target.device)
        source = self._share_of_mean(features, target, batch.source_mask[:, 1:], places, batch)
        return {"loss": summary + source, "nll": nll, "source": source}

    def _share_of_mean(self, features: Tensor, target: Tensor, mask: Tensor, places: Tensor, batch: Batch) -> Tensor:
        """Compute the share of some pieces [B, n] in the mean smoothed loss of a document's source and summary."""
        pieces = batch.target_mask.sum(1) + batch.source_mask[:, 1:].sum(1)
        log_p = self.word_log_prob(features, target, places)
        weights = mask.to(log_p.dtype) / (pieces[:, None] * len(batch))
        return self.smoothed(-(weights * log_p).sum(), features, target, weights)
