"""Kernels for a GPU, in Triton: coverage attention and Mem2Mem's memory over all target words, one launch each way.

Both loops are sequential but small, so that a GPU would wait for the host to start their operations one by one. Here
one program computes a document (and hypothesis), and the loop over the target words is inside. The programs share no
sums: the same run made twice gives the same weights. Everything is float32; what has a tanh is computed again on the
way back where keeping it would be large.

`lib.layers.kernels.triton_runs` says where these kernels run. `TRITON_INTERPRET=1` computes them on a CPU.

Shapes: B documents, K hypotheses of each, R = B * K rows, T target words, N source words, A attention width, r slots,
d hidden size. Names with 2 at their end are sizes rounded up to a power of two.
"""

from typing import Any

import torch
import triton
import triton.language as tl

# Sizes of blocks, chosen by compiling for sm_80 and sm_90: at a width of 256 no kernel needs local memory.
TILE = 8192  # numbers of a tanh that a program computes at once
WORDS = 1024  # source words of which a program computes a softmax at once
COVERAGE_WARPS = 16
BLOCK = 64  # rows and columns of a block of weights
MEMORY_WARPS = 8


def launch(kernel: Any, programs: tuple[int, ...], *arguments: Any, **sizes: int) -> None:
    """Start a kernel once, with so many programs, on the device of its first argument."""
    with torch.cuda.device_of(arguments[0]):
        kernel[programs](*arguments, **sizes)


def _power_of_two(size: int) -> int:
    """The least power of two that is not less than `size`, as Triton wants the sizes of blocks."""
    return 1 << (size - 1).bit_length()


@triton.jit
def _tanh(x):
    # right to 1e-7; where e^2x overflows it is 1
    return 1 - 2 / (tl.exp(2 * x) + 1)


# ------------------------------------------------------------------------------------------------------ coverage


@triton.jit
def coverage_forward(
    q, k, w, v, cov, alpha, slope, lengths, K, T, N, A, A2: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr
):  # fmt: skip
    """Weights alpha [R, T, N] of queries q [R, T, A] over keys k [B, N, A]. cov [R, N] is changed.

    A program is a row. slope [R, T, N]: the derivative of each score by its word's coverage, for the way back.
    """
    row = tl.program_id(0).to(tl.int64)
    b = row // K
    length = tl.load(lengths + b)
    a = tl.arange(0, A2)
    width = a < A
    w_all = tl.load(w + a, mask=width, other=0.0)
    v_all = tl.load(v + a, mask=width, other=0.0)
    for t in range(T):
        at = (row * T + t) * N
        query = tl.load(q + (row * T + t) * A + a, mask=width, other=0.0)
        top = -float("inf")
        total = 0.0
        for start in range(0, length, BN):
            n = start + tl.arange(0, BN)
            inside = n < length
            block = inside[:, None] & width[None, :]
            keys = tl.load(k + (b * N + n[:, None]) * A + a[None, :], mask=block, other=0.0)
            c = tl.load(cov + row * N + n, mask=inside, other=0.0)
            # score = v^T tanh(W_e h + W_d h_t + w_cov cov_t)   (17)
            h = _tanh(keys + query[None, :] + c[:, None] * w_all[None, :])
            score = tl.where(inside, tl.sum(h * v_all[None, :], 1), -float("inf"))
            tl.store(alpha + at + n, score, mask=inside)
            tl.store(slope + at + n, tl.sum((1 - h * h) * (v_all * w_all)[None, :], 1), mask=inside)
            # the softmax's largest score and sum so far
            new = tl.maximum(top, tl.max(score, 0))
            total = total * tl.exp(top - new) + tl.sum(tl.exp(score - new), 0)
            top = new
        tl.debug_barrier()
        for start in range(0, length, BM):
            n = start + tl.arange(0, BM)
            inside = n < length
            p = tl.exp(tl.load(alpha + at + n, mask=inside, other=-float("inf")) - top) / total
            tl.store(alpha + at + n, p, mask=inside)
            # cov_{t+1} = cov_t + alpha_t   (16)
            c = tl.load(cov + row * N + n, mask=inside, other=0.0)
            tl.store(cov + row * N + n, c + p, mask=inside)
        tl.debug_barrier()


