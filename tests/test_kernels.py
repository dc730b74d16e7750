"""Compiled loops against PyTorch: the same numbers, whatever the lengths and the number of threads."""

import math
import re

import numba
import numpy as np
import pytest
import torch
from lib.layers.kernels import _rational_tanh, compiled, for_each_document
from torch.nn.utils.rnn import pack_padded_sequence

from lib.layers import kernels
from lib.layers.attention import _AdditiveScores, _CompiledScores
from lib.layers.coverage import _CompiledScan, _CoverageScan
from lib.layers.dropout import Dropout
from lib.layers.gru import GRU, GatedGRU, gru_scan
from lib.layers.pointer import Mixture, softmax_nll
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig
from tests.conftest import without_kernels

LENGTHS = [7, 1, 12, 9]


def scan_inputs(dtype, hypotheses=1, steps=5, width=6):
    """Queries, keys, w, v, coverage and mask of four documents; what is behind their ends is not a number."""
    torch.manual_seed(0)
    longest, count = max(LENGTHS), len(LENGTHS)
    shapes = (count, hypotheses, steps, width), (count, longest, width), (width,), (width,)
    inputs = [torch.randn(*shape, dtype=dtype) for shape in shapes]
    inputs.append(torch.rand(count, hypotheses, longest, dtype=dtype))
    return inputs, torch.arange(longest) < torch.tensor(LENGTHS)[:, None]


def weights_and_gradients(scan, inputs, mask):
    leaves = [x.clone().requires_grad_() for x in inputs]
    weights = scan.apply(*leaves, mask)
    torch.manual_seed(1)
    slope = torch.randn(weights.shape, dtype=torch.float64).to(weights.dtype) * mask[:, None, None]
    return weights.detach(), torch.autograd.grad(weights, leaves, slope)


@pytest.mark.parametrize("hypotheses", [1, 3])
@pytest.mark.parametrize("steps", [1, 5])
def test_the_scan_is_the_reference(hypotheses, steps):
    inputs, mask = scan_inputs(torch.float64, hypotheses, steps)
    (ours, gradients), (theirs, expected) = (
        weights_and_gradients(scan, inputs, mask) for scan in (_CompiledScan, _CoverageScan)
    )
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-13)
    for name, a, b in zip(("queries", "keys", "w", "v", "coverage"), gradients, expected):
        assert torch.allclose(a, b, rtol=0, atol=1e-12), name


def test_single_precision_is_close():
    """The tanh is a rational function there."""
    inputs, mask = scan_inputs(torch.float32, steps=20, width=40)
    ours, gradients = weights_and_gradients(_CompiledScan, inputs, mask)
    exact, expected = weights_and_gradients(_CoverageScan, [x.double() for x in inputs], mask)
    assert (ours - exact).abs().max() < 1e-5
    for a, b in zip(gradients, expected):
        assert (a - b).abs().max() < 1e-4 * b.abs().max()


def test_the_rational_tanh():
    x = np.concatenate([np.linspace(-12, 12, 200_001), [0.0, 1e-30, -1e-4, 88.0, -1e30]]).astype(np.float32)
    found = np.array([_rational_tanh(value) for value in x])
    assert found.dtype == np.float32
    assert np.abs(found - np.tanh(x.astype(np.float64))).max() < 5e-7
    small = np.abs(x) < 0.1
    assert np.allclose(found[small], np.tanh(x[small].astype(np.float64)), rtol=3e-7, atol=0), "relative, near 0"


@pytest.mark.parametrize(("name", "exact", "close"), [("_exp", np.exp, 6e-7), ("_tanh", np.tanh, 5e-7)])
def test_compiled_functions(name, exact, close):
    """As they are compiled, over all that a float32 may hold; in double precision they are numpy's."""
    function = getattr(kernels, name)
    compiled_one = numba.njit(lambda x: function(x), fastmath=kernels.FAST)  # as the kernels are
    for x in np.concatenate([np.linspace(-87, 88, 5_001), np.linspace(-1, 1, 2_001), [0.0, -1e-30, 1e-9]]):
        single = compiled_one(np.float32(x))
        assert isinstance(single, float) and abs(single / exact(np.float64(np.float32(x))) - 1 if x else 0) < close
        assert compiled_one(x) == pytest.approx(exact(x), rel=1e-15)
    assert compiled_one(np.float32(-1e30)) == pytest.approx(exact(-87.0), abs=1e-6)


