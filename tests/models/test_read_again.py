"""Read-Again and ABS: against torch's own cells, and where copying alone can help."""

from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from lib.data.vocabulary import BOS, UNK
from lib.layers.attentive_lstm import attentive_lstm
from lib.layers.dropout import Dropout
from lib.models.headline_baselines import ABS, ABSConfig
from lib.models.read_again import ENCODERS, ReadAgain, ReadAgainConfig
from tests.conftest import (
    RAGGED,
    VOCAB,
    batch_of,
    document,
    double,
    same_gradients,
    without_kernels,
)

SIZES = {"source_vocab_size": 20, "embedding": 5, "hidden": 4, "dropout": 0.0, "sentences": 3}


def tiny(**changes):
    return double(ReadAgain, ReadAgainConfig(VOCAB, **{**SIZES, **changes}))


@pytest.mark.parametrize("encoder", ["option 1", "option 2"])
def test_sentences_are_read_on_their_own_first(encoder):
    """Equations 9 to 11, sentence by sentence."""
    model = tiny(encoder=encoder, sentences=2)
    words = [[4, 5, 7], [8, 6]]
    states = model.encode(batch_of(document(words, [4, 3]))).words[0]
    embedded = [model.source_embedding(torch.tensor(w)) for w in words]
    first = [model.first_read(x)[0] for x in embedded]
    texts = [h[-1] for h in first]
    for i, (x, h) in enumerate(zip(embedded, first)):
        if encoder == "option 1":
            shared = torch.cat(texts)
        else:
            shared = torch.cat([texts[i], torch.tanh(model.global_text(torch.cat(texts)))])
        again, _ = model.second_read(torch.cat([x, h, shared.expand(len(x), -1)], 1))
        assert torch.allclose(again, states[3 * i : 3 * i + len(x)], rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="3 sentences in a text, where the model takes 2 at most"):
        model.encode(batch_of(document([*words, [5]], [4, 3])))


def test_an_unknown_word_is_embedded_by_its_first_place():
    """Equation 15: 12 stands at places 0 and 2; 14 nowhere, so it is [UNK]."""
    model = tiny()
    state = model.encode(batch_of(document([[12, 5, 12, 13]], [4, 3])))
    source = state.source
    words = model._embed(torch.tensor([[12, 13, 14, 5]]), source, state)[0]
    p = state.embedded[0]
    expected = torch.stack(
        [p[0], p[3], model.target_embedding.weight[UNK], model.target_embedding.weight[5]]
    )
    assert torch.equal(words, expected)


def test_abs_by_the_equations():
    """Rush et al.: the last words, the attention, the smoothed source, word by word."""
    model = double(
        ABS, ABSConfig(VOCAB, source_vocab_size=20, embedding=3, hidden=4, context=3, smoothing=1)
    )
    batch = batch_of(RAGGED[0])
    output, _ = model.decode(batch.target_input, model.encode(batch))
    read = [BOS, BOS, *(word if word < VOCAB else UNK for word in batch.target_input[0].tolist())]
    x = model.source_embedding(batch.source[0])
    smoothed = torch.stack([x[max(0, i - 1) : i + 2].mean(0) for i in range(len(x))])
    scores, attention = [], []
    for t in range(len(read) - 2):
        context = torch.tensor(read[t : t + 3])
        h = torch.tanh(model.hidden(model.target_embedding(context).flatten()))
        attention.append(torch.softmax(x @ model.attention(model.attending(context).flatten()), 0))
        scores.append(model.vocabulary(h) + model.from_encoder(attention[-1] @ smoothed))
    ours, expected = (
        nn.functional.linear(output.features, *model.output_layer())[0],
        torch.stack(scores),
    )
    assert torch.allclose(ours, expected, rtol=0, atol=1e-12)
    assert torch.allclose(output.attention[0], torch.stack(attention), rtol=0, atol=1e-12)
    weights = torch.randn_like(expected)
    same_gradients(model, (weights * ours).sum(), (weights * expected).sum())


