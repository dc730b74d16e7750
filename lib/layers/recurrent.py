"""Recurrent layers: rows of words without their padding, PyTorch's LSTM and GRU, and a GRU whose update is gated
(Read-Again, equations 4 and 6)."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from lib.data.batch import pack


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
            return super().forward(inputs.to(weight.dtype), first)  # type: ignore[misc]


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
    projected: Tensor, alpha: Tensor | None, start: Tensor, weight: Tensor, bias: Tensor, sizes: list[int]
) -> tuple[Tensor, Tensor]:
    """Compute the recurrence over W words that are in the order of the steps, `sizes` of them, all equal, at each.

    projected: [W, 3d], W x + b of the words; alpha: [W, d]; start: [n, d]; weight: [3d, d], bias: [3d]. Returns
    states [W, d] and the last of each of the n sequences [n, d].
    """
    with torch.autocast(weight.device.type, enabled=False):
        hidden, states = start.to(weight.dtype), []
        words = projected.to(weight.dtype).split(sizes)
        scales = [None] * len(sizes) if alpha is None else alpha.to(weight.dtype).split(sizes)
        for word, scale in zip(words, scales):
            xr, xz, xn = word.chunk(3, 1)
            hr, hz, hn = nn.functional.linear(hidden, weight, bias).chunk(3, 1)
            new = torch.tanh(xn + torch.sigmoid(xr + hr) * hn)
            update = (1 - torch.sigmoid(xz + hz)) * (new - hidden)
            hidden = hidden + (update if scale is None else scale * update)
            states.append(hidden)
        return torch.cat(states), hidden
