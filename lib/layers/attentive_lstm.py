"""A fast form of an LSTM that attends to the source before each step (Read-Again, 12 to 14).

`lib.models.read_again.ReadAgain.attend_and_write` states the equations. Nothing here is called
where a subclass has changed them (`lib.layers.fast`).

Shapes: B documents, K hypotheses of each, R = B * K rows, T target words, N source words, A
attention width, c width of the values, d width of the LSTM.
"""

from typing import Any

import torch
from torch import Tensor, nn

from lib.layers import cpu_kernels as cpu
from lib.layers.attention import TANH_NUMBERS, Attention

aten = torch.ops.aten


def attentive_lstm(
    words: Tensor,
    start: tuple[Tensor, Tensor],
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    attention: Attention,
    lstm: nn.LSTMCell,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Compute the states h of all words [R, T, d], the last cell [R, d] and the attention weights
    beta [R, T, N]:

    $\beta_t = \mathrm{softmax}_n(v^\top\tanh(W_q h_{t-1} + k_n))$ (13),
    $c_t = \sum_n \beta_{tn} s_n$ (14), and h_t is the next state of an LSTM that reads the word and
    c_t. Autocast has an effect on the words' part only.

    Args:
        words: [R, T, e].
        start: hidden state and cell before the first word, [R, d] each.
        keys: [B, N, A], k, from `attention.project`.
        values: [B, N, c], s.
        mask: [B, N], true for words.
        attention: with a concat score; it holds W_q and v.
        lstm: of inputs [e + c].
    """
    query, v = attention.query.weight, attention.v.weight.flatten()
    from_word, from_context = lstm.weight_ih.split([words.shape[2], values.shape[2]], 1)
    # The words' part of all gates is one product.
    biases = lstm.bias_ih + lstm.bias_hh
    from_words = nn.functional.linear(words, from_word, biases).transpose(0, 1)  # [T, R, 4d]
    hidden, cell = start
    with torch.autocast(v.device.type, enabled=False):
        states, cell, beta = _Scan.apply(
            from_words.to(v.dtype),
            hidden.to(v.dtype),
            cell.to(v.dtype),
            keys.to(v.dtype),
            values.to(v.dtype),
            mask,
            query,
            v,
            from_context,
            lstm.weight_hh,
        )
    # Contiguous, because dropout draws in the order of the memory.
    return states.transpose(0, 1).contiguous(), cell, beta.flatten(1, 2).transpose(0, 1)


class _Scan(torch.autograd.Function):
    """The loop over the words, with few launches on a GPU.

    Each word writes into memory of all words, so that gradients of weights and values are one
    product after the loop.
    """

    @staticmethod
    def forward(
        ctx: Any,
        from_words: Tensor,
        start: Tensor,
        start_cell: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor,
        query: Tensor,
        v: Tensor,
        from_context: Tensor,
        from_hidden: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        keys = keys.contiguous()
        values = values.contiguous()
        steps = len(from_words)
        rows, width = start.shape
        documents, source_words, _ = keys.shape
        hypotheses = rows // documents
        states = start.new_empty(steps + 1, rows, width)  # h_{t-1} of each word, and the last h
        cells = start.new_empty(steps + 1, rows, width)
        states[0] = start
        cells[0] = start_cell
        squashed = start.new_empty(steps, rows, width)  # tanh of the new cells
        sums = from_words.clone(memory_format=torch.contiguous_format)
        gates = torch.empty_like(sums)
        queries = keys.new_empty(steps, documents, hypotheses, len(v))
        # Padding stays -inf, and what the tanh gives is added to the zeros of words.
        scores = keys.new_full((steps, documents, hypotheses, source_words), -torch.inf)
        scores.masked_fill_(mask[:, None], 0)
        beta = torch.empty_like(scores)
        contexts = keys.new_empty(steps, documents, hypotheses, values.shape[2])
        lengths = mask.sum(1)
        compiled = cpu.compiled(keys)
        if compiled:
            lengths_ = lengths.numpy()
            queries_, keys_, v_, scores_ = cpu.arrays(queries, keys, v, scores)
        for t in range(steps):
            # Views, which the operations below fill.
            previous, score, context, total = states[t], scores[t], contexts[t], sums[t]
            # beta_t = softmax_n(v^T tanh(W_q h_{t-1} + k_n))   (13)
            torch.mm(previous, query.T, out=queries[t].view(rows, -1))
            if compiled:
                cpu.additive_scores(queries_[t], keys_, v_, lengths_, scores_[t])
            else:
                tanh = torch.tanh(queries[t][:, :, None] + keys[:, None])  # [B, K, N, A]
                score.view(-1).addmv_(tanh.flatten(0, 2), v)
            weights = torch.softmax(score, -1, out=beta[t])
            # c_t = sum_n beta_tn s_n   (14)
            torch.bmm(weights, values, out=context)

            total.addmm_(context.view(rows, -1), from_context.T)
            total.addmm_(previous, from_hidden.T)
            # One launch computes the sigmoid of all four; g, the third, is a tanh instead.
            i, f, g, o = torch.sigmoid(total, out=gates[t]).chunk(4, -1)
            torch.tanh(total[:, 2 * width : 3 * width], out=g)
            # cell_t = f cell_{t-1} + i g and h_t = o tanh(cell_t)
            cell = torch.mul(f, cells[t], out=cells[t + 1]).addcmul_(i, g)
            torch.mul(o, torch.tanh(cell, out=squashed[t]), out=states[t + 1])
        ctx.save_for_backward(
            keys,
            values,
            query,
            v,
            from_context,
            from_hidden,
            lengths,
            queries,
            beta,
            contexts,
            gates,
            cells,
            squashed,
            states,
        )
        return states[1:], cells[-1], beta

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, d_states: Tensor, d_last_cell: Tensor, d_beta: Tensor
    ) -> tuple[Tensor | None, ...]:
        keys, values, query, v, from_context, from_hidden, *computed = ctx.saved_tensors
        lengths, queries, beta, contexts, gates, cells, squashed, states = computed
        steps, rows, width = squashed.shape
        # The derivatives of cell_t by cell_{t-1} and by the sums in i, f and g, and those of h_t by
        # the sum in o and by cell_t, need no gradient: they are computed for all words at once.
        i, f, g, o = gates.chunk(4, -1)
        by_i = aten.sigmoid_backward(g, i)
        by_f = aten.sigmoid_backward(cells[:-1], f)
        by_g = aten.tanh_backward(i, g)
        of_cell = torch.stack([f, by_i, by_f, by_g], 2)  # [T, R, 4, d]
        by_o = aten.sigmoid_backward(squashed, o)
        by_cell = aten.tanh_backward(o, squashed)

        # The gradients of cell_{t-1} and of the sums in i, f, g, o.
        d_steps = squashed.new_empty(steps + 1, rows, 5, width)
        d_steps[-1, :, 0] = d_last_cell
        d_sums = d_steps[:-1, :, 1:].flatten(2)  # a view, [T, R, 4d]
        d_hidden = torch.zeros_like(states)
        d_hidden[1:] = d_states
        d_contexts = torch.empty_like(contexts)
        d_beta = d_beta.clone(memory_format=torch.contiguous_format)
        d_scores = torch.empty_like(beta)
        gradients_of = _CompiledScoreGradients if cpu.compiled(keys) else _ScoreGradients
        scores = gradients_of(queries, keys, v, d_scores, lengths)
        for t in reversed(range(steps)):
            # cell_t reaches the loss through later words and through h_t = o tanh(cell_t).
            d_cell = d_steps[t + 1, :, 0].addcmul_(d_hidden[t + 1], by_cell[t])
            torch.mul(d_cell[:, None], of_cell[t], out=d_steps[t, :, :4])
            torch.mul(d_hidden[t + 1], by_o[t], out=d_steps[t, :, 4])

            # c_t = sum_n beta_tn s_n, and beta_t is a softmax.
            torch.mm(d_sums[t], from_context, out=d_contexts[t].view(rows, -1))
            d_beta[t].baddbmm_(d_contexts[t], values.transpose(1, 2))
            aten._softmax_backward_data.out(
                d_beta[t], beta[t], -1, beta.dtype, grad_input=d_scores[t]
            )
            scores.add_word(t)
            # h_{t-1} reaches the loss directly, through the gates and through the query.
            d_hidden[t].addmm_(d_sums[t], from_hidden)
            d_hidden[t].addmm_(scores.d_queries[t].view(rows, -1), query)

        # The weights' gradients are sums over all words of all rows: one product each.
        previous = states[:-1].flatten(0, 1)
        d_of_rows = d_sums.flatten(0, 1)
        d_values = _of_documents(beta).transpose(1, 2) @ _of_documents(d_contexts)
        d_query = scores.d_queries.view(steps * rows, -1).T @ previous
        d_from_context = d_of_rows.T @ contexts.view(steps * rows, -1)
        d_from_hidden = d_of_rows.T @ previous
        return (
            d_sums,
            d_hidden[0],
            d_steps[0, :, 0],
            scores.d_keys,
            d_values,
            None,
            d_query,
            scores.d_v,
            d_from_context,
            d_from_hidden,
        )


def _of_documents(values: Tensor) -> Tensor:
    """[T, B, K, ...] -> [B, T * K, ...]."""
    return values.transpose(0, 1).flatten(1, 2)


class _ScoreGradients:
    """Gradients of the scores, word by word from the last to the first.

    The queries of all words are known by now. Therefore the tanh [t, B, K, N, A] of many words is
    computed at once, as many as `TANH_NUMBERS` allows, and one launch is left for each word.
    """

    def __init__(self, queries: Tensor, keys: Tensor, v: Tensor, d_scores: Tensor, lengths: Tensor):
        self.queries, self.keys, self.v, self.d_scores = queries, keys, v, d_scores
        self.d_queries = queries.new_zeros(queries.shape)
        self.d_keys = keys.new_zeros(keys.shape)
        self.d_v = torch.zeros_like(v)
        self.words = range(0)  # whose tanh and slope are there

    def add_word(self, t: int) -> None:
        """Add what d_scores[t] [B, K, N] contributes."""
        if t not in self.words:
            size = max(1, TANH_NUMBERS // (self.d_scores[t].numel() * len(self.v)))
            self.words = range(max(0, t + 1 - size), t + 1)
            queries = self.queries[self.words.start : t + 1].unsqueeze(3)  # [t, B, K, 1, A]
            self.tanh = (self.keys[:, None] + queries).tanh_()
            # score = v^T tanh(q + k), so its slope by q and by k is v (1 - tanh^2).
            self.slope = self.tanh.square().neg_().add_(1).mul_(self.v)
        d_score = self.d_scores[t].flatten(0, 1)
        slope = self.slope[t - self.words.start].flatten(0, 1)
        torch.bmm(d_score[:, None], slope, out=self.d_queries[t].flatten(0, 1)[:, None])
        if t == self.words.start:
            d_scores = self.d_scores[t : self.words.stop]
            self.d_v.addmv_(self.tanh.flatten(0, 3).T, d_scores.flatten())
            self.d_keys += self.slope.mul_(d_scores.unsqueeze(4)).sum((0, 2))
            del self.tanh, self.slope  # before the next block needs memory


class _CompiledScoreGradients:
    """Do what `_ScoreGradients` does, by a kernel."""

    def __init__(self, queries: Tensor, keys: Tensor, v: Tensor, d_scores: Tensor, lengths: Tensor):
        self.d_queries = queries.new_zeros(queries.shape)
        self.d_keys = keys.new_zeros(keys.shape)
        self.d_v = v.new_zeros(v.shape)
        self.q, self.k, self.v, self.d = cpu.arrays(queries, keys, v, d_scores)
        self.lengths = lengths.numpy()
        # The same memory as the tensors.
        self.dq, self.dk, self.dv = cpu.arrays(self.d_queries, self.d_keys, self.d_v)

    def add_word(self, t: int) -> None:
        cpu.additive_scores_backward(
            self.q[t],
            self.k,
            self.v,
            self.lengths,
            self.d[t],
            self.dq[t],
            self.dk,
            self.dv,
        )
