"""An LSTM that attends to the source before each of its steps (Read-Again, equations 12 to 14)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lib.layers.attention import Attention


def attentive_lstm(
    words: Tensor,
    start: tuple[Tensor, Tensor],
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    attention: Attention,
    lstm: nn.LSTMCell,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the states h of all words [R, T, d], the last cell [R, d] and the attention weights beta [R, T, N].

    h_t is the next state of an LSTM that reads the word and c_t. Autocast has an effect on the words' part only.

    Args:
        words: [R, T, e].
        start: hidden state and cell before the first word, [R, d] each.
        keys: [B, N, A], k, from `attention.project`.
        values: [B, N, c], s.
        mask: [B, N], true for words.
        attention: with a concat score.
        lstm: of inputs [e + c].
    """
    from_word, from_context = lstm.weight_ih.split([words.shape[2], values.shape[2]], 1)
    # The words' part of all gates is one product.
    gates_of_words = F.linear(words, from_word, lstm.bias_ih + lstm.bias_hh)  # [R, T, 4d]
    states, weights = [], []
    with torch.autocast(words.device.type, enabled=False):
        gates_of_words, hidden, cell, keys, values = (
            x.to(from_word.dtype) for x in (gates_of_words, *start, keys, values)
        )
        for from_the_word in gates_of_words.unbind(1):
            # beta_t = softmax_n(v^T tanh(W_q h_{t-1} + k_n))   (13)
            queries = attention.project_queries(hidden).unflatten(0, (len(keys), -1))  # [B, K, A]
            beta = attention(queries, keys, mask)
            # c_t = sum_n beta_tn s_n   (14)
            context = (beta @ values).flatten(0, 1)
            gates = from_the_word + F.linear(context, from_context) + F.linear(hidden, lstm.weight_hh)
            i, f, g, o = gates.chunk(4, -1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            states.append(hidden)
            weights.append(beta.flatten(0, 1))
    return torch.stack(states, 1), cell, torch.stack(weights, 1)
