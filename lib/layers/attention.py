"""Attention with Luong's scores (2015) for many queries, and additive attention with coverage (See
et al. 2017; Mem2Mem, equations 16 and 17).

Shapes: B documents, K hypotheses of each, T target words, N source words, A attention width.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lib.layers import cpu_kernels as cpu
from lib.layers.fast import fast_form, fastest
from lib.layers.scan import scan

Score = Literal["concat", "general", "dot"]


def full_precision(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Convert bfloat16 and float16 to float32, so that autocast loses no digits; keep float64."""
    return tuple(t if t.dtype == torch.float64 else t.float() for t in tensors)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Compute the softmax over the last axis, 0 where `mask` is false.

    At least one entry must be true.
    """
    (scores,) = full_precision(scores)
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


TANH_NUMBERS = 2**27  # numbers of a tanh that are computed at once: half a gigabyte


def additive_scores(queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """Compute v^T tanh(q + k) [B, T, n] of queries [B, T, A] and keys [B, n, A].

    The tanh [B, T, n, A] is A times larger than the scores. It exists for a few queries at a time,
    and the backward pass computes it again.
    """

    # Its arguments are those whose gradients the backward pass needs.
    def score(part: Tensor, keys: Tensor, v: Tensor) -> Tensor:
        return torch.tanh(keys[:, None] + part[:, :, None]) @ v

    parts = queries.split(max(1, TANH_NUMBERS // keys.numel()), 1)
    return torch.cat([recomputed(score, part, keys, v) for part in parts], 1)


def recomputed(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Call a function whose intermediate results the backward pass computes again, not stores."""
    # Where no gradient is needed, PyTorch's `checkpoint` would load its compiler: a second, 130 MB.
    if not torch.is_grad_enabled():
        return function(*inputs)
    return checkpoint(function, *inputs, use_reentrant=False, preserve_rng_state=False)


