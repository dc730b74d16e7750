"""Log-probabilities of words: a softmax over a vocabulary, and the mixture of generating and
copying.

See et al. (2017); Mem2Mem, equations 13 to 15.

Shapes: R decoder rows (one per hypothesis), T target words, M source words, F features, V words of
the vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.vocabulary import UNK
from lib.layers import cpu_kernels as cpu
from lib.layers.attention import full_precision, recomputed
from lib.system.devices import room_on


@dataclass(frozen=True)
class DecoderOutput:
    """A decoder's output for T target positions of R hypotheses."""

    features: Tensor  # [R, T, F], of which a linear layer makes the scores of the vocabulary


@dataclass(frozen=True)
class PointerOutput(DecoderOutput):
    """The output of a decoder that generates a word or copies one of M source words."""

    # [R, T] score whose sigmoid is z, the probability of generating; infinite: nothing is copied
    switch: Tensor
    copy: Tensor  # [R, T, M] gamma, the weights of the source words
    source: Tensor  # [R, M] their extended ids


class PointerGenerator(nn.Module):
    """The layers that make features and switch: a bottleneck before the vocabulary, and a scalar
    (13).

    Equation 13 prints a softmax of that scalar, which would be 1. We read a sigmoid.
    """

    def __init__(self, inputs: int, switch: int | None, bottleneck: int, vocab_size: int):
        """inputs, switch: widths of what the two layers read; no switch: nothing is copied."""
        super().__init__()
        self.bottleneck = nn.Linear(inputs, bottleneck)  # V', b
        self.vocabulary = nn.Linear(bottleneck, vocab_size)  # V, b'
        self.switch = nn.Linear(switch, 1) if switch else None  # w_c, w_d, w_x

    def forward(self, inputs: Tensor, switch_inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Compute features [..., F] and the score [...] of the switch."""
        features = self.bottleneck(inputs)
        if self.switch is None:
            (like,) = full_precision(features)
            return features, torch.full_like(like[..., 0], torch.inf)
        # w_c^T c_t + w_d^T h_t + w_x^T x'_t   (13)
        (score,) = full_precision(self.switch(switch_inputs).squeeze(-1))
        return features, score


@dataclass(frozen=True)
class ScoredWords:
    """Target words y whose log P depends on their score s_y, on log sum exp s, and on more numbers
    of each word.

    The scores of the vocabulary, s = W f + b, exist for a few words at a time.
    """

    features: Tensor  # [R, T, F] f
    weight: Tensor  # [V, F] W
    bias: Tensor  # [V] b
    target: Tensor  # [R, T] y, ids of the vocabulary
    # log P from s_y, log sum exp s and `more`, for words in a tensor of any shape
    combine: Callable[..., Tensor]
    more: tuple[Tensor, ...] = ()  # [R, T] each

    def log_prob(self, places: Tensor | None = None) -> Tensor:
        """Compute log P [R, T].

        places: those of the flat [R * T] that are needed (`Batch.target_places`); elsewhere both
        scores are taken as 0. They are made on the host with the batch, because finding them on a
        GPU means waiting for it.
        """
        score, normaliser = target_scores(
            self.features, self.weight, self.bias, self.target, places
        )
        return self.combine(score, normaliser, *self.more)

    def weighted_sum(self, weights: Tensor, places: Tensor) -> Tensor:
        """Compute the sum of weights [R, T] times log P, a number; weights are 0 outside `places`.

        The same as from `log_prob`, in less time and memory: the gradient of a few words is made as
        soon as their scores exist, which are then dropped. In the backward pass it is only
        multiplied by that of the sum.
        """
        device = self.features.device.type
        autocast = torch.is_autocast_enabled(device)
        dtype = torch.get_autocast_dtype(device) if autocast else self.weight.dtype
        features = self.features.flatten(0, 1)
        target = self.target.flatten()
        flat_weights = weights.flatten()
        more = [x.flatten() for x in self.more]
        return _WeightedSum.apply(
            self.combine,
            dtype,
            torch.is_grad_enabled(),
            features.index_select(0, places),
            self.weight,
            self.bias,
            target.index_select(0, places),
            flat_weights.index_select(0, places),
            *(x.index_select(0, places) for x in more),
        )


def mixture(output: PointerOutput, target: Tensor, weight: Tensor, bias: Tensor) -> ScoredWords:
    """Describe log P of target words (extended ids) [R, T], generated or copied: (13) to (15).

    weight: [V, F], bias: [V] of the scores of the vocabulary. A word that is neither in the
    vocabulary nor in the source has the log of the smallest number.
    """
    known = target < len(weight)
    # Where nothing is copied, a copy id is [UNK].
    target = target.where(known | output.switch.isfinite(), UNK)
    known = target < len(weight)
    # P_c(w) = sum_{i: x_i = w} gamma_i   (14)
    same = output.source[:, None] == target[..., None]  # [R, T, M]
    copied = (output.copy * same).sum(-1)
    return ScoredWords(
        features=output.features,
        weight=weight,
        bias=bias,
        target=target.where(known, 0),
        combine=_generate_or_copy,
        more=(known, output.switch, copied),
    )


def _generate_or_copy(
    score: Tensor, normaliser: Tensor, known: Tensor, switch: Tensor, copied: Tensor
) -> Tensor:
    # P_g = softmax(V f + b')   (13)
    generated = (score - normaliser).masked_fill(~known, -torch.inf)
    # A weight of 0 becomes the smallest number: its log, and its gradient, stay finite.
    copied = copied.clamp_min(torch.finfo(copied.dtype).tiny).log()
    # P = z P_g + (1 - z) P_c   (15)
    return torch.logaddexp(F.logsigmoid(switch) + generated, F.logsigmoid(-switch) + copied)


def softmax(features: Tensor, target: Tensor, weight: Tensor, bias: Tensor) -> ScoredWords:
    """Describe log P of target words [R, T], ids of the vocabulary, by a softmax over it."""
    return ScoredWords(features, weight, bias, target, torch.sub)


def mixture_distribution(output: PointerOutput, weight: Tensor, bias: Tensor, extra: int) -> Tensor:
    """Compute P of every word after the last position: [R, V + extra] with `extra` copy ids."""
    z = output.switch[:, -1:].sigmoid()
    rest = (-output.switch[:, -1:]).sigmoid()  # 1 - z, without cancellation
    p = softmax_distribution(output.features[:, -1], weight, bias, extra).mul_(z)
    return p.scatter_add_(1, output.source, (rest * output.copy[:, -1]).to(p.dtype))


def softmax_distribution(features: Tensor, weight: Tensor, bias: Tensor, extra: int) -> Tensor:
    """Compute softmax(W f + b) of features [R, F], and 0 for `extra` more words: [R, V + extra]."""
    if torch.is_grad_enabled() or not cpu.compiled(features) or torch.is_autocast_enabled("cpu"):
        (scores,) = full_precision(F.linear(features, weight, bias))
        return F.pad(scores.softmax(1), (0, extra))
    # A search is here at each step. New memory costs a CPU as much as several passes over it, so
    # one piece holds the scores and then the result.
    p = features.new_zeros(len(features), len(weight) + extra)
    scores = p[:, : len(weight)]
    torch.mm(features, weight.T, out=scores)
    scores.add_(bias)
    scores.sub_(scores.amax(1, keepdim=True)).exp_()
    scores.div_(scores.sum(1, keepdim=True))
    return p


def bar_words(p: Tensor, barred: Tensor) -> Tensor:
    """Set P of the barred words of each row to 0: [R, W].

    p: [R, W + 1], of which the last column is of no word; it is changed. barred: [R, M] ids, -1 is
    none. One operation writes all zeros, and no number comes from the host, which would have to
    wait for the GPU.
    """
    return p.scatter_(1, barred % p.shape[1], 0)[:, :-1]


def target_scores(
    features: Tensor, weight: Tensor, bias: Tensor, target: Tensor, places: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Compute the scores s_y of target words y, and log sum exp s, of s = W f + b: [R, T] each.

    features: [R, T, F]; weight: [V, F]; bias: [V]; target: [R, T]. places: as in
    `ScoredWords.log_prob`. The scores s of the vocabulary exist for a few words at a time; the
    backward pass computes them again.
    """

    def score(rows: Tensor, words: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        (scores,) = full_precision(F.linear(rows, weight, bias))
        return torch.stack([scores.gather(1, words[:, None])[:, 0], scores.logsumexp(1)])

    rows, words = features.flatten(0, 1), target.flatten()
    if places is not None:
        rows, words = rows.index_select(0, places), words.index_select(0, places)
    # Without words there is one empty part, so that there is something to put together.
    parts = _chunks(len(words), weight) or [slice(0)]
    scored = [recomputed(score, rows[part], words[part], weight, bias) for part in parts]
    both = torch.cat(scored, 1)  # [2, words]
    if places is not None:
        both = both.new_zeros(2, target.numel()).index_copy(1, places, both)
    scores, normalisers = both.unflatten(1, target.shape)
    return scores, normalisers


class _WeightedSum(torch.autograd.Function):
    """Compute `ScoredWords.weighted_sum` of W words, and its gradients along with it.

    features: [W, F]; target, weights and `more`: [W]. dtype: of the products with the weights of
    the vocabulary; sums are in full precision. learns: whether a gradient is needed.
    """

    @staticmethod
    def forward(
        ctx: Any,
        combine: Callable[..., Tensor],
        dtype: torch.dtype,
        learns: bool,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        weights: Tensor,
        *more: Tensor,
    ) -> Tensor:
        total = full_precision(bias.new_zeros(()))[0]
        inputs, matrix = features.to(dtype), weight.to(dtype)
        layer = _LayerGradients(features, weight, bias, matrix) if learns else None
        d_more = [torch.zeros_like(x) if learns and x.is_floating_point() else None for x in more]
        parts = _chunks(len(target), weight)
        # One piece of memory for all parts: new memory costs as much time as a pass over it.
        memory = inputs.new_empty(len(inputs[parts[0]]) if parts else 0, len(weight))
        with torch.autocast(features.device.type, enabled=False):
            for part in parts:
                y = target[part, None]
                scores = torch.mm(inputs[part], matrix.T, out=memory[: len(y)])
                score, largest, e_y, sums = _exponentials(scores, bias, y)
                normaliser = largest + sums.log()
                own = [x[part].detach() for x in more]
                # Autograd differentiates log P by these numbers of each word; the rest is by hand.
                leaves = [score, normaliser]
                leaves += [x for x, d in zip(own, d_more) if d is not None]
                with torch.set_grad_enabled(learns):
                    for leaf in leaves:
                        leaf.requires_grad_(learns)
                    value = (weights[part] * combine(score, normaliser, *own)).sum()
                total += value.detach()
                if layer is None:
                    continue
                d_score, d_normaliser, *d_own = torch.autograd.grad(
                    value, leaves, materialize_grads=True
                )
                learning = [x for x in d_more if x is not None]
                for whole, gradient in zip(learning, d_own):
                    whole[part] = gradient
                scale = d_normaliser / sums
                d_score += scale * e_y  # s_y is in log sum exp s as well
                layer.add(part, y, scores, scale, d_score)
        ctx.gradients = None
        if layer is not None:
            ctx.gradients = layer.d_features, layer.d_weight, layer.d_bias, None, None, *d_more
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_total: Tensor) -> tuple[Tensor | None, ...]:
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:
            advice = "call it again to go backward a second time"
            raise RuntimeError(f"weighted sum: its gradient is made once; {advice}")
        return None, None, None, *(None if x is None else x.mul_(d_total) for x in gradients)


class _LayerGradients:
    """Gradients of f [W, F], W [V, F] and b [V] in s = W f + b, added up part by part.

    matrix: W in the type of the products.
    """

    def __init__(self, features: Tensor, weight: Tensor, bias: Tensor, matrix: Tensor):
        self.features = features
        self.weight = weight
        self.matrix = matrix
        self.d_features = torch.zeros_like(features)
        self.d_weight = torch.zeros_like(weight)
        self.d_bias = torch.zeros_like(bias)

    def add(self, part: slice, y: Tensor, e: Tensor, scale: Tensor, d_score: Tensor) -> None:
        """Add the gradients of some words.

        y: [w, 1], their ids; e: [w, V], exp(s - the largest), but 0 at y; scale: [w], the gradient
        of log sum exp s divided by the sum of all e; d_score: [w], the whole gradient of s_y.
        """
        # ds = scale e for all words but y, whose d_score comes by itself.
        # What is computed for each score is two products: the factors of a word come after them,
        # df = scale (e W), or before them, dW = e^T (scale f) and db = e^T scale.
        features, word, dtype = self.features[part], y[:, 0], self.matrix.dtype
        scaled = features * scale[:, None]
        from_others = (e @ self.matrix) * scale[:, None]
        self.d_features[part] = from_others + self.weight[word] * d_score[:, None]
        if dtype == self.weight.dtype:
            self.d_weight.addmm_(e.T, scaled)
        else:
            self.d_weight += e.T @ scaled.to(dtype)
        self.d_weight.index_add_(0, word, features * d_score[:, None])
        self.d_bias += e.T @ scale.to(dtype)
        self.d_bias.index_add_(0, word, d_score)


CACHED = 2**19  # scores that a CPU works on at a time, so that they stay in its cache


def _exponentials(scores: Tensor, bias: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Replace scores [W, V], to which bias [V] is added, by e = exp(s - the largest), but e_y by 0.

    y: [W, 1]. Returns s_y, the largest s, e_y and the sum of all e, [W] each, in full precision.
    """
    found = full_precision(bias.new_empty(4, len(scores)))[0]
    size = max(1, CACHED // len(bias)) if scores.device.type == "cpu" else len(scores)
    for rows, word, results in zip(scores.split(size), y.split(size), found.split(size, 1)):
        score, largest, e_y, total = results
        s = full_precision(rows)[0].add_(bias)  # in place, but for a copy of bfloat16
        score.copy_(s.gather(1, word)[:, 0])
        largest.copy_(s.amax(1))
        e = s.sub_(largest[:, None]).exp_()  # at most 1: it cannot overflow
        e_y.copy_(e.gather(1, word)[:, 0])
        torch.sum(e, 1, out=total)
        e.scatter_(1, word, 0)
        if e.dtype != rows.dtype:
            rows.copy_(e)
    score, largest, e_y, total = found.unbind()
    return score, largest, e_y, total


def _chunks(words: int, weight: Tensor) -> list[slice]:
    """Cut `words` into parts whose scores fit into the device's room for such results."""
    size = max(1, room_on(weight.device) // (4 * len(weight)))
    return [slice(start, min(start + size, words)) for start in range(0, words, size)]
