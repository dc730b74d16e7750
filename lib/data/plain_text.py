"""Plain text as documents. Every sign is text; the layout gives paragraphs and headings.

* A blank line, or a line of dashes, stars and the like, ends a paragraph. Indentation has no
  meaning.
* A heading is a line `# Heading` without a full stop at its end, or a line that is underlined. In a
  text without any, known names of sections and "1. CAPITALS" are headings, and a short first line
  is the title.
  Directly above a paragraph, they, a line in capitals and one with a number are apart if the next
  word had room behind them.
* `> ` and bullets before a letter are layout: they begin a new line and are no words.
* Turns of a chat, items with numbers and the like begin anew: see `lib.data.line_heads`. Columns,
  tables and what is no part of a text: see `lib.data.layout`.
* A form feed, or a number between dashes, ends a page. Page numbers and running heads beside it
  are not read, and a sentence may go on on the next page.
"""

import re
from collections import Counter
from itertools import pairwise

from lib.data.characters import join_lines
from lib.data.documents import Document, checked_text
from lib.data.layout import in_columns, without_edge, without_frame, without_tables
from lib.data.line_heads import heads, is_apart
from lib.data.pages import join_pages, split_heads
from lib.data.sentences import begins_sentence
from lib.data.texts import ORNAMENT, Text, is_section_name

_MARKED = re.compile(r"(#{1,6})\s+(.*[^\s.#])[\s#]*")
_UNDERLINE = re.compile(r"={3,}|-{3,}|~{3,}")
_TITLE = re.compile(r"[A-Z“\"][^:|\n]*[\w?!)”]")
# "1. SERVICES", "ACT I"
_NUMBERED = re.compile(
    r"(?:\d{1,2}|[IVX]{1,5})[.)] [^a-z]*[A-Z]{3}[^a-z]*"
    r"|(?:ACT|ARTICLE|SCENE|SECTION) (?:\d{1,2}|[IVX]{1,5})\b[^a-z]*"
)
# "2.1 Sites", "3. Any other business"; and "2.1 L. Green asked why" is none
_NUMBERED_LINE = re.compile(r"(?P<number>\d{1,2}(?:\.\d{1,2})*)\.? [A-Z“\"][^.!?:;]*[^\W_]")
_BULLET = re.compile(r"^([-*+•‣▪●◦])\s+(?:\[[ xX]\]\s+)?(?=\S)")
_AMOUNT = re.compile(r"[-*+]\s+\d")
_QUOTATION = re.compile(r"^(?:>\s?)+(?=[^\W\d]|[\"'“‘(\[]|[\W_]*$)")

_PAGE_END = re.compile(
    r"^[ \t]*(?:([-–—])\s?\d{1,4}\s?\1|[Pp]age \d{1,4}(?: of \d{1,4})?)[ \t]*$", re.MULTILINE
)
COLUMN_WIDTH = 40  # in characters, at least, of a paragraph in lines
UNWRAPPED_WIDTH = 100  # of a line, at least, behind which a person ended a paragraph
_THAI_OR_LAO = re.compile("[\u0e00-\u0eff]")


def parse_text(text: str | Text, name: str = "", paragraphs: bool = False) -> Document:
    """Make a document without a summary, of plain text or of what a reader found in a file.

    paragraphs: make each paragraph a section. Raises InputError for a text without a sentence.
    """
    found = text if isinstance(text, Text) else plain_text(text)
    return found.document(name, paragraphs)


def plain_text(text: str) -> Text:
    """Find the headings and the paragraphs of plain text."""
    found = Text()
    text = without_edge(without_frame(checked_text(text, "text"), found))
    text = without_tables(text, found)
    if 2 * len(_THAI_OR_LAO.findall(text)) > len(text):
        found.notes.append("Thai and Lao mark no end of a sentence: each line is read as one")
    pages = [page.split("\n") for page in _PAGE_END.sub("\\g<0>\f", text).split("\f")]
    running: list[str] = []
    if len(pages) > 1:
        pages, running = split_heads(pages, str)
    for head in running:
        found.leave_out("page numbers and running heads", head)
    blocks = _blocks(join_pages([part for page in pages for part in in_columns(page, found)]))
    is_marked = any(level for level, _ in blocks)
    for number, (level, block) in enumerate(blocks):
        following = blocks[number + 1][1] if number + 1 < len(blocks) else []
        words = " ".join(block)
        if not is_marked and following:
            if is_section_name(words) or _is_numbered_heading(words, " ".join(following)):
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
        elif not line or ORNAMENT.fullmatch(line):
            is_underlined = len(block) == 1 and bool(_UNDERLINE.fullmatch(line))
            level = (1 if line[0] == "=" else 2) if is_underlined else 0
            blocks.append((level if level and _can_be_heading(block[0]) else 0, block))
            block = []
        else:
            block.append(" ".join(line.split()))
    parts: list[tuple[int, list[str]]] = []
    for level, lines in blocks:
        while len(lines) > 1 and _begins_with_heading(lines, is_first=not parts):
            parts.append((0, lines[:1]))
            is_speech = lines[0].isupper()
            lines = lines[1:]
            if is_speech and _is_verse(lines):
                parts += [(0, [line]) for line in lines]
                lines = []
        if lines:
            parts.append((level, lines))
    return parts


