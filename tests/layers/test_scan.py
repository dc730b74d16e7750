"""Kernels are used exactly where a model's equations are theirs."""

import warnings
from contextlib import contextmanager
from importlib import import_module
from unittest.mock import patch

import pytest
import torch
from torch import nn

from lib.layers import attention, fast, memory
from lib.layers.attention import Attention, CoverageAttention
from lib.layers.fast import _forms
from lib.models import mem2mem
from lib.models.mem2mem import Mem2Mem
from lib.models.read_again import ReadAgain, ReadAgainConfig
from lib.system.files import project_root
from tests.conftest import VOCAB, batch_of, double, same_gradients, tiny_model, without_kernels

pytestmark = pytest.mark.filterwarnings("ignore:.*slower than its kernel")


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
    assert all(
        torch.equal(a, b) for a, b in zip(plain.parameters(), changed.parameters(), strict=True)
    )
    with counted_kernels() as kernels:
        loss = losses(changed)
    assert not kernels.called
    assert not torch.allclose(loss, losses(plain))
    assert torch.allclose(
        changed.loss(batch_of())["nll"], word_by_word(changed), rtol=0, atol=1e-12
    )
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
    hook = model.read_attention.register_forward_hook(
        lambda module, given, weights: weights.flip(-1)
    )
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


# ---------------------------------------------------------------------------------
# coverage


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


# ---------------------------------------------------------------------------------
# every model with kernels

READ_AGAIN = ReadAgainConfig(VOCAB, VOCAB, embedding=5, hidden=6, encoder="read-again gru")
MODELS = {"mem2mem": tiny_model, "read_again": lambda: double(ReadAgain, READ_AGAIN)}


def bent(value):
    """Change every tensor of a result, more than a later normalisation undoes."""
    if isinstance(value, tuple):
        return tuple(map(bent, value))
    return value * (1.1 + 0.1 * value) if isinstance(value, torch.Tensor) else value


def changed(function):
    return lambda *operands: bent(function(*operands))


def override(module, name):
    """Give a module a subclass of its class, which overrides one method."""
    kind = type(module)
    methods = {name: changed(getattr(kind, name))}
    module.__class__ = type(f"Changed{kind.__name__}", (kind,), methods)


def forms_of(model):
    """List the fast forms of a model's modules, with the paths of the modules."""
    return [(path, form) for path, module in model.named_modules() for form in _forms(type(module))]


def changes():
    """List all functions and parts that the fast forms of the models contain."""
    found = {}
    for name, make in MODELS.items():
        for path, form in forms_of(make()):
            for function in form.functions:
                found[name, path, function.__qualname__] = function
            for part in form.parts:
                found[name, f"{path}.{part}".lstrip("."), "forward"] = None
    return found


CHANGES = changes()


def test_all_fast_forms_are_among_the_models():
    tested = {form for make in MODELS.values() for _, form in forms_of(make())}
    declared = set()
    for path in library_modules():
        for value in vars(import_module(f"lib.{path}")).values():
            if isinstance(value, type):
                declared |= set(_forms(value))
    assert tested == declared


def library_modules():
    for folder in ("layers", "models"):
        for file in sorted((project_root() / "lib" / folder).glob("*.py")):
            if file.stem != "gpu_kernels":  # needs Triton
                yield f"{folder}.{file.stem}"


@pytest.mark.parametrize("change", CHANGES, ids=" ".join)
def test_every_change_of_an_equation_takes_effect_in_training(change, monkeypatch):
    """The training loss becomes that of decoding word by word without kernels."""
    name, path, method = change
    function = CHANGES[change]
    model = MODELS[name]().eval()
    before = model.loss(batch_of())["nll"]
    if function is not None and "." not in method:
        monkeypatch.setattr(f"{function.__module__}.{method}", changed(function))
    else:
        override(model.get_submodule(path), method.rpartition(".")[2])
    after = model.loss(batch_of())["nll"]
    assert (after - before).abs() > 1e-6
    with without_kernels():
        assert torch.allclose(after, word_by_word(model), rtol=0, atol=1e-12)


# ---------------------------------------------------------------------------------
# warnings


@pytest.fixture
def no_warning_yet(monkeypatch):
    monkeypatch.setattr(fast, "_warned", set())


def warnings_of(model):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        losses(model)
        losses(model)
    return [str(warning.message) for warning in found]


def test_a_lost_kernel_is_one_warning(no_warning_yet):
    plain = tiny_model()
    assert warnings_of(plain) == []
    model = double(Additive, plain.config)
    assert warnings_of(model) == [
        "Additive: write is not Mem2Mem.write; the loop over the steps is used, which is slower "
        "than its kernel"
    ]
    assert warnings_of(double(Additive, plain.config)) == [], "once for a class"


def test_a_warning_names_the_part(no_warning_yet, monkeypatch):
    model = tiny_model()
    replace_part(model, "write_read", Doubled)
    (text,) = warnings_of(model)
    assert text.startswith("Mem2Mem: write_read is of the class Doubled, not Linear; the loop")

    model = tiny_model()
    model.write_read.register_forward_hook(lambda *_: None)
    (text,) = warnings_of(model)
    assert text.startswith("Mem2Mem: write_read has a hook; ")

    monkeypatch.setattr(attention, "additive_scores", changed(attention.additive_scores))
    texts = warnings_of(tiny_model())
    replaced = "additive_scores was replaced in lib.layers.attention; "
    assert [text.split(replaced)[0] for text in texts] == ["Mem2Mem: ", "Attention: "]
    assert texts[1].endswith("PyTorch's operations are used, which is slower than its kernel")


def test_no_warning_where_there_is_no_kernel(no_warning_yet):
    model = double(Additive, tiny_model().config)
    with without_kernels():
        assert warnings_of(model) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        word_by_word(model)
