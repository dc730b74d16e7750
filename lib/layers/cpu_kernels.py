"""Kernels for a CPU, compiled by numba: attention with coverage and Mem2Mem's memory.

What PyTorch does in a dozen operations, each over all numbers, is one pass here. Attention works on
one document at a time, and the documents are divided among threads, so that no number depends on
how many threads there are. Lengths take the place of masks: padding is not read. In float64 the
tanh is exact; in float32 it is a rational function, right to 5e-7. Beside each kernel's call are
PyTorch's operations that compute the same. They serve all other types and devices, where
`lib.layers.gpu_kernels` has no kernel.

The first call compiles for some seconds; numba saves the result beside this file or in the user's
cache.
"""

import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np
import torch
from numba import njit, types
from numba.extending import intrinsic, overload
from torch import Tensor

from lib.system.compiler import missing_for_triton
from lib.system.threads import in_threads

# Sums of float32 may be taken in any order, so that loops become vector instructions. The order is
# fixed at compile time.
OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}


def _kernel(function: Callable) -> Any:
    try:
        return njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # numba can write nowhere: each process compiles anew
        return njit(**OPTIONS)(function)


def _declare_no_overlap(context):
    """Tell LLVM that the arrays of a kernel do not overlap.

    Otherwise short arrays that lie close together are computed by another loop, which rounds
    differently.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # The widest vectors there are: LLVM by itself takes half of them.
        # llvmlite does not know the name.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        for argument in builder.function.args:
            if str(argument.type) in ("float*", "double*"):
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    return types.void(), generate


_assume_no_overlap: Any = intrinsic(_declare_no_overlap)


def _tanh(x):
    raise NotImplementedError  # only in compiled code


# Inlined, because a function of its own would be compiled twice, with different rounding: for the
# process that compiles, and in the kernel that is saved.
@overload(_tanh, inline="always")
def _choose_tanh(x):
    return _rational_tanh if x == types.float32 else lambda x: math.tanh(x)


def _rational_tanh(x):
    """tanh as x P(x²) / Q(x²) for |x| up to 9, fitted by least squares to the least relative error,
    2e-8."""
    x = min(max(x, np.float32(-9)), np.float32(9))
    y = x * x
    p = np.float32(1.3354700868838644e-08)
    p = p * y + np.float32(2.060911321023788e-05)
    p = p * y + np.float32(0.0034955900866167275)
    p = p * y + np.float32(0.13381027304648785)
    p = p * y + np.float32(0.9999999794465799)
    q = np.float32(7.77657518572533e-07)
    q = q * y + np.float32(0.0003285637971079889)
    q = q * y + np.float32(0.02587698970925746)
    q = q * y + np.float32(0.46714342896527256)
    q = q * y + np.float32(1)
    return x * p / q


def _sigmoid(x):
    raise NotImplementedError


@overload(_sigmoid, inline="always")
def _choose_sigmoid(x):
    half = np.float32(0.5) if x == types.float32 else 0.5
    return lambda x: half + half * _tanh(half * x)


@njit(inline="always", **OPTIONS)
def _softmax(scores, n):
    """Put the softmax of the first n scores in their place."""
    largest = scores[0]
    for i in range(1, n):
        largest = max(largest, scores[i])
    total = scores[0] - scores[0]  # 0 of the right type
    for i in range(n):
        scores[i] = math.exp(scores[i] - largest)
        total += scores[i]
    for i in range(n):
        scores[i] /= total


# ---------------------------------------------------------------------------------
# attention


@_kernel
def coverage_forward(
    queries: np.ndarray,
    keys: np.ndarray,
    w: np.ndarray,
    v: np.ndarray,
    coverage: np.ndarray,
    alpha: np.ndarray,
) -> None:
    """Compute the weights alpha [K, T, N] of one document of n words, step after step.

    queries: [K, T, A]; keys: [n, A]; w, v: [A]; coverage: [K, N] before the first step. Padding
    stays as it is.
    """
    _assume_no_overlap()
    hypotheses, steps, width = queries.shape
    n = keys.shape[0]
    for k in range(hypotheses):
        running = coverage[k].copy()
        for t in range(steps):
            query = queries[k, t]
            row = alpha[k, t]
            # alpha_t = softmax(v^T tanh(W_e h + W_d h_t + w_cov cov_t))   (17)
            for i in range(n):
                key = keys[i]
                c = running[i]
                score = v[0] - v[0]  # 0 of the right type
                for a in range(width):
                    score += v[a] * _tanh(key[a] + query[a] + w[a] * c)
                row[i] = score
            _softmax(row, n)
            # cov_{t+1} = cov_t + alpha_t   (16)
            for i in range(n):
                running[i] += row[i]


@_kernel
def coverage_backward(
    queries: np.ndarray,
    keys: np.ndarray,
    w: np.ndarray,
    v: np.ndarray,
    coverage: np.ndarray,
    alpha: np.ndarray,
    d_alpha: np.ndarray,
    d_queries: np.ndarray,
    d_keys: np.ndarray,
    d_w: np.ndarray,
    d_v: np.ndarray,
    d_coverage: np.ndarray,
) -> None:
    """Add the gradients of `coverage_forward` to d_queries [K, T, A], d_keys [n, A], d_w, d_v [A],
    d_coverage [K, N].

    The tanh h is computed again. With s = (1 - h^2) d_score, all gradients are sums of s, of s *
    coverage and of h * d_score; the factor v comes after the sums.
    """
    _assume_no_overlap()
    hypotheses, steps, width = queries.shape
    n = keys.shape[0]
    d_score = np.empty_like(coverage[0])
    h = np.empty_like(v)
    vw = v * w
    for k in range(hypotheses):
        cov = np.empty_like(alpha[k])
        cov[0] = coverage[k]
        for t in range(1, steps):
            cov[t] = cov[t - 1] + alpha[k, t - 1]
        d_cov = d_coverage[k]
        for t in range(steps - 1, -1, -1):
            query = queries[k, t]
            row = alpha[k, t]
            d_query = d_queries[k, t]
            # alpha_t reaches the loss directly and through cov_{t+1}.
            # d_score_i = alpha_i (d_i - sum_j alpha_j d_j) is the gradient of a softmax.
            mean = v[0] - v[0]
            for i in range(n):
                d_score[i] = d_alpha[k, t, i] + d_cov[i]
                mean += row[i] * d_score[i]
            for i in range(n):
                d_score[i] = row[i] * (d_score[i] - mean)
            for i in range(n):  # short loops over few arrays become the best vector instructions
                key = keys[i]
                d_key = d_keys[i]
                d = d_score[i]
                c = cov[t, i]
                for a in range(width):
                    h[a] = _tanh(key[a] + query[a] + w[a] * c)
                for a in range(width):
                    d_v[a] += h[a] * d
                for a in range(width):
                    h[a] = d - h[a] * h[a] * d
                    d_key[a] += h[a]
                for a in range(width):
                    d_query[a] += h[a]
                    d_w[a] += h[a] * c
                back = d - d
                for a in range(width):
                    back += h[a] * vw[a]
                d_cov[i] += back
    d_w *= v
    for i in range(n):
        d_keys[i] *= v
    for k in range(hypotheses):
        for t in range(steps):
            d_queries[k, t] *= v


@_kernel
def additive_scores(
    queries: np.ndarray,
    keys: np.ndarray,
    v: np.ndarray,
    lengths: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Compute scores [B, K, N] = v^T tanh(query + key) of the first `lengths` [B] words of each
    document.

    queries: [B, K, A]; keys: [B, N, A]; v: [A]. Scores of padding stay as they are.
    """
    _assume_no_overlap()
    for b in range(len(keys)):
        for k in range(queries.shape[1]):
            query = queries[b, k]
            for i in range(lengths[b]):
                key = keys[b, i]
                score = v[0] - v[0]  # 0 of the right type
                for a in range(len(v)):
                    score += v[a] * _tanh(key[a] + query[a])
                scores[b, k, i] = score