@pytest.mark.parametrize("encoder", ENCODERS)
def test_weights_start_as_the_paper_has_it(encoder):
    """Of the recurrent layers it is the sum of PyTorch's two biases that is 0.1: what a gate starts
    with."""
    model = ReadAgain(
        ReadAgainConfig(50, source_vocab_size=60, embedding=8, hidden=12, encoder=encoder)
    )
    parameters = dict(model.named_parameters())
    for name, parameter in parameters.items():
        if "bias_hh" in name:
            assert torch.equal(
                parameter + parameters[name.replace("_hh", "_ih")], torch.full_like(parameter, 0.1)
            )
        elif "bias" in name:
            assert (parameter == 0.1).all(), name
        else:
            assert 0.3 < parameter.abs().max() <= 0.5, name  # sqrt(3 / 12)
    assert sum("bias_hh" in name for name in parameters) == (2 if encoder in ("gru", "lstm") else 3)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_dropout_is_on_all_that_enters_and_leaves_a_recurrent_layer(encoder, monkeypatch):
    """Dropout that doubles in place of dropping, in training, is a model whose weights on such
    inputs are doubled."""
    monkeypatch.setattr(Dropout, "forward", lambda self, x: 2 * x if self.training else x)
    dropped, doubled = tiny(encoder=encoder, dropout=0.5).train(), tiny(encoder=encoder)
    with torch.no_grad():
        reads = [
            doubled.first_read,
            *([doubled.second_read] if hasattr(doubled, "second_read") else []),
        ]
        for read in (getattr(read, "gru", read) for read in reads):
            read.weight_ih_l0 *= 2  # words; what the first read gave; texts
        doubled.decoder.weight_ih *= 2  # words and context
        from_reads = [
            doubled.bridge,
            doubled.word,
            doubled.attention.key,
            doubled.vocabulary,
            doubled.copy_query,
        ]
        if encoder == "read-again gru":
            from_reads += [
                doubled.importance_word,
                doubled.importance_text,
                doubled.importance_input,
            ]
        if encoder == "option 2":
            from_reads += [doubled.global_text]
            # the tanh of dropped texts
            doubled.second_read.weight_ih_l0[:, -doubled.config.hidden :] /= 2
        for layer in from_reads:
            layer.weight *= 2
    ours, expected = (model.loss(batch_of())["loss"].item() for model in (dropped, doubled))
    assert ours == pytest.approx(expected, abs=1e-12)


def test_a_single_importance_by_the_equations():
    """(4) and (5) with one alpha for a word, in loops."""
    model, item = tiny(encoder="read-again gru", single_importance=True), RAGGED[2]
    assert [
        getattr(model, f"importance_{x}").weight.shape[0] for x in ("word", "text", "input")
    ] == [1, 1, 1]
    state = model.encode(batch_of(item))
    x = model.source_embedding(torch.tensor(item.source, dtype=torch.long))
    first, h = [], torch.zeros(4).double()
    for word in x:
        h = cell_of(model.first_read, word, h)
        first.append(h)
    second, h = [], torch.zeros(4).double()
    for word, read in zip(x, first):
        alpha = model.importance_word.weight[0] @ read + model.importance_word.bias[0]
        alpha += (
            model.importance_text.weight[0] @ first[-1] + model.importance_input.weight[0] @ word
        )
        h = (1 - torch.tanh(alpha)) * h + torch.tanh(alpha) * cell_of(
            model.second_read.gru, word, h
        )
        second.append(h)
    second = torch.stack(second)
    assert torch.allclose(state.words[0], second, rtol=0, atol=1e-12)
    assert state.importance.shape == (1, len(item.source), 1)


