"""Attention: Luong's scores (2015), and the additive score with coverage of See et al. (2017), for many queries."""

import torch
from torch import Tensor, nn

SCORES = ("concat", "general", "dot")


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
        if score not in SCORES:
            raise ValueError(f"score must be one of {', '.join(SCORES)}, not {score!r}")
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
        """What the score needs of the keys, computed once: [..., n, key] -> [..., n, width]."""
        return keys if self.score == "dot" else self.key(keys)

    def forward(self, queries: Tensor, projected: Tensor, mask: Tensor | None = None) -> Tensor:
        """Weights [B, T, n] of `queries` [B, T, query] over `projected` keys [B, n, width], `mask` [B, n]."""
        if self.score == "concat":
            scores = self.v(torch.tanh(self.query(queries)[:, :, None] + projected[:, None])).squeeze(-1)
        else:
            scores = queries @ projected.transpose(1, 2)
        if mask is None:
            return full_precision(scores)[0].softmax(-1)
        return masked_softmax(scores, mask[:, None])


class CoverageAttention(nn.Module):
    r"""Additive attention with a coverage term, step by step:

    $\alpha_t = \mathrm{softmax}(v^\top\tanh(W_e h_i + W_d h_t + w_c\,cov_{ti}))$ with
    $cov_t = \sum_{t'<t}\alpha_{t'}$ (Mem2Mem, equations 16 and 17).
    """

    def __init__(self, query: int, key: int, width: int):
        super().__init__()
        self.query = nn.Linear(query, width, bias=False)  # W_d
        self.key = nn.Linear(key, width, bias=False)  # W_e
        self.coverage = nn.Parameter(torch.empty(width))  # w_c
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
            alpha = _CoverageScan.apply(*inputs, mask)
            return alpha, inputs[-1] + alpha.sum(2)


class _CoverageScan(torch.autograd.Function):
    """Keeps the weights alone; the backward pass computes the tanh [B, K, N, A] of each step again.

    With s = tanh' * v * d_score, every gradient is a product of d_score [N] or s with the matrix 1 - tanh² [N, A].
    """

    @staticmethod
    def forward(ctx, queries, keys, w, v, coverage, mask):
        steps = queries.shape[2]
        alpha = queries.new_empty(*coverage.shape[:2], steps, coverage.shape[2])
        closed = ~mask[:, None]  # [B, 1, N]
        running = coverage
        for t in range(steps):
            scores = _hidden(queries[:, :, t], keys, w, running) @ v  # [B, K, N]
            alpha[:, :, t] = scores.masked_fill_(closed, -torch.inf).softmax(-1)
            running = running + alpha[:, :, t]
        ctx.save_for_backward(queries, keys, w, v, coverage, alpha)
        return alpha

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_alpha):
        queries, keys, w, v, coverage, alpha = ctx.saved_tensors
        d_queries, d_keys, d_w, d_v = (torch.zeros_like(x) for x in (queries, keys, w, v))
        before = coverage[:, :, None] + alpha.cumsum(2) - alpha  # coverage at each step
        d_coverage = torch.zeros_like(coverage)
        for t in reversed(range(queries.shape[2])):
            a, d = alpha[:, :, t], d_alpha[:, :, t] + d_coverage
            d_score = a * (d - (a * d).sum(-1, keepdim=True))  # [B, K, N]
            hidden = _hidden(queries[:, :, t], keys, w, before[:, :, t])
            d_v += torch.mv(hidden.flatten(0, 2).T, d_score.flatten())
            slope = hidden.square_().neg_().add_(1)  # [B, K, N, A]
            rows = torch.stack([d_score, d_score * before[:, :, t]], dim=2) @ slope  # [B, K, 2, A]
            d_queries[:, :, t] = rows[:, :, 0] * v
            d_w += rows[:, :, 1].sum((0, 1)) * v
            d_coverage = d_coverage + d_score * (slope @ (v * w))
            if slope.shape[1] == 1:
                d_keys.addcmul_(slope[:, 0], d_score[:, 0, :, None])
            else:
                d_keys += (slope * d_score[..., None]).sum(1)
        return d_queries, d_keys * v, d_w, d_v, d_coverage, None


def _hidden(query: Tensor, keys: Tensor, w: Tensor, coverage: Tensor) -> Tensor:
    """tanh(keys + query + w * coverage) of one step: [B, K, N, A]."""
    return (keys[:, None] + query[:, :, None]).addcmul_(coverage[..., None], w).tanh_()
