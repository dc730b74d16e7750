"""Characters and words of texts in many scripts, and the words that ROUGE counts."""

import hashlib
import json
import re
from importlib import resources
from pathlib import Path
from unicodedata import category, is_normalized

import pytest

from lib.data.characters import clean, unified
from lib.data.documents import to_document
from lib.data.options import words_of
from lib.data.prepared import TextEncoder
from lib.data.tokenize import (
    counted_words,
    need_all_letters,
    other_letters,
    surfaces,
    tokenize,
    word_spans,
)
from lib.data.vocabulary import Vocabulary
from lib.evaluation.rouge import rouge
from lib.papers.mem2mem.sections import CohanOptions
from tests.conftest import case_tables

TABLES = case_tables("tokenize")
CASES = json.loads((Path(__file__).parents[1] / "cases" / "words.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']}: {case['text']!a:.30}")
def test_texts_as_people_have_them(case):
    """In a record, and given to the tokenizer; each word is where its span says."""
    (sentence,) = to_document({"document": [case["text"]], "summary": "x"}).sentences
    words = words_of(sentence, case.get("lower", False))
    assert (len(words) == case["count"]) if "count" in case else (words == case["words"])
    assert words_of(case["text"], case.get("lower", False)) == words
    assert clean(sentence) == sentence == unified(sentence)
    spans = word_spans(sentence)
    assert [sentence[a:b] for a, b in spans] == tokenize(sentence)
    assert "".join(surfaces(sentence, spans)).split() == sentence.split()


def test_counted_words():
    """In ASCII like published scorers, unless most letters are others."""
    assert counted_words("The naïve β-cell, 3.5 LaTeX_1") == [
        "the",
        "na",
        "ve",
        "cell",
        "3",
        "5",
        "latex",
        "1",
    ]
    assert counted_words("Модель GRU-2 «читает».") == ["модель", "gru", "2", "читает"]
    assert counted_words("यह हिन्दी है।") == ["यह", "हिन्दी", "है"]
    assert counted_words("模型GRU读テ。") == ["模", "型", "gru", "读", "テ"]
    assert counted_words("αβ ab") == ["ab"] and counted_words("αβγ ab") == ["αβγ", "ab"]
    assert counted_words("…") == counted_words("") == []
    assert counted_words("Модель GRU", all_letters=False) == ["gru"]
    assert counted_words("naïve 3.5", all_letters=True) == ["naïve", "3", "5"]
    assert counted_words("می\u200cخواهم") == counted_words("میخواهم")
    assert counted_words("end of 3-\nThe next", all_letters=True) == [
        "end",
        "of",
        "3",
        "the",
        "next",
    ]


SCRIPTS = TABLES["scripts"]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("lower", [True, False])
def test_a_perfect_copy_has_the_full_score(script, lower):
    """A copy in ids of a vocabulary, and in words again."""
    document = to_document({"document": SCRIPTS[script], "summary": SCRIPTS[script]})
    options = CohanOptions(lower=lower, vocab_size=12)
    example = options.example(document)
    vocabulary = Vocabulary(sorted(set(example.summary))[::2])  # every other word is copied
    encoded = TextEncoder(options, vocabulary).encode_example(example)
    copy = vocabulary.sentences(encoded.target.tolist(), encoded.unknown)
    assert rouge([copy], [document.summary]).tolist() == [[pytest.approx(100)] * 3]


def test_letters_outside_ascii():
    """They decide for a whole corpus which words ROUGE counts; a Greek letter by itself is a
    sign."""
    shares = {script: other_letters([text]) for script, text in SCRIPTS.items()}
    assert (
        shares["English"] == 0
        and min(n for script, n in shares.items() if script != "English") > 0.2
    )
    assert (
        other_letters(["The β-subunit, TGFβ1 and 5 µM of α."])
        == 0
        == other_letters(["3 ½ and 5 m²"])
    )
    assert other_letters([]) == 0
    assert other_letters(["a naïve model of ten words, and so on"]) == pytest.approx(1 / 9)
    english = [SCRIPTS["English"]] * 9
    assert not need_all_letters(english) and need_all_letters(
        [*english, SCRIPTS["French"], SCRIPTS["Cyrillic"]]
    )


def has_plain_letters(text):
    """Whether a text has no marks, no invisible characters, and no other forms of letters."""
    others = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\ufb00-\uffff]"
    marks = any(category(c) in ("Mn", "Mc", "Me", "Cf") for c in text)
    return text.isascii() or (
        is_normalized("NFC", text) and not re.search(others, text) and not marks
    )


def test_words_of_english_papers_never_change():
    """Trained models have learned them: 2.8 million tokens of 16,569 paragraphs, as version 0.1.0
    cut them."""
    sha, counts = hashlib.sha256(), [0, 0]
    folder = resources.files("aclsum") / "dataset" / "paper_jsons"
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        paper = json.loads(path.read_text(encoding="utf-8"))
        texts = (
            paper["title"],
            paper["abstract"],
            *(part["text"] for part in paper["pdf_parse"]["body_text"]),
        )
        for text in filter(has_plain_letters, texts):
            counts[0] += 1
            for words in (tokenize(text), tokenize(text.lower())):
                counts[1] += len(words)
                sha.update("\n".join(words).encode() + b"\0")
    assert (counts, sha.hexdigest()[:16]) == ([16_569, 2_792_990], "a1bb30aad6751746")


@pytest.mark.parametrize(("text", "cleaned"), TABLES["cut"])
def test_a_word_that_a_line_cuts(text, cleaned):
    assert clean(text) == cleaned


def test_hyphens_of_compounds_stay_at_a_line_end():
    text = "state-\nof-the-art, twenty-\none and well-\nknown, but conspic-\nuous"
    assert clean(text) == "state-of-the-art, twenty-one and well-known, but conspicuous"
