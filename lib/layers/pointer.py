"""Log-probabilities of words: a softmax over a vocabulary, and the mixture of generating and copying.

See et al. (2017); Mem2Mem, equations 13 to 15.

Shapes: R decoder rows (one per hypothesis), T target words, M source words, F features, V words of the vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.vocabulary import UNK
from lib.layers.attention import full_precision
from lib.training.devices import room_on


@dataclass(frozen=True)
class DecoderOutput:
    """A decoder's output for T target positions of R hypotheses."""

    features: Tensor  # [R, T, F], of which a linear layer makes the scores of the vocabulary


@dataclass(frozen=True)
class PointerOutput(DecoderOutput):
    """The output of a decoder that generates a word or copies one of M source words."""

    switch: Tensor  # [R, T] score whose sigmoid is z, the probability of generating; infinite: nothing is copied
    copy: Tensor  # [R, T, M] gamma, the weights of the source words
    source: Tensor  # [R, M] their extended ids


class PointerGenerator(nn.Module):
    """The layers that make features and switch: a bottleneck before the vocabulary, and a scalar (13).

    Equation 13 prints a softmax of that scalar, which would be 1. We read a sigmoid.
    """

    def __init__(self, inputs: int, switch: int | None, bottleneck: int, vocab_size: int):
        """inputs, switch: widths of what the two layers read. Without a switch nothing is copied."""
        super().__init__()
        self.bottleneck = nn.Linear(inputs, bottleneck)  # V', b
        self.vocabulary = nn.Linear(bottleneck, vocab_size)  # V, b'
        self.switch = nn.Linear(switch, 1) if switch else None  # w_c, w_d, w_x

    def forward(self, inputs: Tensor, switch_inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Compute features [..., F] and the score [...] of the switch."""
        features = self.bottleneck(inputs)
        if self.switch is None:
            return features, torch.full_like(full_precision(features)[0][..., 0], torch.inf)
        return features, full_precision(self.switch(switch_inputs).squeeze(-1))[0]


def mixture_log_prob(
    output: PointerOutput, target: Tensor, weight: Tensor, bias: Tensor, places: Tensor | None = None
) -> Tensor:
    """Compute log P [R, T] of the target words, without the distribution over vocabulary and source.

    target: [R, T] extended ids. A word that is neither in the vocabulary nor in the source has the log of the
    smallest number. weight, bias, places: as in `target_scores`.
    """
    known = target < len(weight)
    target = target.where(known | output.switch.isfinite(), UNK)  # where nothing is copied, a copy id is [UNK]
    known = target < len(weight)
    score, normaliser = target_scores(output.features, weight, bias, target.where(known, 0), places)
    # P_g = softmax(V f + b'),  P_c(w) = sum_{i: x_i = w} gamma_i   (13, 14)
    generated = (score - normaliser).masked_fill(~known, -torch.inf)
    copied = (output.copy * (output.source[:, None] == target[..., None])).sum(-1)
    copied = copied.clamp_min(torch.finfo(copied.dtype).tiny).log()
    # P = z P_g + (1 - z) P_c   (15)
    return torch.logaddexp(F.logsigmoid(output.switch) + generated, F.logsigmoid(-output.switch) + copied)


def mixture_distribution(output: PointerOutput, weight: Tensor, bias: Tensor, extra: int) -> Tensor:
    """Compute P of every word after the last position: [R, V + extra] with `extra` copy ids."""
    z = output.switch[:, -1:].sigmoid()
    rest = (-output.switch[:, -1:]).sigmoid()  # 1 - z, without cancellation
    scores = full_precision(F.linear(output.features[:, -1], weight, bias))[0]
    generated = F.pad(z * scores.softmax(1), (0, extra))
    return generated.scatter_add(1, output.source, (rest * output.copy[:, -1]).to(generated.dtype))


def bar_words(p: Tensor, barred: Tensor) -> Tensor:
    """Set P of the barred words of each row to 0: [R, W].

    p: [R, W + 1], of which the last column is of no word; it is changed. barred: [R, M] ids, -1 is none. One
    operation writes all zeros, and no number comes from the host, which would have to wait for the GPU.
    """
    return p.scatter_(1, barred % p.shape[1], 0)[:, :-1]


def target_scores(
    features: Tensor, weight: Tensor, bias: Tensor, target: Tensor, places: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Compute the scores s_y of target words y, and log sum exp s, of s = W f + b: [R, T] each.

    The scores s of the vocabulary exist for a few words at a time. features: [R, T, F]; weight: [V, F]; bias: [V];
    target: [R, T]. places: those of the flat [R * T] that are computed; elsewhere both results are 0. A GPU would be
    waited for to find them, so that they are made on the host with the batch.
    """
    rows, words = features.flatten(0, 1), target.flatten()
    if places is not None:
        rows, words = rows.index_select(0, places), words.index_select(0, places)
    device = features.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
    both = _TargetScores.apply(rows, weight, bias, words, dtype)  # [2, W]
    if places is not None:
        both = both.new_zeros(2, target.numel()).index_copy(1, places, both)
    score, normaliser = both.view(2, *target.shape)
    return score, normaliser


SAVED = 2**28  # bytes of scores that are saved for the backward pass, or as many as `room_on` allows


class _TargetScores(torch.autograd.Function):
    """Compute s_y and log sum exp s in chunks of words.

    Many scores are not saved: the backward pass computes them again, for a third more time. dtype: of the products
    with W; sums are in full precision.
    """

    @staticmethod
    def forward(ctx, features, weight, bias, target, dtype):
        ctx.dtype = dtype
        ctx.save_for_backward(features, weight, bias, target)
        ctx.scores = []
        inputs, matrix = features.to(dtype), weight.to(dtype)
        found = bias.new_empty(2, len(target))
        saved = 4 * len(weight) * len(target) <= max(SAVED, room_on(weight.device))
        for part in _chunks(len(target), weight):
            scores = _scores(inputs[part], matrix, bias)
            found[0, part] = scores.gather(1, target[part, None])[:, 0]
            torch.logsumexp(scores, 1, out=found[1, part])
            if saved and any(ctx.needs_input_grad):
                ctx.scores.append(scores)
        return found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_found):
        features, weight, bias, target = ctx.saved_tensors
        inputs, matrix = features.to(ctx.dtype), weight.to(ctx.dtype)
        d_features = torch.zeros_like(features)
        d_weight = torch.zeros_like(weight)
        d_bias = torch.zeros_like(bias)
        saved, ctx.scores = ctx.scores[::-1], []
        for part in _chunks(len(target), weight):
            scores = saved.pop() if saved else _scores(inputs[part], matrix, bias)
            # d(log sum exp s) / ds = softmax(s), and s_y is one of the scores.
            d_scores = torch.softmax(scores, 1, out=scores).mul_(d_found[1, part, None])
            d_scores.scatter_add_(1, target[part, None], d_found[0, part, None])
            d_bias += d_scores.sum(0)
            d_scores = d_scores.to(ctx.dtype)
            d_features[part] = d_scores @ matrix
            if matrix.dtype == d_weight.dtype:
                d_weight.addmm_(d_scores.T, inputs[part])
            else:
                d_weight += d_scores.T @ inputs[part]
        return d_features, d_weight, d_bias, None, None


def _chunks(words: int, weight: Tensor) -> list[slice]:
    size = max(1, room_on(weight.device) // (4 * len(weight)))
    return [slice(start, start + size) for start in range(0, words, size)]


def _scores(inputs: Tensor, matrix: Tensor, bias: Tensor) -> Tensor:
    return full_precision(inputs @ matrix.T)[0].add_(bias)
