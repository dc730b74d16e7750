"""Parts that transformers share: positions, attention, feed-forward, layers with normalisation
before or after."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Group, Ragged
from lib.layers.attention import full_precision
from lib.layers.dropout import Dropout
from lib.system.errors import InputError


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """Embed positions p [...] -> [..., width]."""
    # e_p[2i] = sin(p / 10000^(2i / width)),  e_p[2i + 1] = cos(p / 10000^(2i / width))
    exponents = torch.arange(0, width, 2, device=positions.device, dtype=torch.float64)
    frequencies = 10_000.0 ** (-exponents / width)
    angles = positions[..., None].double() * frequencies
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)


def attend(
    q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, dropout: Dropout
) -> Tensor:
    """Compute scaled dot-product attention of q [..., m, s] to keys and values [..., n, s]:
    [..., m, s].

    mask: true for keys that may be attended to; at least one for each query.
    """
    # softmax(q k^T / sqrt(s)) v
    active = dropout.p if dropout.training else 0.0
    if q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, keys, values, mask, active)
    if not active:  # on a CPU its backward pass is five times as slow in bfloat16
        wide_q, wide_keys, wide_values = full_precision(q, keys, values)
        with torch.autocast("cpu", enabled=False):
            return F.scaled_dot_product_attention(wide_q, wide_keys, wide_values, mask).to(q.dtype)
    # PyTorch's function would draw from the generator that all threads share.
    return dropout(attention_weights(q, keys, mask)).to(values.dtype) @ values


def attention_weights(q: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
    """Compute softmax(q k^T / sqrt(s)) where `mask` is true: [..., m, n] of q [..., m, s] and keys
    [..., n, s]."""
    (scores,) = full_precision(q * q.shape[-1] ** -0.5 @ keys.transpose(-1, -2))
    return (scores if mask is None else scores + _bars(mask, scores)).softmax(-1)


def _bars(mask: Tensor, like: Tensor) -> Tensor:
    """Return 0 where `mask` is true and -inf elsewhere: a sum, whose gradient needs no pass over
    the scores."""
    return like.new_zeros(mask.shape).masked_fill_(~mask, -torch.inf)


def attend_both(
    q: Tensor,
    far: tuple[Tensor, Tensor, Tensor],
    own: tuple[Tensor, Tensor, Tensor],
    dropout: Dropout,
) -> Tensor:
    """Attend from words q [R, heads, T, s] to keys of their documents and to keys of their own, in
    one softmax.

    far: keys, values [B, heads, m, s], seen [B, T, m]; own: keys, values [R, heads, n, s], seen
    [B, T, n].
    """
    far_keys, far_values, far_seen = far
    keys, values, seen = own
    by_document = (len(far_keys), -1)  # R = B * K
    q = (q * q.shape[-1] ** -0.5).unflatten(0, by_document)
    keys = keys.unflatten(0, by_document)
    values = values.unflatten(0, by_document)
    # One softmax over both, without a copy of the far keys for each hypothesis.
    far_scores = q @ far_keys[:, None].transpose(-1, -2)
    own_scores = q @ keys.transpose(-1, -2)
    scores = torch.cat([far_scores, own_scores], -1)  # [B, K, heads, T, m + n]
    mask = torch.cat([far_seen, seen], -1)[:, None, None]
    weights = dropout((scores + _bars(mask, scores)).softmax(-1))
    from_far, from_own = weights.split([far_keys.shape[2], keys.shape[3]], -1)
    return (from_far @ far_values[:, None] + from_own @ values).flatten(0, 1)


def extended(
    past: tuple[Tensor, Tensor] | None, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    """Append keys and values [R, .., T, s] of words to those of the `past` words."""
    if past is None:
        return keys, values
    return torch.cat([past[0], keys], -2), torch.cat([past[1], values], -2)


def causal_mask(steps: int, keys: Tensor) -> Tensor:
    """Return which keys [R, heads, n, s] each of the last `steps` words sees, all but those after
    it: [steps, n]."""
    # Word i of them is at place count - steps + i.
    count = keys.shape[2]
    return torch.ones(steps, count, dtype=torch.bool, device=keys.device).tril(count - steps)


class DroppedLinear(nn.Linear):
    """A linear layer with dropout before it."""

    def __init__(self, inputs: int, outputs: int, dropout: float, bias: bool = True):
        super().__init__(inputs, outputs, bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.dropout(x))


class FeedForward(nn.Module):
    """W_2 relu(W_1 x), with dropout before W_2; `before`: before W_1 as well."""

    def __init__(self, width: int, inner: int, dropout: float, before: bool = False):
        super().__init__()
        self.inner = DroppedLinear(width, inner, dropout if before else 0.0)
        self.outer = nn.Linear(inner, width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.dropout(F.relu(self.inner(x))))


def check_heads(width: int, heads: int, name: str = "heads") -> None:
    """Raise InputError unless the width is a multiple of the number of heads."""
    if width % heads:
        raise InputError(f"{heads} {name} do not divide a width of {width}")


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention in several heads (Vaswani et al. 2017), with keys that can be
    saved.

    Dropout is on the attention weights; `before`: before each linear layer instead.
    """

    def __init__(self, width: int, heads: int, dropout: float, before: bool = False):
        super().__init__()
        self.heads = heads
        self.dropout = Dropout(0.0 if before else dropout)
        first = dropout if before else 0.0
        self.query = DroppedLinear(width, width, first)
        self.key = DroppedLinear(width, width, first)
        self.value = DroppedLinear(width, width, first)
        self.output = DroppedLinear(width, width, first)

    def split(self, x: Tensor) -> Tensor:
        """[B, n, d] -> [B, heads, n, d / heads]."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Compute keys and values of x [B, n, d], each [B, heads, n, d / heads]."""
        return self.split(self.key(x)), self.split(self.value(x))

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Attend from x [B, m, d] to keys and values: [B, m, d].

        mask: [B or 1, 1, m or 1, n], true where a key may be attended to.
        """
        # W_o [head_1; ...; head_h] with head_z = softmax(q_z k_z^T / sqrt(s)) v_z
        query = self.split(self.query(x))
        found = attend(query, keys, values, mask, self.dropout)  # [B, heads, m, s]
        return self.output(found.transpose(1, 2).flatten(2))

    def weights(self, x: Tensor, keys: Tensor, mask: Tensor | None = None) -> Tensor:
        """Compute the attention weights [B, heads, m, n] of x [B, m, d] over keys."""
        return attention_weights(self.split(self.query(x)), keys, mask)

    def inside(self, x: Tensor, rows: Ragged) -> Tensor:
        """Attend from the words [W, d] of many rows, each within its row. Padding is added only for
        the attention."""
        found = []
        # A group is of rows of similar length.
        queries = self.query(x).split(rows.sizes)
        keys = self.key(x).split(rows.sizes)
        values = self.value(x).split(rows.sizes)
        for group, query, key, value in zip(rows.groups, queries, keys, values):
            q = self.split(_padded(query, group))  # [rows, heads, longest, s]
            k = self.split(_padded(key, group))
            v = self.split(_padded(value, group))
            mask = None if group.mask is None else group.mask[:, None, None]
            attended = attend(q, k, v, mask, self.dropout)
            words = attended.transpose(1, 2).flatten(2).flatten(0, 1)
            # Without slots no row has padding.
            found.append(words if group.slots is None else words.index_select(0, group.slots))
        return self.output(torch.cat(found))


def _padded(words: Tensor, group: Group) -> Tensor:
    """Put the words of a group [n, d] into rows: [rows, longest, d]."""
    if group.slots is not None:
        padded = words.new_zeros(group.rows * group.longest, words.shape[1])
        words = padded.index_copy(0, group.slots, words)
    return words.view(group.rows, group.longest, -1)


class TransformerLayer(nn.Module):
    """Self-attention inside rows of words, and feed-forward, each with a residual.

    `pre_norm`: layer normalisation comes before each part (and a last one is the caller's),
    otherwise after each sum. With it dropout follows each part, as in Liu and Lapata's code;
    otherwise it comes before each linear layer, as in their paper.
    """

    def __init__(
        self, width: int, heads: int, inner: int, dropout: float, pre_norm: bool, eps: float = 1e-6
    ):
        super().__init__()
        self.pre_norm = pre_norm
        self.attention = MultiHeadAttention(width, heads, dropout, before=not pre_norm)
        self.feed_forward = FeedForward(width, inner, dropout, before=not pre_norm)
        self.attention_norm = nn.LayerNorm(width, eps)
        self.feed_forward_norm = nn.LayerNorm(width, eps)
        self.dropout = Dropout(dropout if pre_norm else 0.0)

    def forward(self, x: Tensor, rows: Ragged) -> Tensor:
        """Compute the output [W, d] for all words, without padding."""
        if self.pre_norm:
            # x := x + Attention(LN(x)),  x := x + FFN(LN(x))
            x = x + self.dropout(self.attention.inside(self.attention_norm(x), rows))
            return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        # x := LN(x + Attention(x)),  x := LN(x + FFN(x))
        x = self.attention_norm(x + self.dropout(self.attention.inside(x, rows)))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, feed-forward; keys and values of earlier
    words are kept.

    `pre_norm` as in `TransformerLayer`.
    """

    def __init__(
        self, width: int, heads: int, inner: int, dropout: float, pre_norm: bool, eps: float = 1e-6
    ):
        super().__init__()
        self.pre_norm = pre_norm
        self.self_attention = MultiHeadAttention(width, heads, dropout, before=not pre_norm)
        self.source_attention = MultiHeadAttention(width, heads, dropout, before=not pre_norm)
        self.feed_forward = FeedForward(width, inner, dropout, before=not pre_norm)
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps) for _ in range(3))
        self.dropout = Dropout(dropout if pre_norm else 0.0)

    def forward(
        self,
        x: Tensor,
        past: tuple[Tensor, Tensor] | None,
        source: tuple[Tensor, Tensor],
        mask: Tensor,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Read words x [R, T, d] after `past` words.

        Args:
            past: keys and values [R, heads, P, d / heads] of the words before, or None.
            source: keys and values [B, heads, N, d / heads]; R is a multiple of B.
            mask: [B, N], true where there is a source word.

        Returns:
            [R, T, d], and the keys and values of all P + T words.
        """
        kept: list[tuple[Tensor, Tensor]] = []

        def write(y: Tensor) -> Tensor:
            keys, values = self.self_attention.keys_and_values(y)
            keys, values = extended(past, keys, values)
            kept.append((keys, values))
            return self.self_attention(y, keys, values, causal_mask(y.shape[1], keys)[None, None])

        def read(y: Tensor) -> Tensor:
            keys, values = source
            # The hypotheses of a document are one row of queries, so that its keys are not copied.
            grouped = y.unflatten(0, (len(mask), -1)).flatten(1, 2)  # [B, K * T, d]
            return self.source_attention(grouped, keys, values, mask[:, None, None]).view(y.shape)

        for norm, part in zip(self.norms, (write, read, self.feed_forward)):
            if self.pre_norm:
                x = x + self.dropout(part(norm(x)))
            else:
                x = norm(x + self.dropout(part(x)))
        return x, kept[0]
