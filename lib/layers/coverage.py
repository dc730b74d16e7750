"""Additive attention with coverage (See et al. 2017; Mem2Mem, equations 16 and 17).

Shapes: B documents, K hypotheses of each, T target words, N source words, A attention width.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lib.layers.attention import full_precision, masked_softmax
from lib.layers.cpu_kernels import (
    arrays,
    compiled,
    coverage_backward,
    coverage_forward,
    for_each_document,
    triton_runs,
)


class CoverageAttention(nn.Module):
    r"""Attend to the source words at each step, and count how much attention each word has received so far:

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

    def forward(self, queries: Tensor, projected: Tensor, mask: Tensor, coverage: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights alpha of all steps [B, K, T, N] and the coverage after the last [B, K, N].

        Args:
            queries: [B, K, T, query].
            projected: [B, N, A], from `project`.
            mask: [B, N], true for words.
            coverage: [B, K, N] before the first step; zeros for a new document.
        """
        inputs = full_precision(self.query(queries), projected, self.coverage, self.v, coverage)
        scan: Callable[..., Tensor] = coverage_scan
        if compiled(inputs[0]):
            scan = _CompiledScan.apply
        elif triton_runs(inputs[0]):
            from lib.layers import gpu_kernels  # needs Triton

            scan = gpu_kernels.CoverageScan.apply
        with torch.autocast(queries.device.type, enabled=False):
            alpha = scan(*inputs, mask)
            return alpha, inputs[-1] + alpha.sum(2)


def coverage_scan(queries: Tensor, keys: Tensor, w: Tensor, v: Tensor, coverage: Tensor, mask: Tensor) -> Tensor:
    """Compute alpha of all steps [B, K, T, N] by PyTorch's operations.

    Autograd would store tanh(...) [B, K, T, N, A], which is A times larger than alpha. Instead the backward pass
    computes each step's tanh again.
    """

    def attend(query: Tensor, coverage: Tensor) -> Tensor:
        # alpha_t = softmax(v^T tanh(W_e h + W_d h_t + w_cov cov_t))   (17)
        hidden = torch.tanh(keys[:, None] + query[:, :, None] + coverage[..., None] * w)  # [B, K, N, A]
        return masked_softmax(hidden @ v, mask[:, None])

    alphas = []
    for query in queries.unbind(2):
        alpha = checkpoint(attend, query, coverage, use_reentrant=False, preserve_rng_state=False)
        # cov_{t+1} = cov_t + alpha_t   (16)
        coverage = coverage + alpha
        alphas.append(alpha)
    return torch.stack(alphas, 2)


class _CompiledScan(torch.autograd.Function):
    """Compute what `coverage_scan` does with CPU kernels, one document per thread."""

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
        # The kernels need contiguous memory, which zeros_like does not promise.
        d_queries = queries.new_zeros(queries.shape)
        d_keys = keys.new_zeros(keys.shape)
        d_coverage = coverage.new_zeros(coverage.shape)
        # Every document has a row of its own, so that the sum does not depend on the order of the threads.
        d_w = w.new_zeros(len(keys), len(w))
        d_v = v.new_zeros(len(keys), len(v))
        q, k, w, v, c, a, d = arrays(queries, keys, w, v, coverage, alpha, d_alpha)
        dq, dk, dw, dv, dc = arrays(d_queries, d_keys, d_w, d_v, d_coverage)

        def document_backward(b: int, n: int) -> None:
            coverage_backward(q[b], k[b, :n], w, v, c[b], a[b], d[b], dq[b], dk[b, :n], dw[b], dv[b], dc[b])

        for_each_document(document_backward, ctx.lengths)
        return d_queries, d_keys, d_w.sum(0), d_v.sum(0), d_coverage, None