class Attention(nn.Module):
    r"""Weights of n keys for each query (Luong et al. 2015, section 3.1).

    score "concat": $v^\top\tanh(W_q q + W_k k)$; "general": $q^\top W k$; "dot": $q^\top k$, no
    parameters.
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
        """Compute the weights [B, T, n] of projected queries [B, T, width] over projected keys
        [B, n, width].

        mask: [B, n], true for keys that a document has.
        """
        return fastest(self.weigh, queries, keys, mask)

    # A subclass may change the next two methods. Kernels are then not used.

    def weigh(self, queries: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
        """Do what `forward` does, by PyTorch's operations."""
        # alpha_t = softmax_i(score(q_t, k_i))
        scores = self.scores(queries, keys)
        return scores.softmax(-1) if mask is None else masked_softmax(scores, mask[:, None])

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Compute the scores [B, T, n] of projected queries and keys."""
        if self.score == "concat":
            q, k, v = full_precision(queries, keys, self.v.weight[0])
            with torch.autocast(queries.device.type, enabled=False):
                return additive_scores(q, k, v)
        # "general" and "dot" differ in `project`
        return full_precision(queries @ keys.transpose(1, 2))[0]

    def _has_kernel(self, queries: Tensor, keys: Tensor, mask: Tensor | None) -> bool:
        # PyTorch is as fast for a single query.
        several = queries.shape[1] > 1
        return self.score == "concat" and several and cpu.compiled(full_precision(queries[:0])[0])

    @fast_form(weigh, computes=[scores, additive_scores, masked_softmax], where=_has_kernel)
    def _weigh_fast(self, queries: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
        """Do what `weigh` does with a concat score: attention with coverage that has no weight."""
        q, k, v = full_precision(queries, keys, self.v.weight[0])
        if mask is None:
            mask = torch.ones(k.shape[:2], dtype=torch.bool)
        w = torch.zeros_like(v)
        coverage = k.new_zeros(len(k), 1, k.shape[1])
        with torch.autocast(queries.device.type, enabled=False):
            return _CompiledCoverage.apply(q[:, None], k, w, v, coverage, mask)[:, 0]


# ---------------------------------------------------------------------------------
# coverage


class CoverageAttention(nn.Module):
    r"""Attend to the source words at each step, and count how much attention each word has received
    so far:

    $cov_t = \sum_{t'<t}\alpha_{t'}$ (16),
    $\alpha_t = \mathrm{softmax}_i(v^\top\tanh(W_e h_i + W_d h_t + w_{cov}\,cov_{ti}))$ (17).
    """

    def __init__(self, query: int, key: int, width: int):
        super().__init__()
        self.query = nn.Linear(query, width, bias=False)  # W_d
        self.key = nn.Linear(key, width, bias=False)  # W_e
        self.coverage = nn.Parameter(torch.empty(width))  # w_cov
        self.v = nn.Parameter(torch.empty(width))
        bound = width**-0.5  # as nn.Linear does
        nn.init.uniform_(self.coverage, -bound, bound)
        nn.init.uniform_(self.v, -bound, bound)

    def project(self, keys: Tensor) -> Tensor:
        """Compute W_e h of all words [B, N, A]; call it once for each document."""
        return self.key(keys)

    def forward(
        self, queries: Tensor, projected: Tensor, mask: Tensor, coverage: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the weights alpha of all steps [B, K, T, N] and the coverage after the last
        [B, K, N].

        Args:
            queries: [B, K, T, query].
            projected: [B, N, A], from `project`.
            mask: [B, N], true for words.
            coverage: [B, K, N] before the first step; zeros for a new document.
        """
        queries, keys, coverage = full_precision(self.query(queries), projected, coverage)
        with torch.autocast(queries.device.type, enabled=False):
            return scan(self.attend, coverage, inputs=[queries], fixed=[keys, mask], dim=2)

    def attend(
        self, coverage: Tensor, query: Tensor, keys: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute one step: the weights alpha_t [B, K, N], and cov_{t+1} [B, K, N].

        Args:
            coverage: cov_t [B, K, N].
            query: [B, K, A].
            keys: [B, N, A].
            mask: [B, N].
        """
        # Autograd would store the tanh [B, K, N, A] of each step, which is A times larger than
        # alpha. Instead the backward pass computes it again.
        alpha = recomputed(self.weights, query, coverage, keys, mask)
        # cov_{t+1} = cov_t + alpha_t   (16)
        return alpha, coverage + alpha

    def weights(self, query: Tensor, coverage: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """Compute alpha_t [B, K, N] of one step."""
        w, v = full_precision(self.coverage, self.v)
        # alpha_t = softmax(v^T tanh(W_e h + W_d h_t + w_cov cov_t))   (17)
        sums = keys[:, None] + query[:, :, None] + coverage[..., None] * w  # [B, K, N, A]
        return masked_softmax(torch.tanh(sums) @ v, mask[:, None])

    def _has_kernel(self, coverage: Tensor, queries: Tensor, keys: Tensor, mask: Tensor) -> bool:
        return cpu.compiled(queries) or cpu.triton_runs(queries)

    @fast_form(attend, computes=[weights, masked_softmax], where=_has_kernel)
    def _attend_fast(
        self, coverage: Tensor, queries: Tensor, keys: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Do what `scan` does with `attend`: alpha [B, K, T, N] and the last coverage."""
        if cpu.compiled(queries):
            kernel: Any = _CompiledCoverage
        else:
            from lib.layers import gpu_kernels  # needs Triton

            kernel = gpu_kernels.CoverageScan
        w, v = full_precision(self.coverage, self.v)
        alpha = kernel.apply(queries, keys, w, v, coverage, mask)
        # cov_{T+1} = cov_1 + sum_t alpha_t   (16)
        return alpha, coverage + alpha.sum(2)


class _CompiledCoverage(torch.autograd.Function):
    """Compute alpha of all steps with CPU kernels, one document per thread."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        keys: Tensor,
        w: Tensor,
        v: Tensor,
        coverage: Tensor,
        mask: Tensor,
    ) -> Tensor:
        hypotheses, steps = queries.shape[1:3]
        alpha = queries.new_zeros(len(keys), hypotheses, steps, mask.shape[1])
        ctx.lengths = mask.sum(1).tolist()
        ctx.save_for_backward(queries, keys, w, v, coverage, alpha)
        q_, k_, w_, v_, c_, alpha_ = cpu.arrays(queries, keys, w, v, coverage, alpha)

        def document_forward(b: int, n: int) -> None:
            cpu.coverage_forward(q_[b], k_[b, :n], w_, v_, c_[b], alpha_[b])

        cpu.for_each_document(document_forward, ctx.lengths)
        return alpha

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_alpha: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, w, v, coverage, alpha = ctx.saved_tensors
        # The kernels need contiguous memory, which zeros_like does not promise.
        d_queries = queries.new_zeros(queries.shape)
        d_keys = keys.new_zeros(keys.shape)
        d_coverage = coverage.new_zeros(coverage.shape)
        # Every document has a row of its own: the sum does not depend on the order of the threads.
        d_w = w.new_zeros(len(keys), len(w))
        d_v = v.new_zeros(len(keys), len(v))
        q, k, w, v, c, a, d = cpu.arrays(queries, keys, w, v, coverage, alpha, d_alpha)
        dq, dk, dw, dv, dc = cpu.arrays(d_queries, d_keys, d_w, d_v, d_coverage)

        def document_backward(b: int, n: int) -> None:
            cpu.coverage_backward(
                q[b], k[b, :n], w, v, c[b], a[b], d[b], dq[b], dk[b, :n], dw[b], dv[b], dc[b]
            )

        cpu.for_each_document(document_backward, ctx.lengths)
        return d_queries, d_keys, d_w.sum(0), d_v.sum(0), d_coverage, None