def _begins_with_heading(lines: list[str], is_first: bool) -> bool:
    """Return whether the first line of a block does not go on in the second one, though it has room
    for its first word: it is in capitals, the name of a section, has a number or, above a wrapped
    paragraph that begins a text, is a title; so are short lines above long ones."""
    first, *rest = lines
    width = max(map(len, rest))
    if len(first) + 1 + len(rest[0].split()[0]) > max(width, COLUMN_WIDTH) or first[-1] in ",;:-":
        return False
    is_prose = rest[-1][-1] in '.!?”"'
    if (first.isupper() and len(first) > 2) or is_section_name(first):
        return not rest[0].isupper() and not (rest[0][0].islower() and is_prose)
    if numbered := _NUMBERED_LINE.fullmatch(first):
        is_above = rest[0][0].isupper() or rest[0].startswith(f"{numbered['number']}.")
        return is_prose and is_above and heads(lines)[0] != "item"
    is_wrapped = len(rest) > 1 and all(10 * len(line) > 7 * width for line in rest[:-1])
    is_short = 2 * len(first) <= width and bool(_TITLE.fullmatch(first))
    is_above = (is_first and is_wrapped) or (len(rest[0]) >= UNWRAPPED_WIDTH and is_prose)
    return is_above and is_short and rest[0][0].isupper()


def _is_verse(lines: list[str]) -> bool:
    """Return whether all lines begin with a capital, one of them within a sentence and with a word
    that is no name."""
    within = [line for last, line in pairwise(lines) if last[-1] not in '.?!:”"']
    are_capital = all(line[0].isupper() for line in lines)
    return are_capital and any(begins_sentence(line) and line[:2] != "I " for line in within)


def _can_be_heading(line: str) -> bool:
    """Return whether a line has no end and begins with a capital or a number."""
    return line[-1] not in ".,;:" and not line[0].islower()


def _is_numbered_heading(line: str, following: str) -> bool:
    """Return whether a line has a number and capitals, and no other such line is below it."""
    is_numbered = bool(_NUMBERED.fullmatch(line)) and line[-1] not in ".,;:"
    return is_numbered and not following.isupper()


def _is_title(line: str, following: str) -> bool:
    """Return whether a first line is short, without an end (or a question), and before prose."""
    is_prose = len(following.split()) > 7 and following[-1] in '.?!”"'
    is_short = len(line.split()) <= 15
    return is_prose and is_short and bool(_TITLE.fullmatch(line))


def _without_marks(lines: list[str]) -> list[str]:
    """Return the items and the other parts of a paragraph, without the marks of items and
    quotations. A sign before a number stays: it may belong to the number."""
    parts: list[list[str]] = [[]]
    begins = _item_begins(lines)
    width = max(map(len, lines))
    was_quoted = is_item = False
    for line, head, before, begins_item in zip(lines, heads(lines), ["", *lines], begins):
        quotation = _QUOTATION.match(line)
        is_quoted = bool(quotation)
        words = line[quotation.end() :] if quotation else line
        if ORNAMENT.fullmatch(words):
            words = ""
        is_behind = is_item and (bool(head) or is_apart(before, words, width))
        if begins_item or is_behind or is_quoted != was_quoted:
            parts.append([])
            is_item = begins_item
        if begins_item and not _AMOUNT.match(words):
            words = _BULLET.sub("", words, count=1)
        if words and is_item and parts[-1] and parts[-1][-1][-1] not in "-\u2010":
            # an item is one text, whatever its last sign
            parts[-1][-1] = join_lines([parts[-1][-1], words])
        elif words:
            parts[-1].append(words)
        else:  # a blank line in a quotation, or a dash, ends a paragraph, too
            parts.append([])
            is_item = False
        was_quoted = is_quoted
    return ["\n".join(part) for part in parts if part]


def _item_begins(lines: list[str]) -> list[bool]:
    """Return for each line of a paragraph whether it begins an item.

    Items are several, or follow a colon, or have a round mark: in prose a line may begin with a
    dash, and with "- 5" that belongs to the sentence. `split_sentences` finds items with numbers.
    """
    signs = [_sign(line) for line in lines]
    counts = Counter(signs)
    kinds = Counter(sign[:1] for sign in signs)
    before = [":", *lines]
    sure = set()
    for sign, last in zip(signs, before):
        is_in_list = last.endswith(":") and (sign == "-" or kinds[sign[:1]] > 1)
        if sign and (counts[sign] > 1 or sign == "•" or is_in_list):
            sure.add(sign[0])
    return [sign[:1] in sure for sign in signs]


def _sign(line: str) -> str:
    """Return the kind of sign at the head of a line: of an item or an amount."""
    words = _QUOTATION.sub("", line, count=1) if _QUOTATION.match(line) else line
    bullet = _BULLET.match(words)
    if not bullet:
        return ""
    is_amount = bool(_AMOUNT.match(words))
    if is_amount and bullet[1] == "+":  # no item beside "- 5"
        return "+5"
    kind = "-" if bullet[1] in "-*+" else "•"
    return f"{kind}5" if is_amount else kind
