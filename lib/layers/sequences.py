"""Rows of words that a recurrent layer reads without their padding, and PyTorch's LSTM."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lib.data.batch import packed_places, put


@dataclass(frozen=True)
class Packing:
    """The order in which a recurrent layer reads rows of words without padding: step after step, the longest row
    first."""

    words: Tensor  # [W] place of each packed word in a flat tensor
    sizes: Tensor  # [longest row] how many rows reach each step; on the CPU
    order: Tensor  # [rows] the rows, the longest first
    back: Tensor  # [rows] where each row is in that order

    def sequence(self, words: Tensor) -> PackedSequence:
        """Values [W, e] of the packed words, as PyTorch's recurrent layers take them."""
        return PackedSequence(words, self.sizes, self.order, self.back)


def packing(starts: np.ndarray, lengths: np.ndarray, device: torch.device, backwards: bool = False) -> Packing:
    """Pack rows that begin at `starts` [rows] of a flat tensor and have `lengths` [rows] words.

    All indices are made on the host: `pack_padded_sequence` would wait for a GPU, and its backward pass copies the
    gradient of each step. backwards: each row is read from its last word to its first.
    """
    words, sizes, order = packed_places(starts, lengths, backwards)
    words, order, back = (put(torch.from_numpy(x), device) for x in (words, order, np.argsort(order)))
    return Packing(words, torch.from_numpy(sizes), order, back)


def run_packed(layer: nn.Module, values: Tensor, lengths: Tensor, backwards: bool = False) -> tuple[Tensor, Any]:
    """Run a recurrent layer over rows of words: outputs [B, N, d], and its last states in the layer's own form.

    values: [B, N, e]; lengths: [B] words of each row, on the CPU. Padding is not computed: there outputs are 0.
    backwards: rows are read from their last word to their first; the output of a word is at the word's place.
    """
    rows, width = values.shape[:2]
    packed = packing(np.arange(rows) * width, lengths.numpy(), values.device, backwards)
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
