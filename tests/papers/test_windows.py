"""Windows of a text, word vectors, and where a reference summary moves on."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.data.corpora import load_corpus
from lib.data.documents import CorpusError, Document
from lib.data.options import beginnings
from lib.data.prepared import PreparedCorpus, TextEncoder
from lib.data.split import Split
from lib.data.vocabulary import EOS, SLIDE, SPECIALS, Vocabulary
from lib.models.windowed import count_windows, window_of
from lib.papers import PAPERS, resolve
from lib.papers.hierarchical_transformer.ranking import ClusterOptions
from lib.papers.windowed.windows import (
    ArticleOptions,
    learn_vectors,
    link,
    mark_transitions,
    read_vectors,
    similarities,
    target_sentences,
)
from lib.system.errors import InputError
from tests.conftest import document

OPTIONS = ArticleOptions(source_tokens=20, summary_tokens=12, vocab_size=30, window=6, stride=4)


@pytest.mark.parametrize(
    ("words", "window", "step", "count"),
    [
        (1160, 400, 380, 3),
        (740, 200, 180, 4),
        (780, 400, 380, 2),
        (400, 400, 380, 1),
        (401, 400, 380, 2),
        (1, 4, 4, 1),
        (8, 4, 4, 2),
        (9, 4, 4, 3),
    ],
)
def test_number_of_windows(words, window, step, count):
    """The first three are the author's; every word is in one, and the last one is needed."""
    assert count_windows(words, window, step) == count
    assert (count - 1) * step + window >= words
    assert count == 1 or (count - 2) * step + window < words
    assert count_windows(np.array([words, 1]), window, step).tolist() == [count, 1]


def test_window_of_a_sentence():
    sizes = 20, 6, 4  # windows 0-6, 4-10, 8-14, 12-18, 16-22
    assert window_of(0, 3, *sizes) == 0
    assert window_of(4, 6, *sizes) == 0, "in two windows: the first"
    assert window_of(5, 9, *sizes) == 1
    assert window_of(3, 9, *sizes) == 1, "one word outside, not three"
    assert window_of(18, 20, *sizes) == 4
    assert window_of(0, 20, *sizes) == 0, "14 words outside every one"


def test_similarities_by_hand():
    vectors = np.array([[0, 0]] * 5 + [[3.0, 0], [0, 4.0], [1.0, 1.0]])  # words 5, 6, 7
    # a word beyond the vectors counts for nothing
    summary = np.array([5, 6, 6, 9]), np.array([2, 2])
    source = np.array([5, 7, 6, 8]), np.array([1, 2, 1])
    a, b = np.array([3.0, 4.0]), np.array([0, 4.0])
    found = similarities(summary, source, vectors)
    sums = [np.array([3.0, 0]), np.array([1.0, 5.0])]
    for row, x in zip(found, (a, b)):
        for value, y in zip(row, sums):
            assert value == pytest.approx(x @ y / np.linalg.norm(x) / np.linalg.norm(y))
    assert found[:, 2].tolist() == [0, 0], "no word is known"


def test_links_never_go_back():
    """Sentences of one known word each: the best source sentence is the one with that word."""
    item = document([[5] * 4, [6] * 4, [7] * 4, [8] * 4, [9] * 4], [7, 7, 5, 9, EOS])
    vectors = np.eye(12)
    lengths = np.array([2, 1, 1])
    assert link(item, lengths, vectors, OPTIONS).tolist() == [2, 2, 4]
    # the middle sentence gives up its link, or the last two do: one wrong link is better than two
    item = document([[5] * 4, [6] * 4, [7] * 4, [8] * 4, [9] * 4], [5, 9, 6, 7, EOS])
    lengths = np.array([1, 1, 1, 1])
    assert link(item, lengths, vectors, OPTIONS).tolist() == [0, 4, 4, 4]
    windows = link(item, lengths, vectors, replace(OPTIONS, links="best path"))
    assert windows[[0, 2, 3]].tolist() == [0, 1, 2] and windows[1] in (0, 1)


