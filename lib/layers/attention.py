"""Attention with Luong's scores (2015) for many queries."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from lib.layers.cpu_kernels import additive_backward, additive_forward, arrays, compiled, for_each_document

Score = Literal["concat", "general", "dot"]


def full_precision(*tensors: Tensor) -> tuple[Tensor, ...]:
    """bfloat16 and float16 to float32, for what must not lose digits under autocast; float64 stays."""
    return tuple(t if t.dtype == torch.float64 else t.float() for t in tensors)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis with weight 0 where `mask` is false; at least one entry must be true."""
    (scores,) = full_precision(scores)
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


class Attention(nn.Module):
    r"""Weights of n keys for each query (Luong et al. 2015, section 3.1).

    score "concat": $v^\top\tanh(W_q q + W_k k)$; "general": $q^\top W k$; "dot": $q^\top k$, no parameters.
    """

    def __init__(self, query: int, key: int, width: int, score: str = "concat"):
        super().__init__()
        if score not in get_args(Score):
            raise ValueError(f"score must be one of {', '.join(get_args(Score))}, not {score!r}")
        if score == "dot" and query != key:
            raise ValueError(f"the dot score needs queries as wide as keys, not {query} and {key}")
        self.score = score
        if score == "concat":
            self.query = nn.Linear(query, width, bias=False)
            self.key = nn.Linear(key, width, bias=False)
            self.v = nn.Linear(width, 1, bias=False)
        elif score == "general":
            self.key = nn.Linear(key, query, bias=False)

    def project(self, keys: Tensor) -> Tensor:
        """Project the keys, once, as the score needs them: [..., n, key] -> [..., n, width]."""
        return keys if self.score == "dot" else self.key(keys)

    def project_queries(self, queries: Tensor) -> Tensor:
        """Project the queries as the score needs them: [..., query] -> [..., width]."""
        return self.query(queries) if self.score == "concat" else queries

    def forward(self, queries: Tensor, keys: Tensor, mask: Tensor | None = None) -> Tensor:
        """Weights [B, T, n] of projected queries [B, T, width] over projected keys [B, n, width].

        mask: [B, n], true for as many keys, from the first, as a document has.
        """
        if self.score == "concat":
            inputs = full_precision(queries, keys, self.v.weight[0])
            lengths = [keys.shape[1]] * len(keys) if mask is None else mask.sum(1)
            made_by = _CompiledScores if compiled(inputs[0]) else _AdditiveScores
            with torch.autocast(queries.device.type, enabled=False):
                scores = made_by.apply(*inputs, lengths)
        else:
            (scores,) = full_precision(queries @ keys.transpose(1, 2))
        return scores.softmax(-1) if mask is None else masked_softmax(scores, mask[:, None])


# Numbers of a tanh that are made at once: as many as a CPU's cache holds, on a GPU half a gigabyte.
CACHED, ON_A_GPU = 2**19, 2**27


class _AdditiveScores(torch.autograd.Function):
    """v^T tanh(q + k) [B, T, n] for queries [B, T, A] and keys [B, n, A]; the tanh is computed again in the backward
    pass, for as many queries at once as the cache holds."""

    @staticmethod
    def forward(ctx, queries, keys, v, lengths):
        ctx.save_for_backward(queries, keys, v)
        ctx.steps = max(1, (CACHED if keys.device.type == "cpu" else ON_A_GPU) // keys.numel())
        return torch.cat([hidden(part, keys) @ v for part in queries.split(ctx.steps, 1)], 1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_scores):
        queries, keys, v = ctx.saved_tensors
        d_queries, d_key, d_v = [], torch.zeros_like(keys), torch.zeros_like(v)
        for part, d_score in zip(queries.split(ctx.steps, 1), d_scores.split(ctx.steps, 1)):
            made = hidden(part, keys)  # [B, t, n, A]
            d_v += torch.mv(made.flatten(0, 2).T, d_score.flatten())
            slope = slope_(made)
            d_queries.append((d_score[:, :, None] @ slope).squeeze(2) * v)
            add_weighted_(d_key, slope, d_score)
        return torch.cat(d_queries, 1), d_key * v, d_v, None


class _CompiledScores(torch.autograd.Function):
    """`_AdditiveScores` by kernels, a document a thread; 0 after the `lengths` [B] of the keys."""

    @staticmethod
    def forward(ctx, queries, keys, v, lengths):
        scores = queries.new_zeros(*queries.shape[:2], keys.shape[1])
        ctx.lengths = [int(n) for n in lengths]
        ctx.save_for_backward(queries, keys, v)
        q, k, v, s = arrays(queries, keys, v, scores)
        for_each_document(lambda b, n: additive_forward(q[b], k[b, :n], v, s[b]), ctx.lengths)
        return scores

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_scores):
        queries, keys, v = ctx.saved_tensors
        d_queries, d_keys = queries.new_zeros(queries.shape), keys.new_zeros(keys.shape)
        d_v = v.new_zeros(len(keys), len(v))  # of each document: their sum has one order
        q, k, v, d, dq, dk, dv = arrays(queries, keys, v, d_scores, d_queries, d_keys, d_v)
        for_each_document(
            lambda b, n: additive_backward(q[b], k[b, :n], v, d[b], dq[b], dk[b, :n], dv[b]), ctx.lengths
        )
        return d_queries, d_keys, d_v.sum(0), None


def hidden(query: Tensor, keys: Tensor, w: Tensor | None = None, coverage: Tensor | None = None) -> Tensor:
    """tanh(keys + query + w * coverage): [B, K, N, A] for queries [B, K, A], keys [B, N, A], coverage [B, K, N]."""
    hidden = keys[:, None] + query[:, :, None]
    if coverage is not None and w is not None:
        hidden.addcmul_(coverage[..., None], w)
    return hidden.tanh_()


def slope_(hidden: Tensor) -> Tensor:
    """Put 1 - tanh² in the place of tanh."""
    return torch.addcmul(hidden.new_ones(()), hidden, hidden, value=-1, out=hidden)


def add_weighted_(total: Tensor, slope: Tensor, weights: Tensor) -> None:
    """total [B, N, A] += the sum over K of slope [B, K, N, A] * weights [B, K, N]."""
    if slope.shape[1] == 1:
        total.addcmul_(slope[:, 0], weights[:, 0, :, None])
    else:
        total += slope.mul_(weights[..., None]).sum(1)
