"""Recurrent layers: rows of words without their padding, PyTorch's LSTM and GRU, and a GRU whose update is gated
(Read-Again, equations 4 and 6)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_map

from lib.data.batch import pack
from lib.layers.cpu_kernels import compiled


def run_packed(layer: nn.Module, values: Tensor, lengths: Tensor, backwards: bool = False) -> tuple[Tensor, Any]:
    """Run a recurrent layer over rows of words: outputs [B, N, d], and its last states in the layer's own form.

    values: [B, N, e]; lengths: [B] words of each row, on the CPU. Padding is not computed: there outputs are 0.
    backwards: rows are read from their last word to their first; the output of a word is at the word's place.
    """
    rows, width = values.shape[:2]
    packed = pack(np.arange(rows) * width, lengths.numpy(), values.device, backwards)
    outputs, last = layer(packed.sequence(values.flatten(0, 1).index_select(0, packed.words)))
    padded = outputs.data.new_zeros(rows * width, outputs.data.shape[1])
    return padded.index_copy(0, packed.words, outputs.data).unflatten(0, (rows, width)), last


class _OneLayer:
    """A recurrent layer of PyTorch's with `batch_first`.

    Under autocast it stays in full precision. PyTorch would compute it in float16 on a GPU, even where bfloat16 is
    asked for, and on a CPU padded inputs in bfloat16, but not packed ones.
    """

    def __init__(self, inputs: int, hidden: int, bidirectional: bool = False):
        super().__init__(inputs, hidden, batch_first=True, bidirectional=bidirectional)  # type: ignore[call-arg]

    def forward(self, inputs, hx: Any = None):
        weight = self.weight_hh_l0  # type: ignore[attr-defined]
        with torch.autocast(weight.device.type, enabled=False):
            first = None if hx is None else tree_map(lambda state: state.to(weight.dtype), hx)
            inputs = inputs.to(weight.dtype)
            slow = isinstance(inputs, PackedSequence) or (self.mode == "GRU" and inputs.dim() == 3)  # type: ignore[attr-defined]
            if not (slow and compiled(weight)):
                return super().forward(inputs, first)  # type: ignore[misc]
            return self._by_rectangles(inputs, first)

    def _by_rectangles(self, inputs, first: Any) -> tuple[Any, Any]:
        """Compute what PyTorch's loop over steps on a CPU would add up slowly: each direction and `rectangle`, steps
        that equally many rows reach, at once."""
        packed = inputs if isinstance(inputs, PackedSequence) else None
        words = inputs.transpose(0, 1).flatten(0, 1) if packed is None else inputs.data
        shapes = [(inputs.shape[1], len(inputs))] if packed is None else rectangles(packed.batch_sizes)
        weights: Any = self.all_weights  # type: ignore[attr-defined]
        zeros = words.new_zeros(len(weights), shapes[0][1], weights[0][1].shape[1])
        read, count = (_read_gru, 1) if self.mode == "GRU" else (_read_lstm, 2)  # type: ignore[attr-defined]
        start = (zeros,) * count if first is None else first if count == 2 else (first,)
        order = None if packed is None else packed.unsorted_indices
        if order is not None and first is not None:
            start = tuple(x.index_select(1, packed.sorted_indices) for x in start)
        found = [read(words, shapes, [x[i] for x in start], w, i == 1) for i, w in enumerate(weights)]
        last = tuple(torch.stack(ends) for ends in zip(*(ends for _, ends in found)))
        last = last if order is None else tuple(x.index_select(1, order) for x in last)
        states = torch.cat([states for states, _ in found], 1)
        outputs = states.unflatten(0, shapes[0]).transpose(0, 1) if packed is None else packed._replace(data=states)
        return outputs, last if count == 2 else last[0]


def rectangles(sizes: Tensor) -> list[tuple[int, int]]:
    """Return the steps and rows of each rectangle of a packed sequence, of which `sizes` rows reach each step."""
    rows, steps = sizes.unique_consecutive(return_counts=True)
    return list(zip(steps.tolist(), rows.tolist()))


def _read_gru(words: Tensor, shapes: Any, start: list[Tensor], weights: Any, backwards: bool) -> tuple[Tensor, Any]:
    weight_ih, weight, bias_ih, bias = weights
    sizes = [rows for steps, rows in shapes for _ in range(steps)]
    states, last = gru_scan(nn.functional.linear(words, weight_ih, bias_ih), None, *start, weight, bias, sizes, backwards)
    return states, (last,)


def _read_lstm(words: Tensor, shapes: Any, start: list[Tensor], weights: Any, backwards: bool) -> tuple[Tensor, Any]:
    parts = [part.unflatten(0, shape) for part, shape in zip(words.split([s * r for s, r in shapes]), shapes)]
    outputs, live, ended = [], start, []
    for part in reversed(parts) if backwards else parts:
        rows = part.shape[1]
        if backwards:  # rows that are longer have begun; the others begin here
            begun = len(live[0]) if outputs else 0
            state = [torch.cat([x[:begun], y[begun:rows]]) if begun else y[:rows] for x, y in zip(live, start)]
        else:
            ended.append([x[rows:] for x in live])
            state = [x[:rows] for x in live]
        output, *live = torch.lstm(
            part.flip(0) if backwards else part, [x[None] for x in state], weights, True, 1, 0.0, torch.is_grad_enabled(), False, False
        )
        live = [x[0] for x in live]
        outputs.append((output.flip(0) if backwards else output).flatten(0, 1))
    last = live if backwards else [torch.cat(parts) for parts in zip(live, *reversed(ended))]
    return torch.cat(outputs[::-1] if backwards else outputs), last


class LSTM(_OneLayer, nn.LSTM):
    """`torch.nn.LSTM` of one layer."""


class GRU(_OneLayer, nn.GRU):
    """`torch.nn.GRU` of one layer."""


class GatedGRU(nn.Module):
    r"""$h_i=(1-\alpha_i\odot z_i)\odot h_{i-1}+\alpha_i\odot z_i\odot\tilde h_i$, z and h-tilde of PyTorch's GRU.

    PyTorch's gate keeps the old state where the paper's takes the new one ($z = 1 - z_{torch}$), and its reset gate
    comes after the product. With alpha at 1 this is `torch.nn.GRU`, whose parameters it has.
    """

    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, batch_first=True)

    def forward(self, inputs: Tensor, alpha: Tensor) -> Tensor:
        """Compute the states [B, N, d] of inputs [B, N, e], from zeros; alpha: [B, N, d]."""
        weight_ih, weight, bias_ih, bias = self.gru.all_weights[0]
        projected = nn.functional.linear(inputs, weight_ih, bias_ih)  # all words at once: [B, N, 3d]
        projected, alpha = (x.transpose(0, 1).flatten(0, 1) for x in (projected, alpha))
        start, sizes = projected.new_zeros(len(inputs), weight.shape[1]), [len(inputs)] * inputs.shape[1]
        states, _ = gru_scan(projected, alpha, start, weight, bias, sizes)
        return states.unflatten(0, (len(sizes), len(inputs))).transpose(0, 1)


def gru_scan(
    projected: Tensor, alpha: Tensor | None, start: Tensor, weight: Tensor, bias: Tensor, sizes: Sequence[int],
    backwards: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute the recurrence over W words that are in the order of the steps, `sizes` of them at each.

    projected: [W, 3d], W x + b of the words; alpha: [W, d]; start: [n, d]; weight: [3d, d], bias: [3d]. Returns
    states [W, d] and the last of each of the n sequences [n, d]; `backwards`: from the last step to the first.
    """
    with torch.autocast(weight.device.type, enabled=False):
        inputs = (None if x is None else x.to(weight.dtype) for x in (projected, alpha, start))
        return _GRUScan.apply(*inputs, weight, bias, sizes, backwards)


