"""The running text of a PDF, by pdfminer.six (the extra `files`)."""

import io
import logging
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lib.data.markdown import aside, heading_line, joined_parts, plain_lines
from lib.data.plain_text import is_section_name
from lib.system.errors import InputError

_PAGE_NUMBER = re.compile(
    r"(?:page\s*)?[-–—\[(]?\s*(?:\d{1,4}|[ivxlc]+)\s*(?:[-–—\])]|(?:of|/)\s*\d+)?", re.IGNORECASE
)
_UNMAPPED = re.compile(r"\(cid:\d+\)|\ufffd")


def pdf_text(data: bytes, name: str) -> str:
    """The running text of a PDF in the order in which it is read: paragraphs as its layout has them, joined where one
    goes on in the next column or page; headings by its outline. Page numbers and running heads stand aside.

    Raises InputError for one without text, locked or damaged, with what to do. name: for commands that mend it.
    """
    file, stem = shlex.quote(name), shlex.quote(Path(name).stem)
    pages, titles = _pdf_pages(data, f"qpdf --password=PASSWORD --decrypt {file} {stem}.open.pdf")
    if not any(pages):
        raise InputError(f"PDF of pictures, without a text. Recognise it first: ocrmypdf {file} {stem}.ocr.pdf")
    text = "\n".join(line for page in pages for block in page for line in block.lines)
    if len(_UNMAPPED.findall(text)) * 20 > len(text.split()):
        why = "PDF whose fonts do not say which letters they draw"
        raise InputError(f"{why}. Recognise its text: ocrmypdf --force-ocr {file} {stem}.ocr.pdf")
    page_ends, blocks = _without_running_heads(pages)
    parts = []
    for block in _joined_blocks(_set_off(blocks, titles)):
        text = "\n".join(block)
        parts.append(heading_line(text, 2) if _squeezed(text) in titles else plain_lines(text))
    return joined_parts([*parts, aside(" ".join(page_ends))])


@dataclass
class _Printed:
    """Lines that stand together on a page."""

    height: float  # of the first above the foot of the page
    lines: list[str]


def _pdf_pages(data: bytes, unlock: str) -> tuple[list[list[_Printed]], set[str]]:
    """Blocks of each page, and the titles of the outline, squeezed. unlock: a command."""
    from pdfminer.high_level import extract_pages
    from pdfminer.layout import LAParams
    from pdfminer.pdfdocument import PDFDocument, PDFNoOutlines, PDFPasswordIncorrect
    from pdfminer.pdfparser import PDFParser

    logging.getLogger("pdfminer").setLevel(logging.ERROR)
    try:
        document = PDFDocument(PDFParser(io.BytesIO(data)))
        try:
            titles = {_squeezed(str(title)) for _, title, *_ in document.get_outlines()}
        except PDFNoOutlines:
            titles = set()
        for margin in (0.5, _WIDE):  # the greatest distance of a paragraph's lines, in their heights
            layout = extract_pages(io.BytesIO(data), laparams=LAParams(all_texts=True, line_margin=margin))
            pages = [list(_pdf_blocks(page)) for page in layout]
            if not _is_wide(pages):
                break
    except PDFPasswordIncorrect:
        raise InputError(f"PDF that a password locks. Unlock it: {unlock}") from None
    except Exception as error:  # whatever the library raises of a damaged file
        raise InputError(
            f"PDF that cannot be read ({' '.join(str(error).split()) or type(error).__name__})"
        ) from None
    return pages, titles - {""}


_WIDE = 1.3  # of manuscripts in double line spacing


def _is_wide(pages: list[list[_Printed]]) -> bool:
    """Whether lines stand so far apart that each seems a paragraph: many go on with a sentence in small letters."""
    blocks = [block for page in pages for block in page]
    go_on = sum(len(block.lines) == 1 and block.lines[0][0].islower() for block in blocks)
    return go_on > 2 and go_on * 3 > len(blocks)


