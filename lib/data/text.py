"""Sentences and words of a text, and how alike texts are in their words."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from unicodedata import category

# --------------------------------------------------------------------------------------------------- sentences

# Words before a full stop that does not end a sentence.
_ABBREVIATIONS = frozenset(
    """al approx appx art assoc ca cf ch chap col corp dept diff dr e.g ed eds eg eq eqn eqns eqs esp est et etc fig
    figs gen hon i.e ie inc incl jr lemma lit ltd max messrs min misc mr mrs ms mt no nos nr nt p par pp prof prop ref
    refs rep resp rev sec sect sen sr st subsp suppl tab tabs thm univ v var viz vol vols vs w.r.t wrt
    jan feb mar apr jun jul aug sep sept oct nov dec""".split()  # noqa: SIM905
)
# Those of them that end a sentence as well, when what follows looks like a new one.
_MAY_END = frozenset({"etc", "al", "no", "inc", "corp", "ltd", "jr", "sr"})

_CANDIDATE = re.compile(
    r"""[.?!؟۔।]
        (?P<close>["'”’)\]]*)
        (?P<space>\s++)
        (?=(?P<next>\S+))""",
    re.VERBOSE,
)
_BEFORE_A_WORD = frozenset("\"'”’)]")  # as white space is
_OPENING = re.compile(r"[\"'“‘(\[]*(?:(?P<first>[^\W_])|@|<[a-z])")
_STARTERS = frozenset(
    """The This These Those There That It In We Our For However Thus To As At On By A An If When While Although Since
    Such Here They Moreover Furthermore Finally First Second""".split()  # noqa: SIM905
)


def split_sentences(text: str) -> list[str]:
    """Split plain text into sentences, by rule: no model, no download.

    A sentence ends at `.`, `?` or `!` (and their like in Arabic and Devanagari) before white space and a digit or a
    letter that is not in lower case (any letter, where the text was lower-cased), unless the word before is a known
    abbreviation or an initial. In text that is already tokenised (` . `) the mark ends the sentence whatever follows.
    Joining the result by spaces gives the text back, up to white space.
    """
    sentences, start, cased = [], 0, text != text.lower()
    for match in _CANDIDATE.finditer(text):
        if _ends_sentence(match, text, cased, start):
            sentences.append(text[start : match.start("space")].strip())
            start = match.end("space")
    sentences.append(text[start:].strip())
    return [s for s in sentences if s]


def _ends_sentence(match: re.Match, text: str, cased: bool, start: int) -> bool:
    """Whether a mark ends the sentence that began at `start`."""
    place, following = match.start(), match["next"]
    begin, mark = place, text[place]
    while begin > start and text[begin - 1] not in _BEFORE_A_WORD and not text[begin - 1].isspace():
        begin -= 1
    word = text[begin:place].lstrip("(['\"“‘")
    before = text[max(0, place - 24) : place]
    tokenised = not word and before[-1:].isspace()
    if tokenised:  # "et al . ( 2003 )": the word and the mark are apart
        words = before.split()
        word = words[-1] if words else ""
        if not word or word[-1] in ".?!;" or following[0] in ".,;:?!)\"'”’":
            return False  # ". . ." and a closing quote that stands alone
        if cased and following[0].islower():
            return False
        if word.isdigit() and len(words) > 1 and words[-2] in {".", ";", ":"}:
            return False  # "; 2 . the second item"
    elif not _opens(following, cased):
        return False
    if mark != ".":
        return True
    if word.lower() in _ABBREVIATIONS:
        return word.lower() in _MAY_END and following in _STARTERS
    if re.fullmatch(r"(?:\w+\.)*[^\W\d]", word) or ("." in word.strip(".") and word.replace(".", "").isalpha()):
        return following in _STARTERS  # an initial, U.S., i.i.d.
    return True


def _opens(word: str, cased: bool) -> bool:
    """Whether a word may begin a sentence: letters that have no case may."""
    opening = _OPENING.match(word)
    return bool(opening) and not (cased and (opening["first"] or "").islower())


# ------------------------------------------------------------------------------------------------------- words

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
