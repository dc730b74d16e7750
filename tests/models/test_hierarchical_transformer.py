"""The hierarchical transformer: both readings word by word, and its limiting cases."""

import math

import pytest
import torch
from torch import nn

from lib.data.vocabulary import BOS, EOS
from lib.layers.dropout import Dropout
from lib.models.hierarchical_transformer import (
    HierarchicalTransformer,
    HierarchicalTransformerConfig,
)
from tests.conftest import RAGGED, VOCAB, batch_of, document, double, leaves

SIZES = {
    "width": 8,
    "heads": 2,
    "inner": 12,
    "local_layers": 2,
    "global_layers": 2,
    "decoder_layers": 2,
}
READINGS = ("code", "paper")


def tiny(**changes) -> HierarchicalTransformer:
    return double(
        HierarchicalTransformer, HierarchicalTransformerConfig(VOCAB, **{**SIZES, **changes}), 0.4
    )


@pytest.fixture(params=READINGS)
def model(request):
    return tiny(form=request.param)


# ---------------------------------------------------------------------------------
# word by word, with loops


def heads_of(vector, heads):
    return vector.view(heads, -1)


def attention_of(q, keys, values, heads):
    """Scaled dot-product attention of one vector over lists of vectors, head by head."""
    found = []
    for z in range(heads):
        q_z, k, v = (
            heads_of(q, heads)[z],
            [heads_of(y, heads)[z] for y in keys],
            [heads_of(y, heads)[z] for y in values],
        )
        weights = torch.stack([q_z @ k_i for k_i in k]).div(math.sqrt(len(q_z))).softmax(0)
        found.append(sum(w * v_i for w, v_i in zip(weights, v)))
    return torch.cat(found)


def naive_attention(attention, x, keys):
    """Multi-head attention of one vector over a list of vectors."""
    k, v = ([f(y) for y in keys] for f in (attention.key, attention.value))
    return attention.output(attention_of(attention.query(x), k, v, attention.heads))


def naive_local(layer, words, form):
    """Equations 11 and 12, or the code's order."""
    if form == "paper":
        h = [layer.attention_norm(x + naive_attention(layer.attention, x, words)) for x in words]
        return [layer.feed_forward_norm(x + layer.feed_forward(x)) for x in h]
    normed = [layer.attention_norm(x) for x in words]
    h = [x + naive_attention(layer.attention, y, normed) for x, y in zip(words, normed)]
    return [x + layer.feed_forward(layer.feed_forward_norm(x)) for x in h]


def naive_global(layer, paragraphs, form, graph=None):
    """Equations 13 to 24, or the code's."""
    code, size = form == "code", layer.value.out_features // layer.heads
    context = [[] for _ in paragraphs]
    for z in range(layer.heads):
        heads = []
        for words in paragraphs:
            x = [layer.norms[0](w) if code else w for w in words]
            weights = torch.stack([layer.score(w)[z] for w in x]).softmax(0)
            pooled = sum(a * heads_of(layer.value(w), layer.heads)[z] for a, w in zip(weights, x))
            heads.append(
                layer.pool_norm(pooled)
                if code
                else layer.pool_norms[z](layer.pool_output[z] @ pooled)
            )
        if code:
            q, k, v = ([linear(h) for h in heads] for linear in layer.between)
        else:
            q, k, v = ([weight[z] @ h for h in heads] for weight in layer.between_weights)
        for i in range(len(heads)):
            scores = torch.stack([q[i] @ k_j for k_j in k])
            weights = (scores / math.sqrt(size) if code else scores).softmax(0)
            if graph is not None and z == 0:
                weights = graph[i] / graph[i].sum()
            context[i].append(sum(w * v_j for w, v_j in zip(weights, v)))
    result = []
    for words, parts in zip(paragraphs, context):
        c = layer.output(torch.cat(parts))
        if code:
            result.append([w + c + layer.feed_forward(layer.norms[1](w + c)) for w in words])
        else:
            result.append([layer.norms[0](layer.feed_forward(w + c) + w) for w in words])
    return result


