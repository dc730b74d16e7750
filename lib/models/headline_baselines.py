"""The baselines of Read-Again, which do not copy: ABS (Rush, Chopra and Weston 2015), RAS (Chopra,
Auli and Rush 2016) and words-lvt2k (Nallapati et al. 2016). The numbers of the equations are ours:
(A1) and (A2) of ABS, (1) to (4) of RAS.

Shapes: B documents, K hypotheses of each, R = B * K rows, T target words, N source words.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch, in_vocabulary
from lib.data.vocabulary import BOS, SPECIALS, UNK
from lib.layers.attention import Attention, full_precision, masked_softmax
from lib.layers.recurrent import GRU, run_packed
from lib.models.state import (
    DecoderState,
    PerBatch,
    PerDocument,
    PerHypothesis,
    per_document,
    per_hypothesis,
)
from lib.models.summarizer import AttentiveOutput, SoftmaxModel
from lib.system.errors import InputError
from lib.system.settings import Count, Natural, checked


@checked
class HeadlineConfig:
    """Sizes of the vocabularies of decoder and encoder."""

    vocab_size: int = 69_000
    source_vocab_size: int = 110_000


# ---------------------------------------------------------------------------------
# ABS


@checked
class ABSConfig(HeadlineConfig):
    """Sizes of Rush et al. (2015), section 7."""

    embedding: int = 200  # D
    hidden: int = 400  # H, also of the encoder's words
    context: Count = 5  # C, words of the summary that the decoder sees
    smoothing: Natural = 2  # Q, neighbours on each side whose mean represents a word
    encoder: Literal["attention", "bag"] = "attention"


@dataclass(frozen=True, kw_only=True)
class ABSState(DecoderState):
    """The words of the documents, and the last words of the summaries."""

    words: PerDocument[Tensor]  # [B, N, H]
    smoothed: PerDocument[Tensor]  # [B, N, H] means over neighbours
    mask: PerDocument[Tensor]  # [B, N]
    last: PerHypothesis[Tensor]  # [R, C - 1] ids


class ABS(SoftmaxModel):
    """A feed-forward decoder of the last C words y_C: P(w) is proportional to exp(V h + W enc(x,
    y_C))_w (A1).

    The encoder is a bag of words, or attends to them.
    """

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

    def encode(self, batch: Batch) -> ABSState:
        """Average word vectors over their neighbours; the decoder starts from C times [BOS]."""
        words = self.source_embedding(batch.source)  # [B, N, H]
        smoothed = self._smooth(words, batch.source_mask)  # [B, N, H]
        # The ids of the C - 1 words before the first one.
        last = torch.full((len(batch), self.config.context - 1), BOS, device=words.device)
        return ABSState(words=words, smoothed=smoothed, mask=batch.source_mask, last=last)

    def _smooth(self, words: Tensor, mask: Tensor) -> Tensor:
        """Compute the mean of each word and its neighbours, as many as there are: [B, N, H]."""
        # smoothed_i = mean of x_{i-Q} ... x_{i+Q}   (A2)
        reach = self.config.smoothing
        size = 2 * reach + 1
        padded = F.pad(words * mask[..., None], (0, 0, reach, reach)).unfold(1, size, 1)
        counted = F.pad(mask.to(words.dtype), (reach, reach)).unfold(1, size, 1)
        return padded.sum(-1) / counted.sum(-1).clamp_min(1)[..., None]

    def decode(self, tokens: Tensor, state: ABSState) -> tuple[AttentiveOutput, ABSState]:
        """Read T target words at once. tokens: [R, T] extended ids, of which copy ids are read as
        [UNK]. Features are h beside what was read of the encoder, [R, T, 2H]."""
        c = self.config
        before = torch.cat([state.last, in_vocabulary(tokens, c.vocab_size)], 1)  # [R, C - 1 + T]
        contexts = before.unfold(1, c.context, 1)  # [R, T, C]
        # h = tanh(U y_C), of the embeddings of the last C words   (A1)
        hidden = self.hidden(self.target_embedding(contexts).flatten(2)).tanh()
        weights, encoded = self._read(contexts, state)
        after = state.replace(last=before[:, before.shape[1] - c.context + 1 :])
        return AttentiveOutput(torch.cat([hidden, encoded], -1), weights), after

    def _read(self, contexts: Tensor, state: ABSState) -> tuple[Tensor, Tensor]:
        """Read the text for contexts [R, T, C]: weights [R, T, N] and enc [R, T, H]."""
        rows, steps = contexts.shape[:2]
        queries = per_document(contexts, len(state.words)).flatten(1, 2)  # [B, K * T, C]
        if self.config.encoder == "bag":
            # enc = sum_i x_i / N
            values, mask = state.words, state.mask.to(state.words.dtype)
            weights = (mask / mask.sum(1, keepdim=True))[:, None].expand(-1, queries.shape[1], -1)
        else:
            # p = softmax_i(x_i^T P y'_C),  enc = sum_i p_i smoothed_i   (A2)
            values = state.smoothed
            query = self.attention(self.attending(queries).flatten(2))
            weights = masked_softmax(query @ state.words.transpose(1, 2), state.mask[:, None])
        encoded = weights.to(values.dtype) @ values  # [B, K * T, H]
        return weights.reshape(rows, steps, -1), encoded.view(rows, steps, -1)

    def output_layer(self) -> tuple[Tensor, Tensor]:
        """Return V beside W, which score h beside enc, and the bias."""
        both = torch.cat([self.vocabulary.weight, self.from_encoder.weight], 1)
        return both, self.vocabulary.bias


# ---------------------------------------------------------------------------------
# recurrent, with attention first


@dataclass(frozen=True, kw_only=True)
class AttentiveState(DecoderState):
    """What a recurrent decoder attends to, and its own state."""

    values: PerDocument[Tensor]  # [B, N, v], of which a context is the weighted mean
    keys: PerDocument[Tensor]  # [B, N, a]
    mask: PerDocument[Tensor]  # [B, N]
    hidden: PerHypothesis[Tensor]  # [R, d]
    cell: PerHypothesis[Tensor | None]  # [R, d], the memory of an LSTM


class AttentiveRNN(SoftmaxModel):
    """The last state chooses a context, c_t; word, context and last state make the next one, h_t;
    P(y_t) is a softmax of a linear layer on [h_t; c_t].
    """

    target_embedding: nn.Embedding

    def attend(self, hidden: Tensor, state: Any) -> Tensor:
        """Compute weights [B, K, N] for states [B, K, d]."""
        raise NotImplementedError

    def step(
        self, inputs: Tensor, hidden: Tensor, cell: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the next state and cell [R, d] from [word; context] [R, e + v] and the previous
        ones."""
        raise NotImplementedError

    def decode(self, tokens: Tensor, state: Any) -> tuple[AttentiveOutput, Any]:
        """Read T target words at once. tokens: [R, T] extended ids, of which copy ids are read as
        [UNK]."""
        hidden, cell = state.hidden, state.cell
        features, seen = [], []
        for word in self.target_embedding(in_vocabulary(tokens, self.config.vocab_size)).unbind(1):
            # alpha_t from h_{t-1},  c_t = sum_i alpha_ti v_i
            weights = self.attend(per_document(hidden, len(state.values)), state)  # [B, K, N]
            context = (weights.to(state.values.dtype) @ state.values).flatten(0, 1)  # [R, v]
            # h_t = step(y_{t-1}, c_t, h_{t-1}),  P(y_t) = softmax(W [h_t; c_t] + b)
            hidden, cell = self.step(torch.cat([word, context], -1), hidden, cell)
            features.append(torch.cat([hidden, context], -1))
            seen.append(weights.flatten(0, 1))
        output = AttentiveOutput(torch.stack(features, 1), torch.stack(seen, 1))
        return output, state.replace(hidden=hidden, cell=cell)


