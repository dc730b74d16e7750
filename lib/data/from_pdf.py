"""The running text of a PDF, by the layout analysis of pdfminer.six (the extra `files`)."""

import io
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from lib.data.pages import ENDED, goes_on, split_heads
from lib.data.raised import CITED, script, without_citations
from lib.data.texts import Text, is_section_name
from lib.system.errors import InputError

# what programs put in place of a title
_NO_TITLE = re.compile(r"^Microsoft |^untitled|\.\w{2,4}$|^\S*$", re.IGNORECASE)
_CAPTION = re.compile(r"(?:Figure|Fig\.|Table|Algorithm|Listing|Scheme) [A-Z]?\d+[a-z]?\s?[:.|–—]")
_CONTENTS = re.compile(r"(?:\. ?){4,}\s*\w{1,5}$", re.MULTILINE)
_NUMBERS = re.compile(r"[^\w\s]*\d\S*|[^\w\s]+")
_BOLD = re.compile(r"bold|medi|black|heavy|-b$|cmbx", re.IGNORECASE)
_ABSTRACT = re.compile(r"abstract\s*(?:[.:—–-]|\n|$)", re.IGNORECASE)
_SIZES = {"small": 0.91, "raised": 0.85, "large": 1.15}  # in shares of the size of the text
_TWICE = 0.1  # less than from one i to the next, in shares of the size of a letter
_HEADING_WORDS = 12
_TITLE_WORDS = 30
_PROSE_WORDS = 25
_LINE_NUMBERS = 4  # at least, on a page of a manuscript


class _Body(NamedTuple):
    """How the letters of most words look."""

    size: float
    is_bold: bool


@dataclass(frozen=True)
class _Block:
    """A box of lines, in points."""

    text: str
    box: tuple[float, float, float, float]  # left, bottom, right, top
    size: float  # of most of its letters
    is_bold: bool  # all of them
    is_low: bool  # in the lowest quarter of its page
    is_in_figure: bool

    def is_above(self, other: "_Block") -> bool:
        """Return whether a block is above another one in the same column."""
        left, bottom, right, _ = self.box
        other_left, _, other_right, other_top = other.box
        overlap = min(right, other_right) - max(left, other_left)
        narrower = min(right - left, other_right - other_left)
        return bottom >= other_top - 2 and 4 * overlap > narrower


def pdf_text(data: bytes, name: str) -> Text:
    """Read paragraphs in their order.

    Page numbers, running heads, line numbers, footnotes, captions, tables of numbers, the names
    before the abstract and the references are set aside. Raises InputError, with what to do, for a
    PDF that is locked, damaged or without text. name: for its commands.
    """
    pages, title, beside = _pages(data, name)
    kept, heads = split_heads(pages, lambda block: block.text)
    blocks = list(chain.from_iterable(kept))
    found = Text(title="" if _NO_TITLE.search(title) else title)
    found.leave_out("turned text, line numbers and letters drawn twice", beside)
    for head in heads:
        found.leave_out("page numbers and running heads", head)
    inside = [block for block in blocks if block.is_in_figure]
    if 2 * len(inside) < len(blocks):  # otherwise the figure holds the page
        blocks = [block for block in blocks if not block.is_in_figure]
        found.leave_out("figures", " ".join(block.text for block in inside))
    looks = Counter((block.size, block.is_bold) for block in blocks for _ in block.text.split())
    if blocks:
        _add_blocks(blocks, _Body(*looks.most_common(1)[0][0]), found)
    return found


def _pages(data: bytes, name: str) -> tuple[list[list[_Block]], str, str]:
    """Return the blocks of each page, the title in the facts of the file, and what
    `_remove_beside` removes."""
    from pdfminer.pdfdocument import PDFPasswordIncorrect
    from pdfminer.utils import decode_text

    file, stem = shlex.quote(name), shlex.quote(Path(name).stem)
    try:
        layouts, facts, beside = _layouts(data)
        pages = [_in_order(_blocks(layout, layout.height / 4)) for layout in layouts]
    except PDFPasswordIncorrect:
        unlock = f"qpdf --password=PASSWORD --decrypt {file} {stem}.open.pdf"
        raise InputError(f"PDF that a password locks. Unlock it: {unlock}") from None
    except Exception as error:  # pdfminer does not say which
        raise InputError(f"PDF that cannot be read ({error or type(error).__name__})") from None
    words = " ".join(block.text for page in pages for block in page).split()
    if not words or 20 * sum("(cid:" in word or "\ufffd" in word for word in words) > len(words):
        raise InputError(
            f"PDF of pictures, without a text. Recognise it first: ocrmypdf {file} {stem}.ocr.pdf"
        )
    titles = (of["Title"] for of in facts if isinstance(of.get("Title"), bytes))
    return pages, decode_text(next(titles, b"")), beside


