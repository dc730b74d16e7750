"""RAS (Chopra, Auli and Rush 2016), a baseline of Read-Again: a recurrent decoder, Elman's or an LSTM, and an encoder
that convolves words and their positions to say where to look.

The equations' numbers are ours. They were written without the paper's text at hand: public notes on it agree with (1)
and (2) and their sizes; the form of the LSTM in (3) was found nowhere else.
"""

from typing import Annotated, Literal

import torch
from pydantic import AfterValidator
from torch import Tensor, nn
from torch.nn import functional as F

from lib.data.batch import Batch
from lib.layers.attention import masked_softmax
from lib.models.attentive_rnn import AttentiveRNN, AttentiveState
from lib.system.errors import InputError
from lib.system.fields import checked


def _check_odd(number: int) -> int:
    if number < 1 or number % 2 == 0:
        raise ValueError("it must be odd and at least 1")
    return number


@checked
class RASConfig:
    """Sizes of Chopra et al. (2016), section 4."""

    vocab_size: int = 69_000
    source_vocab_size: int = 110_000
    source_tokens: int = 100  # places that have an embedding
    hidden: int = 512  # d, of states and of all embeddings
    filter_width: Annotated[int, AfterValidator(_check_odd)] = 5  # q, words that make an aggregate vector
    decoder: Literal["elman", "lstm"] = "elman"


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

    def encode(self, batch: Batch) -> AttentiveState:
        """Embeddings of the words, and their aggregate vectors. Raises ValueError for a text of more words than there
        are positions."""
        words = self.source_embedding(batch.source)  # [B, N, d]
        longest = words.shape[1]
        if longest > self.config.source_tokens:
            raise InputError(f"{longest} words in a text, where the model has {self.config.source_tokens} positions")
        full = (words + self.position_embedding.weight[:longest]) * batch.source_mask[..., None]
        aggregate = self.convolution(full.transpose(1, 2)).transpose(1, 2)  # z: [B, N, d]
        start = words.new_zeros(len(batch), self.config.hidden)
        return AttentiveState(words, aggregate, batch.source_mask, start, None if self._elman else start)

    @property
    def _elman(self) -> bool:
        return self.config.decoder == "elman"

    def look(self, hidden: Tensor, state: AttentiveState) -> Tensor:
        """Equation 2: alpha [B, K, N]."""
        return masked_softmax(hidden @ state.keys.transpose(1, 2), state.mask[:, None])

    def inputs(self, words: Tensor) -> Tensor:
        return F.linear(words, self.cell.weight[:, : self.config.hidden], self.cell.bias)

    def step(self, word: Tensor, context: Tensor, hidden: Tensor, cell: Tensor | None):
        """Equation 3."""
        rest = self.cell.weight[:, self.config.hidden :]
        gates = word + torch.cat([context, hidden], -1) @ rest.T
        if cell is None:
            return gates.sigmoid(), None
        i, new, f, o = gates.chunk(4, -1)
        cell = f.sigmoid() * cell + i.sigmoid() * new.tanh()
        return o.sigmoid() * cell, cell
