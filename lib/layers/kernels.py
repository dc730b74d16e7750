"""Compiled loops for a CPU: additive attention, with coverage or without, the gates of GRUs, a memory that is read
and written at every step, the softmax over a vocabulary, the best words of a distribution that is never made, and
dropout, of the weights of attention together with their softmax.

What PyTorch does in a dozen calls, each over all numbers, is one pass here, and what is between stays in registers or
the first cache. Attention works on one document, and documents are shared out among threads: no number depends on how
many there are. In float64 tanh and exp are exact, so that the checks of the pages verify the code that trains; in
float32 they are a rational function and a polynomial, right to 5e-7. Lengths, not masks: no padding is read. PyTorch
operations that say the same stand where a kernel is called; other types take those,
and GPUs where `lib.layers.gpu_kernels` has no kernel.

The first call compiles for some seconds; numba keeps the result beside this file or, where that may not be written,
in the user's cache, or in a temporary folder, which is said.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numba import config, njit, types
from numba.extending import intrinsic, overload
from torch import Tensor

from lib.system.files import say_once, temporary_folder
from lib.system.threads import in_threads

# sums of float32 in any order, so that loops become vector instructions; the order is fixed when it is compiled
FAST = {"reassoc", "contract", "nsz", "arcp"}
FURTHER = 64  # numbers that a vector loop takes at once: arrays that are so far apart are never taken to overlap
KERNELS: list = []


def _kernel(function) -> Any:
    kept = njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
    try:
        KERNELS.append(kept(function))
    except RuntimeError:  # numba may write nowhere
        folder = config.CACHE_DIR = str(temporary_folder() / "kernels")  # type: ignore[attr-defined]
        say_once(f"neither {Path(__file__).parent} nor the user's cache can be written; compiled kernels: {folder}")
        KERNELS.append(kept(function))
    return KERNELS[-1]


def _inlined(function) -> Any:
    """Part of each kernel that calls it. A function of its own would be in two copies, which round otherwise: one for
    the process that compiles, one in the kernel that is saved."""
    overload(function, inline="always", strict=False)(lambda *arguments: function)
    return function


def _hint(tell: Callable) -> Any:
    """A function that a kernel calls to tell LLVM something of the kernel's own."""

    def told(context, builder, signature, arguments):
        tell(builder.function)
        return context.get_dummy_value()

    return intrinsic(lambda context: (types.void(), told))


@_hint
def _wide(function):
    """Take the widest vectors there are, in a kernel that has enough to do: LLVM by itself takes half of them."""
    set.add(function.attributes, '"prefer-vector-width"="512"')  # a name that llvmlite does not know


@_hint
def _apart(function):
    """The arrays of a kernel's arguments do not overlap. Without it LLVM compares their places before each loop and
    takes another one, which rounds otherwise, where short arrays merely lie close together."""
    for argument in function.args:
        if str(argument.type) in ("float*", "double*", "i16*"):
            argument.add_attribute("noalias")


def _tanh(x):
    raise NotImplementedError  # only in compiled code


@overload(_tanh, inline="always")
def _tanh_of(x):
    if x == types.float32:
        return _rational_tanh
    return lambda x: math.tanh(x)


def _rational_tanh(x):
    """tanh as x P(x²) / Q(x²) for |x| up to 9, fitted by least squares to the least relative error, 2e-8."""
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
def _sigmoid_of(x):
    half = np.float32(0.5) if x == types.float32 else 0.5
    return lambda x: half + half * _tanh(half * x)


def _exp(x):
    raise NotImplementedError


@overload(_exp, inline="always")
def _exp_of(x):
    if x == types.float32:
        return _polynomial_exp
    return lambda x: math.exp(x)


def _same_bits(result, argument) -> Any:
    """A number of another type that has the same bits."""

    def cast(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(result))

    return intrinsic(lambda context, value: (result(argument), cast))


_float_of_bits = _same_bits(types.float32, types.int32)
_bits_of_float = _same_bits(types.int32, types.float32)


def _wider(x):
    raise NotImplementedError


