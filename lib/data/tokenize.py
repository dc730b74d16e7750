"""Words of a sentence, and how similar texts are in their words."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import regex

from lib.data.characters import JOINERS, UNSPACED, clean, lowered, unified

# In scripts without spaces between words, every character is one.
_LETTER_WITH_MARKS = rf"[[\w\p{{No}}]--[_{UNSPACED}]]"
_CHARACTER = rf"(?=[{UNSPACED}])\X\p{{M}}*"


def _pattern(letter: str, character: str = "(?!)") -> str:
    """Return the pattern of a token. letter: of a word; character: that is a word."""
    return rf"""<\w+>                              # <cit>, <dig>
      | @\w+                                  # @xmath0, @xcite
      | \d+(?:[.,:\u066b\u066c]\d+)*          # 3.14, 1,000
      | (?:(?!\d){letter})+?(?=[Nn]['’][Tt]\b)  # do|n't
      | [Nn]['’][Tt]\b
      | ['’](?:[Ss]|[Rr][Ee]|[Vv][Ee]|[Ll][Ll]|[Dd]|[Mm])\b
      | {character}
      | {letter}+                             # a hyphenated word is several
      | \.\.\.
      | [^\w\s\x1c-\x1f] | _+"""


_WORD = re.compile(_pattern(r"[^\W_]"), re.VERBOSE)
_WORD_IN_ANY_SCRIPT = regex.compile(
    _pattern(_LETTER_WITH_MARKS, _CHARACTER), regex.VERBOSE | regex.VERSION1
)
_NEEDS_ANY_SCRIPT = regex.compile(rf"[{UNSPACED}\p{{M}}{JOINERS}]")


def _word_pattern(text: str) -> re.Pattern | regex.Pattern:
    """Return the pattern of a text's words: `re` is faster, but does not know marks and scripts."""
    return _WORD_IN_ANY_SCRIPT if not text.isascii() and _NEEDS_ANY_SCRIPT.search(text) else _WORD


def tokenize(sentence: str) -> list[str]:
    """Return the words, numbers and marks of a sentence, in order.

    Vowel signs and points belong to their word. Chinese, Japanese, Thai, Lao, Burmese and Khmer are
    cut into characters.
    """
    sentence = clean(sentence)
    return _word_pattern(sentence).findall(sentence)


def is_word(word: str) -> bool:
    """Return whether a token is more than a mark."""
    return any(c.isalnum() for c in word)


_SYMBOL = re.compile(r"\[[A-Z]+\]")


def split_words(sentence: str) -> list[str]:
    """Return the words and marks of a sentence that is tokenised already: spaces set them apart.

    A word that looks like a symbol of a vocabulary ([EOS]) is cut as `tokenize` does it.
    """
    words = clean(sentence).split()
    return [
        part for word in words for part in (tokenize(word) if _SYMBOL.fullmatch(word) else [word])
    ]


def word_spans(text: str, tokenised: bool = False) -> list[tuple[int, int]]:
    """Return the start and the end of each word that `tokenize`, or `split_words`, finds in a clean
    text."""
    if not tokenised:
        return [word.span() for word in _word_pattern(text).finditer(text)]
    spans = []
    for word in re.finditer(r"\S+", text):
        parts = (
            _WORD.finditer(word[0]) if _SYMBOL.fullmatch(word[0]) else re.finditer(r".+", word[0])
        )
        spans += [(word.start() + part.start(), word.start() + part.end()) for part in parts]
    return spans


def surfaces(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Return the tokens of a text as it writes them, each with the space before it."""
    ends = [0, *(end for _, end in spans)]  # of the token before each
    return [
        " " * text[before:start].isspace() + text[start:end]
        for before, (start, end) in zip(ends, spans)
    ]


_ASCII = re.compile(r"[a-z0-9]+")
_GREEK = re.compile("[a-z0-9]*[\u00b5\u0370-\u03ff][a-z0-9]*")
# From this share of words with letters outside ASCII on, ROUGE on ASCII would not measure a text.
OTHER_LETTERS = 0.05


def counted_words(text: str, all_letters: bool | None = None) -> list[str]:
    """Return the words that ROUGE counts, in lower case and without marks.

    By default they consist of ASCII letters and digits, as in the scorers that publish numbers.
    With `all_letters` they are the words of `tokenize` without marks. None chooses `all_letters` if
    most letters are outside ASCII; it is for a text that is compared with no other. A line is a
    sentence.

    >>> counted_words("At 3.5%, it's twice as high.")
    ['at', '3', '5', 'it', 's', 'twice', 'as', 'high']
    """
    text = lowered(unified(text))
    if all_letters is None:
        all_letters = 2 * sum(c.isalnum() and not c.isascii() for c in text) > sum(
            map(str.isalnum, text)
        )
    if not all_letters:
        return _ASCII.findall(text)
    return [part for line in text.splitlines() for word in tokenize(line) for part in _parts(word)]


def _parts(word: str) -> list[str]:
    """Split a word at its marks (3.5 is two numbers), without joiners."""
    return list(
        filter(is_word, re.split(r"[.,:\u066b\u066c<>@_'’]", re.sub(f"[{JOINERS}]", "", word)))
    )


def other_letters(texts: Iterable[str]) -> float:
    """Return the share of words with a letter outside ASCII among the words that have a letter.

    A single Greek letter, as in β1 or µm, counts as ASCII.
    """
    total = other = 0
    for word in (word for text in texts for word in counted_words(text, all_letters=True)):
        total += any(map(str.isalpha, word))
        other += any(c.isalpha() and not c.isascii() for c in word) and not _GREEK.fullmatch(word)
    return other / total if total else 0.0


def need_all_letters(texts: Iterable[str]) -> bool:
    """Return whether ROUGE on these references must count words of all letters
    (`counted_words`)."""
    return other_letters(texts) >= OTHER_LETTERS


def with_numbers(words: Iterable[str], text: Iterable[str]) -> list[str]:
    """Replace words that begin with # by numbers of the text (Rush et al. 2015, as published with
    their code).

    The number is the last one of the text with as many characters; if there is none, the word
    stays.
    """
    numbers = {len(word): word for word in text if word[0].isdigit()}
    return [numbers.get(len(word), word) if word.startswith("#") else word for word in words]


def bigram_recall(paragraph: Sequence, summary: Sequence) -> float:
    """Return the share of the summary's bigrams that the paragraph has, clipped to its counts
    (ROUGE-2 recall).

    >>> bigram_recall("the old hive is empty".split(), "the old hive is full".split())
    0.75
    """
    summary_bigrams, paragraph_bigrams = (
        Counter(pairwise(words)) for words in (summary, paragraph)
    )
    return (
        (summary_bigrams & paragraph_bigrams).total() / summary_bigrams.total()
        if summary_bigrams
        else 0.0
    )
