"""ABS (Rush, Chopra and Weston 2015), the outside baseline of Read-Again: a feed-forward decoder that sees the last
few words, and an encoder that is a bag of words or attends to them. Equation numbers are that paper's."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lib.data.batch import Batch, in_vocabulary
from lib.data.text import BOS, UNK
from lib.layers.attention import full_precision, masked_softmax
from lib.models.pointer_model import mean_nll
from lib.models.state import State


@dataclass(frozen=True)
class ABSConfig:
    """Sizes of Rush et al. (2015), section 7."""

    vocab_size: int = 69_000
    source_vocab_size: int = 110_000
    embedding: int = 200  # D
    hidden: int = 400  # H, also of the encoder's words
    context: int = 5  # C, words of the summary that the decoder sees
    smoothing: int = 2  # Q, neighbours on each side whose mean stands for a word
    encoder: str = "attention"  # or "bag"

    def __post_init__(self):
        if self.encoder not in ("attention", "bag"):
            raise ValueError(f"encoder must be 'attention' or 'bag', not {self.encoder!r}")
        if self.context < 1 or self.smoothing < 0:
            raise ValueError("context must be at least 1 and smoothing at least 0")


@dataclass(frozen=True)
class ABSSteps:
    """What the decoder computed for T target positions of R hypotheses."""

    generate: Tensor  # [R, T, Y] scores of the vocabulary
    attention: Tensor  # [R, T, N] weights of the source words


class ABS(nn.Module):
    """p(y_t | x, the last C words), proportional to exp(V h + W enc): equation 4."""

    Config = ABSConfig
    control_symbols: frozenset[int] = frozenset()

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

    def encode(self, batch: Batch) -> State:
        """Word vectors, smoothed over their neighbours; the decoder starts from C times [BOS]."""
        words = self.source_embedding(batch.source)  # [B, N, H]
        start = torch.full((len(batch), self.config.context - 1), BOS, device=words.device)
        document = {"words": words, "smoothed": self._smooth(words, batch.source_mask), "mask": batch.source_mask}
        return State(document, {"last": start})

    def _smooth(self, words: Tensor, mask: Tensor) -> Tensor:
        """The mean of each word and its neighbours, as many as there are: [B, N, H]."""
        around = 2 * self.config.smoothing + 1
        padded = nn.functional.pad(words * mask[..., None], (0, 0, *(self.config.smoothing,) * 2))
        counted = nn.functional.pad(mask.to(words.dtype), (self.config.smoothing,) * 2)
        sums, counts = padded.unfold(1, around, 1).sum(-1), counted.unfold(1, around, 1).sum(-1)
        return sums / counts.clamp_min(1)[..., None]

    def decode(self, tokens: Tensor, state: State) -> tuple[ABSSteps, State]:
        """Read T target words at once. tokens: [R, T] extended ids, of which copy ids are read as [UNK]."""
        c, doc = self.config, state.document
        tokens = in_vocabulary(tokens, c.vocab_size)
        seen = torch.cat([state.decoder["last"], tokens], 1)  # [R, C - 1 + T]
        contexts = seen.unfold(1, c.context, 1)  # [R, T, C]
        hidden = self.hidden(self.target_embedding(contexts).flatten(2)).tanh()
        weights, encoded = self._read(contexts, doc)
        (scores,) = full_precision(self.vocabulary(hidden) + self.from_encoder(encoded))
        return ABSSteps(scores, weights), state.advance(last=seen[:, seen.shape[1] - c.context + 1 :])

    def _read(self, contexts: Tensor, doc: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Equations 5 to 7 (bag) or 11 to 16 (attention): weights [R, T, N] and what is read [R, T, H]."""
        rows, steps = contexts.shape[:2]
        grouped = (len(doc["words"]), rows // len(doc["words"]) * steps)  # B, K * T
        if self.config.encoder == "bag":
            mask = doc["mask"].to(doc["words"].dtype)
            weights = (mask / mask.sum(1, keepdim=True))[:, None].expand(-1, grouped[1], -1)
            return weights.reshape(rows, steps, -1), (weights @ doc["words"]).view(rows, steps, -1)
        query = self.attention(self.attending(contexts).flatten(2)).view(*grouped, -1)
        weights = masked_softmax(query @ doc["words"].transpose(1, 2), doc["mask"][:, None])  # [B, K * T, N]
        encoded = weights.to(query.dtype) @ doc["smoothed"]
        return weights.view(rows, steps, -1), encoded.view(rows, steps, -1)

    def log_prob(self, steps: ABSSteps, target: Tensor, state: State) -> Tensor:
        """log P of the target words [R, T]; words outside the vocabulary are [UNK]."""
        target = target.where(target < self.config.vocab_size, UNK)
        return steps.generate.log_softmax(-1).gather(-1, target[..., None]).squeeze(-1)

    @torch.no_grad()
    def distribution(self, steps: ABSSteps, state: State, extra: int, out: Tensor | None = None) -> Tensor:
        """P of every word after the last step, [R, Y + extra], in `out` if given; 0 for copy ids."""
        p = steps.generate.softmax(-1)[:, -1]
        whole = p.new_zeros(len(p), p.shape[1] + extra) if out is None else out.zero_()
        whole[:, : p.shape[1]] = p
        return whole

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """The mean over documents of the mean over a summary's words of -log P, equation 17."""
        return mean_nll(self, batch)

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        return self.loss(batch)
