"""A GRU whose update can be held back word by word: the second read of Read-Again (equations 4 and 6)."""

import torch
from torch import Tensor, nn


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
        with torch.autocast(inputs.device.type, enabled=False):
            return _GatedScan.apply(projected.to(weight.dtype), alpha.to(weight.dtype), weight, bias)


class _GatedScan(torch.autograd.Function):
    """The recurrence alone. The weights' gradients are one product over all words, made behind the loop."""

    @staticmethod
    def forward(ctx, projected, alpha, weight, bias):
        hidden = projected.new_zeros(len(projected), weight.shape[1])
        states, kept = [], []
        for x, a in zip(projected.unbind(1), alpha.unbind(1)):
            before = torch.addmm(bias, hidden, weight.T)  # [B, 3d]
            xr, xz, xn = x.chunk(3, 1)
            hr, hz, hn = before.chunk(3, 1)
            r, z = (xr + hr).sigmoid_(), (xz + hz).sigmoid_()
            n = torch.addcmul(xn, r, hn).tanh_()
            hidden = torch.addcmul(hidden, a * (1 - z), n - hidden)
            states.append(hidden)
            kept.append(torch.stack([r, z, n, hn]))
        states = torch.stack(states, 1)
        ctx.save_for_backward(alpha, weight, states, torch.stack(kept))  # kept: [N, 4, B, d]
        return states

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_states):
        alpha, weight, states, kept = ctx.saved_tensors
        previous = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], 1)  # [B, N, d]
        d_inputs = states.new_empty(*states.shape[:2], 3 * states.shape[2])
        d_before, d_alpha = torch.empty_like(d_inputs), torch.empty_like(alpha)
        d_hidden = torch.zeros_like(states[:, 0])
        for i in reversed(range(states.shape[1])):
            (r, z, n, hn), h, a = kept[i], previous[:, i], alpha[:, i]
            d_hidden = d_hidden + d_states[:, i]
            new = a * (1 - z)  # the share of h-tilde
            d_new = d_hidden * (n - h)
            d_alpha[:, i] = d_new * (1 - z)
            dz = -d_new * a * z * (1 - z)
            dn = d_hidden * new * (1 - n * n)
            dr = dn * hn * r * (1 - r)
            d_inputs[:, i] = torch.cat([dr, dz, dn], 1)
            d_before[:, i] = torch.cat([dr, dz, dn * r], 1)
            d_hidden = torch.addmm(d_hidden * (1 - new), d_before[:, i], weight)
        flat = d_before.flatten(0, 1)
        return d_inputs, d_alpha, flat.T @ previous.flatten(0, 1), flat.sum(0)
