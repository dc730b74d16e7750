"""An LSTM that is compiled on a CPU."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lib.layers.dropout import Dropout
from lib.layers.kernels import arrays, compiled, lstm_backward, lstm_forward
from lib.layers.sequences import over_steps, slices


class LSTM(nn.LSTM):
    """`torch.nn.LSTM` of one layer, with `batch_first`: its parameters, arguments and results, faster on a CPU
    for packed sequences and for single steps."""

    weight_hh_l0: Tensor

    def __init__(self, inputs: int, hidden: int, bidirectional: bool = False):
        super().__init__(inputs, hidden, batch_first=True, bidirectional=bidirectional)

    def forward(self, inputs, hx: tuple[Tensor, Tensor] | None = None):
        """States of [B, N, e] or of a packed sequence, and the last ones with their cells [directions, B, d]; hx: the
        first ones."""
        if compiled(self.weight_hh_l0) and self._pays(inputs):
            return over_steps(self, self._read, inputs, hx or ())
        return super().forward(inputs, hx)

    @staticmethod
    def _pays(inputs) -> bool:
        """Whether the kernels pay: for packed sequences and single steps. PyTorch reads all else faster, but it has
        no LSTM in bfloat16 where the processor has no AVX-512."""
        short = isinstance(inputs, PackedSequence) or inputs.shape[-2] == 1
        return short or (torch.is_autocast_enabled("cpu") and _has_no_bf16())

    def _read(self, words: Tensor, sizes: list[int], start: list[Tensor], direction: int) -> tuple[Tensor, ...]:
        weight_ih, weight, bias_ih, bias = self.all_weights[direction]
        projected = nn.functional.linear(words, weight_ih, bias_ih)  # all words at once: [W, 4d]
        with torch.autocast("cpu", enabled=False):
            scanned = (x.to(weight.dtype) for x in (projected, *start))
            return _Scan.apply(*scanned, weight, bias, slices(sizes, direction == 1), torch.is_grad_enabled())


def _has_no_bf16() -> bool:
    """Whether PyTorch's own LSTM on a CPU, which is oneDNN's, ends in an error in bfloat16."""
    return torch.backends.mkldnn.is_available() and not torch.ops.mkldnn._is_mkldnn_bf16_supported()


class LSTMStack(nn.Module):
    """Layers of `LSTM`, each reading the one below, with dropout between them."""

    def __init__(self, inputs: int, hidden: int, layers: int, dropout: float, bidirectional: bool = False):
        super().__init__()
        above = hidden * (1 + bidirectional)
        self.layers = nn.ModuleList(LSTM(above if i else inputs, hidden, bidirectional) for i in range(layers))
        self.dropout = Dropout(dropout)

    def forward(self, packed: PackedSequence) -> tuple[PackedSequence, list[tuple[Tensor, Tensor]]]:
        """States of the last layer, and the last states and cells of each, [B, directions * d]."""
        last = []
        for number, layer in enumerate(self.layers):
            if number:
                packed = packed._replace(data=self.dropout(packed.data))
            packed, ends = layer(packed)
            hidden, cell = (x.transpose(0, 1).flatten(1) for x in ends)
            last.append((hidden, cell))
        return packed, last


class _Scan(torch.autograd.Function):
    """The recurrence: a product a step; the gates by the kernels. The weights' gradients are one product over all
    words."""

    @staticmethod
    def forward(ctx, projected, start, start_cell, weight, bias, steps, learns):
        words, width = len(projected), weight.shape[1]
        states, before = projected.new_empty(words, width), projected.new_empty(len(start), 4 * width)
        rows = words if learns else len(start)  # what the way back needs: of all words, or of a step
        previous, kept = projected.new_empty(rows, width), projected.new_empty(rows, 6, width)
        # sequences that have not begun, or have ended, keep theirs
        hidden, cell = (x.clone(memory_format=torch.contiguous_format) for x in (start, start_cell))
        x, y, h, c, p, k, s = arrays(projected, before, hidden, cell, previous, kept, states)
        for at in steps:
            n = at.stop - at.start
            torch.addmm(bias, hidden[:n], weight.T, out=before[:n])
            here = at if learns else slice(n)
            lstm_forward(x[at], y[:n], h[:n], c[:n], p[here], k[here], s[at])
        ctx.steps = steps
        ctx.save_for_backward(weight, previous, kept)
        return states, hidden, cell

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_states, d_last, d_last_cell):
        weight, previous, kept = ctx.saved_tensors
        d_gates = previous.new_empty(len(previous), len(weight))
        d_hidden, d_cell = (x.clone(memory_format=torch.contiguous_format) for x in (d_last, d_last_cell))
        d, k, dh, dc, dg = arrays(d_states, kept, d_hidden, d_cell, d_gates)
        for at in reversed(ctx.steps):
            n = at.stop - at.start
            lstm_backward(d[at], k[at], dh[:n], dc[:n], dg[at])
            torch.mm(d_gates[at], weight, out=d_hidden[:n])
        return d_gates, d_hidden, d_cell, d_gates.T @ previous, d_gates.sum(0), None, None
