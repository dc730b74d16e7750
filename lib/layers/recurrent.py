"""Recurrent layers: rows of words without their padding, PyTorch's LSTM and GRU, and a GRU whose
update is gated (Read-Again, equations 4 and 6)."""

from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lib.data.batch import pack
from lib.layers import cpu_kernels as cpu
from lib.layers.cpu_kernels import compiled
from lib.layers.fast import fast_form
from lib.layers.scan import scan


def run_packed(
    layer: nn.Module, values: Tensor, lengths: Tensor, backwards: bool = False
) -> tuple[Tensor, Any]:
    """Run a recurrent layer over rows of words: outputs [B, N, d], and its last states in the
    layer's own form.

    values: [B, N, e]; lengths: [B] words of each row, on the CPU. Padding is not computed: there
    outputs are 0. backwards: rows are read from their last word to their first; the output of a
    word is at the word's place.
    """
    # Word j of row i is at i * width + j of the flat batch.
    rows, width = values.shape[:2]
    packed = pack(np.arange(rows) * width, lengths.numpy(), values.device, backwards)
    outputs, last = layer(packed.sequence(values.flatten(0, 1).index_select(0, packed.words)))
    padded = outputs.data.new_zeros(rows * width, outputs.data.shape[1])
    return padded.index_copy(0, packed.words, outputs.data).unflatten(0, (rows, width)), last


class _OneLayer:
    """A recurrent layer of PyTorch's with `batch_first`.

    Under autocast it stays in full precision. PyTorch would compute it in float16 on a GPU, even
    where bfloat16 is asked for, and on a CPU padded inputs in bfloat16, but not packed ones.

    On a CPU, PyTorch reads packed sequences in a time that grows with the square of the words: each
    step takes its rows of all words, and the gradient of each step is a tensor of all words. There
    the layer reads by `_read`.
    """

    def __init__(self, inputs: int, hidden: int, bidirectional: bool = False):
        how: Any = {"batch_first": True, "bidirectional": bidirectional}
        super().__init__(inputs, hidden, **how)  # type: ignore[call-arg]

    def forward(self, inputs: Any, hx: Any = None) -> tuple[Any, Any]:
        """Do what PyTorch's `forward` does; inputs: [B, N, e] or packed."""
        weight = self.weight_hh_l0  # type: ignore[attr-defined]
        with torch.autocast(weight.device.type, enabled=False):
            if isinstance(hx, tuple):
                start = tuple(state.to(weight.dtype) for state in hx)
            else:
                start = None if hx is None else hx.to(weight.dtype)
            inputs = inputs.to(weight.dtype)
            if not (compiled(weight) and self._reads(inputs)):
                return super().forward(inputs, start)  # type: ignore[misc]
            return self._forward_on_cpu(inputs, start)

    def _reads(self, inputs: Any) -> bool:
        """Return whether `_read` is faster than PyTorch's own loop."""
        return isinstance(inputs, PackedSequence)

    def _read(
        self, words: Tensor, sizes: Tensor, start: list[Tensor], direction: int
    ) -> tuple[Tensor, ...]:
        """Read W words [W, e] that are in the order of the steps, `sizes` of them at each.

        start: first states [n, d], and cells, of the n sequences. direction: 1 reads from the last
        step to the first. Returns the states [W, d] of the words, and the last states [n, d], and
        cells.
        """
        raise NotImplementedError

    def _forward_on_cpu(self, inputs: Any, hx: Any) -> tuple[Any, Any]:
        """Do what PyTorch's `forward` does, each direction by `_read`."""
        packed = isinstance(inputs, PackedSequence)
        order: Any = None
        back: Any = None
        if packed:
            words, sizes, order, back = inputs
        else:  # [B, N, e]: all rows are at each step
            padded: Any = inputs
            words = padded.transpose(0, 1).flatten(0, 1)
            sizes = torch.full((padded.shape[1],), len(padded))
        directions = 1 + self.bidirectional  # type: ignore[attr-defined]
        width = self.hidden_size  # type: ignore[attr-defined]
        lstm = self.mode == "LSTM"  # type: ignore[attr-defined]
        # A tuple in any case: (states, cells), or (states,) of a GRU.
        if hx is None:
            zeros = words.new_zeros(directions, int(sizes[0]), width)
            start = (zeros, zeros) if lstm else (zeros,)
        else:
            start = hx if lstm else (hx,)
            if order is not None:
                start = tuple(x.index_select(1, order) for x in start)

        outputs_of, ends_of = [], []
        for direction in range(directions):
            begin = [x[direction] for x in start]
            output, *ends = self._read(words, sizes, begin, direction)
            outputs_of.append(output)
            ends_of.append(ends)
        states = torch.cat(outputs_of, 1)
        last = tuple(torch.stack(ends) for ends in zip(*ends_of))
        if back is not None:
            last = tuple(x.index_select(1, back) for x in last)
        if packed:
            outputs = inputs._replace(data=states)
        else:
            outputs = states.unflatten(0, (len(sizes), len(inputs))).transpose(0, 1)
        return outputs, last if lstm else last[0]


