import pytest
import torch

from lib.models.hred import HRED
from lib.models.mem2mem import Mem2Mem, compression_loss
from lib.papers import PAPERS
from tests.conftest import batch_of, document, tiny_model

# the rows of Table 2
VARIANTS = {name: v.config for name, v in PAPERS["mem2mem"].variants.items() if v.kind in (HRED, Mem2Mem)}


def test_the_memory_is_not_written_before_the_first_read():
    model, batch = tiny_model(), batch_of()
    state = model.encode(batch)
    _, after = model.decode(batch.target_input[:, :1], state)
    assert torch.equal(after.memory, state.encoder_memory)
    _, later = model.decode(batch.target_input[:, 1:2], after)
    assert not torch.allclose(later.memory, after.memory)
    assert torch.equal(later.encoder_memory, state.encoder_memory)


def test_without_writing_the_memory_stays():
    model, batch = tiny_model(**VARIANTS["+encoder memory"]), batch_of()
    _, after = model.decode(batch.target_input, model.encode(batch))
    assert torch.equal(after.memory, after.encoder_memory)


def test_a_write_gate_with_a_bias_starts_by_keeping_and_learns():
    model, batch = tiny_model(gate_bias=3.0), batch_of()
    assert Mem2Mem(model.config).write_hidden.bias.tolist() == [3.0] * 6 + [0.0] * 6, "of the gate, not the update"
    memory, read, hidden = model.encode(batch).memory, *torch.randn(2, 3, 6, dtype=torch.float64)
    with_bias = model.gate_and_update(memory, read, model.write_hidden(hidden))
    bias = model.write_hidden.bias.detach().clone()
    model.loss(batch)["loss"].backward()
    assert model.write_hidden.bias.grad.abs().min() > 0
    with torch.no_grad():
        model.write_hidden.bias.zero_()
    plain = model.gate_and_update(memory, read, model.write_hidden(hidden))
    assert torch.allclose(with_bias[0], torch.sigmoid(torch.logit(plain[0]) + bias[:6]), rtol=0, atol=1e-12)
    assert tiny_model().write_hidden.bias is None, "the paper has none"


def test_a_memory_from_zeros_is_one_vector():
    model, batch = tiny_model(**VARIANTS["+decoder memory"]), batch_of()
    output, after = model.decode(batch.target_input, model.encode(batch))
    assert torch.allclose(output.read, torch.full_like(output.read, 1 / 3), rtol=0, atol=1e-12)
    memory = after.memory
    assert memory.abs().max() > 0.1
    assert torch.allclose(memory, memory[:, :1].expand_as(memory), rtol=0, atol=1e-12)


def test_loss_terms_have_their_weights():
    weighted = tiny_model(lambda_comp=0.5, lambda_read=0.25).loss(batch_of())
    expected = weighted["nll"] + 0.5 * weighted["comp"] + 0.25 * weighted["read"]
    assert torch.allclose(weighted["loss"], expected)
    assert list(tiny_model(**VARIANTS["+decoder memory"]).loss(batch_of())) == ["loss", "nll"]


def test_compression_loss_by_hand():
    cases = {0.0: [[1, 0], [0, 1]], 1.0: [[0.5, 0.5], [0.5, 0.5]], 2.0: [[1, 0], [1, 0]]}
    for expected, rows in cases.items():
        assert compression_loss(torch.tensor([rows]).float()).item() == pytest.approx(expected)


def test_read_loss_has_a_gradient_at_zero():
    """One slot on one sentence: both contexts are the same vector."""
    model = tiny_model(slots=1, write=False)
    losses = model.loss(batch_of(document([[4, 5]], [4, 3])))
    assert losses["read"].item() == pytest.approx(0, abs=1e-9)
    losses["loss"].backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
