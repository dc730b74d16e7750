"""Kernels for a GPU, in Triton: coverage attention and Mem2Mem's memory over all target words, one
launch each way.

Both loops are sequential but small, so that a GPU would wait for the host to start their operations
one by one. Here one program computes a document (and hypothesis), and the loop over the target
words is inside. The programs share no sums: the same run made twice gives the same weights.
Everything is float32; what has a tanh is computed again on the way back where keeping it would be
large.

Triton compiles a kernel anew for sizes that are multiples of 16, and for 1. Lengths are exempt from
that: they change from batch to batch. `lib.layers.cpu_kernels.triton_runs` determines where these
kernels run; with `TRITON_INTERPRET=1` a CPU computes them.

Shapes: B documents, K hypotheses of each, R = B * K rows, T target words, N source words, A
attention width, r slots, d hidden size. Names with 2 at their end are sizes rounded up to a power
of two.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

# Sizes of blocks, chosen by compiling for sm_80 and sm_90: at a width of 256 no kernel needs local
# memory.
TILE = 16384  # numbers of a tanh that a program computes at once
WORDS = 2048  # source words of which a program computes a softmax at once
COVERAGE_WARPS = 32
BLOCK = 64  # rows and columns of a block of weights
MEMORY_WARPS = 8
# three products of 11 bits each: as exact as float32, on tensor cores
PRODUCTS = tl.constexpr("tf32x3")


def launch(kernel: Any, programs: tuple[int, ...], *arguments: Any, **sizes: int) -> None:
    """Launch a kernel with this many programs, on the device of its first argument.

    Raises ValueError for a tensor that is not contiguous: a kernel would read other numbers of it.
    """
    for place, argument in enumerate(arguments):
        if isinstance(argument, Tensor) and not argument.is_contiguous():
            raise ValueError(f"argument {place} of the kernel {kernel.__name__} is not contiguous")
    with torch.cuda.device_of(arguments[0]):
        kernel[programs](*arguments, **sizes)


@triton.jit
def _load(places, inside):
    return tl.load(places, mask=inside, other=0.0)


@triton.jit
def _tanh(x):
    # right to 1e-7; where e^2x overflows it is 1
    return 1 - 2 / (tl.exp(2 * x) + 1)


# ---------------------------------------------------------------------------------
# coverage


@triton.jit(do_not_specialize=["T", "N"])
def coverage_weights(
    q,
    k,
    w,
    v,
    cov,
    alpha,
    slope,
    lengths,
    K,
    T,
    N,
    A,
    A2: tl.constexpr,
    BN: tl.constexpr,
    BM: tl.constexpr,
):
    """Weights alpha [R, T, N] of queries q [R, T, A] over keys k [B, N, A]. cov [R, N] is changed.

    A program is a row. slope [R, T, N]: the derivative of each score by its word's coverage, for
    the way back.
    """
    row = tl.program_id(0).to(tl.int64)
    b = row // K
    length = tl.load(lengths + b)
    a = tl.arange(0, A2)
    width = a < A
    w_all = _load(w + a, width)
    v_all = _load(v + a, width)
    for t in range(T):
        at = (row * T + t) * N
        query = _load(q + (row * T + t) * A + a, width)
        for start in range(0, length, BN):
            n = start + tl.arange(0, BN)
            inside = n < length
            block = inside[:, None] & width[None, :]
            keys = _load(k + (b * N + n[:, None]) * A + a[None, :], block)
            c = _load(cov + row * N + n, inside)
            # score = v^T tanh(W_e h + W_d h_t + w_cov cov_t)   (17)
            h = _tanh(keys + query[None, :] + c[:, None] * w_all[None, :])
            tl.store(alpha + at + n, tl.sum(h * v_all[None, :], 1), mask=inside)
            tl.store(slope + at + n, tl.sum((1 - h * h) * (v_all * w_all)[None, :], 1), mask=inside)
        tl.debug_barrier()
        # the softmax's largest score and sum, over fewer and longer blocks: each costs a reduction
        # over all threads
        top = -float("inf")
        total = 0.0
        for start in range(0, length, BM):
            n = start + tl.arange(0, BM)
            score = tl.load(alpha + at + n, mask=n < length, other=-float("inf"))
            new = tl.maximum(top, tl.max(score, 0))
            total = total * tl.exp(top - new) + tl.sum(tl.exp(score - new), 0)
            top = new
        for start in range(0, length, BM):
            n = start + tl.arange(0, BM)
            inside = n < length
            p = tl.exp(_load(alpha + at + n, inside) - top) / total
            tl.store(alpha + at + n, p, mask=inside)
            # cov_{t+1} = cov_t + alpha_t   (16)
            c = _load(cov + row * N + n, inside)
            tl.store(cov + row * N + n, c + p, mask=inside)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["T", "N"])
def coverage_scores_backward(
    alpha, d_alpha, slope, d_score, d_cov, lengths, K, T, N, BM: tl.constexpr
):
    """Gradients d_score [R, T, N] of the scores, the only part that goes from word to word. A
    program is a row.

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
            total = _load(d_alpha + at + n, inside)
            total += _load(d_cov + row * N + n, inside)
            mean += tl.sum(_load(alpha + at + n, inside) * total, 0)
        for start in range(0, length, BM):
            n = start + tl.arange(0, BM)
            inside = n < length
            d_c = _load(d_cov + row * N + n, inside)
            total = _load(d_alpha + at + n, inside) + d_c
            ds = _load(alpha + at + n, inside) * (total - mean)
            tl.store(d_score + at + n, ds, mask=inside)
            d_c += ds * _load(slope + at + n, inside)
            tl.store(d_cov + row * N + n, d_c, mask=inside)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["T", "N"])
