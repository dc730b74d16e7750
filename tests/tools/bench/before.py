"""A training step as it was before its loops were compiled: PyTorch's operations and threads, as a GPU has them, and
its packed GRU for 128 sentences at a time (at each step back it clears a gradient as large as all words)."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lib.layers import attention, coverage, gru, kernels, memory, pointer
from lib.layers.attention import masked_softmax
from lib.layers.dropout import Dropout

TOGETHER = 128  # sentences


def without_kernels(network: nn.Module) -> None:
    """From here on this process computes `network` without compiled loops."""
    for module in (attention, coverage, gru, kernels, memory, pointer):
        module.compiled = lambda values: False
    if hasattr(network, "sentence_encoder"):
        whole = network.sentence_encoder.forward
        network.sentence_encoder.forward = lambda packed: in_parts(whole, packed)


def in_parts(gru, packed: PackedSequence):
    """The longest sentences first, each part a packed sequence of its own."""
    sizes, data, states, last = packed.batch_sizes, packed.data, [], []
    starts, places = sizes.cumsum(0) - sizes, []
    for first in range(0, int(sizes[0]), TOGETHER):
        own = (sizes - first).clamp(0, TOGETHER)
        own = own[own > 0]
        step = torch.repeat_interleave(torch.arange(len(own)), own)
        within = torch.arange(int(own.sum())) - (own.cumsum(0) - own)[step]
        places.append(starts[step] + first + within)
        made, ended = gru(PackedSequence(data[places[-1]], own))
        states.append(made.data)
        last.append(ended)
    states, order = torch.cat(states), torch.cat(places)
    return PackedSequence(torch.empty_like(states).index_copy(0, order, states), sizes), torch.cat(last, 1)


def without_compiled_dropout() -> None:
    """From here on dropout, of the same places, is PyTorch's operations, and so is the softmax before it."""
    Dropout.forward = dropped
    Dropout.softmax = lambda self, scores, mask: dropped(self, masked_softmax(scores, mask)).to(scores.dtype)


def dropped(dropout: Dropout, x: Tensor) -> Tensor:
    draws, count = dropout._draws(x)
    return x * (draws >= count - 2**15).to(x.dtype).mul_(2**16 / (2**16 - count))
