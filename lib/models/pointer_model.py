"""What the pointer-generators share: probabilities and losses, given what their decoders computed."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lib.data.batch import Batch
from lib.layers.pointer import GenerateOrCopy
from lib.models.state import State


@dataclass(frozen=True)
class Steps:
    """What the decoder computed for T target positions of R hypotheses."""

    features: Tensor  # [R, T, bottleneck] from which the pointer scores the vocabulary
    switch: Tensor  # [R, T] its sigmoid is the probability of generating, z_t
    copy: Tensor  # [R, T, N] gamma, the weights of the source words
    words: Tensor  # [R, T, N] alpha
    sentences: Tensor | None = None  # [R, T, L] beta, of sentences or sections
    read: Tensor | None = None  # [R, T, r] psi, the weights of the memory slots


class PointerModel(nn.Module):
    """`encode` and `decode` are a model's own; `decode` gives `Steps` that `pointer` turns into probabilities."""

    control_symbols: frozenset[int] = frozenset()  # what it writes that is no word of the summary
    pointer: GenerateOrCopy

    def log_prob(self, steps: Steps, target: Tensor, state: State) -> Tensor:
        """log P of the target words [R, T] (extended ids), equation 15, for one hypothesis of each document."""
        return self.pointer.log_prob(steps.features, steps.switch, steps.copy, state.document["source"], target)

    def nll(self, steps: Steps, batch: Batch, state: State) -> Tensor:
        """The paper's L, mean over documents: -log P of the reference as in `log_prob`, with less memory."""
        weights = document_weights(batch.target_mask, steps.switch.dtype)
        source = state.document["source"]
        return self.pointer.nll(steps.features, steps.switch, steps.copy, source, batch.target, weights)

    def distribution(self, steps: Steps, state: State, extra: int, out: Tensor | None = None) -> Tensor:
        """P of every word after the last step, [R, V + extra] with `extra` copy ids, in `out` if given."""
        source = state.document["source"]
        source = source.repeat_interleave(steps.copy.shape[0] // source.shape[0], 0)
        last = steps.features[:, -1], steps.switch[:, -1], steps.copy[:, -1]
        return self.pointer.distribution(*last, source, extra, out)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Named terms, each the mean over documents; `loss` is what training minimizes.

        `nll` is the mean over a summary's words of the negative log-likelihood.
        """
        state = self.encode(batch)
        steps, _ = self.decode(batch.target_input, state)
        nll = self.nll(steps, batch, state)
        return {"loss": nll, "nll": nll}

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        return self.loss(batch)


def document_weights(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Weights [B, T] of a sum that is the mean over documents of each document's mean over its words."""
    return mask.to(dtype) / (mask.sum(1, keepdim=True) * len(mask))


def mean_nll(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """The loss of a model without regularisers: mean over documents of the mean of -log P of a summary's words."""
    state = model.encode(batch)
    steps, _ = model.decode(batch.target_input, state)
    log_p = model.log_prob(steps, batch.target, state)
    nll = -(log_p * document_weights(batch.target_mask, log_p.dtype)).sum()
    return {"loss": nll, "nll": nll}


def per_document(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the words of each document: [B, T] -> [B]."""
    return (values * mask).sum(1) / mask.sum(1)
