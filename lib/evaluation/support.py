"""What a summary has that its text does not have, and which sentences of the text carry it.

Four shares are counted: of a summary's numbers, names, words and word pairs, those that are *not in the text*; and of
its sentences, those that one sentence of the text carries. Only signs on paper are compared, never what they mean:

* a number is in the text although the text has it for something else; a negation, or who was compared with whom, is
  not seen;
* "twelve" and 12, 0.5 and 50%, a word and its plural are different; what only a table or a figure of the paper has is
  not in its text;
* a word of the authors' own is not in the text and right all the same: references are scored beside.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lib.data.characters import clean, lowered
from lib.data.documents import Document
from lib.data.words import is_word, tokenize


@dataclass(frozen=True)
class Term:
    """A number or word of a sentence, and how it is compared."""

    start: int  # first character in `clean(sentence)`, and the end
    end: int
    key: str  # in lower case; of a number its value; empty for a mask such as <dig>, which is compared with nothing
    readings: tuple[tuple[str, ...], ...] = ()  # of a number: the values that it may stand for, each one or several

    @property
    def is_number(self) -> bool:
        return bool(self.readings)


# what stands for a number, citation or formula that was left out, also half of it, and for an unknown word
_MASK = re.compile(r"<(?:dig)+>?|<[^\W\d]\w*>|@\w+|\[(?:number|citation|formula|unk)\]")
# what stands before the digits of .05, also where a model sets the stop apart
_LEADING_STOP = re.compile(r"(?:(?:^|[\s(\[<>=≤≥±~≈–/-])\.|[<>=≤≥±~≈]\s*\.\s)$")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_GROUPS = re.compile(r"\d{1,3}(?:[\s'’]\d{3})+(?:\.\d+)?")
_ARABIC = str.maketrans("\u066b\u066c", ".,")


def terms(sentence: str) -> list[Term]:
    """The numbers and words of a sentence, in order, and the masks; marks are left out.

    The value of a number is without commas or spaces between thousands and without zeros at its ends: 1,635 is 1 635
    is 1635, and 0.50 is .5. A sign, a unit and a word such as "million" are not of the number. Digits in a word (p53)
    make no number.
    """
    text = lowered(clean(sentence))
    masks = [match.span() for match in _MASK.finditer(text)]
    made: list[Term] = []
    end = 0
    for token in tokenize(text):
        start = text.find(token, end)
        if start < 0:
            continue
        end = start + len(token)
        if mask := next((span for span in masks if span[0] <= start < span[1]), None):
            if not made or made[-1].start != mask[0]:
                made.append(Term(*mask, ""))
        elif token[0].isdecimal():
            made.append(_number(text, start, end, made))
        elif is_word(token):
            made.append(Term(start, end, token.replace("’", "'")))
    return made


def _number(text: str, start: int, end: int, before: list[Term]) -> Term:
    """The number of these digits; with the group of digits before it, which is taken off, where both are one."""
    if _LEADING_STOP.search(text, max(0, start - 6), start):
        start = text.rindex(".", 0, start)
        return _term(start, end, f"0.{text[start + 1 : end].strip()}")
    if before and before[-1].is_number and _GROUPS.fullmatch(text[before[-1].start : end]):
        start = before.pop().start
    return _term(start, end, text[start:end])


def _term(start: int, end: int, digits: str) -> Term:
    readings = tuple(_readings("".join(str(int(c)) if c.isdecimal() else c for c in digits.translate(_ARABIC))))
    return Term(start, end, " ".join(readings[0]), readings)


def _readings(digits: str) -> list[tuple[str, ...]]:
    """What digits may stand for, the likeliest first: 12,13 is a decimal number, or two."""
    if _THOUSANDS.fullmatch(digits):
        return [(_value(digits.replace(",", "")),)]
    if _GROUPS.fullmatch(digits):
        parts = re.split(r"[\s'’]", digits)
        return [(_value("".join(parts)),), tuple(map(_value, parts))]
    several = tuple(map(_value, re.split("[,:]", digits)))
    return [(_value(digits.replace(",", ".")),), several] if re.fullmatch(r"\d+,\d+", digits) else [several]


def _value(digits: str) -> str:
    whole, stop, rest = digits.partition(".")
    if "." in rest:  # 1.2.3, a version or a date
        return digits
    fraction = rest.rstrip("0") if stop else ""
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


class Names:
    """Names that texts show, acronyms among them: words of two letters or more that have a capital nine times of ten
    or more often inside of a sentence. So a name is known in a summary in lower case too, by all texts that are
    scored together: one that none of them has is only a word. In German every noun is a name."""

    CAPITAL = 0.9

    def __init__(self, sentences: Iterable[str]):
        self._capital: Counter[str] = Counter()
        self._every: Counter[str] = Counter()
        for sentence in sentences:
            text = clean(sentence)
            for term in terms(sentence)[1:]:
                surface = text[term.start : term.end]
                self._every[term.key] += 1
                self._capital[term.key] += surface != lowered(surface)

    def __contains__(self, term: Term) -> bool:
        capital, letters = self._capital[term.key], sum(map(str.isalpha, term.key))
        return not term.is_number and letters > 1 and capital > 0 and capital >= self.CAPITAL * self._every[term.key]


def names_of(documents: Iterable[Document]) -> Names:
    """Names by the texts and references of documents; not by titles, where all words may have capitals."""
    return Names(s for d in documents for s in (*d.sentences, *(s for r in d.references for s in r)))


@dataclass(frozen=True)
class Carrier:
    """A sentence of the text that carries one of the summary, or a part of it."""

    sentence: int  # its number in the text, from 0
    share: float  # of the summary's sentence, by weight, that it has and those before it have not


class SourceText:
    """The sentences of a text, to look summaries up in.

    The weight of a word or number is log((L + 1) / L_w), of L sentences of which L_w have it: a rare one counts more,
    and no list of function words is needed. One that the text does not have weighs as one of a single sentence.

    One sentence carries a sentence of the summary if it has at least half of its weight, and a part of it from a
    quarter on. Of the references' 990 sentences in the test papers of `pmc-sample`, the next paper carries 2, and a
    part of 32; of 500 that are made of halves of two sentences both are found 434 times (`tests/test_support.py`).
    """

    ALONE, PART = 0.5, 0.25

    def __init__(self, sentences: Iterable[str]):
        self._words: list[dict[str, None]] = []  # of each sentence, in order
        self._having: defaultdict[str, list[int]] = defaultdict(list)  # sentences that have a word
        self._pairs: set[tuple[str, str]] = set()
        for number, sentence in enumerate(sentences):
            found = terms(sentence)
            self._pairs.update(_pairs(found))
            self._words.append(dict.fromkeys(key for term in found for key in _keys(term)))
            for key in self._words[-1]:
                self._having[key].append(number)

    def has(self, term: Term) -> bool:
        """Whether a word, or a number in one of its readings, is in the text; a mask always is."""
        return not term.key or any(all(key in self._having for key in reading) for reading in _all_readings(term))

    def has_pair(self, pair: tuple[str, str]) -> bool:
        """Whether two words stand side by side in a sentence, marks between them or not."""
        return pair in self._pairs

    def carriers(self, sentence: Sequence[Term]) -> list[Carrier]:
        """Sentences of the text that carry a summary's sentence, at most four: one by one the one that adds the most
        weight, of equals the shorter and then the earlier one, as long as it adds `PART` of the sentence's."""
        weights = {term.key: self._weight(term.key) for term in sentence if term.key}
        total, chosen = sum(weights.values()), []
        while weights:
            gains: defaultdict[int, float] = defaultdict(float)
            for key, weight in weights.items():
                for number in self._having.get(key, ()):
                    gains[number] += weight
            best = max(gains, key=lambda n: (round(gains[n], 9), -len(self._words[n]), -n), default=None)
            if best is None or gains[best] < self.PART * total:
                break
            chosen.append(Carrier(best, gains[best] / total))
            weights = {key: weight for key, weight in weights.items() if key not in self._words[best]}
        return chosen

    def _weight(self, key: str) -> float:
        return math.log((len(self._words) + 1) / max(1, len(self._having.get(key, ()))))


