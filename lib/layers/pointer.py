"""The generate-or-copy distribution of See et al. (2017), and its loss (Mem2Mem, equations 13 to 15)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.layers.attention import full_precision


class PointerGenerator(nn.Module):
    r"""$P = z P_g + (1 - z) P_c$ over the vocabulary and the words of the source.

    $P_g = \mathrm{softmax}(V(V'[h;c]+b)+b')$ through a bottleneck;
    $z = \sigma(w_c^\top c + w_d^\top h + w_x^\top x')$ (13 prints a softmax of that scalar, which would be 1);
    $P_c(w) = \sum_{i:x_i=w}\gamma_i$.
    """

    def __init__(self, hidden: int, context: int, embedding: int, bottleneck: int, vocab_size: int):
        super().__init__()
        self.bottleneck = nn.Linear(hidden + context, bottleneck)  # V', b
        self.vocabulary = nn.Linear(bottleneck, vocab_size)  # V, b'
        self.switch = nn.Linear(context + hidden + embedding, 1)  # w_c, w_d, w_x

    def forward(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of the vocabulary [..., V] and of the switch [...] (its sigmoid is z)."""
        logits = self.vocabulary(self.bottleneck(torch.cat([hidden, context], -1)))
        return full_precision(logits, self.switch(torch.cat([context, hidden, embedded], -1)).squeeze(-1))

    def log_prob(self, logits: Tensor, switch: Tensor, copy: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """log P of the reference words, without the distribution over vocabulary and source.

        Args:
            logits: [B, T, V], switch: [B, T] of `forward`.
            copy: [B, T, N], the weights gamma.
            source: [B, N] extended ids; target: [B, T] extended ids.

        Returns:
            [B, T]. A target in neither the vocabulary nor the source has the log of the smallest number.
        """
        known = target < self.vocabulary.out_features
        generated = logits.gather(-1, target.where(known, 0)[..., None]).squeeze(-1) - logits.logsumexp(-1)
        copied = (copy * (source[:, None] == target[..., None])).sum(-1)  # equation 14
        return torch.logaddexp(
            F.logsigmoid(switch) + generated.masked_fill(~known, -torch.inf),
            F.logsigmoid(-switch) + copied.clamp_min(torch.finfo(copied.dtype).tiny).log(),
        )

    def log_distribution(self, logits: Tensor, switch: Tensor, copy: Tensor, source: Tensor, extra: int) -> Tensor:
        """log P over the vocabulary and `extra` copy ids, for generation.

        Args:
            logits: [R, V], switch: [R], copy: [R, N], source: [R, N] extended ids.

        Returns:
            [R, V + extra]; -inf for copy ids that a source does not have.
        """
        z = switch.sigmoid()[:, None]
        mixed = F.pad(z * logits.softmax(-1), (0, extra))
        return mixed.scatter_add(1, source, (1 - z) * copy).log()
