"""RAS (Chopra, Auli and Rush 2016), a baseline of Read-Again: a recurrent decoder, Elman's or an LSTM, and an encoder
that convolves words and their positions to say where to look.

The equations' numbers are ours. They were written without the paper's text at hand: public notes on it agree with (1)
and (2) and their sizes; the form of the LSTM in (3) was found nowhere else.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch
from lib.layers.attention import masked_softmax
from lib.models.summarizer import AttentiveRNN, DecoderState
from lib.system.errors import InputError
from lib.system.fields import Count, checked


@checked
class RASConfig:
    """Sizes of Chopra et al. (2016), section 4."""

    vocab_size: int = 69_000
    source_vocab_size: int = 110_000
    source_tokens: int = 100  # places that have an embedding
    hidden: int = 512  # d, of states and of all embeddings
    filter_width: Count = 5  # q, words that make an aggregate vector
    decoder: Literal["elman", "lstm"] = "elman"

    def __post_init__(self):
        if self.filter_width % 2 == 0:
            raise InputError(f"filter_width must be odd, not {self.filter_width}")


class RAS(AttentiveRNN):
    r"""(1) $a_i=x_i+l_i$, of word and position, and $z_{ik}=\sum_{h=-q/2}^{q/2}b^k_{q/2+h}\cdot a_{i+h}$;
    (2) $\alpha_{t-1,i}\propto\exp(z_i\cdot h_{t-1})$ and $c_t=\sum_i\alpha_{t-1,i}x_i$;
    (3) Elman: $h_t=\sigma(W_1y_{t-1}+W_2h_{t-1}+W_3c_t)$; LSTM: gates of the same three,
    $m_t=f\odot m_{t-1}+i\odot i'$ and $h_t=o\odot m_t$, without a further tanh;
    (4) $P_t=\mathrm{softmax}(W_4h_t+W_5c_t)$.

    Words outside the text are zeros, and so are h_0 and m_0; layers have a bias: the paper prints neither.
    """

    Config = RASConfig

    def __init__(self, config: RASConfig):
        super().__init__()
        self.config = c = config
        d = c.hidden
        self.source_embedding = nn.Embedding(c.source_vocab_size, d)  # x
        self.position_embedding = nn.Embedding(c.source_tokens, d)  # l
        self.convolution = nn.Conv1d(d, d, c.filter_width, padding=c.filter_width // 2, bias=False)  # b^1 ... b^d
        self.target_embedding = nn.Embedding(c.vocab_size, d)  # y
        self.cell = nn.Linear(3 * d, d if c.decoder == "elman" else 4 * d)  # of y, c and h: W_1, W_3, W_2
        self.vocabulary = nn.Linear(2 * d, c.vocab_size)  # W_4, W_5

    def encode(self, batch: Batch) -> DecoderState:
        """Embed the words of a text, at most `source_tokens`, and aggregate them with their neighbours."""
        # a_i = x_i + l_i,  z_ik = sum_h b^k_{q/2 + h} a_{i + h}   (1)
        words = self.source_embedding(batch.source)  # [B, N, d]
        full = (words + self.position_embedding.weight[: words.shape[1]]) * batch.source_mask[..., None]
        aggregate = self.convolution(full.transpose(1, 2)).transpose(1, 2)  # [B, N, d]
        start = words.new_zeros(len(batch), self.config.hidden)
        memory = None if self.config.decoder == "elman" else start
        return DecoderState(
            values=words,
            keys=aggregate,
            mask=batch.source_mask,
            hypotheses={"hidden", "cell"},
            hidden=start,
            cell=memory,
        )

    def attend(self, hidden: Tensor, state: DecoderState) -> Tensor:
        # alpha_{t-1,i} = softmax_i(z_i h_{t-1})   (2)
        return masked_softmax(hidden @ state.keys.transpose(1, 2), state.mask[:, None])

    def project_words(self, words: Tensor) -> Tensor:
        """Compute W_1 y [R, T, d or 4d] of words y [R, T, d]."""
        return F.linear(words, self.cell.weight[:, : self.config.hidden], self.cell.bias)

    def step(self, word: Tensor, context: Tensor, hidden: Tensor, cell: Tensor | None):
        # Elman: h_t = sigmoid(W_1 y_{t-1} + W_2 h_{t-1} + W_3 c_t)   (3)
        rest = self.cell.weight[:, self.config.hidden :]  # W_3, W_2
        gates = word + torch.cat([context, hidden], -1) @ rest.T
        if cell is None:
            return gates.sigmoid(), None
        # LSTM: m_t = f m_{t-1} + i i',  h_t = o m_t   (3)
        i, new, f, o = gates.chunk(4, -1)
        cell = f.sigmoid() * cell + i.sigmoid() * new.tanh()
        return o.sigmoid() * cell, cell
