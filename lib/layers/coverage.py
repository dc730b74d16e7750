"""Additive attention with coverage (See et al. 2017; Mem2Mem, equations 16 and 17), for many queries.

Compiled on a CPU, one Triton kernel on a GPU that has it, PyTorch elsewhere.
"""

import torch
from torch import Tensor, nn

from lib.layers.attention import CACHED, ON_A_GPU, add_weighted_, full_precision, hidden, slope_
from lib.layers.cpu_kernels import (
    arrays,
    compiled,
    coverage_backward,
    coverage_forward,
    for_each_document,
    triton_runs,
)

PADDING = -1e30  # a score whose exponential is 0; finite, so that a document without words has no NaN


class CoverageAttention(nn.Module):
    r"""Additive attention with a coverage term, step by step:

    $\alpha_t = \mathrm{softmax}(v^\top\tanh(W_e h_i + W_d h_t + w_{cov}\,cov_{ti}))$ with
    $cov_t = \sum_{t'<t}\alpha_{t'}$ (Mem2Mem, equations 16 and 17).
    """

    def __init__(self, query: int, key: int, width: int):
        super().__init__()
        self.query = nn.Linear(query, width, bias=False)  # W_d
        self.key = nn.Linear(key, width, bias=False)  # W_e
        self.coverage = nn.Parameter(torch.empty(width))  # w_cov
        self.v = nn.Parameter(torch.empty(width))
        bound = width**-0.5
        nn.init.uniform_(self.coverage, -bound, bound)
        nn.init.uniform_(self.v, -bound, bound)

    def project(self, keys: Tensor) -> Tensor:
        """W_e h for all words, computed once: [B, N, key] -> [B, N, width]."""
        return self.key(keys)

    def forward(self, queries: Tensor, projected: Tensor, mask: Tensor, coverage: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of all steps, and the coverage after the last.

        Args:
            queries: [B, K, T, query], for K hypotheses of each document.
            projected: [B, N, width] of `project`.
            mask: [B, N].
            coverage: [B, K, N], the sum of the weights of earlier steps.

        Returns:
            weights [B, K, T, N] and coverage [B, K, N].
        """
        inputs = full_precision(self.query(queries), projected, self.coverage, self.v, coverage)
        with torch.autocast(queries.device.type, enabled=False):
            alpha = _scan_for(inputs[0]).apply(*inputs, mask)
            return alpha, inputs[-1] + alpha.sum(2)


def _scan_for(values: Tensor) -> type[torch.autograd.Function]:
    """The scan that is fastest for numbers of this kind."""
    if compiled(values):
        return _CompiledScan
    if triton_runs(values):
        from lib.layers import gpu_kernels  # needs Triton

        return gpu_kernels.CoverageScan
    return _CoverageScan


class _CoverageScan(torch.autograd.Function):
    """Compute alpha of all steps in a loop over the steps, by PyTorch's operations.

    Autograd would store tanh(...) [B, K, T, N, A], which is A times larger than alpha. This function stores only
    alpha, and computes each tanh again in the backward pass. There, only a recursion over numbers [B, K, N] goes step
    by step; what has a tanh is computed for many steps at once, so that a GPU gets few and large operations.
    """

    @staticmethod
    def forward(ctx, queries, keys, w, v, coverage, mask):
        alpha = queries.new_empty(queries.shape[2], *coverage.shape)  # time comes first: each step is contiguous
        padding = torch.zeros_like(mask, dtype=keys.dtype).masked_fill_(~mask, PADDING)
        padding = padding[:, None].expand_as(coverage).flatten()
        cov = coverage.clone()
        for t in range(len(alpha)):
            # alpha_t = softmax(v^T tanh(W_e h + W_d h_t + w_cov cov_t))   (17)
            h = hidden(queries[:, :, t], keys, w, cov)  # [B, K, N, A]
            scores = torch.addmv(padding, h.flatten(0, 2), v).view_as(cov)
            torch.softmax(scores, -1, out=alpha[t])
            # cov_{t+1} = cov_t + alpha_t   (16)
            cov += alpha[t]
        alpha = alpha.masked_fill_(~mask[:, None], 0).movedim(0, 2)
        ctx.save_for_backward(queries, keys, w, v, coverage, alpha)
        return alpha

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_alpha):
        queries, keys, w, v, coverage, alpha = ctx.saved_tensors
        steps = queries.shape[2]
        cov = coverage[:, :, None] + alpha.cumsum(2) - alpha  # cov_t of all steps, before alpha_t is added
        most = CACHED if keys.device.type == "cpu" else ON_A_GPU
        size = max(1, most // (keys.numel() * queries.shape[1]))
        parts = [slice(start, start + size) for start in range(0, steps, size)]

        def tanh(at: slice) -> Tensor:
            return hidden(queries[:, :, at].flatten(1, 2), keys, w, cov[:, :, at].flatten(1, 2))  # [B, K * n, N, A]

        # score = v^T h with h = tanh(x), so d(score) / d(cov) = (1 - h^2)^T (v w).
        slopes = torch.cat([(slope_(tanh(at)) @ (v * w)).unflatten(1, (*alpha.shape[1:2], -1)) for at in parts], 2)

        # alpha_t reaches the loss directly and through cov_{t+1}; then the gradient of a softmax.
        d_score = torch.empty_like(alpha.movedim(2, 0))
        d_coverage = torch.zeros_like(coverage)
        by_step = zip(d_score, d_alpha.movedim(2, 0), alpha.movedim(2, 0), slopes.movedim(2, 0))
        for d_scores, d_weights, weights, slope in reversed(list(by_step)):
            total = d_weights + d_coverage
            torch.ops.aten._softmax_backward_data.out(total, weights, -1, total.dtype, grad_input=d_scores)
            d_coverage.addcmul_(d_scores, slope)
        d_score = d_score.movedim(0, 2)  # [B, K, T, N]

        # x = W_e h_i + W_d h_t + w cov and d_x = d_score v (1 - h^2). The factor v comes after the sums.
        d_queries = torch.empty_like(queries)
        d_keys = torch.zeros_like(keys)
        d_w = torch.zeros_like(w)
        d_v = torch.zeros_like(v)
        for at in parts:
            ds, c = d_score[:, :, at].flatten(1, 2), cov[:, :, at].flatten(1, 2)
            h = tanh(at)
            d_v += torch.mv(h.flatten(0, 2).T, ds.flatten())
            slope = slope_(h)
            sums = torch.stack([ds, ds * c], dim=2) @ slope  # [B, K * n, 2, A]
            d_queries[:, :, at] = (sums[:, :, 0] * v).view_as(d_queries[:, :, at])
            d_w += sums[:, :, 1].sum((0, 1)) * v
            add_weighted_(d_keys, slope, ds)  # overwrites slope
        return d_queries, d_keys * v, d_w, d_v, d_coverage, None


class _CompiledScan(torch.autograd.Function):
    """`_CoverageScan` by the kernels, a document a thread, the longest first."""

    @staticmethod
    def forward(ctx, queries, keys, w, v, coverage, mask):
        alpha = queries.new_zeros(*queries.shape[:3], mask.shape[1])
        ctx.lengths = mask.sum(1).tolist()
        ctx.save_for_backward(queries, keys, w, v, coverage, alpha)
        q, k, w, v, c, out = arrays(queries, keys, w, v, coverage, alpha)
        for_each_document(lambda b, n: coverage_forward(q[b], k[b, :n], w, v, c[b], out[b]), ctx.lengths)
        return alpha

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_alpha):
        queries, keys, w, v, coverage, alpha = ctx.saved_tensors
        d_queries, d_keys, d_coverage = (x.new_zeros(x.shape) for x in (queries, keys, coverage))
        d_w, d_v = (x.new_zeros(len(keys), len(x)) for x in (w, v))  # of each document: their sum has one order
        q, k, w, v, c, a, d = arrays(queries, keys, w, v, coverage, alpha, d_alpha)
        dq, dk, dw, dv, dc = arrays(d_queries, d_keys, d_w, d_v, d_coverage)

        def of_document(b: int, n: int) -> None:
            gradients = dq[b], dk[b, :n], dw[b], dv[b], dc[b]
            coverage_backward(q[b], k[b, :n], w, v, c[b], a[b], d[b], *gradients)

        for_each_document(of_document, ctx.lengths)
        return d_queries, d_keys, d_w.sum(0), d_v.sum(0), d_coverage, None
