"""Pages of a text: their numbers and running heads, and sentences that go on on the next page."""

import re
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

_PAGE_NUMBER = re.compile(
    r"(?i:page\s*)?[-–—\[(]?\s*(?:\d{1,4}|[ivxlc]+)\s*(?:[-–—\])]|(?:of|/)\s*\d+)?"
)
_NUMBERED_HEAD = re.compile(r"\d{1,4}\s{3,}\S.*|\S.*\s{3,}\d{1,4}")
ENDED = re.compile(r"[.!?:][\"”’)\]]*(?:\[\d+\])?$")
Part = TypeVar("Part")  # a line of plain text, a block of a PDF
# a heading, though only its number differs from that of other pages
_CHAPTER = re.compile(r"(?i)(?:chapter|part|section|article|kapitel|teil|abschnitt|artikel|§)\b")
HEAD_WORDS = 15  # of a running head; longer texts that recur are letters or forms
SENTENCE_WORDS = 5  # of one that ends in a stop ("J. Bee Res.")
REPEATED = 3  # the pages on which a running head stands at least;
FEW_PAGES = 5  # in as many, two behind the first page, which often has none; or both of two pages


def split_heads(
    pages: list[list[Part]], text_of: Callable[[Part], str]
) -> tuple[list[list[Part]], list[str]]:
    """Return the pages, each in parts, without numbers and running heads; and the texts of
    these."""
    counts: Counter[str] = Counter()
    least = REPEATED if len(pages) > FEW_PAGES else REPEATED - 1
    counted = pages[1:] if least < len(pages) <= FEW_PAGES else pages
    for page in counted:
        filled = [text for text in map(text_of, page) if text.strip()]
        counts.update({_pattern(text) for text in [*filled[:2], *filled[-2:]]})
    kept, heads = [], []
    for page in pages:
        texts = list(map(text_of, page))
        places = [place for place, text in enumerate(texts) if text.strip()]
        gone: set[int] = set()
        for ends in (places[:2], places[:-3:-1]):
            for place in ends:
                is_repeated = counts[_pattern(texts[place])] >= least
                if not _is_head(texts[place].strip(), is_repeated):
                    break
                gone.add(place)
        heads += [texts[place] for place in sorted(gone)]
        kept.append([part for place, part in enumerate(page) if place not in gone])
    return kept, heads


def _is_head(block: str, is_repeated: bool) -> bool:
    is_number = _PAGE_NUMBER.fullmatch(block) or _NUMBERED_HEAD.fullmatch(block)
    # a whole sentence is text, however often it recurs
    most = SENTENCE_WORDS if ENDED.search(block) else HEAD_WORDS
    is_short = len(block.split()) <= most and not _CHAPTER.match(block)
    is_short &= block[-1] not in ",:"  # "Dear members,"
    return bool(is_number) or (is_short and is_repeated)


def _pattern(block: str) -> str:
    return re.sub(r"\d+", "0", " ".join(block.split()))


def goes_on(last: str, following: str) -> bool:
    """Return whether a sentence that a page or a column ends goes on in the following block."""
    if not last or ENDED.search(last) or not following[0].isalnum():
        return False
    both_are_prose = min(len(last.split()), len(following.split())) >= 8
    return following[0].islower() or last[-1] in "-\u2010" or both_are_prose


def join_pages(pages: list[list[str]]) -> list[str]:
    """Return the lines of all pages, with a blank line where a page ends with a paragraph."""
    lines: list[str] = []
    for page in pages:
        text = "\n".join(page).strip("\n").split("\n")
        while lines and not lines[-1].strip():
            lines.pop()
        while len(text) > 1 and not text[0].strip():
            text.pop(0)
        if lines and not goes_on(lines[-1].strip(), text[0].strip() or " "):
            lines.append("")
        lines += text
    return lines