def _pdf_blocks(part: Any) -> Iterator[_Printed]:
    from pdfminer.layout import LTContainer, LTTextBox, LTTextLine

    for element in part:
        if isinstance(element, LTTextBox):
            lines = [line for line in element if isinstance(line, LTTextLine)]
            yield from _by_font(lines)
        elif isinstance(element, LTContainer):
            yield from _pdf_blocks(element)


def _by_font(lines: list[Any]) -> Iterator[_Printed]:
    """Lines of a box, apart where a line of another font stands before one that begins anew."""
    block = _Printed(0, [])
    before = None
    for line in lines:
        text, font = _pdf_line(line)
        if not text:
            continue
        if block.lines and font != before and not text[0].islower() and not block.lines[-1].endswith("-"):
            yield block
            block = _Printed(0, [])
        block = _Printed(block.height or line.y1, [*block.lines, text])
        before = font
    if block.lines:
        yield block


def _pdf_line(line: Any) -> tuple[str, tuple[str, int]]:
    """A line's text with exponents marked as such, and the font and size of most of it."""
    from pdfminer.layout import LTChar

    letters = [c for c in line if isinstance(c, LTChar) and not c.get_text().isspace()]
    if not letters:
        return "", ("", 0)
    (font, size), _ = Counter((c.fontname, round(c.size)) for c in letters).most_common(1)[0]
    base = min(c.y0 for c in letters if round(c.size) == size)
    words, raised = "", False
    for c in line:
        was, raised = raised, isinstance(c, LTChar) and c.size < 0.85 * size and c.y0 > base + 0.15 * size
        exponent = raised and not was and words[-1:].isdigit() and c.get_text() in "0123456789-−–"
        words += ("^" if exponent else "") + c.get_text()
    return " ".join(words.split()), (font, size)


def _without_running_heads(pages: list[list[_Printed]]) -> tuple[list[str], list[list[str]]]:
    """What stands at the top or the bottom of pages, page numbers and what three pages or more have alike; and the
    blocks of all pages without it."""
    alike = Counter(_without_numbers(block.lines[0]) for page in pages for block in _ends(page))
    page_ends, blocks = [], []
    for page in pages:
        ends = _ends(page)
        for block in page:
            line = block.lines[0]
            if block in ends and (_PAGE_NUMBER.fullmatch(line) or alike[_without_numbers(line)] >= 3):
                page_ends.append(line)
            else:
                blocks.append(block.lines)
    return page_ends, blocks


def _ends(page: list[_Printed]) -> list[_Printed]:
    """The highest and the lowest block of a page, where they are of one line."""
    ordered = sorted(page, key=lambda block: block.height)
    return [
        block
        for block in {id(block): block for block in ordered[:1] + ordered[-1:]}.values()
        if len(block.lines) == 1
    ]


def _without_numbers(line: str) -> str:
    return re.sub(r"\d+", "0", line)


def _squeezed(title: str) -> str:
    """Letters and digits alone, without the number of a section."""
    return "".join(c for c in re.sub(r"^[\d.]+\s", "", title.strip()).lower() if c.isalnum())


def _set_off(blocks: list[list[str]], titles: set[str]) -> Iterator[list[str]]:
    """Blocks in which a line that is the name of a section stands alone."""
    for block in blocks:
        start = 0
        for n, line in enumerate(block):
            if _squeezed(line) in titles or is_section_name(line):
                yield from (part for part in (block[start:n], [line]) if part)
                start = n + 1
        if block[start:]:
            yield block[start:]


def _joined_blocks(blocks: Iterator[list[str]]) -> Iterator[list[str]]:
    """Blocks of which one that begins in small letters goes on with the sentence before it."""
    before: list[str] = []
    for block in blocks:
        if before and block[0][0].islower() and not re.search(r"[.!?:][\"”’)]*$", before[-1]):
            before = [*before, *block]
            continue
        if before:
            yield before
        before = block
    if before:
        yield before
