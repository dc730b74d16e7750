"""What a model read of a text: how many words, of which sections, and as the text writes them."""

import re

import pytest

import lib
from lib.data.batch import rows_of
from lib.data.corpora import load_corpus
from lib.data.documents import Document
from lib.data.options import words_of
from lib.decoding.reading import reading_of, surfaces
from lib.system.files import trained_folder

DOCUMENT = Document(
    "d", "On Reading", ["Introduction", "", "Methods"],
    [["We read DNA.", "It is long.", "We read on."], ["It is long."], ["Mice read (well).", "So do we."]], [],
)  # fmt: skip


def words(sentence):
    return [f" {word}" for word in words_of(sentence, lower=True)]


def rows(*sentences):
    return [[f" {word}" if word != "|" else "" for word in sentence.split()] for sentence in sentences]


def read(*sentences, **how):
    return reading_of(DOCUMENT, rows(*sentences), words, **how)


def test_all_of_it():
    found = read(
        "we read dna .", "it is long .", "we read on .", "it is long .", "mice read ( well ) .", "so do we ."
    )
    assert str(found) == "read all of 18 words (Introduction, Methods)" and found.unread == []
    assert found.rows[0] == ["We", " read", " DNA", "."] and "".join(found.rows[4]) == "Mice read (well)."


def test_sections_that_were_cut():
    """The first five words of two sections: a sentence that comes twice is the one that follows."""
    found = read("we read dna .", "it", "it is long .", "mice read ( well")
    assert str(found) == "read 10 of 18 words (Introduction, Methods)"
    assert found.unread == [("Introduction", "is long. We read on."), ("Methods", "). So do we.")]


def test_rows_of_several_sentences_and_in_any_order():
    found = read("mice read ( well ) . so do we .", "it is long . we read on .")
    assert (found.words, found.sections) == (12, ["Introduction", "Methods"])
    assert ["".join(row) for row in found.rows] == ["Mice read (well). So do we.", "It is long. We read on."]
    flat = read("so do we . | it is lo | we read dna .")
    assert flat.words == 6 and len(flat.rows[0]) == 13, "what is nowhere in the text stays as it is"
    assert read("so do we . | it is | we read dna .").words == 8


def test_the_title_is_no_word_of_the_text():
    found = read("on reading |", "so do we .", with_title=True)
    assert found.rows[0] == ["On", " Reading", ""] and str(found) == "read 3 of 18 words (Methods)"


def test_many_sections():
    names = [f"S{i}" for i in range(9)]
    document = Document("d", "", names, [["We read."]] * 9, [])
    found = reading_of(document, rows(*["we read ."] * 8), words)
    assert str(found) == "read 16 of 18 words (S0, S1, S2, S3, S4, S5 and 2 more)"
    assert found.sections == names[:8]


@pytest.mark.parametrize(
    ("text", "tokens", "written"),
    [
        ("A  b\u00a0C.", ["a", "b", "c", "."], ["A", " b", " C", "."]),
        ("e\u0301 co\u00adop co\u00adop", ["é", "coop", "coop"], ["e\u0301", " co\u00adop", " co\u00adop"]),
        ("the ﬁnal İzmir", ["the", "final", "i̇zmir"], ["the", " ﬁnal", " İzmir"]),
        ("in 1987 1988, 3.5", ["in", "####", "####", ",", "#.#"], ["in", " 1987", " 1988", ",", " 3.5"]),
        ("a ☃☃ b", [" a", "[UNK]", " b"], ["a", " ☃☃", " b"]),
        ("a ☃", [" a", "[UNK]"], ["a", " ☃"]),
        ("a ☃☃ b", [" a", "[UNK]", " ", "b"], ["a", " ☃☃", "", " b"]),
        ("MS ½ ﬁn", [" ms", " 1", "⁄", "2", " f", "in"], ["MS", " ½", "", "", " ﬁ", "n"]),
        ("a\u200eb", ["a", "[UNK]", "b"], ["a\u200e", "", "b"]),
        ("a b", ["a", "zzz", "b"], ["a", "zzz", " b"]),
        ("a b", [" ", "", "a"], ["", "", "a"]),
        ("", ["x"], ["x"]),
        ("x", [], []),
    ],
)
def test_as_the_text_writes_it(text, tokens, written):
    assert surfaces(text, tokens) == written


RUNS = ("mem2mem", "windowed", "read_again", "hierarchical_transformer", "hierarchical_transformer_copying")


@pytest.mark.parametrize("name", RUNS)
def test_what_the_trained_runs_read(name):
    """Of a paper: what each run's options say, counted without them; and all words are read or left."""
    run = lib.load(trained_folder(name), device="cpu")
    (paper,) = load_corpus("pmc-sample").split("test", 1)
    (encoded,) = run.encode([paper])
    found = run.reading(paper, encoded)
    assert found.all_words == sum(len(s.split()) for s in paper.sentences) > 3_000
    words_read = {
        "mem2mem": 3 * 250, "windowed": 1540, "read_again": 100, "hierarchical_transformer": 22 * 70,
        "hierarchical_transformer_copying": 22 * 70,
    }[name]  # fmt: skip
    assert 0.5 * words_read < found.words <= words_read
    names = paper.section_names
    expected = {"mem2mem": [*names[:2], names[-1]], "read_again": names[:1]}.get(name, names[: len(found.sections)])
    assert found.sections == expected
    left = sum(len(text.split()) for _, text in found.unread)
    assert found.words + left - found.all_words in range(len(found.unread) + 1), "a word may be cut"
    assert [len(row) for row in found.rows] == [len(row) for row in rows_of(encoded)]
    letters = [re.sub(r"\W", "", "".join(row)) for row in found.rows]
    whole = re.sub(r"\W", "", paper.title + "".join(paper.sentences))
    assert all(row in whole for row in letters), "cased, and nothing else"
    assert 0 < found.unknown < 0.25


@pytest.mark.parametrize("name", ["mem2mem", "hierarchical_transformer"])
def test_words_that_a_run_does_not_know(name):
    run = lib.load(trained_folder(name), device="cpu")
    texts = {
        "Das Gesetz soll die Wirtschaft des ganzen Landes nachhaltig beleben, glaubt niemand mehr.": True,
        "यह एक पाठ है। हम इसे पढ़ते हैं।": True,
        "The cells of the mice were studied with a new method in the present study.": False,
    }
    documents = run.documents(list(texts))
    strange = [run.reading(*pair).unknown > 0.25 for pair in zip(documents, run.encode(documents))]
    assert strange == list(texts.values())
