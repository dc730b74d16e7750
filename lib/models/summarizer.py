"""The interface of models to training, search and scoring, and bases of models with the same kind
of output."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lib.data.batch import Batch, in_vocabulary
from lib.data.vocabulary import PAD
from lib.layers.attention import full_precision
from lib.layers.dropout import Dropout
from lib.layers.pointer import (
    DecoderOutput,
    PointerGenerator,
    PointerOutput,
    ScoredWords,
    mixture,
    mixture_distribution,
    softmax,
    softmax_distribution,
)
from lib.models.changes import Change, hooks


class Tap(nn.Module):
    """A named value of a model, which a forward hook can replace (`lib.models.changes`)."""

    def forward(self, value: Tensor, *context: Any) -> Tensor:
        """Return the value. context: what a hook needs to know."""
        return value


class Model(nn.Module):
    """A model that can be trained: its `loss` is minimized."""

    config: Any  # the model's own frozen dataclass; it has a `vocab_size`
    extracts: bool = False  # whether it has a `choose`, which chooses sentences

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Compute the named terms, each the mean over documents; training minimizes `loss`."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        return self.loss(batch)


class Summarizer(Model):
    """A model that writes: `encode`, `decode`, and methods that turn a decoder's output into
    probabilities.

    B documents, K hypotheses of each, R = B * K rows, T target words. A test holds for each: one
    call of `decode` with T words equals T calls with one.
    """

    control_symbols: frozenset[int] = frozenset()  # what it writes that is no word of the summary
    # whether the loss can be the mean over all target words of a batch (`Batch.by_words`)
    by_words: bool = True

    def encode(self, batch: Batch) -> Any:
        """Compute what is needed once for each document: the model's own `DecoderState`."""
        raise NotImplementedError

    def decode(self, tokens: Tensor, state: Any) -> tuple[Any, Any]:
        """Read T target words at once. tokens: [R, T] extended ids. Returns a `DecoderOutput` and
        the next state."""
        raise NotImplementedError

    def scored_words(self, output: Any, target: Tensor, state: Any) -> ScoredWords:
        """Describe how log P of the target words [R, T] (extended ids) follows from the scores of a
        vocabulary."""
        raise NotImplementedError

    def log_prob(
        self, output: Any, target: Tensor, state: Any, places: Tensor | None = None
    ) -> Tensor:
        """Compute log P of the target words [R, T] (extended ids).

        places: of the flat [R * T] where a result is needed (`Batch.target_places`); None:
        everywhere.
        """
        return self.scored_words(output, target, state).log_prob(places)

    def distribution(self, output: Any, state: Any, extra: int) -> Tensor:
        """Compute P of every word after the last position: [R, V + extra] with `extra` copy ids."""
        raise NotImplementedError

    def nll(self, output: Any, batch: Batch, state: Any) -> Tensor:
        """Compute -log P: the mean over documents of the mean over a summary's words, or the mean
        over all words."""
        # -sum of w_t log P(y_t)
        weights = target_weights(batch, full_precision(output.features)[0].dtype)
        if getattr(self.log_prob, "__func__", None) is Summarizer.log_prob:
            words = self.scored_words(output, batch.target, state)
            return -words.weighted_sum(weights, batch.target_places)
        # A model with a `log_prob` of its own.
        log_p = self.log_prob(output, batch.target, state, batch.target_places)
        return -(weights * log_p).sum()

    def regularisers(
        self, output: Any, batch: Batch, state: Any
    ) -> dict[str, tuple[float, Tensor]]:
        """Return the terms that are added to the loss, by name: their weights and values, means
        over documents."""
        return {}

    def attention_weights(self, tokens: Tensor, state: Any) -> dict[str, Tensor]:
        """Return the attention weights of the model while it reads `tokens` [B, T], by name, for
        pictures.

        Of N source words and L sentences: "words" [B, T, N]; "units" [B, T, L]; "generate" [B, T],
        the probability of generating; and what the model adds.
        """
        output, _ = self.decode(tokens, state)
        return self.seen(output, state)

    def seen(self, output: Any, state: Any) -> dict[str, Tensor]:
        """Return those of the `attention_weights` that an output holds."""
        return {}

    def changes(self) -> dict[str, Change]:
        """Return the changes of the model's parts for experiments, by name."""
        return {}

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        state = self.encode(batch)
        output, _ = self.decode(batch.target_input, state)
        nll = self.nll(output, batch, state)
        total = nll
        values = {}
        for name, (weight, value) in self.regularisers(output, batch, state).items():
            total = total + weight * value
            values[name] = value
        return {"loss": total, "nll": nll, **values}


class Extractor(Model):
    """A model that chooses sentences of the source."""

    extracts = True

    def choose(self, batch: Batch) -> list[list[int]]:
        """Choose sentences of each document; return their numbers in reading order."""
        raise NotImplementedError


# ---------------------------------------------------------------------------------
# generate or copy


# The sigmoid of this switch is 1 in all precisions.
_generate = hooks(lambda switch: torch.full_like(switch, 1e4), "switch")


class PointerModel(Summarizer):
    """A model whose `decode` gives a `PointerOutput`, made by its `pointer`."""

    pointer: PointerGenerator

    def output_layer(self) -> tuple[Tensor, Tensor]:
        """Return weights [V, F] and biases [V] that score the features of an output."""
        return self.pointer.vocabulary.weight, self.pointer.vocabulary.bias

    def scored_words(self, output: PointerOutput, target: Tensor, state: Any) -> ScoredWords:
        weight, bias = self.output_layer()
        return mixture(output, target, weight, bias)

    def distribution(self, output: PointerOutput, state: Any, extra: int) -> Tensor:
        weight, bias = self.output_layer()
        return mixture_distribution(output, weight, bias, extra)

    def changes(self) -> dict[str, Change]:
        if not getattr(self.config, "copy", True):
            return super().changes()
        change = Change("every word is generated", model=_generate, only_known=True)
        return {"no copying": change, **super().changes()}

    def seen(self, output: PointerOutput, state: Any) -> dict[str, Tensor]:
        units = getattr(output, "sentences", None)
        weights = {"words": output.copy, "generate": output.switch.sigmoid()}
        return weights if units is None else {**weights, "units": units}


