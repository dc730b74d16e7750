"""The running text of a PDF as Markdown, by the layout analysis of pdfminer.six (the extra
`files`)."""

import io
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lib.data.markdown import aside, heading_line, joined_parts, plain_lines
from lib.data.plain_text import is_section_name
from lib.system.errors import InputError

_PAGE_NUMBER = re.compile(
    r"(?i:page\s*)?[-–—\[(]?\s*(?:\d{1,4}|[ivxlc]+)\s*(?:[-–—\])]|(?:of|/)\s*\d+)?"
)
# what programs put in its place
_NO_TITLE = re.compile(r"^Microsoft |^untitled|\.\w{2,4}$|^\S*$", re.IGNORECASE)
_ENDED = re.compile(r"[.!?:][\"”’)]*$")


def pdf_text(data: bytes, name: str) -> str:
    """Return paragraphs in reading order; set page numbers and running heads aside.

    Raises InputError, with what to do, for a PDF that is locked, damaged or without text. name: for
    its commands.
    """
    from pdfminer.high_level import extract_pages
    from pdfminer.layout import LAParams
    from pdfminer.pdfdocument import PDFDocument, PDFPasswordIncorrect
    from pdfminer.pdfparser import PDFParser
    from pdfminer.utils import decode_text

    file, stem = shlex.quote(name), shlex.quote(Path(name).stem)
    try:
        layout = extract_pages(io.BytesIO(data), laparams=LAParams(all_texts=True))
        pages = [[block for block in _blocks(page) if block] for page in layout]
        facts = PDFDocument(PDFParser(io.BytesIO(data))).info
    except PDFPasswordIncorrect:
        unlock = f"qpdf --password=PASSWORD --decrypt {file} {stem}.open.pdf"
        raise InputError(f"PDF that a password locks. Unlock it: {unlock}") from None
    except Exception as error:  # pdfminer does not say which
        raise InputError(f"PDF that cannot be read ({error or type(error).__name__})") from None
    words = " ".join(block for page in pages for block in page).split()
    if not words or 20 * sum("(cid:" in word or "\ufffd" in word for word in words) > len(words):
        raise InputError(
            f"PDF of pictures, without a text. Recognise it first: ocrmypdf {file} {stem}.ocr.pdf"
        )
    heads = Counter(
        re.sub(r"\d+", "0", block) for page in pages for block in {*page[:1], *page[-1:]}
    )
    paragraphs, beside = [""], []
    for page in pages:
        for block in page:
            at_an_end = block in (page[0], page[-1])
            if at_an_end and (
                _PAGE_NUMBER.fullmatch(block) or heads[re.sub(r"\d+", "0", block)] > 2
            ):
                beside.append(block)
            elif block[0].islower() and not _ENDED.search(paragraphs[-1]):
                paragraphs[-1] += "\n" + block  # goes on in the next column or on the next page
            else:
                heading, _, rest = block.partition("\n")
                paragraphs += [heading, rest] if is_section_name(heading) else [block]
    title = next(
        (decode_text(of["Title"]) for of in facts if isinstance(of.get("Title"), bytes)), ""
    )
    if _NO_TITLE.search(title):
        title = ""
    parts = [heading_line(p, 2) if is_section_name(p) else plain_lines(p) for p in paragraphs]
    return joined_parts([heading_line(title, 1), *parts, aside(" ".join(beside))])


def _blocks(part: Any) -> Iterator[str]:
    """Yield the texts of the boxes on a page, at any depth, a line each for their lines."""
    from pdfminer.layout import LTContainer, LTTextBox

    for element in part:
        if isinstance(element, LTTextBox):
            yield "\n".join(line for line in map(_line, element) if line)
        elif isinstance(element, LTContainer):
            yield from _blocks(element)


def _line(line: Any) -> str:
    """Return a line with a sign before a small digit that is raised: 10^5, which would become
    105."""
    from pdfminer.layout import LTChar

    size = max((char.size for char in line if isinstance(char, LTChar)), default=0)
    base = min(
        (char.y0 for char in line if isinstance(char, LTChar) and char.size > 0.85 * size),
        default=0,
    )
    text, was_raised = "", False
    for char in line:
        is_raised = (
            isinstance(char, LTChar) and char.size < 0.85 * size and char.y0 > base + 0.15 * size
        )
        is_exponent = (
            is_raised
            and not was_raised
            and text[-1:].isdigit()
            and char.get_text() in "0123456789-−–"
        )
        text += "^" * is_exponent + char.get_text()
        was_raised = is_raised
    return " ".join(text.split())
