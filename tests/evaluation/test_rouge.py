from dataclasses import replace

import numpy as np
import pytest
from rouge_score.rouge_scorer import RougeScorer

from lib.data.corpus import load_corpus
from lib.data.documents import Document
from lib.evaluation.baselines import lead
from lib.evaluation.measures import METRICS
from lib.evaluation.rouge import limited_recall, longest_common_recall, rouge, rouge_in_one_line
from lib.evaluation.scores import score_systems
from lib.papers.mem2mem.sections import CohanOptions


def test_rouge_by_hand():
    scores = rouge([["the cat sat"]], [["the cat ran away"]])[0]
    assert scores[0] == pytest.approx(100 * 2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))
    assert scores[1] == pytest.approx(100 * 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))


def test_r_l_is_the_summary_level_one():
    """Two sentences in the other order: each is found whole, which a longest subsequence of the
    whole text is not."""
    assert list(METRICS) == ["R-1", "R-2", "R-Lsum"]
    assert rouge([["a b c", "x y z"]], [["x y z", "a b c"]])[0, 2] == pytest.approx(100)
    assert rouge([["a b c x y z"]], [["x y z a b c"]])[0, 2] == pytest.approx(50)


def test_r_l_of_one_line_is_rouge_scores_own():
    """Sentence-level, as Liu and Lapata's code has it: a sentence in another place is not found
    whole."""
    summaries = [["The cats sat down.", "Dogs ran away."], [], ["Two words"], ["!"]]
    references = [["Dogs ran.", "A cat sat."], ["Nothing is written"], ["Words, two"], ["?"]]
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    expected = [
        scorer.score(" ".join(r), " ".join(s))["rougeL"].fmeasure
        for s, r in zip(summaries, references)
    ]
    assert rouge_in_one_line(summaries, references).tolist() == pytest.approx(
        [100 * x for x in expected]
    )
    assert rouge_in_one_line(
        *[[["a b c", "x y z"]], [["x y z", "a b c"]]]
    ).tolist() == pytest.approx([50])


def test_case_stems_and_empty_summaries():
    assert rouge([["Cats RUNNING"]], [["cat runs"]])[0, 0] == pytest.approx(100)
    assert rouge([[]], [["a"]])[0].tolist() == [0, 0, 0]


def test_texts_in_other_letters_are_scored():
    """rouge-score itself finds no word in them."""
    scores = rouge(
        [["Кошки любят молоко."], ["猫喜欢奶"]], [["Кошки не любят рыбу."], ["猫喜欢鱼"]]
    )
    assert scores[0].tolist() == pytest.approx([100 * 4 / 7, 0, 100 * 4 / 7])
    assert scores[1].tolist() == pytest.approx([75, 100 * 2 / 3, 75])


@pytest.mark.parametrize(
    "added", ["see https://example.org/a/longer/link", "GRU LSTM and BERT", ""]
)
def test_words_are_chosen_for_the_corpus(added):
    """Not for each text: a Russian sentence and itself with a link had no word in common."""
    sentence = "Река замёрзла рано."
    scores = rouge([[f"{sentence} {added}"]], [[sentence]])
    words = 3 + len(added.replace("/", " ").replace(".", " ").replace(":", " ").split())
    assert scores[0, 0] == pytest.approx(100 * 2 * 3 / (3 + words))
    assert limited_recall([[f"{sentence} {added}"]], [[[sentence]]])[0].tolist() == [100, 100, 100]
    assert longest_common_recall([f"{added} {sentence}"], [[sentence]]).tolist() == [100]


def test_sentences_are_not_words_cut_at_line_ends():
    """A sentence that ends in a hyphen is no beginning of the next."""
    assert (
        rouge([["it ends in pre-", "fix it"]], [["it ends in pre", "fix it"]])[0].tolist()
        == [pytest.approx(100)] * 3
    )


def test_stems_are_rouge_scores_own():
    documents = list(load_corpus("pmc-sample").split("test", 3))
    references = [d.summary for d in documents]
    scorer = RougeScorer(list(METRICS.values()), use_stemmer=True)
    for summaries in (
        [lead(d.sentences, 5) for d in documents],
        [d.sentences[5:12] for d in documents],
    ):
        scores = [scorer.score("\n".join(r), "\n".join(s)) for s, r in zip(summaries, references)]
        assert rouge(summaries, references).tolist() == [
            [100 * s[m].fmeasure for m in METRICS.values()] for s in scores
        ]


def test_words_are_counted_without_marks():
    """However marks are written: alone, as models write them, or behind a word."""
    systems, text = (
        {"apart": [["a b , c ."]], "together": [["a b, c."]]},
        Document("a", "", [""], [["a b"]], ["a b"]),
    )
    scored = score_systems(systems, [text], CohanOptions())
    assert [scored[name]["words"] for name in systems] == [3, 3]


def test_longest_common_recall_is_rouge_l():
    random = np.random.default_rng(0)
    words = [
        "the",
        "cat",
        "sat",
        "on",
        "a",
        "mat",
        "and",
        "dogs",
        "were",
        "running",
        "quickly",
        "home",
    ]
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    texts = [" ".join(random.choice(words, n)) for n in (3, 30, 80)]
    references = [[" ".join(random.choice(words, n)), "Cats ran home."] for n in (5, 12, 40)]
    expected = [
        scorer.score("\n".join(r), t)["rougeL"].recall * 100 for t, r in zip(texts, references)
    ]
    assert longest_common_recall(texts, references) == pytest.approx(expected)
    assert longest_common_recall(["", "b a"], [["a"], ["a b"]]).tolist() == [0, 50]


@pytest.mark.parametrize("score", [rouge, rouge_in_one_line, limited_recall, longest_common_recall])
def test_every_summary_needs_a_reference(score):
    for numbers in ((2, 1), (1, 2)):
        with pytest.raises(ValueError, match="zip"):
            score(["a"] * numbers[0], [["a"]] * numbers[1])


def test_copies_are_looked_for_in_the_whole_document():
    """Also behind what a model reads of it; marks and capitals as the options have them."""
    text = Document(
        "a",
        "",
        [""],
        [["One two three four five six seven.", "Don't say Eight nine ten, eleven twelve."]],
        [],
    )
    options = CohanOptions(sections=1, section_tokens=3)
    summary = ["say eight nine ten , eleven twelve .", "something else"]
    found = score_systems({"x": [summary]}, [replace(text, summary=["One."])], options)["x"]
    assert found["copied"]["5"] == [(4, 6)] and found["words"] == 8, "marks are no words"
    found = score_systems(
        {"x": [["Don't go, he said."]]}, [replace(text, summary=["One."])], options
    )["x"]
    assert found["words"] == 4, "as printed"
