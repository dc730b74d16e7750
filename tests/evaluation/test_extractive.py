import tracemalloc

import numpy as np
import pytest
import torch

from lib.data.documents import Document
from lib.data.tfidf import tfidf
from lib.data.vocabulary import Vocabulary
from lib.decoding.search import extract, source_sentences
from lib.evaluation.baselines import (
    baselines,
    by_centrality,
    lead,
    lexrank,
    oracle,
    random_sentences,
)
from lib.models.mem2mem import memory_sentences
from lib.system.errors import InputError
from tests.conftest import RAGGED, VOCAB, tiny_model

TEXT = [
    "cats eat fish", "the weather is fine today", "cats and dogs eat fish", "dogs eat fish and meat",
    "cats eat fish and meat",
]  # fmt: skip


def test_lead():
    assert lead(TEXT, 2) == TEXT[:2]
    assert lead(TEXT, 9) == TEXT


def test_random_sentences_are_seeded_and_in_order():
    chosen = random_sentences(TEXT, 3, np.random.default_rng(1))
    assert chosen == [s for s in TEXT if s in chosen]
    assert len(chosen) == 3
    assert chosen == random_sentences(TEXT, 3, np.random.default_rng(1))
    assert random_sentences(TEXT, 9, np.random.default_rng(1)) == TEXT


def test_lexrank_chooses_the_centre_and_keeps_order():
    text = ["aa x1 x2", "bb y1 y2", "aa bb cc dd", "cc z1 z2", "dd w1 w2"]  # a star
    assert lexrank(text, words=1) == ["aa bb cc dd"] and lexrank([], words=1) == []
    assert lexrank(text, words=5) == ["aa x1 x2", "aa bb cc dd"]
    assert lexrank(text, words=99) == text
    assert lexrank(["only one"], words=50) == ["only one"]
    assert lexrank(["--", "...", "a b"], words=1), "sentences without words"


