"""What plain text draws with spaces and signs: columns, tables, and what programs put around it."""

import re
from collections import Counter
from statistics import mean

from lib.data.texts import Text

_GUTENBERG = re.compile(
    r"\*{3} ?(START|END) OF (?:THE|THIS) PROJECT GUTENBERG[^*]*\*{3}", re.IGNORECASE
)
_TITLE = re.compile(r"^Title:\s*(.+)$", re.MULTILINE)
# RFC 3676: two dashes and a space, alone in a line, are above a signature.
_SIGNATURE = re.compile(r"^((?:> ?)*)-- \n((?:\1(?!>).*\S.*(?:\n|\Z)){1,10})", re.MULTILINE)

# A line of a page whose edge was recognised as a bar; a row of a table has a bar between its cells.
_EDGE = re.compile(r"^[ \t]*\|[ \t]([^|\n]*)\|?[ \t]*$", re.MULTILINE)
_GAP = re.compile(r"(?<=\S)(?:\s{3,})(?=\S)")
COLUMN_LINES = 5  # with a gap at the same place, at least
COLUMN_WORDS = 2.5  # in the mean, on each side: fewer are those of a table
_NUMBER = re.compile(r"\W*\d[^a-zA-Z]*")
_RULE = re.compile(r"[\s|:+=-]+")
_ENDS = re.compile(r"[.,:;?!)]$")


def without_frame(text: str, found: Text) -> str:
    """Return a text without Project Gutenberg's header and licence, and without signatures of
    mails; these are set aside."""
    marks = {mark[1].upper(): mark for mark in _GUTENBERG.finditer(text)}
    begin = marks["START"].end() if "START" in marks else 0
    end = marks["END"].start() if "END" in marks else len(text)
    if begin < end and marks:
        title = _TITLE.search(text, 0, begin)
        found.title = title[1].strip() if title else ""
        found.leave_out("Project Gutenberg's header and licence", f"{text[:begin]} {text[end:]}")
        text = text[begin:end]
    for _, signature in _SIGNATURE.findall(text):
        found.leave_out("signatures", signature)
    return _SIGNATURE.sub("\n", text)


def without_edge(text: str) -> str:
    """Return a text without the bars at the heads of its lines, if most lines begin with one."""
    filled = sum(map(bool, map(str.strip, text.split("\n"))))
    return _EDGE.sub(r"\1", text) if 2 * len(_EDGE.findall(text)) > filled else text


def without_tables(text: str, found: Text) -> str:
    """Return a text in which each row of a table is a paragraph, its cells with commas between
    them. A table of numbers is set aside.

    The rows of a table follow each other, with as many tabs or pipes each.
    """
    if "\t" not in text and "|" not in text:
        return text
    lines: list[str] = []
    rows: list[list[str]] = []
    for line in [*text.split("\n"), ""]:
        cells = _cells(line)
        is_rule = bool(rows) and bool(line.strip()) and bool(_RULE.fullmatch(line))
        if rows and not is_rule and len(cells) != len(rows[-1]):
            lines += _table(rows, found)
            rows = []
        if len(cells) > 1 and not is_rule:
            rows.append(cells)
        elif not is_rule:
            lines.append(line)
    return "\n".join(lines[:-1])


def _cells(line: str) -> list[str]:
    """Return the cells of a row, or nothing for another line."""
    inner = line.strip().strip("|")
    between = "\t" if "\t" in inner else "|"
    return [cell.strip() for cell in inner.split(between)] if between in inner else []


def _table(rows: list[list[str]], found: Text) -> list[str]:
    """Return the lines of a table's paragraphs; a single line is none."""
    if len(rows) == 1:
        return [" | ".join(rows[0])]
    filled = [cell for row in rows for cell in row if cell]
    if 2 * sum(bool(_NUMBER.fullmatch(cell)) for cell in filled) > len(filled):
        found.leave_out("tables", " ".join(filled))
        return [""]
    lines = [""]
    for row in rows:
        text = ""
        for cell in filter(None, row):
            text += cell if not text else f" {cell}" if _ENDS.search(text) else f", {cell}"
        lines += [text, ""]
    return lines


def in_columns(page: list[str], found: Text) -> list[list[str]]:
    """Return the columns of a page, or the page: there are two if most lines have a wide gap at the
    same place."""
    lines = [line.expandtabs() for line in page]
    gaps = [[match.span() for match in _GAP.finditer(line)] for line in lines]
    places = Counter(place for own in gaps for begin, end in own for place in range(begin, end))
    if not places or max(places.values()) < COLUMN_LINES:
        return [page]
    place = max(places, key=lambda place: places[place])
    halves = [
        (line[:place], line[place:])
        for line, own in zip(lines, gaps)
        if any(begin <= place < end for begin, end in own)
    ]
    filled = [line for line in lines if line.strip()]
    widths = [mean(len(half[side].split()) for half in halves) for side in (0, 1)]
    if 2 * len(halves) < len(filled) or min(widths) < COLUMN_WORDS:
        return [page]
    note = "two columns side by side: the left one is read first; if that is wrong, give the PDF"
    if note not in found.notes:
        found.notes.append(note)
    parts: list[list[str]] = [[]]
    left: list[str] = []
    right: list[str] = []
    for line, own in zip(lines, gaps):
        has_gap = any(begin <= place < end for begin, end in own)
        if line[:place].strip() and line[place:].strip() and not has_gap:  # across both columns
            parts += [left, right, [line]]
            left, right = [], []
        else:
            left.append(line[:place])
            right.append(line[place:])
    parts += [left, right]
    return [part for part in parts if any(map(str.strip, part))]
