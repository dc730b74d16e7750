"""A memory that is read and written at every step (Mem2Mem, equations 7 to 10), compiled on a CPU."""

import torch
from torch import Tensor

from lib.layers.kernels import arrays, memory_read, memory_read_backward, memory_write, memory_write_backward


def memory_scan(
    memory: Tensor, queries: Tensor, from_hidden: Tensor, v: Tensor, key: Tensor, write: Tensor, from_read: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Read with a concat score, and between two reads write.

    memory: [R, r, d] before the first read; queries: [R, T, A]; v: [A]; key: [A, d], weights for the memory;
    from_hidden: [R, T, 2d], what the hidden states say of gate and update; write, from_read: [2d, d], the weights for
    memory and read. Returns the weights of the slots [R, T, r], reads [R, T, d], and the memory after the last read.
    """
    with torch.autocast(memory.device.type, enabled=False):
        by_step = (x.to(v.dtype).transpose(0, 1).contiguous() for x in (queries, from_hidden))
        psi, reads, last = _Scan.apply(memory.to(v.dtype), *by_step, v, torch.cat([key, write]), from_read)
        return psi.transpose(0, 1), reads.transpose(0, 1), last


class _Scan(torch.autograd.Function):
    """The scan: a product of the memory with the weights of key, gate and update at each step; the rest by kernels.

    `made` [T, R, r, A + 2d] holds what that product becomes: tanh, gate and update, and in the backward pass their
    gradients, so that the weights' gradients are one product over all steps.
    """

    @staticmethod
    def forward(ctx, memory, queries, from_hidden, v, weight, from_read):
        (steps, rows, _), (slots, width) = queries.shape, memory.shape[1:]
        made = memory.new_empty(steps, rows, slots, len(weight))
        memories = memory.new_empty(steps, rows, slots, width)
        psi, reads = memory.new_empty(steps, rows, slots), memory.new_empty(steps, rows, width)
        shared = from_hidden.new_empty(from_hidden.shape[1:])
        memories[0] = memory
        m, p, r, q, w, s, v_ = arrays(made, psi, reads, queries, memories, shared, v)
        for t in range(steps):
            if t:
                torch.addmm(from_hidden[t], reads[t - 1], from_read.T, out=shared)
                memory_write(m[t - 1], s, w[t - 1], w[t])
            torch.mm(memories[t].flatten(0, 1), weight.T, out=made[t].flatten(0, 1))
            memory_read(m[t], q[t], v_, w[t], p[t], r[t])
        ctx.save_for_backward(v, weight, from_read, memories, psi, reads)
        ctx.made = made
        return psi, reads, memories[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_psi, d_reads, d_last):
        v, weight, from_read, memories, psi, reads = ctx.saved_tensors
        made, ctx.made = ctx.made, None
        if made is None:
            raise RuntimeError("memory scan: its gradient is made once; call it again to go backward a second time")
        made[-1, ..., len(v) :] = 0  # the last memory is not written
        d_memory, d_reads, d_v = (
            d_last.clone(memory_format=torch.contiguous_format),
            d_reads.clone(memory_format=torch.contiguous_format),
            torch.zeros_like(v),
        )
        d_queries = memories.new_zeros(*psi.shape[:2], len(v))
        d_shared = memories.new_zeros(*psi.shape[:2], len(from_read))
        m, p, w, v_, dp, dr, dq, ds, dm, dv = arrays(
            made, psi, memories, v, d_psi, d_reads, d_queries, d_shared, d_memory, d_v
        )
        for t in reversed(range(len(made))):
            if t < len(made) - 1:
                memory_write_backward(m[t], w[t], dm, ds[t + 1])
                d_reads[t].addmm_(d_shared[t + 1], from_read)
            memory_read_backward(m[t], v_, w[t], p[t], dp[t], dr[t], dq[t], dm, dv)
            d_memory.flatten(0, 1).addmm_(made[t].flatten(0, 1), weight)
        d_weight = made.flatten(0, 2).T @ memories.flatten(0, 2)
        d_from_read = d_shared[1:].flatten(0, 1).T @ reads[:-1].flatten(0, 1)
        return d_memory, d_queries, d_shared, d_v, d_weight, d_from_read