@_kernel
def additive_scores_backward(
    queries: np.ndarray,
    keys: np.ndarray,
    v: np.ndarray,
    lengths: np.ndarray,
    d_scores: np.ndarray,
    d_queries: np.ndarray,
    d_keys: np.ndarray,
    d_v: np.ndarray,
) -> None:
    """Add the gradients of `additive_scores` to d_queries [B, K, A], d_keys [B, N, A] and d_v
    [A]."""
    _assume_no_overlap()
    h = np.empty_like(v)
    for b in range(len(keys)):
        for k in range(queries.shape[1]):
            query, d_query = queries[b, k], d_queries[b, k]
            for i in range(lengths[b]):
                key, d_key = keys[b, i], d_keys[b, i]
                d = d_scores[b, k, i]
                # score = v^T h, so d_v = d h and, through the tanh, d_x = d v (1 - h^2).
                for a in range(len(v)):
                    h[a] = _tanh(key[a] + query[a])
                for a in range(len(v)):
                    d_v[a] += h[a] * d
                for a in range(len(v)):
                    h[a] = v[a] * (d - h[a] * h[a] * d)
                    d_query[a] += h[a]
                for a in range(len(v)):
                    d_key[a] += h[a]


# ---------------------------------------------------------------------------------
# recurrence


