"""Layers beside `test_properties_layers.py`, which has their equations: memory, threads, types, starting values."""

import numpy as np
import pytest
import torch

from lib.layers.attention import Attention, masked_softmax
from lib.layers.coverage import CoverageAttention, _CompiledScan
from lib.layers.cpu_kernels import _rational_tanh, compiled, for_each_document
from lib.layers.dropout import Dropout, random_numbers
from lib.layers.gru import GRU
from lib.layers.memory import memory_scan
from lib.layers.pointer import bar_words, target_scores
from lib.layers.transformer import attend
from lib.system.threads import torch_threads


def test_vectors_of_coverage_begin_as_those_of_a_linear_layer():
    module = CoverageAttention(query=4, key=3, width=400)
    for vector in (module.coverage, module.v):
        assert 0.045 < vector.abs().max() <= 0.05 and abs(vector.mean()) < 0.01


def saved_numbers(function) -> int:
    """Numbers that autograd holds for the backward pass of a function."""
    held = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: held.append(x.numel()) or x, lambda x: x):
        function()
    return sum(held)


def test_coverage_keeps_no_tanh():
    """What autograd holds grows with B * T * N, not with B * T * N * A."""
    module, mask = CoverageAttention(8, 8, 64), torch.ones(2, 50, dtype=torch.bool)
    keys, queries, coverage = torch.randn(2, 50, 8), torch.randn(2, 1, 30, 8), torch.zeros(2, 1, 50)
    assert saved_numbers(lambda: module(queries, module.project(keys), mask, coverage)) < 2 * 30 * 50 * 8


def test_many_scores_of_a_vocabulary_are_not_kept(monkeypatch):
    monkeypatch.setattr("lib.layers.pointer.SAVED", 0)
    monkeypatch.setattr("lib.layers.pointer.room_on", lambda device: 4 * 500 * 10)
    weight, bias = torch.randn(500, 3, requires_grad=True), torch.zeros(500)
    score, _ = target_scores(torch.randn(1, 90, 3), weight, bias, torch.zeros(1, 90, dtype=torch.long))
    assert not score.grad_fn.next_functions[0][0].next_functions[0][0].scores  # of _TargetScores


def test_threads_change_no_bit():
    torch.manual_seed(0)
    mask = torch.arange(12) < torch.tensor([7, 1, 12, 9])[:, None]
    shapes = (4, 2, 30, 33), (4, 12, 33), (33,), (33,), (4, 2, 12)
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    found = []
    for threads in (1, 2, 3):
        with torch_threads(threads):
            alpha = _CompiledScan.apply(*inputs, mask)
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


def test_what_has_kernels():
    assert compiled(torch.zeros(1)) and compiled(torch.zeros(1).double())
    assert not compiled(torch.zeros(1).bfloat16()) and not compiled(torch.zeros(1, device="meta"))


def test_a_gru_is_pytorchs_under_autocast():
    torch.manual_seed(0)
    ours, inputs = GRU(3, 4, bidirectional=True), torch.randn(2, 5, 3)
    expected, _ = torch.nn.GRU.forward(ours, inputs)
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = ours(inputs)
    assert found.dtype == torch.float32 and (found - expected).abs().max() < 0.02


def test_a_memory_goes_backward_once():
    memory, weight = torch.randn(1, 2, 3), torch.randn(6, 3, requires_grad=True)
    queries, from_hidden, v = torch.randn(1, 2, 3), torch.randn(1, 2, 6), torch.randn(3)
    _, reads, _ = memory_scan(memory, queries, from_hidden, v, weight[:3], weight, weight)
    reads.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once"):
        reads.sum().backward()


def test_scores_are_checked():
    with pytest.raises(ValueError, match="score must be one of"):
        Attention(2, 2, 2, "cosine")
    with pytest.raises(ValueError, match="as wide as keys"):
        Attention(2, 3, 2, "dot")


def test_softmax_of_half_precision_is_float32():
    assert masked_softmax(torch.zeros(1, 2).bfloat16(), torch.tensor([[True, False]])).tolist() == [[1.0, 0.0]]
    assert masked_softmax(torch.zeros(1, 2).bfloat16(), torch.ones(1, 2, dtype=torch.bool)).dtype == torch.float32


def test_barred_words():
    p = bar_words(torch.ones(2, 4), torch.tensor([[0, -1, 0], [2, 1, -1]]))
    assert p.tolist() == [[0, 1, 1], [1, 0, 0]]
    assert bar_words(torch.ones(2, 4), torch.zeros(2, 0, dtype=torch.long)).tolist() == [[1, 1, 1]] * 2


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


def test_attention_with_dropout_is_attention_on_average():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 1, 4, 8)
    mask = torch.tensor([[True, True, True, False]])
    expected = attend(q, k, v, mask, Dropout(0.0))
    found = torch.stack([attend(q, k, v, mask, Dropout(0.3)) for _ in range(4000)]).mean(0)
    assert (found - expected).abs().max() < 0.05
