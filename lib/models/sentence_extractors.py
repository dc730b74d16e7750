"""Sent-CLF and Sent-PTR (Subramanian et al. 2020), rows of Mem2Mem's Table 1: a classifier of sentences, and a
decoder that points to one sentence after the other. The equations are numbered as in docs/papers/mem2mem.md."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from lib.data.batch import Batch, pack, put
from lib.data.vocabulary import PAD
from lib.layers.attention import full_precision
from lib.layers.dropout import Dropout
from lib.layers.sequences import LSTM, run_packed
from lib.models.summarizer import Extractor
from lib.system.fields import Count, Even, Layers, Share, checked


@checked
class SentenceExtractorConfig:
    """Sizes of the paper. `hidden` is the decoder's width and the encoders' in both directions: the dot products of
    equation S4 need them to be equal."""

    vocab_size: int = 50_257
    embedding: int = 300
    hidden: Even = 512
    layers: Layers = 2
    dropout: Share = 0.5  # between the layers of an LSTM
    longest: Count = 35  # pieces of a sentence that are read; it is extracted whole


@checked
class SentenceClassifierConfig(SentenceExtractorConfig):
    summary_sentences: int | None = None  # that are chosen; None: as many as summaries of the training documents have


@checked
class SentencePointerConfig(SentenceExtractorConfig):
    beam: int = 4


class LSTMStack(nn.Module):
    """Layers of bidirectional LSTMs with dropout between them."""

    def __init__(self, inputs: int, hidden: int, layers: int, dropout: float):
        super().__init__()
        widths = [inputs, *[2 * hidden] * (layers - 1)]
        self.layers = nn.ModuleList(LSTM(width, hidden, bidirectional=True) for width in widths)
        self.dropout = Dropout(dropout)

    def forward(self, packed: PackedSequence) -> tuple[PackedSequence, list[tuple[Tensor, Tensor]]]:
        """Return the states of the last layer, and the last states and cells of each layer, [B, 2 hidden]."""
        last = []
        for number, layer in enumerate(self.layers):
            if number:
                packed = packed._replace(data=self.dropout(packed.data))
            packed, ends = layer(packed)
            hidden, cell = (x.transpose(0, 1).flatten(1) for x in ends)
            last.append((hidden, cell))
        return packed, last


class SentenceEncoder(nn.Module):
    """Equations S1 and S2: words of a sentence, then sentences of the document, by bidirectional LSTMs."""

    def __init__(self, config: SentenceExtractorConfig):
        super().__init__()
        c, half = config, config.hidden // 2
        self.longest = c.longest
        self.embedding = nn.Embedding(c.vocab_size, c.embedding, padding_idx=PAD)
        self.words = LSTMStack(c.embedding, half, c.layers, c.dropout)
        self.sentences = LSTMStack(c.hidden, half, c.layers, c.dropout)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor, list[tuple[Tensor, Tensor]]]:
        """Sentence embeddings s [B, L, d], sentence states d [B, L, d], and the last states and cells of each layer
        over sentences, [B, d]."""
        rows = batch.sentences
        packed = pack(batch.rows.start, batch.rows.length.clip(max=self.longest), batch.source.device)
        words = self.embedding(batch.source.flatten()[packed.words])  # [W, e]
        embedded = self.words(packed.sequence(words))[1][-1][0]  # [A, d]
        padded = embedded.new_zeros(*batch.sentence_mask.shape, embedded.shape[1])
        padded = padded.index_put((rows.owner, rows.number), embedded)
        return padded, *run_packed(self.sentences, padded, batch.sentence_counts)


def _right(batch: Batch) -> Tensor:
    """The labels of all sentences, padded: [B, L]."""
    assert batch.labels is not None, "documents of a corpus have labels"
    rows = batch.sentences
    return batch.labels.new_zeros(batch.sentence_mask.shape).index_put((rows.owner, rows.number), batch.labels)


class SentenceClassifier(Extractor):
    """Sent-CLF: the probability of each sentence to be extracted, from its state and the document's."""

    Config = SentenceClassifierConfig

    def __init__(self, config: SentenceClassifierConfig):
        super().__init__()
        self.config, d = config, config.hidden
        self.encoder = SentenceEncoder(config)
        self.document = nn.Linear(d, d)  # W_d, b_d
        self.output = nn.Linear(2 * d, 1)  # W_o, b_o

    def logits(self, batch: Batch) -> Tensor:
        """Equation S3 before the sigmoid: [B, L]; what stands after a document's last sentence means nothing."""
        _, states, _ = self.encoder(batch)
        mask = batch.sentence_mask[..., None]
        mean = (states * mask).sum(1) / mask.sum(1)
        document = torch.tanh(self.document(mean))  # [B, d]
        both = torch.cat([states, document[:, None].expand_as(states)], -1)
        return full_precision(self.output(both).squeeze(-1))[0]

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Binary cross entropy: the mean over documents of the mean over their sentences."""
        logits, mask = self.logits(batch), batch.sentence_mask
        each = F.binary_cross_entropy_with_logits(logits, _right(batch).to(logits), reduction="none")
        value = ((each * mask).sum(1) / mask.sum(1)).mean()
        return {"loss": value, "cross_entropy": value}

    def choose(self, batch: Batch) -> list[list[int]]:
        """The `sentences` most probable ones, as they stand in the document."""
        logits = self.logits(batch).masked_fill(~batch.sentence_mask, -torch.inf)
        counts = [min(self.config.summary_sentences or 1, n) for n in batch.sentence_counts.tolist()]
        return [sorted(row.topk(n).indices.tolist()) for row, n in zip(logits, counts)]


@dataclass(frozen=True)
class PointerState:
    """The state of R hypotheses between two steps of Sent-PTR."""

    layers: tuple[tuple[Tensor, Tensor], ...]  # state and cell of each, [R, d]
    attentive: Tensor  # [R, d] the attention-aware state, which the next step reads


class SentencePointer(Extractor):
    """Sent-PTR: an LSTM whose attention over sentences is the probability of the next one. The same sentence twice in
    a row is the end.

    Readings of what is not stated: the LSTM starts from the last states of the sentences' LSTM; the attention-aware
    state is Luong's, with tanh; no other sentence than the last is pointed to twice; hypotheses are compared by their
    mean log-probability.
    """

    Config = SentencePointerConfig

    def __init__(self, config: SentencePointerConfig):
        super().__init__()
        self.config, d = config, config.hidden
        self.encoder = SentenceEncoder(config)
        self.cells = nn.ModuleList(nn.LSTMCell(d if i else 2 * d, d) for i in range(config.layers))
        self.combine = nn.Linear(2 * d, d, bias=False)  # W_h
        self.dropout = Dropout(config.dropout)

    def start(self, last: list[tuple[Tensor, Tensor]]) -> PointerState:
        return PointerState(tuple(last), torch.zeros_like(last[0][0]))

    def step(
        self, previous: Tensor, state: PointerState, states: Tensor, mask: Tensor
    ) -> tuple[Tensor, PointerState]:
        """Equations S4 and S5: log P of the next sentence [R, L] from the embedding of the previous one [R, d].

        states, mask: [R, L, d] and [R, L] of the sentences.
        """
        x, layers = torch.cat([previous, state.attentive], -1), []
        for number, (cell, before) in enumerate(zip(self.cells, state.layers)):
            layers.append(cell(self.dropout(x) if number else x, before))
            x = layers[-1][0]
        (scores,) = full_precision((states @ x[..., None]).squeeze(-1))
        log_p = scores.masked_fill(~mask, -torch.inf).log_softmax(-1)
        context = (log_p.exp()[:, None].to(states.dtype) @ states)[:, 0]
        return log_p, PointerState(tuple(layers), torch.tanh(self.combine(torch.cat([context, x], -1))))

    def log_prob(self, batch: Batch, chosen: list[list[int]]) -> Tensor:
        """log P of sentences chosen one after the other, and of the end after the last: [B, M + 1], 0 after it."""
        embedded, states, last = self.encoder(batch)
        state, found = self.start(last), []
        previous, rows = torch.zeros_like(embedded[:, 0]), torch.arange(len(chosen), device=states.device)
        lengths = torch.tensor([len(numbers) for numbers in chosen])
        steps = torch.arange(int(lengths.max()) + 1)[:, None]  # [M + 1, 1]
        # the last sentence again is the end
        numbers = torch.tensor([[row[min(int(step), len(row) - 1)] for row in chosen] for step in steps])
        numbers, counted = (put(x, states.device) for x in (numbers, steps <= lengths))  # [M + 1, B]
        for now, count in zip(numbers, counted):
            log_p, state = self.step(previous, state, states, batch.sentence_mask)
            found.append(log_p[rows, now].where(count, 0))
            previous = embedded[rows, now]
        return torch.stack(found, 1)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Cross entropy of the labelled sentences, in document order, and of the end: the mean over documents of the
        mean over steps."""
        labels = _right(batch)
        chosen = [np.flatnonzero(row).tolist() for row in labels.tolist()]
        steps = labels.count_nonzero(1) + 1
        value = -(self.log_prob(batch, chosen).sum(1) / steps).mean()
        return {"loss": value, "cross_entropy": value}

    def choose(self, batch: Batch) -> list[list[int]]:
        """The sentences that beam search finds, in the order in which they are pointed to."""
        return [found[0][1] for found in self.search(batch)]

    @torch.no_grad()
    def search(self, batch: Batch) -> list[list[tuple[float, list[int]]]]:
        """The mean log-probability a step and the sentences of every document's hypotheses, the best first."""
        embedded, states, last = self.encoder(batch)
        found = []
        for b, n in enumerate(batch.sentence_counts.tolist()):
            state = self.start([(h[b : b + 1], c[b : b + 1]) for h, c in last])
            found.append(self._search(embedded[b, :n], states[b, :n], state))
        return found

    def _search(self, embedded: Tensor, states: Tensor, state: PointerState) -> list[tuple[float, list[int]]]:
        """Search in a document alone, of n sentences [n, d]."""
        beam, everything = self.config.beam, torch.ones(1, len(states), dtype=torch.bool, device=states.device)
        going: list[tuple[float, list[int], PointerState]] = [(0.0, [], state)]
        ended: list[tuple[float, list[int]]] = []
        for length in range(1, len(states) + 2):
            candidates = []
            for total, chosen, state in going:
                previous = embedded[chosen[-1:]] if chosen else torch.zeros_like(embedded[:1])
                log_p, state = self.step(previous, state, states[None], everything)
                candidates += [
                    (total + value, number, chosen, state)
                    for number, value in enumerate(log_p[0].tolist())
                    if number not in chosen[:-1]
                ]
            candidates.sort(key=lambda candidate: -candidate[0])
            ends = [number in chosen for _, number, chosen, _ in candidates]  # the last sentence again
            ended += [(total / length, chosen) for (total, _, chosen, _), end in zip(candidates[:beam], ends) if end]
            ended = sorted(ended, key=lambda hypothesis: -hypothesis[0])[:beam]
            further = [candidate for candidate, end in zip(candidates, ends) if not end][:beam]
            going = [(total, [*chosen, number], state) for total, number, chosen, state in further]
            if not going or (len(ended) == beam and ended[-1][0] >= going[0][0] / length):
                break
        return ended
