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

    def project_queries(self, queries: Tensor) -> Tensor:
        """What the score needs of the queries: [..., query] -> [..., width]."""
        return self.query(queries) if self.score == "concat" else queries

    def forward(self, queries: Tensor, keys: Tensor, mask: Tensor | None = None) -> Tensor:
        """Weights [B, T, n] of projected queries [B, T, width] over projected keys [B, n, width], `mask` [B, n]."""
        if self.score == "concat":
            inputs = full_precision(queries, keys, self.v.weight[0])
            with torch.autocast(queries.device.type, enabled=False):
                scores = _AdditiveScores.apply(*inputs)
        else:
            (scores,) = full_precision(queries @ keys.transpose(1, 2))
        return scores.softmax(-1) if mask is None else masked_softmax(scores, mask[:, None])


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


# Numbers of one step's tanh [documents, K, N, A] that a CPU's cache holds: more documents than fit are scanned one
# group after the other. A GPU takes all at once.
CACHED = 2**19


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
    """Keeps the weights alone; the backward pass computes the tanh [B, K, N, A] of each step again.

    With s = tanh' * v * d_score, every gradient is a product of d_score [N] or s with the matrix 1 - tanh² [N, A].
    """

    @staticmethod
    def forward(ctx, queries, keys, w, v, coverage, mask):
        ctx.groups = _groups(mask, keys.shape[2] * queries.shape[1])
        alpha = queries.new_zeros(*queries.shape[:3], mask.shape[1])
        for rows, words in ctx.groups:
            closed, running = ~mask[rows, None, :words], coverage[rows, :, :words]
            for t in range(queries.shape[2]):
                scores = _hidden(queries[rows, :, t], keys[rows, :words], w, running) @ v  # [B, K, N]
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
                hidden = _hidden(queries[rows, :, t], keys[rows, :words], w, before[:, :, t])
                d_v += torch.mv(hidden.flatten(0, 2).T, d_score.flatten())
                slope = _slope_(hidden)  # [B, K, N, A]
                sums = torch.stack([d_score, d_score * before[:, :, t]], dim=2) @ slope  # [B, K, 2, A]
                d_queries[rows, :, t] = sums[:, :, 0] * v
                d_w += sums[:, :, 1].sum((0, 1)) * v
                d_cov += d_score * (slope @ (v * w))
                _add_weighted_(d_key, slope, d_score)
            d_keys[rows, :words] = d_key * v
        return d_queries, d_keys, d_w, d_v, d_coverage, None


class _AdditiveScores(torch.autograd.Function):
    """v^T tanh(q + k) [B, T, n] for queries [B, T, A] and keys [B, n, A]; the tanh is computed again in the backward
    pass, for as many queries at once as the cache holds."""

    @staticmethod
    def forward(ctx, queries, keys, v):
        ctx.save_for_backward(queries, keys, v)
        ctx.steps = max(1, CACHED // keys.numel()) if keys.device.type == "cpu" else queries.shape[1]
        return torch.cat([_hidden(part, keys) @ v for part in queries.split(ctx.steps, 1)], 1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_scores):
        queries, keys, v = ctx.saved_tensors
        d_queries, d_key, d_v = [], torch.zeros_like(keys), torch.zeros_like(v)
        for part, d_score in zip(queries.split(ctx.steps, 1), d_scores.split(ctx.steps, 1)):
            hidden = _hidden(part, keys)  # [B, t, n, A]
            d_v += torch.mv(hidden.flatten(0, 2).T, d_score.flatten())
            slope = _slope_(hidden)
            d_queries.append((d_score[:, :, None] @ slope).squeeze(2) * v)
            _add_weighted_(d_key, slope, d_score)
        return torch.cat(d_queries, 1), d_key * v, d_v


def _hidden(query: Tensor, keys: Tensor, w: Tensor | None = None, coverage: Tensor | None = None) -> Tensor:
    """tanh(keys + query + w * coverage): [B, K, N, A] for queries [B, K, A], keys [B, N, A], coverage [B, K, N]."""
    hidden = keys[:, None] + query[:, :, None]
    if coverage is not None and w is not None:
        hidden.addcmul_(coverage[..., None], w)
    return hidden.tanh_()


def _slope_(hidden: Tensor) -> Tensor:
    """1 - tanh², in the place of tanh."""
    return torch.addcmul(hidden.new_ones(()), hidden, hidden, value=-1, out=hidden)


def _add_weighted_(total: Tensor, slope: Tensor, weights: Tensor) -> None:
    """total [B, N, A] += the sum over K of slope [B, K, N, A] * weights [B, K, N]."""
    if slope.shape[1] == 1:
        total.addcmul_(slope[:, 0], weights[:, 0, :, None])
    else:
        total += slope.mul_(weights[..., None]).sum(1)
