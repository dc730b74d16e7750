"""The hierarchical transformer that copies: word by word, and its limiting cases."""

import math

import pytest
import torch

from lib.data.vocabulary import BOS, EOS
from lib.models.hierarchical_transformer import (
    CopyingTransformer,
    CopyingTransformerConfig,
    HierarchicalTransformer,
    HierarchicalTransformerConfig,
)
from tests.conftest import VOCAB, batch_of, document, double, same_gradients

SIZES = {"width": 8, "heads": 2, "inner": 12, "local_layers": 1, "global_layers": 1}
PARAGRAPHS = [[4, 5, 9, 6], [7, 8], [9, 4, 10]]
SOURCE = [word for paragraph in PARAGRAPHS for word in paragraph]


@pytest.fixture
def model():
    return double(CopyingTransformer, CopyingTransformerConfig(VOCAB, **SIZES), 0.4)


def naive_probabilities(model, features, words, ids):
    """(K1), (K2) and the mixture, for one position."""
    scores = [
        features @ (model.copy_attention.key.weight @ h) / math.sqrt(len(features)) for h in words
    ]
    gamma = torch.stack(scores).softmax(0)
    context = sum(g * h for g, h in zip(gamma, words))
    z = torch.sigmoid(
        model.switch.weight[0] @ torch.cat([features, context]) + model.switch.bias[0]
    )
    p = z * (model.embedding.weight @ features + model.bias).softmax(0)
    for g, word in zip(gamma, ids):
        p = p.index_add(0, torch.tensor([word]), ((1 - z) * g)[None])
    return p


def test_word_by_word(model):
    target = [5, 4, 9, EOS]
    batch = batch_of(document(PARAGRAPHS, target))
    state = model.encode(batch)
    features = HierarchicalTransformer.decode(model, batch.target_input, state)[0].features[0]
    rows = [naive_probabilities(model, f, state.words[0], SOURCE) for f in features]
    expected = -sum(p[word].log() for p, word in zip(rows, target)) / len(target)
    losses = model.loss(batch)
    assert torch.allclose(losses["nll"], expected, rtol=0, atol=1e-12)
    same_gradients(model, losses["loss"], expected)
    output, _ = model.decode(torch.tensor([[BOS]]), state)
    assert torch.allclose(model.distribution(output, state, 0)[0], rows[0], rtol=0, atol=1e-12)
    seen = model.attention_weights(batch.target_input, state)
    assert torch.equal(seen["words"], model.decode(batch.target_input, state)[0].copy)
    assert (
        torch.allclose(seen["units"].sum(-1), seen["words"].sum(-1)) and seen["units"].shape[2] > 1
    )
    assert seen["generate"].shape == (1, len(target))


def test_what_always_generates_is_the_model_without_copying(model):
    """A switch at 1, and the parameters of the other."""
    plain = HierarchicalTransformer(HierarchicalTransformerConfig(VOCAB, **SIZES)).double().eval()
    missing = plain.load_state_dict(model.state_dict(), strict=False)
    assert missing.missing_keys == [] and missing.unexpected_keys == [
        "copy_attention.key.weight", "switch.weight", "switch.bias",
    ]  # fmt: skip
    with torch.no_grad():
        model.switch.weight.zero_()
        model.switch.bias.fill_(1e3)
    batch = batch_of(document(PARAGRAPHS, [5, 4, 9, EOS]))
    assert torch.allclose(model.loss(batch)["nll"], plain.loss(batch)["nll"], rtol=0, atol=1e-12)
