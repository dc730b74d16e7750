"""Texts in files that were once read wrong: tests/what_people_bring/texts.toml."""

import base64
import tomllib
from pathlib import Path

import pytest

from lib.data.files import texts_of
from lib.data.plain_text import parse_text
from lib.system.errors import InputError
from tests.data.made_files import docx_bytes, pdf_bytes, zip_bytes

TABLE = Path(__file__).parents[1] / "what_people_bring" / "texts.toml"
CASES = tomllib.loads(TABLE.read_text(encoding="utf-8"))["case"]
DOCX_PARTS = ("styles", "notes", "kind", "strict")
LEADING = 1.2  # from a line to the next, in sizes of the letters


def data_of(case):
    if "base64" in case:
        return base64.b64decode(case["base64"])
    if "zip" in case:
        return zip_bytes(case["zip"])
    if "docx" in case:
        parts = {name: case[name] for name in DOCX_PARTS if name in case}
        return docx_bytes(case["docx"], **parts)
    if "pdf" in case:
        return pdf_bytes([lines_of(page) for page in case["pdf"]])
    return case["text"].encode(case.get("encoding", "utf-8"))


def lines_of(page):
    lines = []
    for x, y, size, texts, *turned in page:
        for number, text in enumerate(texts):
            lines.append((x, y - LEADING * size * number, size, text, *turned))
    return lines


def one_line(text):
    return " ".join(text.split())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['file']}, {case['name']}")
def test_a_text_is_read_as_it_is(case):
    if "error" in case:
        with pytest.raises(InputError) as refused:
            [parse_text(text) for text in texts_of(data_of(case), case["file"])]
        assert not [
            word for word in case["error"] if word.lower() not in str(refused.value).lower()
        ]
        return
    (text,) = texts_of(data_of(case), case["file"])
    document = parse_text(text)
    sentences = list(map(one_line, document.sentences))
    whole = " ".join(sentences)
    assert sentences == case.get("ends", sentences)
    assert [words for words in case.get("has", []) if words not in whole] == [], whole
    assert [words for words in case.get("lacks", []) if words in whole] == [], whole
    assert document.title == case.get("title", document.title)
    assert document.section_names == case.get("headings", document.section_names)
    if "left" in case:
        assert {kind: text.left_out.get(kind) for kind in case["left"]} == case["left"]
    notes = " ".join(text.notes) if "says" in case else ""
    assert [words for words in case.get("says", []) if words not in notes] == [], notes