def test_bfloat16_is_the_nearest():
    """As PyTorch's: of two that are as near the even one."""
    random = torch.randint(-(2**31), 2**31, (9_999,), dtype=torch.int32).view(torch.float32)
    halfway = ((random.view(torch.int32) & -0x10000) + 0x8000).view(torch.float32)
    wide = torch.cat([random, halfway, torch.tensor([0.0, -0.0, torch.inf, -torch.inf, 1e-40])])
    wide = wide[~wide.isnan()]
    found = torch.empty(len(wide), dtype=torch.bfloat16)
    keep = np.zeros(len(wide), np.int16), np.int16(0), np.float32(1)
    kernels.drop(wide.numpy(), *keep, found.view(torch.int16).numpy())
    assert torch.equal(found, wide.bfloat16())


def test_padding_is_not_read():
    inputs, mask = scan_inputs(torch.float64)
    expected = weights_and_gradients(_CompiledScan, inputs, mask)
    for row, length in enumerate(LENGTHS):
        inputs[1][row, length:] = torch.nan
        inputs[4][row, :, length:] = torch.nan
    ours = weights_and_gradients(_CompiledScan, inputs, mask)
    assert torch.equal(ours[0], expected[0]) and (ours[0][~mask[:, None, None].expand_as(ours[0])] == 0).all()
    assert all(torch.equal(a, b) for a, b in zip(ours[1], expected[1]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_threads_change_no_bit(dtype):
    inputs, mask = scan_inputs(dtype, steps=30, width=33)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(weights_and_gradients(_CompiledScan, inputs, mask))
    finally:
        torch.set_num_threads(before)
    for weights, gradients in found[1:]:
        assert torch.equal(weights, found[0][0])
        assert all(torch.equal(a, b) for a, b in zip(gradients, found[0][1]))


def test_an_error_in_a_document_is_raised():
    def fail(document, length):
        raise ValueError(f"document {document} of {length} words")

    for threads in (1, 2):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            with pytest.raises(ValueError, match="document 1 of 9 words"):
                for_each_document(fail, [3, 9])
        finally:
            torch.set_num_threads(before)


@pytest.mark.parametrize("cached", [1, 1000])
def test_pytorchs_scan_in_parts(cached, monkeypatch):
    """Gradients of all steps at once, of one and of two: 1,000 numbers are 2 steps of 576."""
    inputs, mask = scan_inputs(torch.float64, hypotheses=2)
    whole, expected = weights_and_gradients(_CoverageScan, inputs, mask)
    monkeypatch.setattr("lib.layers.coverage.CACHED", cached)
    ours, gradients = weights_and_gradients(_CoverageScan, inputs, mask)
    assert torch.equal(ours, whole)
    assert all(torch.allclose(a, b, rtol=0, atol=1e-13) for a, b in zip(gradients, expected))


def test_what_is_not_a_cpus_float_takes_pytorch():
    assert compiled(torch.zeros(1)) and compiled(torch.zeros(1).double())
    assert not compiled(torch.zeros(1).bfloat16()) and not compiled(torch.zeros(1, device="meta"))


def test_what_was_in_new_memory_does_not_matter(monkeypatch):
    """The backward kernel as Python runs it, with new memory that is full of NaN."""

    class Poisoned:
        empty = staticmethod(lambda shape, dtype: np.full(shape, np.nan, dtype))
        empty_like = staticmethod(lambda array: np.full_like(array, np.nan))

    monkeypatch.setattr(kernels, "np", Poisoned)
    monkeypatch.setattr(kernels, "_tanh", math.tanh)
    for hint in ("_wide", "_apart"):
        monkeypatch.setattr(kernels, hint, lambda: None)
    random = np.random.default_rng(0)
    shapes = (2, 3, 4), (5, 4), (4,), (4,), (2, 5)  # queries, keys, w, v, coverage
    inputs = [random.normal(size=shape) for shape in shapes]
    alpha = random.dirichlet(np.ones(5), (2, 3))
    gradients = [np.zeros(shape) for shape in shapes]
    kernels.coverage_backward.py_func(*inputs, alpha, random.normal(size=alpha.shape), *gradients)
    assert all(np.isfinite(g).all() and g.any() for g in gradients)


def test_additive_scores_are_the_reference():
    """Of keys of different numbers; what is behind them is not a number."""
    torch.manual_seed(0)
    queries, keys, v = (torch.randn(*shape, dtype=torch.float64) for shape in ((4, 5, 6), (4, 12, 6), (6,)))
    mask, made = torch.arange(12) < torch.tensor(LENGTHS)[:, None], []
    for scores_by in (_AdditiveScores, _CompiledScores):
        leaves = [x.clone().requires_grad_() for x in (queries, keys, v)]
        scores = scores_by.apply(*leaves, mask.sum(1)).masked_fill(~mask[:, None], 0)
        slope = torch.linspace(-1, 1, scores.numel(), dtype=torch.float64).view_as(scores)
        made.append([scores, *torch.autograd.grad((scores * slope).sum(), leaves)])
        for row, length in enumerate(LENGTHS):
            keys[row, length:] = torch.nan
    for a, b in zip(*made, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-13)


# ---------------------------------------------------------------------------------------------------------- GRUs


def outputs_and_gradients(layer, inputs, packed: bool, start=()):
    lengths = torch.tensor([3, 7, 2])
    read = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False) if packed else inputs
    states, last = layer(read, *start)
    made = [states.data if packed else states, last]
    slopes = (torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view_as(x) for x in made)
    total = sum((x * slope).sum() for x, slope in zip(made, slopes))
    return *made, *torch.autograd.grad(total, [inputs, *start, *layer.parameters()])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("started", [False, True])
def test_a_gru_is_pytorchs(packed, bidirectional, started):
    """States, last states and every gradient; sequences of different lengths in any order when packed."""
    torch.manual_seed(0)
    ours = GRU(5, 4, bidirectional).double()
    theirs = torch.nn.GRU(5, 4, batch_first=True, bidirectional=bidirectional).double()
    theirs.load_state_dict(ours.state_dict())
    inputs = torch.randn(3, 7, 5, dtype=torch.float64, requires_grad=True)
    start = [torch.randn(1 + bidirectional, 3, 4, dtype=torch.float64, requires_grad=True)] if started else []
    for a, b in zip(*(outputs_and_gradients(layer, inputs, packed, start) for layer in (ours, theirs)), strict=True):
        assert a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=1e-13)


