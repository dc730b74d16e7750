"""A memory that is read and written at every step (Mem2Mem, equations 7 to 10), in one loop with explicit gradients.

A step is a product with the memory, and the rest: on a CPU by compiled kernels, elsewhere by PyTorch. On a GPU with
Triton the whole loop is one kernel.
"""

import torch
from torch import Tensor

from lib.layers.kernels import (
    arrays,
    compiled,
    memory_read,
    memory_read_backward,
    memory_write,
    memory_write_backward,
    triton_runs,
)


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
        psi = memory.new_empty(steps, rows, slots)
        reads = memory.new_empty(steps, rows, width)
        memories[0] = memory
        if triton_runs(v):
            from lib.layers import gpu_kernels as gpu

            state = memories, made, queries, from_hidden, v, weight, from_read, psi, reads
            sizes = steps, rows, slots, width, len(v)
            gpu.launch(gpu.memory_forward, (rows,), *state, *sizes, **gpu.memory_sizes(slots, width))
        else:
            _forward(made, memories, psi, reads, queries, from_hidden, v, weight, from_read)
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
        (steps, rows, slots, width), A = memories.shape, len(v)
        made[-1, ..., A:] = 0  # the last memory is not written
        d_memory = d_last.clone(memory_format=torch.contiguous_format)
        d_reads = d_reads.clone(memory_format=torch.contiguous_format)
        d_queries = memories.new_zeros(steps, rows, A)
        d_hidden = memories.new_zeros(steps, rows, 2 * width)
        if triton_runs(v):
            from lib.layers import gpu_kernels as gpu

            d_v = v.new_zeros(rows, A)
            state = memories, made, v, weight, from_read, psi
            gradients = d_psi.contiguous(), d_reads, d_memory, d_queries, d_hidden, d_v
            sizes = steps, rows, slots, width, A
            gpu.launch(gpu.memory_backward, (rows,), *state, *gradients, *sizes, **gpu.memory_sizes(slots, width))
            d_v = d_v.sum(0)
        else:
            d_v = torch.zeros_like(v)
            _backward(made, memories, psi, v, weight, from_read, d_psi, d_reads, d_memory, d_queries, d_hidden, d_v)
        d_weight = made.flatten(0, 2).T @ memories.flatten(0, 2)
        d_from_read = d_hidden[1:].flatten(0, 1).T @ reads[:-1].flatten(0, 1)
        return d_memory, d_queries, d_hidden, d_v, d_weight, d_from_read


def _forward(made, memories, psi, reads, queries, from_hidden, v, weight, from_read) -> None:
    """Fill made, memories (of which the first is there), psi and reads, step by step."""
    seen = arrays if compiled(v) else _unchanged
    read, write = (memory_read, memory_write) if compiled(v) else (_read, _write)
    shared = torch.empty_like(from_hidden[0])
    m, w, p, r, q, s, v = seen(made, memories, psi, reads, queries, shared, v)
    for t in range(len(made)):
        if t:
            torch.addmm(from_hidden[t], reads[t - 1], from_read.T, out=shared)
            write(m[t - 1], s, w[t - 1], w[t])
        torch.mm(memories[t].flatten(0, 1), weight.T, out=made[t].flatten(0, 1))
        read(m[t], q[t], v, w[t], p[t], r[t])


def _backward(
    made, memories, psi, v, weight, from_read, d_psi, d_reads, d_memory, d_queries, d_hidden, d_v
) -> None:  # fmt: skip
    """Put the gradients of `_forward` into made, d_memory, d_queries, d_hidden and d_v, from the last step."""
    seen = arrays if compiled(v) else _unchanged
    read, write = (memory_read_backward, memory_write_backward) if compiled(v) else (_read_backward, _write_backward)
    m, w, p, v, dp, dr, dm, dq, dh, dv = seen(
        made, memories, psi, v, d_psi, d_reads, d_memory, d_queries, d_hidden, d_v
    )
    for t in reversed(range(len(made))):
        if t < len(made) - 1:
            write(m[t], w[t], dm, dh[t + 1])
            d_reads[t].addmm_(d_hidden[t + 1], from_read)
        read(m[t], v, w[t], p[t], dp[t], dr[t], dq[t], dm, dv)
        d_memory.flatten(0, 1).addmm_(made[t].flatten(0, 1), weight)


def _unchanged(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tensors


# ------------------------------------------------------- the steps of `lib.layers.kernels`, by PyTorch's operations


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
