"""The models that Mem2Mem is compared with: against their equations, and as presets."""

import pytest
import torch

from lib.data.batch import in_vocabulary
from lib.data.corpora import load_corpus
from lib.data.vocabulary import UNK
from lib.models.discourse_aware import DiscourseAware
from lib.models.seq2seq import RecurrentConfig, Seq2Seq, Seq2SeqConfig
from lib.papers.mem2mem.sections import CohanOptions
from tests.conftest import RAGGED, VOCAB, double, log_prob, same_gradients

SIZES = {"vocab_size": VOCAB, "embedding": 5, "hidden": 6, "bottleneck": 4}
MODELS = {
    "attn-seq2seq": (Seq2Seq, Seq2SeqConfig(**SIZES, copy=False)),
    "ptr-gen-seq2seq": (Seq2Seq, Seq2SeqConfig(**SIZES)),
    "discourse-aware": (DiscourseAware, RecurrentConfig(**SIZES)),
}


@pytest.fixture(params=list(MODELS))
def model(request):
    return double(*MODELS[request.param], 0.4)


# ---------------------------------------------------------------------------------
# the equations, word by word


def mixture(model, features, z, weights, source, target):
    """log P of one word, as a sum over the vocabulary and the words of the source."""
    p = z * model.pointer.vocabulary(features).softmax(-1)
    generated = p[target] if target < VOCAB else 0.0
    return torch.log(generated + (1 - z) * sum(w for w, x in zip(weights, source) if x == target))


def naive_seq2seq(model, item):
    words = torch.tensor(item.source).long()
    h, last = model.encoder(model.embedding(in_vocabulary(words, VOCAB))[None])
    h, state = h[0], model.bridge(last.flatten())
    a, coverage, found = model.word_attention, torch.zeros(len(words)).double(), []
    for word, target in zip([2, *item.target[:-1]], item.target.tolist()):
        x = model.embedding(torch.tensor(word if word < VOCAB else UNK))
        state = model.decoder(x[None, None], state[None, None])[1].flatten()
        hidden = [a.key(h_i) + a.query(state) for h_i in h]
        if model.config.copy:
            scores = [a.v @ torch.tanh(s + a.coverage * c) for s, c in zip(hidden, coverage)]
        else:
            scores = [a.v(torch.tanh(s))[0] for s in hidden]
        alpha = torch.stack(scores).softmax(0)
        coverage, context = coverage + alpha, alpha @ h
        features = model.pointer.bottleneck(torch.cat([state, context]))
        if model.config.copy:
            z = model.pointer.switch(torch.cat([context, state, x])).sigmoid()[0]
            found.append(mixture(model, features, z, alpha, item.source, target))
        else:
            found.append(
                model.pointer.vocabulary(features).log_softmax(-1)[
                    target if target < VOCAB else UNK
                ]
            )
    return torch.stack(found)


def naive_discourse_aware(model, item):
    """Equations 1 to 7 of docs/papers/mem2mem.md; a direction of the word encoder begins where it
    ended before."""
    sections = torch.tensor(item.source).long().split(item.sentence_lengths.tolist())
    carried, states, vectors = None, [], []
    for words in sections:
        h, carried = model.word_encoder(model.embedding(in_vocabulary(words, VOCAB))[None], carried)
        states.append(h[0])
        # (1), (2)
        vectors.append(torch.relu(model.reduce_section(torch.cat([h[0, -1, :3], h[0, 0, 3:]]))))
    h_s, (hidden, cell) = model.section_encoder(torch.stack(vectors)[None])  # (3)
    s, c = (
        torch.relu(f(x.flatten()))
        for f, x in ((model.bridge_hidden, hidden), (model.bridge_cell, cell))
    )
    h, owner = torch.cat(states), [j for j, words in enumerate(sections) for _ in words]
    context, coverage, found = torch.zeros(6).double(), torch.zeros(len(h)).double(), []
    for word, target in zip([2, *item.target[:-1]], item.target.tolist()):
        embedded = model.embedding(torch.tensor(word if word < VOCAB else UNK))
        x = model.input(torch.cat([embedded, context]))
        s, c = (state[0] for state in model.cell(x[None], (s[None], c[None])))
        query = torch.cat([c, s])
        beta = [
            model.section_v(torch.tanh(model.section_key(g) + model.section_query(query)))
            for g in h_s[0]
        ]
        beta = torch.cat(beta).softmax(0)  # (4)
        scores = []
        for h_i, seen in zip(h, coverage):
            inside = (
                model.word_key(h_i)
                + model.word_query(query)
                + model.word_coverage.weight[:, 0] * seen
            )
            scores.append(model.word_v(torch.tanh(inside))[0])  # (5)
        alpha = torch.stack([beta[j] * e for j, e in zip(owner, scores)]).softmax(0)  # (6)
        context, coverage = alpha @ h, coverage + alpha
        features = model.pointer.bottleneck(torch.cat([s, context]))  # (7)
        z = model.pointer.switch(torch.cat([context, c, s, x])).sigmoid()[0]
        found.append(mixture(model, features, z, alpha, item.source, target))
    return torch.stack(found)


@pytest.mark.parametrize("item", RAGGED, ids=lambda d: d.id)
def test_the_equations_word_by_word(model, item):
    naive = naive_seq2seq if isinstance(model, Seq2Seq) else naive_discourse_aware
    ours, expected = log_prob(model, item)[0], naive(model, item)
    assert torch.allclose(ours, expected, rtol=0, atol=1e-12)
    same_gradients(model, ours.sum(), expected.sum())


# ---------------------------------------------------------------------------------
# as presets


def test_sections_are_units():
    paper = next(load_corpus("aclsum").split("val", 1))
    options = (CohanOptions(section_tokens=30, unit=unit) for unit in ("sentence", "section"))
    by_sentence, by_section = (o.example(paper) for o in options)
    assert [w for s in by_section.sentences for w in s] == [
        w for s in by_sentence.sentences for w in s
    ]
    assert len(by_section.sentences) == 4 < len(by_sentence.sentences)
