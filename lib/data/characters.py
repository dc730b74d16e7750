"""Characters of a text, normalised: invisible ones are removed, and what looks the same is the
same."""

from collections import Counter
from collections.abc import Sequence
from unicodedata import is_normalized, normalize

import regex

# of zero width; visible between letters of Arabic, Indic scripts and Mongolian
JOINERS = "\u200c\u200d"
_JOINED = "\u0600-\u08ff\u0900-\u0dff\u1800-\u18af"
_JOINER = regex.compile(rf"(?<=[{_JOINED}])([{JOINERS}])[{JOINERS}]*(?=[{_JOINED}])|[{JOINERS}]+")
# Format characters, variation selectors and the grapheme joiner; a few format characters are drawn
# around numbers.
_INVISIBLE = regex.compile(
    rf"[[\p{{Cf}}\p{{Variation_Selector}}\u034f]--[{JOINERS}\p{{Prepended_Concatenation_Mark}}]]+",
    regex.VERSION1,
)
# Ligatures and full-width characters mean what their plain forms mean. The marks of Chinese and
# Japanese prose become plain only among full-width letters and digits.
_WIDE = "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
_COMPATIBLE = regex.compile(
    r"[\u0132\u0133\ufb00-\ufdf9\ufdfc\ufe80-\ufefc\uff65-\uffdc\uffe0-\uffe6]+"
    rf"|[{_WIDE}](?:[\uff01-\uff5e]*[{_WIDE}])?(?:[\uff01-\uff5e]+(?=\s|\Z))?"
    r"|[\uff03-\uff07\uff0a\uff0b\uff0d\uff0f\uff1c-\uff1e\uff20\uff3c\uff3e-\uff40\uff5c\uff5e]"
)
_SOFT_HYPHEN = regex.compile(r"\xad[ \t]*\r?\n[ \t]*(?=\p{L})")  # at the end of a line
# Colours and places of the cursor, which programs write to a terminal.
_TERMINAL = regex.compile(r"\x1b\[[\d;?]*[A-Za-z]")

# Scripts without spaces between words, and the marks of Chinese and Japanese.
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Myanmar}\p{Khmer}"
_BETWEEN_UNSPACED = regex.compile(
    rf"(?<=[{UNSPACED}\u3001-\u303f\uff01-\uff1f])\n(?=[{UNSPACED}\u3001-\u303f\uff01-\uff1f])"
)


def join_lines(lines: Sequence[str]) -> str:
    """Join the lines of a paragraph: with spaces, but not within Chinese, Japanese and the like."""
    text = "\n".join(lines)
    return (text if text.isascii() else _BETWEEN_UNSPACED.sub("", text)).replace("\n", " ")


def clean(text: str) -> str:
    """Normalise a text as every part of the library reads it. Idempotent.

    Characters are `unified`, codes of terminals go, and words that hyphens cut at line ends are
    joined.
    """
    text = _TERMINAL.sub("", text)
    if not text.isascii():
        text = unified(_SOFT_HYPHEN.sub("", text))
    return _join_cut_words(text) if _LINE_END.search(text) else text


def unified(text: str) -> str:
    """Write every character of a text in one way.

    Characters are composed (NFC); ligatures and full-width letters become plain ones; invisible
    characters are removed (soft hyphens, zero-width spaces, byte-order and direction marks), except
    joiners between letters that show them. Exponents, fractions and units are characters of their
    own and stay.
    """
    if text.isascii():
        return text
    text = _JOINER.sub(lambda match: match[1] or "", _INVISIBLE.sub("", text))
    text = _COMPATIBLE.sub(lambda match: normalize("NFKC", match[0]), text)
    return text if is_normalized("NFC", text) else normalize("NFC", text)


def lowered(text: str) -> str:
    """Return a text in lower case; of a clean text, every character at its place.

    The Turkish İ, the only character that `str.lower` makes two of, becomes i.
    """
    return text.lower() if text.isascii() else regex.sub("İ|I\u0307", "i", text).lower()


_LINE_END = regex.compile(r"[-\u2010][ \t]*\r?\n")
_COMPOUND = regex.compile(r"[^\W_]+(?:[-\u2010][^\W_]+)*")
_CUT_WORD = regex.compile(
    rf"(?<![-\u2010\w])(?P<before>{_COMPOUND.pattern})(?P<hyphen>[-\u2010])[ \t]*\r?\n[ "
    rf"\t]*(?P<after>[^\W_]+)"
)


# Words that a hyphen follows where they begin a compound (twenty-one, well-known).
_HYPHENATED = frozenset(
    ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "well", "self")
)

# "pre- and postnatal"
_BETWEEN_PARTS = frozenset(("and", "or", "to", "und", "oder", "bis"))
_HYPHEN = regex.compile("[-\u2010]")
_GOES_ON = regex.compile(r"[-\u2010]\w")
_NAME_OR_CODE = regex.compile(r"[\p{Lu}\d\u2010-]")


def _join_cut_words(text: str) -> str:
    """Join words that hyphens cut at line ends.

    The hyphen stays if the text has the word with it elsewhere, at least as often as without it. If
    the text has neither, it stays in compounds and names (of-the-, p53-, T-, -CoV) and between two
    words of the text.
    """
    words = Counter(_COMPOUND.findall(lowered(_CUT_WORD.sub(" ", text))))
    words.update(part for word in list(words) for part in _HYPHEN.split(word) if part != word)

    def join(match: regex.Match) -> str:
        before, hyphen, after = match["before"], match["hyphen"], match["after"]
        if after in _BETWEEN_PARTS:
            return f"{before}{hyphen} {after}"
        joined, hyphenated = words[lowered(before + after)], words[lowered(before + hyphen + after)]
        if not joined and not hyphenated:
            are_words = all(len(part) > 3 and words[lowered(part)] for part in (before, after))
            follows = match.string[match.end() : match.end() + 2]  # of-the-art, up-to-date
            if (
                are_words
                or len(before) == 1
                or lowered(before) in _HYPHENATED
                or (len(after) <= 3 and _GOES_ON.fullmatch(follows))
                or _NAME_OR_CODE.search(before[1:] + after[0])
            ):
                hyphenated = 1
        return before + hyphen + after if hyphenated >= max(1, joined) else before + after

    while _CUT_WORD.search(text):  # a word may be cut at several line ends
        text = _CUT_WORD.sub(join, text)
    return text


def mend_encoding(text: str) -> str:
    """Return a text as it was before a program read its UTF-8 in another encoding: "cafÃ©" is
    "café"."""
    if text.isascii():
        return text
    from ftfy import fix_encoding  # a tenth of a second, which most texts save
    from ftfy.badness import is_bad

    return fix_encoding(text) if is_bad(text) else text
