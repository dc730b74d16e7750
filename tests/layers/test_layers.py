"""Layers beside `test_properties_layers.py`, which has their equations: memory, threads, types,
starting values."""

import numpy as np
import pytest
import torch

from lib.layers.attention import CoverageAttention, _CompiledCoverage
from lib.layers.cpu_kernels import _rational_tanh, for_each_document
from lib.layers.dropout import Dropout, random_numbers
from lib.layers.memory import memory_scan
from lib.layers.pointer import bar_words
from lib.system.threads import torch_threads


def saved_numbers(function) -> int:
    """Numbers that autograd holds for the backward pass of a function."""
    held = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: held.append(x.numel()) or x, lambda x: x
    ):
        function()
    return sum(held)


def test_coverage_keeps_no_tanh():
    """What autograd holds grows with B * T * N, not with B * T * N * A."""
    module, mask = CoverageAttention(8, 8, 64), torch.ones(2, 50, dtype=torch.bool)
    assert module.state_dict().keys() == {"query.weight", "key.weight", "coverage", "v"}, "no bias"
    for vector in (module.coverage, module.v):
        assert vector.min() < 0 < vector.max(), "it begins with both signs"
    keys, queries, coverage = torch.randn(2, 50, 8), torch.randn(2, 1, 30, 8), torch.zeros(2, 1, 50)
    assert (
        saved_numbers(lambda: module(queries, module.project(keys), mask, coverage))
        < 2 * 30 * 50 * 8
    )


def test_threads_change_no_bit():
    torch.manual_seed(0)
    mask = torch.arange(12) < torch.tensor([7, 1, 12, 9])[:, None]
    shapes = (4, 2, 30, 33), (4, 12, 33), (33,), (33,), (4, 2, 12)
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    found = []
    for threads in (1, 2, 3):
        with torch_threads(threads):
            alpha = _CompiledCoverage.apply(*inputs, mask)
            found.append([alpha, *torch.autograd.grad(alpha.square().sum(), inputs)])
    for values in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(values, found[0]))


def test_an_error_in_a_document_is_raised():
    def fail(document, length):
        raise ValueError(f"document {document} of {length} words")

    with torch_threads(2), pytest.raises(ValueError, match="document 1 of 9 words"):
        for_each_document(fail, [3, 9])


def test_the_rational_tanh():
    x = np.linspace(-20, 20, 4001, dtype=np.float32)
    found = np.array([_rational_tanh(value) for value in x])
    assert np.abs(found - np.tanh(x.astype(np.float64))).max() < 5e-7


def test_a_memory_goes_backward_once():
    memory, weight = torch.randn(1, 2, 3), torch.randn(6, 3, requires_grad=True)
    queries, from_hidden, v = torch.randn(1, 2, 3), torch.randn(1, 2, 6), torch.randn(3)
    _, reads, _ = memory_scan(memory, queries, from_hidden, v, weight[:3], weight, weight)
    reads.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once"):
        reads.sum().backward()


def test_barred_words():
    p = bar_words(torch.ones(2, 4), torch.tensor([[0, -1, 0], [2, 1, -1]]))
    assert p.tolist() == [[0, 1, 1], [1, 0, 0]]
    assert (
        bar_words(torch.ones(2, 4), torch.zeros(2, 0, dtype=torch.long)).tolist() == [[1, 1, 1]] * 2
    )


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("p", [0.25, 1.0])
def test_dropout_drops_its_share_and_scales_the_rest(p, own):
    drop, x = Dropout(p), torch.ones(20_000)
    if own:
        with random_numbers(7):
            found = drop(x)
        with random_numbers(7):
            assert torch.equal(found, drop(x))
    else:
        found = drop(x)
    assert (found == 0).double().mean().item() == pytest.approx(p, abs=0.02)
    assert p == 1 or torch.allclose(found[found > 0], torch.tensor(1 / (1 - p)))
    assert torch.equal(drop.eval()(x), x)
