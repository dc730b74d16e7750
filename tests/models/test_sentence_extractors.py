"""Sent-CLF and Sent-PTR: against their equations, in a beam, and what they learn from."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from lib.data.batch import rows_of
from lib.data.documents import CorpusError, Document
from lib.data.pieces import Pieces
from lib.data.prepared import TextEncoder
from lib.data.vocabulary import EOS, SENTENCE_END
from lib.evaluation.baselines import matches
from lib.models.sentence_extractors import (
    SentenceClassifier,
    SentenceExtractorConfig,
    SentencePointer,
)
from lib.papers.mem2mem.extracts import ExtractOptions
from tests.conftest import VOCAB, batch_of, double, same_gradients
from tests.models.test_models import labelled

SIZES = {
    "vocab_size": VOCAB,
    "embedding": 5,
    "hidden": 6,
    "layers": 2,
    "dropout": 0.0,
    "longest": 4,
}


ITEMS = [
    labelled([[4, 5, 6], [7, 8], [9, 4, 10, 5, 7, 11], [6], [8, 8]], [EOS], [1, 2, 4], "a"),
    labelled([[5, 11]], [EOS], [0], "b"),
    labelled([[9, 10, 11, 4, 5, 6, 7], [4], [6, 9]], [EOS], [2], "c"),
]


def classifier(**changes):
    return double(SentenceClassifier, SentenceExtractorConfig(**{**SIZES, **changes}), 0.6)


def pointer(**changes):
    return double(SentencePointer, SentenceExtractorConfig(**{**SIZES, **changes}), 0.6)


# ---------------------------------------------------------------------------------
# the equations


def through(stack, x):
    """Layers of an LSTM over one sequence [n, e]: its states, and the last ones of each layer,
    forward first."""
    last = []
    for layer in stack.layers:
        states, (hidden, cell) = layer(x[None])
        x = states[0]
        last.append((hidden.flatten(), cell.flatten()))
    return x, last


def naive_encoder(encoder, item):
    embedded = []
    for words in rows_of(item):
        _, last = through(
            encoder.words, encoder.embedding(torch.tensor(words[: encoder.longest]).long())
        )
        embedded.append(last[-1][0])  # (1)
    states, last = through(encoder.sentences, torch.stack(embedded))  # (2)
    return embedded, states, last


def naive_classifier(model, item):
    _, states, _ = naive_encoder(model.encoder, item)
    document_state = torch.tanh(
        model.document.weight @ (sum(states) / len(states)) + model.document.bias
    )
    logits = [model.output(torch.cat([d, document_state]))[0] for d in states]  # (3)
    found = [F.logsigmoid(o if right else -o) for o, right in zip(logits, item.labels)]
    return -sum(found) / len(found)


def naive_pointer(model, item, chosen):
    """log P of the chosen sentences and of the end."""
    embedded, states, last = naive_encoder(model.encoder, item)
    hidden, previous, attentive = last, torch.zeros(6).double(), torch.zeros(6).double()
    found = []
    for number in [*chosen, chosen[-1]]:
        x, after = torch.cat([previous, attentive]), []
        for cell, (h, c) in zip(model.cells, hidden):
            gates = cell.weight_ih @ x + cell.bias_ih + cell.weight_hh @ h + cell.bias_hh
            i, f, g, o = gates.chunk(4)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            x = o.sigmoid() * c.tanh()
            after.append((x, c))
        weights = torch.stack([d @ x for d in states]).softmax(0)  # (4)
        context = sum(w * d for w, d in zip(weights, states))
        attentive = torch.tanh(model.combine.weight @ torch.cat([context, x]))  # (5)
        found.append(weights[number].log())
        hidden, previous = after, embedded[number]
    return torch.stack(found)


def test_the_classifier_by_its_equations():
    model = classifier()
    expected = torch.stack([naive_classifier(model, item) for item in ITEMS]).mean()
    ours = model.loss(batch_of(*ITEMS))["loss"]
    assert torch.allclose(ours, expected, rtol=0, atol=1e-12)
    same_gradients(model, ours, expected, 1e-11)


def test_the_pointer_by_its_equations():
    model = pointer()
    right = [np.flatnonzero(item.labels).tolist() for item in ITEMS]
    naive = [naive_pointer(model, item, chosen) for item, chosen in zip(ITEMS, right)]
    ours = model.log_prob(batch_of(*ITEMS), right)
    for row, expected in zip(ours, naive):
        assert torch.allclose(row[: len(expected)], expected, rtol=0, atol=1e-12)
        assert not row[len(expected) :].any(), "nothing behind the end"
    loss = -torch.stack([found.mean() for found in naive]).mean()
    ours = model.loss(batch_of(*ITEMS))["loss"]
    assert torch.allclose(ours, loss, rtol=0, atol=1e-12)
    same_gradients(model, ours, loss, 1e-11)


# ---------------------------------------------------------------------------------
# extraction


def test_the_classifier_chooses_the_most_probable_sentences():
    model = classifier(summary_sentences=2)
    logits = model.logits(batch_of(*ITEMS))
    best = [
        np.sort(np.argsort(-row[: len(i.labels)].detach().numpy())[:2])
        for row, i in zip(logits, ITEMS)
    ]
    assert model.choose(batch_of(*ITEMS)) == [row.tolist() for row in best]
    assert [len(row) for row in model.choose(batch_of(*ITEMS))] == [2, 1, 2]
    assert classifier(summary_sentences=9).choose(batch_of(*ITEMS)) == [
        [0, 1, 2, 3, 4],
        [0],
        [0, 1, 2],
    ], "as they stand"


@pytest.mark.parametrize("seed", range(2))
@torch.no_grad()
def test_the_pointer_finds_the_most_probable_extract(seed):
    """With a beam that holds everything: of all orders of all subsets. Its scores are those of the
    whole sequence."""
    model = pointer(beam=1000)
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.8)
    # 64 orders; five have 325
    four = labelled([[4, 5, 6], [7, 8], [9, 4, 10, 5, 7, 11], [6]], [EOS], [1, 2], "a")
    items = [four, *ITEMS[1:]]
    for item, found in zip(items, model.search(batch_of(*items))):
        n = len(item.labels)
        every = [list(p) for length in range(1, n + 1) for p in permutations(range(n), length)]
        scores = [naive_pointer(model, item, chosen).mean().item() for chosen in every]
        assert found[0][1] == every[int(np.argmax(scores))]
        assert found[0][0] == pytest.approx(max(scores), abs=1e-12)
        ours = {tuple(chosen): score for score, chosen in found}
        assert all(
            ours.get(tuple(c), s) == pytest.approx(s, abs=1e-12) for c, s in zip(every, scores)
        )
        assert [score for score, _ in found] == sorted((score for score, _ in found), reverse=True)


# ---------------------------------------------------------------------------------
# what they learn

SENTENCES = [
    "Cats eat fish .", "The weather is fine .", "Some cats eat fish at sea .", "Dogs run .", "Fish is fine .",
]  # fmt: skip


def test_labels_are_the_two_best_matches_of_each_sentence():
    assert matches(SENTENCES, ["Cats eat fish"]) == [0, 2]
    assert matches(SENTENCES, ["Cats eat fish"], each=1) == [0]
    assert matches(SENTENCES, ["cats eat", "dogs run far"]) == [0, 2, 3], (
        "where one alone shares words, it is one"
    )
    assert matches(SENTENCES, ["nothing shared"]) == [0], "something has to be right"
    assert matches(SENTENCES, ["unheard", "dogs"]) == [3]


@pytest.fixture(scope="module")
def pieces():
    return Pieces.train([s.lower() for s in SENTENCES] * 20, 60, kind="bpe")


def paper_of(*sections, names=(), summary=("Cats eat fish.", "It is fine.")):
    return Document(
        "p", "", [*names, *[""] * (len(sections) - len(names))], list(sections), list(summary)
    )


def test_sentences_in_pieces(pieces):
    options = ExtractOptions(sentences=3, summary_tokens=100)
    whole = paper_of(SENTENCES[:2], SENTENCES[2:])
    made = options.encode_training(whole, pieces)
    assert [pieces.text(row) for row in rows_of(made)] == [s.lower() for s in SENTENCES[:3]]
    assert np.flatnonzero(made.labels).tolist() == matches(SENTENCES[:3], whole.summary)
    assert (made.target == SENTENCE_END).sum() == 1 and made.target[-1] == EOS
    assert pieces.sentences(made.target.tolist())[0].startswith("cats eat fish")
    assert len(replace(options, summary_tokens=4).encode_training(whole, pieces).target) == 4
    cased = replace(options, lower=False).encode_training(whole, pieces)
    assert not np.array_equal(cased.source, made.source)


def test_texts_without_summaries(pieces):
    options = ExtractOptions(sentences=3)
    (found,) = TextEncoder(options, pieces).encode([paper_of(SENTENCES, summary=())])
    assert found.target.tolist() == [EOS] and found.labels is None
    with pytest.raises(CorpusError, match="'p' has no summary"):
        options.encode_training(paper_of(SENTENCES, summary=()), pieces)