@overload(_wider, inline="always")
def _wider_of(x):
    """bfloat16, which numpy does not have, comes as its 16 bits: the upper half of a float32."""
    if x == types.int16:
        return lambda x: _float_of_bits(np.int32(np.int32(x) << np.int32(16)))
    return lambda x: x


def _narrower(x, like):
    raise NotImplementedError


@overload(_narrower, inline="always")
def _narrower_of(x, like):
    """A number as an array such as `like` holds it: for bfloat16 the nearest, of two that are as near the even
    one."""
    return _nearest_bfloat if like.dtype == types.int16 else lambda x, like: x


def _nearest_bfloat(x, like):
    bits = _bits_of_float(x)
    odd = (bits >> np.int32(16)) & np.int32(1)
    return np.int16((bits + np.int32(0x7FFF) + odd) >> np.int32(16))


def _polynomial_exp(x):
    """exp(x) as 2^n (1 + r + r² p(r)), x = n log 2 + r from -87 to 88, fitted like the tanh; right to 3e-7 of it."""
    x = min(max(x, np.float32(-87)), np.float32(88))
    n = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
    r = x - n * np.float32(0.6931471805599453)
    p = np.float32(0.0013814590751254547)
    p = p * r + np.float32(0.008368717691992647)
    p = p * r + np.float32(0.04166838821274785)
    p = p * r + np.float32(0.1666652062297492)
    p = p * r + np.float32(0.49999993446950874)
    return (np.float32(1) + r + r * r * p) * _float_of_bits(np.int32((np.int32(n) + np.int32(127)) << np.int32(23)))


@_inlined
def _softmax(scores, n):
    """Softmax in place, over the first n."""
    largest = scores[0]
    for i in range(1, n):
        largest = max(largest, scores[i])
    total = scores[0] - scores[0]
    for i in range(n):
        scores[i] = _exp(scores[i] - largest)
        total += scores[i]
    for i in range(n):
        scores[i] /= total


@_kernel
def coverage_forward(queries, keys, w, v, coverage, alpha):
    """alpha [K, T, N] = softmax(v tanh(keys + query + w * coverage)) of one document of n words, step after step.

    queries: [K, T, A]; keys: [n, A]; w, v: [A]; coverage: [K, N] before the first step. What is after the n words
    stays as it is.
    """
    _apart()
    _wide()
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
    _apart()
    _wide()
    hypotheses, steps, width = queries.shape
    n = keys.shape[0]
    d_score, work = np.empty_like(coverage[0]), np.empty((2, width + FURTHER), v.dtype)
    h, vw = work[0], work[1]
    for a in range(width):
        vw[a] = v[a] * w[a]
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
                    s = d - h[a] * h[a] * d
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


@_kernel
def additive_forward(queries, keys, v, scores):
    """scores [T, n] = v tanh(keys [n, A] + query) for queries [T, A]."""
    _apart()
    for t in range(len(queries)):
        query = queries[t]
        for i in range(len(keys)):
            score, key = v[0] - v[0], keys[i]
            for a in range(len(v)):
                score += v[a] * _tanh(key[a] + query[a])
            scores[t, i] = score


@_kernel
def additive_backward(queries, keys, v, d_scores, d_queries, d_keys, d_v):
    """Gradients of `additive_forward`, added to d_queries [T, A], d_keys [n, A] and d_v [A]."""
    _apart()
    h = np.empty_like(v)
    for t in range(len(queries)):
        query, d_query = queries[t], d_queries[t]
        for i in range(len(keys)):
            key, d_key, d = keys[i], d_keys[i], d_scores[t, i]
            for a in range(len(v)):
                h[a] = _tanh(key[a] + query[a])
            for a in range(len(v)):
                d_v[a] += h[a] * d
            for a in range(len(v)):
                h[a] = v[a] * (d - h[a] * h[a] * d)
                d_query[a] += h[a]
            for a in range(len(v)):
                d_key[a] += h[a]


# ---------------------------------------------------------------------------------------------------- recurrence


