"""Rows of words that a recurrent layer reads without their padding, and PyTorch's LSTM."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

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


class LSTM(nn.LSTM):
    """`torch.nn.LSTM` of one layer, with `batch_first`.

    Under autocast on a CPU it stays in full precision: PyTorch would compute padded inputs in bfloat16, but not
    packed ones.
    """

    def __init__(self, inputs: int, hidden: int, bidirectional: bool = False):
        super().__init__(inputs, hidden, batch_first=True, bidirectional=bidirectional)

    def forward(self, inputs, hx: tuple[Tensor, Tensor] | None = None):
        if not torch.is_autocast_enabled("cpu"):
            return super().forward(inputs, hx)
        with torch.autocast("cpu", enabled=False):
            return super().forward(inputs.float(), hx and (hx[0].float(), hx[1].float()))
