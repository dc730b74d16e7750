import json
import subprocess
import sys
from collections import Counter
from importlib import resources

import pytest

from lib.data.documents import Document, parse_text
from lib.data.text import counted_words, split_sentences, tokenize
from lib.data.vocabulary import EOS, SPECIALS, UNK, Vocabulary
from lib.system.files import project_root


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two? Three! Four", 4),
        ("See Fig. 3 and Smith et al. (2003) for e.g. this. It holds.", 2),
        ("J. R. Smith of the U.S. Army came. He left.", 2),
        ("The value is 3.14. The i.i.d. case is easier.", 2),
        ("already tokenised . lower case text goes on . as in fig . 3 of smith et al . ( 2003 ) .", 3),
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


def test_splitting_loses_nothing():
    text = 'A "b." C (d. E) f.  G\nH... I? J'
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text", [".?!" * 50_000 + " A", "漢字" * 100_000, '."' * 100_000, ". " * 50_000, "." + " " * 200_000]
)
def test_sentences_of_odd_texts_take_no_longer(text):
    """Marks, or letters, or spaces without an end: in time that grows with the text and not with its square."""
    code = "import sys; from lib.data.text import split_sentences; print(len(split_sentences(sys.stdin.read())))"
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
    correct = found = wanted = 0
    for split in ("train", "val", "test"):
        for line in (resources.files("aclsum") / "dataset" / f"{split}.jsonl").open(encoding="utf-8"):
            for sentences in json.loads(line)["sentences"].values():
                human = _ends([s for s in sentences if s.strip()])
                ours = _ends(split_sentences(" ".join(sentences)))
                correct, found, wanted = correct + len(human & ours), found + len(ours), wanted + len(human)
    assert correct / found > 0.998
    assert correct / wanted > 0.943


def _ends(sentences: list[str]) -> set[int]:
    ends, length = set(), 0
    for sentence in sentences:
        length += len("".join(sentence.split()))
        ends.add(length)
    return ends - {length}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't stop", ["do", "n't", "stop"]),
        ("Parkinson's, (3.5%)", ["Parkinson", "'s", ",", "(", "3.5", "%", ")"]),
        ("state-of-the-art", ["state", "-", "of", "-", "the", "-", "art"]),
        ("in @xmath0 of <cit> .", ["in", "@xmath0", "of", "<cit>", "."]),
        ("1,000 naïve Σ", ["1,000", "naïve", "Σ"]),
        ("", []),
    ],
)
def test_words(text, words):
    assert tokenize(text) == words


def test_counted_words():
    """ROUGE's, unless most letters are others: these texts had none, and a score of 0."""
    assert counted_words("The naïve β-cell, 3.5 LaTeX_1") == ["the", "na", "ve", "cell", "3", "5", "latex", "1"]
    assert counted_words("Модель GRU-2 «читает».") == ["модель", "gru", "2", "читает"]
    assert counted_words("यह हिन्दी है।") == ["यह", "हिन्दी", "है"]
    assert counted_words("模型GRU读テ。") == ["模", "型", "gru", "读", "テ"]
    assert counted_words("αβ ab") == ["ab"] and counted_words("αβγ ab") == ["αβγ", "ab"]
    assert counted_words("…") == counted_words("") == []


def test_tokenised_text_stays():
    text = "the patient 's heart ( 3 cm ) was n't seen ."
    assert tokenize(text) == text.split()


def test_vocabulary_is_the_most_frequent_words_in_a_fixed_order():
    counts = Counter({"b": 2, "a": 2, "c": 5, "d": 1})
    assert Vocabulary.from_counts(counts, 7).words == [*SPECIALS, "c", "a", "b"]


def test_unknown_words_get_ids_of_their_own():
    vocabulary = Vocabulary(["the", "cat"])
    ids, unknown = vocabulary.encode_source(["the", "zebra", "saw", "the", "zebra"])
    assert ids == [4, 6, 7, 4, 6]
    assert unknown == ["zebra", "saw"]
    assert vocabulary.encode_target(["saw", "cat", "okapi"], unknown) == [7, 5, UNK]
    assert vocabulary.decode([4, 6, EOS, 5], unknown) == ["the", "zebra"]