@_kernel
def gru_forward(projected, before, alpha, hidden, previous, activations, states):
    """One step of n sequences: gates [n, 3d] of the words and of the states before. `hidden` [n, d] becomes the new
    state, which `states` gets as well; `previous` gets the old one, and `activations` [n, 4, d] r, z, n and W_n h.

    alpha: [n, d], by which the update is multiplied, or None.
    """
    _apart()
    for b in range(len(hidden)):
        width, x, g, h, k = hidden.shape[1], projected[b], before[b], hidden[b], activations[b]
        r, z, n, hn = k[0], k[1], k[2], k[3]
        for i in range(width):
            r[i] = _sigmoid(x[i] + g[i])
        for i in range(width):
            z[i] = _sigmoid(x[width + i] + g[width + i])
        for i in range(width):
            hn[i] = g[2 * width + i]
            n[i] = _tanh(x[2 * width + i] + r[i] * hn[i])
        previous[b] = h
        if alpha is None:
            for i in range(width):
                h[i] = n[i] + z[i] * (h[i] - n[i])
        else:
            for i in range(width):
                h[i] += alpha[b, i] * (n[i] - h[i] - z[i] * (n[i] - h[i]))
        states[b] = h


@_kernel
def gru_backward(d_states, alpha, previous, activations, d_hidden, d_projected, d_before, d_alpha):
    """Gradients of `gru_forward`: d_hidden [n, d] is of the new state and becomes that of the old one, but for what
    comes through the gates d_before [n, 3d]; d_projected and d_alpha are written."""
    _apart()
    for b in range(len(d_hidden)):
        width, h, k, dh = d_hidden.shape[1], previous[b], activations[b], d_hidden[b]
        dx, dg = d_projected[b], d_before[b]
        r, z, n, hn, dr, dz, dn = k[0], k[1], k[2], k[3], dx[:width], dx[width : 2 * width], dx[2 * width :]
        for i in range(width):
            dh[i] += d_states[b, i]
        for i in range(width):
            new = dh[i]  # gradient of n - h, before the update gate
            if alpha is not None:
                d_alpha[b, i] = dh[i] * (n[i] - h[i] - z[i] * (n[i] - h[i]))
                new *= alpha[b, i]
            dz[i] = (h[i] - n[i]) * new * (z[i] - z[i] * z[i])
            new -= new * z[i]
            dh[i] -= new
            dn[i] = new - new * n[i] * n[i]
            dr[i] = dn[i] * hn[i] * (r[i] - r[i] * r[i])
        for i in range(width):
            dg[i], dg[width + i], dg[2 * width + i] = dr[i], dz[i], dn[i] * r[i]


# ---------------------------------------------------------------------------------------------------- vocabulary

LANES = 256  # numbers whose maxima are kept apart, so that looking for the largest becomes vector instructions


@_inlined
def _largest(row, bias, lanes):
    """Add bias [V] to a row of scores [V]; the largest, and in `lanes` the largest of every LANES-th."""
    blocks = len(bias) // LANES * LANES
    lanes[:] = row[0] + bias[0]
    for first in range(0, blocks, LANES):
        part, add = row[first : first + LANES], bias[first : first + LANES]
        for i in range(LANES):
            part[i] += add[i]
            lanes[i] = max(lanes[i], part[i])
    for i in range(blocks, len(bias)):
        row[i] += bias[i]
        lanes[i - blocks] = max(lanes[i - blocks], row[i])
    top = lanes[0]
    for i in range(1, LANES):
        top = max(top, lanes[i])
    return top


@_kernel
def exponentials(scores, bias, index, largest, sums, right):
    """Exponentials of scores [M, V] + bias [V]: `largest` [M] of each row, `right` [M], that of the word `index` [M],
    and the `sums` [M] of exp(score - largest), which take the place of the scores."""
    _apart()
    _wide()
    lanes = np.empty(LANES, scores.dtype)
    for m in range(len(scores)):
        row = scores[m]
        top = _largest(row, bias, lanes)
        largest[m], right[m], total = top, row[index[m]], top - top
        for i in range(len(bias)):
            row[i] = _exp(row[i] - top)
            total += row[i]
        sums[m] = total