@_kernel
def gru_step(
    words: np.ndarray,
    by_state: np.ndarray,
    alpha: np.ndarray | None,
    hidden: np.ndarray,
    previous: np.ndarray,
    gates: np.ndarray,
    states: np.ndarray,
) -> None:
    """Compute one step of a GRU for n sequences: `hidden` [n, d] becomes the next state, which
    `states` gets too.

    words: [n, 3d], W x + b; by_state: [n, 3d], U h + b of the state h before; alpha: [n, d], by
    which the update is multiplied, or None. `previous` [n, d] gets h, and `gates` [n, 4, d] r, z,
    the new state n and the part U h of n.
    """
    _assume_no_overlap()
    width = hidden.shape[1]
    for b in range(len(hidden)):
        x, u, h = words[b], by_state[b], hidden[b]
        r, z, n, un = gates[b, 0], gates[b, 1], gates[b, 2], gates[b, 3]
        # r = sigmoid(W_r x + U_r h),  z = sigmoid(W_z x + U_z h),  n = tanh(W x + r (U h))
        for i in range(width):
            r[i] = _sigmoid(x[i] + u[i])
        for i in range(width):
            z[i] = _sigmoid(x[width + i] + u[width + i])
        for i in range(width):
            un[i] = u[2 * width + i]
            n[i] = _tanh(x[2 * width + i] + r[i] * un[i])
        previous[b] = h
        # h_i = h_{i-1} + alpha (1 - z) (n - h_{i-1}), with PyTorch's z
        if alpha is None:
            for i in range(width):
                h[i] = n[i] + z[i] * (h[i] - n[i])
        else:
            for i in range(width):
                h[i] += alpha[b, i] * (n[i] - h[i] - z[i] * (n[i] - h[i]))
        states[b] = h


@_kernel
def gru_step_backward(
    d_states: np.ndarray,
    alpha: np.ndarray | None,
    previous: np.ndarray,
    gates: np.ndarray,
    d_hidden: np.ndarray,
    d_sums: np.ndarray,
    d_alpha: Any,  # an array, where alpha is one
) -> None:
    """Compute the gradients of `gru_step`. d_hidden [n, d] is that of the next state, and becomes
    that of the state before, without the part that comes through U h.

    d_sums: [n, 4, d], written: the gradients of the part U h of n, of the sums in r and z, and of
    n's own sum. d_alpha: [n, d], written.
    """
    _assume_no_overlap()
    width = d_hidden.shape[1]
    for b in range(len(d_hidden)):
        h, dh = previous[b], d_hidden[b]
        r, z, n, un = gates[b, 0], gates[b, 1], gates[b, 2], gates[b, 3]
        d_un, dr, dz, dn = d_sums[b, 0], d_sums[b, 1], d_sums[b, 2], d_sums[b, 3]
        for i in range(width):
            dh[i] += d_states[b, i]
        for i in range(width):
            update = dh[i]  # gradient of (1 - z) (n - h)
            if alpha is not None:
                d_alpha[b, i] = dh[i] * (n[i] - h[i] - z[i] * (n[i] - h[i]))
                update *= alpha[b, i]
            dz[i] = (h[i] - n[i]) * update * (z[i] - z[i] * z[i])
            update -= update * z[i]
            dh[i] -= update
            dn[i] = update - update * n[i] * n[i]
            d_un[i] = dn[i] * r[i]
            dr[i] = dn[i] * un[i] * (r[i] - r[i] * r[i])


