"""GRUs that are compiled on a CPU: PyTorch's, and one whose update can be held back (Read-Again, 4 and 6)."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lib.layers.cpu_kernels import compiled, gru_backward, gru_forward, kernel_views


class GRU(nn.GRU):
    """`torch.nn.GRU` of one layer, with `batch_first`: its parameters, arguments and results, faster on a CPU."""

    weight_hh_l0: Tensor

    def __init__(self, inputs: int, hidden: int, bidirectional: bool = False):
        super().__init__(inputs, hidden, batch_first=True, bidirectional=bidirectional)

    def forward(self, inputs, hx: Tensor | None = None):
        """States of [B, N, e], [N, e] or of a packed sequence, and the last ones [directions, B, d]; hx: the first
        ones."""
        packed = isinstance(inputs, PackedSequence)
        if not compiled(self.weight_hh_l0) or (not packed and inputs.dim() == 2):  # the latter is in no batch
            return super().forward(inputs, hx)
        if packed:
            words, sizes, order, back = inputs.data, inputs.batch_sizes.tolist(), *inputs[2:]
        else:
            words, sizes, order, back = (
                inputs.transpose(0, 1).flatten(0, 1),
                [len(inputs)] * inputs.shape[1],
                None,
                None,
            )
        if hx is None:
            hx = words.new_zeros(len(self.all_weights), sizes[0], self.hidden_size)
        directions = [self._read(words, sizes, start, i) for i, start in enumerate(_ordered(hx, order))]
        states = torch.cat([states for states, _ in directions], -1)
        last = _ordered(torch.stack([last for _, last in directions]), back)
        if packed:
            return PackedSequence(states, inputs.batch_sizes, order, back), last
        return states.unflatten(0, (len(sizes), sizes[0])).transpose(0, 1), last

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
        """States [B, N, d] of inputs [B, N, e], from zeros; alpha: [B, N, d]."""
        weight_ih, weight, bias_ih, bias = self.gru.all_weights[0]
        projected = nn.functional.linear(inputs, weight_ih, bias_ih)  # all words at once: [B, N, 3d]
        projected, alpha = (x.transpose(0, 1).flatten(0, 1) for x in (projected, alpha))
        start, sizes = projected.new_zeros(len(inputs), weight.shape[1]), [len(inputs)] * inputs.shape[1]
        states, _ = gru_scan(projected, alpha, start, weight, bias, sizes)
        return states.unflatten(0, (len(sizes), len(inputs))).transpose(0, 1)


def gru_scan(
    projected: Tensor,
    alpha: Tensor | None,
    start: Tensor,
    weight: Tensor,
    bias: Tensor,
    sizes: list[int],
    backwards: bool = False,
) -> tuple[Tensor, Tensor]:
    """The recurrence alone, over W words that stand step after step, `sizes` of them at each.

    projected: [W, 3d], W x + b of the words; alpha: [W, d]; start: [n, d]; weight: [3d, d], bias: [3d]. Returns
    states [W, d] and the last of each of the n sequences [n, d]; `backwards`: from the last step to the first.
    """
    with torch.autocast(weight.device.type, enabled=False):
        inputs = (None if x is None else x.to(weight.dtype) for x in (projected, alpha, start))
        ends = np.cumsum(sizes).tolist()
        steps = [slice(end - size, end) for size, end in zip(sizes, ends)]
        return _Scan.apply(*inputs, weight, bias, steps[::-1] if backwards else steps)


class _Scan(torch.autograd.Function):
    """The recurrence: a product a step, in place; the gates by the kernels where there are any. The weights'
    gradients are one product over all words, made after the loop."""

    @staticmethod
    def forward(ctx, projected, alpha, start, weight, bias, steps):
        words, width = len(projected), weight.shape[1]
        states, previous = (projected.new_empty(words, width) for _ in range(2))
        kept, before = projected.new_empty(words, 4, width), projected.new_empty(len(start), 3 * width)
        hidden = start.clone(memory_format=torch.contiguous_format)  # who has not begun, or has ended, keeps its own
        ctx.steps = steps
        step = gru_forward if compiled(weight) else _forward_step
        x, a, g, h, p, k, s = kernel_views(projected, alpha, before, hidden, previous, kept, states)
        for at in steps:
            n = at.stop - at.start
            torch.addmm(bias, hidden[:n], weight.T, out=before[:n])
            step(x[at], g[:n], None if a is None else a[at], h[:n], p[at], k[at], s[at])
        ctx.save_for_backward(alpha, weight, previous, kept)
        return states, hidden

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_states, d_last):
        alpha, weight, previous, kept = ctx.saved_tensors
        d_projected, d_before = (previous.new_empty(len(previous), len(weight)) for _ in range(2))
        d_alpha = None if alpha is None else alpha.new_empty(alpha.shape)
        d_hidden = d_last.clone(memory_format=torch.contiguous_format)
        step = gru_backward if compiled(weight) else _backward_step
        d, a, p, k = kernel_views(d_states, alpha, previous, kept)
        dh, dx, dg, da = kernel_views(d_hidden, d_projected, d_before, d_alpha)
        for at in reversed(ctx.steps):
            n = at.stop - at.start
            gated = (None, None) if alpha is None else (a[at], da[at])
            step(d[at], gated[0], p[at], k[at], dh[:n], dx[at], dg[at], gated[1])
            d_hidden[:n].addmm_(d_before[at], weight)
        return d_projected, d_alpha, d_hidden, d_before.T @ previous, d_before.sum(0), None


def _forward_step(projected, before, alpha, hidden, previous, activations, states) -> None:
    """The step of `gru_forward`, by PyTorch."""
    (xr, xz, xn), (hr, hz, hn) = projected.chunk(3, 1), before.chunk(3, 1)
    r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    n = torch.addcmul(xn, r, hn).tanh()
    previous.copy_(hidden)
    new = (1 - z) * (n - hidden)
    hidden += new if alpha is None else alpha * new
    states.copy_(hidden)
    torch.stack([r, z, n, hn], 1, out=activations)


def _backward_step(d_states, alpha, previous, activations, d_hidden, d_projected, d_before, d_alpha) -> None:
    """The step of `gru_backward`, by PyTorch."""
    r, z, n, hn = activations.unbind(1)
    d_hidden += d_states
    new = d_hidden.clone()
    if alpha is not None:
        torch.mul(new, (1 - z) * (n - previous), out=d_alpha)
        new *= alpha
    dz = (previous - n) * new * z * (1 - z)
    new *= 1 - z
    d_hidden -= new
    dn = new * (1 - n * n)
    dr = dn * hn * r * (1 - r)
    torch.cat([dr, dz, dn], 1, out=d_projected)
    torch.cat([dr, dz, dn * r], 1, out=d_before)