@_kernel
def peaks(scores, bias, tops, sums, maxima):
    """Add bias [V] to scores [R, V]; put the largest of each row into tops [R], the sum of exp(score - largest) into
    sums [R], and the largest of every LANES-th word into maxima [R, LANES]."""
    _apart()
    _wide()
    for m in range(len(scores)):
        row = scores[m]
        top = _largest(row, bias, maxima[m])
        total = top - top
        for i in range(len(bias)):
            total += _exp(row[i] - top)
        tops[m], sums[m] = top, total


@_inlined
def _insert(value, word, values, words):
    """Insert into values, sorted with the largest first, whose last one leaves."""
    for place in range(len(values) - 1, -1, -1):
        if place == 0 or values[place - 1] >= value:
            values[place], words[place] = value, word
            break
        values[place], words[place] = values[place - 1], words[place - 1]


@_kernel
def best_extensions(scores, maxima, log_share, source, copies, barred, mass, values, words):
    """The best words of R mixtures: values [R, k] of log P, the largest first, and the words [R, k].

    The vocabulary's log P is scores [R, V] + log_share [R]; `copies` [R, N] are the P of the words `source` [R, N];
    row r must not have the words barred[r], of which -1 is none. maxima: of `peaks`. mass: zeros, one for every word;
    they are zeros again afterwards. Scores of copied and barred words become -inf.
    """
    _apart()
    size = scores.shape[1]
    for r in range(len(scores)):
        row, best, share = scores[r], values[r], log_share[r]
        best[:], words[r, :] = -np.inf, 0
        for i in range(source.shape[1]):
            mass[source[r, i]] += copies[r, i]
        for word in barred[r]:
            if word >= 0:
                mass[word] = 0
                if word < size:
                    row[word] = -np.inf
        for word in source[r]:
            p = mass[word]
            mass[word] = 0
            if p > 0:
                if word < size:
                    p += math.exp(row[word] + share)
                    row[word] = -np.inf
                if math.log(p) > best[-1]:
                    _insert(math.log(p), word, best, words[r])
        for lane in range(LANES):
            if maxima[r, lane] + share > best[-1]:
                for word in range(lane, size, LANES):
                    if row[word] + share > best[-1]:
                        _insert(row[word] + share, word, best, words[r])


@_kernel
def scale_exponentials(scores, factors, index, slopes, d_bias):
    """Multiply rows of scores [M, V] by factors [M], add slopes [M] at `index` [M], and all rows to d_bias [V]."""
    _apart()
    for m in range(len(scores)):
        row, factor = scores[m], factors[m]
        for i in range(len(d_bias)):
            row[i] *= factor
            d_bias[i] += row[i]
        row[index[m]] += slopes[m]
        d_bias[index[m]] += slopes[m]


# -------------------------------------------------------------------------------------------------------- memory


@_kernel
def memory_read(product, queries, v, memory, psi, reads):
    """Equation 7 of R rows: weights psi [R, r] and reads [R, d] of a memory [R, r, d] by queries [R, A]; the keys are
    the first A of product [R, r, A + 2d] and become their tanh."""
    _apart()
    rows, slots, width = memory.shape
    for b in range(rows):
        query, read = queries[b], reads[b]
        for j in range(slots):
            h, score = product[b, j], v[0] - v[0]
            for a in range(len(v)):
                h[a] = _tanh(h[a] + query[a])
            for a in range(len(v)):
                score += v[a] * h[a]
            psi[b, j] = score
        _softmax(psi[b], slots)
        read[:] = 0
        for j in range(slots):
            slot, weight = memory[b, j], psi[b, j]
            for i in range(width):
                read[i] += weight * slot[i]


