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


SAVED = 2**30  # bytes of scores that are saved for the backward pass, or as many as `room_on` allows


class _TargetScores(torch.autograd.Function):
    """Compute s_y and log sum exp s in chunks of words.

    Many scores are not saved: the backward pass computes them again, for a third more time. dtype: of the products
    with W; sums are in full precision.
    """

    @staticmethod
    def forward(ctx, features, weight, bias, target, dtype):
        ctx.dtype = dtype
        ctx.save_for_backward(features, weight, bias, target)
        inputs, matrix = features.to(dtype), weight.to(dtype)
        found, parts = bias.new_empty(4, len(target)), _chunks(len(target), weight)
        rows = parts[0].stop if parts else 0
        saved = dtype.itemsize * len(weight) * len(target) <= max(SAVED, room_on(weight.device))
        saved = saved and any(ctx.needs_input_grad)
        space = inputs.new_empty(len(target) if saved else rows, len(weight))
        scratch = None if dtype == bias.dtype else bias.new_empty(rows, len(weight))
        for part in parts:
            out = space[part] if saved else space[: len(inputs[part])]
            found[:, part] = _scores(inputs[part], matrix, bias, target[part, None], out, scratch)
        ctx.found, ctx.exponentials = found[2:], space if saved else None
        return found[:2]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_found):
        features, weight, bias, target = ctx.saved_tensors
        inputs, matrix = features.to(ctx.dtype), weight.to(ctx.dtype)
        right, total = ctx.found
        # d(log sum exp s) / ds = exp(s - largest) / total, and s_y, one of the scores, has a second gradient. What
        # is computed for each score is two products; the factors of a word come before or after them.
        scale = d_found[1] / total
        d_right = d_found[0] + scale * right
        d_features = weight.index_select(0, target) * d_right[:, None]
        d_weight = torch.zeros_like(weight).index_add_(0, target, features * d_right[:, None])
        d_bias = torch.zeros_like(bias).index_add_(0, target, d_right)
        scaled = (features * scale[:, None]).to(ctx.dtype)
        exponentials, ctx.exponentials = ctx.exponentials, None
        for part in _chunks(len(target), weight) if exponentials is None else [slice(None)]:
            e = exponentials
            if e is None:
                e = inputs.new_empty(len(inputs[part]), len(weight))
                _scores(inputs[part], matrix, bias, target[part, None], e)
            d_features[part] += (e @ matrix) * scale[part, None]
            d_weight += e.T @ scaled[part]
            d_bias += e.T @ scale[part].to(ctx.dtype)
        return d_features, d_weight, d_bias, None, None


def _chunks(words: int, weight: Tensor) -> list[slice]:
    size = max(1, room_on(weight.device) // (4 * len(weight)))
    return [slice(start, min(start + size, words)) for start in range(0, words, size)]


def _scores(
    inputs: Tensor, matrix: Tensor, bias: Tensor, target: Tensor, out: Tensor, scratch: Tensor | None = None
) -> Tensor:
    """Return s_y, log sum exp s, e_y and the sum of all e = exp(s - the largest): [4, W]. e is left in `out` [W, V],
    0 for y. scratch: [at least W, V], memory for scores in full precision."""
    torch.mm(inputs, matrix.T, out=out)
    scores = full_precision(out)[0] if scratch is None else scratch[: len(out)].copy_(out)
    scores.add_(bias)
    score, largest = scores.gather(1, target), scores.amax(1, keepdim=True)
    total = scores.sub_(largest).exp_().sum(1)
    right = scores.gather(1, target)[:, 0]
    out.copy_(scores.scatter_(1, target, 0))
    return torch.stack([score[:, 0], largest[:, 0] + total.log(), right, total])
