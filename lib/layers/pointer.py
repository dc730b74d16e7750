"""The generate-or-copy distribution of See et al. (2017), and losses over a vocabulary (Mem2Mem, 13 to 15)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import in_vocabulary
from lib.layers.attention import full_precision
from lib.layers.kernels import LANES, arrays, best_extensions, compiled, exponentials, peaks, scale_exponentials
from lib.training.devices import room_on


@dataclass(frozen=True)
class DecoderOutput:
    """A decoder's output for T target positions of R hypotheses."""

    features: Tensor  # [R, T, F] from which the words of the vocabulary are scored


@dataclass(frozen=True)
class PointerOutput(DecoderOutput):
    """The output of a decoder that generates or copies one of M source words."""

    switch: Tensor  # [R, T] its sigmoid is the probability of generating, z_t
    copy: Tensor  # [R, T, M] gamma, the weights of the source words
    source: Tensor  # [R, M] their extended ids


@dataclass(frozen=True)
class Mixture:
    r"""P of the next word of R hypotheses: $a\,e^{s_w}$ for words of the vocabulary, with scores $s = Wf + b$, and
    what each copy of a source word adds."""

    features: Tensor  # [R, F] f
    weight: Tensor  # [V, F] W
    bias: Tensor | None  # [V] b
    shares: Callable[[Tensor], tuple[Tensor, Tensor]]  # of log sum exp s [R]: log a [R], P of the copies [R, N]
    source: Tensor  # [R, N] extended ids of the copies

    @torch.no_grad()
    def distribution(self, extra: int) -> Tensor:
        """P of every word, [R, V + extra] with `extra` copy ids."""
        (scores,) = full_precision(F.linear(self.features, self.weight, self.bias))
        log_share, copies = self.shares(scores.logsumexp(1))
        generated = (scores + log_share[:, None]).exp()
        return F.pad(generated, (0, extra)).scatter_add(1, self.source, copies.to(generated.dtype))

    @torch.no_grad()
    def best(self, k: int, barred: Tensor, extra: int, memory: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """log P and ids of the k best words that are not `barred` [R, M], ids of which -1 is none: [R, k] each, the
        best first; -inf where there are fewer.

        On a CPU without the distribution: two passes over the scores of the vocabulary, then few words are looked at.
        memory: [R, V] or more, for the scores (new memory at every step takes half as long as they do).
        """
        if not compiled(self.weight):
            p = open_words(self.distribution(extra + 1), barred)
            values, words = p.topk(min(k, p.shape[1]), 1)
            return values.log(), words
        rows = len(self.features)
        (scores,) = full_precision(
            torch.mm(self.features, self.weight.T, out=None if memory is None else memory[:rows])
        )
        bias = scores.new_zeros(scores.shape[1]) if self.bias is None else self.bias
        (tops, sums), maxima = scores.new_empty(2, rows), scores.new_empty(rows, LANES)
        s, m = arrays(scores, maxima)
        peaks(s, *arrays(bias.to(scores.dtype), tops, sums), m)
        log_share, copies = self.shares(tops + sums.log())
        values, words = scores.new_empty(rows, k), self.source.new_empty(rows, k)
        mass = scores.new_zeros(scores.shape[1] + extra)
        log_a, p_copies, mass, best = arrays(log_share.to(scores.dtype), copies.to(scores.dtype), mass, values)
        source, closed = self.source.contiguous().numpy(), barred.contiguous().numpy()
        best_extensions(s, m, log_a, source, p_copies, closed, mass, best, words.numpy())
        return values, words


@dataclass(frozen=True)
class Shortlist:
    """P of the next word of R hypotheses where n words of each are scored and no other can follow: a softmax."""

    scores: Tensor  # [R, n]
    words: Tensor  # [R, n] their ids, none twice in a row
    size: int  # V

    @torch.no_grad()
    def distribution(self, extra: int) -> Tensor:
        """P of every word (`Mixture.distribution`)."""
        p = self.scores.softmax(1)
        return p.new_zeros(len(p), self.size + extra).scatter(1, self.words, p)

    @torch.no_grad()
    def best(self, k: int, barred: Tensor, extra: int, memory: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The k best words (`Mixture.best`), of as many as there are."""
        every = torch.ones(len(self.words), self.size + extra + 1, dtype=torch.bool, device=self.words.device)
        closed = ~open_words(every, barred).gather(1, self.words)
        log_p = self.scores.log_softmax(1).masked_fill(closed, -torch.inf)
        values, places = log_p.topk(min(k, log_p.shape[1]), 1)
        return values, self.words.gather(1, places)


def open_words(p: Tensor, barred: Tensor) -> Tensor:
    """P of W words, 0 of those that are barred in their row: [R, W].

    p: [R, W + 1], of which the last column is of no word; it is changed. barred: [R, M] ids, -1 is none. One
    operation puts all zeros, and no number comes from the host, for which a GPU would be waited for.
    """
    return p.scatter_(1, barred % p.shape[1], 0)[:, :-1]


class GenerateOrCopy(nn.Module):
    r"""$P = z P_g + (1 - z) P_c$ over the vocabulary and the words of the source, with
    $P_g = \mathrm{softmax}(V f + b')$ of features f and $P_c(w) = \sum_{i:x_i=w}\gamma_i$.

    A model's own `forward` makes the features and the switch.
    """

    vocabulary: nn.Linear  # V, b'

    def log_prob(self, output: PointerOutput, target: Tensor) -> Tensor:
        """log P of the reference words, without the distribution over vocabulary and source.

        target: [R, T] extended ids; the result has its shape. A target in neither the vocabulary nor the source has
        the log of the smallest number.
        """
        known = target < self.vocabulary.out_features
        (scores,) = full_precision(self.vocabulary(output.features))
        generated = scores.gather(-1, target.where(known, 0)[..., None]).squeeze(-1) - scores.logsumexp(-1)
        generated = F.logsigmoid(output.switch) + generated.masked_fill(~known, -torch.inf)
        return torch.logaddexp(generated, _log_copied(output, target))

    def nll(self, output: PointerOutput, target: Tensor, weights: Tensor, places: Tensor | None = None) -> Tensor:
        """The sum of -log P times `weights` [R, T] over the reference words, a scalar.

        The same number as from `log_prob`, in a fraction of its memory: the scores of the vocabulary [R, T, V] exist
        for a few words at a time. Words of weight 0, and those outside the vocabulary, are not scored at all; on a
        GPU all words at `places` are (`places_of`).
        """
        copied = _log_copied(output, target)
        known = (target < self.vocabulary.out_features) & (weights > 0)
        only_copied = (weights * ~known * copied).sum()
        # the share of the words that are scored and not known is in `only_copied`: here their weight is 0
        words = output.features, target.where(known, -1), F.logsigmoid(output.switch), copied, weights * known
        features, *rows = at_places(places_of(known, places), *words)
        return _vocabulary_nll(self.vocabulary.weight, self.vocabulary.bias, features, *rows) - only_copied

    def mixture(self, output: PointerOutput) -> Mixture:
        """P of the word after the last position."""
        log_z, log_rest = F.logsigmoid(output.switch[:, -1]), F.logsigmoid(-output.switch[:, -1])
        copies = log_rest.exp()[:, None] * output.copy[:, -1]
        layer, features = self.vocabulary, output.features[:, -1]
        return Mixture(features, layer.weight, layer.bias, lambda total: (log_z - total, copies), output.source)

    def distribution(self, output: PointerOutput, extra: int) -> Tensor:
        """P over the vocabulary and `extra` copy ids after the last position, [R, V + extra]; 0 for copy ids that a
        source does not have."""
        return self.mixture(output).distribution(extra)


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

    def log_prob(self, output: PointerOutput, target: Tensor) -> Tensor:
        return super().log_prob(output, in_vocabulary(target, self.vocabulary.out_features))

    def nll(self, output: PointerOutput, target: Tensor, weights: Tensor, places: Tensor | None = None) -> Tensor:
        target = in_vocabulary(target, self.vocabulary.out_features)
        features, *rows = at_places(places_of(weights > 0, places), output.features, target, weights)
        return softmax_nll(features, self.vocabulary.weight, self.vocabulary.bias, *rows)


def places_of(mask: Tensor, places: Tensor | None = None) -> Tensor:
    """Places in the flat [R * T] at which a mask [R, T] is true.

    A GPU would have to be waited for to know how many there are. There they are `places`, made on the host with the
    batch, which hold all of them and perhaps more.
    """
    if places is not None and mask.device.type != "cpu":
        return places
    return mask.flatten().nonzero()[:, 0]


def at_places(places: Tensor, *values: Tensor) -> list[Tensor]:
    """Values [M, ...] at `places` [M] of each of `values` [R, T, ...]."""
    return [x.flatten(0, 1).index_select(0, places) for x in values]


def _log_copied(output: PointerOutput, target: Tensor) -> Tensor:
    """log of (1 - z) P_c at the target words, equation 14: [R, T]."""
    copied = (output.copy * (output.source[:, None] == target[..., None])).sum(-1)
    return F.logsigmoid(-output.switch) + copied.clamp_min(torch.finfo(copied.dtype).tiny).log()


# --------------------------------------------------------------------------------- losses over a vocabulary


def softmax_nll(features: Tensor, weight: Tensor, bias: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    """The sum of -weight * log softmax(features W^T + b) at the target over M words.

    features: [M, F]; weight: [V, F], bias: [V]; target, weights: [M]. The scores exist for a few words at a time.
    """
    nothing = torch.full_like(weights, -torch.inf)
    return _vocabulary_nll(weight, bias, features, target, torch.zeros_like(weights), nothing, weights)


def joint_nll(
    features: Tensor, weight: Tensor, bias: Tensor, target: Tensor, copied: Tensor, copies: Tensor, weights: Tensor
) -> Tensor:
    """The `softmax_nll` of one softmax over vocabulary and copies: copied, copies [M] are the logs of the summed
    exponentials of the copies of the target, and of all copies. A target outside the vocabulary is -1."""
    return _vocabulary_nll(weight, bias, features, target, copies, copied, weights, joint=True)


def _vocabulary_nll(weight: Tensor, bias: Tensor, features: Tensor, *rows: Tensor, joint: bool = False) -> Tensor:
    device = features.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    return _VocabularyNLL.apply(weight, bias, features, *rows, joint, dtype, torch.is_grad_enabled())


class _VocabularyNLL(torch.autograd.Function):
    """The sum of -weight * log P over M words, of scores s = features W^T + b and target y.

    A mixture: P = exp(other) softmax(s)_y + exp(copied), other = log z. Joint, with other = log of all copies:
    P = (exp(s_y) + exp(copied)) / (sum exp(s) + exp(other)).

    other, copied, weights: [M]. The scores [M, V] are computed in chunks of words, and each chunk's gradient at once,
    while its scores are there: the loss is a sum, so its gradient only has to be scaled in the backward pass. A chunk
    has as many words as the device has room for (`room_on`) in float32.
    """

    @staticmethod
    def forward(ctx, weight, bias, features, target, other, copied, weights, joint, dtype, training):
        ctx.gradients = _Gradients(weight, bias, features, other) if training else None
        matrix = weight.to(dtype or weight.dtype)
        total, rows = other.new_zeros(()), max(1, room_on(weight.device) // (4 * len(weight)))
        memory = matrix.new_empty(min(rows, len(target)), len(weight))
        for start in range(0, len(target), rows):
            part = slice(start, start + rows)
            inputs, known, index = features[part].to(matrix.dtype), target[part] >= 0, target[part].clamp_min(0)
            (scores,) = full_precision(torch.mm(inputs, matrix.T, out=memory[: len(inputs)]))  # [rows, V]
            largest, sums, right = _exponentials(scores, bias, index)
            right = right.masked_fill(~known, -torch.inf)
            normaliser = largest + sums.log()
            generated = right if joint else right - normaliser + other[part]
            log_p = either = torch.logaddexp(generated, copied[part])
            if joint:
                normaliser, vocabulary = torch.logaddexp(normaliser, other[part]), normaliser
                log_p = either - normaliser
            total -= (weights[part] * log_p).sum()  # no product, which autocast would round to bfloat16
            if ctx.gradients is None:
                continue
            slope = -weights[part] * (generated - either).exp()  # of the loss by the target's score
            shrink = weights[part] * (vocabulary - normaliser).exp() if joint else -slope  # by the vocabulary's sum
            d_other = weights[part] * (other[part] - normaliser).exp() if joint else slope
            _scale(scores, shrink / sums, index, slope, ctx.gradients.bias)
            ctx.gradients.add(part, scores, inputs, matrix, d_other, -weights[part] - slope)
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, scale):
        g, ctx.gradients = ctx.gradients, None
        if g is None:
            raise RuntimeError("nll: its gradient is made once; call nll again to go backward a second time")
        if scale.device.type != "cpu" or scale != 1:  # to see that it is 1, a GPU would be waited for
            for x in (g.weight, g.bias, g.features, g.other, g.copied):
                x.mul_(scale)
        return g.weight, g.bias, g.features, None, g.other, g.copied, None, None, None, None


def _exponentials(scores: Tensor, bias: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Put exp(s - the largest) in the place of s = scores [M, V] + bias. Returns the largest, the sums of the
    exponentials, and s of the words `index` [M]: [M] each."""
    if compiled(scores):
        largest, sums, right = (scores.new_empty(len(scores)) for _ in range(3))
        exponentials(*arrays(scores, bias.to(scores.dtype)), index.numpy(), *arrays(largest, sums, right))
        return largest, sums, right
    largest = scores.add_(bias).amax(1)
    right = scores.gather(1, index[:, None])[:, 0]
    return largest, scores.sub_(largest[:, None]).exp_().sum(1), right


def _scale(scores: Tensor, factors: Tensor, index: Tensor, slopes: Tensor, d_bias: Tensor) -> None:
    """Multiply rows of scores [M, V] by factors [M], add slopes [M] at `index` [M], and all rows to d_bias [V]."""
    if compiled(scores):
        scale_exponentials(*arrays(scores, factors), index.numpy(), *arrays(slopes, d_bias))
    else:
        d_bias += scores.mul_(factors[:, None]).scatter_add_(1, index[:, None], slopes[:, None]).sum(0)


class _Gradients:
    def __init__(self, weight: Tensor, bias: Tensor, features: Tensor, other: Tensor):
        self.weight, self.bias, self.features = (torch.zeros_like(x) for x in (weight, bias, features))
        self.other, self.copied = torch.zeros_like(other), torch.zeros_like(other)

    def add(self, part: slice, scores: Tensor, inputs: Tensor, matrix: Tensor, other: Tensor, copied: Tensor):
        scores = scores.to(matrix.dtype)
        self.features[part] = scores @ matrix
        if matrix.dtype == self.weight.dtype:
            self.weight.addmm_(scores.T, inputs)
        else:
            self.weight += scores.T @ inputs
        self.other[part], self.copied[part] = other, copied