def _layouts(data: bytes) -> tuple[list[Any], list[dict], str]:
    """Return the pages with their boxes, the facts of the file, and what `_remove_beside`
    removes, which is in no box."""
    from pdfminer.converter import PDFPageAggregator
    from pdfminer.layout import LAParams
    from pdfminer.pdfdocument import PDFDocument
    from pdfminer.pdfinterp import PDFPageInterpreter, PDFResourceManager
    from pdfminer.pdfpage import PDFPage
    from pdfminer.pdfparser import PDFParser

    document = PDFDocument(PDFParser(io.BytesIO(data)))
    resources = PDFResourceManager()
    device = PDFPageAggregator(resources, laparams=None)
    interpreter = PDFPageInterpreter(resources, device)
    layouts, beside = [], []
    for page in PDFPage.create_pages(document):
        interpreter.process_page(page)
        layout = device.get_result()
        beside += _remove_beside(layout)
        layout.analyze(LAParams(all_texts=True))
        layouts.append(layout)
    return layouts, document.info, " ".join(beside)


def _remove_beside(layout: Any) -> list[str]:
    """Remove text that is turned, as arXiv's stamp, letters that are drawn twice to look bold, and
    the numbers of lines in the margin; return them."""
    from pdfminer.layout import LTChar, LTFigure

    beside = []
    for figure in [part for part in layout if isinstance(part, LTFigure)]:
        beside += _remove_beside(figure)
    chars = [part for part in layout if isinstance(part, LTChar)]
    turned = [char for char in chars if char.matrix[1] != 0]
    twice = _drawn_twice(char for char in chars if char.matrix[1] == 0)
    gone = {id(char) for char in [*turned, *twice]}
    numbers = _line_numbers([char for char in chars if id(char) not in gone])
    gone |= {id(char) for char in chain.from_iterable(numbers)}
    layout._objs = [part for part in layout if id(part) not in gone]
    return [*beside, *(_letters(chars) for chars in [turned, twice, *numbers])]


def _drawn_twice(chars: Iterable[Any]) -> list[Any]:
    """Return the letters that are drawn again at nearly the same place."""
    drawn: dict[tuple[str, int], list[Any]] = {}
    twice = []
    for char in chars:
        row = round(char.y0)
        near = [drawn.get((char.get_text(), y), []) for y in (row - 1, row, row + 1)]
        shifts = (
            max(abs(char.x0 - other.x0), abs(char.y0 - other.y0))
            for other in chain.from_iterable(near)
        )
        if any(shift < _TWICE * char.size for shift in shifts):
            twice.append(char)
        else:
            drawn.setdefault((char.get_text(), row), []).append(char)
    return twice


def _letters(chars: Iterable[Any]) -> str:
    return "".join(char.get_text() for char in chars)


def _line_numbers(chars: list[Any]) -> list[list[Any]]:
    """Return the digits of each number that begins a line, if the numbers rise by one step."""
    rows: dict[int, list[Any]] = {}
    for char in chars:
        rows.setdefault(round(char.y0), []).append(char)
    numbers = []
    for _, row in sorted(rows.items(), reverse=True):
        row.sort(key=lambda char: char.x0)
        digits = []
        for char in row:
            if not char.get_text().isdigit() or (digits and char.x0 - digits[-1].x1 > char.size):
                break
            digits.append(char)
        rest = row[len(digits) :]
        if digits and (not rest or rest[0].x0 - digits[-1].x1 > 0.4 * digits[-1].size):
            numbers.append(digits)
    values = [int(_letters(digits)) for digits in numbers]
    steps = Counter(b - a for a, b in pairwise(values))
    step, count = max(steps.items(), key=lambda pair: pair[1], default=(0, 0))
    is_many = count + 1 >= max(_LINE_NUMBERS, 0.8 * len(values), len(rows) / 15)
    return numbers if step > 0 and is_many else []


def _in_order(blocks: Iterable[_Block]) -> list[_Block]:
    """Return the blocks of a page in pdfminer's order, but none behind what is below it."""
    ordered: list[_Block] = []
    for block in blocks:
        places = (place for place, other in enumerate(ordered) if block.is_above(other))
        ordered.insert(next(places, len(ordered)), block)
    return ordered


def _blocks(part: Any, low: float, is_in_figure: bool = False) -> Iterator[_Block]:
    """Yield the boxes on a page, at any depth, with a line each for their lines."""
    from pdfminer.layout import LTChar, LTContainer, LTTextBox

    for element in part:
        if isinstance(element, LTTextBox):
            lines = [line for line in map(_line, element) if line]
            chars = [char for line in element for char in line if isinstance(char, LTChar)]
            letters = [char for char in chars if not char.get_text().isspace()]
            if lines:
                sizes = Counter(round(char.size, 1) for char in letters)
                is_bold = all(_BOLD.search(char.fontname) for char in letters)
                yield _Block(
                    text="\n".join(lines),
                    box=element.bbox,
                    size=sizes.most_common(1)[0][0],
                    is_bold=is_bold,
                    is_low=element.y1 < low,
                    is_in_figure=is_in_figure,
                )
        elif isinstance(element, LTContainer):
            yield from _blocks(element, low, is_in_figure=True)