class LSTM(_OneLayer, nn.LSTM):
    """`torch.nn.LSTM` of one layer."""

    def _read(
        self, words: Tensor, sizes: Tensor, start: list[Tensor], direction: int
    ) -> tuple[Tensor, ...]:
        # Steps that equally many rows reach are a rectangle [steps, rows, e], read at once.
        rows, steps = sizes.unique_consecutive(return_counts=True)
        parts = words.split((rows * steps).tolist())
        shapes = zip(steps.tolist(), rows.tolist())
        rectangles = [part.unflatten(0, shape) for part, shape in zip(parts, shapes)]
        read = self._read_backwards if direction else self._read_forwards
        return read(rectangles, start)

    def _read_forwards(self, parts: list[Tensor], start: list[Tensor]) -> tuple[Tensor, ...]:
        live = start  # states and cells of the rows that go on
        ended, outputs = [], []
        for part in parts:
            rows = part.shape[1]
            ended.append([x[rows:] for x in live])
            output, *live = self._rectangle(part, [x[:rows] for x in live], 0)
            outputs.append(output.flatten(0, 1))
        # The rows that end last are the first ones.
        ends = [live, *reversed(ended)]
        hidden = torch.cat([state for state, _ in ends])
        cell = torch.cat([cell for _, cell in ends])
        return torch.cat(outputs), hidden, cell

    def _read_backwards(self, parts: list[Tensor], start: list[Tensor]) -> tuple[Tensor, ...]:
        live, outputs = [x[:0] for x in start], []
        for part in reversed(parts):
            # Longer rows have begun; the others begin here.
            begun, rows = len(live[0]), part.shape[1]
            state = [torch.cat([x, first[begun:rows]]) for x, first in zip(live, start)]
            output, *live = self._rectangle(part.flip(0), state, 1)
            outputs.append(output.flip(0).flatten(0, 1))
        hidden, cell = live
        return torch.cat(outputs[::-1]), hidden, cell

    def _rectangle(self, part: Tensor, state: list[Tensor], direction: int) -> list[Tensor]:
        """Read [steps, rows, e]: outputs [steps, rows, d], last states and cells [rows, d]."""
        weights: Any = self.all_weights[direction]
        output, hidden, cell = torch.lstm(
            part,
            [x[None] for x in state],
            weights,
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=torch.is_grad_enabled(),
            bidirectional=False,
            batch_first=False,
        )
        return [output, hidden[0], cell[0]]


class GRU(_OneLayer, nn.GRU):
    """`torch.nn.GRU` of one layer."""

    def _reads(self, inputs: Any) -> bool:
        # Of a single word, as a search reads, PyTorch's own step is the faster one.
        return isinstance(inputs, PackedSequence) or (inputs.dim() == 3 and inputs.shape[1] > 1)

    def _read(
        self, words: Tensor, sizes: Tensor, start: list[Tensor], direction: int
    ) -> tuple[Tensor, ...]:
        weight_ih, weight, bias_ih, bias = self.all_weights[direction]
        projected = nn.functional.linear(words, weight_ih, bias_ih)  # all words at once: [W, 3d]
        return gru_scan(
            projected=projected,
            alpha=None,
            start=start[0],
            weight=weight,
            bias=bias,
            sizes=sizes.tolist(),
            backwards=direction == 1,
        )