# ---------------------------------------------------------------------------------
# memory


@_kernel
def memory_read(
    product: np.ndarray,
    queries: np.ndarray,
    v: np.ndarray,
    memory: np.ndarray,
    psi: np.ndarray,
    reads: np.ndarray,
) -> None:
    """Compute (7) of R rows: weights psi [R, r] and reads [R, d] of a memory [R, r, d] by queries
    [R, A].

    The first A of product [R, r, A + 2d] are W_k M_D and become the tanh.
    """
    rows, slots, width = memory.shape
    for b in range(rows):
        query, read = queries[b], reads[b]
        for j in range(slots):
            # psi_j = softmax_j(v^T tanh(W_q h_t + W_k M_D(j)))   (7)
            h = product[b, j]
            score = v[0] - v[0]  # 0 of the right type
            for a in range(len(v)):
                h[a] = _tanh(h[a] + query[a])
            for a in range(len(v)):
                score += v[a] * h[a]
            psi[b, j] = score
        _softmax(psi[b], slots)
        # m_t = sum_j psi_j M_D(j)   (7)
        read[:] = 0
        for j in range(slots):
            slot, weight = memory[b, j], psi[b, j]
            for i in range(width):
                read[i] += weight * slot[i]


@_kernel
def memory_read_backward(
    product: np.ndarray,
    v: np.ndarray,
    memory: np.ndarray,
    psi: np.ndarray,
    d_psi: np.ndarray,
    d_reads: np.ndarray,
    d_queries: np.ndarray,
    d_memory: np.ndarray,
    d_v: np.ndarray,
) -> None:
    """Add the gradients of `memory_read` to d_memory, d_queries and d_v; that of the keys replaces
    the tanh."""
    rows, slots, width = memory.shape
    d_score = np.empty_like(psi[0])
    for b in range(rows):
        d_read, d_query = d_reads[b], d_queries[b]
        mean = v[0] - v[0]
        for j in range(slots):
            slot, d_slot = memory[b, j], d_memory[b, j]
            weight = psi[b, j]
            total = d_psi[b, j]  # psi_j reaches the loss directly and through m_t
            for i in range(width):
                total += d_read[i] * slot[i]
            for i in range(width):
                d_slot[i] += weight * d_read[i]
            d_score[j] = total
            mean += weight * total
        # The gradient of a softmax, and then that of the tanh.
        for j in range(slots):
            h = product[b, j]
            d = psi[b, j] * (d_score[j] - mean)
            for a in range(len(v)):
                d_v[a] += h[a] * d
            for a in range(len(v)):
                h[a] = v[a] * (d - h[a] * h[a] * d)
            for a in range(len(v)):
                d_query[a] += h[a]


@_kernel
def memory_write(
    product: np.ndarray,
    shared: np.ndarray,
    memory: np.ndarray,
    after: np.ndarray,
) -> None:
    """Compute (8) to (10) of R rows: `after` [R, r, d], the memory [R, r, d] after the write.

    The last 2d of product [R, r, A + 2d] become gate and update. shared: [R, 2d], the same for all
    slots.
    """
    rows, slots, width = memory.shape
    first = product.shape[2] - 2 * width
    for b in range(rows):
        for j in range(slots):
            z, u = product[b, j, first : first + width], product[b, j, first + width :]
            slot, new, add = memory[b, j], after[b, j], shared[b]
            # z = sigmoid(W_z1 h_{t+1} + W_z2 m_t + W_z3 M_D(j))   (8)
            for i in range(width):
                z[i] = _sigmoid(z[i] + add[i])
            # u = tanh(W_u1 h_{t+1} + W_u2 m_t + W_u3 M_D(j))   (9)
            for i in range(width):
                u[i] = _tanh(u[i] + add[width + i])
            # M_D(j) = z M_D(j) + (1 - z) u   (10)
            for i in range(width):
                new[i] = u[i] + z[i] * (slot[i] - u[i])


