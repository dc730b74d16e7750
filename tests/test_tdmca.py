"""T-DMCA: the whole sequence piece by piece, and its loss."""

import math

import pytest
import torch
from torch import nn

from lib.data.vocabulary import BOS, EOS
from lib.models.t_dmca import TDMCA, CompressedLayer, TDMCAConfig
from tests.conftest import VOCAB, batch_of, document, double, dropped_in_a_loss
from tests.test_hierarchical_transformer import heads_of, naive_position


@pytest.fixture(params=[(4, 3), (3, 2), (1, 1), (16, 5)], ids=str)
def model(request):
    block, stride = request.param
    config = TDMCAConfig(VOCAB, width=8, heads=2, inner=12, layers=4, block=block, stride=stride)
    return double(TDMCA, config, 0.4)


def test_what_is_dropped(monkeypatch):
    """Of sources and of summaries: embeddings, and in each of four layers the weights of attention, what attention
    gives, what is inside the feed-forward part, and what that gives."""
    model = TDMCA(TDMCAConfig(VOCAB, width=8, heads=2, inner=12, layers=4, block=4, stride=3, dropout=0.5))
    expected = {"dropout": 2, "layers.dropout": 4 * 2 * 3, "layers.feed_forward.dropout": 4 * 2}
    assert dropped_in_a_loss(model, batch_of(), monkeypatch) == expected


def naive_layer(layer, x):
    """One layer over the pieces of a whole sequence, with loops."""
    c, heads = layer.config, layer.config.heads
    y = [layer.norms[0](w) for w in x]
    q, k, v = ([f(w) for w in y] for f in (layer.query, layer.key, layer.value))
    result = []
    for t in range(len(x)):
        if isinstance(layer, CompressedLayer):
            groups = [range(g, g + c.stride) for g in range(0, len(x), c.stride) if g + c.stride - 1 < t]
            keys = [k[0], *(layer.compress_key(torch.cat([k[i] for i in group])) for group in groups)]
            values = [v[0], *(layer.compress_value(torch.cat([v[i] for i in group])) for group in groups)]
        else:
            places = range(t // c.block * c.block, t + 1)
            keys, values = [k[i] for i in places], [v[i] for i in places]
        found = []
        for z in range(heads):
            scores = [heads_of(q[t], heads)[z] @ heads_of(key, heads)[z] for key in keys]
            weights = (torch.stack(scores) / math.sqrt(c.width / heads)).softmax(0)
            found.append(sum(w * heads_of(value, heads)[z] for w, value in zip(weights, values)))
        h = x[t] + layer.output(torch.cat(found))
        result.append(h + layer.feed_forward(layer.norms[1](h)))
    return result


def naive(model, sequence):
    """log P of what follows each piece: [n, V]."""
    c = model.config
    x = [model.embedding.weight[w] * math.sqrt(c.width) + naive_position(t, c.width) for t, w in enumerate(sequence)]
    for layer in model.layers:
        x = naive_layer(layer, x)
    return torch.stack([model.embedding.weight @ model.norm(w) + model.bias for w in x]).log_softmax(-1)


SEQUENCES = [([4, 5, 9, 6, 7, 8, 10, 4], [5, 4, 9, 8, 7, EOS]), ([4], [5, EOS]), ([7, 8, 9, 4, 5], [6, 6, EOS])]
ITEMS = [document([source], target) for source, target in SEQUENCES]


def test_the_whole_sequence_piece_by_piece(model):
    batch = batch_of(*ITEMS)
    output, _ = model.decode(batch.target_input, model.encode(batch))
    ours = model.scores(output.features).log_softmax(-1)
    expected = [
        naive(model, [*source, BOS, *target[:-1]])[len(source) :] for source, target in SEQUENCES
    ]  # the predictions from [BOS] on
    for row, log_p in zip(ours, expected):
        assert torch.allclose(row[: len(log_p)], log_p, rtol=0, atol=1e-12)
    parameters = [p for p in model.parameters() if p.dim() == 2]
    weights = torch.randn_like(expected[0])
    ours, theirs = ((weights * x[: len(weights)]).sum() for x in (ours[0], expected[0]))
    for a, b in zip(*(torch.autograd.grad(x, parameters) for x in (ours, theirs))):
        assert torch.allclose(a, b, rtol=0, atol=1e-10)


def test_training_predicts_source_and_summary(model):
    model.train()
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    for layer in model.layers:
        object.__setattr__(layer.config, "dropout", 0.0)
    object.__setattr__(model.config, "smoothing", 0.0)
    losses = model.loss(batch_of(*ITEMS))
    loss = nll = 0.0
    for source, target in SEQUENCES:
        log_p = naive(model, [*source, BOS, *target[:-1]])
        before = [log_p[i, piece] for i, piece in enumerate(source[1:])]
        written = [log_p[len(source) + i, piece] for i, piece in enumerate(target)]
        loss -= sum(before + written) / len(before + written) / 3
        nll -= sum(written) / len(written) / 3
    assert losses["loss"].item() == pytest.approx(loss.item(), abs=1e-12)
    assert losses["nll"].item() == pytest.approx(nll.item(), abs=1e-12)
