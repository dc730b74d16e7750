"""Additive attention with coverage (See et al. 2017), for many queries: compiled on a CPU, PyTorch elsewhere."""

import torch
from torch import Tensor, nn

from lib.layers.attention import CACHED, add_weighted_, full_precision, hidden, slope_
from lib.layers.kernels import arrays, compiled, coverage_backward, coverage_forward, for_each_document


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
            scan = _CompiledScan if compiled(inputs[0]) else _CoverageScan
            alpha = scan.apply(*inputs, mask)
            return alpha, inputs[-1] + alpha.sum(2)


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


def _groups(mask: Tensor, each: int) -> list[tuple[slice, int]]:
    """Documents to scan together, as slices, and the longest source of each slice, so that padding is not computed.

    mask: [B, N]; each: numbers of a document's tanh for one word.
    """
    documents, words = mask.shape
    if mask.device.type != "cpu":
        return [(slice(0, documents), words)]
    size = max(1, CACHED // (words * each))
    lengths = (mask * torch.arange(1, words + 1)).amax(1).tolist()
    return [(slice(i, i + size), max(lengths[i : i + size])) for i in range(0, documents, size)]


class _CoverageScan(torch.autograd.Function):
    """Attention with coverage that saves the weights alone: the backward pass computes each tanh [B, K, N, A] again.

    With s = tanh' * v * d_score, every gradient is a product of d_score [N] or s with the matrix 1 - tanh² [N, A].
    """

    @staticmethod
    def forward(ctx, queries, keys, w, v, coverage, mask):
        ctx.groups = _groups(mask, keys.shape[2] * queries.shape[1])
        alpha = queries.new_zeros(*queries.shape[:3], mask.shape[1])
        for rows, words in ctx.groups:
            closed, running = ~mask[rows, None, :words], coverage[rows, :, :words]
            for t in range(queries.shape[2]):
                scores = hidden(queries[rows, :, t], keys[rows, :words], w, running) @ v  # [B, K, N]
                weights = scores.masked_fill_(closed, -torch.inf).softmax(-1)
                alpha[rows, :, t, :words] = weights
                running = running + weights
        ctx.save_for_backward(queries, keys, w, v, coverage, alpha)
        return alpha

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_alpha):
        queries, keys, w, v, coverage, alpha = ctx.saved_tensors
        d_queries, d_keys, d_w, d_v, d_coverage = (torch.zeros_like(x) for x in (queries, keys, w, v, coverage))
        for rows, words in ctx.groups:
            a, d = alpha[rows, ..., :words], d_alpha[rows, ..., :words]
            before = coverage[rows, :, None, :words] + a.cumsum(2) - a  # coverage at each step
            d_cov, d_key = d_coverage[rows, :, :words], torch.zeros_like(keys[rows, :words])
            for t in reversed(range(queries.shape[2])):
                total = d[:, :, t] + d_cov
                d_score = a[:, :, t] * (total - (a[:, :, t] * total).sum(-1, keepdim=True))  # [B, K, N]
                made = hidden(queries[rows, :, t], keys[rows, :words], w, before[:, :, t])
                d_v += torch.mv(made.flatten(0, 2).T, d_score.flatten())
                slope = slope_(made)  # [B, K, N, A]
                sums = torch.stack([d_score, d_score * before[:, :, t]], dim=2) @ slope  # [B, K, 2, A]
                d_queries[rows, :, t] = sums[:, :, 0] * v
                d_w += sums[:, :, 1].sum((0, 1)) * v
                d_cov += d_score * (slope @ (v * w))
                add_weighted_(d_key, slope, d_score)
            d_keys[rows, :words] = d_key * v
        return d_queries, d_keys, d_w, d_v, d_coverage, None
