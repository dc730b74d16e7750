import subprocess
import sys
import time
from itertools import accumulate

import pytest

from lib.data.corpora import load_corpus
from lib.data.documents import to_document
from lib.data.sentences import group_words, split_sentences
from lib.data.words import tokenize
from lib.system.files import project_root
from tests.tools.sentence_splitters import aclsum_texts, agreement, is_right, read_cases

CASES = read_cases()
KNOWN_ERRORS = {
    "a sentence that ends in an initial": 1,
    "full stop and citation": 1,
    "line ends in a record": 1,
    "numbers of a list": 1,
}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two? Three! Four", 4),
        ("See Fig. 3 and Smith et al. (2003) for e.g. this. It holds.", 2),
        ("J. R. Smith of the U.S. Army came. He left.", 2),
        ("The value is 3.14. The i.i.d. case is easier.", 2),
        ("already tokenised . lower case text goes on . as in fig . 3 of smith et al . ( 2003 ) .", 3),
        ("Ann Hill and Tom Brandt . 2017 . On moss .", 2),
        ("no full stop", 1),
        ("   ", 0),
        ("He asked: “Why?” She left.", 2),
        ("lower case goes on here. so it does? yes.", 3),
        ("As Wubben et al. (2012) found. Štajner et al. (2014) did, too.", 2),
        ("Первое предложение (СНГ). Второе: и др. примеры! Третье", 3),
        ("هذه جملة عن DNA. هذه ثانية؟ وثالثة", 3),
        ("यह पहला वाक्य DNA का है। यह दूसरा है।", 2),
    ],
)
def test_sentences(text, count):
    assert len(split_sentences(text)) == count


@pytest.mark.parametrize("stopped", ["some , i . e", "moss , e . g"])
def test_letters_that_stops_set_apart_are_one_abbreviation(stopped):
    assert len(split_sentences(f"we know {stopped} . The moss is old .")) == 1
    assert len(split_sentences("we know vitamin . The moss is old .")) == 2


def test_a_line_goes_on_in_the_next_unless_it_ends_a_sentence():
    """Where few lines begin with small letters, each is asked by itself."""
    apart = ["It ends!", "pH is not known.", "Old Moss", "Long Rivers", "Hard Stones", "Cold Winds"]
    lines = [*apart, "Warm Rain", "that nobody has seen."]
    assert split_sentences("\n".join(lines)) == [*apart, "Warm Rain that nobody has seen."]


def test_splitting_loses_nothing():
    text = 'A "b." C (d. E) f.  G\nH... I? J'
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text", [".?!" * 50_000 + " A", "漢字" * 100_000, '."' * 100_000, ". " * 50_000, "." + " " * 200_000]
)
def test_sentences_of_odd_texts_take_no_longer(text):
    """Marks, or letters, or spaces without an end: in time that grows with the text and not with its square."""
    code = "import sys; from lib.data.sentences import split_sentences; print(len(split_sentences(sys.stdin.read())))"
    done = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, timeout=60, encoding="utf-8",
        cwd=project_root(), check=True,
    )  # fmt: skip
    assert int(done.stdout) == len(split_sentences(text)) in (1, 2)


def test_the_word_before_a_mark_begins_behind_quotes_and_brackets():
    assert split_sentences("He saw (Fig. 3) it.") == ["He saw (Fig. 3) it."]
    assert split_sentences("He saw )Fig. 3 it.") == ["He saw )Fig. 3 it."], "an abbreviation behind a bracket"
    assert split_sentences("So what?! Yes.") == ["So what?!", "Yes."]
    assert split_sentences("Wait... What") == ["Wait...", "What"]
    assert split_sentences('"It is." "Never." Well') == ['"It is."', '"Never."', "Well"]


def test_sentences_against_human_splits():
    """Boundaries in the 250 papers whose abstracts, introductions and conclusions were split by hand."""
    precision, recall = agreement(split_sentences, list(aclsum_texts()))
    assert precision > 0.998
    assert recall > 0.944


@pytest.mark.parametrize("kind", sorted({case["kind"] for case in CASES}))
def test_every_kind_of_sentence_end_is_found(kind):
    wrong = [case["text"] for case in CASES if case["kind"] == kind and not is_right(split_sentences, case)]
    assert len(wrong) <= KNOWN_ERRORS.get(kind, 0), wrong


def test_a_record_is_read_with_line_ends_as_spaces():
    record = {"document": "a boat that nobody\nhad painted sank. The\nowner slept.", "summary": "One.\n\nTwo"}
    document = to_document(record)
    assert document.sentences == ["a boat that nobody had painted sank.", "The owner slept."]
    assert document.summary == ["One.", "Two"]


@pytest.mark.parametrize(
    "text", ["x.y" * 50_000, ". (A" + "a" * 100_000, "1) a " * 40_000, "a b c\n" * 40_000, " [1]." * 40_000]
)
def test_time_grows_with_the_text(text):
    start = time.process_time()
    split_sentences(text)
    assert time.process_time() - start < 10


def test_words_of_a_summary_are_grouped_as_its_text_is_split():
    text = "in the u . s . the gene was found . it is small ( fig . 2 ) ."
    words = text.split()
    groups = group_words(words)
    assert [place for group in groups for place in group] == list(range(len(words)))
    assert [" ".join(words[place] for place in group) for group in groups] == split_sentences(text)
    assert [len(group) for group in groups] == [6, 5, 9]


def _ends_of(groups: list[list]) -> set[int]:
    return set(accumulate(map(len, groups)))


def test_words_in_lower_case_end_sentences_where_people_end_them():
    """What models write: aclsum's prose in lower case, its marks apart. Each mark by itself is right in 75 of 100."""
    correct = ours = theirs = 0
    for sentences in aclsum_texts():
        prose = [tokenize(s.lower()) for s in sentences if s.rstrip().endswith((".", "?", "!"))]
        human = _ends_of(prose)
        written = _ends_of(group_words([word for words in prose for word in words]))
        correct, ours, theirs = correct + len(human & written), ours + len(written), theirs + len(human)
    assert correct / ours > 0.99
    assert correct / theirs > 0.98


def test_copies_of_references_have_as_many_sentences():
    summaries = [d.summary for name in ("train", "val", "test") for d in load_corpus("pmc-sample").split(name, 10**6)]
    copies = [group_words([word for s in summary for word in tokenize(s.lower())]) for summary in summaries]
    assert sum(map(len, copies)) == pytest.approx(sum(map(len, summaries)), rel=0.01)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("the data are at http : / / data . example . org / a . they are free .", 2),
        ("it grew at . 5 % a day . then it died .", 2),
        ("line x7 . 2 grew . line x8 . 1 died .", 2),
        ("rice , wheat , etc . for rice it was new .", 2),
        ("in the u . s . the gene was found . it is small .", 3),
        ("in the u . s . army it was found .", 1),
        ("it is at example . org today . it is free .", 2),
    ],
)
def test_marks_by_themselves(text, ends):
    assert len(group_words(text.split())) == ends
