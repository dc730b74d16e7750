"""Compiled loops against PyTorch: the same numbers, whatever the lengths and the number of threads."""

import math

import numpy as np
import pytest
import torch

from lib.layers import kernels
from lib.layers.coverage import CoverageAttention, _CompiledScan, _CoverageScan, compiled, compiles
from lib.layers.kernels import _rational_tanh, for_each_document

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


@pytest.mark.parametrize("cached", [1, 200])
def test_pytorchs_scan_in_groups_of_documents(cached, monkeypatch):
    inputs, mask = scan_inputs(torch.float64, hypotheses=2)
    whole, expected = weights_and_gradients(_CoverageScan, inputs, mask)
    monkeypatch.setattr("lib.layers.coverage.CACHED", cached)
    ours, gradients = weights_and_gradients(_CoverageScan, inputs, mask)
    assert torch.allclose(ours, whole, rtol=0, atol=1e-14)
    assert all(torch.allclose(a, b, rtol=0, atol=1e-13) for a, b in zip(gradients, expected))


def test_only_models_with_such_attention_compile(monkeypatch):
    attending, other = torch.nn.Sequential(CoverageAttention(2, 2, 2)), torch.nn.Linear(2, 2)
    monkeypatch.setattr("lib.layers.coverage.ready", lambda: False)
    assert compiles(attending) and not compiles(other)
    monkeypatch.setattr("lib.layers.coverage.ready", lambda: True)
    assert not compiles(attending)


def test_what_is_not_a_cpus_float_takes_pytorch():
    assert compiled(torch.zeros(1)) and compiled(torch.zeros(1).double())
    assert not compiled(torch.zeros(1).bfloat16()) and not compiled(torch.zeros(1, device="meta"))


def test_what_was_in_new_memory_does_not_matter(monkeypatch):
    """The backward kernel as Python runs it, with new memory that is full of NaN."""

    class Poisoned:
        empty_like = staticmethod(lambda array: np.full_like(array, np.nan))

    monkeypatch.setattr(kernels, "np", Poisoned)
    monkeypatch.setattr(kernels, "_tanh", math.tanh)
    random = np.random.default_rng(0)
    shapes = (2, 3, 4), (5, 4), (4,), (4,), (2, 5)  # queries, keys, w, v, coverage
    inputs = [random.normal(size=shape) for shape in shapes]
    alpha = random.dirichlet(np.ones(5), (2, 3))
    gradients = [np.zeros(shape) for shape in shapes]
    kernels.coverage_backward.py_func(*inputs, alpha, random.normal(size=alpha.shape), *gradients)
    assert all(np.isfinite(g).all() and g.any() for g in gradients)
