"""Plain text and Markdown as documents: what is read, what is a heading, and what is left out and
counted."""

import json
from pathlib import Path

import pytest

from lib.data.documents import Document
from lib.data.markdown import markdown_text
from lib.data.plain_text import parse_text, plain_text
from lib.data.tokenize import is_word

CASES = Path(__file__).parents[1] / "cases"
TEXTS = json.loads((CASES / "plain_texts.json").read_text(encoding="utf-8"))
MARKDOWN = (CASES / "paper.md").read_text(encoding="utf-8")


def test_markdown():
    text = markdown_text(MARKDOWN)
    document = parse_text(text, "m")
    assert (document.id, document.title, document.summary) == ("m", "In front", [])
    assert document.section_names == ["A good heading", "1 Methods", "Results"]
    assert document.sections == [
        ["One sentence that goes on over two lines.", "It ends here, as code and a link do."],
        ["The first item.", "The second one, with 2 * 3 * 4 and init and snake_case_names."],
        ["It works."],
    ]
    front, headings, image, comment, code = 3, 7, 2, 2, 4
    assert text.left_out == {
        "front matter": front,
        "headings": headings,
        "pictures": image,
        "comments": comment,
        "code": code,
    }


def test_a_first_heading_of_level_1_is_the_title():
    document = parse_text(
        "A title\n===\n\nOne.\n\nNo heading here\n\n# Second\nTwo.\n\nMore\n---\nThree."
    )
    assert (document.title, document.section_names) == ("A title", ["", "Second", "More"])
    assert document.sections == [["One.", "No heading here"], ["Two."], ["Three."]]
    document = parse_text("One.\n\n# Late\n\nTwo.")
    assert (document.title, document.section_names) == ("", ["", "Late"])
    document = parse_text("# First\n\n# Second\n\nOne.")
    assert (document.title, document.section_names) == ("First", ["Second"])


def test_headings_of_plain_text():
    text = (
        "Introduction\n\nA sentence. 2 * 3 * 4 = 24.\n\n2 Methods\n\nSee:\n\nno heading\n\nWhat is "
        "left\n"
    )
    document = parse_text(text)
    assert document.section_names == ["Introduction", "2 Methods"]
    assert document.sections == [
        ["A sentence.", "2 * 3 * 4 = 24."],
        ["See:", "no heading", "What is left"],
    ]
    assert parse_text("It ends.\n\nResults").sentences == ["It ends.", "Results"], (
        "nothing is below it"
    )
    assert parse_text("Only one line") == Document("", "", [""], [["Only one line"]], [])
    assert parse_text("One.\r\n\r\nTwo.").sections == [["One.", "Two."]]


def test_paragraphs_as_sections():
    document = parse_text("# T\n\nOne. Two.\n\nThree.\n\n## End\n\nFour.", paragraphs=True)
    assert document.sections == [["One.", "Two."], ["Three."], ["Four."]]
    assert document.section_names == ["", "", "End"]


@pytest.mark.parametrize("text", ["# Title\n\n## Heading", "---\n* * *\n", b"x"])
def test_a_text_without_a_sentence_is_refused(text):
    bad = "must hold text, found bytes" if isinstance(text, bytes) else "the text has no sentence"
    with pytest.raises(ValueError, match=bad):
        parse_text(text)


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case["kind"])
def test_a_text_as_people_have_it(case):
    """What is no heading is read, word for word; what is not read is counted."""
    read = markdown_text if case.get("markdown") else plain_text
    found = read(case["text"])
    document = parse_text(found)
    text = " ".join(document.sentences)
    words = sum(map(is_word, text.split()))
    assert words == case.get("kept_words", words)
    assert [part for part in case.get("contains", []) if part not in text] == []
    assert [part for part in case.get("absent", []) if part in text] == []
    assert document.section_names == case.get("section_names", document.section_names)
    assert document.sentences == case.get("sentences", document.sentences)
    left_out = sum(found.left_out.values())
    assert left_out == case.get("left_out", left_out)


def test_what_recurs_on_pages_is_a_head_only_where_it_is_short():
    """Letters from a form, and chapters that differ in their number, are text and headings."""
    letter = (
        "Dear customer {0}, your bill for the month {0} of this year is {0} EUR.\n"
        "Please pay it before the end of the month, or write to us."
    )
    found = plain_text("\f".join(letter.format(number) for number in (101, 102, 103)))
    assert " ".join(parse_text(found, "x").sentences).count("Dear customer") == 3
    chapters = "\f".join(f"Chapter {n}\n\nBees fly in May. They eat pollen." for n in (1, 2, 3))
    assert "Chapter 2" in str(parse_text(plain_text(chapters), "x"))
    running = "\f".join(f"The Journal of Bees\n\nBees fly in May, {n}. So it is." for n in "abc")
    assert "Journal" not in " ".join(parse_text(plain_text(running), "x").sentences)
