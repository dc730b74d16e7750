"""Words of a sentence, and how alike texts are in their words."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise

from lib.data.characters import JOINERS, clean, lowered, marks, unified

# Of scripts without spaces, every character is a word: Chinese and Japanese; Thai, Lao, Burmese and Khmer, whose
# characters are a letter, what is written around it, and a letter below it.
_IDEOGRAPHS = "\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SOUTH_EAST = "\u0e00-\u0eff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff"


def _pattern(others: str, more: str, name: str, single: str = "", behind: str = "") -> re.Pattern:
    """What is a word, of letters without `others`. more: what may follow one; name: what a name may have; single:
    words of one character; behind: what belongs to the number before it."""
    return re.compile(
        rf"""<{name}+>                           # <cit>, <dig>
          | @{name}+                            # @xmath0, @xcite
          | \d+(?:[.,:\u066b\u066c]\d+)*{behind}  # 3.14, 1,000
          | [^\W\d_{others}]+?(?=n['’]t\b)      # do|n't
          | n['’]t\b
          | ['’](?:s|re|ve|ll|d|m)\b
          {single}
          | [^\W_{others}]{more}*              # words; a hyphenated word is several
          | \.\.\.
          | [^\w\s] | _+""",
        re.VERBOSE | re.IGNORECASE,
    )


_WORD = _pattern("", r"[^\W_]", r"\w")


@cache
def _in_any_script() -> tuple[re.Pattern, re.Pattern]:
    """What is more than a letter in itself or joined to others, and the words of text that has it."""
    others, alone = f"{_IDEOGRAPHS}{_SOUTH_EAST}", rf"[{_SOUTH_EAST}]"
    around = rf"[{marks()}\u0e33\u0eb3]"
    single = rf"| [{_IDEOGRAPHS}] | (?!\d){alone}(?:{around}|(?<=[\u1039\u17d2]){alone})*"
    more = rf"[^\W_{others}]|[{marks()}{JOINERS}]"
    words = _pattern(others, f"(?:{more})", f"(?:{more}|_)", single, rf"[{marks()}]*")
    return re.compile(rf"[{marks()}{JOINERS}{others}]"), words


def tokenize(sentence: str) -> list[str]:
    """Words, numbers and marks of a sentence, in order, of any text (`clean` comes first).

    Vowel signs and points belong to their word. Chinese, Japanese, Thai, Lao, Burmese and Khmer, which have no spaces
    between words, are cut into characters.
    """
    sentence = clean(sentence)
    if sentence.isascii():
        return _WORD.findall(sentence)
    needed, in_any_script = _in_any_script()
    return (in_any_script if needed.search(sentence) else _WORD).findall(sentence)


def is_word(word: str) -> bool:
    """Whether a token is more than a mark: what ROUGE counts, too."""
    return any(c.isalnum() for c in word)


_SYMBOL = re.compile(r"\[[A-Z]+\]")


def split_words(sentence: str) -> list[str]:
    """Words and marks of a sentence of which somebody has set them apart by spaces. What looks like a symbol of a
    vocabulary ([EOS]) is cut as `tokenize` does."""
    words = clean(sentence).split()
    return [part for word in words for part in (tokenize(word) if _SYMBOL.fullmatch(word) else [word])]


_APART, _BEHIND_A_WORD = re.compile(r"(?<!\S)[.,](?!\S)"), re.compile(r"(?<=[a-z)])[.,](?!\S)")


def looks_tokenised(sentences: Iterable[str], least: int = 50) -> bool:
    """Whether full stops and commas stand by themselves in a text, eight of ten or more of at least so many: nine of
    ten do in tokenised papers of arXiv, two of ten in plain text with formulas."""
    text = "\n".join(sentences)
    apart, behind = len(_APART.findall(text)), len(_BEHIND_A_WORD.findall(text))
    return apart + behind >= least and apart >= 0.8 * (apart + behind)


_ASCII = re.compile(r"[a-z0-9]+")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_SIGN = re.compile("[a-z0-9]*[\u00b5\u0370-\u03ff][a-z0-9]*")
# From this share of words with other letters on, what is left of a text in ASCII is no measure of it.
OTHER_LETTERS = 0.05


def counted_words(text: str, all_letters: bool | None = None) -> list[str]:
    """Words as ROUGE counts them, in lower case and without marks.

    They are of ASCII letters and digits, as in the scorers that publish numbers; or, with `all_letters`, what is left
    of `tokenize`'s without marks, so that a text counts what its tokens count. A line is a sentence. None is for a
    text that is compared with no other: all letters where most of them are outside ASCII.
    """
    text = lowered(unified(text))
    if not (_mostly_others(text) if all_letters is None else all_letters):
        return _ASCII.findall(text)
    return [part for line in text.splitlines() for word in tokenize(line) for part in _parts(word)]


def _mostly_others(text: str) -> bool:
    """Whether most of a text's letters and digits are outside ASCII."""
    return not text.isascii() and 2 * sum(c.isalnum() and not c.isascii() for c in text) > sum(map(str.isalnum, text))


def _parts(word: str) -> list[str]:
    """A word without marks that stand in it: 3.5 is two numbers, and a joiner is no letter."""
    word = word.translate({ord(c): None for c in JOINERS})
    return [part for part in re.split(r"[.,:\u066b\u066c<>@_'’]", word) if _LETTER_OR_DIGIT.search(part)]


def other_letters(texts: Iterable[str]) -> float:
    """Share of the words that hold a letter outside ASCII, of those that hold a letter; 0 where there are none. A
    Greek letter that is alone, as in β1 or µm, is a sign and counts as ASCII."""
    every = other = 0
    for word in (word for text in texts for word in counted_words(text, all_letters=True)):
        every += any(map(str.isalpha, word))
        other += not word.isascii() and not _SIGN.fullmatch(word) and any(c.isalpha() and c > "\x7f" for c in word)
    return other / every if every else 0.0


def need_all_letters(texts: Iterable[str]) -> bool:
    """Whether ROUGE on these references must count words of all letters (`counted_words`)."""
    return other_letters(texts) >= OTHER_LETTERS


def with_numbers(words: Iterable[str], text: Iterable[str]) -> list[str]:
    """Words with the numbers of a text, in words, in place of # (Rush et al. 2015, as published with their code):
    for each word that begins with #, the last number of as many characters; where there is none, the word stays."""
    numbers = {len(word): word for word in text if word[0].isdigit()}
    return [numbers.get(len(word), word) if word.startswith("#") else word for word in words]


def bigram_recall(paragraph: Sequence, summary: Sequence) -> float:
    """Share of the summary's bigrams that the paragraph has, each as often as it has it (ROUGE-2 recall)."""
    summary_bigrams, paragraph_bigrams = (Counter(pairwise(words)) for words in (summary, paragraph))
    return (summary_bigrams & paragraph_bigrams).total() / summary_bigrams.total() if summary_bigrams else 0.0