@dataclass(frozen=True)
class HierarchicalOutput(PointerOutput):
    """The output of a decoder that attends to words, perhaps to sentences or sections, and perhaps
    to a memory."""

    alpha: Tensor  # [R, T, N] weights of the words, before a model rescales them to copy
    sentences: Tensor | None = None  # [R, T, L] beta, of sentences or sections
    read: Tensor | None = None  # [R, T, r] psi, the weights of the memory slots


# ---------------------------------------------------------------------------------
# a softmax of words


@dataclass(frozen=True)
class AttentiveOutput(DecoderOutput):
    """The output of a decoder that attends to the source; `features` are its state beside what it
    read."""

    attention: Tensor  # [R, T, N] weights of the source words


class SoftmaxModel(Summarizer):
    """A model that copies nothing: a softmax over its vocabulary, in which a copy id counts as
    [UNK]."""

    vocabulary: nn.Linear

    def output_layer(self) -> tuple[Tensor, Tensor]:
        """Return weights [V, F] and biases [V] that score the features of an output."""
        return self.vocabulary.weight, self.vocabulary.bias

    def scored_words(self, output: DecoderOutput, target: Tensor, state: Any) -> ScoredWords:
        return self.words_of(output.features, target)

    def words_of(self, features: Tensor, target: Tensor) -> ScoredWords:
        """Describe log P of target words [R, T] by features [R, T, F]."""
        weight, bias = self.output_layer()
        return softmax(features, in_vocabulary(target, self.config.vocab_size), weight, bias)

    def distribution(self, output: DecoderOutput, state: Any, extra: int) -> Tensor:
        weight, bias = self.output_layer()
        return softmax_distribution(output.features[:, -1], weight, bias, extra)

    def seen(self, output: DecoderOutput, state: Any) -> dict[str, Tensor]:
        return {"words": output.attention} if isinstance(output, AttentiveOutput) else {}


def target_weights(batch: Batch, dtype: torch.dtype) -> Tensor:
    """Return the weights [B, T] of the target words in a batch's loss.

    The loss is the mean over documents of each document's mean over its words, or the mean over all
    words (`Batch.by_words`).
    """
    mask = batch.target_mask.to(dtype)
    if batch.by_words:
        return mask / mask.sum()
    return mask / (mask.sum(1, keepdim=True) * len(mask))


def mean_over_words(values: Tensor, mask: Tensor) -> Tensor:
    """Compute the mean over the words of each document: [B, T] -> [B]."""
    return (values * mask).sum(1) / mask.sum(1)


# ---------------------------------------------------------------------------------
# transformers of pieces


class PieceModel(SoftmaxModel):
    """A transformer whose `decode` gives features [R, T, d] of the last layer; nothing is copied.

    `config` has `vocab_size`, `width`, `dropout` and `smoothing`.
    """

    def __init__(self, config: Any, scale: bool):
        """scale: whether embeddings are multiplied by the root of the width."""
        super().__init__()
        self.config = config
        self.scale = config.width**0.5 if scale else 1.0
        self.embedding = nn.Embedding(config.vocab_size, config.width)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.dropout = Dropout(config.dropout)

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Embed ids [...] and add their positions [..., d]: [..., d]."""
        words = self.embedding(in_vocabulary(ids, self.config.vocab_size))
        return self.dropout(words * self.scale + positions.to(words.dtype))

    def output_layer(self) -> tuple[Tensor, Tensor]:
        return self.embedding.weight, self.bias

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Compute `nll`; in training with labels smoothed over all pieces but [PAD] and the right
        one."""
        state = self.encode(batch)
        output, _ = self.decode(batch.target_input, state)
        total = nll = self.nll(output, batch, state)
        if self.training:
            weights = target_weights(batch, nll.dtype)
            total = self.smoothed(nll, output.features, batch.target, weights)
        return {"loss": total, "nll": nll}

    def smoothed(self, nll: Tensor, features: Tensor, target: Tensor, weights: Tensor) -> Tensor:
        """Smooth a loss `nll`, the sum of -log P of the target words [R, T] by `weights` [R, T].

        The sum of log P over all pieces is linear in the scores: only the normaliser needs all V
        scores, and `nll` has it.
        """
        epsilon, pieces = self.config.smoothing, self.config.vocab_size
        if not epsilon:
            return nll
        weight, bias = self.output_layer()
        target = in_vocabulary(target, pieces)
        # Scores s_w = w^T f + b_w: of the right piece, the sum over all pieces, and of [PAD].
        right = (features * self.embedding(target)).sum(-1) + bias[target]
        every = features @ weight.sum(0) + bias.sum()
        pad = features @ weight[PAD] + bias[PAD]
        right, every, pad = full_precision(right, every, pad)
        right = (weights * right).sum()
        every = (weights * every).sum()
        pad = (weights * pad).sum()
        # log P(w) = s_w - log sum exp s, and the log sum exp is nll + s_right.
        # So the mean of log P over the V - 2 other pieces is
        others = (every - right - pad) / (pieces - 2) - (nll + right)
        # (1 - epsilon) (-log P(right)) + epsilon (-mean of log P(others))
        return (1 - epsilon) * nll - epsilon * others


def xavier(model: nn.Module) -> None:
    """Glorot's uniform weights for every matrix, embeddings too, as in the authors' code."""
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
