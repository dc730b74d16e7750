"""Heads of lines that begin something new, whatever the line before ends in: the turns of a chat,
a transcript or a log, and the items of a list or a law."""

import re
from collections import Counter
from collections.abc import Sequence

_TIME = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,6})?(?:\s?[AaPp]\.?[Mm]\b\.?)?"
_DATE = (
    r"(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\s)?[A-Z][a-z]{2}"
    r"\s{1,2}\d{1,2}(?:,?\s\d{4})?)"
)
_WHEN = rf"{_DATE},?(?:\s|T|\sat\s){_TIME}(?:\s?(?:Z|[+-]\d\d:?\d\d))?"
# A name of up to four words: "bob", "THE COURT", "Dr. Anna Berg", "#Person1#", "SPEAKER 1".
_NAME = r"[#@*]*[^\W\d_][\w.'’-]{0,24}[#]?(?:\s[A-Z\d(][\w.'’)-]{0,24}){0,3}\**"
_TURN = re.compile(
    rf"""(?P<sure>[\[(]\s?(?:{_WHEN}|{_TIME})\s?[\])]  # [14:05], (00:01:05)
          |{_WHEN}
          |<[^<>\s]{{1,30}}>(?=\s)                     # <bob>
          |{_NAME}\s?(?::(?=\s|$)|：)\**               # Anna:
          |[QA]\.(?=\s)                               # of a hearing
          |{_NAME}\s[\[(]?{_TIME}[\])]?(?=$|\s*:)      # SPEAKER 1 (00:01:05)
          )
       |(?:{_TIME}|{_DATE})(?=\s|$)                    # only where most lines begin so
    """,
    re.VERBOSE,
)
_ONLY_A_HEAD = re.compile(
    rf"(?:{_NAME}[\s,:-]*)?[\[(](?:{_WHEN}|{_TIME})[\])]:?|{_NAME}[\s,:-]+{_TIME}:?"
)
_ITEM = re.compile(
    r"""(?P<open>[\[(]|§§?\s?|(?:Art(?:icle|ikel|\.)?|Sec(?:tion|\.)?)\s(?=\d))?
        (?P<level>(?:\d{1,3}[.:]){0,4})                  # of 2.1.4
        (?:(?P<number>(?<=\[)\d{4}|\d{1,3})|(?P<letters>[a-z]|[ivx]{1,5}|[IVX]{1,5}))
        (?P<close>\.\)|[.)\]]|(?=\s))
        (?=\s+\S)(?!\s(?:Abs|Nr|Satz|S|lit|para|of|and|und)\b)
    """,
    re.VERBOSE,
)
_ROMAN = {"i": 1, "v": 5, "x": 10}


def heads(lines: Sequence[str]) -> list[str]:
    """Return for each line of a paragraph what it begins: "turn", "item" or, as most lines,
    nothing.

    Turns are those of a text in which a head recurs, or half of the lines have one. The numbers of
    items follow each other: in prose, too, a line may begin with "2. " or "(b) ".
    """
    turns = [_TURN.match(line) for line in lines]
    forms = Counter(re.sub(r"\d+", "0", turn[0]) for turn in turns if turn and turn["sure"])
    marked = sum(map(bool, turns))
    are_turns = marked > 1 and (2 * marked >= len(lines) or max(forms.values(), default=0) > 1)
    places = [_places(line) for line in lines]
    counts = Counter(place for own in places for place in own)
    begins = []
    for line, turn, own in zip(lines, turns, places):
        is_item = any(counts[kind, number - 1] or counts[kind, number + 1] for kind, number in own)
        is_turn = (turn and are_turns) or is_head(line)
        begins.append("item" if is_item else "turn" if is_turn else "")
    return begins


def is_head(line: str) -> bool:
    """Return whether a line is a speaker's name and a time, and nothing else."""
    return bool(_ONLY_A_HEAD.fullmatch(line))


def is_apart(before: str, line: str, width: int) -> bool:
    """Return whether a line behind an item begins with a capital, though its first word had room in
    the line before.

    width: of the longest line around them.
    """
    first = line.split()[:1]
    has_room = bool(first) and len(before) + 1 + len(first[0]) <= width
    return has_room and line[0].isupper()


def _places(line: str) -> list[tuple[str, int]]:
    """Return the kind of list and the place in it that a line may have: i is the ninth letter and a
    Roman one."""
    item = _ITEM.match(line)
    if not item or not (item["close"] or item["level"] or item["open"] not in (None, "(", "[")):
        return []
    style = f"{item['open']}{item['level']}{item['close']}"
    if item["number"]:
        return [(style, int(item["number"]))]
    letters = item["letters"].lower()
    case = style + ("A" if item["letters"].isupper() else "a")
    places = [(f"{case} letter", ord(letters))] if len(letters) == 1 else []
    if set(letters) <= set(_ROMAN):
        values = [_ROMAN[letter] for letter in letters]
        signs = [-1 if a < b else 1 for a, b in zip(values, [*values[1:], 0])]
        places.append((f"{case} Roman", sum(a * sign for a, sign in zip(values, signs))))
    return places
