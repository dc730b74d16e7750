"""The base of recurrent decoders that look at the source before each of their states."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from lib.data.batch import in_vocabulary
from lib.models.decoder_state import HYPOTHESIS, DecoderState, PerHypothesis, per_document
from lib.models.summarizer import AttentiveOutput, SoftmaxModel


@dataclass(frozen=True)
class AttentiveState(DecoderState):
    values: Tensor  # [B, N, v] of which a context is the weighted mean
    keys: Tensor  # [B, N, a]
    mask: Tensor  # [B, N]
    hidden: PerHypothesis  # [R, d]
    cell: Annotated[Tensor | None, HYPOTHESIS]  # [R, d] the memory of an LSTM


class AttentiveRNN(SoftmaxModel):
    """The last state chooses a context, c_t; word, context and last state make the next one, h_t; P(y_t) is a softmax
    of a linear layer on [h_t; c_t].

    B documents, K hypotheses of each, R = B * K rows, T target words, N source words, d = the width of h.
    """

    target_embedding: nn.Embedding
    attend: Callable[[Tensor, Any], Tensor]  # weights [B, K, N] for states [B, K, d]
    project_words: Callable[[Tensor], Tensor]  # what `step` needs of the words [R, T, e], for all at once
    step: Callable[..., tuple[Tensor, Tensor | None]]  # of that [R, ...], context, hidden, cell: the next two

    def decode(self, tokens: Tensor, state: Any) -> tuple[AttentiveOutput, Any]:
        """Read T target words at once. tokens: [R, T] extended ids, of which copy ids are read as [UNK]."""
        embedded = self.target_embedding(in_vocabulary(tokens, self.config.vocab_size))
        hidden, cell = state.hidden, state.cell
        features, seen = [], []
        for word in self.project_words(embedded).unbind(1):
            # alpha_t from h_{t-1},  c_t = sum_i alpha_ti v_i
            weights = self.attend(per_document(hidden, len(state.values)), state)  # [B, K, N]
            context = (weights.to(state.values.dtype) @ state.values).flatten(0, 1)  # [R, v]
            # h_t = step(y_{t-1}, c_t, h_{t-1}),  P(y_t) = softmax(W [h_t; c_t] + b)
            hidden, cell = self.step(word, context, hidden, cell)
            features.append(torch.cat([hidden, context], -1))
            seen.append(weights.flatten(0, 1))
        output = AttentiveOutput(torch.stack(features, 1), torch.stack(seen, 1))
        return output, replace(state, hidden=hidden, cell=cell)
