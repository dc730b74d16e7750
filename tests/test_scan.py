"""Kernels are used exactly where a model's equations are theirs."""

from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
from torch import nn

from lib.layers import memory
from lib.layers.attention import Attention, CoverageAttention
from lib.models import mem2mem
from lib.models.mem2mem import Mem2Mem
from tests.conftest import batch_of, double, same_gradients, tiny_model, without_kernels


class Additive(Mem2Mem):
    """M := M + (1 - z) u."""

    def write(self, memory, read, from_hidden):
        z, u = self.gate_and_update(memory, read, from_hidden)
        return memory + (1 - z) * u


class HardGate(Mem2Mem):
    def gate_and_update(self, memory, read, from_hidden):
        z, u = super().gate_and_update(memory, read, from_hidden)
        return z.square(), u


class MeanRead(Mem2Mem):
    def read(self, queries, memory):
        psi, _ = super().read(queries, memory)
        even = torch.full_like(psi, 1 / memory.shape[1])
        return even, even @ memory


class ReadTwice(Mem2Mem):
    """Another step, as a plain method."""

    def write_and_read(self, state, query, from_hidden):
        (psi, read), (memory, _) = super().write_and_read(state, query, from_hidden)
        return (psi, 2 * read), (memory, 2 * read)


CHANGED = [Additive, HardGate, MeanRead, ReadTwice]


class Sharper(Attention):
    def forward(self, queries, keys, mask=None):
        weights = super().forward(queries, keys, mask).square()
        return weights / weights.sum(-1, keepdim=True)


class Doubled(nn.Linear):
    def forward(self, inputs):
        return 2 * super().forward(inputs)


def replace_part(model, name, kind):
    """Give a part another class, with the weights that it has."""
    getattr(model, name).__class__ = kind


PARTS = {"read_attention": Sharper, "write_memory": Doubled, "write_read": Doubled}


@contextmanager
def counted_kernels():
    """Count the calls of the memory's kernels."""
    with patch.object(mem2mem, "memory_scan", wraps=memory.memory_scan) as kernels:
        yield kernels


def losses(model):
    return model.eval().loss(batch_of())["loss"]


def word_by_word(model):
    """Compute the nll as a search does: one word at a time, without a scan."""
    batch = batch_of()
    state, found = model.encode(batch), []
    for t in range(batch.target.shape[1]):
        output, state = model.decode(batch.target_input[:, t : t + 1], state)
        found.append(model.log_prob(output, batch.target[:, t : t + 1], state))
    log_p = torch.cat(found, 1) * batch.target_mask
    return -(log_p.sum(1) / batch.target_mask.sum(1)).mean()


def test_the_papers_equations_use_kernels():
    with counted_kernels() as kernels:
        losses(tiny_model())
    assert kernels.call_count == 1


@pytest.mark.parametrize("kind", CHANGED)
def test_a_changed_equation_takes_effect_in_training(kind):
    plain = tiny_model()
    changed = double(kind, plain.config)
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), changed.parameters(), strict=True))
    with counted_kernels() as kernels:
        loss = losses(changed)
    assert not kernels.called
    assert not torch.allclose(loss, losses(plain))
    assert torch.allclose(changed.loss(batch_of())["nll"], word_by_word(changed), rtol=0, atol=1e-12)
    with without_kernels():
        expected = losses(changed)
    same_gradients(changed, losses(changed), expected)


@pytest.mark.parametrize("name", PARTS)
def test_a_replaced_part_takes_effect_in_training(name):
    model = tiny_model()
    before = losses(model)
    replace_part(model, name, PARTS[name])
    assert not torch.allclose(losses(model), before)
    assert torch.allclose(model.loss(batch_of())["nll"], word_by_word(model), rtol=0, atol=1e-12)


def test_a_hook_takes_effect_in_training():
    model = tiny_model()
    before = losses(model)
    hook = model.read_attention.register_forward_hook(lambda module, given, weights: weights.flip(-1))
    assert not torch.allclose(losses(model), before)
    hook.remove()
    assert torch.equal(losses(model), before)


@pytest.mark.parametrize("on_the_class", [True, False])
def test_a_patch_takes_effect_in_training(on_the_class):
    model = tiny_model()
    before = losses(model)
    target = Mem2Mem if on_the_class else model
    keep = (lambda self, memory, *_: memory) if on_the_class else (lambda memory, *_: memory)
    with patch.object(target, "write", keep):
        assert not torch.allclose(losses(model), before)
    assert torch.equal(losses(model), before)


# ----------------------------------------------------------------------------------------- coverage


class Forgetful(CoverageAttention):
    """cov_{t+1} = cov_t / 2 + alpha_t."""

    def attend(self, coverage, query, keys, mask):
        alpha, _ = super().attend(coverage, query, keys, mask)
        return alpha, coverage / 2 + alpha


class Flat(CoverageAttention):
    def weights(self, query, coverage, keys, mask):
        weights = super().weights(query, coverage, keys, mask).sqrt()
        return weights / weights.sum(-1, keepdim=True)


@pytest.mark.parametrize("kind", [Forgetful, Flat])
def test_changed_coverage_takes_effect_in_training(kind):
    model = tiny_model()
    before = losses(model)
    replace_part(model, "word_attention", kind)
    assert not torch.allclose(losses(model), before)
    assert torch.allclose(model.loss(batch_of())["nll"], word_by_word(model), rtol=0, atol=1e-12)