def test_vocabulary_from_file_is_the_same(tmp_path):
    vocabulary = Vocabulary(["é", "@xmath0", "b"])
    vocabulary.save(tmp_path / "vocab.txt")
    assert Vocabulary.load(tmp_path / "vocab.txt").words == vocabulary.words
    Vocabulary([]).save(tmp_path / "vocab.txt")
    assert Vocabulary.load(tmp_path / "vocab.txt").words == list(SPECIALS), "no word is not an empty one"


def test_a_word_twice_is_refused():
    with pytest.raises(ValueError, match="'a' is twice"):
        Vocabulary(["a", "b", "a"])


# ---------------------------------------------------------------------------------------- plain text and Markdown

MARKDOWN = """# A *good* title

One sentence that goes on
over two lines. It **ends** here, as `code` and [a link](http://x.org/a_b "T") do.

![A picture](x.png)

## 1 Methods ##
- The first item.
- The _second_ one, with 2 * 3 * 4 and snake_case_names.

```python
def f(): "No sentence."
```

Results
-------
> It works.

***
### Empty

"""


def test_markdown_becomes_sections():
    document = parse_text(MARKDOWN, "m")
    assert (document.id, document.title, document.summary) == ("m", "A good title", [])
    assert document.section_names == ["", "1 Methods", "Results"]
    assert document.sections == [
        ["One sentence that goes on over two lines.", "It ends here, as code and a link do."],
        ["The first item.", "The second one, with 2 * 3 * 4 and snake_case_names."],
        ["It works."],
    ]


def test_an_underlined_title():
    document = parse_text("A title\n===\n\nOne.\n\nNo heading here\n\n# Second\nTwo.\n\nMore\n---\nThree.")
    assert document.title == "A title"
    assert document.section_names == ["", "Second", "More"]
    assert document.sections == [["One.", "No heading here"], ["Two."], ["Three."]]


@pytest.mark.parametrize("marks", ["[", "![", "[a](", "[a]( ", "*a ", "`a "])
def test_marks_that_nothing_ends_take_no_longer(marks):
    """In time that grows with the text and not with its square."""
    code = "import sys; from lib.data.documents import parse_text; parse_text(sys.stdin.read())"
    subprocess.run(
        [sys.executable, "-c", code], input="A text. " + marks * 50_000, text=True, timeout=60, cwd=project_root(),
        check=True,
    )  # fmt: skip


def test_a_heading_behind_text_is_no_title():
    document = parse_text("One.\n\n# Late\n\nTwo.")
    assert (document.title, document.section_names) == ("", ["", "Late"])
    document = parse_text("# First\n\n# Second\n\nOne.")
    assert (document.title, document.section_names) == ("First", ["Second"])


def test_headings_of_plain_text():
    text = """Introduction

A sentence with *stars* and ``quoted'' or `single' words and `more'. Another one
that goes on. 2 * 3 * 4 = 24.

2.1 Methods

See:

this line is no heading

This is one sentence.

What is left

And of ten words at most, a heading is never longer than that

So it ends

"""
    document = parse_text(text)
    assert document.section_names == ["Introduction", "2.1 Methods", "What is left"]
    assert document.sections[0][0] == "A sentence with stars and ``quoted'' or `single' words and `more'."
    assert document.sections[1] == ["See:", "this line is no heading", "This is one sentence."]
    assert document.sections[2][-1] == "So it ends", "nothing stands under it"
    assert parse_text("Only one line") == Document("", "", [""], [["Only one line"]], [])
    assert parse_text("One.\r\n\r\nTwo.").sections == [["One.", "Two."]], "line ends of another system"


def test_paragraphs_as_sections():
    document = parse_text("# T\n\nOne. Two.\n\nThree.\n\n## End\n\nFour.", paragraphs=True)
    assert document.sections == [["One.", "Two."], ["Three."], ["Four."]]
    assert document.section_names == ["", "", "End"]


@pytest.mark.parametrize("text", ["", " \n\n\t", "# Title\n\n## Heading", "![x](y.png)", "```\nx\n```", "~~~\nx"])
def test_a_text_without_a_sentence_is_refused(text):
    with pytest.raises(ValueError, match="the text has no sentence"):
        parse_text(text)


def test_what_is_no_text_is_refused():
    with pytest.raises(ValueError, match="must hold text, found bytes"):
        parse_text(b"x")
    with pytest.raises(ValueError, match="null byte"):
        parse_text("a\0b")
