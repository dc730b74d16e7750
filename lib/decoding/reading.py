"""What a model read of a text: which words, as the text itself writes them, of which sections, and what is left."""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from lib.data.documents import Document
from lib.data.vocabulary import SPECIALS, UNK


@dataclass(frozen=True)
class Reading:
    """The part of a text that a model read. Words are what white space sets apart."""

    rows: list[list[str]]  # of each row of the source its tokens, written as in the text, with the space before each
    unread: list[tuple[str, str]]  # section and text of each stretch that was not read, in their order
    words: int  # that were read
    all_words: int
    sections: list[str]  # names of those of which something was read
    unknown: float  # share of the words read that the model does not know

    def __str__(self) -> str:
        """A line such as "read 748 of 6,120 words (Introduction, Methods)"."""
        names = ", ".join(self.sections[:NAMED])
        more = f" and {len(self.sections) - NAMED} more" if len(self.sections) > NAMED else ""
        share = "all of" if self.words == self.all_words else f"{self.words:,} of"
        words = f"{self.all_words:,} word{'s' * (self.all_words != 1)}"
        return f"read {share} {words}" + (f" ({names}{more})" if names else "")


NAMED = 6  # sections that the line names


@dataclass
class _Part:
    """A sentence of the text (or its title) in the model's tokens."""

    section: int
    tokens: list[str]
    surfaces: list[str]
    tokens_read: int = 0


def reading_of(
    document: Document,
    rows: Sequence[Sequence[str]],
    tokens_of: Callable[[str], list[str]],
    unknown: float = 0.0,
    with_title: bool = False,
) -> Reading:
    """What was read of a document.

    A row holds whole sentences, of which the last may be cut; a token without a letter sets sentences apart where
    they do not follow each other. Rows stand in any order.

    Args:
        rows: tokens of each row of the source, as the model reads them.
        tokens_of: a sentence in such tokens.
        unknown: the share of words that the model does not know.
        with_title: whether rows may hold the title, which is not counted.
    """
    texts = [(-1, document.title)] if with_title else []
    texts += [(number, text) for number, section in enumerate(document.sections) for text in section]
    parts = [_Part(number, tokens := tokens_of(text), surfaces(text, tokens)) for number, text in texts]
    written = _Matcher(parts).match_all(rows)
    counted = [part for part in parts if part.section >= 0]
    read = sum(len("".join(part.surfaces[: part.tokens_read]).split()) for part in counted)
    numbers = dict.fromkeys(part.section for part in counted if part.tokens_read)
    return Reading(
        rows=written,
        unread=_unread(counted, document.section_names),
        words=read,
        all_words=sum(len(text.split()) for number, text in texts if number >= 0),
        sections=list(dict.fromkeys(name for number in numbers if (name := document.section_names[number]))),
        unknown=unknown,
    )


def _unread(parts: Iterable[_Part], names: Sequence[str]) -> list[tuple[str, str]]:
    stretches = []
    for number, of_section in groupby(parts, lambda part: part.section):
        for whole, group in groupby(of_section, lambda part: part.tokens_read == len(part.tokens) > 0):
            if not whole:
                rests = ["".join(part.surfaces[part.tokens_read :]).strip() for part in group]
                stretches.append((names[number], " ".join(filter(None, rests))))
    return [(name, text) for name, text in stretches if text]


class _Matcher:
    """Finds the sentences of a text in rows of tokens."""

    def __init__(self, parts: list[_Part]):
        self.parts = parts
        self.next = 0  # the sentence after the last one that was found
        self.begins: dict[str, list[int]] = defaultdict(list)
        for number, part in enumerate(parts):
            if part.tokens:
                self.begins[part.tokens[0]].append(number)

    def match_all(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        return [self._match(list(row)) for row in rows]

    def _match(self, row: list[str]) -> list[str]:
        """The tokens of a row as the text writes them; those that are found nowhere stay as they are."""
        written: list[str] = []
        while (start := len(written)) < len(row):
            end = next((place for place in range(start, len(row)) if not row[place]), len(row))
            if end == start:
                written.append("")
            elif (number := self._find(row[start:end])) is None:
                written += row[start:end]
            else:
                part = self.parts[number]
                size = min(end - start, len(part.tokens))
                apart = " " * bool(written and part.surfaces[0])
                written += [apart + part.surfaces[0], *part.surfaces[1:size]]
                part.tokens_read = max(part.tokens_read, size)
                self.next = number + 1
        return written

    def _find(self, tokens: list[str]) -> int | None:
        """The sentence with which these tokens begin: the next one, or the first of a section that follows, or
        any."""
        fitting = [n for n in self.begins.get(tokens[0], ()) if self._fits(self.parts[n].tokens, tokens)]
        return min(fitting, key=self._distance, default=None)

    @staticmethod
    def _fits(part: list[str], tokens: list[str]) -> bool:
        size = min(len(part), len(tokens))
        return part[:size] == tokens[:size]

    def _distance(self, number: int) -> tuple[bool, bool, bool, int]:
        first = number == 0 or self.parts[number - 1].section != self.parts[number].section
        return number != self.next, number < self.next, not first, number


# ------------------------------------------------------------------------------------------------- as the text has it

REACH = 40  # characters of the text that no token stands for, at most, between two tokens


def surfaces(text: str, tokens: Sequence[str]) -> list[str]:
    """Tokens of a text as the text itself writes them, each with the space before it.

    Tokens may be in lower case, in another normal form of Unicode, have `#` for digits, or leave characters out. One
    that cannot be found stays as it is; what an unknown piece stands for is what no other token does.
    """
    places = [place for place, c in enumerate(text) for _ in plain(c)]
    letters = "".join(map(plain, text))
    spans: list[tuple[int, int] | None] = []
    here, unknown = 0, None  # letters that tokens stand for so far; the last token, where it is found nowhere
    for place, token in enumerate(tokens):
        sought = plain(token)
        found = letters.find(sought, here, here + len(sought) + REACH) if sought else here
        spans.append((here, found + len(sought)) if found >= 0 else None)
        if found < 0:
            unknown = place
        elif sought:
            if found > here and unknown is not None:
                spans[unknown], spans[place] = (here, found), (found, found + len(sought))
            here, unknown = found + len(sought), None
    if unknown is not None and here < len(letters):
        spans[unknown] = here, len(letters)
    unseen = SPECIALS[UNK]  # stands for a sign that cannot be seen, where there is no letter for it
    return [
        token.replace(unseen, "") if span is None else _slice(text, places, *span)
        for token, span in zip(tokens, spans)
    ]


def _slice(text: str, places: list[int], start: int, end: int) -> str:
    """Characters of the text for letters `start` to `end`, with a space before them where there is white space."""
    if start >= end:
        return ""
    before = places[start - 1] + 1 if start else 0
    stop = places[end] if end < len(places) else len(text)
    written = text[max(before, places[start]) : max(stop, places[end - 1] + 1)].strip()
    return " " * any(map(str.isspace, text[before : places[start]])) + written if written else ""


@lru_cache(1 << 16)
def plain(text: str) -> str:
    """Letters of a text without case, white space and what cannot be seen; all digits, and `#`, as 0."""
    normal = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).lower())
    seen = (c for c in normal if not c.isspace() and unicodedata.category(c) != "Cf")
    return "".join("0" if c == "#" or c.isdecimal() else c for c in seen)
