"""Sent-CLF and Sent-PTR (Subramanian et al. 2020), rows of Mem2Mem's Table 1: a classifier of
sentences, and a decoder that points to one sentence after the other. The equations are numbered as
in docs/papers/mem2mem.md."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence, pad_sequence

from lib.data.batch import Batch, pack, put
from lib.data.vocabulary import PAD
from lib.layers.attention import full_precision
from lib.layers.dropout import Dropout
from lib.layers.recurrent import LSTM, run_packed
from lib.models.summarizer import Extractor
from lib.system.settings import Count, Even, Layers, Share, checked


@checked
class SentenceExtractorConfig:
    """Sizes of the paper. `hidden` is the decoder's width and the encoders' in both directions: the
    dot products of equation S4 need them to be equal."""

    vocab_size: int = 50_257
    embedding: int = 300
    hidden: Even = 512
    layers: Layers = 2
    dropout: Share = 0.5  # between the layers of an LSTM
    longest: Count = 35  # pieces of a sentence that are read; it is extracted whole
    # sentences that Sent-CLF chooses; None: as many as summaries of the training documents have
    summary_sentences: int | None = None
    beam: int = 4  # of Sent-PTR


class LSTMStack(nn.Module):
    """Layers of bidirectional LSTMs with dropout between them."""

    def __init__(self, inputs: int, hidden: int, layers: int, dropout: float):
        super().__init__()
        widths = [inputs, *[2 * hidden] * (layers - 1)]
        self.layers = nn.ModuleList(LSTM(width, hidden, bidirectional=True) for width in widths)
        self.dropout = Dropout(dropout)

    def forward(self, packed: PackedSequence) -> tuple[PackedSequence, list[tuple[Tensor, Tensor]]]:
        """Return the states of the last layer, and the last states and cells of each layer,
        [B, 2 hidden]."""
        last = []
        for number, layer in enumerate(self.layers):
            if number:
                packed = packed._replace(data=self.dropout(packed.data))
            packed, (hidden, cell) = layer(packed)
            # Both directions beside each other: [2, B, d] -> [B, 2d].
            hidden = hidden.transpose(0, 1).flatten(1)
            cell = cell.transpose(0, 1).flatten(1)
            last.append((hidden, cell))
        return packed, last


class SentenceEncoder(nn.Module):
    """Read words of a sentence, then sentences of the document, by bidirectional LSTMs."""

    def __init__(self, config: SentenceExtractorConfig):
        super().__init__()
        c, half = config, config.hidden // 2
        self.longest = c.longest
        self.embedding = nn.Embedding(c.vocab_size, c.embedding, padding_idx=PAD)
        self.words = LSTMStack(c.embedding, half, c.layers, c.dropout)
        self.sentences = LSTMStack(c.hidden, half, c.layers, c.dropout)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor, list[tuple[Tensor, Tensor]]]:
        """Compute sentence embeddings s [B, L, d], sentence states d [B, L, d], and the last state
        and cell of each layer over sentences, [B, d]."""
        # s_j = last states of BiLSTM(w_j1 ... w_jn)   (S1)
        rows = batch.sentences
        lengths = batch.rows.length.clip(max=self.longest)
        packed = pack(batch.rows.start, lengths, batch.source.device)
        words = self.embedding(batch.source.flatten()[packed.words])  # [W, e]
        _, ends = self.words(packed.sequence(words))
        embedded, _ = ends[-1]  # [A, d]
        documents, sentences = batch.sentence_mask.shape
        padded = embedded.new_zeros(documents, sentences, embedded.shape[1])
        padded = padded.index_put((rows.owner, rows.number), embedded)
        # d_1 ... d_L = BiLSTM(s_1 ... s_L)   (S2)
        states, last = run_packed(self.sentences, padded, batch.sentence_counts)
        return padded, states, last


def _labels(batch: Batch) -> Tensor:
    """Pad the labels of all sentences: [B, L]."""
    assert batch.labels is not None, "documents of a corpus have labels"
    rows = batch.sentences
    padded = batch.labels.new_zeros(batch.sentence_mask.shape)
    return padded.index_put((rows.owner, rows.number), batch.labels)


class SentenceClassifier(Extractor):
    """Sent-CLF: the probability of each sentence to be extracted, from its state and the
    document's."""

    Config = SentenceExtractorConfig

    def __init__(self, config: SentenceExtractorConfig):
        super().__init__()
        self.config, d = config, config.hidden
        self.encoder = SentenceEncoder(config)
        self.document = nn.Linear(d, d)  # W_d, b_d
        self.output = nn.Linear(2 * d, 1)  # W_o, b_o

    def logits(self, batch: Batch) -> Tensor:
        """Compute the scores of all sentences [B, L]; those of padding are meaningless."""
        # P(j) = sigmoid(w_o^T [d_j; document] + b_o),  document = tanh(W_d mean_j d_j + b_d)   (S3)
        _, states, _ = self.encoder(batch)
        mask = batch.sentence_mask[..., None]
        mean = (states * mask).sum(1) / mask.sum(1)
        document = torch.tanh(self.document(mean))  # [B, d]
        both = torch.cat([states, document[:, None].expand_as(states)], -1)
        return full_precision(self.output(both).squeeze(-1))[0]

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Compute the binary cross entropy: the mean over documents of the mean over their
        sentences."""
        logits, mask = self.logits(batch), batch.sentence_mask
        labels = _labels(batch).to(logits)
        each = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        # -mean over documents of the mean over their sentences of log P(label)
        value = ((each * mask).sum(1) / mask.sum(1)).mean()
        return {"loss": value, "cross_entropy": value}

    def choose(self, batch: Batch) -> list[list[int]]:
        """Choose the `summary_sentences` most probable ones, in document order."""
        logits = self.logits(batch).masked_fill(~batch.sentence_mask, -torch.inf)
        chosen = []
        for row, sentences in zip(logits, batch.sentence_counts.tolist()):
            count = min(self.config.summary_sentences or 1, sentences)
            chosen.append(sorted(row.topk(count).indices.tolist()))
        return chosen


# Between two steps of Sent-PTR: state and cell of each layer, and the attention-aware state that
# the next step reads, all [R, d] of R hypotheses.
PointerState = tuple[list[tuple[Tensor, Tensor]], Tensor]


class SentencePointer(Extractor):
    """Sent-PTR: an LSTM whose attention over sentences is the probability of the next one. The same
    sentence twice in a row is the end.

    Our choices where the paper is silent: the LSTM starts from the last states of the sentences'
    LSTM; the attention-aware state is Luong's, with tanh; no other sentence than the last is
    pointed to twice; hypotheses are compared by their mean log-probability.
    """

    Config = SentenceExtractorConfig

    def __init__(self, config: SentenceExtractorConfig):
        super().__init__()
        self.config, d = config, config.hidden
        self.encoder = SentenceEncoder(config)
        self.cells = nn.ModuleList(nn.LSTMCell(d if i else 2 * d, d) for i in range(config.layers))
        self.combine = nn.Linear(2 * d, d, bias=False)  # W_h
        self.dropout = Dropout(config.dropout)

    def step(
        self, previous: Tensor, state: PointerState, states: Tensor, mask: Tensor
    ) -> tuple[Tensor, PointerState]:
        """Compute log P of the next sentence [R, L] from the embedding of the previous one [R, d].

        states, mask: [R, L, d] and [R, L] of the sentences.
        """
        # h_t = LSTM([s_{i_{t-1}}; h~_{t-1}], h_{t-1}),  P(i_t = j) = softmax_j(d_j^T h_t)   (S4)
        before, attentive = state
        x = torch.cat([previous, attentive], -1)
        layers = []
        for number, (cell, hidden_and_cell) in enumerate(zip(self.cells, before)):
            layers.append(cell(self.dropout(x) if number else x, hidden_and_cell))
            x = layers[-1][0]
        (scores,) = full_precision((states @ x[..., None]).squeeze(-1))
        log_p = scores.masked_fill(~mask, -torch.inf).log_softmax(-1)
        # h~_t = tanh(W_h [sum_j P(i_t = j) d_j; h_t])   (S5)
        context = (log_p.exp()[:, None].to(states.dtype) @ states)[:, 0]
        return log_p, (layers, torch.tanh(self.combine(torch.cat([context, x], -1))))

    def log_prob(self, batch: Batch, chosen: list[list[int]]) -> Tensor:
        """Compute log P of sentences chosen in this order, and of the end after the last:
        [B, M + 1], 0 after it."""
        embedded, states, last = self.encoder(batch)
        previous = torch.zeros_like(embedded[:, 0])
        state = last, previous
        # The last sentence again is the end; -1 is after it.
        ended = [torch.tensor([*row, row[-1]]) for row in chosen]
        numbers = pad_sequence(ended, padding_value=-1)  # [M + 1, B]
        rows = torch.arange(len(chosen), device=states.device)
        found = []
        for number in put(numbers, states.device):
            log_p, state = self.step(previous, state, states, batch.sentence_mask)
            found.append(log_p[rows, number].where(number >= 0, 0))
            previous = embedded[rows, number]
        return torch.stack(found, 1)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Compute the cross entropy of the labelled sentences, in document order, and of the end.

        It is the mean over documents of the mean over steps.
        """
        labels = _labels(batch)
        chosen = [row.nonzero()[:, 0].tolist() for row in labels.cpu()]
        steps = labels.count_nonzero(1) + 1
        value = -(self.log_prob(batch, chosen).sum(1) / steps).mean()
        return {"loss": value, "cross_entropy": value}

    def choose(self, batch: Batch) -> list[list[int]]:
        """Choose the sentences that beam search finds, in the order of the search."""
        return [found[0][1] for found in self.search(batch)]

    @torch.no_grad()
    def search(self, batch: Batch) -> list[list[tuple[float, list[int]]]]:
        """Find every document's hypotheses, the best first: the mean log P of a step, and the
        sentences."""
        embedded, states, last = self.encoder(batch)
        found = []
        for b, n in enumerate(batch.sentence_counts.tolist()):
            layers = [(hidden[b : b + 1], cell[b : b + 1]) for hidden, cell in last]
            start = layers, torch.zeros_like(embedded[b, :1])
            found.append(self._search(embedded[b, :n], states[b, :n], start))
        return found

    def _search(
        self, embedded: Tensor, states: Tensor, state: PointerState
    ) -> list[tuple[float, list[int]]]:
        """Search in one document, of n sentences [n, d]."""
        beam = self.config.beam
        everything = torch.ones(1, len(states), dtype=torch.bool, device=states.device)
        going: list[tuple[float, list[int], PointerState]] = [(0.0, [], state)]
        ended: list[tuple[float, list[int]]] = []
        for length in range(1, len(states) + 2):
            # Every sentence may follow every hypothesis, once; the last one may follow itself.
            candidates = []
            for total, chosen, state in going:
                previous = embedded[chosen[-1:]] if chosen else torch.zeros_like(embedded[:1])
                log_p, state = self.step(previous, state, states[None], everything)
                for number, value in enumerate(log_p[0].tolist()):
                    if number not in chosen[:-1]:
                        candidates.append((total + value, number, chosen, state))
            candidates.sort(key=lambda candidate: -candidate[0])
            # The last sentence again ends a hypothesis.
            for total, number, chosen, _ in candidates[:beam]:
                if number in chosen:
                    ended.append((total / length, chosen))
            ended = sorted(ended, key=lambda hypothesis: -hypothesis[0])[:beam]
            going = []
            for total, number, chosen, state in candidates:
                if number not in chosen and len(going) < beam:
                    going.append((total, [*chosen, number], state))
            if not going or (len(ended) == beam and ended[-1][0] >= going[0][0] / length):
                break
        return ended
