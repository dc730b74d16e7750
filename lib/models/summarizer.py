"""The interface of models to training, search and scoring, and bases of models with the same kind of output."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch, in_vocabulary
from lib.layers.attention import full_precision
from lib.layers.pointer import (
    DecoderOutput,
    PointerGenerator,
    PointerOutput,
    mixture_distribution,
    mixture_log_prob,
    target_scores,
)


class Tap(nn.Module):
    """A named value of a model, which a forward hook can replace (`lib.evaluation.interventions`)."""

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
    """A model that writes: `encode`, `decode`, and what turns a decoder's output into probabilities.

    B documents, K hypotheses of each, R = B * K rows, T target words. A test holds for each: one call of `decode`
    with T words equals T calls with one.
    """

    control_symbols: frozenset[int] = frozenset()  # what it writes that is no word of the summary
    by_words: bool = True  # whether the loss can be the mean over all target words of a batch (`Batch.by_words`)

    def encode(self, batch: Batch) -> Any:
        """Compute what is needed once for each document: the model's own `DecoderState`."""
        raise NotImplementedError

    def decode(self, tokens: Tensor, state: Any) -> tuple[Any, Any]:
        """Read T target words at once. tokens: [R, T] extended ids. Returns a `DecoderOutput` and the next state."""
        raise NotImplementedError

    def log_prob(self, output: Any, target: Tensor, state: Any, places: Tensor | None = None) -> Tensor:
        """Compute log P of the target words [R, T] (extended ids).

        places: of the flat [R * T] where a result is needed (`Batch.target_places`); None: everywhere.
        """
        raise NotImplementedError

    def distribution(self, output: Any, state: Any, extra: int) -> Tensor:
        """Compute P of every word after the last position: [R, V + extra] with `extra` copy ids."""
        raise NotImplementedError

    def nll(self, output: Any, batch: Batch, state: Any) -> Tensor:
        """Compute -log P: the mean over documents of the mean over a summary's words, or the mean over all words."""
        log_p = self.log_prob(output, batch.target, state, batch.target_places)
        return -(target_weights(batch, log_p.dtype) * log_p).sum()

    def regularisers(self, output: Any, batch: Batch, state: Any) -> dict[str, tuple[float, Tensor]]:
        """Return the terms that are added to the loss, by name: their weights and values, means over documents."""
        return {}

    def attention_weights(self, tokens: Tensor, state: Any) -> dict[str, Tensor]:
        """Return the attention weights of the model while it reads `tokens` [B, T], by name, for pictures.

        Of N source words and L sentences: "words" [B, T, N]; "units" [B, T, L]; "generate" [B, T], the probability of
        generating; and what the model adds.
        """
        output, _ = self.decode(tokens, state)
        return self.seen(output, state)

    def seen(self, output: Any, state: Any) -> dict[str, Tensor]:
        """Return those of the `attention_weights` that an output holds."""
        return {}

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        state = self.encode(batch)
        output, _ = self.decode(batch.target_input, state)
        nll = self.nll(output, batch, state)
        total, terms = nll, self.regularisers(output, batch, state)
        for weight, value in terms.values():
            total = total + weight * value
        return {"loss": total, "nll": nll, **{name: value for name, (_, value) in terms.items()}}


class Extractor(Model):
    """A model that chooses sentences of the source."""

    extracts = True

    def choose(self, batch: Batch) -> list[list[int]]:
        """Return the numbers of the sentences chosen of each document, in the order in which they are read."""
        raise NotImplementedError


# ------------------------------------------------------------------------------------------- generate or copy


class PointerModel(Summarizer):
    """A model whose `decode` gives a `PointerOutput`, made by its `pointer`."""

    pointer: PointerGenerator

    def output_layer(self) -> tuple[Tensor, Tensor]:
        """Return weights [V, F] and biases [V] that score the features of an output."""
        return self.pointer.vocabulary.weight, self.pointer.vocabulary.bias

    def log_prob(self, output: PointerOutput, target: Tensor, state: Any, places: Tensor | None = None) -> Tensor:
        return mixture_log_prob(output, target, *self.output_layer(), places)

    def distribution(self, output: PointerOutput, state: Any, extra: int) -> Tensor:
        return mixture_distribution(output, *self.output_layer(), extra)

    def seen(self, output: PointerOutput, state: Any) -> dict[str, Tensor]:
        return {"words": output.copy, "generate": output.switch.sigmoid()}


@dataclass(frozen=True)
class HierarchicalOutput(PointerOutput):
    """The output of a decoder that attends to words, perhaps to sentences or sections, and perhaps to a memory."""

    alpha: Tensor  # [R, T, N] weights of the words, before a model rescales them to copy
    sentences: Tensor | None = None  # [R, T, L] beta, of sentences or sections
    read: Tensor | None = None  # [R, T, r] psi, the weights of the memory slots


# ----------------------------------------------------------------------------------------- a softmax of words


@dataclass(frozen=True)
class AttentiveOutput(DecoderOutput):
    """The output of a decoder that attends to the source; `features` are its state beside what it read."""

    attention: Tensor  # [R, T, N] weights of the source words


class SoftmaxModel(Summarizer):
    """A model that copies nothing: a softmax over its vocabulary, in which a copy id counts as [UNK]."""

    vocabulary: nn.Linear

    def output_layer(self) -> tuple[Tensor, Tensor]:
        """Return weights [V, F] and biases [V] that score the features of an output."""
        return self.vocabulary.weight, self.vocabulary.bias

    def scores(self, features: Tensor) -> Tensor:
        """Compute the scores of all words: [..., F] -> [..., V]."""
        return full_precision(F.linear(features, *self.output_layer()))[0]

    def log_prob(self, output: DecoderOutput, target: Tensor, state: Any, places: Tensor | None = None) -> Tensor:
        return self.word_log_prob(output.features, target, places)

    def word_log_prob(self, features: Tensor, target: Tensor, places: Tensor | None = None) -> Tensor:
        """Compute log P [R, T] of the target words [R, T] from features [R, T, F]."""
        target = in_vocabulary(target, self.config.vocab_size)
        score, normaliser = target_scores(features, *self.output_layer(), target, places)
        return score - normaliser

    def distribution(self, output: DecoderOutput, state: Any, extra: int) -> Tensor:
        return F.pad(self.scores(output.features[:, -1]).softmax(1), (0, extra))

    def seen(self, output: DecoderOutput, state: Any) -> dict[str, Tensor]:
        return {"words": output.attention} if isinstance(output, AttentiveOutput) else {}


def target_weights(batch: Batch, dtype: torch.dtype) -> Tensor:
    """Return the weights [B, T] of the target words in a batch's loss.

    The loss is the mean over documents of each document's mean over its words, or the mean over all words
    (`Batch.by_words`).
    """
    mask = batch.target_mask.to(dtype)
    return mask / mask.sum() if batch.by_words else mask / (mask.sum(1, keepdim=True) * len(mask))


def mean_over_words(values: Tensor, mask: Tensor) -> Tensor:
    """Compute the mean over the words of each document: [B, T] -> [B]."""
    return (values * mask).sum(1) / mask.sum(1)