@_kernel
def memory_write_backward(
    product: np.ndarray,
    memory: np.ndarray,
    d_memory: np.ndarray,
    d_shared: np.ndarray,
) -> None:
    """Compute the gradients of `memory_write`: those of gate and update, which replace them in
    `product`, and their sum over the slots, added to d_shared [R, 2d].

    d_memory is the gradient of `after`. It becomes that of `memory`, without the part that comes
    through gate and update.
    """
    rows, slots, width = memory.shape
    first = product.shape[2] - 2 * width
    for b in range(rows):
        add = d_shared[b]
        for j in range(slots):
            z, u = product[b, j, first : first + width], product[b, j, first + width :]
            slot, d = memory[b, j], d_memory[b, j]
            for i in range(width):
                gate, update = z[i], u[i]
                # d_z = d (M - u) z (1 - z),  d_u = d (1 - z) (1 - u^2),  d_M = d z
                z[i] = d[i] * (slot[i] - update) * (gate - gate * gate)
                d_update = d[i] - d[i] * gate
                u[i] = d_update - d_update * update * update
                d[i] *= gate
            for i in range(2 * width):
                add[i] += product[b, j, first + i]


# ---------------------------------------------------------------------------------
# dropout


@_kernel
def drop(
    values: np.ndarray,
    draws: np.ndarray,
    least: np.int16,
    factor: np.floating,
    out: np.ndarray,
) -> None:
    """Write flat `values` times `factor` to `out`, but 0 where the draw is below `least`."""
    _assume_no_overlap()
    for i in range(len(values)):
        out[i] = values[i] * factor if draws[i] >= least else factor - factor


# ---------------------------------------------------------------------------------
# tensors


_off: ContextVar[bool] = ContextVar("_off", default=False)


@contextmanager
def without_kernels() -> Iterator[None]:
    """Compute by PyTorch's operations only: slower, but second derivatives exist."""
    token = _off.set(True)
    try:
        yield
    finally:
        _off.reset(token)


def compiled(values: Any) -> bool:
    """Return whether this file's kernels support these tensors: float32 or float64 on a CPU."""
    if values.device.type != "cpu" or _off.get():
        return False
    return values.dtype in (torch.float32, torch.float64)


def triton_runs(values: Tensor) -> bool:
    """Return whether `lib.layers.gpu_kernels` supports these tensors: float32 on a GPU with
    Triton."""
    if values.device.type != "cuda" or values.dtype != torch.float32:
        return False
    return _has_triton(values.device)


@cache
def _has_triton(device: torch.device) -> bool:
    """Return whether Triton compiles for a GPU; if not, warn once."""
    too_old = torch.cuda.get_device_capability(device) < (8, 0)
    missing = "compute capability 8.0 or later" if too_old else missing_for_triton()
    if missing:
        slow = "Mem2Mem uses PyTorch's own operations for its loops over words, which is slow"
        warnings.warn(f"{slow}: kernels on this GPU need {missing}", stacklevel=2)
    return not missing


def arrays(*tensors: Tensor | None) -> list[Any]:
    """Return the tensors as arrays that share their memory, and None as None.

    A tensor that is not contiguous is copied. Therefore a kernel must write into new memory
    (`new_empty`; `empty_like` keeps strides).
    """
    return [None if x is None else x.detach().contiguous().numpy() for x in tensors]


def for_each_document(function: Callable[[int, int], None], lengths: Sequence[int]) -> None:
    """Call `function` with the number and the length of every document, the longest first, on as
    many threads as PyTorch may use here."""
    order = sorted(range(len(lengths)), key=lambda b: -lengths[b])
    threads = min(torch.get_num_threads(), len(order))
    results = in_threads(lambda b: function(b, lengths[b]), order, threads)
    deque(results, maxlen=0)  # runs them all
