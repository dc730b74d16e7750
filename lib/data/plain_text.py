"""Plain text as documents. Every sign is text; the layout gives paragraphs and headings.

* A blank line, or a line of dashes, stars and the like, ends a paragraph. Indentation has no
  meaning.
* A heading is a line `# Heading` without a full stop at its end, or a line that is underlined. In a
  text without any, known names of sections are headings, and a short first line is the title.
* `> ` and bullets before a letter are layout: they begin a new line and are no words.
* A form feed begins a page. Page numbers and running heads beside it are not read, and a sentence
  may go on on the next page.
"""

import re
from collections import Counter

from lib.data.documents import Document, checked_text
from lib.data.pages import join_pages, split_heads
from lib.data.texts import Text, is_section_name

_ORNAMENT = re.compile(r"[\s*=_~#+|·•—–-]+")
_MARKED = re.compile(r"(#{1,6})\s+(.*[^\s.#])[\s#]*")
_UNDERLINE = re.compile(r"={3,}|-{3,}|~{3,}")
_BULLET = re.compile(r"([-*+•‣▪●◦])\s+(?:\[[ xX]\]\s+)?(?=\S)")
_AMOUNT = re.compile(r"[-*+]\s+\d")
_QUOTATION = re.compile(r"(?:>\s?)+(?=[^\W\d]|[\"'“‘(\[]|$)")
_NUMBERED = re.compile(r"\(?(?:\d{1,2}|[a-z])[.)]\s+\S")


def parse_text(text: str | Text, name: str = "", paragraphs: bool = False) -> Document:
    """Make a document without a summary, of plain text or of what a reader found in a file.

    paragraphs: make each paragraph a section. Raises InputError for a text without a sentence.
    """
    found = text if isinstance(text, Text) else plain_text(text)
    return found.document(name, paragraphs)


def plain_text(text: str) -> Text:
    """Find the headings and the paragraphs of plain text."""
    found = Text()
    pages = [page.split("\n") for page in checked_text(text, "text").split("\f")]
    heads: list[str] = []
    if len(pages) > 1:
        pages, heads = split_heads(pages, str)
    for head in heads:
        found.leave_out("page numbers and running heads", head)
    blocks = _blocks(join_pages(pages))
    is_marked = any(level for level, _ in blocks)
    for number, (level, block) in enumerate(blocks):
        following = blocks[number + 1][1] if number + 1 < len(blocks) else []
        words = " ".join(block)
        if not is_marked and following:
            if is_section_name(words):
                level = 2
            elif number == 0 and len(block) == 1 and _is_title(words, " ".join(following)):
                level = 1
        if level:
            found.add_heading(words, level)
        else:
            for lines in _without_marks(block):
                found.add_paragraph(lines)
    return found


def _blocks(lines: list[str]) -> list[tuple[int, list[str]]]:
    """Return headings with their levels, and paragraphs in lines with level 0."""
    blocks: list[tuple[int, list[str]]] = []
    block: list[str] = []
    for line in [*map(str.strip, lines), ""]:
        if marked := _MARKED.fullmatch(line):
            blocks += [(0, block), (len(marked[1]), [marked[2]])]
            block = []
        elif not line or _ORNAMENT.fullmatch(line):
            is_underlined = len(block) == 1 and bool(_UNDERLINE.fullmatch(line))
            level = (1 if line[0] == "=" else 2) if is_underlined else 0
            blocks.append((level if level and _can_be_heading(block[0]) else 0, block))
            block = []
        else:
            block.append(" ".join(line.split()))
    return [(level, lines) for level, lines in blocks if lines]


def _can_be_heading(line: str) -> bool:
    """Return whether a line has no end and begins with a capital or a number."""
    return line[-1] not in ".,;:" and not line[0].islower()


def _is_title(line: str, following: str) -> bool:
    """Return whether a first line is short, without an end (or a question), and before prose."""
    is_prose = len(following.split()) > 7 and following[-1] in '.?!”"'
    is_short = len(line.split()) <= 15
    return is_prose and is_short and bool(re.fullmatch(r"[A-Z“\"][^:|\n]*[\w?!)”]", line))


def _without_marks(lines: list[str]) -> list[str]:
    """Return the items and the other parts of a paragraph, without the marks of items and
    quotations. A sign before a number stays: it may belong to the number."""
    parts: list[list[str]] = [[]]
    bullets = Counter(bullet[1] for line in lines if (bullet := _BULLET.match(line)))
    items = sum(bool(_BULLET.match(line)) and not _AMOUNT.match(line) for line in lines)
    numbered = sum(bool(_NUMBERED.match(line)) for line in lines)
    was_quoted, is_item, last = False, False, ":"
    for line in lines:
        quotation = _QUOTATION.match(line)
        is_quoted = bool(quotation)
        words = line[quotation.end() :] if quotation else line
        bullet = _BULLET.match(words)
        count = 0 if not bullet else bullets[bullet[1]] if _AMOUNT.match(words) else items
        if bullet and (count > 1 or last.endswith(":") or bullet[1] in "•‣▪●◦"):
            parts.append([])
            is_item = True
            words = words if _AMOUNT.match(words) else words[bullet.end() :]
        elif is_quoted != was_quoted or (numbered > 1 and _NUMBERED.match(words)):
            parts.append([])
            is_item = is_quoted == was_quoted
        if words:
            goes_on = parts[-1] and is_item and not parts[-1][-1].endswith(("-", "\u2010"))
            parts[-1] = [" ".join([*parts[-1], words])] if goes_on else [*parts[-1], words]
        was_quoted, last = is_quoted, line
    return ["\n".join(part) for part in parts if part]
