"""Characters of a text as people have it, made one way: what cannot be seen goes, what looks alike is alike."""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from unicodedata import category, is_normalized, normalize

JOINERS = "\u200c\u200d"  # zero width; between these letters they are seen: Arabic's, those of India, Mongolian
_JOINED = "\u0600-\u08ff\u0900-\u0dff\u1800-\u18af"
_JOINER = re.compile(rf"(?<=[{_JOINED}])([{JOINERS}])[{JOINERS}]*(?=[{_JOINED}])|[{JOINERS}]+")
# Format characters that are drawn, such as signs around numbers.
_DRAWN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")

# Letters that are drawn as one, and parts of the full-width block and its neighbours: they mean what their plain
# forms mean. The marks of Chinese and Japanese prose become plain only among full-width letters and digits.
_LETTER = "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
_PLAIN = re.compile(
    r"[\u0132\u0133\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufc5d\ufc64-\ufdf9\ufdfc\ufe80-\ufefc\uff65-\uffdc\uffe0-\uffe6]+"
    rf"|[{_LETTER}](?:[\uff01-\uff5e]*[{_LETTER}])?(?:[\uff01-\uff5e]+(?=\s|\Z))?"
    r"|[\uff03-\uff07\uff0a\uff0b\uff0d\uff0f\uff1c-\uff1e\uff20\uff3c\uff3e-\uff40\uff5c\uff5e]"
)


def ranges_of(holds: Callable[[str], bool]) -> str:
    """The characters for which something holds, as the inside of a set of `re`."""
    ranges: list[list[int]] = []
    for code in (*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE0200)):  # no other plane has any
        if holds(chr(code)):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


@cache
def marks() -> str:
    """The marks that belong to the letter before them (categories M), as the inside of a set of `re`."""
    return ranges_of(lambda c: category(c)[0] == "M")


@cache
def _invisible() -> re.Pattern:
    """Format characters (Cf), variation selectors and the grapheme joiner."""
    unseen = ranges_of(lambda c: category(c) == "Cf" and c not in _DRAWN and c not in JOINERS)
    return re.compile(rf"[{unseen}\u034f\ufe00-\ufe0f\U000e0100-\U000e01ef]+")


def clean(text: str) -> str:
    """A text as every part of the library reads it: its characters are `unified`, and a word that a hyphen cuts at a
    line's end is whole. What was cleaned stays as it is."""
    text = text if text.isascii() else unified(re.sub(r"\xad[ \t]*\r?\n[ \t]*(?=[^\W\d_])", "", text))
    return _with_whole_words(text) if _AT_LINE_END.search(text) else text


def unified(text: str) -> str:
    """A text of characters that are written in one way.

    They are composed (NFC); ligatures and full-width letters are plain ones; what cannot be seen goes (soft hyphens,
    zero-width spaces, byte-order and direction marks), but joiners between letters that show them. Exponents,
    fractions and units are characters of their own and stay.
    """
    if text.isascii():
        return text
    text = _JOINER.sub(lambda match: match[1] or "", _invisible().sub("", text))
    text = _PLAIN.sub(lambda match: normalize("NFKC", match[0]), text)
    return text if is_normalized("NFC", text) else normalize("NFC", text)


def lowered(text: str) -> str:
    """A text in lower case. The Turkish İ is i, without the dot of its own that `str.lower` gives it."""
    return text.lower() if text.isascii() else text.lower().replace("i\u0307", "i")


# ------------------------------------------------------------------------------------------ hyphens at line ends

_AT_LINE_END = re.compile(r"[-\u2010][ \t]*\r?\n")
_COMPOUND = re.compile(r"[^\W_]+(?:[-\u2010][^\W_]+)*")
# English first and second parts of words that have a hyphen far more often than they have none; a second part does
# not count behind a prefix. Words within a compound (state-of-the-art), and such that stand for a second part.
_FIRST_PARTS = frozenset(
    """bottom double early fine first five full half higher large middle multiple next one quasi self thirty three
    third twenty two well zero""".split()  # noqa: SIM905
)
_SECOND_PARTS = frozenset(
    """assisted associated based binding consuming containing cost deficient density depth derived dimensional
    dose dried driven effective frequency friendly grained growing independent induced intensity level linked
    looking mediated negative oriented performance producing promoting quality resistant resolution risk scale
    sectional shaped sided specific step temperature term throughput tolerant up validation valued year""".split()  # noqa: SIM905
)
_PREFIXES = frozenset("counter hyper inter over super trans under".split())  # noqa: SIM905
_WITHIN = frozenset("a and as at by for from in of on or per the to up with".split())  # noqa: SIM905
_SUSPENDING = frozenset("and or to und oder bis et ou y o e".split())  # noqa: SIM905


@cache
def _cut(marks: str) -> re.Pattern:
    """A word that is cut at a line's end. marks: the inside of a set of those that words have."""
    letter = rf"(?:[^\W_]|[{marks}])" if marks else r"[^\W_]"
    before = rf"(?<![-\u2010])(?<!{letter})(?P<before>[^\W_]{letter}*(?:[-\u2010]{letter}+)*)"
    return re.compile(rf"{before}(?P<hyphen>[-\u2010])[ \t]*\r?\n[ \t]*(?P<after>{letter}+)")


def _with_whole_words(text: str) -> str:
    """Join words that are cut at line ends. The hyphen stays where the text has the word with it elsewhere, and not
    more often without. Where it has neither, it stays where both parts are words of the text, of four letters or
    more, and where `_keeps_hyphen` says so."""
    cut = _cut("" if text.isascii() else marks())
    words = Counter(_COMPOUND.findall(lowered(cut.sub(" ", text))))
    for compound, times in list(words.items()):
        for part in re.split(r"[-\u2010]", compound) if not compound.isalnum() else ():
            words[part] += times

    def joined(match: re.Match) -> str:
        before, hyphen, after = match["before"], match["hyphen"], match["after"]
        whole, hyphened = before + after, before + hyphen + after
        follows = match.string.startswith(("-", "\u2010"), match.end())
        if lowered(after) in _SUSPENDING and not follows:
            return f"{before}{hyphen} {after}"
        without, having = words[lowered(whole)], words[lowered(hyphened)]
        if without or having:
            return whole if without > having else hyphened
        two = all(len(part) > 3 and words[lowered(part)] for part in (before, after))
        return hyphened if two or _keeps_hyphen(before, after, follows) else whole

    while cut.search(text):  # again: of three parts in three lines the first two are one now
        text = cut.sub(joined, text)
    return text


def _keeps_hyphen(before: str, after: str, follows: bool) -> bool:
    """Whether the hyphen between two parts belongs to their word, by what they are: a first part that is a letter, a
    name or a compound itself (T, CD, p53, state-of-the), a second part that begins with a capital or a digit, or
    parts of the lists above. follows: whether another hyphen does."""
    first, second = lowered(before), lowered(after)
    return (
        len(before) == 1
        or before[-1].isdigit()
        or any(c.isupper() or c in "-\u2010" for c in before[1:])
        or after[0].isupper()
        or after[0].isdigit()
        or first in _FIRST_PARTS
        or (second in _SECOND_PARTS and len(first) > 2 and first not in _PREFIXES)
        or (follows and second in _WITHIN)
    )