def test_the_kernels_of_the_gru_are_their_reference():
    """What a GPU computes, with an update held back and without."""
    torch.manual_seed(0)
    plain, gated = GRU(5, 4).double(), GatedGRU(5, 4).double()
    inputs, alpha = (torch.randn(3, 7, n, dtype=torch.float64, requires_grad=True) for n in (5, 4))

    def found():
        projected = torch.nn.functional.linear(inputs, plain.weight_ih_l0).transpose(0, 1).flatten(0, 1)
        start = projected.new_zeros(3, 4)
        states, last = gru_scan(projected, None, start, plain.weight_hh_l0, plain.bias_hh_l0, [3] * 7, backwards=True)
        parameters = [plain.weight_ih_l0, plain.weight_hh_l0, plain.bias_hh_l0]
        gradients = torch.autograd.grad(states.square().sum() + last.sum(), [inputs, *parameters])
        held = gated(inputs, alpha)
        return [
            states,
            last,
            held,
            *gradients,
            *torch.autograd.grad(held.sum(), [inputs, alpha, *gated.parameters()]),
        ]

    ours = found()
    with without_kernels():
        theirs = found()
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-13)


def test_a_gru_in_single_precision_is_close():
    torch.manual_seed(0)
    layer, exact = GRU(20, 30, bidirectional=True), GRU(20, 30, bidirectional=True).double()
    exact.load_state_dict(layer.state_dict())
    inputs = torch.randn(3, 7, 20, requires_grad=True)
    ours = outputs_and_gradients(layer, inputs, False)
    for a, b in zip(ours, outputs_and_gradients(exact, inputs.detach().double().requires_grad_(), False)):
        assert (a - b).abs().max() < 1e-5 * b.abs().max()


# -------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize(("dtype", "close"), [(torch.float64, 1e-13), (torch.float32, 2e-5)])
def test_the_memory_scan_is_the_loop(dtype, close):
    """What the compiled scan reads and leaves, and every gradient, are those of equations 7 to 10 step by step."""
    torch.manual_seed(0)
    model = Mem2Mem(Mem2MemConfig(50, embedding=6, hidden=8, bottleneck=5, slots=3, compression=4)).to(dtype)
    memory, queries, from_hidden = (torch.randn(*shape, dtype=dtype) for shape in ((2, 8, 3), (7, 2, 8), (2, 7, 16)))
    leaves = [x.requires_grad_() for x in (memory, queries, from_hidden)]
    weights = [
        m.weight for m in (model.read_attention.v, model.read_attention.key, model.write_memory, model.write_read)
    ]
    made = []
    for scan in (model._fast_scan, model._scan):
        found = scan(memory.transpose(1, 2), queries.transpose(0, 1), from_hidden)  # views: any strides will do
        loss = sum((x * torch.linspace(-1, 1, x.numel(), dtype=dtype).view(x.shape)).sum() for x in found)
        made.append([*found, *torch.autograd.grad(loss, leaves + weights)])
    for a, b in zip(*made, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=close)


