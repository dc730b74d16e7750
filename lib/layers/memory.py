"""Kernels for a memory that is read and written at every step (Mem2Mem, equations 7 to 10).

`lib.models.mem2mem.Mem2Mem.write_and_read` is the step whose equations they contain; nothing here
is called where a subclass has changed one of them (`lib.layers.scan`).
"""

from typing import Any

import torch
from torch import Tensor

from lib.layers import cpu_kernels as cpu


def has_memory_kernels(values: Tensor) -> bool:
    """Return whether `memory_scan` supports weights of this device and type."""
    return cpu.compiled(values) or cpu.triton_runs(values)


def memory_scan(
    memory: Tensor,
    queries: Tensor,
    from_hidden: Tensor,
    v: Tensor,
    key: Tensor,
    write: Tensor,
    from_read: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Read with a concat score, and write between two reads.

    Args:
        memory: [R, r, d] before the first read.
        queries: [R, T, A].
        from_hidden: [R, T, 2d], the hidden states' part of gate and update.
        v: [A].
        key: [A, d], weights for the memory.
        write: [2d, d], weights of gate and update for the memory.
        from_read: [2d, d], weights of gate and update for what was read.

    Returns:
        the weights of the slots [R, T, r], reads [R, T, d], and the memory after the last read.
    """
    with torch.autocast(memory.device.type, enabled=False):
        # Contiguous, because Triton's kernels take a row to begin where the previous one ends.
        psi, reads, last = _Scan.apply(
            memory.to(v.dtype),
            queries.to(v.dtype).transpose(0, 1).contiguous(),
            from_hidden.to(v.dtype).transpose(0, 1).contiguous(),
            v.contiguous(),
            torch.cat([key, write]),
            from_read.contiguous(),
        )
        return psi.transpose(0, 1), reads.transpose(0, 1), last


class _Scan(torch.autograd.Function):
    """The scan over T steps of R rows, with explicit gradients.

    `made` [T, R, r, A + 2d] holds what the product of a memory with the weights of key, gate and
    update becomes: tanh, gate and update, and in the backward pass their gradients, so that the
    weights' gradients are one product over all steps.
    """

    @staticmethod
    def forward(
        ctx: Any,
        memory: Tensor,
        queries: Tensor,
        from_hidden: Tensor,
        v: Tensor,
        weight: Tensor,
        from_read: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        steps, rows, _ = queries.shape
        slots, width = memory.shape[1:]
        # Made once for all steps; the backward pass needs them too.
        made = memory.new_empty(steps, rows, slots, len(weight))
        memories = memory.new_empty(steps, rows, slots, width)
        memories[0] = memory
        psi = memory.new_empty(steps, rows, slots)
        reads = memory.new_empty(steps, rows, width)
        ctx.made = made
        ctx.save_for_backward(v, weight, from_read, memories, psi, reads)
        if cpu.triton_runs(v):
            from lib.layers import gpu_kernels as gpu

            gpu.scan_memory(
                gpu.memory_forward,
                memories,
                made,
                queries,
                from_hidden,
                v,
                weight,
                from_read,
                psi,
                reads,
            )
            return psi, reads, memories[-1].clone()
        shared = torch.empty_like(from_hidden[0])
        made_, psi_, reads_, queries_, memories_, shared_, v_ = cpu.arrays(
            made, psi, reads, queries, memories, shared, v
        )
        for t in range(steps):
            if t > 0:
                # The write (8 to 10): the slots share W_1 h_{t+1} + W_2 m_t.
                torch.addmm(from_hidden[t], reads[t - 1], from_read.T, out=shared)
                cpu.memory_write(made_[t - 1], shared_, memories_[t - 1], memories_[t])
            # The read (7), and W_3 M_D for the next write: one product of the memory.
            torch.mm(memories[t].flatten(0, 1), weight.T, out=made[t].flatten(0, 1))
            cpu.memory_read(made_[t], queries_[t], v_, memories_[t], psi_[t], reads_[t])
        return psi, reads, memories[-1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, d_psi: Tensor, d_reads: Tensor, d_last: Tensor
    ) -> tuple[Tensor | None, ...]:
        v, weight, from_read, memories, psi, reads = ctx.saved_tensors
        made, ctx.made = ctx.made, None
        if made is None:
            raise RuntimeError(
                "memory scan: its gradient is made once; call it again to go backward a second time"
            )
        steps, rows = psi.shape[:2]
        A = len(v)
        made[-1, ..., A:] = 0  # the last memory is not written
        d_memory = d_last.clone(memory_format=torch.contiguous_format)
        d_reads = d_reads.clone(memory_format=torch.contiguous_format)
        d_psi = d_psi.contiguous()
        d_queries = memories.new_zeros(steps, rows, A)
        d_hidden = memories.new_zeros(steps, rows, len(from_read))
        if cpu.triton_runs(v):
            from lib.layers import gpu_kernels as gpu

            d_v = v.new_zeros(rows, A)
            gpu.scan_memory(
                gpu.memory_backward,
                memories,
                made,
                v,
                weight,
                from_read,
                psi,
                d_psi,
                d_reads,
                d_memory,
                d_queries,
                d_hidden,
                d_v,
            )
            d_v = d_v.sum(0)
        else:
            d_v = torch.zeros_like(v)
            made_, psi_, memories_, v_ = cpu.arrays(made, psi, memories, v)
            d_psi_, d_reads_, d_queries_, d_hidden_, d_memory_, d_v_ = cpu.arrays(
                d_psi, d_reads, d_queries, d_hidden, d_memory, d_v
            )
            for t in reversed(range(steps)):
                if t < steps - 1:
                    # Through the write after step t (8 to 10), and to m_t, which is in it.
                    cpu.memory_write_backward(made_[t], memories_[t], d_memory_, d_hidden_[t + 1])
                    d_reads[t].addmm_(d_hidden[t + 1], from_read)
                # Through the read (7).
                cpu.memory_read_backward(
                    made_[t],
                    v_,
                    memories_[t],
                    psi_[t],
                    d_psi_[t],
                    d_reads_[t],
                    d_queries_[t],
                    d_memory_,
                    d_v_,
                )
                # Key, gate and update are made of products W M_D, so d_M += W^T d_(W M_D).
                d_memory.flatten(0, 1).addmm_(made[t].flatten(0, 1), weight)
        d_weight = made.flatten(0, 2).T @ memories.flatten(0, 2)
        d_from_read = d_hidden[1:].flatten(0, 1).T @ reads[:-1].flatten(0, 1)
        return d_memory, d_queries, d_hidden, d_v, d_weight, d_from_read
