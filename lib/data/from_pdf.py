"""The running text of a PDF as Markdown, by the layout analysis of pdfminer.six (the extra `files`)."""

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

_PAGE_NUMBER = re.compile(r"(?i:page\s*)?[-–—\[(]?\s*(?:\d{1,4}|[ivxlc]+)\s*(?:[-–—\])]|(?:of|/)\s*\d+)?")
_ENDED = re.compile(r"[.!?:][\"”’)]*$")


def pdf_text(data: bytes, name: str) -> str:
    """Return paragraphs in reading order; set page numbers and running heads aside.

    Raises InputError, with what to do, for a PDF that is locked, damaged or without text. name: for its command.
    """
    from pdfminer.high_level import extract_pages
    from pdfminer.layout import LAParams

    file, stem = shlex.quote(name), shlex.quote(Path(name).stem)
    try:
        layout = extract_pages(io.BytesIO(data), laparams=LAParams(all_texts=True))
        pages = [[block for block in _blocks(page) if block] for page in layout]
    except Exception as error:  # pdfminer does not say which
        raise InputError(f"PDF that cannot be read ({error or type(error).__name__})") from None
    words = " ".join(block for page in pages for block in page).split()
    if not words or 20 * sum("(cid:" in word or "\ufffd" in word for word in words) > len(words):
        raise InputError(f"PDF of pictures, without a text. Recognise it first: ocrmypdf {file} {stem}.ocr.pdf")
    heads = Counter(re.sub(r"\d+", "0", block) for page in pages for block in {*page[:1], *page[-1:]})
    paragraphs, beside = [""], []
    for page in pages:
        for block in page:
            at_an_end = block in (page[0], page[-1])
            if at_an_end and (_PAGE_NUMBER.fullmatch(block) or heads[re.sub(r"\d+", "0", block)] > 2):
                beside.append(block)
            elif block[0].islower() and not _ENDED.search(paragraphs[-1]):
                paragraphs[-1] += "\n" + block  # goes on in the next column or on the next page
            else:
                heading, _, rest = block.partition("\n")
                paragraphs += [heading, rest] if is_section_name(heading) else [block]
    parts = [heading_line(p, 2) if is_section_name(p) else plain_lines(p) for p in paragraphs]
    return joined_parts([*parts, aside(" ".join(beside))])


def _blocks(part: Any) -> Iterator[str]:
    """Yield the texts of the boxes on a page, at any depth, a line each for their lines."""
    from pdfminer.layout import LTContainer, LTTextBox

    for element in part:
        if isinstance(element, LTTextBox):
            lines = (" ".join(line.split()) for line in element.get_text().splitlines())
            yield "\n".join(filter(None, lines))
        elif isinstance(element, LTContainer):
            yield from _blocks(element)