class _GRUScan(torch.autograd.Function):
    """The recurrence, with explicit gradients: those of the weights are one product over all words."""

    @staticmethod
    def forward(ctx, projected, alpha, start, weight, bias, sizes, backwards):
        d = weight.shape[1]
        previous, rz, new, by_hidden, states = (projected.new_empty(len(projected), k * d) for k in (1, 2, 1, 1, 1))
        (w_rz, w_n), (b_rz, b_n) = weight.T.split([2 * d, d], 1), bias.split([2 * d, d])
        from_words = projected[:, : 2 * d] + b_rz, projected[:, 2 * d :]
        hidden = start.clone(memory_format=torch.contiguous_format)  # rows that have ended keep theirs
        scale = rz[:, d:] if alpha is None else alpha
        values = *from_words, previous, rz, rz[:, :d], rz[:, d:], new, by_hidden, states, scale
        for x, x_n, before, both, r, z, n, h_n, state, a in _steps(values, sizes, backwards):
            h = hidden[: len(x)]
            before.copy_(h)
            torch.addmm(x, h, w_rz, out=both).sigmoid_()
            torch.addcmul(x_n, r, torch.addmm(b_n, h, w_n, out=h_n), out=n).tanh_()
            h.copy_(torch.lerp(n, h, z, out=state) if alpha is None else torch.lerp(h, n, a * (1 - z), out=state))
        ctx.sizes, ctx.backwards = sizes, backwards
        ctx.save_for_backward(alpha, weight, previous, rz, new, by_hidden)
        return states, hidden

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_states, d_last):
        alpha, weight, previous, rz, new, by_hidden = ctx.saved_tensors
        r, z = rz.chunk(2, 1)
        # The derivatives of h_t by the sums in r and z, by W_n h and by h_{t-1} need no gradient.
        share = 1 - z if alpha is None else alpha * (1 - z)
        by_new = share * (1 - new * new)
        by_from = by_new * r
        by_z = torch.mul(previous - new, z).mul_(1 - z if alpha is None else share)
        slopes = torch.stack([(by_from * by_hidden).mul_(1 - r), by_z, by_from], 1)  # [W, 3, d]
        d_sums, d_after = torch.empty_like(slopes), torch.empty_like(previous)
        d_hidden = d_last.clone(memory_format=torch.contiguous_format)
        values = d_states, d_after, d_after[:, None], slopes, d_sums, d_sums.flatten(1), share.neg_().add_(1)
        for d_state, after, each, slope, d_sum, flat, keep in _steps(values, ctx.sizes, not ctx.backwards):
            d = d_hidden[: len(after)]
            torch.mul(torch.add(d, d_state, out=after)[:, None], slope, out=d_sum)
            torch.mul(after, keep, out=d).addmm_(flat, weight)
        d_alpha = None if alpha is None else (new - previous).mul_(d_after).mul_(1 - z)
        d_sums = d_sums.flatten(1)
        d_projected = torch.cat([d_sums[:, : rz.shape[1]], d_after.mul_(by_new)], 1)
        return d_projected, d_alpha, d_hidden, d_sums.T @ previous, d_sums.sum(0), None, None


def _steps(values: Sequence[Tensor], sizes: Sequence[int], backwards: bool) -> Any:
    steps = list(zip(*(x.split(sizes) for x in values)))
    return reversed(steps) if backwards else steps
