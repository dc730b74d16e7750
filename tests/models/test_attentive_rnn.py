"""RAS and words-lvt2k: against their equations; a vocabulary of the batch."""

import pytest
import torch
from torch import nn

from lib.data.batch import in_vocabulary
from lib.data.vocabulary import BOS, EOS, PAD, UNK
from lib.models.headline_baselines import RAS, RASConfig, WordsLVT, WordsLVTConfig
from lib.models.summarizer import target_weights
from tests.conftest import RAGGED, VOCAB, batch_of, document, double, log_prob, same_gradients

LVT = {"source_vocab_size": 20, "embedding": 3, "hidden": 4}
MODELS = {
    "elman": (RAS, RASConfig(VOCAB, 20, 12, hidden=4)),
    "lstm": (RAS, RASConfig(VOCAB, 20, 12, hidden=4, filter_width=3, decoder="lstm")),
    "lvt": (WordsLVT, WordsLVTConfig(VOCAB, candidates=9, **LVT)),
    "lvt of all": (WordsLVT, WordsLVTConfig(VOCAB, candidates=50, **LVT)),
}


@pytest.fixture(params=list(MODELS))
def model(request):
    return double(*MODELS[request.param])


def known(word):
    return torch.tensor(word if word < VOCAB else UNK)


# ---------------------------------------------------------------------------------
# the equations, word by word


def naive_ras(model, item):
    """Equations 1 to 4."""
    d, q = model.config.hidden, model.config.filter_width
    x = [model.source_embedding(known(w)) for w in item.source]
    a = [x_i + model.position_embedding.weight[i] for i, x_i in enumerate(x)]
    z = []
    for i in range(len(x)):
        z_i = torch.zeros(d).double()
        for j in range(q):
            if 0 <= i + j - q // 2 < len(x):
                z_i = z_i + model.convolution.weight[:, :, j] @ a[i + j - q // 2]
        z.append(z_i)
    h = m = torch.zeros(d).double()
    w_y, w_c, w_h = model.cell.weight.split(d, 1)
    found = []
    for word, target in zip([BOS, *item.target[:-1]], item.target):
        alpha = torch.stack([z_i @ h for z_i in z]).softmax(0)
        c = sum(weight * x_i for weight, x_i in zip(alpha, x))
        gates = w_y @ model.target_embedding(known(word)) + w_h @ h + w_c @ c + model.cell.bias
        if model.config.decoder == "elman":
            h = gates.sigmoid()
        else:
            i, new, f, o = gates.split(d)
            m = m * f.sigmoid() + i.sigmoid() * new.tanh()
            h = m * o.sigmoid()
        w_4, w_5 = model.vocabulary.weight.split(d, 1)
        found.append((w_4 @ h + w_5 @ c + model.vocabulary.bias).log_softmax(0)[known(target)])
    return torch.stack(found)


def naive_candidates(count, *items):
    """The special symbols and the sources' words, and the most frequent others until there are
    `count`."""
    words = {0, 1, 2, 3}
    for item in items:
        words |= {int(w) for w in item.source if w < VOCAB}
    chosen = sorted(words)[:count]
    for word in range(VOCAB):
        if len(chosen) < count and word not in chosen:
            chosen.append(word)
    return sorted(chosen)


def naive_lvt(model, item, candidates):
    """torch's own recurrent layers; a softmax over the candidates alone."""
    d, e = model.config.hidden, model.config.embedding
    encoder = nn.GRU(e, d, batch_first=True, bidirectional=True).double()
    embedded = model.source_embedding(in_vocabulary(torch.tensor(item.source).long(), VOCAB))
    words, last = torch.func.functional_call(
        encoder, dict(model.encoder.named_parameters()), embedded[None]
    )
    words, s, a, found = words[0], torch.tanh(model.bridge(last.flatten())), model.attention, []
    for word, target in zip([BOS, *item.target[:-1]], item.target):
        beta = torch.stack([a.v(torch.tanh(a.query(s) + a.key(h_i)))[0] for h_i in words]).softmax(
            0
        )
        c = beta @ words
        s = model.decoder(torch.cat([model.target_embedding(known(word)), c])[None], s[None])[0]
        scores = [
            model.vocabulary.weight[w] @ torch.cat([s, c]) + model.vocabulary.bias[w]
            for w in candidates
        ]
        found.append(
            torch.stack(scores).log_softmax(0)[
                candidates.index(target if target in candidates else UNK)
            ]
        )
    return torch.stack(found)


def naive(model, item):
    if isinstance(model, RAS):
        return naive_ras(model, item)
    return naive_lvt(model, item, naive_candidates(model.config.candidates, item))


@pytest.mark.parametrize("item", RAGGED, ids=lambda d: d.id)
def test_the_equations_word_by_word(model, item):
    ours, expected = log_prob(model, item)[0], naive(model, item)
    assert torch.allclose(ours, expected, rtol=0, atol=1e-12)
    weights = torch.randn_like(expected)
    same_gradients(model, weights @ ours, weights @ expected)


# ---------------------------------------------------------------------------------
# the batch's vocabulary


def ordinary_loss(model, batch):
    """A softmax over the whole vocabulary, by the function that all other models use."""
    output, _ = model.decode(batch.target_input, model.encode(batch))
    log_p = model.words_of(output.features, batch.target).log_prob()
    return -(target_weights(batch, log_p.dtype) * log_p).sum()


@pytest.mark.parametrize("training", [True, False])
def test_with_all_words_as_candidates_it_is_the_ordinary_softmax(training):
    model = double(*MODELS["lvt of all"]).train(training)
    ours, expected = model.loss(batch_of())["loss"], ordinary_loss(model, batch_of())
    assert torch.allclose(ours, expected, rtol=0, atol=1e-12)
    same_gradients(model, ours, expected)


def test_in_training_the_candidates_are_those_of_the_batch():
    model, items = (
        double(*MODELS["lvt"]).train(),
        [RAGGED[1], document([[11, 5, 13], [5]], [11, 4, 9, 3])],
    )
    (candidates,) = model.encode(batch_of(*items)).candidates.tolist()
    assert candidates == naive_candidates(9, *items) == [PAD, UNK, BOS, EOS, 4, 5, 6, 7, 11]
    loss = model.loss(batch_of(*items))["loss"]
    expected = torch.stack([-naive_lvt(model, item, candidates).mean() for item in items]).mean()
    assert torch.allclose(loss, expected, rtol=0, atol=1e-12)
    same_gradients(model, loss, expected)
    slope = torch.autograd.grad(model.loss(batch_of(*items))["loss"], model.vocabulary.bias)[0]
    assert slope.nonzero().flatten().tolist() == candidates, "no other word's scores are learned"


def test_elsewhere_they_are_those_of_each_document():
    model = double(*MODELS["lvt"])
    found = model.encode(batch_of()).candidates.tolist()
    assert found == [naive_candidates(9, item) for item in RAGGED]
    assert found[1] == [PAD, UNK, BOS, EOS, 4, 5, 6, 7, 8] and found[2] == [
        PAD,
        UNK,
        BOS,
        EOS,
        4,
        5,
        6,
        7,
        9,
    ]