def _all_readings(term: Term) -> tuple[tuple[str, ...], ...]:
    return term.readings or ((term.key,),)


def _keys(term: Term) -> list[str]:
    """All that a term of the text lets a summary say."""
    return [key for reading in (((term.key,), *term.readings) if term.key else ()) for key in reading]


def _pairs(found: Sequence[Term]) -> list[tuple[str, str]]:
    """Keys of terms side by side; none goes across a mask."""
    return [(a.key, b.key) for a, b in pairwise(found) if a.key and b.key]


def source_of(document: Document) -> SourceText:
    """A document's text: its title, which is sentence 0 where it has one, and its sentences."""
    return SourceText([*filter(None, [document.title]), *document.sentences])


def not_in_text(sentence: Sequence[Term], text: SourceText, names: Names) -> list[tuple[Term, str]]:
    """The terms of a summary's sentence that its text does not have, each with "number", "name" or "word"."""
    missing = (term for term in sentence if not text.has(term))
    return [(term, "number" if term.is_number else "name" if term in names else "word") for term in missing]


def support_counts(summary: Iterable[str], text: SourceText, names: Names) -> dict[str, tuple[int, int]]:
    """Counts of a summary, each with the count of all of its kind: "numbers", "names", "words" (names among them) and
    "pairs" that are not in the text, every time that they occur, and sentences that one source sentence "carried".

    summary: its sentences, in any case; what has neither a number nor a word is no sentence.
    """
    counts = {kind: [0, 0] for kind in ("numbers", "names", "words", "pairs", "carried")}

    def count(kind: str, holds: bool) -> None:
        counts[kind][0] += holds
        counts[kind][1] += 1

    for sentence in map(terms, summary):
        for term in sentence:
            if term.is_number:
                count("numbers", not text.has(term))
            elif term.key:
                count("words", not text.has(term))
                if term in names:
                    count("names", not text.has(term))
        for pair in _pairs(sentence):
            count("pairs", not text.has_pair(pair))
        if any(term.key for term in sentence):
            carriers = text.carriers(sentence)
            count("carried", bool(carriers) and carriers[0].share >= text.ALONE)
    return {kind: (one, every) for kind, (one, every) in counts.items()}
