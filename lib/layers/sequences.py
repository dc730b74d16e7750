"""Sequences that a recurrent layer reads step by step, whichever way they come: padded, packed, or one alone."""

from collections.abc import Callable, Sequence
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


def run_ragged(layer: nn.Module, values: Tensor, lengths: Tensor, backwards: bool = False) -> tuple[Tensor, Any]:
    """Outputs [B, N, d] of a recurrent layer for rows of words, and its last states in the layer's own form.

    values: [B, N, e]; lengths: [B] words of each row, on the CPU. Padding is not computed: there outputs are 0.
    backwards: rows are read from their last word to their first; the output of a word is at the word's place.
    """
    rows, width = values.shape[:2]
    packed = packing(np.arange(rows) * width, lengths.numpy(), values.device, backwards)
    outputs, last = layer(packed.sequence(values.flatten(0, 1).index_select(0, packed.words)))
    padded = outputs.data.new_zeros(rows * width, outputs.data.shape[1])
    return padded.index_copy(0, packed.words, outputs.data).unflatten(0, (rows, width)), last


def over_steps(
    layer: nn.RNNBase, read: Callable[..., tuple[Tensor, ...]], inputs: Any, start: Sequence[Tensor]
) -> tuple[Any, tuple[Tensor, ...]]:
    """Results of `torch.nn.GRU` and `torch.nn.LSTM` for `inputs`: states in their form, and the last ones.

    inputs: [B, N, e], [N, e], or packed. start: the first states, each [directions, B, d]; none: zeros.
    read: of the words [W, e], which stand step after step, how many there are at each step, the direction's first
    states [n, d] and the direction: states [W, d] and the last ones [n, d].
    """
    if not isinstance(inputs, PackedSequence) and inputs.dim() == 2:  # one sequence, not in a batch
        states, last = over_steps(layer, read, inputs[None], [x[:, None] for x in start])
        return states[0], tuple(x[:, 0] for x in last)
    if isinstance(inputs, PackedSequence):
        words, sizes, order, back = inputs.data, inputs.batch_sizes.tolist(), *inputs[2:]
    else:
        words, sizes, order, back = inputs.transpose(0, 1).flatten(0, 1), [len(inputs)] * inputs.shape[1], None, None
    zeros = words.new_zeros(len(layer.all_weights), sizes[0], layer.hidden_size)
    start = [_ordered(x, order) for x in start] or [zeros] * (2 if layer.mode == "LSTM" else 1)
    made = [read(words, sizes, [x[i] for x in start], i) for i in range(len(zeros))]
    states = torch.cat([found for found, *_ in made], -1)
    last = tuple(_ordered(torch.stack(found), back) for found in zip(*(found for _, *found in made)))
    if isinstance(inputs, PackedSequence):
        return PackedSequence(states, inputs.batch_sizes, order, back), last
    return states.unflatten(0, (len(sizes), sizes[0])).transpose(0, 1), last


def _ordered(states: Tensor, order: Tensor | None) -> Tensor:
    return states if order is None else states.index_select(1, order)


def slices(sizes: Sequence[int], backwards: bool = False) -> list[slice]:
    """Slices of the words of each step; `backwards`: the last step first."""
    ends = torch.tensor(sizes).cumsum(0).tolist()
    steps = [slice(end - size, end) for size, end in zip(sizes, ends)]
    return steps[::-1] if backwards else steps
