import itertools
import math

import pytest
import torch

from lib.models.hred import HRED, HREDConfig
from lib.models.mem2mem import Mem2Mem, Mem2MemConfig, compression_loss
from lib.papers import PAPERS
from tests.conftest import RAGGED, VOCAB, batch_of, check_padding, check_same_state, document, tiny_model

# the rows of Table 2
VARIANTS = {name: v.config for name, v in PAPERS["mem2mem"].variants.items() if v.kind in (HRED, Mem2Mem)}
ROWS = [name for name in VARIANTS if name != "hred"]


def make(variant: str):
    if variant == "hred":
        torch.manual_seed(0)
        model = HRED(HREDConfig(VOCAB, embedding=5, hidden=6, bottleneck=4)).double()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.7)
        return model
    return tiny_model(**VARIANTS[variant])


def count(model):
    return sum(p.numel() for p in model.parameters())


def test_parameters_of_the_paper():
    assert count(HRED(HREDConfig())) == 14_036_049
    assert count(Mem2Mem(Mem2MemConfig())) == 14_725_713
    config = Mem2MemConfig()
    assert (config.vocab_size, config.embedding, config.hidden, config.slots, config.compression) == (
        50_000, 128, 256, 10, 128,
    )  # fmt: skip
    assert (config.lambda_comp, config.lambda_read) == (1e-4, 1e-2)


def test_the_rows_of_table_2_add_one_thing_each():
    assert list(VARIANTS) == ["hred", "+encoder memory", "+decoder memory", "+transfer", "+comp", "+read"]
    memory = [tiny_model(**VARIANTS[name]) for name in ROWS]
    assert [hasattr(m, "compress_heads") for m in memory] == [True, False, True, True, True]
    assert [hasattr(m, "write_memory") for m in memory] == [False, True, True, True, True]
    assert [(m.config.lambda_comp > 0, m.config.lambda_read > 0) for m in memory] == [
        (False, False), (False, False), (False, False), (True, False), (True, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "model",
    [*map(make, VARIANTS), tiny_model(score="general"), tiny_model(score="dot")],
    ids=[*VARIANTS, "general", "dot"],
)
def test_padding_changes_nothing(model):
    check_padding(model)


@pytest.mark.parametrize("cached", [1, 40])
def test_pytorch_alone_gives_the_same(cached, monkeypatch):
    """Without compiled kernels, documents in groups of any size: the same loss and gradients."""
    model = tiny_model()
    whole = model.loss(batch_of())["loss"]
    for module in ("layers.attention", "layers.coverage", "layers.gru", "layers.pointer", "models.mem2mem"):
        monkeypatch.setattr(f"lib.{module}.compiled", lambda values: False)
    monkeypatch.setattr("lib.layers.attention.CACHED", cached)
    monkeypatch.setattr("lib.layers.coverage.CACHED", cached)
    parts = model.loss(batch_of())["loss"]
    assert parts.item() == pytest.approx(whole.item(), abs=1e-12)
    for a, b in zip(*(torch.autograd.grad(loss, list(model.parameters())) for loss in (whole, parts))):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_call_with_many_words_equals_many_calls(variant):
    model, batch = make(variant), batch_of()
    state = model.encode(batch)
    output, after = model.decode(batch.target_input, state)
    whole = model.log_prob(output, batch.target, state)
    for cut in ((1,) * 5, (2, 3), (4, 1)):
        running, parts = state, []
        for tokens, target in zip(batch.target_input.split(cut, 1), batch.target.split(cut, 1)):
            part, running = model.decode(tokens, running)
            parts.append(model.log_prob(part, target, running))
        assert torch.allclose(torch.cat(parts, 1), whole, rtol=0, atol=1e-12)
        check_same_state(running, after)


@pytest.mark.parametrize("variant", VARIANTS)
def test_hypotheses_share_their_document(variant):
    """K hypotheses of each document equal K copies of the document."""
    model, batch = make(variant), batch_of()
    rows = torch.tensor([0, 0, 1, 1, 2, 2])
    tokens = torch.tensor([[4, 5, 6], [7, 1, 4], [9, 9, 9], [4, 6, 8], [1, 1, 2], [5, 4, 3]])
    output, after = model.decode(tokens, model.encode(batch).reorder(rows))
    copies = batch_of(*[RAGGED[i] for i in rows])
    expected, expected_after = model.decode(tokens, model.encode(copies))
    for name in ("features", "switch", "copy", "words", "sentences"):
        assert torch.allclose(getattr(output, name), getattr(expected, name), rtol=0, atol=1e-12), name
    check_same_state(after, expected_after)
    assert after.words.shape[0] == 3, "what the encoder made is not copied"


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
    assert list(make("+decoder memory").loss(batch_of())) == ["loss", "nll"]


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


HARD = {
    "fewer sentences than slots": [document([[4, 5], [6]], [4, 3])],
    "one sentence of one word": [document([[4]], [4, 3])],
    "all words unknown": [document([[12, 13], [14]], [13, 14, 3])],
    "nothing of the summary in the source": [document([[4, 5]], [1, 1, 3])],
    "a sentence of 5,000 words": [document([[4 + i % 8 for i in range(5000)], [4]], [4, 5, 3]), document([[4]], [3])],
}


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_is_nan(case, variant):
    model = make(variant).float()
    losses = model.loss(batch_of(*HARD[case]))
    losses["loss"].backward()
    assert all(torch.isfinite(v) for v in losses.values())
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_bf16_autocast_stays_close():
    torch.manual_seed(0)
    model = Mem2Mem(Mem2MemConfig(VOCAB, embedding=8, hidden=16, bottleneck=8, slots=3, compression=8))
    exact = model.loss(batch_of())["loss"]
    with torch.autocast("cpu", torch.bfloat16):
        rough = model.loss(batch_of())["loss"]
    assert rough.dtype == torch.float32
    assert rough.item() == pytest.approx(exact.item(), rel=0.02)


def test_configs_are_checked():
    with pytest.raises(ValueError, match="must be even"):
        HREDConfig(hidden=7)
    with pytest.raises(ValueError, match="score"):
        HREDConfig(score="cosine")
    with pytest.raises(ValueError, match="start"):
        Mem2MemConfig(start="noise")
    with pytest.raises(ValueError, match="slots"):
        Mem2MemConfig(slots=0)
    with pytest.raises(ValueError, match="no encoder memory"):
        Mem2MemConfig(start="zeros")
    for name, value in itertools.product(("lambda_comp", "lambda_read"), (math.nan, math.inf, -0.1)):
        with pytest.raises(ValueError, match=f"{name} must be a number of at least 0, not {value}"):
            Mem2MemConfig(**{name: value})


def test_what_is_shown_of_a_step():
    model, batch = tiny_model(), batch_of()
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    shown = model.attention_weights(batch.target_input, state)
    assert torch.equal(shown["units"], output.sentences) and torch.equal(shown["heads"], state.write_attention)
    for bias, probability in ((50.0, 1.0), (-50.0, 0.0)):
        with torch.no_grad():
            model.pointer.switch.bias.fill_(bias)
        generated = model.attention_weights(batch.target_input, model.encode(batch))["generate"]
        assert torch.allclose(generated, torch.full_like(generated, probability), atol=1e-6)
