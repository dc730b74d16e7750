"""The base of transformers that write pieces: one embedding for source, target and output, and smoothed labels."""

import torch
from torch import Tensor, nn

from lib.data.batch import Batch, in_vocabulary
from lib.data.vocabulary import PAD
from lib.layers.attention import full_precision
from lib.layers.dropout import Dropout
from lib.models.summarizer import SoftmaxModel, target_weights


class PieceModel(SoftmaxModel):
    """A transformer whose `decode` gives features [R, T, d] of the last layer; nothing is copied.

    `config` has `vocab_size`, `width`, `dropout` and `smoothing`.
    """

    def __init__(self, config, scale: bool):
        """scale: whether embeddings are multiplied by the root of the width."""
        super().__init__()
        self.config, self.scale = config, config.width**0.5 if scale else 1.0
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
        """Compute `nll`; in training with labels smoothed over all pieces but [PAD] and the right one."""
        state = self.encode(batch)
        output, _ = self.decode(batch.target_input, state)
        total = nll = self.nll(output, batch, state)
        if self.training:
            total = self.smoothed(nll, output.features, batch.target, target_weights(batch, nll.dtype))
        return {"loss": total, "nll": nll}

    def smoothed(self, nll: Tensor, features: Tensor, target: Tensor, weights: Tensor) -> Tensor:
        """Smooth a loss `nll`, the sum of -log P of the target words [R, T] by `weights` [R, T].

        The sum of log P over all pieces is linear in the scores: only the normaliser needs all V scores, and `nll`
        has it.
        """
        if not self.config.smoothing:
            return nll
        weight, bias = self.output_layer()
        target = in_vocabulary(target, self.config.vocab_size)
        right = (features * self.embedding(target)).sum(-1) + bias[target]
        every = features @ weight.sum(0) + bias.sum()
        pad = features @ weight[PAD] + bias[PAD]
        right, every, pad = ((weights * scores).sum() for scores in full_precision(right, every, pad))
        # log P(w) = s_w - log sum exp s, and nll + s_right is the log sum exp: the mean over the V - 2 other pieces
        others = (every - right - pad) / (self.config.vocab_size - 2) - (nll + right)
        # (1 - epsilon) (-log P(right)) + epsilon (-mean of log P(others))
        return (1 - self.config.smoothing) * nll - self.config.smoothing * others


def xavier(model: nn.Module) -> None:
    """Glorot's uniform weights for every matrix, embeddings too, as in the authors' code."""
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