def naive_position(p, width):
    angles = [p / 10000 ** (2 * i / width) for i in range(width // 2)]
    return torch.tensor([f(a) for a in angles for f in (math.sin, math.cos)], dtype=torch.float64)


def naive_encoder(model, paragraphs, graph=None):
    c = model.config
    half, code = c.width // 2, c.form == "code"
    made = []
    for i, ids in enumerate(paragraphs):
        words = []
        for j, word in enumerate(ids):
            halves = [naive_position(i, half), naive_position(j, half)]
            position = torch.cat(halves[::-1] if code else halves)
            words.append(
                model.embedding.weight[word] * (math.sqrt(c.width) if code else 1) + position
            )
        made.append(words)
    for layer in model.local_layers:
        made = [naive_local(layer, words, c.form) for words in made]
    for layer in model.global_layers:
        made = naive_global(layer, made, c.form, graph)
    return [model.encoder_norm(w) if code else w for words in made for w in words]


def naive_decoder(model, ids, source):
    c = model.config
    code = c.form == "code"
    scale = math.sqrt(c.width) if code else 1
    x = [
        model.embedding.weight[word] * scale + naive_position(t, c.width)
        for t, word in enumerate(ids)
    ]
    for layer in model.decoder_layers:
        one, two, three = layer.norms
        if code:
            y = [one(w) for w in x]
            x = [
                w + naive_attention(layer.self_attention, y[t], y[: t + 1]) for t, w in enumerate(x)
            ]
            x = [w + naive_attention(layer.source_attention, two(w), source) for w in x]
            x = [w + layer.feed_forward(three(w)) for w in x]
        else:
            x = [
                one(w + naive_attention(layer.self_attention, w, x[: t + 1]))
                for t, w in enumerate(x)
            ]
            x = [two(w + naive_attention(layer.source_attention, w, source)) for w in x]
            x = [three(w + layer.feed_forward(w)) for w in x]
    if code:
        x = [model.decoder_norm(w) for w in x]
    return torch.stack([model.embedding.weight @ w + model.bias for w in x]).log_softmax(-1)


def test_the_paper_drops_before_all_linear_layers_and_nowhere_else(monkeypatch):
    """Dropout that doubles in place of dropping, in training, is a model whose linear maps are
    twice as large."""
    monkeypatch.setattr(
        Dropout, "forward", lambda self, x: 2 * x if self.training and self.p else x
    )
    dropped, doubled = (tiny(form="paper", dropout=0.5) for _ in range(2))
    maps = [m.weight for m in doubled.modules() if isinstance(m, nn.Linear)]
    maps += [
        weight
        for layer in doubled.global_layers
        for weight in (layer.pool_output, layer.between_weights)
    ]
    assert len(maps) == 2 * (4 + 2) + 2 * (3 + 2 + 2) + 2 * (4 + 4 + 2)
    with torch.no_grad():
        for weight in maps:
            weight *= 2
    batch = batch_of()
    dropped.train()
    (ours, _), (expected, _) = (
        m.decode(batch.target_input, m.encode(batch)) for m in (dropped, doubled)
    )
    assert torch.allclose(ours.features, 2 * expected.features, rtol=0, atol=1e-12), (
        "before the scores, too"
    )


PARAGRAPHS = [[4, 5, 9, 6], [7, 8], [9, 4, 10]]


@pytest.mark.parametrize("with_graph", [False, True])
def test_both_readings_word_by_word(model, with_graph):
    item = document(PARAGRAPHS, [5, 4, 9, EOS])
    graph = (
        torch.tensor([[1.0, 0.5, 0], [0.5, 1, 0.3], [0, 0.3, 1]]).double() if with_graph else None
    )
    source = naive_encoder(model, PARAGRAPHS, graph)
    expected = naive_decoder(model, [BOS, 5, 4, 9], source)
    batch = batch_of(item)
    output, _ = model.decode(
        batch.target_input, model.encode(batch, graph[None] if with_graph else None)
    )
    ours = nn.functional.linear(output.features[0], *model.output_layer()).log_softmax(-1)
    assert torch.allclose(ours, expected, rtol=0, atol=1e-12)
    parameters = [p for p in model.parameters() if p.dim() == 2]
    weights = torch.randn_like(ours)
    for a, b in zip(
        *(torch.autograd.grad((weights * x).sum(), parameters) for x in (ours, expected))
    ):
        assert torch.allclose(a, b, rtol=0, atol=1e-10)


# ---------------------------------------------------------------------------------
# limiting cases


def test_a_graph_of_ones_is_uniform_attention(model):
    """Query and key weights at 0 make every head uniform; a graph of ones does so for the first."""
    with torch.no_grad():
        for layer in model.global_layers:
            if model.config.form == "code":
                for part in (layer.between[0].weight, layer.between[0].bias):
                    part.zero_()
            else:
                layer.between_weights[0].zero_()
    batch = batch_of()
    graph = torch.ones(3, 3, 3).double()
    plain, graphed = model.encode(batch), model.encode(batch, graph)
    for name in vars(plain).keys() - {"hypotheses"}:
        pairs = list(zip(leaves(getattr(plain, name)), leaves(getattr(graphed, name)), strict=True))
        assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in pairs), name


def test_without_paragraph_positions_their_order_does_not_matter():
    for positions in (True, False):
        model = tiny(paragraph_positions=positions)
        losses = [
            model.loss(batch_of(document(p, [5, EOS])))["loss"]
            for p in (PARAGRAPHS, PARAGRAPHS[::-1])
        ]
        assert torch.allclose(*losses, rtol=0, atol=1e-12) == (not positions)


def test_smoothed_labels():
    """Nine tenths on the right piece, a tenth over all but it and [PAD]; in training alone."""
    model, batch = tiny(dropout=0.0), batch_of(RAGGED[0])
    exact = model.loss(batch)
    assert exact["loss"] == exact["nll"]
    model.train()
    output, _ = model.decode(batch.target_input, model.encode(batch))
    log_p = nn.functional.linear(output.features[0], *model.output_layer()).log_softmax(-1)
    expected = 0.0
    for t, right in enumerate(batch.target[0].where(batch.target[0] < VOCAB, 1).tolist()):
        labels = torch.full((VOCAB,), 0.1 / (VOCAB - 2)).double()
        labels[0], labels[right] = 0, 0.9
        expected -= (labels * log_p[t]).sum() / 5
    losses = model.loss(batch)
    assert losses["loss"].item() == pytest.approx(expected.item())
    assert losses["nll"].item() == pytest.approx(exact["nll"].item())
