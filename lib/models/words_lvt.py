"""words-lvt2k (Nallapati et al. 2016), a baseline of Read-Again: an encoder-decoder with attention whose softmax is
over few of many words, the source's own and the most frequent (their section 2.1, after Jean et al. 2015)."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch, in_vocabulary
from lib.data.vocabulary import SPECIALS, UNK
from lib.layers.attention import Attention, full_precision
from lib.layers.recurrent import GRU, run_packed
from lib.models.summarizer import AttentiveOutput, AttentiveRNN, DecoderState, per_document, per_hypothesis
from lib.system.fields import checked


@checked
class WordsLVTConfig:
    """Sizes of Nallapati et al. (2016), section 4.1."""

    vocab_size: int = 69_000
    source_vocab_size: int = 110_000
    candidates: Annotated[int, Field(gt=len(SPECIALS))] = 2_000  # words that are scored, of vocab_size; their "lvt2k"
    embedding: int = 200
    hidden: int = 400  # of the decoder, and of the encoder in each direction


class WordsLVT(AttentiveRNN):
    """Bidirectional GRU, GRU decoder, and a softmax over n = `candidates` words.

    In training these are the words of all sources of the batch and then the most frequent words, n in all; otherwise
    the same of each document alone, so that a document's batch changes nothing. Any other word counts as [UNK]. The
    paper leaves open: the additive score, the first state (a tanh layer on both last ones), the output layer.
    """

    Config = WordsLVTConfig

    def __init__(self, config: WordsLVTConfig):
        super().__init__()
        self.config = c = config
        self.source_embedding = nn.Embedding(c.source_vocab_size, c.embedding)
        self.target_embedding = nn.Embedding(c.vocab_size, c.embedding)
        self.encoder = GRU(c.embedding, c.hidden, bidirectional=True)
        self.bridge = nn.Linear(2 * c.hidden, c.hidden)
        self.attention = Attention(c.hidden, 2 * c.hidden, c.hidden, "concat")
        self.decoder = nn.GRUCell(c.embedding + 2 * c.hidden, c.hidden)
        self.vocabulary = nn.Linear(3 * c.hidden, c.vocab_size)

    def encode(self, batch: Batch) -> DecoderState:
        words, last = run_packed(self.encoder, self.source_embedding(batch.source), batch.source_lengths)
        start = torch.tanh(self.bridge(last.transpose(0, 1).flatten(1)))
        keys = self.attention.project(words)
        candidates = self._candidates(batch)
        weight, bias = self.vocabulary.weight[candidates], self.vocabulary.bias[candidates]
        return DecoderState(
            values=words,
            keys=keys,  # [B, N, a]
            mask=batch.source_mask,
            candidates=candidates,  # [D, n] ids in rising order; D documents, or in training 1, the batch
            weight=weight,  # [D, n, 3H] the output layer's rows of the candidates, gathered once for all target words
            bias=bias,  # [D, n]
            hypotheses={"hidden"},
            hidden=start,
            cell=None,
        )

    def _candidates(self, batch: Batch) -> Tensor:
        """Choose n words of each document, [B, n], or in training of the batch, [1, n], in rising order.

        They are the special symbols, the sources' words and the most frequent others; of too many the most frequent.
        """
        size, count = self.config.vocab_size, min(self.config.candidates, self.config.vocab_size)
        ids = in_vocabulary(batch.source_extended, size)
        if self.training:
            ids = ids.flatten()[None]
        present = torch.zeros(len(ids), size, dtype=torch.bool, device=ids.device).scatter(1, ids, True)
        present[:, : len(SPECIALS)] = True
        present &= present.cumsum(1) <= count
        free = count - present.sum(1, keepdim=True)
        chosen = present | (~present & ((~present).cumsum(1) <= free))  # ids are in the order of frequency
        # each chosen id to its rank among them, all others behind the last: `nonzero` would wait for a GPU
        ranks = (chosen.cumsum(1) - 1).masked_fill(~chosen, count)
        ranked = ranks.new_empty(len(ids), count + 1)
        return ranked.scatter_(1, ranks, torch.arange(size, device=ids.device).expand_as(ranks))[:, :count]

    def attend(self, hidden: Tensor, state: DecoderState) -> Tensor:
        return self.attention(self.attention.project_queries(hidden), state.keys, state.mask)

    def project_words(self, words: Tensor) -> Tensor:
        """Compute the words' part of all gates: [R, T, e] -> [R, T, 3H]."""
        return F.linear(words, self.decoder.weight_ih[:, : self.config.embedding], self.decoder.bias_ih)

    def step(self, word: Tensor, context: Tensor, hidden: Tensor, cell: None):
        # PyTorch's GRU cell, whose inputs are [word; context]
        w = self.decoder
        xr, xz, xn = (word + context @ w.weight_ih[:, self.config.embedding :].T).chunk(3, -1)
        hr, hz, hn = F.linear(hidden, w.weight_hh, w.bias_hh).chunk(3, -1)
        z = torch.sigmoid(xz + hz)
        return (1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + z * hidden, None

    # ------------------------------------------------------------------------------------------ probabilities

    def _scores(self, features: Tensor, state: DecoderState) -> Tensor:
        """Compute the scores of the candidates: [R, T, 3H] -> [R, T, n]."""
        rows = per_document(features, len(state.candidates)).flatten(1, 2)  # [D, R / D * T, 3H]
        scores = torch.baddbmm(state.bias[:, None], rows, state.weight.transpose(1, 2))
        return full_precision(scores.reshape(*features.shape[:2], -1))[0]

    def log_prob(
        self, output: AttentiveOutput, target: Tensor, state: DecoderState, places: Tensor | None = None
    ) -> Tensor:
        words = per_hypothesis(state.candidates, len(target)).contiguous()
        place = torch.searchsorted(words, target.contiguous()).clamp_max(words.shape[1] - 1)  # [R, T]
        # special symbols stand first in every list
        place = place.where(words.gather(1, place) == target, UNK)
        return self._scores(output.features, state).log_softmax(-1).gather(-1, place[..., None]).squeeze(-1)

    def distribution(self, output: AttentiveOutput, state: DecoderState, extra: int) -> Tensor:
        p = self._scores(output.features[:, -1:], state)[:, 0].softmax(1)
        words = per_hypothesis(state.candidates, len(p))
        return p.new_zeros(len(p), self.config.vocab_size + extra).scatter(1, words, p)