def test_marks():
    item = document([[5, 6]], [7, 7, 5, 9, EOS])
    for windows, target in {
        (0, 0, 0): [7, 7, 5, 9, EOS],
        (0, 1, 1): [7, 7, SLIDE, 5, 9, EOS],
        (1, 1, 3): [SLIDE, 7, 7, 5, SLIDE, SLIDE, 9, EOS],
    }.items():
        assert mark_transitions(item, np.array([2, 1, 1]), windows).target.tolist() == target


def example(summary: list[str]):
    text = ["The cat sat on the mat.", "A dog ran.", "It rained all day.", "The sun came out."]
    return Document("x", "", [""], [text], summary)


def test_sentences_of_a_target_that_was_cut():
    vocabulary = Vocabulary(["[SLIDE]", "the", "cat", "sat", ".", "it", "rained"])
    for summary, tokens, lengths in (
        (["The cat sat.", "It rained."], 12, [4, 3]),
        (["The cat sat.", "It rained."], 6, [4, 2]),
        (["The cat sat.", "It rained."], 4, [4]),
        (["The cat sat.", "?", "It rained."], 12, [4, 1, 3]),
    ):
        options = replace(OPTIONS, summary_tokens=tokens)
        encoded = TextEncoder(options, vocabulary).encode_example(options.example(example(summary)))
        assert target_sentences(encoded, lower=True).tolist() == lengths


def test_learned_vectors_tell_what_goes_together():
    random = np.random.default_rng(0)
    topics = [np.arange(5, 15), np.arange(15, 25)]
    documents = [
        document([random.choice(topics[i % 2], 12).tolist()], [5, EOS]) for i in range(200)
    ]
    vectors = learn_vectors(Split.of(documents), 25, width=8)
    assert vectors.shape == (25, 8)
    assert not vectors[:5].any()
    unit = vectors[5:] / np.linalg.norm(vectors[5:], axis=1, keepdims=True)
    cosines = unit @ unit.T
    assert cosines[:10, :10].mean() > 0.8
    assert abs(cosines[:10, 10:].mean()) < 0.2
    assert np.array_equal(vectors, learn_vectors(Split.of(documents), 25, width=8)), (
        "the same every time"
    )


