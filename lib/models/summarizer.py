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
    GenerateOrCopy,
    Mixture,
    PointerOutput,
    Shortlist,
    at_places,
    open_words,
    softmax_nll,
)


class Summarizer(nn.Module):
    """A model that writes: `encode`, `decode`, and what turns a decoder's output into probabilities.

    B documents, K hypotheses of each, R = B * K rows, T target words. A test holds for each: one call of `decode`
    with T words equals T calls with one.
    """

    config: Any  # the model's own frozen dataclass; it has a `vocab_size`
    control_symbols: frozenset[int] = frozenset()  # what it writes that is no word of the summary
    extracts: bool = False  # whether `choose` gives sentences as well
    by_words: bool = True  # whether the loss can be the mean over all target words of a batch (`Batch.by_words`)

    def encode(self, batch: Batch) -> Any:
        """Compute what is needed once per document: the model's own `DecoderState`."""
        raise NotImplementedError

    def decode(self, tokens: Tensor, state: Any) -> tuple[Any, Any]:
        """Read T target words at once. tokens: [R, T] extended ids. Returns a `DecoderOutput` and the state after."""
        raise NotImplementedError

    def log_prob(self, output: Any, target: Tensor, state: Any) -> Tensor:
        """log P of the target words [R, T] (extended ids)."""
        raise NotImplementedError

    def mixture(self, output: Any, state: Any) -> Mixture | Shortlist:
        """P of the word after the last position."""
        raise NotImplementedError

    def impossible(self, output: Any, state: Any) -> Tensor | None:
        """Words whose P is 0 after the last position all the same: ids [R, M], of which -1 is none."""
        return None

    def nll(self, output: Any, batch: Batch, state: Any) -> Tensor:
        """-log P: the mean over documents of the mean over a summary's words, or over all (`target_weights`)."""
        raise NotImplementedError

    def regularisers(self, output: Any, batch: Batch, state: Any) -> dict[str, tuple[float, Tensor]]:
        """Terms that are added to the loss, by name: their weights and values, means over documents."""
        return {}

    def distribution(self, output: Any, state: Any, extra: int) -> Tensor:
        """P of every word after the last position, [R, V + extra] with `extra` copy ids."""
        mixture, impossible = self.mixture(output, state), self.impossible(output, state)
        if impossible is None:
            return mixture.distribution(extra)
        return open_words(mixture.distribution(extra + 1), impossible)

    def attention_weights(self, tokens: Tensor, state: Any) -> dict[str, Tensor]:
        """Weights that say where the model looks while it reads `tokens` [B, T], by name, for pictures.

        Of N source words and L sentences: "words" [B, T, N]; "units" [B, T, L]; "generate" [B, T], the probability of
        generating; and what the model adds.
        """
        output, _ = self.decode(tokens, state)
        return self.seen(output, state)

    def seen(self, output: Any, state: Any) -> dict[str, Tensor]:
        """Those of the `attention_weights` that an output holds."""
        return {}

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Named terms, each the mean over documents; `loss` is what training minimizes."""
        state = self.encode(batch)
        output, _ = self.decode(batch.target_input, state)
        nll = self.nll(output, batch, state)
        total, terms = nll, self.regularisers(output, batch, state)
        for weight, value in terms.values():
            total = total + weight * value
        return {"loss": total, "nll": nll, **{name: value for name, (_, value) in terms.items()}}

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        return self.loss(batch)


class Extractor(nn.Module):
    """A model that chooses sentences of the source: `loss(batch)` as a `Summarizer` has it, and `choose`."""

    config: Any
    extracts: bool = True

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        raise NotImplementedError

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        return self.loss(batch)

    def choose(self, batch: Batch) -> list[list[int]]:
        """Numbers of the sentences chosen of each document, in the order in which they are read."""
        raise NotImplementedError


# ------------------------------------------------------------------------------------------- generate or copy


class PointerModel(Summarizer):
    """`decode` gives a `PointerOutput` that `pointer` turns into probabilities."""

    pointer: GenerateOrCopy

    def log_prob(self, output: PointerOutput, target: Tensor, state: Any) -> Tensor:
        return self.pointer.log_prob(output, target)

    def nll(self, output: PointerOutput, batch: Batch, state: Any) -> Tensor:
        """The `nll` that `log_prob` gives, with less memory."""
        weights = target_weights(batch, output.switch.dtype)
        return self.pointer.nll(output, batch.target, weights, batch.target_places)

    def mixture(self, output: PointerOutput, state: Any) -> Mixture:
        return self.pointer.mixture(output)

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
    """`features` are a decoder's state beside what it read of the source."""

    attention: Tensor  # [R, T, N] weights of the source words


class SoftmaxModel(Summarizer):
    """A model that copies nothing: a softmax over its vocabulary, of which a copy id is [UNK]."""

    def output_layer(self) -> tuple[Tensor, Tensor]:
        """Weights [V, F] and biases [V] that score the features [R, T, F] of an output."""
        raise NotImplementedError

    def scores(self, features: Tensor) -> Tensor:
        """Scores of all words: [..., F] -> [..., V]."""
        return full_precision(F.linear(features, *self.output_layer()))[0]

    def log_prob(self, output: DecoderOutput, target: Tensor, state: Any) -> Tensor:
        target = in_vocabulary(target, self.config.vocab_size)
        return self.scores(output.features).log_softmax(-1).gather(-1, target[..., None]).squeeze(-1)

    def mixture(self, output: DecoderOutput, state: Any) -> Mixture | Shortlist:
        features = output.features[:, -1]
        nothing = features.new_zeros(len(features), 0)
        return Mixture(features, *self.output_layer(), lambda total: (-total, nothing), nothing.long())

    def nll(self, output: DecoderOutput, batch: Batch, state: Any) -> Tensor:
        return self.summed_nll(output.features, batch.target, self.weights(output, batch), batch.target_places)

    def weights(self, output: DecoderOutput, batch: Batch) -> Tensor:
        """Weights of the words in the mean: [B, T], 0 where there is none."""
        return target_weights(batch, torch.promote_types(output.features.dtype, torch.float32))

    def summed_nll(self, features: Tensor, target: Tensor, weights: Tensor, places: Tensor) -> Tensor:
        """The sum, by `weights` [B, T], of -log P of the target [B, T] for features [B, T, F]; `places`: where the
        weights are not 0."""
        features, target, weights = at_places(places, features, target, weights)
        target = in_vocabulary(target, self.config.vocab_size)
        return softmax_nll(features, *self.output_layer(), target, weights)


def target_weights(batch: Batch, dtype: torch.dtype) -> Tensor:
    """Weights [B, T] of target words in a batch's loss: all alike (`by_words`), or as `document_weights` has them."""
    mask = batch.target_mask
    return mask.to(dtype) / mask.sum() if batch.by_words else document_weights(mask, dtype)


def document_weights(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Weights [B, T] of a sum that is the mean over documents of each document's mean over its words."""
    return mask.to(dtype) / (mask.sum(1, keepdim=True) * len(mask))


def mean_over_words(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the words of each document: [B, T] -> [B]."""
    return (values * mask).sum(1) / mask.sum(1)
