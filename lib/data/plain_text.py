"""Plain text and Markdown as documents."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from lib.data.documents import Document, checked_text
from lib.data.sentences import split_sentences
from lib.data.words import is_word
from lib.system.errors import InputError

_MARKED = re.compile(r"(?P<marks>#{1,6})\s+(?P<name>\S.*)")
_END_MARKS = re.compile(r"(?<=\s)#+$")
_UNDERLINE = re.compile(r"=+|-{2,}|([~^\"*+#])\1{2,}")
_FENCE = re.compile(r" {0,3}(?P<kind>```|~~~)")
_FENCE_END = re.compile(r" {0,3}(```+|~~~+)")
_RULE = re.compile(r"[\s=*_~+|:#-]{3,}")  # lines between things, and those of tables
# "- item", "> quotation", "1. step": the marks, and what follows them
_ITEM = re.compile(r"(?P<indent>\s*)(?P<mark>[-*+•‣▪●◦]|(?:> ?)*>|\(?\d{1,3}[.)])(?:\s+(?P<rest>\S.*)|$)")
_AMOUNT = re.compile(r"[.,~≈±$€£]?\s?\d")
_ENDED = re.compile(r"[.!?:;…。！？：][\"'”’»)\]]*$")
# What Markdown adds to the words of a line, and what is left of it, in this order.
_IMAGE = re.compile(r"(?<!\\)!\[([^\[\]]*)\]\([^()]*\)")
_MARKUP = [
    (_IMAGE, ""),
    (re.compile(r"(?<!\\)\[([^\[\]]+)\]\([^()\s]*(?: [^()]*)?\)"), r"\1"),  # links
    (re.compile(r"(?<![\w*\\])(\*{1,3})(?=\S)([^*]+?)(?<=[^\s\\])\1(?![\w*])"), r"\2"),
    (re.compile(r"(?<![\w\\])(_{1,3})(?=\S)([^_]+?)(?<=[^\s\\])\1(?!\w)"), r"\2"),
    (re.compile(r"(?<![`\\])`([^`\n]+)`(?![`\w])"), r"\1"),  # code
    (re.compile(r"\\([\\`*_#>\[\]+~!=-])"), r"\1"),
]

# The names by which sections of papers and reports are known, in a text without marks of headings.
_KNOWN = (
    r"abstract|introduction|background|motivation|overview|preliminaries|objectives?|aims?|literature review"
    r"|(?:related|prior|future) work|(?:\w+ and )?method(?:s|ology)?(?: and \w+)?|study design|data ?sets?"
    r"|experiments?|experimental (?:setup|design|results)|statistical analys[ei]s|evaluation|findings"
    r"|(?:main )?results(?: and discussion)?|(?:general )?discussion(?: and conclusions?)?|limitations"
    r"|(?:executive )?summary(?: and conclusions?)?|conclusions?(?: and \w+(?: \w+)?)?|concluding remarks"
    r"|case (?:report|presentation)|supplementary (?:material|information)|data availability|acknowledge?ments?"
    r"|references|bibliography|appendi(?:x|ces)(?: [a-z])?"
)
_NUMBER = r"((?:\d{1,3}\.)*\d{1,3})"
_NAMED = re.compile(rf"(?:(?:{_NUMBER}|[IVX]+)\.? +)?(?P<name>\w.*?):?")
_KNOWN_NAME = re.compile(rf"(?=[A-Z])(?i:{_KNOWN})")
_PART = re.compile(
    r"(?:Chapter|Section|Part|Appendix|CHAPTER|SECTION|PART|APPENDIX) (?:\d+|[IVXLC]+|[A-Z])(?:[:.–—-] .*)?"
)
_LONGEST = 10  # words of a heading


@dataclass
class _Block:
    """Lines that belong together: a heading, a paragraph, or what is not read."""

    lines: list[str]
    level: int = 0  # of a heading
    read: bool = True


@dataclass
class _Parts:
    title: str = ""
    sections: list[tuple[str, list[str]]] = field(default_factory=list)  # headings and sentences
    left_out: list[str] = field(default_factory=list)  # title, headings, code and the words of images


def parse_text(text: str, name: str = "", paragraphs: bool = False) -> Document:
    """A `Document` without a summary from plain text or Markdown. `name` is its id.

    A section begins at a heading: of Markdown, or underlined; in a text without such at a line of its own that is
    numbered as sections are ("2.1 Methods") or has a name by which sections are known ("Results"). Every other line
    is text. A first-level heading before any text is the title. paragraphs: each is a section, under the name of the
    heading above it. Raises ValueError for a text without a sentence.
    """
    parts = _parts(text, paragraphs)
    filled = [(heading, sentences) for heading, sentences in parts.sections if sentences]
    if not filled:
        raise InputError("the text has no sentence: there is nothing to summarize")
    return Document(name, parts.title, [heading for heading, _ in filled], [sentences for _, sentences in filled], [])


def left_out_words(text: str) -> int:
    """The number of words that `parse_text` does not read: of title and headings, code and the words of images."""
    words = (word for part in _parts(text).left_out for word in part.split())
    return sum(map(is_word, words))


def _parts(text: str, paragraphs: bool = False) -> _Parts:
    parts, heading = _Parts(), ""
    for block in _with_headings(list(_blocks([line.rstrip() for line in checked_text(text, "text").splitlines()]))):
        if not block.read:
            parts.left_out += block.lines
        elif block.level:
            name = _plain(block.lines[0])
            parts.left_out.append(name)
            if block.level == 1 and not parts.title and not parts.sections:
                parts.title = name
            else:
                heading = name
                parts.sections.append((heading, []))
        else:
            parts.left_out += [words for unit in _units(block.lines) for words in _IMAGE.findall(unit)]
            if sentences := [s for unit in _units(block.lines) for s in split_sentences(_plain(unit))]:
                if paragraphs or not parts.sections:
                    parts.sections.append((heading, []))
                parts.sections[-1][1].extend(sentences)
    return parts


# ---------------------------------------------------------------------------------------------------------- blocks


def _blocks(lines: list[str]) -> Iterator[_Block]:
    """Paragraphs, headings that are marked or underlined, and code, in their order."""
    fence_ends = {kind: [n for n, line in enumerate(lines) if _is_fence_end(line, kind)] for kind in ("```", "~~~")}
    paragraph: list[str] = []
    number = 0
    while number < len(lines):
        line, below = lines[number], lines[number + 1] if number + 1 < len(lines) else ""
        end = _end_of_code(lines, number, fence_ends)
        marked = _MARKED.fullmatch(line) if not paragraph or _ends(paragraph[-1]) else None
        underlined = not paragraph and _is_underlined(line, below)
        if line and not (end or marked or underlined):
            paragraph.append(line)
            number += 1
            continue
        if paragraph:
            yield _Block(paragraph)
            paragraph = []
        if end:
            yield _Block(lines[number + 1 : end], read=False)
        elif marked:
            yield _Block([_END_MARKS.sub("", marked["name"])], level=len(marked["marks"]))
        elif underlined:
            yield _Block([line.strip()], level=1 if below[0] == "=" else 2)
        number = end + 1 if end else number + 2 if underlined else number + 1
    if paragraph:
        yield _Block(paragraph)


def _ends(line: str) -> bool:
    """Whether a line is the last of a sentence, or none: what stands below it begins anew."""
    return bool(_ENDED.search(line) or _RULE.fullmatch(line))


def _is_fence_end(line: str, kind: str) -> bool:
    return bool(_FENCE_END.fullmatch(line)) and kind in line


def _end_of_code(lines: list[str], number: int, fence_ends: dict[str, list[int]]) -> int:
    """The line that ends the code which begins at a line; 0 where none does. A line of tildes with an empty one below
    it sets texts apart."""
    begin = _FENCE.match(lines[number])
    if not begin or number + 1 == len(lines) or not lines[number + 1]:
        return 0
    ends = fence_ends[begin["kind"]]
    place = bisect_right(ends, number)
    return ends[place] if place < len(ends) else 0


def _is_underlined(line: str, below: str) -> bool:
    """Whether a line has another below it that underlines it: of "=" or "-" as in Markdown (two of these begin a
    signature), of other signs where it is about as long."""
    if not _UNDERLINE.fullmatch(below) or not is_word(line) or _ITEM.fullmatch(line):
        return False
    if below[0] in "=-":
        return below != "--"
    return abs(len(line.strip()) - len(below)) <= 2


# ----------------------------------------------------------------------------------- headings of a text without marks


def _with_headings(blocks: list[_Block]) -> list[_Block]:
    """Blocks of which those of one line are headings that say so by number or name; all as they are where others are
    marked."""
    if any(block.level for block in blocks):
        return blocks
    lines = {n: line for n, block in enumerate(blocks[:-1]) if (line := _heading_line(block))}  # the last has no text
    known = {n for n, line in lines.items() if is_section_name(line[0]) or _PART.fullmatch(line[0])}
    listed = {k for n in known if {n - 1, n + 1} <= known for k in (n - 1, n, n + 1)}  # three names and no text
    headings = known - listed | _numbered_headings(blocks, lines, known)
    return [_Block(block.lines, level=2) if n in headings else block for n, block in enumerate(blocks)]


def _numbered_headings(blocks: list[_Block], lines: dict[int, re.Match[str]], known: set[int]) -> set[int]:
    """Lines that are numbered as sections are: in two levels or more, or as others that have a known name."""
    numbers = {n: number for n in lines if (number := _number_of(blocks[n]))}
    outline = set(numbers.values())
    of_a_report = any(len(numbers.get(n, ())) == 1 for n in known)
    headings, items = set(), set()
    for n, number in numbers.items():
        before, below = (*number[:-1], number[-1] - 1), _number_of(blocks[n + 1])
        if before in items or (below and len(below) == len(number)):
            items.add(number)  # another one stands right below it, or right above
        elif (number[-1] == 1 or before in outline) and (of_a_report or len(number) > 1) and _is_title(lines[n]):
            headings.add(n)
    return headings


def _heading_line(block: _Block) -> re.Match[str] | None:
    """A block of one short line that ends in no mark, without its number by `name`."""
    line = block.lines[0].strip() if block.read and len(block.lines) == 1 else ""
    if not line or len(line.split()) > _LONGEST or line[-1] in ".,;!?":
        return None
    return _NAMED.fullmatch(line)


def is_section_name(line: str) -> bool:
    """Whether a line is one of the names by which sections are known, with a number or without."""
    name = _NAMED.fullmatch(line.strip())
    return bool(name and _KNOWN_NAME.fullmatch(name["name"]))


def _is_title(line: re.Match[str]) -> bool:
    return line["name"][0].isupper()


def _number_of(block: _Block) -> tuple[int, ...] | None:
    """The number with which a block begins."""
    begin = re.match(rf"{_NUMBER}\.? +\S", block.lines[0].strip()) if block.lines else None
    return tuple(map(int, begin[1].split("."))) if begin else None


# ------------------------------------------------------------------------------------------------------ paragraphs


def _units(lines: list[str]) -> list[str]:
    """What belongs together in a paragraph, without the marks of items and quotations: each item, each quotation, and
    what stands between them. Numbers of items stay, and so does a sign that is part of a sentence."""
    signs = Counter(item["mark"] for line in lines if (item := _ITEM.fullmatch(line)))
    units: list[list[str]] = [[]]
    above, kinds = "", set()  # of the item that the line above belongs to, and of all before it
    for number, line in enumerate(lines):
        item = _ITEM.fullmatch(line)
        kind = _kind(item, signs) if item else ""
        if number and kind not in kinds and not _ends(lines[number - 1]):
            kind = ""
        rule = bool(_RULE.fullmatch(line))
        goes_on = kind == above == ">" and item and item["rest"]
        if rule or (kind and not goes_on) or (above == ">" and not kind):
            units.append([])
        if item and kind in (">", "-"):
            line = item["rest"] or ""
        units[-1].append("" if rule else line.strip())
        above = kind or ("" if rule or above == ">" else above)
        kinds.add(kind or above)
    return [text for unit in units if (text := " ".join(filter(None, unit)))]


def _kind(item: re.Match[str], signs: Counter[str]) -> str:
    """What a mark at a line's start may begin: "1" an item with a number, ">" a quotation, "-" another item; nothing
    where it is the only one of its kind and stands before an amount ("> 0.05")."""
    mark = item["mark"]
    if mark[-1] in ".)":
        return "1"
    if signs[mark] == 1 and _AMOUNT.match(item["rest"] or ""):
        return ""
    return ">" if mark[-1] == ">" else "-"


def _plain(line: str) -> str:
    """A line without marks of Markdown."""
    for pattern, replacement in _MARKUP:
        line = pattern.sub(replacement, line)
    return " ".join(line.split())
