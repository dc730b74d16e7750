"""Words of a sentence, and how alike texts are in their words."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from unicodedata import category

_WORD = re.compile(
    r"""<\w+>                               # <cit>, <dig>
      | @\w+                                # @xmath0, @xcite
      | \d+(?:[.,:]\d+)*                    # 3.14, 1,000
      | [^\W\d_]+?(?=n['’]t\b)              # do|n't
      | n['’]t\b
      | ['’](?:s|re|ve|ll|d|m)\b
      | [^\W_]+                             # words; a hyphenated word is several
      | \.\.\.
      | [^\w\s] | _+""",
    re.VERBOSE | re.IGNORECASE,
)


def tokenize(sentence: str) -> list[str]:
    """Words, numbers and marks of a sentence, in order. Text that is already tokenised by spaces stays as it is."""
    return _WORD.findall(sentence)


_COUNTED = re.compile(r"[a-z0-9]+")


def counted_words(text: str) -> list[str]:
    """Words as ROUGE counts them, in lower case and without marks.

    They are of ASCII letters and digits, as in the scorers that publish numbers, unless most letters of the text are
    others: then of any letters, with Chinese and Japanese characters one by one.
    """
    if mostly_ascii(text):
        return _COUNTED.findall(text.lower())
    return "".join(map(_apart, text.lower())).split()


def _apart(character: str) -> str:
    """Space in place of a mark, and around what is a word by itself."""
    if category(character)[0] not in "LMN":  # letters, the marks that belong to them, numbers
        return " "
    return f" {character} " if "\u3040" <= character <= "\u30ff" or "\u3400" <= character <= "\u9fff" else character


def mostly_ascii(text: str) -> bool:
    """Whether at most half of a text's letters and digits are outside ASCII."""
    return text.isascii() or 2 * sum(c.isalnum() and not c.isascii() for c in text) <= sum(map(str.isalnum, text))


def bigram_recall(paragraph: Sequence, summary: Sequence) -> float:
    """Share of the summary's bigrams that the paragraph has, each as often as it has it (ROUGE-2 recall)."""
    summary_bigrams, paragraph_bigrams = (Counter(pairwise(words)) for words in (summary, paragraph))
    return (summary_bigrams & paragraph_bigrams).total() / summary_bigrams.total() if summary_bigrams else 0.0
