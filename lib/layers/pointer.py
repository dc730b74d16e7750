"""The generate-or-copy distribution of See et al. (2017), and its loss (Mem2Mem, equations 13 to 15)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import in_vocabulary
from lib.layers.attention import full_precision


class GenerateOrCopy(nn.Module):
    r"""$P = z P_g + (1 - z) P_c$ over the vocabulary and the words of the source, with
    $P_g = \mathrm{softmax}(V f + b')$ of features f and $P_c(w) = \sum_{i:x_i=w}\gamma_i$.

    A model's own `forward` makes the features and the switch.
    """

    vocabulary: nn.Linear  # V, b'

    def log_prob(self, features: Tensor, switch: Tensor, copy: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """log P of the reference words, without the distribution over vocabulary and source.

        Args:
            features: [B, T, F], switch: [B, T] of `forward`.
            copy: [B, T, N], the weights gamma.
            source: [B, N] extended ids; target: [B, T] extended ids.

        Returns:
            [B, T]. A target in neither the vocabulary nor the source has the log of the smallest number.
        """
        known = target < self.vocabulary.out_features
        (scores,) = full_precision(self.vocabulary(features))
        generated = scores.gather(-1, target.where(known, 0)[..., None]).squeeze(-1) - scores.logsumexp(-1)
        generated = F.logsigmoid(switch) + generated.masked_fill(~known, -torch.inf)
        return torch.logaddexp(generated, _log_copied(switch, copy, source, target))

    def nll(
        self, features: Tensor, switch: Tensor, copy: Tensor, source: Tensor, target: Tensor, weights: Tensor
    ) -> Tensor:
        """The sum of -log P times `weights` [B, T] over the reference words, a scalar; the rest as in `log_prob`.

        The same number as from `log_prob`, in a fraction of its memory: the scores of the vocabulary [B, T, V] exist
        for a few words at a time. Words of weight 0, and those outside the vocabulary, are not scored at all.
        """
        copied = _log_copied(switch, copy, source, target)
        known = (target < self.vocabulary.out_features) & (weights > 0)
        only_copied = (weights * ~known * copied).sum()
        rows = features[known], target[known], F.logsigmoid(switch)[known], copied[known], weights[known]
        return _mixture_nll(self.vocabulary.weight, self.vocabulary.bias, *rows) - only_copied

    @torch.no_grad()
    def distribution(
        self, features: Tensor, switch: Tensor, copy: Tensor, source: Tensor, extra: int, out: Tensor | None = None
    ) -> Tensor:
        """P over the vocabulary and `extra` copy ids, for generation.

        Args:
            features: [R, F], switch: [R], copy: [R, N], source: [R, N] extended ids.
            out: what to write into, [R, V + extra] (new memory at every step takes as long as the scores).

        Returns:
            [R, V + extra]; 0 for copy ids that a source does not have.
        """
        z, known = switch.sigmoid()[:, None], self.vocabulary.out_features
        mixed = copy.new_empty(len(features), known + extra) if out is None else out
        scores = mixed[:, :known]  # in place from here: R * V numbers, no copies
        if torch.is_autocast_enabled(features.device.type):
            scores.copy_(self.vocabulary(features))
        else:
            torch.mm(features, self.vocabulary.weight.T, out=scores).add_(self.vocabulary.bias)
        scores.sub_(scores.amax(1, keepdim=True)).exp_()
        scores.mul_(z / scores.sum(1, keepdim=True))
        mixed[:, known:] = 0
        return mixed.scatter_add_(1, source, (1 - z) * copy)


class PointerGenerator(GenerateOrCopy):
    r"""Mem2Mem's: features $V'[h;c]+b$, a bottleneck, and
    $z = \sigma(w_c^\top c + w_d^\top h + w_x^\top x')$ (13 prints a softmax of that scalar, which would be 1)."""

    def __init__(self, hidden: int, context: int, embedding: int, bottleneck: int, vocab_size: int):
        super().__init__()
        self.bottleneck = nn.Linear(hidden + context, bottleneck)  # V', b
        self.vocabulary = nn.Linear(bottleneck, vocab_size)
        self.switch = nn.Linear(context + hidden + embedding, 1)  # w_c, w_d, w_x

    def forward(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """Features [..., bottleneck] of P_g and the score [...] of the switch (its sigmoid is z)."""
        features = self.bottleneck(torch.cat([hidden, context], -1))
        (switch,) = full_precision(self.switch(torch.cat([context, hidden, embedded], -1)).squeeze(-1))
        return features, switch


class Generator(GenerateOrCopy):
    """Nothing is copied: a switch that always says "generate". A copy id counts as [UNK]."""

    def __init__(self, hidden: int, context: int, embedding: int, bottleneck: int, vocab_size: int):
        super().__init__()
        self.bottleneck = nn.Linear(hidden + context, bottleneck)
        self.vocabulary = nn.Linear(bottleneck, vocab_size)

    def forward(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """Features [..., bottleneck] of P_g, and the score [...] of the switch, whose sigmoid is 1."""
        features = self.bottleneck(torch.cat([hidden, context], -1))
        return features, torch.full_like(full_precision(features)[0][..., 0], torch.inf)

    def log_prob(self, features, switch, copy, source, target):
        target = in_vocabulary(target, self.vocabulary.out_features)
        return super().log_prob(features, switch, copy, source, target)

    def nll(self, features, switch, copy, source, target, weights):
        target, counted = in_vocabulary(target, self.vocabulary.out_features), weights > 0
        rows = target[counted], weights[counted]
        return softmax_nll(features[counted], self.vocabulary.weight, self.vocabulary.bias, *rows)


def softmax_nll(features: Tensor, weight: Tensor, bias: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """The sum of -weight * log softmax(features W^T + b) at the target over M words: the same without copying.

    features: [M, F]; weight: [V, F], bias: [V]; target, weights: [M]. The scores exist for a few words at a time.
    """
    generated = torch.zeros_like(weights)
    return _mixture_nll(weight, bias, features, target, generated, torch.full_like(weights, -torch.inf), weights)


def _mixture_nll(weight: Tensor, bias: Tensor, features: Tensor, *rows: Tensor) -> Tensor:
    device = features.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    return _MixtureNLL.apply(weight, bias, features, *rows, dtype, torch.is_grad_enabled())


def _log_copied(switch: Tensor, copy: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """log of (1 - z) P_c at the target words, equation 14: [B, T]."""
    copied = (copy * (source[:, None] == target[..., None])).sum(-1)
    return F.logsigmoid(-switch) + copied.clamp_min(torch.finfo(copied.dtype).tiny).log()


class _MixtureNLL(torch.autograd.Function):
    """The sum of -weight * log(z P_g + (1 - z) P_c) over M words, with P_g = softmax(features W^T + b) at the target.

    log_z, log_copied, weights: [M]. The scores [M, V] are computed in chunks of words, and each chunk's gradient at
    once, while its scores are there: the loss is a sum, so its gradient only has to be scaled in the backward pass.
    """

    ENTRIES = 2**22  # of one chunk of scores

    @staticmethod
    def forward(ctx, weight, bias, features, target, log_z, log_copied, weights, dtype, training):
        ctx.gradients = _Gradients(weight, bias, features, log_z) if training else None
        matrix = weight.to(dtype or weight.dtype)
        total, rows = log_z.new_zeros(()), max(1, _MixtureNLL.ENTRIES // len(weight))
        for start in range(0, len(target), rows):
            part = slice(start, start + rows)
            inputs = features[part].to(matrix.dtype)
            (scores,) = full_precision(F.linear(inputs, matrix, bias.to(matrix.dtype)))  # [rows, V]
            scores.sub_(scores.amax(1, keepdim=True))
            generated = log_z[part] + scores.gather(1, target[part, None])[:, 0]
            normaliser = scores.exp_().sum(1)
            generated -= normaliser.log()
            log_p = torch.logaddexp(generated, log_copied[part])
            total -= weights[part] @ log_p
            if ctx.gradients is not None:
                slope = -weights[part] * (generated - log_p).exp()  # of the loss by log P_g
                scores.mul_((-slope / normaliser)[:, None])
                scores.scatter_add_(1, target[part, None], slope[:, None])
                ctx.gradients.add(part, scores, inputs, matrix, slope, -weights[part] - slope)
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, scale):
        g, ctx.gradients = ctx.gradients, None
        if g is None:
            raise RuntimeError("nll: its gradient is made once; call nll again to go backward a second time")
        for x in (g.weight, g.bias, g.features, g.log_z, g.log_copied):
            x.mul_(scale)
        return g.weight, g.bias, g.features, None, g.log_z, g.log_copied, None, None, None


class _Gradients:
    def __init__(self, weight: Tensor, bias: Tensor, features: Tensor, log_z: Tensor):
        self.weight, self.bias, self.features = (torch.zeros_like(x) for x in (weight, bias, features))
        self.log_z, self.log_copied = torch.zeros_like(log_z), torch.zeros_like(log_z)

    def add(self, part: slice, scores: Tensor, inputs: Tensor, matrix: Tensor, log_z: Tensor, log_copied: Tensor):
        self.bias += scores.sum(0)
        scores = scores.to(matrix.dtype)
        self.features[part] = scores @ matrix
        if matrix.dtype == self.weight.dtype:
            self.weight.addmm_(scores.T, inputs)
        else:
            self.weight += scores.T @ inputs
        self.log_z[part], self.log_copied[part] = log_z, log_copied
