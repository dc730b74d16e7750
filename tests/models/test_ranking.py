"""The paragraph ranker, its labels, and the graphs between paragraphs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from lib.data.batch import make_batch
from lib.data.tokenize import bigram_recall
from lib.data.vocabulary import EOS, TITLE_END
from lib.models.paragraph_ranker import ParagraphRanker, ParagraphRankerConfig
from lib.papers.hierarchical_transformer.graphs import (
    MARKERS,
    capitalised_names,
    discourse_graph,
    entity_finder,
    similarity_graph,
)
from tests.conftest import document

TITLES = [[4, 5], [6, 7, 8]]
PARAGRAPHS = [[4, 9, 10], [5], [6, 8, 11, 4, 5]]
OWNER = torch.tensor([0, 0, 1])


def padded(rows):
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    return ids, torch.arange(width) < torch.tensor([len(row) for row in rows])[:, None]


def tiny():
    torch.manual_seed(0)
    model = ParagraphRanker(ParagraphRankerConfig(12, embedding=4, hidden=3)).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.7)
    return model


def test_the_ranker_by_its_equations():
    model = tiny()
    logits = model.match(*padded(TITLES), *padded(PARAGRAPHS), OWNER)
    for logit, words, owner in zip(logits, PARAGRAPHS, OWNER.tolist()):
        u_t, _ = model.title(model.embedding(torch.tensor(TITLES[owner])))
        u_p, _ = model.paragraph(model.embedding(torch.tensor(words)))
        title = u_t.max(0).values
        p = [torch.tanh(model.combine(torch.cat([u, title]))) for u in u_p]
        s = torch.sigmoid(model.score(torch.stack(p).max(0).values))
        assert logit.sigmoid().item() == pytest.approx(s.item(), abs=1e-12)


def whole_cluster(title, paragraphs, labels):
    """A document as `ParagraphOptions` encodes it."""
    made = document([[*title, TITLE_END], *paragraphs], [EOS])
    return replace(made, labels=np.array(labels, dtype=np.float32))


def test_the_loss_is_cross_entropy_with_soft_labels():
    model, expected_labels = tiny(), [0.75, 0, 1]
    clusters = [
        whole_cluster([7, 8], [[9, 10, 11], [9, 7]], expected_labels[:2]),
        whole_cluster([8], [[10, 11, 8, 9, 10]], expected_labels[2:]),
    ]
    batch = make_batch(clusters, 12)
    labels, s = torch.tensor(expected_labels).double(), model.logits(batch).sigmoid()
    titles, paragraphs = (
        [[7, 8, TITLE_END], [8, TITLE_END]],
        [[9, 10, 11], [9, 7], [10, 11, 8, 9, 10]],
    )
    alone = model.match(*padded(titles), *padded(paragraphs), torch.tensor([0, 0, 1])).sigmoid()
    assert torch.allclose(s, alone, rtol=0, atol=1e-12)
    expected = -(labels * s.log() + (1 - labels) * (1 - s).log()).mean()
    assert model.loss(batch)["loss"].item() == pytest.approx(expected.item())


def test_labels():
    assert bigram_recall(["a", "b", "c"], ["a", "b", "c", "d"]) == pytest.approx(2 / 3)
    assert bigram_recall(["a", "b", "a", "b"], ["a", "b", "x", "a", "b"]) == pytest.approx(2 / 4)
    assert bigram_recall(["a", "b"], ["a"]) == 0


def test_similarity_by_hand():
    paragraphs = [["cat", "sat", "sat"], ["cat", "ran"], ["dog", "ran"], ["emu"]]
    graph = similarity_graph(paragraphs, threshold=0.0)
    one, two = np.log(4 / 1), np.log(4 / 2)  # words of one paragraph, of two
    a, b = np.array([two, 2 * one, 0]), np.array([two, 0, two])  # cat, sat, ran
    assert graph[0, 1] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert graph[0, 2] == graph[3, 0] == 0
    assert np.diag(graph).tolist() == [1] * 4
    assert np.array_equal(graph, graph.T)
    cut = similarity_graph(paragraphs)
    assert cut[0, 1] == 0 < graph[0, 1] < 0.2 < graph[1, 2] == cut[1, 2]


def test_discourse_by_hand():
    texts = [
        "We met Ada Lovelace in London.",
        "However, Ada Lovelace left. She is back.",
        "It rained in London. Then it did not.",
    ]
    assert len(MARKERS) == 36
    graph = discourse_graph(texts, [0] * 3, capitalised_names)
    assert graph[0, 1] == pytest.approx(0.2 + 1), "a shared name and a marker"
    assert graph[0, 2] == pytest.approx(0.2), "London, and no neighbours"
    assert graph[1, 2] == 1, "a marker, in the second sentence"
    again = discourse_graph([*texts[:2], texts[0]], [0] * 3, capitalised_names)
    assert again[1, 2] == pytest.approx(0.2), "of the later one alone"
    assert np.array_equal(graph, graph.T)
    apart = discourse_graph(texts, [0, 1, 1], capitalised_names)
    assert apart[0, 1] == pytest.approx(0.2), "other documents"


def test_names():
    text = "The University of Oxford is old. Oxford has Bodleian staff. He knows Mary Ann."
    assert capitalised_names(text) == {"The University of Oxford", "Bodleian", "Mary Ann"}
    assert entity_finder()[1] in ("capitalised names", "spaCy en_core_web_sm")
