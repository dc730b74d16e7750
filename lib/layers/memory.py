"""A memory that is read and written at every step (Mem2Mem, equations 7 to 10), in one loop with explicit gradients.

A step is a product with the memory, and the rest: on a CPU by compiled kernels, elsewhere by PyTorch. On a GPU with
Triton the whole loop is one kernel.
"""

import torch
from torch import Tensor

from lib.layers.cpu_kernels import (
    compiled,
    kernel_views,
    memory_read,
    memory_read_backward,
    memory_write,
    memory_write_backward,
    triton_runs,
)  # fmt: skip


def memory_scan(
    memory: Tensor, queries: Tensor, from_hidden: Tensor, v: Tensor, key: Tensor, write: Tensor, from_read: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Read with a concat score, and between two reads write.

    Args:
        memory: [R, r, d] before the first read.
        queries: [R, T, A].
        from_hidden: [R, T, 2d], what gate and update get of the hidden states.
        v: [A]. key: [A, d], weights for the memory.
        write: [2d, d], weights of gate and update for the memory. from_read: [2d, d], for what was read.

    Returns:
        the weights of the slots [R, T, r], reads [R, T, d], and the memory after the last read.
    """
    with torch.autocast(memory.device.type, enabled=False):
        by_step = (x.to(v.dtype).transpose(0, 1).contiguous() for x in (queries, from_hidden))
        weight = torch.cat([key, write])
        psi, reads, last = _Scan.apply(memory.to(v.dtype), *by_step, v, weight, from_read)
        return psi.transpose(0, 1), reads.transpose(0, 1), last


class _Scan(torch.autograd.Function):
    """The scan over T steps of R rows.

    `made` [T, R, r, A + 2d] holds what the product of a memory with the weights of key, gate and update becomes:
    tanh, gate and update, and in the backward pass their gradients, so that the weights' gradients are one product
    over all steps.
    """

    @staticmethod
    def forward(ctx, memory, queries, from_hidden, v, weight, from_read):
        (steps, rows, _), (slots, width) = queries.shape, memory.shape[1:]
        made = memory.new_empty(steps, rows, slots, len(weight))
        memories = memory.new_empty(steps, rows, slots, width)
        memories[0] = memory
        psi = memory.new_empty(steps, rows, slots)
        reads = memory.new_empty(steps, rows, width)
        ctx.made = made
        ctx.save_for_backward(v, weight, from_read, memories, psi, reads)
        if triton_runs(v):
            from lib.layers import gpu_kernels as gpu

            gpu.scan_memory(
                gpu.memory_forward, memories, made, queries, from_hidden, v, weight, from_read, psi, reads
            )
            return psi, reads, memories[-1].clone()
        read, write = (memory_read, memory_write) if compiled(v) else (_read, _write)
        shared = torch.empty_like(from_hidden[0])
        m, p, r, q, w, s, v_ = kernel_views(made, psi, reads, queries, memories, shared, v)
        for t in range(steps):
            if t:
                torch.addmm(from_hidden[t], reads[t - 1], from_read.T, out=shared)
                write(m[t - 1], s, w[t - 1], w[t])
            torch.mm(memories[t].flatten(0, 1), weight.T, out=made[t].flatten(0, 1))
            read(m[t], q[t], v_, w[t], p[t], r[t])
        return psi, reads, memories[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_psi, d_reads, d_last):
        v, weight, from_read, memories, psi, reads = ctx.saved_tensors
        made, ctx.made = ctx.made, None
        if made is None:
            raise RuntimeError("memory scan: its gradient is made once; call it again to go backward a second time")
        (steps, rows), A = psi.shape[:2], len(v)
        made[-1, ..., A:] = 0  # the last memory is not written
        d_memory = d_last.clone(memory_format=torch.contiguous_format)
        d_reads = d_reads.clone(memory_format=torch.contiguous_format)
        d_psi = d_psi.contiguous()
        d_queries = memories.new_zeros(steps, rows, A)
        d_hidden = memories.new_zeros(steps, rows, len(from_read))
        if triton_runs(v):
            from lib.layers import gpu_kernels as gpu

            d_v = v.new_zeros(rows, A)
            gradients = d_psi, d_reads, d_memory, d_queries, d_hidden, d_v
            gpu.scan_memory(gpu.memory_backward, memories, made, v, weight, from_read, psi, *gradients)
            d_v = d_v.sum(0)
        else:
            d_v = torch.zeros_like(v)
            steps_backward = memory_read_backward, memory_write_backward
            read, write = steps_backward if compiled(v) else (_read_backward, _write_backward)
            m, p, w, v_, dp, dr, dq, dh = kernel_views(made, psi, memories, v, d_psi, d_reads, d_queries, d_hidden)
            dm, dv = kernel_views(d_memory, d_v)
            for t in reversed(range(steps)):
                if t < steps - 1:
                    write(m[t], w[t], dm, dh[t + 1])
                    d_reads[t].addmm_(d_hidden[t + 1], from_read)
                read(m[t], v_, w[t], p[t], dp[t], dr[t], dq[t], dm, dv)
                d_memory.flatten(0, 1).addmm_(made[t].flatten(0, 1), weight)
        d_weight = made.flatten(0, 2).T @ memories.flatten(0, 2)
        d_from_read = d_hidden[1:].flatten(0, 1).T @ reads[:-1].flatten(0, 1)
        return d_memory, d_queries, d_hidden, d_v, d_weight, d_from_read


# ------------------------------------------------------- the steps of `lib.layers.cpu_kernels`, by PyTorch's operations


def _read(product, queries, v, memory, psi, reads) -> None:
    """As `memory_read`."""
    h = product[..., : len(v)]
    h.add_(queries[:, None]).tanh_()
    torch.softmax(h @ v, -1, out=psi)
    torch.bmm(psi[:, None], memory, out=reads[:, None])


def _read_backward(product, v, memory, psi, d_psi, d_reads, d_queries, d_memory, d_v) -> None:
    """As `memory_read_backward`."""
    h = product[..., : len(v)]
    d_weights = torch.baddbmm(d_psi[:, None], d_reads[:, None], memory.transpose(1, 2))[:, 0]
    d_score = torch.ops.aten._softmax_backward_data(d_weights, psi, -1, psi.dtype)
    d_memory.baddbmm_(psi[..., None], d_reads[:, None])
    d_v.addmv_(h.flatten(0, 1).T, d_score.flatten())
    torch.ops.aten.tanh_backward.grad_input(d_score[..., None] * v, h, grad_input=h)
    torch.sum(h, 1, out=d_queries)


def _write(product, shared, memory, after) -> None:
    """As `memory_write`."""
    width = memory.shape[2]
    both = product[..., -2 * width :].add_(shared[:, None])
    z = both[..., :width].sigmoid_()
    u = both[..., width:].tanh_()
    torch.lerp(u, memory, z, out=after)


def _write_backward(product, memory, d_memory, d_shared) -> None:
    """As `memory_write_backward`."""
    width = memory.shape[2]
    both = product[..., -2 * width :]
    z, u = both[..., :width], both[..., width:]
    d_z = (memory - u).mul_(d_memory)
    d_new = d_memory * z
    d_u = d_memory - d_new
    torch.ops.aten.sigmoid_backward.grad_input(d_z, z, grad_input=z)
    torch.ops.aten.tanh_backward.grad_input(d_u, u, grad_input=u)
    d_memory.copy_(d_new)
    torch.sum(both, 1, out=d_shared)
