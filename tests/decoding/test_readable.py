"""Texts for people: what a model read of a text, and summaries with forms of words, capitals and
spaces."""

import re
from dataclasses import replace

import numpy as np
import pytest

import lib
from lib.data.batch import NOWHERE, EncodedDocument, rows_of
from lib.data.corpus import load_corpus
from lib.data.documents import Document
from lib.data.options import words_of
from lib.data.tokenize import surfaces, tokenize, word_spans
from lib.decoding.readable import Forms, readable, reading_of, spaces
from lib.system.files import trained_folder
from tests.conftest import case_tables

CASES = case_tables("readable")
TEXT = [
    "The CRISPR/Cas9 system cuts DNA in Zm4CL (EU491511).",
    "Pv4CL1 was cut by the CRISPR/Cas9 system at pH 7 and by p53.",
    "In maize, dr. Ada Byron's group (at the WHO) saw 37°C.",
    "Groups who read e.g. the U.S. report saw 5 × 10^5 cells.",
    "We asked E. coli for state-of-the-art help, and E. coli helped.",
    "Yields rose by 3.2% at http://yields.org/maize.",
    'They call it "good" bread.',
    "The Tessera Copper Co has two copper mines, as the WHO says.",
]


def lower(sentence):
    return words_of(sentence, lower=True)


def hashed(sentence):
    return ["".join("#" if c.isdigit() else c for c in word) for word in lower(sentence)]


def by_word(sentences):
    return [[f" {word}" for word in sentence.split()] for sentence in sentences]


def forms_of(text, words=lower, **how):
    tokenised = words is str.split
    return Forms([(words(s), surfaces(s, word_spans(s, tokenised))) for s in text], **how)


def people(*sentences, text=TEXT, words=lower, cut=False, **how):
    """What people read of a summary in words."""
    return readable(
        by_word(sentences), forms_of(text, words, **how), spaced=False, cut=cut
    ).sentences


@pytest.mark.parametrize(("written", "read"), CASES["sentence"])
def test_a_sentence(written, read):
    assert people(written) == [read]


@pytest.mark.parametrize(("written", "read"), CASES["sentences"])
def test_sentences(written, read):
    assert people(*written, cut=True) == read


def test_a_headline_is_whole_where_it_was_not_cut():
    assert people("maize rises") == ["Maize rises"]


def test_a_tokenised_word_with_hyphens_begins_with_a_capital():
    text = ["The farmers saw drought-hit land and m-rna."]
    assert people("drought-hit land .", "m-rna .", text=text, words=str.split) == [
        "Drought-hit land.",
        "m-rna.",
    ]


def test_a_number_in_hashes_is_one_that_the_text_has_alone():
    text = ["It made 45 mln dlrs in 1987.", "It was 12 in 1986 and 1987."]
    assert people("made 12 ## mln in ####", text=text, words=hashed) == [
        "Made 12 [number] mln in [number]"
    ]
    assert people("made ## .# mln", text=text[:1], words=hashed) == ["Made 45 .[number] mln"]


def test_words_of_a_model_that_writes_capitals_stay():
    sentences = people("The Crispr / Cas9 System In It .", lower=False, words=tokenize)
    assert sentences == ["The Crispr/Cas9 System In It."]


def test_spaces_of_a_tokenised_text_say_nothing():
    text = ["the crispr / cas9 system ( dna ) was cut , and so on .", "it was dna ."]
    assert people("the crispr / cas9 ( dna ) , and so on .", text=text) == [
        "The crispr/cas9 (dna), and so on."
    ]


def test_pieces_keep_their_places():
    """Their spaces are the model's, their letters the text's; joined they are the sentences."""
    pieces = [
        [" the", " cris", "pr", "/", "cas", "9", " of", " z", "m4cl", "."],
        [" <dig", ">%", " e."],
        [" coli."],
    ]
    shown = readable(pieces, forms_of(TEXT), spaced=True)
    assert shown.sentences == ["The CRISPR/Cas9 of Zm4CL.", "[number]% E. coli."]
    assert shown.tokens[0] == [" The", " CRIS", "PR", "/", "Cas", "9", " of", " Z", "m4CL", "."]
    assert shown.tokens[1] == [" [number]", "%", " E.", " coli."]


def test_pieces_have_no_space_before_marks_that_close():
    pieces = [[" it", " rose", " ,", " by", " <", "dig", ">", " %", " ."]]
    assert readable(pieces, forms_of(TEXT), spaced=True).sentences == ["It rose, by [number]%."]


def test_every_token_stands_in_the_sentences():
    summary = by_word(["the crispr / cas9 system .", "we asked e .", "coli .", "they cut"])
    shown = readable(summary, forms_of(TEXT), spaced=False)
    assert sum(map(len, shown.tokens)) == sum(map(len, summary)) and len(shown.tokens) == 3
    assert ["".join(tokens).strip() for tokens in shown.tokens] == [*shown.sentences, "They cut"]


def test_spaces_are_as_in_papers():
    places = right = 0
    for document in load_corpus("pmc-sample").split("test", 10):
        for sentence in document.sentences:
            spans = word_spans(sentence)
            own = [surface.startswith(" ") for surface in surfaces(sentence, spans)]
            places += len(spans) - 1
            right += sum(
                a == b for a, b in zip(spaces([sentence[a:b] for a, b in spans])[1:], own[1:])
            )
    assert places > 30_000 and right / places > 0.98