class GatedGRU(nn.Module):
    r"""$h_i=(1-\alpha_i\odot z_i)\odot h_{i-1}+\alpha_i\odot z_i\odot\tilde h_i$, z and h-tilde of
    PyTorch's GRU.

    PyTorch's gate keeps the old state where the paper's takes the new one ($z = 1 - z_{torch}$),
    and its reset gate comes after the product. With alpha at 1 this is `torch.nn.GRU`, whose
    parameters it has.
    """

    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, batch_first=True)

    def forward(self, inputs: Tensor, alpha: Tensor) -> Tensor:
        """Compute the states [B, N, d] of inputs [B, N, e], from zeros; alpha: [B, N, d]."""
        weight_ih, weight, bias_ih, _ = self.gru.all_weights[0]
        # All words at once: [B, N, 3d].
        projected = nn.functional.linear(inputs, weight_ih, bias_ih)
        with torch.autocast(weight.device.type, enabled=False):
            projected = projected.to(weight.dtype)
            alpha = alpha.to(weight.dtype)
            start = projected.new_zeros(len(inputs), weight.shape[1])
            states, _ = scan(self.step, start, [projected, alpha])
        return states

    def step(self, hidden: Tensor, projected: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        """Compute h_i [B, d], which is output and next state. A subclass may change it.

        Args:
            hidden: h_{i-1} [B, d].
            projected: W x_i + b of the reset gate, of z_torch and of the new state, [B, 3d].
            alpha: alpha_i [B, d].
        """
        _, weight, _, bias = self.gru.all_weights[0]
        xr, xz, xn = projected.chunk(3, 1)
        hr, hz, hn = nn.functional.linear(hidden, weight, bias).chunk(3, 1)
        # r_i = sigmoid(W_r x_i + U_r h_{i-1}),  z_i = 1 - sigmoid(W_z x_i + U_z h_{i-1})
        r = torch.sigmoid(xr + hr)
        z = 1 - torch.sigmoid(xz + hz)
        # h~_i = tanh(W x_i + r_i (U h_{i-1}))
        new = torch.tanh(xn + r * hn)
        # h_i = (1 - alpha_i z_i) h_{i-1} + alpha_i z_i h~_i   (4, 6)
        hidden = hidden + alpha * z * (new - hidden)
        return hidden, hidden

    def _has_kernel(self, hidden: Tensor, *_: Tensor) -> bool:
        return compiled(hidden)

    @fast_form(step, where=_has_kernel)
    def _steps_fast(
        self, hidden: Tensor, projected: Tensor, alpha: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Do what `scan` does with `step`, by the kernels of a GRU."""
        _, weight, _, bias = self.gru.all_weights[0]
        rows, steps = projected.shape[:2]
        states, last = gru_scan(
            projected=projected.transpose(0, 1).flatten(0, 1),
            alpha=alpha.transpose(0, 1).flatten(0, 1),
            start=hidden,
            weight=weight,
            bias=bias,
            sizes=[rows] * steps,
        )
        return states.unflatten(0, (steps, rows)).transpose(0, 1), last


def gru_scan(
    projected: Tensor,
    alpha: Tensor | None,
    start: Tensor,
    weight: Tensor,
    bias: Tensor,
    sizes: list[int],
    backwards: bool = False,
) -> tuple[Tensor, Tensor]:
    """Compute the recurrence of a GRU over W words, by kernels.

    The words are in the order of the steps, `sizes` of them at each.

    projected: [W, 3d], W x + b of the words; alpha: [W, d]; start: [n, d]; weight: [3d, d], bias:
    [3d]. Returns states [W, d] and the last of each of the n sequences [n, d]. backwards: from the
    last step to the first.
    """
    with torch.autocast(weight.device.type, enabled=False):
        return _CompiledGRU.apply(
            projected.to(weight.dtype),
            None if alpha is None else alpha.to(weight.dtype),
            start.to(weight.dtype),
            weight,
            bias,
            sizes,
            backwards,
        )


class _CompiledGRU(torch.autograd.Function):
    """Compute what `GatedGRU.step` does in all steps; without alpha, what PyTorch's GRU does.

    The weights' gradients are one product over all words.
    """

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        alpha: Tensor | None,
        start: Tensor,
        weight: Tensor,
        bias: Tensor,
        sizes: list[int],
        backwards: bool,
    ) -> tuple[Tensor, Tensor]:
        words, width = len(projected), weight.shape[1]
        states = projected.new_empty(words, width)
        previous = projected.new_empty(words, width)  # the state before each word
        gates = projected.new_empty(words, 4, width)
        hidden = start.clone(memory_format=torch.contiguous_format)
        by_state = projected.new_empty(len(start), 3 * width)  # U h + b of one step
        x, u, a, h, p, g, s = cpu.arrays(
            projected, by_state, alpha, hidden, previous, gates, states
        )
        steps = _places_of_steps(sizes)
        for at in reversed(steps) if backwards else steps:
            n = at.stop - at.start
            torch.addmm(bias, hidden[:n], weight.T, out=by_state[:n])
            a_step = None if a is None else a[at]
            cpu.gru_step(x[at], u[:n], a_step, h[:n], p[at], g[at], s[at])
        ctx.steps, ctx.backwards = steps, backwards
        ctx.save_for_backward(alpha, weight, previous, gates)
        return states, hidden

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_states: Tensor, d_last: Tensor) -> tuple[Tensor | None, ...]:
        alpha, weight, previous, gates = ctx.saved_tensors
        width = weight.shape[1]
        # [W, 4, d]: of n's part U h, and of the sums in r, z and n.
        d_sums = torch.empty_like(gates)
        flat = d_sums.flatten(1)
        d_alpha = None if alpha is None else torch.empty_like(previous)
        d_hidden = d_last.clone(memory_format=torch.contiguous_format)
        d, a, p, g, dh, ds, da = cpu.arrays(
            d_states, alpha, previous, gates, d_hidden, d_sums, d_alpha
        )
        turned = weight.roll(width, 0)  # its rows for n, r, z: the order of d_sums
        for at in ctx.steps if ctx.backwards else reversed(ctx.steps):
            n = at.stop - at.start
            a_step, da_step = (None, None) if alpha is None else (a[at], da[at])
            cpu.gru_step_backward(d[at], a_step, p[at], g[at], dh[:n], ds[at], da_step)
            # The part of the state's gradient that comes through U h.
            d_hidden[:n].addmm_(flat[at, : 3 * width], turned)
        by_state = flat[:, : 3 * width]
        d_weight = (by_state.T @ previous).roll(-width, 0)
        d_bias = by_state.sum(0).roll(-width)
        return flat[:, width:], d_alpha, d_hidden, d_weight, d_bias, None, None


def _places_of_steps(sizes: list[int]) -> list[slice]:
    """Return the places of the words of each step."""
    return [slice(end - size, end) for size, end in zip(sizes, accumulate(sizes))]