@triton.jit
def coverage_scores_backward(alpha, d_alpha, slope, d_score, d_cov, lengths, K, T, N, BM: tl.constexpr):
    """Gradients d_score [R, T, N] of the scores, the only part that goes from word to word. A program is a row.

    d_cov [R, N] starts at 0, and becomes the gradient of the coverage before the first word.
    """
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(lengths + row // K)
    for back in range(T):
        at = (row * T + T - 1 - back) * N
        # alpha_t reaches the loss directly and through cov_{t+1}; then the gradient of a softmax
        mean = 0.0
        for start in range(0, length, BM):
            n = start + tl.arange(0, BM)
            inside = n < length
            total = tl.load(d_alpha + at + n, mask=inside, other=0.0)
            total += tl.load(d_cov + row * N + n, mask=inside, other=0.0)
            mean += tl.sum(tl.load(alpha + at + n, mask=inside, other=0.0) * total, 0)
        for start in range(0, length, BM):
            n = start + tl.arange(0, BM)
            inside = n < length
            d_c = tl.load(d_cov + row * N + n, mask=inside, other=0.0)
            total = tl.load(d_alpha + at + n, mask=inside, other=0.0) + d_c
            ds = tl.load(alpha + at + n, mask=inside, other=0.0) * (total - mean)
            tl.store(d_score + at + n, ds, mask=inside)
            d_c += ds * tl.load(slope + at + n, mask=inside, other=0.0)
            tl.store(d_cov + row * N + n, d_c, mask=inside)
        tl.debug_barrier()


@triton.jit
def coverage_keys_backward(
    q, k, w, v, before, d_score, d_k, d_w, d_v, lengths, K, T, N, A, A2: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    """Gradients of the keys, and each program's share of those of w and v [B, blocks of words, A].

    A program is some words of a document, for all its hypotheses and steps. before [R, T, N]: coverage at each step.
    """
    b = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    n = block * BN + tl.arange(0, BN)
    a = tl.arange(0, A2)
    width = a < A
    length = tl.load(lengths + b)
    inside = n < length
    place = (b * N + n[:, None]) * A + a[None, :]
    here = inside[:, None] & width[None, :]
    keys = tl.load(k + place, mask=here, other=0.0)
    w_all = tl.load(w + a, mask=width, other=0.0)
    v_all = tl.load(v + a, mask=width, other=0.0)
    sum_k = tl.zeros([BN, A2], tl.float32)
    sum_w = tl.zeros([BN, A2], tl.float32)
    sum_v = tl.zeros([BN, A2], tl.float32)
    steps = tl.where(block * BN < length, K * T, 0)
    for step in range(steps):
        at = b * K * T + step
        query = tl.load(q + at * A + a, mask=width, other=0.0)
        c = tl.load(before + at * N + n, mask=inside, other=0.0)[:, None]
        ds = tl.load(d_score + at * N + n, mask=inside, other=0.0)[:, None]
        # score = v^T h with h = tanh(x), so d_v = sum d_score h and d_x = d_score v (1 - h^2)
        h = _tanh(keys + query[None, :] + c * w_all[None, :])
        part = ds * (1 - h * h)
        sum_k += part
        sum_w += part * c
        sum_v += ds * h
    share = (b * tl.num_programs(1) + block) * A + a
    tl.store(d_k + place, sum_k * v_all[None, :], mask=here)
    tl.store(d_w + share, tl.sum(sum_w, 0) * v_all, mask=width)
    tl.store(d_v + share, tl.sum(sum_v, 0), mask=width)


@triton.jit
def coverage_queries_backward(
    q, k, w, v, before, d_score, d_q, lengths, K, T, N, A, A2: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    """Gradients of the queries. A program is a row's step."""
    at = tl.program_id(0).to(tl.int64)
    b = at // (K * T)
    a = tl.arange(0, A2)
    width = a < A
    w_all = tl.load(w + a, mask=width, other=0.0)
    query = tl.load(q + at * A + a, mask=width, other=0.0)
    length = tl.load(lengths + b)
    sum_q = tl.zeros([BN, A2], tl.float32)
    for start in range(0, length, BN):
        n = start + tl.arange(0, BN)
        inside = n < length
        block = inside[:, None] & width[None, :]
        keys = tl.load(k + (b * N + n[:, None]) * A + a[None, :], mask=block, other=0.0)
        c = tl.load(before + at * N + n, mask=inside, other=0.0)
        h = _tanh(keys + query[None, :] + c[:, None] * w_all[None, :])
        sum_q += tl.load(d_score + at * N + n, mask=inside, other=0.0)[:, None] * (1 - h * h)
    d_query = tl.sum(sum_q, 0) * tl.load(v + a, mask=width, other=0.0)
    tl.store(d_q + at * A + a, d_query, mask=width)


class CoverageScan(torch.autograd.Function):
    """The weights alpha [B, K, T, N] of `lib.layers.coverage`, of float32 tensors on a GPU."""

    @staticmethod
    def forward(ctx, queries, keys, w, v, coverage, mask):
        queries, keys, coverage = queries.contiguous(), keys.contiguous(), coverage.contiguous()
        (B, K, T, A), N = queries.shape, keys.shape[1]
        lengths = mask.sum(1)
        alpha, slope = queries.new_zeros(2, B, K, T, N)
        inputs = queries, keys, w, v, coverage.clone()
        sizes = coverage_sizes(A)
        launch(coverage_forward, (B * K,), *inputs, alpha, slope, lengths, K, T, N, A, **sizes, BM=WORDS)
        ctx.save_for_backward(queries, keys, w, v, coverage, alpha, slope, lengths)
        return alpha

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_alpha):
        queries, keys, w, v, coverage, alpha, slope, lengths = ctx.saved_tensors
        (B, K, T, A), N = queries.shape, keys.shape[1]
        d_score = torch.empty_like(alpha)
        d_coverage = torch.zeros_like(coverage)
        softmaxes = alpha, d_alpha.contiguous(), slope, d_score, d_coverage, lengths
        launch(coverage_scores_backward, (B * K,), *softmaxes, K, T, N, BM=WORDS, num_warps=COVERAGE_WARPS)

        before = coverage[:, :, None] + alpha.cumsum(2) - alpha
        inputs = queries, keys, w, v, before, d_score
        sizes = coverage_sizes(A, sums=3)
        blocks = -(-N // sizes["BN"])
        d_keys = torch.zeros_like(keys)
        d_w, d_v = w.new_empty(2, B, blocks, A)
        launch(coverage_keys_backward, (B, blocks), *inputs, d_keys, d_w, d_v, lengths, K, T, N, A, **sizes)

        d_queries = torch.empty_like(queries)
        launch(coverage_queries_backward, (B * K * T,), *inputs, d_queries, lengths, K, T, N, A, **coverage_sizes(A))
        return d_queries, d_keys, d_w.sum((0, 1)), d_v.sum((0, 1)), d_coverage, None


def coverage_sizes(width: int, sums: int = 1) -> dict[str, int]:
    """Sizes of the blocks of kernels that compute a tanh of this width, and hold so many sums of a block."""
    rounded = _power_of_two(width)
    tile = TILE if sums == 1 else TILE // 2
    return {"A2": rounded, "BN": max(1, tile // rounded), "num_warps": COVERAGE_WARPS}


# -------------------------------------------------------------------------------------------------------- memory


@triton.jit
def memory_forward(
    memories, made, queries, hidden, v, weight, from_read, psi, reads, T, R, r, d, A,
    R2: tl.constexpr, D2: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Equations 7 to 10, as `lib.layers.memory` scans them. A program is a row.

    memories [T, R, r, d], of which the first is given; made [T, R, r, A + 2d]: the score's tanh, and the gate and
    update that lead to the next memory; queries [T, R, A]; hidden [T, R, 2d]; weight [A + 2d, d], of key, gate and
    update; from_read [2d, d]; psi [T, R, r]; reads [T, R, d].
    """
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, R2)
    i = tl.arange(0, D2)
    slots = j < r
    W = A + 2 * d
    for t in range(T):
        now = t * R + row
        if t > 0:
            last = now - R
            for n0 in range(0, d, B):
                n = n0 + tl.arange(0, B)
                z = tl.zeros([R2, B], tl.float32)
                u = tl.zeros([R2, B], tl.float32)
                z_all = tl.load(hidden + now * 2 * d + n, mask=n < d, other=0.0)
                u_all = tl.load(hidden + now * 2 * d + d + n, mask=n < d, other=0.0)
                for k0 in range(0, d, B):
                    k = k0 + tl.arange(0, B)
                    here = slots[:, None] & (k < d)[None, :]
                    block = (k < d)[:, None] & (n < d)[None, :]
                    m = tl.load(memories + (last * r + j[:, None]) * d + k[None, :], mask=here, other=0.0)
                    gate = tl.load(weight + (A + n)[None, :] * d + k[:, None], mask=block, other=0.0)
                    update = tl.load(weight + (A + d + n)[None, :] * d + k[:, None], mask=block, other=0.0)
                    z = tl.dot(m, gate, z, input_precision="ieee")
                    u = tl.dot(m, update, u, input_precision="ieee")
                    read = tl.load(reads + last * d + k, mask=k < d, other=0.0)[:, None]
                    gate = tl.load(from_read + n[None, :] * d + k[:, None], mask=block, other=0.0)
                    update = tl.load(from_read + (d + n)[None, :] * d + k[:, None], mask=block, other=0.0)
                    z_all += tl.sum(gate * read, 0)
                    u_all += tl.sum(update * read, 0)
                # z^k = sigmoid(W_z1 h_{t+1} + W_z2 m_t + W_z3 M_D(k))   (8)
                # u^k =    tanh(W_u1 h_{t+1} + W_u2 m_t + W_u3 M_D(k))   (9)
                z = tl.sigmoid(z + z_all[None, :])
                u = _tanh(u + u_all[None, :])
                # M_D(k) = z^k M_D(k) + (1 - z^k) u^k   (10)
                here = slots[:, None] & (n < d)[None, :]
                m = tl.load(memories + (last * r + j[:, None]) * d + n[None, :], mask=here, other=0.0)
                place = made + (last * r + j[:, None]) * W + A + n[None, :]
                tl.store(place, z, mask=here)
                tl.store(place + d, u, mask=here)
                tl.store(memories + (now * r + j[:, None]) * d + n[None, :], u + z * (m - u), mask=here)
            tl.debug_barrier()
        # psi = softmax_k(v^T tanh(W_q h_t + W_k M_D(k))), m_t = sum_k psi^k M_D(k)   (7)
        score = tl.zeros([R2], tl.float32)
        for n0 in range(0, A, B):
            n = n0 + tl.arange(0, B)
            e = tl.zeros([R2, B], tl.float32)
            for k0 in range(0, d, B):
                k = k0 + tl.arange(0, B)
                here = slots[:, None] & (k < d)[None, :]
                block = (k < d)[:, None] & (n < A)[None, :]
                m = tl.load(memories + (now * r + j[:, None]) * d + k[None, :], mask=here, other=0.0)
                key = tl.load(weight + n[None, :] * d + k[:, None], mask=block, other=0.0)
                e = tl.dot(m, key, e, input_precision="ieee")
            e = _tanh(e + tl.load(queries + now * A + n, mask=n < A, other=0.0)[None, :])
            here = slots[:, None] & (n < A)[None, :]
            tl.store(made + (now * r + j[:, None]) * W + n[None, :], e, mask=here)
            score += tl.sum(e * tl.load(v + n, mask=n < A, other=0.0)[None, :], 1)
        score = tl.where(slots, score, -float("inf"))
        p = tl.exp(score - tl.max(score, 0))
        p = p / tl.sum(p, 0)
        tl.store(psi + now * r + j, p, mask=slots)
        here = slots[:, None] & (i < d)[None, :]
        m = tl.load(memories + (now * r + j[:, None]) * d + i[None, :], mask=here, other=0.0)
        tl.store(reads + now * d + i, tl.sum(p[:, None] * m, 0), mask=i < d)
        tl.debug_barrier()


@triton.jit
def memory_backward(
    memories, made, v, weight, from_read, psi, d_psi, d_reads, d_memory, d_queries, d_hidden, d_v, T, R, r, d, A,
    R2: tl.constexpr, D2: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Gradients of `memory_forward`. A program is a row.

    d_memory [R, r, d] is of the last memory and becomes that of the first; made becomes the gradients of the products
    that it was made of; d_reads is added to; d_v [R, A] and d_hidden [T, R, 2d] start at 0.
    """
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, R2)
    i = tl.arange(0, D2)
    slots = j < r
    W = A + 2 * d
    for back in range(T):
        t = T - 1 - back
        now = t * R + row
        if back > 0:
            after = now + R
            for n0 in range(0, d, B):
                n = n0 + tl.arange(0, B)
                here = slots[:, None] & (n < d)[None, :]
                place = made + (now * r + j[:, None]) * W + A + n[None, :]
                d_place = d_memory + (row * r + j[:, None]) * d + n[None, :]
                z = tl.load(place, mask=here, other=0.0)
                u = tl.load(place + d, mask=here, other=0.0)
                m = tl.load(memories + (now * r + j[:, None]) * d + n[None, :], mask=here, other=0.0)
                dm = tl.load(d_place, mask=here, other=0.0)
                dz = dm * (m - u) * z * (1 - z)
                du = dm * (1 - z) * (1 - u * u)
                tl.store(place, dz, mask=here)
                tl.store(place + d, du, mask=here)
                tl.store(d_place, dm * z, mask=here)
                tl.store(d_hidden + after * 2 * d + n, tl.sum(dz, 0), mask=n < d)
                tl.store(d_hidden + after * 2 * d + d + n, tl.sum(du, 0), mask=n < d)
            tl.debug_barrier()
            for n0 in range(0, d, B):
                n = n0 + tl.arange(0, B)
                dr = tl.load(d_reads + now * d + n, mask=n < d, other=0.0)
                for k0 in range(0, 2 * d, B):
                    k = k0 + tl.arange(0, B)
                    block = (k < 2 * d)[:, None] & (n < d)[None, :]
                    both = tl.load(from_read + k[:, None] * d + n[None, :], mask=block, other=0.0)
                    dr += tl.sum(both * tl.load(d_hidden + after * 2 * d + k, mask=k < 2 * d, other=0.0)[:, None], 0)
                tl.store(d_reads + now * d + n, dr, mask=n < d)
            tl.debug_barrier()
        whole = slots[:, None] & (i < d)[None, :]
        d_whole = d_memory + (row * r + j[:, None]) * d + i[None, :]
        d_read = tl.load(d_reads + now * d + i, mask=i < d, other=0.0)
        memory = tl.load(memories + (now * r + j[:, None]) * d + i[None, :], mask=whole, other=0.0)
        p = tl.load(psi + now * r + j, mask=slots, other=0.0)
        dp = tl.load(d_psi + now * r + j, mask=slots, other=0.0) + tl.sum(memory * d_read[None, :], 1)
        ds = p * (dp - tl.sum(p * dp, 0))
        tl.store(d_whole, tl.load(d_whole, mask=whole, other=0.0) + p[:, None] * d_read[None, :], mask=whole)
        for n0 in range(0, A, B):
            n = n0 + tl.arange(0, B)
            here = slots[:, None] & (n < A)[None, :]
            place = made + (now * r + j[:, None]) * W + n[None, :]
            e = tl.load(place, mask=here, other=0.0)
            dv = tl.load(d_v + row * A + n, mask=n < A, other=0.0)
            tl.store(d_v + row * A + n, dv + tl.sum(ds[:, None] * e, 0), mask=n < A)
            de = ds[:, None] * tl.load(v + n, mask=n < A, other=0.0)[None, :] * (1 - e * e)
            tl.store(place, de, mask=here)
            tl.store(d_queries + now * A + n, tl.sum(de, 0), mask=n < A)
        tl.debug_barrier()
        for n0 in range(0, d, B):
            n = n0 + tl.arange(0, B)
            here = slots[:, None] & (n < d)[None, :]
            d_place = d_memory + (row * r + j[:, None]) * d + n[None, :]
            dm = tl.load(d_place, mask=here, other=0.0)
            for k0 in range(0, W, B):
                k = k0 + tl.arange(0, B)
                block = slots[:, None] & (k < W)[None, :]
                g = tl.load(made + (now * r + j[:, None]) * W + k[None, :], mask=block, other=0.0)
                block = (k < W)[:, None] & (n < d)[None, :]
                dm = tl.dot(
                    g,
                    tl.load(weight + k[:, None] * d + n[None, :], mask=block, other=0.0),
                    dm,
                    input_precision="ieee",
                )
            tl.store(d_place, dm, mask=here)
        tl.debug_barrier()


def memory_sizes(slots: int, width: int) -> dict[str, int]:
    """Sizes of the blocks of the memory's kernels; a product has 16 rows at least."""
    return {"R2": max(16, _power_of_two(slots)), "D2": _power_of_two(width), "B": BLOCK, "num_warps": MEMORY_WARPS}
