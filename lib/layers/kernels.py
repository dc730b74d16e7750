"""Compiled loops for a CPU: attention with coverage, which touches every source word at every step.

What PyTorch does in a dozen calls, each over [documents, words, width] numbers, is one pass here: what is between
the keys and the weights stays in registers or the first cache. Each kernel works on one document; documents are
shared out among threads, and no number depends on how many there are. In float64 the tanh is exact, so that the
checks of the pages verify the code that trains; in float32 it is a rational function, right to 5e-7. Lengths, not
masks: no padding is read.

The first call compiles for some seconds; numba keeps the result beside this file or, where that may not be written,
in the user's cache.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numba import njit, types
from numba.extending import overload, register_jitable

# sums of float32 in any order, so that loops become vector instructions; the order is fixed when it is compiled
FAST = {"reassoc", "contract", "nsz", "arcp"}
_kernel = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")


def _tanh(x):
    raise NotImplementedError  # only in compiled code


@overload(_tanh, inline="always")
def _tanh_of(x):
    if x == types.float32:
        return _rational_tanh
    return lambda x: math.tanh(x)


@register_jitable
def _rational_tanh(x):
    """x P(x²) / Q(x²) for |x| up to 9, fitted by least squares to the least relative error, 2e-8."""
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


@_kernel
def _softmax(scores, n):
    """In place, over the first n."""
    largest = scores[0]
    for i in range(1, n):
        largest = max(largest, scores[i])
    total = scores[0] - scores[0]
    for i in range(n):
        scores[i] = math.exp(scores[i] - largest)
        total += scores[i]
    for i in range(n):
        scores[i] /= total


@_kernel
def coverage_forward(queries, keys, w, v, coverage, alpha):
    """alpha [K, T, N] = softmax(v tanh(keys + query + w * coverage)) of one document of n words, step after step.

    queries: [K, T, A]; keys: [n, A]; w, v: [A]; coverage: [K, N] before the first step. What is behind the n words
    stays as it is.
    """
    hypotheses, steps, width = queries.shape
    n = keys.shape[0]
    for k in range(hypotheses):
        running = coverage[k].copy()
        for t in range(steps):
            query, row = queries[k, t], alpha[k, t]
            for i in range(n):
                score, key, c = v[0] - v[0], keys[i], running[i]
                for a in range(width):
                    score += v[a] * _tanh(key[a] + query[a] + w[a] * c)
                row[i] = score
            _softmax(row, n)
            for i in range(n):
                running[i] += row[i]


@_kernel
def coverage_backward(queries, keys, w, v, coverage, alpha, d_alpha, d_queries, d_keys, d_w, d_v, d_coverage):
    """Gradients of `coverage_forward`, added to d_queries [K, T, A], d_keys [n, A], d_w, d_v [A], d_coverage [K, N].

    The tanh is worked out again. With s = (1 - tanh²) d_score, all of them are sums of s, of s * coverage and of
    tanh * d_score; v is multiplied in at the end.
    """
    hypotheses, steps, width = queries.shape
    n = keys.shape[0]
    d_score, h, vw = np.empty_like(coverage[0]), np.empty_like(v), v * w
    for k in range(hypotheses):
        before = np.empty_like(alpha[k])
        before[0] = coverage[k]
        for t in range(1, steps):
            before[t] = before[t - 1] + alpha[k, t - 1]
        d_cov = d_coverage[k]
        for t in range(steps - 1, -1, -1):
            query, row, d_query = queries[k, t], alpha[k, t], d_queries[k, t]
            mean = v[0] - v[0]  # 0 of the right type; d_score is new memory
            for i in range(n):
                d_score[i] = d_alpha[k, t, i] + d_cov[i]
                mean += row[i] * d_score[i]
            for i in range(n):
                d_score[i] = row[i] * (d_score[i] - mean)
            for i in range(n):  # short loops over few arrays become the best vector instructions
                key, d_key, d, c = keys[i], d_keys[i], d_score[i], before[t, i]
                for a in range(width):
                    h[a] = _tanh(key[a] + query[a] + w[a] * c)
                for a in range(width):
                    d_v[a] += h[a] * d
                back = d - d
                for a in range(width):
                    s = (1 - h[a] * h[a]) * d
                    h[a] = s
                    d_key[a] += s
                    back += s * vw[a]
                for a in range(width):
                    d_query[a] += h[a]
                    d_w[a] += h[a] * c
                d_cov[i] += back
    d_w *= v
    for i in range(n):
        d_keys[i] *= v
    for k in range(hypotheses):
        for t in range(steps):
            d_queries[k, t] *= v


def ready() -> bool:
    """Whether the kernels are compiled, or at least kept from an earlier process."""
    kept = Path(coverage_backward.stats.cache_path or "").glob(f"{Path(__file__).stem}.coverage_backward-*.nbi")
    return bool(coverage_backward.signatures) or any(kept)


# ------------------------------------------------------------------------------------------------------ threads


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="kernel")


def for_each_document(function: Callable[[int, int], None], lengths: Sequence[int]) -> None:
    """Call `function` of the number and the length of every document, on as many threads as PyTorch may use. They
    wait without spinning, so that other processes are not held up; the longest documents come first."""
    order = sorted(range(len(lengths)), key=lambda b: -lengths[b])
    threads = min(torch.get_num_threads(), len(order))
    if threads == 1:
        for b in order:
            function(b, lengths[b])
    else:
        list(_pool(threads).map(lambda b: function(b, lengths[b]), order))