def cell_of(gru, x, h):
    """A step of PyTorch's GRU."""
    xr, xz, xn = (gru.weight_ih_l0 @ x + gru.bias_ih_l0).chunk(3)
    hr, hz, hn = (gru.weight_hh_l0 @ h + gru.bias_hh_l0).chunk(3)
    z = torch.sigmoid(xz + hz)
    return (1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + z * h


def test_what_is_generated_is_the_vocabularys_share_of_the_softmax():
    """(16), (17): one softmax over words and places."""
    model, batch = tiny(), batch_of()
    state = model.encode(batch)
    output, _ = model.decode(batch.target_input, state)
    words = model.generate(output.features)
    both = torch.cat([words, output.copy], -1).softmax(-1)
    generated = model.attention_weights(batch.target_input, state)["generate"]
    assert torch.allclose(generated, both[..., : words.shape[-1]].sum(-1))
    assert (generated - 0.5).abs().max() > 0.1, (
        "where its opposite would be as good, nothing is seen"
    )


def naive_attentive_lstm(words, start, keys, values, mask, attention, lstm):
    """Equations 12 to 14, word by word, with PyTorch's cell. Shapes are those of
    `attentive_lstm`."""
    hidden, cell = start
    states, weights = [], []
    for word in words.unbind(1):
        queries = (hidden @ attention.query.weight.T).unflatten(0, (len(keys), -1))  # [B, K, A]
        # [B, K, N]
        scores = torch.tanh(queries[:, :, None] + keys[:, None]) @ attention.v.weight[0]
        beta = scores.masked_fill(~mask[:, None], -torch.inf).softmax(-1)
        context = (beta @ values).flatten(0, 1)
        hidden, cell = lstm(torch.cat([word, context], -1), (hidden, cell))
        states.append(hidden)
        weights.append(beta.flatten(0, 1))
    return torch.stack(states, 1), cell, torch.stack(weights, 1)


def decoded(monkeypatch, scan, hypotheses, steps):
    """What `decode` returns, and the gradients of every parameter. One document has one word;
    dropout is on."""
    monkeypatch.setattr("lib.models.read_again.attentive_lstm", scan)
    model = tiny(dropout=0.4).train()
    torch.manual_seed(1)
    state = model.encode(batch_of(*RAGGED, document([[4]], [5, 3])))
    state = state.reorder(torch.arange(len(state.words)).repeat_interleave(hypotheses))
    tokens = torch.randint(4, VOCAB, (len(state.hidden), steps))
    output, after = model.decode(tokens, state)
    results = (
        output.features,
        output.copy.clamp_min(-100),
        output.attention,
        after.hidden,
        after.cell,
    )
    sum((torch.randn(x.shape).double() * x).sum() for x in results).backward()
    return results, {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("hypotheses", [1, 3])
@pytest.mark.parametrize("steps", [1, 7])
@pytest.mark.parametrize("kernels", [True, False])
def test_the_attentive_scan_is_the_loop(hypotheses, steps, kernels, monkeypatch):
    with nullcontext() if kernels else without_kernels():
        expected, gradients = decoded(monkeypatch, naive_attentive_lstm, hypotheses, steps)
        rows, _, words = expected[2].shape
        monkeypatch.setattr(
            "lib.layers.attentive_lstm.TANH_NUMBERS", 3 * rows * words * SIZES["hidden"]
        )
        results, found = decoded(monkeypatch, attentive_lstm, hypotheses, steps)
    for ours, theirs in zip(results, expected):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)
    for name, gradient in gradients.items():
        if gradient is None:
            assert found[name] is None, name
        else:
            assert torch.allclose(found[name], gradient, rtol=0, atol=1e-12), name


class Launches(TorchDispatchMode):
    """Count operations that are a kernel on a GPU."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += not func.is_view and not func.__name__.startswith(
            ("empty", "new_empty", "detach")
        )
        return func(*args, **(kwargs or {}))


def test_launches_of_a_target_word():
    """A GPU waits for the host to launch its kernels; by autograd they were 69, forward and
    backward."""
    model, counts = tiny(), []
    state = model.encode(batch_of())
    for steps in (10, 20):
        words = torch.randn(len(state.words), steps, SIZES["embedding"]).double().requires_grad_()
        with without_kernels(), Launches() as launches:
            states, _, beta = attentive_lstm(
                words,
                (state.hidden, state.cell),
                state.keys,
                state.words,
                state.mask,
                model.attention,
                model.decoder,
            )
            torch.autograd.grad(states.sum() + beta[..., 0].sum(), words)
        counts.append(launches.count)
    assert counts[1] - counts[0] <= 10 * 23
