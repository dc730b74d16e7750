import numpy as np
import torch

from lib.data.documents import Document
from lib.data.vocabulary import Vocabulary
from lib.decoding.search import extract, source_sentences
from lib.evaluation.baselines import baselines, lead, lexrank, oracle, random_sentences
from lib.models.mem2mem import memory_sentences
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


def test_oracle_finds_the_summary():
    assert oracle(TEXT, ["Dogs eat fish and meat.", "The weather is fine today"]) == [TEXT[1], TEXT[3]]


def test_baselines_count_the_corpus_words():
    """A document in other letters than the corpus's references are in is compared as the scores will be."""
    russian = ["Погода сегодня хорошая.", "Кошки едят рыбу.", "Собаки, кошки едят рыбу и мясо.", "Собаки едят мясо."]
    english = ["Nothing here.", "GRU and LSTM models read texts.", "Models read.", "LSTM models read long texts."]
    by_majority = {"ru": (russian, ["Кошки едят рыбу."]), "en": (english, ["LSTM models read."])}
    documents = {name: Document(name, "", [""], [text], summary) for name, (text, summary) in by_majority.items()}
    for name, others in (("ru", []), ("ru", ["en"]), ("en", [])):
        found = baselines([documents[name], *(documents[other] for other in others)], [["one two three four five"]])
        assert found["oracle"][0] == oracle(*by_majority[name], all_letters=name == "ru") != []
        assert found["lexrank"][0] == lexrank(by_majority[name][0], 5, all_letters=name == "ru")
    torn = documents["ru"], *[documents["en"]] * 30
    assert baselines(torn, [["a b"]])["oracle"][0] == [], "among thirty in English it is scored 0, by ASCII"
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