@pytest.mark.parametrize("words", [3, kernels.LANES, kernels.LANES + 44])
def test_the_largest_of_a_row_is_one_of_its_scores(words):
    """Where first score and last bias are high, and their sum would be higher than any."""
    scores, bias = np.zeros((2, words)), np.zeros(words)
    scores[:, 0], bias[0], scores[:, -1], bias[-1] = 900, -900, -901, 900
    largest, sums, right = np.empty(2), np.empty(2), np.empty(2)
    kernels.exponentials(scores, bias, np.array([0, words - 1]), largest, sums, right)
    assert largest.tolist() == [0, 0] and right.tolist() == [0, -1]
    assert sums == pytest.approx(words - 1 + math.exp(-1))


def test_gradients_that_are_made_once_say_so():
    model = Mem2Mem(Mem2MemConfig(50, embedding=6, hidden=8, bottleneck=5, slots=3, compression=4))
    memory = torch.randn(2, 3, 8, requires_grad=True)
    _, reads, _ = model._fast_scan(memory, torch.randn(2, 7, 8), torch.randn(2, 7, 16))
    reads.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="its gradient is made once"):
        reads.sum().backward()


@pytest.fixture(scope="module")
def compiled_code():
    """What every kernel is compiled to, by its name and the types in single precision with which it is called."""
    torch.manual_seed(0)
    inputs, mask = scan_inputs(torch.float32)
    weights_and_gradients(_CompiledScan, inputs, mask)
    x, alpha = (torch.randn(2, 3, 4, requires_grad=True) for _ in range(2))
    _CompiledScores.apply(x, alpha, x[0, 0], [3, 2]).sum().backward()
    (GatedGRU(4, 4)(x, alpha) + GRU(4, 4)(x)[0]).sum().backward()
    model = Mem2Mem(Mem2MemConfig(50, embedding=6, hidden=8, bottleneck=5, slots=3, compression=4))
    leaves = torch.randn(2, 3, 8), torch.randn(2, 7, 8), torch.randn(2, 7, 16)
    model._fast_scan(*(leaf.requires_grad_() for leaf in leaves))[1].sum().backward()
    softmax_nll(x[0], alpha[0], x[0, 0], torch.tensor([0, 1, 2]) // 2, torch.ones(3)).backward()
    with torch.no_grad():
        nothing = torch.zeros(3, 0)
        mixture = Mixture(x[0], alpha[0], None, lambda total: (-total, nothing), nothing.long())
        mixture.best(2, torch.tensor([[0], [-1], [-1]]), extra=1)
    for dtype in (torch.float32, torch.bfloat16):
        scores = torch.randn(2, 3, 4, 5, dtype=dtype, requires_grad=True)
        (Dropout(0.3)(scores) + Dropout(0.3).softmax(scores, mask[:2, None, None, :5])).sum().backward()
    found = {}
    for kernel in kernels.KERNELS:
        single = [t for t in kernel.signatures if not any(getattr(a, "dtype", None) == numba.float64 for a in t)]
        assert single, f"{kernel.__name__} was not called"
        fresh = numba.njit(kernel.py_func, fastmath=kernels.FAST, error_model="numpy")  # of kept ones it is hidden
        for types in single:
            fresh.compile(types)
            found[kernel.__name__, types] = fresh.inspect_llvm(types)
    return found


@pytest.mark.long
def test_single_precision_is_nowhere_double(compiled_code):
    """A number without a type in a kernel would make what it touches a double, and half as fast."""
    for (name, _), code in compiled_code.items():
        assert "fpext" not in code, name


@pytest.mark.long
def test_a_kernel_is_one_function(compiled_code):
    """Of a function that it calls, a process that compiles takes the copy compiled for itself, one that loads what
    was kept the copy within the kernel: they round otherwise."""
    for (name, _), code in compiled_code.items():
        ours = re.findall(r"^define .*@\S*lib6layers7kernels\d+(\w+?)B\d", code, re.MULTILINE)
        assert ours and set(ours) == {name}


# whose loops take no two parts of one array, of which LLVM asks whether they overlap: that is the same everywhere
WHOLE_ARRAYS = {"additive_backward", "memory_read_backward", "memory_write"}


@pytest.mark.long
def test_no_bit_depends_on_where_the_arrays_lie(compiled_code):
    """LLVM would write each loop twice, and choose by the places of the arrays in memory, were it not told that they
    are apart: short arrays that lie close together would take the loop that rounds otherwise."""
    for (name, types), code in compiled_code.items():
        head = next(line for line in code.splitlines() if line.startswith("define") and name in line)
        data = re.findall(r"ptr ([^%]*)%arg\.\w+\.4\b", head)  # the fifth part of an array is where its numbers are
        apart = ["noalias" in attributes for attributes in data]
        told = (numba.float32, numba.int16)
        assert apart == [t.dtype in told for t in types if isinstance(t, numba.types.Array)], name
        if name in WHOLE_ARRAYS:
            assert "vector.body" in code and "vector.memcheck" not in code, name
