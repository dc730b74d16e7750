"""Attention with Luong's scores (2015) for many queries."""

from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lib.layers.cpu_kernels import additive_backward, additive_forward, arrays, compiled, for_each_document

Score = Literal["concat", "general", "dot"]


def full_precision(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Convert bfloat16 and float16 to float32, where autocast must not lose digits; float64 stays."""
    return tuple(t if t.dtype == torch.float64 else t.float() for t in tensors)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Compute the softmax over the last axis, 0 where `mask` is false; at least one entry must be true."""
    (scores,) = full_precision(scores)
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


class Attention(nn.Module):
    r"""Weights of n keys for each query (Luong et al. 2015, section 3.1).

    score "concat": $v^\top\tanh(W_q q + W_k k)$; "general": $q^\top W k$; "dot": $q^\top k$, no parameters.
    """

    def __init__(self, query: int, key: int, width: int, score: Score = "concat"):
        super().__init__()
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
        """Compute the weights [B, T, n] of projected queries [B, T, width] over projected keys [B, n, width].

        mask: [B, n], true for as many keys, from the first, as a document has.
        """
        if self.score == "concat":
            inputs = full_precision(queries, keys, self.v.weight[0])
            with torch.autocast(queries.device.type, enabled=False):
                if compiled(inputs[0]):
                    lengths = [keys.shape[1]] * len(keys) if mask is None else mask.sum(1).tolist()
                    scores = _CompiledScores.apply(*inputs, lengths)
                else:
                    scores = additive_scores(*inputs)
        else:
            (scores,) = full_precision(queries @ keys.transpose(1, 2))
        return scores.softmax(-1) if mask is None else masked_softmax(scores, mask[:, None])


TANH_NUMBERS = 2**27  # numbers of a tanh that are computed at once: half a gigabyte


def additive_scores(queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """Compute v^T tanh(q + k) [B, T, n] for queries [B, T, A] and keys [B, n, A], by PyTorch's operations.

    The tanh [B, T, n, A] is A times larger than the scores. It exists for a few queries at a time, and the backward
    pass computes it again.
    """

    def score(part: Tensor, keys: Tensor, v: Tensor) -> Tensor:
        return torch.tanh(keys[:, None] + part[:, :, None]) @ v

    parts = queries.split(max(1, TANH_NUMBERS // keys.numel()), 1)
    recomputed = partial(checkpoint, score, use_reentrant=False, preserve_rng_state=False)
    return torch.cat([recomputed(part, keys, v) for part in parts], 1)


class _CompiledScores(torch.autograd.Function):
    """Compute what `additive_scores` does with CPU kernels, one document per thread; 0 for padding."""

    @staticmethod
    def forward(ctx, queries, keys, v, lengths):
        scores = queries.new_zeros(*queries.shape[:2], keys.shape[1])
        ctx.lengths = lengths
        ctx.save_for_backward(queries, keys, v)
        q, k, v, s = arrays(queries, keys, v, scores)
        for_each_document(lambda b, n: additive_forward(q[b], k[b, :n], v, s[b]), ctx.lengths)
        return scores

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_scores):
        queries, keys, v = ctx.saved_tensors
        d_queries = queries.new_zeros(queries.shape)
        d_keys = keys.new_zeros(keys.shape)
        # Every document has a row of its own, so that the sum does not depend on the order of the threads.
        d_v = v.new_zeros(len(keys), len(v))
        q, k, v, d, dq, dk, dv = arrays(queries, keys, v, d_scores, d_queries, d_keys, d_v)

        def document_backward(b: int, n: int) -> None:
            additive_backward(q[b], k[b, :n], v, d[b], dq[b], dk[b, :n], dv[b])

        for_each_document(document_backward, ctx.lengths)
        return d_queries, d_keys, d_v.sum(0), None
