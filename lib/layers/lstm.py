"""PyTorch's LSTM, and layers of it."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lib.layers.dropout import Dropout


class LSTM(nn.LSTM):
    """`torch.nn.LSTM` of one layer, with `batch_first`; on a CPU in single precision under autocast, too: some
    processors have none in bfloat16."""

    def __init__(self, inputs: int, hidden: int, bidirectional: bool = False):
        super().__init__(inputs, hidden, batch_first=True, bidirectional=bidirectional)

    def forward(self, inputs, hx: tuple[Tensor, Tensor] | None = None):
        """States of [B, N, e] or of a packed sequence, and the last ones with their cells [directions, B, d]; hx: the
        first ones."""
        if not torch.is_autocast_enabled("cpu") or self.all_weights[0][0].device.type != "cpu":
            return super().forward(inputs, hx)
        dtype = self.all_weights[0][0].dtype
        with torch.autocast("cpu", enabled=False):
            return super().forward(inputs.to(dtype), hx and (hx[0].to(dtype), hx[1].to(dtype)))


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