def test_vectors_from_a_file(tmp_path):
    vocabulary, path = Vocabulary(["[SLIDE]", "cat", "dog"]), tmp_path / "x.vec"
    path.write_text("3 2\ncat 1 2\nmouse 5 6\ndog 3 4 \n", encoding="utf-8")
    assert read_vectors(path, vocabulary)[5:].tolist() == [[1, 2], [3, 4]]
    assert read_vectors(path, vocabulary, limit=2)[5:].tolist() == [[1, 2], [0, 0]]
    path.write_text("cat 1 2\ndog 3\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"x.vec, line 2: not a word and 2 numbers"):
        read_vectors(path, vocabulary)
    path.write_text("mouse 1 2\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="no vector for any of the 7 words"):
        read_vectors(path, vocabulary)


def test_a_corpus_with_marks(tmp_path):
    """Marks change the targets and nothing else; the result is kept."""
    options = ArticleOptions(
        source_tokens=300, summary_tokens=60, vocab_size=500, window=100, stride=80
    )
    corpus = load_corpus("aclsum")
    marked = options.prepare(corpus, 20, progress=False)
    plain = replace(options, window=None, stride=None).prepare(corpus, 20, progress=False)
    assert marked.vocabulary.words == plain.vocabulary.words
    assert marked.vocabulary.words[len(SPECIALS)] == "[SLIDE]"
    moved = 0
    for split in ("train", "val", "test"):
        for i in range(20):
            a, b = marked[split][i], plain[split][i]
            assert a.source.tolist() == b.source.tolist()
            assert a.target[a.target != SLIDE].tolist() == b.target.tolist()
            slides = int((a.target == SLIDE).sum())
            assert slides < count_windows(len(a.source), 100, 80)
            moved += slides
    assert moved > 30
    again = options.prepare(corpus, 20, progress=False)
    assert again.fingerprint == marked.fingerprint
    assert PreparedCorpus.load(again.save(tmp_path / "kept"), ArticleOptions).options == options
    with pytest.raises(ValueError, match="prepared with marks True, not False"):
        resolve("windowed", "demo", "static").build(marked)


def test_presets_are_the_rows_of_the_table():
    rows = {
        "CD_I": (400, 100, None, None), "CD_II": (1160, 100, 400, 380), "WIKI_I": (200, 125, None, None),
        "WIKI_II": (740, 125, 200, 180), "WIKI_III": (400, 125, None, None), "WIKI_IV": (780, 125, 400, 380),
        "WIKI_V": (780, 125, None, None),
    }  # fmt: skip
    for name, (source, summary, window, step) in rows.items():
        chosen = resolve("windowed", name)
        assert (chosen.options.source_tokens, chosen.options.summary_tokens) == (source, summary)
        assert (chosen.options.window, chosen.options.stride) == (window, step)
        config = chosen.model_config()
        assert (config.window, config.stride) == (window, step)
        assert chosen.variant == ("dynamic" if window else "standard")
    presets = PAPERS["windowed"].presets
    assert presets["paper"] == presets["CD_II"]
    train = presets["CD_II"].train
    # the author's peak
    assert max(train.rate(s) for s in range(1, 10_000)) == pytest.approx(1.21e-3, rel=5e-3)
    assert train.rate(1) < train.rate(4000) > train.rate(8000)
    static = resolve("windowed", "CD_II", "static").options
    assert static.window == 400 and not static.marked and presets["CD_II"].options.marked
    with pytest.raises(ValueError, match="preset has no window: choose the variant 'standard'"):
        resolve("windowed", "CD_I", "dynamic")


def test_beginnings_of_sections():
    """Whole sentences of each section until there are so many words; of a text without an end,
    all."""
    sections = [["a b c.", "d e f.", "g h."], ["i j k l m.", "n."]]
    document = Document("d", "", ["one", "two"], sections, ["a b."])
    assert beginnings(document, 4) == [[0, 1], [3]] and beginnings(document, 3) == [[0], [3]]
    assert beginnings(document, None) == [[0, 1, 2], [3, 4]]
    read = ArticleOptions(source_tokens=None, section_words=4).example(document).words
    assert read == ["a", "b", "c", ".", "d", "e", "f", ".", "i", "j", "k", "l", "m", "."]
    assert ArticleOptions(source_tokens=9, section_words=4).example(document).words == read[:9]
    cluster = ClusterOptions(paragraph_words=3, section_words=4).example(document)
    assert cluster.paragraphs == ["a b c.", "d e f.", "i j k l m."] and cluster.sources == [
        "one",
        "one",
        "two",
    ]
    with pytest.raises(ValueError, match=r"section_words: .*greater than or equal to 1"):
        ArticleOptions(section_words=0)


def test_embeddings_can_start_from_the_files_vectors(tmp_path):
    """At length 1, as the author's; words without a vector stay random, and so do all if nothing is
    asked for."""
    path = tmp_path / "x.vec"
    path.write_text("the 3 4 0\nof 0 0 5\n", encoding="utf-8")
    given = {"vectors": str(path), "vocab_size": 50}
    setup = resolve("windowed", "demo", "standard", {**given, "start_from_vectors": True})
    setup = replace(setup, config={**setup.config, "embedding": 3}, documents=20)
    corpus = setup.prepare(load_corpus("aclsum"), progress=False)
    the, of, other = (corpus.vocabulary.words.index(word) for word in ("the", "of", "we"))
    rows = setup.build(corpus).embedding.weight
    assert torch.allclose(rows[[the, of]], torch.tensor([[0.6, 0.8, 0], [0, 0, 1.0]]))
    plain = replace(setup, options=replace(setup.options, start_from_vectors=False))
    random = plain.build(plain.prepare(load_corpus("aclsum"), progress=False)).embedding.weight
    assert torch.equal(rows[other], random[other]) and not torch.allclose(rows[the], random[the])
    wider = replace(setup, config={**setup.config, "embedding": 4})
    with pytest.raises(InputError, match="word vectors of 3 numbers, embeddings of 4"):
        wider.build(corpus)