@checked
class RASConfig(HeadlineConfig):
    """Sizes of Chopra et al. (2016), section 4."""

    source_tokens: int = 100  # places that have an embedding
    hidden: int = 512  # d, of states and of all embeddings
    filter_width: Count = 5  # q, words that make an aggregate vector
    decoder: Literal["elman", "lstm"] = "elman"

    def __post_init__(self):
        if self.filter_width % 2 == 0:
            raise InputError(f"filter_width must be odd, not {self.filter_width}")


class RAS(AttentiveRNN):
    r"""A recurrent decoder, Elman's or an LSTM, and an encoder that convolves words and their
    positions.

    (1) $a_i=x_i+l_i$, of word and position, and
    $z_{ik}=\sum_{h=-q/2}^{q/2}b^k_{q/2+h}\cdot a_{i+h}$; (2)
    $\alpha_{t-1,i}\propto\exp(z_i\cdot h_{t-1})$ and $c_t=\sum_i\alpha_{t-1,i}x_i$; (3) Elman:
    $h_t=\sigma(W_1y_{t-1}+W_2h_{t-1}+W_3c_t)$; LSTM: gates of the same three,
    $m_t=f\odot m_{t-1}+i\odot i'$ and $h_t=o\odot m_t$, without a further tanh; (4)
    $P_t=\mathrm{softmax}(W_4h_t+W_5c_t)$.

    Words outside the text are zeros, and so are h_0 and m_0; layers have a bias: the paper prints
    neither. The equations were written without the paper's text at hand: public notes on it agree
    with (1) and (2) and their sizes; the form of the LSTM in (3) was found nowhere else.
    """

    Config = RASConfig

    def __init__(self, config: RASConfig):
        super().__init__()
        self.config = c = config
        d = c.hidden
        self.source_embedding = nn.Embedding(c.source_vocab_size, d)  # x
        self.position_embedding = nn.Embedding(c.source_tokens, d)  # l
        # b^1 ... b^d
        self.convolution = nn.Conv1d(d, d, c.filter_width, padding=c.filter_width // 2, bias=False)
        self.target_embedding = nn.Embedding(c.vocab_size, d)  # y
        # of y, c and h: W_1, W_3, W_2
        self.cell = nn.Linear(3 * d, d if c.decoder == "elman" else 4 * d)
        self.vocabulary = nn.Linear(2 * d, c.vocab_size)  # W_4, W_5

    def encode(self, batch: Batch) -> AttentiveState:
        """Embed the words of a text, at most `source_tokens`, and aggregate them with their
        neighbours."""
        # a_i = x_i + l_i,  z_ik = sum_h b^k_{q/2 + h} a_{i + h}   (1)
        words = self.source_embedding(batch.source)  # [B, N, d]
        positions = self.position_embedding.weight[: words.shape[1]]
        full = (words + positions) * batch.source_mask[..., None]  # 0 outside the text
        keys = self.convolution(full.transpose(1, 2)).transpose(1, 2)  # [B, N, d]
        start = words.new_zeros(len(batch), self.config.hidden)
        cell = None if self.config.decoder == "elman" else start
        return AttentiveState(
            values=words,
            keys=keys,
            mask=batch.source_mask,
            hidden=start,
            cell=cell,
        )

    def attend(self, hidden: Tensor, state: AttentiveState) -> Tensor:
        # alpha_{t-1,i} = softmax_i(z_i h_{t-1})   (2)
        return masked_softmax(hidden @ state.keys.transpose(1, 2), state.mask[:, None])

    def step(
        self, inputs: Tensor, hidden: Tensor, cell: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        # Elman: h_t = sigmoid(W_1 y_{t-1} + W_2 h_{t-1} + W_3 c_t)   (3)
        gates = self.cell(torch.cat([inputs, hidden], -1))
        if cell is None:
            return gates.sigmoid(), None
        # LSTM: m_t = f m_{t-1} + i i',  h_t = o m_t   (3)
        i, new, f, o = gates.chunk(4, -1)
        cell = f.sigmoid() * cell + i.sigmoid() * new.tanh()
        return o.sigmoid() * cell, cell


@checked
class WordsLVTConfig(HeadlineConfig):
    """Sizes of Nallapati et al. (2016), section 4.1."""

    # words that are scored, of vocab_size; their "lvt2k"
    candidates: Annotated[int, Field(gt=len(SPECIALS))] = 2_000
    embedding: int = 200
    hidden: int = 400  # of the decoder, and of the encoder in each direction


@dataclass(frozen=True, kw_only=True)
class WordsLVTState(AttentiveState):
    """The words that may be written: those of each document, or in training of the batch."""

    candidates: PerBatch[Tensor]  # [D, n] ids in rising order; D is B, or in training 1
    # The output layer's rows of the candidates, gathered once for all target words.
    weight: PerBatch[Tensor]  # [D, n, 3H]
    bias: PerBatch[Tensor]  # [D, n]


class WordsLVT(AttentiveRNN):
    """Bidirectional GRU, GRU decoder, and a softmax over n = `candidates` of many words: the
    source's own and the most frequent ones (their section 2.1, after Jean et al. 2015).

    In training these are the words of all sources of the batch and then the most frequent words, n
    in all; otherwise they are those of each document, so that the rest of a batch changes nothing.
    Any other word counts as [UNK]. The paper leaves open: the additive score, the first state (a
    tanh layer on both last ones), the output layer.
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

    def encode(self, batch: Batch) -> WordsLVTState:
        embedded = self.source_embedding(batch.source)
        words, last = run_packed(self.encoder, embedded, batch.source_lengths)
        candidates = self._candidates(batch)
        return WordsLVTState(
            values=words,
            keys=self.attention.project(words),
            mask=batch.source_mask,
            candidates=candidates,
            weight=self.vocabulary.weight[candidates],
            bias=self.vocabulary.bias[candidates],
            hidden=torch.tanh(self.bridge(last.transpose(0, 1).flatten(1))),
            cell=None,
        )

    def _candidates(self, batch: Batch) -> Tensor:
        """Choose n words of each document, [B, n], or in training of the batch, [1, n], in rising
        order.

        They are the special symbols, the sources' words and the most frequent others; of too many
        the most frequent.
        """
        size = self.config.vocab_size
        count = min(self.config.candidates, size)
        ids = in_vocabulary(batch.source_extended, size)
        if self.training:
            ids = ids.flatten()[None]
        present = torch.zeros(len(ids), size, dtype=torch.bool, device=ids.device)
        present = present.scatter(1, ids, True)
        present[:, : len(SPECIALS)] = True
        # Ids are in the order of frequency: of too many the first are kept, and of the others the
        # first fill the places that are left.
        present &= present.cumsum(1) <= count
        free = count - present.sum(1, keepdim=True)
        chosen = present | (~present & ((~present).cumsum(1) <= free))
        # Each chosen id is put at its rank among them, all others behind the last one: `nonzero`
        # would wait for a GPU.
        ranks = (chosen.cumsum(1) - 1).masked_fill(~chosen, count)
        ranked = ranks.new_empty(len(ids), count + 1)
        every = torch.arange(size, device=ids.device).expand_as(ranks)
        return ranked.scatter_(1, ranks, every)[:, :count]

    def attend(self, hidden: Tensor, state: WordsLVTState) -> Tensor:
        return self.attention(self.attention.project_queries(hidden), state.keys, state.mask)

    def step(self, inputs: Tensor, hidden: Tensor, cell: None) -> tuple[Tensor, None]:
        return self.decoder(inputs, hidden), None

    def _scores(self, features: Tensor, state: WordsLVTState) -> Tensor:
        """Compute the scores of the candidates: [R, T, 3H] -> [R, T, n]."""
        rows, steps, _ = features.shape
        grouped = per_document(features, len(state.candidates)).flatten(1, 2)  # [D, R / D * T, 3H]
        scores = torch.baddbmm(state.bias[:, None], grouped, state.weight.transpose(1, 2))
        return full_precision(scores.reshape(rows, steps, -1))[0]

    def log_prob(
        self,
        output: AttentiveOutput,
        target: Tensor,
        state: WordsLVTState,
        places: Tensor | None = None,
    ) -> Tensor:
        words = per_hypothesis(state.candidates, len(target)).contiguous()
        place = torch.searchsorted(words, target.contiguous())  # [R, T]
        place = place.clamp_max(words.shape[1] - 1)
        # Special symbols come first in every list.
        place = place.where(words.gather(1, place) == target, UNK)
        log_p = self._scores(output.features, state).log_softmax(-1)
        return log_p.gather(-1, place[..., None]).squeeze(-1)

    def distribution(self, output: AttentiveOutput, state: WordsLVTState, extra: int) -> Tensor:
        p = self._scores(output.features[:, -1:], state)[:, 0].softmax(1)
        words = per_hypothesis(state.candidates, len(p))
        return p.new_zeros(len(p), self.config.vocab_size + extra).scatter(1, words, p)
