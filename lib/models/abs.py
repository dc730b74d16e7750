"""ABS (Rush, Chopra and Weston 2015), the outside baseline of Read-Again.

A feed-forward decoder sees the last few words, and an encoder is a bag of words or attends to them. The numbers of
the equations, (A1) and (A2), are ours.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from lib.data.batch import Batch, in_vocabulary
from lib.data.vocabulary import BOS
from lib.layers.attention import masked_softmax
from lib.models.summarizer import AttentiveOutput, DecoderState, SoftmaxModel, per_document
from lib.system.fields import Count, Natural, checked


@checked
class ABSConfig:
    """Sizes of Rush et al. (2015), section 7."""

    vocab_size: int = 69_000
    source_vocab_size: int = 110_000
    embedding: int = 200  # D
    hidden: int = 400  # H, also of the encoder's words
    context: Count = 5  # C, words of the summary that the decoder sees
    smoothing: Natural = 2  # Q, neighbours on each side whose mean stands for a word
    encoder: Literal["attention", "bag"] = "attention"


class ABS(SoftmaxModel):
    """A feed-forward decoder of the last C words y_C: P(w) is proportional to exp(V h + W enc(x, y_C))_w (A1)."""

    Config = ABSConfig

    def __init__(self, config: ABSConfig):
        super().__init__()
        self.config = c = config
        self.source_embedding = nn.Embedding(c.source_vocab_size, c.hidden)  # F
        self.target_embedding = nn.Embedding(c.vocab_size, c.embedding)  # E
        self.hidden = nn.Linear(c.context * c.embedding, c.hidden)  # U
        self.vocabulary = nn.Linear(c.hidden, c.vocab_size)  # V
        self.from_encoder = nn.Linear(c.hidden, c.vocab_size, bias=False)  # W
        if c.encoder == "attention":
            self.attending = nn.Embedding(c.vocab_size, c.embedding)  # G
            self.attention = nn.Linear(c.context * c.embedding, c.hidden, bias=False)  # P

    def encode(self, batch: Batch) -> DecoderState:
        """Word vectors, smoothed over their neighbours; the decoder starts from C times [BOS]."""
        words = self.source_embedding(batch.source)  # [B, N, H]
        start = torch.full((len(batch), self.config.context - 1), BOS, device=words.device)
        return DecoderState(
            words=words,  # [B, N, H]
            smoothed=self._smooth(words, batch.source_mask),  # [B, N, H]
            mask=batch.source_mask,
            hypotheses={"last"},
            last=start,  # [R, C - 1] ids
        )

    def _smooth(self, words: Tensor, mask: Tensor) -> Tensor:
        """Compute the mean of each word and its neighbours, as many as there are: [B, N, H]."""
        # smoothed_i = mean of x_{i-Q} ... x_{i+Q}   (A2)
        around = 2 * self.config.smoothing + 1
        padded = nn.functional.pad(words * mask[..., None], (0, 0, *(self.config.smoothing,) * 2))
        counted = nn.functional.pad(mask.to(words.dtype), (self.config.smoothing,) * 2)
        sums, counts = padded.unfold(1, around, 1).sum(-1), counted.unfold(1, around, 1).sum(-1)
        return sums / counts.clamp_min(1)[..., None]

    def decode(self, tokens: Tensor, state: DecoderState) -> tuple[AttentiveOutput, DecoderState]:
        """Read T target words at once. tokens: [R, T] extended ids, of which copy ids are read as [UNK]. Features
        are h beside what was read of the encoder, [R, T, 2H]."""
        c = self.config
        tokens = in_vocabulary(tokens, c.vocab_size)
        before = torch.cat([state.last, tokens], 1)  # [R, C - 1 + T]
        contexts = before.unfold(1, c.context, 1)  # [R, T, C]
        # h = tanh(U y_C), of the embeddings of the last C words   (A1)
        hidden = self.hidden(self.target_embedding(contexts).flatten(2)).tanh()
        weights, encoded = self._read(contexts, state)
        after = state.replace(last=before[:, before.shape[1] - c.context + 1 :])
        return AttentiveOutput(torch.cat([hidden, encoded], -1), weights), after

    def _read(self, contexts: Tensor, state: DecoderState) -> tuple[Tensor, Tensor]:
        """Read the text for contexts [R, T, C]: weights [R, T, N] and enc [R, T, H]."""
        rows, steps = contexts.shape[:2]
        queries = per_document(contexts, len(state.words)).flatten(1, 2)  # [B, K * T, C]
        if self.config.encoder == "bag":
            # enc = sum_i x_i / N
            mask = state.mask.to(state.words.dtype)
            weights = (mask / mask.sum(1, keepdim=True))[:, None].expand(-1, queries.shape[1], -1)
            return weights.reshape(rows, steps, -1), (weights @ state.words).view(rows, steps, -1)
        # p = softmax_i(x_i^T P y'_C),  enc = sum_i p_i smoothed_i   (A2)
        query = self.attention(self.attending(queries).flatten(2))
        weights = masked_softmax(query @ state.words.transpose(1, 2), state.mask[:, None])  # [B, K * T, N]
        encoded = weights.to(query.dtype) @ state.smoothed
        return weights.view(rows, steps, -1), encoded.view(rows, steps, -1)

    def output_layer(self) -> tuple[Tensor, Tensor]:
        """Return V beside W, which score h beside enc, and the bias."""
        return torch.cat([self.vocabulary.weight, self.from_encoder.weight], 1), self.vocabulary.bias
