import json
import subprocess
import sys
from pathlib import Path

import pytest

from lib.data.documents import Document
from lib.data.plain_text import left_out_words, parse_text
from lib.system.files import project_root

CASES = json.loads((Path(__file__).parent / "cases" / "plain_texts.json").read_text(encoding="utf-8"))
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
    code = "import sys; from lib.data.plain_text import parse_text; parse_text(sys.stdin.read())"
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
    assert document.section_names == ["Introduction", "2.1 Methods"]
    assert document.sections[0][0] == "A sentence with stars and ``quoted'' or `single' words and `more'."
    assert document.sections[1][:4] == ["See:", "this line is no heading", "This is one sentence.", "What is left"]
    assert parse_text("It ends.\n\nResults").sentences == ["It ends.", "Results"], "nothing stands under it"
    assert parse_text("Only one line") == Document("", "", [""], [["Only one line"]], [])
    assert parse_text("One.\r\n\r\nTwo.").sections == [["One.", "Two."]], "line ends of another system"


def test_paragraphs_as_sections():
    document = parse_text("# T\n\nOne. Two.\n\nThree.\n\n## End\n\nFour.", paragraphs=True)
    assert document.sections == [["One.", "Two."], ["Three."], ["Four."]]
    assert document.section_names == ["", "", "End"]


@pytest.mark.parametrize(
    "text", ["", " \n\n\t", "# Title\n\n## Heading", "![x](y.png)", "```\nx\n```", "~~~\nx\n~~~"]
)
def test_a_text_without_a_sentence_is_refused(text):
    with pytest.raises(ValueError, match="the text has no sentence"):
        parse_text(text)


def test_what_is_no_text_is_refused():
    with pytest.raises(ValueError, match="must hold text, found bytes"):
        parse_text(b"x")
    with pytest.raises(ValueError, match="null byte"):
        parse_text("a\0b")


def words(text):
    """Those with a letter or a digit."""
    return [word for word in text.split() if any(c.isalnum() for c in word)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["kind"])
def test_a_text_as_people_have_it(case):
    """What is no heading is read, word for word; what is not read is counted."""
    document = parse_text(case["text"])
    text = " ".join(document.sentences)
    assert len(words(text)) == case.get("kept_words", len(words(text)))
    assert [part for part in case.get("contains", []) if part not in text] == []
    assert [part for part in case.get("absent", []) if part in text] == []
    assert document.section_names == case.get("section_names", document.section_names)
    assert document.sentences == case.get("sentences", document.sentences)
    assert left_out_words(case["text"]) == case.get("left_out", left_out_words(case["text"]))


@pytest.mark.parametrize("text", ["# a" + " " * 50_000 + "b", "> " * 50_000 + "a", "```a\n" * 20_000, "x\n" * 50_000])
def test_marks_of_blocks_take_no_longer(text):
    code = "import sys; from lib.data.plain_text import parse_text; parse_text(sys.stdin.read() + '\\n\\nA text.')"
    subprocess.run([sys.executable, "-c", code], input=text, text=True, timeout=30, cwd=project_root(), check=True)