def _line(line: Any) -> str:
    """Return a line, in which raised digits become exponents (10^5) or, after a word, are left out
    as citations."""
    from pdfminer.layout import LTChar

    chars = [char for char in line if isinstance(char, LTChar)]
    size = max((char.size for char in chars), default=0)
    is_large = [char.size > _SIZES["raised"] * size for char in chars]
    base = min((char.y0 for char, large in zip(chars, is_large) if large), default=0)
    text, raised = "", ""
    for char in [*line, None]:
        is_raised = (
            isinstance(char, LTChar)
            and char.size < _SIZES["raised"] * size
            and char.y0 > base + 0.15 * size
        )
        if is_raised:
            raised += char.get_text()
            continue
        if raised and char is not None and not isinstance(char, LTChar):
            continue  # a space that the analysis put around a raised sign
        if raised:
            text = _with_raised(text, raised, char)
            raised = ""
        text += char.get_text() if char is not None else ""
    return without_citations(text)


def _with_raised(text: str, raised: str, following: Any) -> str:
    after = following.get_text() if following is not None else ""
    if not re.search(r"\d", raised):
        return text + raised
    written = script("sup", raised, text.rstrip() or " ", after)
    is_space = CITED not in written and after[:1].isalnum()
    return text.rstrip() + written + " " * (is_space or CITED in written)


def _without_front(blocks: list[_Block], body: _Body, found: Text) -> list[_Block]:
    """Return the blocks after title, names and addresses.

    The title is in the largest letters before the abstract, or before the first paragraph.
    """
    begins = (place for place, block in enumerate(blocks[:60]) if _ABSTRACT.match(block.text))
    start = next(begins, 0)
    front = list(takewhile(lambda block: not _is_prose(block), blocks[: start or None]))
    title = max(front, key=lambda block: block.size, default=blocks[0])
    words = title.text.split()
    if title.size > _SIZES["large"] * body.size and len(words) <= _TITLE_WORDS:
        found.title = found.title or " ".join(words)
        found.leave_out("headings", title.text)
        blocks = [block for block in blocks if block is not title]
        start -= 1
    kept = []
    for place, block in enumerate(blocks):
        if place < start and len(block.text.split()) < _PROSE_WORDS:
            found.leave_out("names before the abstract", block.text)
        else:
            kept.append(block)
    return kept


def _is_prose(block: _Block) -> bool:
    words = block.text.split()
    return len(words) >= _PROSE_WORDS or (len(words) > 8 and bool(ENDED.search(block.text)))


def _add_blocks(blocks: list[_Block], body: _Body, found: Text) -> None:
    """Add headings and paragraphs, of which one may go on in the next block of text."""
    paragraph, is_reference = "", False
    for block in _without_front(blocks, body, found):
        heading, _, rest = block.text.partition("\n")
        level = 2 if is_section_name(heading) else 0
        if not level and _is_heading(block, body):
            heading, rest, level = block.text, "", 3
        if level:
            found.add_paragraph(paragraph)
            paragraph = rest
            is_reference = bool(re.search("(?i)^[\\d. ]*(references|bibliography)", heading))
            found.add_heading(heading, level)
        elif kind := "references" if is_reference else _kind_beside(block, body):
            found.leave_out(kind, block.text)
        elif goes_on(paragraph, block.text):
            paragraph += "\n" + block.text
        else:
            found.add_paragraph(paragraph)
            paragraph = block.text
    found.add_paragraph(paragraph)


def _is_heading(block: _Block, body: _Body) -> bool:
    """Return whether a block is short, without an end, and bold or in large letters."""
    words = block.text.split()
    is_large = block.size > _SIZES["large"] * body.size
    is_marked = is_large or (block.is_bold and not body.is_bold)
    is_short = len(words) <= _HEADING_WORDS and not re.search(r"[.,;:]$|\.{4}", block.text)
    return is_marked and is_short and any(word[0].isupper() for word in words)


def _kind_beside(block: _Block, body: _Body) -> str:
    """Return what a block is that does not belong to the text, or an empty string."""
    words = block.text.split()
    if _CAPTION.match(block.text):
        return "captions"
    if _CONTENTS.search(block.text):
        return "table of contents"
    numbers = sum(bool(_NUMBERS.fullmatch(word)) for word in words)
    if 2 * numbers > len(words) and len(re.findall(r"[^\W\d_]{3,}", block.text)) < 2:
        return "tables and formulas"
    if block.is_low and block.size < _SIZES["small"] * body.size:
        return "footnotes"
    return ""