@_kernel
def memory_read_backward(product, v, memory, psi, d_psi, d_reads, d_queries, d_memory, d_v):
    """Gradients of `memory_read`: added to d_memory, d_queries and d_v; that of the keys is put into `product`."""
    _apart()
    rows, slots, width = memory.shape
    d_score = np.empty_like(psi[0])
    for b in range(rows):
        d_read, d_query, mean = d_reads[b], d_queries[b], v[0] - v[0]
        for j in range(slots):
            slot, d_slot, weight, total = memory[b, j], d_memory[b, j], psi[b, j], d_psi[b, j]
            for i in range(width):
                total += d_read[i] * slot[i]
            for i in range(width):
                d_slot[i] += weight * d_read[i]
            d_score[j] = total
            mean += weight * total
        for j in range(slots):
            h, d = product[b, j], psi[b, j] * (d_score[j] - mean)
            for a in range(len(v)):
                d_v[a] += h[a] * d
            for a in range(len(v)):
                h[a] = v[a] * (d - h[a] * h[a] * d)
            for a in range(len(v)):
                d_query[a] += h[a]


@_kernel
def memory_write(product, shared, memory, after):
    """Equations 8 to 10 of R rows: `after` [R, r, d] of memory [R, r, d]; the last 2d of product [R, r, A + 2d]
    become gate and update. shared: [R, 2d], what does not depend on the slot."""
    _apart()
    rows, slots, width = memory.shape
    first = product.shape[2] - 2 * width
    for b in range(rows):
        for j in range(slots):
            z, u = product[b, j, first : first + width], product[b, j, first + width :]
            slot, new, add = memory[b, j], after[b, j], shared[b]
            for i in range(width):
                z[i] = _sigmoid(z[i] + add[i])
            for i in range(width):
                u[i] = _tanh(u[i] + add[width + i])
            for i in range(width):
                new[i] = u[i] + z[i] * (slot[i] - u[i])


@_kernel
def memory_write_backward(product, memory, d_memory, d_shared):
    """Gradients of `memory_write`: d_memory is of `after` and becomes that of `memory`, but for what comes through
    gate and update, whose gradients are put into `product` and added to d_shared [R, 2d]."""
    _apart()
    rows, slots, width = memory.shape
    first = product.shape[2] - 2 * width
    for b in range(rows):
        add = d_shared[b]
        for j in range(slots):
            z, u = product[b, j, first : first + width], product[b, j, first + width :]
            slot, d = memory[b, j], d_memory[b, j]
            for i in range(width):
                gate, update = z[i], u[i]
                z[i] = d[i] * (slot[i] - update) * (gate - gate * gate)
                d_update = d[i] - d[i] * gate
                u[i] = d_update - d_update * update * update
                d[i] *= gate
            for i in range(2 * width):
                add[i] += product[b, j, first + i]


# ------------------------------------------------------------------------------------------------------- dropout


@_kernel
def drop(values, draws, least, factor, out):
    """Flat `values` times `factor`, but 0 where the draw, of 16 bits, is below `least`."""
    _apart()
    for i in range(len(values)):
        out[i] = _narrower(_wider(values[i]) * (factor if draws[i] >= least else factor - factor), out)


@_inlined
def _widened(score, see, row):
    """Put scores that are seen into a row, and no number to speak of in place of the others and up to its end."""
    nothing = row.dtype.type(-1e38)
    for i in range(len(score)):
        row[i] = _wider(score[i]) if see[i] != 0 else nothing
    for i in range(len(score), len(row)):
        row[i] = nothing


@_inlined
def _top(row, lanes):
    """The largest number of a row whose length is a multiple of that of `lanes`, which are used for it."""
    lanes[:] = row[0]
    for first in range(0, len(row), len(lanes)):
        for i in range(len(lanes)):
            lanes[i] = max(lanes[i], row[first + i])
    top = lanes[0]
    for i in range(1, len(lanes)):
        top = max(top, lanes[i])
    return top


@_inlined
def _exponentials(row, top):
    """Put exp(row - top) in the place of a row, and give their sum."""
    total = top - top
    for i in range(len(row)):
        row[i] = _exp(row[i] - top)
        total += row[i]
    return total