# ---------------------------------------------------------------------------------
# what a model read

DOCUMENT = Document(
    "d",
    "On Reading",
    ["Introduction", "", "Methods"],
    [
        ["We read DNA.", "It is long.", "We read on."],
        ["It is long."],
        ["Mice read (well).", "So do we."],
    ],
    [],
)


def read(*rows, document=DOCUMENT):
    """The reading of rows of words of a document, each found after the one before; | is a symbol,
    and a row that begins with a number begins at that place."""
    places, lengths = [], []
    text, after = lower_text(document), len(document.title)
    for row in rows:
        words = row.split()
        if words[0].isdigit():
            after = int(words.pop(0))
        for word in words:
            if word == "|":
                places.append(NOWHERE)
                continue
            start = text.index(word, after)
            after = start + len(word)
            places.append((start, after))
        lengths.append(len(words))
    encoded = EncodedDocument.of("d", [4] * len(places), lengths, [3])
    return reading_of(document, replace(encoded, places=np.array(places)))


def lower_text(document):
    return document.text.lower()


def test_all_is_read():
    found = read(
        "we read dna .",
        "it is long .",
        "we read on .",
        "it is long .",
        "mice read ( well ) .",
        "so do we .",
    )
    assert str(found) == "read all of 18 words (Introduction, Methods)" and found.unread == []
    assert (
        found.rows[0] == ["We", " read", " DNA", "."]
        and "".join(found.rows[4]) == "Mice read (well)."
    )


def test_sections_that_were_cut():
    """A sentence that comes twice is the one that follows."""
    found = read("we read dna .", "it", "it is long .", "mice read ( well")
    assert str(found) == "read 10 of 18 words (Introduction, Methods)"
    assert found.unread == [("Introduction", "is long. We read on."), ("Methods", "). So do we.")]


def test_rows_of_several_sentences_in_any_order():
    at = lower_text(DOCUMENT).index
    mice, long = at("mice"), at("it is long")
    found = read(f"{mice} mice read ( well ) . so do we .", f"{long} it is long . we read on .")
    assert (
        (found.words, found.sections)
        == (12, ["Introduction", "Methods"])
        == (12, found.row_sections[::-1])
    )
    assert ["".join(row) for row in found.rows] == [
        "Mice read (well). So do we.",
        "It is long. We read on.",
    ]
    titled = read("0 on reading |", "so do we .")
    assert (
        titled.rows[0] == ["On", " Reading", ""] and str(titled) == "read 3 of 18 words (Methods)"
    )
    assert titled.row_sections == ["", "Methods"]
    flat = read("so do we .", "0 on reading | we read dna . | it is lo")
    assert flat.rows[1][-4:] == ["", " It", " is", " lo"] and flat.words == 9
    assert flat.unread[0] == ("Introduction", "ng. We read on."), "a word may be cut"
    names = [f"S{i}" for i in range(9)]
    found = read(*["we read ."] * 8, document=Document("d", "", names, [["We read."]] * 9, []))
    assert str(found) == "read 16 of 18 words (S0, S1, S2, S3, S4, S5, ...)"


WORDS_READ = {
    "mem2mem": 3 * 250, "windowed": 1540, "read_again": 100,
    "hierarchical_transformer_copying": 22 * 70,
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS_READ)
def test_what_the_trained_runs_read(name):
    run = lib.load(trained_folder(name), device="cpu")
    (paper,) = load_corpus("pmc-sample").split("test", 1)
    (encoded,) = run.encode([paper])
    found = run.reading(paper, encoded)
    assert found.all_words == sum(len(s.split()) for s in paper.sentences) > 3_000
    assert 0.5 * WORDS_READ[name] < found.words <= WORDS_READ[name]
    names = paper.section_names
    expected = {"mem2mem": [*names[:2], names[-1]], "read_again": names[:1]}.get(
        name, names[: len(found.sections)]
    )
    assert found.sections == expected
    left = sum(len(text.split()) for _, text in found.unread)
    assert found.words + left - found.all_words in range(len(found.unread) + 1), "a word may be cut"
    assert [len(row) for row in found.rows] == [len(row) for row in rows_of(encoded)]
    tokens = [run.vocabulary.tokens(row.tolist(), encoded.unknown) for row in rows_of(encoded)]
    pairs = [pair for rows in zip(tokens, found.rows) for pair in zip(*rows)]
    same = [
        re.sub(r"\d", "#", written.strip().lower()) == re.sub(r"\d", "#", token.strip().lower())
        for token, written in pairs
        if "[UNK]" not in token
    ]
    assert sum(same) > 0.98 * len(same), "each token is where its place says"
    letters = [re.sub(r"\W", "", "".join(row)) for row in found.rows]
    whole = re.sub(r"\W", "", paper.title + "".join(paper.sentences))
    assert all(row in whole for row in letters) and 0 < found.unknown < 0.25


@pytest.mark.parametrize("name", ["mem2mem", "hierarchical_transformer_copying"])
def test_words_that_a_run_does_not_know(name):
    run = lib.load(trained_folder(name), device="cpu")
    texts = {
        "Das Gesetz soll die Wirtschaft des ganzen Landes nachhaltig beleben, glaubt niemand mehr.": True,
        "The cells of the mice were studied with a new method in the present study.": False,
    }
    documents = run.documents(list(texts))
    strange = [run.reading(*pair).unknown > 0.25 for pair in zip(documents, run.encode(documents))]
    assert strange == list(texts.values())