def long_text(count: int) -> list[str]:
    """Sentences of rare words and of words that nearly all have; one without words, one
    repeated."""
    random = np.random.default_rng(0)
    words = [f"w{i}" for i in random.zipf(1.5, (count, 9)).clip(max=400).flat]
    text = [" ".join(words[i : i + 9]) for i in range(0, 9 * count, 9)]
    return [*text[: count // 2], "...", *text[count // 2 : -2], text[5]]


def dense_ranking(sentences: list[str], threshold: float | None) -> np.ndarray:
    """LexRank with all cosines in one matrix."""
    vectors = tfidf([s.replace("...", "").split() for s in sentences])
    edges = vectors @ vectors.T
    np.fill_diagonal(edges, 1)
    if threshold is not None:
        edges = (edges >= threshold).astype(float)
    rank = np.ones(len(sentences))
    for _ in range(100):
        rank = 0.15 + 0.85 * edges @ (rank / edges.sum(1))
    # Centralities that are equal differ by rounding errors; the iteration stops at 1e-6.
    return rank.round(6)


@pytest.mark.parametrize("threshold", [0.05, 0.1, 0.4, None])
def test_lexrank_in_blocks_equals_the_dense_computation(threshold, monkeypatch):
    text = long_text(400)
    exact = dense_ranking(text, threshold)
    whole = by_centrality(text, threshold)
    assert (np.diff(exact[whole]) <= 1e-5).all()
    assert sorted(whole) == list(range(len(text)))
    for pairs in (400 * 37, 1):
        monkeypatch.setattr("lib.evaluation.baselines.PAIRS_AT_ONCE", pairs)
        assert np.array_equal(by_centrality(text, threshold), whole)


@pytest.mark.parametrize("threshold", [0.1, None])
def test_equally_central_sentences_stay_in_order(threshold):
    """Those that share no word with another are equally central, up to rounding errors."""
    isolated = [" ".join(f"w{i}x{j}" for j in range(1 + i % 9)) for i in range(50)]
    star = ["aa x1 x2", "bb y1 y2", "aa bb cc dd", "cc z1 z2", "dd w1 w2"]
    ranked = by_centrality([*isolated, *star], threshold)
    assert ranked[ranked < 50].tolist() == list(range(50))


@pytest.mark.parametrize("threshold", [0.2, None])
def test_lexrank_stores_few_of_the_cosines(threshold, monkeypatch):
    """At most one byte a pair; most pairs have a cosine that is not 0, which takes eight."""
    text = long_text(2_000)
    monkeypatch.setattr("lib.evaluation.baselines.PAIRS_AT_ONCE", 2**15)
    by_centrality(text[:100], threshold)  # what is imported or compiled at the first call
    tracemalloc.start()
    by_centrality(text, threshold)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= len(text) ** 2


def test_lexrank_refuses_what_would_take_too_long(monkeypatch):
    text = ["Call me Ishmael.", *long_text(60)]
    monkeypatch.setattr("lib.evaluation.baselines.MAX_SENTENCES", 50)
    asked = r"begins 'Call me Ishmael\.' has 61 sentences; .* at most 50\. Split the text"
    with pytest.raises(InputError, match=asked):
        lexrank(text, words=10)
    assert lexrank(text, words=10, threshold=None), "its time grows in proportion to the text"
    assert lexrank(text[:50], words=10)
    monkeypatch.setattr("lib.evaluation.baselines.MAX_EDGES", 49)
    with pytest.raises(InputError, match=r"more than 49 pairs .* Remove repeated sentences"):
        lexrank(text[:50], words=10)


def test_a_bar_appears_when_lexrank_takes_long(monkeypatch, capsys):
    text = long_text(60)
    lexrank(text, words=10)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("lib.evaluation.baselines.PAIRS_AT_ONCE", 600)
    monkeypatch.setattr("lib.evaluation.baselines.BAR_DELAY", 1_000)
    lexrank(text, words=10)
    assert capsys.readouterr() == ("", ""), "before the delay"
    monkeypatch.setattr("lib.evaluation.baselines.BAR_DELAY", 0)
    lexrank(text, words=10)
    out, err = capsys.readouterr()
    assert not out and "LexRank" in err and "/6 " in err


def test_oracle_finds_the_summary():
    assert oracle(TEXT, ["Dogs eat fish and meat.", "The weather is fine today"]) == [
        TEXT[1],
        TEXT[3],
    ]


def test_baselines_count_the_corpus_words():
    """A document in other letters than the corpus's references are in is compared as the scores
    will be."""
    russian = [
        "Погода сегодня хорошая.",
        "Кошки едят рыбу.",
        "Собаки, кошки едят рыбу и мясо.",
        "Собаки едят мясо.",
    ]
    english = [
        "Nothing here.",
        "GRU and LSTM models read texts.",
        "Models read.",
        "LSTM models read long texts.",
    ]
    by_majority = {"ru": (russian, ["Кошки едят рыбу."]), "en": (english, ["LSTM models read."])}
    documents = {
        name: Document(name, "", [""], [text], summary)
        for name, (text, summary) in by_majority.items()
    }
    for name, others in (("ru", []), ("ru", ["en"]), ("en", [])):
        found = baselines(
            [documents[name], *(documents[other] for other in others)],
            [["one two three four five"]],
        )
        assert found["oracle"][0] == oracle(*by_majority[name], all_letters=name == "ru") != []
        assert found["lexrank"][0] == lexrank(by_majority[name][0], 5, all_letters=name == "ru")
    torn = documents["ru"], *[documents["en"]] * 30
    assert baselines(torn, [["a b"]])["oracle"][0] == [], (
        "among thirty in English it is scored 0, by ASCII"
    )
    assert baselines(torn, [["a b c d e"]])["lexrank"][0] == lexrank(russian, 5, all_letters=False)


def test_memory_sentences():
    attention = torch.zeros(2, 3, 4)
    for b, row in enumerate([(3, 0, 3), (1, 1, 1)]):
        for head, sentence in enumerate(row):
            attention[b, head, sentence] = 1
    assert memory_sentences(attention) == [[0, 3], [1]]


def test_extraction_is_made_of_source_sentences():
    vocabulary = Vocabulary([f"w{i}" for i in range(VOCAB - 4)])
    model = tiny_model()
    summaries = extract(model, RAGGED, vocabulary, batch_size=2)
    for item, summary in zip(RAGGED, summaries):
        sentences = source_sentences(item, vocabulary)
        assert summary
        assert [s for s in sentences if s in summary] == summary
    assert source_sentences(RAGGED[0], vocabulary)[0] == "w0 w1 unknown0 w2"
