"""Recurrent layers: rows of words without their padding, PyTorch's LSTM, and GRUs with kernels for a CPU: PyTorch's,
and one whose update is gated (Read-Again, equations 4 and 6)."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lib.data.batch import pack
from lib.layers.cpu_kernels import arrays, compiled, gru_backward, gru_forward


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


class LSTM(nn.LSTM):
    """`torch.nn.LSTM` of one layer, with `batch_first`, in full precision under autocast, too: PyTorch would compute it
    in float16 on a GPU, also where bfloat16 is asked for, and on a CPU padded inputs in bfloat16, but not packed ones.
    """

    weight_hh_l0: Tensor

    def __init__(self, inputs: int, hidden: int, bidirectional: bool = False):
        super().__init__(inputs, hidden, batch_first=True, bidirectional=bidirectional)

    def forward(self, inputs, hx: tuple[Tensor, Tensor] | None = None):
        with torch.autocast(self.weight_hh_l0.device.type, enabled=False):
            kind = self.weight_hh_l0.dtype
            return super().forward(inputs.to(kind), hx and (hx[0].to(kind), hx[1].to(kind)))


class GRU(nn.GRU):
    """`torch.nn.GRU` of one layer, with `batch_first`: its parameters, arguments and results, faster on a CPU."""

    weight_hh_l0: Tensor

    def __init__(self, inputs: int, hidden: int, bidirectional: bool = False):
        super().__init__(inputs, hidden, batch_first=True, bidirectional=bidirectional)

    def forward(self, inputs, hx: Tensor | None = None):
        """Return the states of [B, N, e] or of a packed sequence, and the last ones [directions, B, d].

        hx: the first states.
        """
        packed = isinstance(inputs, PackedSequence)
        if not compiled(self.weight_hh_l0) or (not packed and inputs.dim() == 2):  # the latter is in no batch
            with torch.autocast(self.weight_hh_l0.device.type, enabled=False):  # as `LSTM`
                kind = self.weight_hh_l0.dtype
                return super().forward(inputs.to(kind), hx if hx is None else hx.to(kind))
        if not packed:
            steps = torch.full((inputs.shape[1],), len(inputs))
            outputs, last = self.forward(PackedSequence(inputs.transpose(0, 1).flatten(0, 1), steps), hx)
            return outputs.data.unflatten(0, (len(steps), len(inputs))).transpose(0, 1), last
        words, sizes, order, back = inputs.data, inputs.batch_sizes.tolist(), *inputs[2:]
        if hx is None:
            hx = words.new_zeros(len(self.all_weights), sizes[0], self.hidden_size)
        directions = [self._read(words, sizes, start, i) for i, start in enumerate(_ordered(hx, order))]
        states = torch.cat([states for states, _ in directions], -1)
        last = _ordered(torch.stack([last for _, last in directions]), back)
        return PackedSequence(states, inputs.batch_sizes, order, back), last

    def _read(self, words: Tensor, sizes: list[int], start: Tensor, direction: int) -> tuple[Tensor, Tensor]:
        weight_ih, weight, bias_ih, bias = self.all_weights[direction]
        projected = nn.functional.linear(words, weight_ih, bias_ih)  # all words at once: [W, 3d]
        return gru_scan(projected, None, start, weight, bias, sizes, direction == 1)


def _ordered(states: Tensor, order: Tensor | None) -> Tensor:
    return states if order is None else states.index_select(1, order)


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
    projected: Tensor, alpha: Tensor | None, start: Tensor, weight: Tensor, bias: Tensor, sizes: list[int],
    backwards: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Compute the recurrence over W words that are in the order of the steps, `sizes` of them at each step.

    projected: [W, 3d], W x + b of the words; alpha: [W, d]; start: [n, d]; weight: [3d, d], bias: [3d]. Returns
    states [W, d] and the last of each of the n sequences [n, d]; `backwards`: from the last step to the first.
    """
    with torch.autocast(weight.device.type, enabled=False):
        projected, start = projected.to(weight.dtype), start.to(weight.dtype)
        alpha = None if alpha is None else alpha.to(weight.dtype)
        steps = [slice(end - size, end) for size, end in zip(sizes, np.cumsum(sizes).tolist())]
        if compiled(weight):
            steps = steps[::-1] if backwards else steps
            return _CompiledScan.apply(projected, alpha, start, weight, bias, steps)
        return _scan(projected, alpha, start, weight, bias, steps)


def _scan(
    projected: Tensor, alpha: Tensor | None, start: Tensor, weight: Tensor, bias: Tensor, steps: list[slice]
) -> tuple[Tensor, Tensor]:
    """Compute the recurrence by PyTorch's operations, for sequences of equal length."""
    hidden, states = start, []
    for at in steps:
        xr, xz, xn = projected[at].chunk(3, 1)
        hr, hz, hn = nn.functional.linear(hidden, weight, bias).chunk(3, 1)
        new = torch.tanh(xn + torch.sigmoid(xr + hr) * hn)
        update = (1 - torch.sigmoid(xz + hz)) * (new - hidden)
        hidden = hidden + (update if alpha is None else alpha[at] * update)
        states.append(hidden)
    return torch.cat(states), hidden


class _CompiledScan(torch.autograd.Function):
    """Compute the recurrence with CPU kernels: a product for each step, and the gates by a kernel.

    The weights' gradients are one product over all words, after the loop.
    """

    @staticmethod
    def forward(ctx, projected, alpha, start, weight, bias, steps):
        words, width = len(projected), weight.shape[1]
        states = projected.new_empty(words, width)
        previous = projected.new_empty(words, width)
        activations = projected.new_empty(words, 4, width)
        before = projected.new_empty(len(start), 3 * width)
        # A sequence that has not begun, or has ended, keeps its state.
        hidden = start.clone(memory_format=torch.contiguous_format)
        ctx.steps = steps
        x, a, g, h, p, k, s = arrays(projected, alpha, before, hidden, previous, activations, states)
        for at in steps:
            n = at.stop - at.start
            torch.addmm(bias, hidden[:n], weight.T, out=before[:n])
            gru_forward(x[at], g[:n], None if a is None else a[at], h[:n], p[at], k[at], s[at])
        ctx.save_for_backward(alpha, weight, previous, activations)
        return states, hidden

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_states, d_last):
        alpha, weight, previous, activations = ctx.saved_tensors
        d_projected = previous.new_empty(len(previous), len(weight))
        d_before = torch.empty_like(d_projected)
        d_alpha = None if alpha is None else alpha.new_empty(alpha.shape)
        d_hidden = d_last.clone(memory_format=torch.contiguous_format)
        d, a, p, k, dh, dx, dg, da = arrays(
            d_states, alpha, previous, activations, d_hidden, d_projected, d_before, d_alpha
        )
        for at in reversed(ctx.steps):
            n = at.stop - at.start
            step_alpha, step_d_alpha = (None, None) if a is None else (a[at], da[at])
            gru_backward(d[at], step_alpha, p[at], k[at], dh[:n], dx[at], dg[at], step_d_alpha)
            d_hidden[:n].addmm_(d_before[at], weight)
        return d_projected, d_alpha, d_hidden, d_before.T @ previous, d_before.sum(0), None