def coverage_keys_backward(
    q,
    k,
    w,
    v,
    before,
    d_score,
    d_k,
    d_w,
    d_v,
    lengths,
    K,
    T,
    N,
    A,
    A2: tl.constexpr,
    BN: tl.constexpr,
):
    """Gradients of the keys, and each program's share of those of w and v [B, blocks of words, A].

    A program is some words of a document, for all its hypotheses and steps. before [R, T, N]:
    coverage at each step.
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
    keys = _load(k + place, here)
    w_all = _load(w + a, width)
    v_all = _load(v + a, width)
    sum_k = tl.zeros([BN, A2], tl.float32)
    sum_w = tl.zeros([BN, A2], tl.float32)
    sum_v = tl.zeros([BN, A2], tl.float32)
    steps = tl.where(block * BN < length, K * T, 0)
    for step in range(steps):
        at = b * K * T + step
        query = _load(q + at * A + a, width)
        c = _load(before + at * N + n, inside)[:, None]
        ds = _load(d_score + at * N + n, inside)[:, None]
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


@triton.jit(do_not_specialize=["T", "N"])
def coverage_queries_backward(
    q, k, w, v, before, d_score, d_q, lengths, K, T, N, A, A2: tl.constexpr, BN: tl.constexpr
):
    """Compute the gradients of the queries. A program is one step of a row."""
    at = tl.program_id(0).to(tl.int64)
    b = at // (K * T)
    a = tl.arange(0, A2)
    width = a < A
    w_all = _load(w + a, width)
    query = _load(q + at * A + a, width)
    length = tl.load(lengths + b)
    sum_q = tl.zeros([BN, A2], tl.float32)
    for start in range(0, length, BN):
        n = start + tl.arange(0, BN)
        inside = n < length
        block = inside[:, None] & width[None, :]
        keys = _load(k + (b * N + n[:, None]) * A + a[None, :], block)
        c = _load(before + at * N + n, inside)
        h = _tanh(keys + query[None, :] + c[:, None] * w_all[None, :])
        sum_q += _load(d_score + at * N + n, inside)[:, None] * (1 - h * h)
    d_query = tl.sum(sum_q, 0) * _load(v + a, width)
    tl.store(d_q + at * A + a, d_query, mask=width)


class CoverageScan(torch.autograd.Function):
    """The weights alpha [B, K, T, N] of `lib.layers.attention`, of float32 tensors on a GPU."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        keys: Tensor,
        w: Tensor,
        v: Tensor,
        coverage: Tensor,
        mask: Tensor,
    ) -> Tensor:
        # The kernels take a row to begin where the previous one ends.
        queries = queries.contiguous()
        keys = keys.contiguous()
        w = w.contiguous()
        v = v.contiguous()
        coverage = coverage.contiguous()
        B, K, T, A = queries.shape
        N = keys.shape[1]
        lengths = mask.sum(1)
        alpha = queries.new_zeros(B, K, T, N)
        slope = torch.empty_like(alpha)
        launch(
            coverage_weights,
            (B * K,),
            queries,
            keys,
            w,
            v,
            coverage.clone(),  # the kernel changes it
            alpha,
            slope,
            lengths,
            K,
            T,
            N,
            A,
            **coverage_sizes(A),
            BM=WORDS,
        )
        ctx.save_for_backward(queries, keys, w, v, coverage, alpha, slope, lengths)
        return alpha

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_alpha: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, w, v, coverage, alpha, slope, lengths = ctx.saved_tensors
        B, K, T, A = queries.shape
        N = keys.shape[1]
        d_score = torch.empty_like(alpha)
        d_coverage = torch.zeros_like(coverage)
        launch(
            coverage_scores_backward,
            (B * K,),
            alpha,
            d_alpha.contiguous(),
            slope,
            d_score,
            d_coverage,
            lengths,
            K,
            T,
            N,
            BM=WORDS,
            num_warps=COVERAGE_WARPS,
        )

        before = coverage[:, :, None] + alpha.cumsum(2) - alpha  # cov_t of all steps
        inputs = queries, keys, w, v, before, d_score
        sizes = coverage_sizes(A, sums=3)
        blocks = -(-N // sizes["BN"])
        d_keys = torch.zeros_like(keys)
        d_w = w.new_empty(B, blocks, A)
        d_v = torch.empty_like(d_w)
        launch(
            coverage_keys_backward,
            (B, blocks),
            *inputs,
            d_keys,
            d_w,
            d_v,
            lengths,
            K,
            T,
            N,
            A,
            **sizes,
        )

        d_queries = torch.empty_like(queries)
        launch(
            coverage_queries_backward,
            (B * K * T,),
            *inputs,
            d_queries,
            lengths,
            K,
            T,
            N,
            A,
            **coverage_sizes(A),
        )
        return d_queries, d_keys, d_w.sum((0, 1)), d_v.sum((0, 1)), d_coverage, None


def coverage_sizes(width: int, sums: int = 1) -> dict[str, Any]:
    """Choose block sizes for kernels that compute a tanh of this width and hold this many sums of a
    block."""
    rounded = triton.next_power_of_2(width)
    tile = TILE if sums == 1 else TILE // 2
    return {"A2": rounded, "BN": max(1, tile // rounded), "num_warps": COVERAGE_WARPS}


# ---------------------------------------------------------------------------------
# memory


@triton.jit(do_not_specialize=["T", "R"])
def memory_forward(
    memories,
    made,
    queries,
    hidden,
    v,
    weight,
    from_read,
    psi,
    reads,
    T,
    R,
    r,
    d,
    A,
    R2: tl.constexpr,
    D2: tl.constexpr,
    B: tl.constexpr,
):
    """Equations 7 to 10, as `lib.layers.memory` scans them. A program is a row.

    memories [T, R, r, d], of which the first is given; made [T, R, r, A + 2d]: a memory's products
    with the weights of key, gate and update, which become the score's tanh and the gate and update
    of the next memory; queries [T, R, A]; hidden [T, R, 2d]; weight [A + 2d, d]; from_read [2d, d];
    psi [T, R, r]; reads [T, R, d].
    """
    row = tl.program_id(0).to(tl.int64)
    slot = tl.arange(0, R2)[:, None]
    W = A + 2 * d
    for t in range(T):
        now = t * R + row
        if t > 0:
            last = now - R
            for n0 in range(0, d, B):
                n = n0 + tl.arange(0, B)
                z_all = _load(hidden + now * 2 * d + n, n < d)
                u_all = _load(hidden + now * 2 * d + d + n, n < d)
                for k0 in range(0, d, B):
                    k = k0 + tl.arange(0, B)
                    read = _load(reads + last * d + k, k < d)
                    place = from_read + n[:, None] * d + k[None, :]
                    inside = (n < d)[:, None] & (k < d)[None, :]
                    z_all += tl.sum(_load(place, inside) * read[None, :], 1)
                    u_all += tl.sum(_load(place + d * d, inside) * read[None, :], 1)
                inside = (slot < r) & (n < d)[None, :]
                place = made + (last * r + slot) * W + A + n[None, :]
                # z^k = sigmoid(W_z1 h_{t+1} + W_z2 m_t + W_z3 M_D(k))   (8)
                # u^k =    tanh(W_u1 h_{t+1} + W_u2 m_t + W_u3 M_D(k))   (9)
                z = tl.sigmoid(_load(place, inside) + z_all[None, :])
                u = _tanh(_load(place + d, inside) + u_all[None, :])
                tl.store(place, z, mask=inside)
                tl.store(place + d, u, mask=inside)
                # M_D(k) = z^k M_D(k) + (1 - z^k) u^k   (10)
                m = _load(memories + (last * r + slot) * d + n[None, :], inside)
                tl.store(memories + (now * r + slot) * d + n[None, :], u + z * (m - u), mask=inside)
            tl.debug_barrier()
        for n0 in range(0, W, B):
            n = n0 + tl.arange(0, B)
            product = tl.zeros([R2, B], tl.float32)
            for k0 in range(0, d, B):
                k = k0 + tl.arange(0, B)
                of_memory = (slot < r) & (k < d)[None, :]
                m = _load(memories + (now * r + slot) * d + k[None, :], of_memory)
                inside = (k < d)[:, None] & (n < W)[None, :]
                block = _load(weight + n[None, :] * d + k[:, None], inside)
                product = tl.dot(m, block, product, input_precision=PRODUCTS)
            of_made = (slot < r) & (n < W)[None, :]
            tl.store(made + (now * r + slot) * W + n[None, :], product, mask=of_made)
        tl.debug_barrier()
        # psi = softmax_k(v^T tanh(W_q h_t + W_k M_D(k))), m_t = sum_k psi^k M_D(k)   (7)
        score = tl.zeros([R2], tl.float32)
        for n0 in range(0, A, B):
            n = n0 + tl.arange(0, B)
            inside = (slot < r) & (n < A)[None, :]
            place = made + (now * r + slot) * W + n[None, :]
            query = _load(queries + now * A + n, n < A)
            e = _tanh(_load(place, inside) + query[None, :])
            tl.store(place, e, mask=inside)
            score += tl.sum(e * _load(v + n, n < A)[None, :], 1)
        j = tl.arange(0, R2)
        score = tl.where(j < r, score, -float("inf"))
        p = tl.exp(score - tl.max(score, 0))
        p = p / tl.sum(p, 0)
        tl.store(psi + now * r + j, p, mask=j < r)
        i = tl.arange(0, D2)
        m = _load(memories + (now * r + slot) * d + i[None, :], (slot < r) & (i < d)[None, :])
        tl.store(reads + now * d + i, tl.sum(p[:, None] * m, 0), mask=i < d)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["T", "R"])
def memory_backward(
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
    T,
    R,
    r,
    d,
    A,
    R2: tl.constexpr,
    D2: tl.constexpr,
    B: tl.constexpr,
):
    """Gradients of `memory_forward`. A program is a row.

    d_memory [R, r, d] is of the last memory and becomes that of the first; made becomes the
    gradients of the products that it was made of; d_reads is added to; d_v [R, A] starts at 0.
    """
    row = tl.program_id(0).to(tl.int64)
    slot = tl.arange(0, R2)[:, None]
    j = tl.arange(0, R2)
    i = tl.arange(0, D2)
    whole = (slot < r) & (i < d)[None, :]
    W = A + 2 * d
    for back in range(T):
        now = (T - 1 - back) * R + row
        if back > 0:
            after = now + R
            for n0 in range(0, d, B):
                n = n0 + tl.arange(0, B)
                inside = (slot < r) & (n < d)[None, :]
                place = made + (now * r + slot) * W + A + n[None, :]
                d_place = d_memory + (row * r + slot) * d + n[None, :]
                z = _load(place, inside)
                u = _load(place + d, inside)
                m = _load(memories + (now * r + slot) * d + n[None, :], inside)
                dm = _load(d_place, inside)
                dz = dm * (m - u) * z * (1 - z)
                du = dm * (1 - z) * (1 - u * u)
                tl.store(place, dz, mask=inside)
                tl.store(place + d, du, mask=inside)
                tl.store(d_place, dm * z, mask=inside)
                tl.store(d_hidden + after * 2 * d + n, tl.sum(dz, 0), mask=n < d)
                tl.store(d_hidden + after * 2 * d + d + n, tl.sum(du, 0), mask=n < d)
            tl.debug_barrier()
            for n0 in range(0, d, B):
                n = n0 + tl.arange(0, B)
                dr = _load(d_reads + now * d + n, n < d)
                for k0 in range(0, 2 * d, B):
                    k = k0 + tl.arange(0, B)
                    inside = (k < 2 * d)[:, None] & (n < d)[None, :]
                    block = _load(from_read + k[:, None] * d + n[None, :], inside)
                    dh = _load(d_hidden + after * 2 * d + k, k < 2 * d)
                    dr += tl.sum(block * dh[:, None], 0)
                tl.store(d_reads + now * d + n, dr, mask=n < d)
            tl.debug_barrier()
        d_whole = d_memory + (row * r + slot) * d + i[None, :]
        d_read = _load(d_reads + now * d + i, i < d)
        memory = _load(memories + (now * r + slot) * d + i[None, :], whole)
        p = _load(psi + now * r + j, j < r)
        dp = _load(d_psi + now * r + j, j < r) + tl.sum(memory * d_read[None, :], 1)
        ds = p * (dp - tl.sum(p * dp, 0))
        tl.store(d_whole, _load(d_whole, whole) + p[:, None] * d_read[None, :], mask=whole)
        for n0 in range(0, A, B):
            n = n0 + tl.arange(0, B)
            inside = (slot < r) & (n < A)[None, :]
            place = made + (now * r + slot) * W + n[None, :]
            e = _load(place, inside)
            dv = _load(d_v + row * A + n, n < A)
            tl.store(d_v + row * A + n, dv + tl.sum(ds[:, None] * e, 0), mask=n < A)
            de = ds[:, None] * _load(v + n, n < A)[None, :] * (1 - e * e)
            tl.store(place, de, mask=inside)
            tl.store(d_queries + now * A + n, tl.sum(de, 0), mask=n < A)
        tl.debug_barrier()
        for n0 in range(0, d, B):
            n = n0 + tl.arange(0, B)
            inside = (slot < r) & (n < d)[None, :]
            d_place = d_memory + (row * r + slot) * d + n[None, :]
            dm = _load(d_place, inside)
            for k0 in range(0, W, B):
                k = k0 + tl.arange(0, B)
                of_made = (slot < r) & (k < W)[None, :]
                d_made = _load(made + (now * r + slot) * W + k[None, :], of_made)
                of_weight = (k < W)[:, None] & (n < d)[None, :]
                block = _load(weight + k[:, None] * d + n[None, :], of_weight)
                dm = tl.dot(d_made, block, dm, input_precision=PRODUCTS)
            tl.store(d_place, dm, mask=inside)
        tl.debug_barrier()


def scan_memory(kernel: Any, memories: Tensor, made: Tensor, *others: Tensor) -> None:
    """Start `memory_forward` or `memory_backward`, with a program for each row."""
    T, R, r, d = memories.shape
    A = made.shape[3] - 2 * d
    rows = max(16, triton.next_power_of_2(r))  # a product has 16 rows at least
    blocks = {"R2": rows, "D2": triton.next_power_of_2(d), "B": BLOCK}
    launch(kernel, (R,), memories, made, *others, T, R, r, d, A, **blocks, num_warps=MEMORY_WARPS)