@_kernel
def dropped_softmax(scores, seen, draws, least, factor, weights, tops, sums):
    """weights [h, m, n]: the softmax of the scores that are seen, dropped as by `drop`. Of each row `tops` [h, m]
    gets the largest score, `sums` that of exp(score - largest).

    seen: [h or 1, m or 1, n], not 0 where a score is; of 16 bits, as the draws are, for `_apart`.
    """
    _apart()
    _wide()
    heads, queries, n = scores.shape
    longer = -(-n // FURTHER) * FURTHER  # whole vectors alone
    work = np.empty(longer + 16, sums.dtype)
    row, lanes, nothing = work[:longer], work[longer:], factor - factor
    for h in range(heads):
        for m in range(queries):
            see, draw, weight = seen[h % len(seen), m % seen.shape[1]], draws[h, m], weights[h, m]
            _widened(scores[h, m], see, row)
            tops[h, m] = _top(row, lanes)
            sums[h, m] = _exponentials(row, tops[h, m])
            scale = factor / sums[h, m]
            for i in range(n):
                kept = see[i] != 0 and draw[i] >= least
                weight[i] = _narrower(row[i] * (scale if kept else nothing), weight)


@_kernel
def dropped_softmax_backward(scores, seen, draws, least, factor, tops, sums, d_weights, d_scores):
    """The gradient d_scores [h, m, n] of `dropped_softmax`; the softmax is worked out again."""
    _apart()
    _wide()
    heads, queries, n = scores.shape
    longer = -(-n // FURTHER) * FURTHER
    work = np.empty(2 * longer, sums.dtype)
    row, slope, nothing = work[:longer], work[longer:], factor - factor
    for h in range(heads):
        for m in range(queries):
            see, draw = seen[h % len(seen), m % seen.shape[1]], draws[h, m]
            d_weight, d_score = d_weights[h, m], d_scores[h, m]
            _widened(scores[h, m], see, row)
            _exponentials(row, tops[h, m])
            share, mean = np.float32(1) / sums[h, m], nothing
            for i in range(n):
                row[i] *= share if see[i] != 0 else nothing
                slope[i] = _wider(d_weight[i]) * (factor if draw[i] >= least else nothing)
                mean += row[i] * slope[i]
            for i in range(n):
                d_score[i] = _narrower(row[i] * (slope[i] - mean), d_score)


# ------------------------------------------------------------------------------------------------------- tensors


def compiled(values: Tensor) -> bool:
    """Whether there are compiled kernels for numbers of this kind."""
    return values.device.type == "cpu" and values.dtype in (torch.float32, torch.float64)


def triton_runs(values: Tensor) -> bool:
    """Whether `lib.layers.gpu_kernels` computes numbers of this kind: float32 on a GPU that has Triton."""
    return values.device.type == "cuda" and values.dtype == torch.float32 and _has_triton(values.device)


@cache
def _has_triton(device: torch.device) -> bool:
    """Whether Triton compiles for a GPU; if not, say so once."""
    slow = "Mem2Mem's loops over words start their operations one by one on this GPU"
    major, minor = torch.cuda.get_device_capability(device)
    if find_spec("triton") is None:
        say_once(f"{slow}: Triton is not installed")
        return False
    if major < 8:
        say_once(f"{slow}: Triton's kernels need compute capability 8.0, and it has {major}.{minor}")
        return False
    return True


def arrays(*tensors: Tensor | None) -> list:
    """Tensors as the kernels see them: bfloat16 as its bits, None as it is. One that is not contiguous is copied:
    what a kernel writes must be new memory (`new_empty`; `empty_like` keeps strides)."""
    return [None if x is None else _array(x.detach().contiguous()) for x in tensors]


def seen(*tensors: Tensor | None) -> Sequence:
    """Tensors as the kernels see them, or as they are where there are no kernels for the first."""
    return arrays(*tensors) if tensors[0] is not None and compiled(tensors[0]) else tensors


def _array(x: Tensor) -> np.ndarray:
    return (x.view(torch.int16) if x.dtype == torch.bfloat16 else x).numpy()


def for_each_document(function: Callable[[int, int], None], lengths: Sequence[int]) -> None:
    """Call `function` of the number and the length of every document, the longest first, on as many threads as
    PyTorch may use here."""
    order = sorted(range(len(lengths)), key=lambda b: -lengths[b])
    threads = min(torch.get_num_threads(), len(order))
    deque(in_threads(lambda b: function(b, lengths[b]), order, threads), maxlen=0)
