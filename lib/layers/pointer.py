"""The generate-or-copy distribution of See et al. (2017), and its loss (Mem2Mem, equations 13 to 15)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.text import PAD
from lib.layers.attention import full_precision


class PointerGenerator(nn.Module):
    r"""$P = z P_g + (1 - z) P_c$ over the vocabulary and the words of the source.

    $P_g = \mathrm{softmax}(V(V'[h;c]+b)+b')$ through a bottleneck;
    $z = \sigma(w_c^\top c + w_d^\top h + w_x^\top x')$ (13 prints a softmax of that scalar, which would be 1);
    $P_c(w) = \sum_{i:x_i=w}\gamma_i$.
    """

    def __init__(self, hidden: int, context: int, embedding: int, bottleneck: int, vocab_size: int):
        super().__init__()
        self.bottleneck = nn.Linear(hidden + context, bottleneck)  # V', b
        self.vocabulary = nn.Linear(bottleneck, vocab_size)  # V, b'
        self.switch = nn.Linear(context + hidden + embedding, 1)  # w_c, w_d, w_x

    def forward(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """Features [..., bottleneck] of P_g and the score [...] of the switch (its sigmoid is z)."""
        features = self.bottleneck(torch.cat([hidden, context], -1))
        (switch,) = full_precision(self.switch(torch.cat([context, hidden, embedded], -1)).squeeze(-1))
        return features, switch

    def log_prob(self, features: Tensor, switch: Tensor, copy: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """log P of the reference words, without the distribution over vocabulary and source.

        Args:
            features: [B, T, bottleneck], switch: [B, T] of `forward`.
            copy: [B, T, N], the weights gamma.
            source: [B, N] extended ids; target: [B, T] extended ids, [PAD] where there is none.

        Returns:
            [B, T]. A target in neither the vocabulary nor the source has the log of the smallest number, and so has
            [PAD].
        """
        known = (target < self.vocabulary.out_features) & (target != PAD)
        generated = torch.full_like(switch, -torch.inf)
        generated = generated.index_put((known,), self._log_generated(features[known], target[known]))
        copied = (copy * (source[:, None] == target[..., None])).sum(-1)  # equation 14
        return torch.logaddexp(
            F.logsigmoid(switch) + generated,
            F.logsigmoid(-switch) + copied.clamp_min(torch.finfo(copied.dtype).tiny).log(),
        )

    def _log_generated(self, features: Tensor, target: Tensor) -> Tensor:
        """log P_g of one word each: features [M, bottleneck], target [M] -> [M]."""
        inputs = full_precision(features, self.vocabulary.weight, self.vocabulary.bias)
        with torch.autocast(features.device.type, enabled=False):
            return _LogSoftmaxAt.apply(*inputs, target)

    def log_distribution(self, features: Tensor, switch: Tensor, copy: Tensor, source: Tensor, extra: int) -> Tensor:
        """log P over the vocabulary and `extra` copy ids, for generation.

        Args:
            features: [R, bottleneck], switch: [R], copy: [R, N], source: [R, N] extended ids.

        Returns:
            [R, V + extra]; -inf for copy ids that a source does not have.
        """
        (logits,) = full_precision(self.vocabulary(features))
        z = switch.sigmoid()[:, None]
        mixed = F.pad(z * logits.softmax(-1), (0, extra))
        return mixed.scatter_add(1, source, (1 - z) * copy).log()


class _LogSoftmaxAt(torch.autograd.Function):
    """log softmax(features W^T + b) at one word of each row, [M]. Keeps one number a row: the scores of the
    vocabulary, [M, V], are computed in chunks of rows, and again in the backward pass."""

    ENTRIES = 2**23  # of one chunk of scores

    @staticmethod
    def forward(ctx, features, weight, bias, target):
        total, chosen = features.new_empty(len(features)), features.new_empty(len(features))
        ctx.rows = max(1, _LogSoftmaxAt.ENTRIES // len(weight))
        for part in _chunks(len(features), ctx.rows):
            scores = torch.addmm(bias, features[part], weight.T)
            total[part] = scores.logsumexp(1)
            chosen[part] = scores.gather(1, target[part, None])[:, 0]
        ctx.save_for_backward(features, weight, bias, target, total)
        return chosen - total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        features, weight, bias, target, total = ctx.saved_tensors
        d_features, d_weight, d_bias = (torch.zeros_like(x) for x in (features, weight, bias))
        for part in _chunks(len(features), ctx.rows):
            d_scores = torch.addmm(bias, features[part], weight.T).sub_(total[part, None]).exp_()
            d_scores.mul_(-gradient[part, None])
            d_scores.scatter_add_(1, target[part, None], gradient[part, None])
            d_features[part] = d_scores @ weight
            d_weight.addmm_(d_scores.T, features[part])
            d_bias += d_scores.sum(0)
        return d_features, d_weight, d_bias, None


def _chunks(rows: int, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, rows, size)]
