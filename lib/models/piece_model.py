"""What the transformers that write pieces share: one embedding for source, target and output, and the loss."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch, in_vocabulary
from lib.data.text import PAD
from lib.layers.attention import full_precision
from lib.layers.pointer import softmax_nll
from lib.layers.transformer import Dropout
from lib.models.pointer_model import document_weights


class PieceModel(nn.Module):
    """A transformer whose `decode` gives features [R, T, d] of the last layer; nothing is copied.

    `config` has `vocab_size`, `width`, `dropout` and `smoothing`.
    """

    control_symbols: frozenset[int] = frozenset()

    def __init__(self, config, scale: bool):
        """scale: whether embeddings are multiplied by the root of the width."""
        super().__init__()
        self.config, self.scale = config, config.width**0.5 if scale else 1.0
        self.embedding = nn.Embedding(config.vocab_size, config.width)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.dropout = Dropout(config.dropout)

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Embeddings of ids [...] and their positions [..., d]: [..., d]."""
        words = self.embedding(in_vocabulary(ids, self.config.vocab_size))
        return self.dropout(words * self.scale + positions.to(words.dtype))

    def scores(self, features: Tensor) -> Tensor:
        """Of all pieces: [..., d] -> [..., V]."""
        (scores,) = full_precision(F.linear(features, self.embedding.weight, self.bias))
        return scores

    def log_prob(self, steps: Tensor, target: Tensor, state) -> Tensor:
        """log P of the target pieces [R, T]."""
        target = in_vocabulary(target, self.config.vocab_size)
        return self.scores(steps).log_softmax(-1).gather(-1, target[..., None]).squeeze(-1)

    @torch.no_grad()
    def distribution(self, steps: Tensor, state, extra: int, out: Tensor | None = None) -> Tensor:
        """P of every piece after the last step, [R, V + extra], in `out` if given."""
        p = self.scores(steps[:, -1]).softmax(-1)
        whole = p.new_zeros(len(p), p.shape[1] + extra) if out is None else out.zero_()
        whole[:, : p.shape[1]] = p
        return whole

    def cross_entropy(self, features: Tensor, target: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Sums, by `weights`, of -log P of the target, and of the cross entropy with labels smoothed over all pieces
        but [PAD] and the right one; in evaluation both are the same.

        features: [M, d]; target, weights: [M]. The sum of log P over all pieces is linear in the scores, so that of
        V numbers only the normaliser is worked out.
        """
        target, smoothing = in_vocabulary(target, self.config.vocab_size), self.config.smoothing
        weight, bias = self.embedding.weight, self.bias
        nll = softmax_nll(features, weight, bias, target, weights)
        if not self.training or not smoothing:
            return nll, nll
        right = (features * self.embedding(target)).sum(-1) + bias[target]
        whole, pad = features @ weight.sum(0) + bias.sum(), features @ weight[PAD] + bias[PAD]
        right, whole, pad = (weights @ scores for scores in full_precision(right, whole, pad))
        others = (whole - right - pad) / (self.config.vocab_size - 2) - (nll + right)  # log P, on average
        return nll, (1 - smoothing) * nll - smoothing * others

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """`nll`, and in training `loss` with smoothed labels: mean over documents of the mean over a summary."""
        steps, _ = self.decode(batch.target_input, self.encode(batch))
        mask = batch.target_mask
        weights = document_weights(mask, torch.promote_types(steps.dtype, torch.float32))
        nll, smoothed = self.cross_entropy(steps[mask], batch.target[mask], weights[mask])
        return {"loss": smoothed, "nll": nll}

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        return self.loss(batch)


def xavier(model: nn.Module) -> None:
    """Glorot's uniform weights for every matrix, embeddings too, as in the authors' code."""
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.xavier_uniform_(parameter)
