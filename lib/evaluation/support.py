"""Support of a summary by its text: what the text does not have, and which of its sentences carry
the summary's.

Four shares are counted: of a summary's numbers, names, words and word pairs, those that are *not in
the text*; and of its sentences, those that one sentence of the text carries. Only characters are
compared, never meanings:

* a number is in the text even if the text has it for something else; a negation, or who was
  compared with whom, is not detected;
* "twelve" and 12, 0.5 and 50%, a word and its plural are different; what only a table or a figure
  of the paper has is not in its text;
* a word of the authors' own is not in the text and right all the same: references are scored too.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lib.data.characters import clean, lowered
from lib.data.documents import Document
from lib.data.tokenize import is_word, word_spans


@dataclass(frozen=True)
class Term:
    """A number or word of a sentence."""

    start: int  # first character in `clean(sentence)`, and the end
    end: int
    key: str  # in lower case; empty for a mask such as <dig>, which is compared with nothing
    is_number: bool = False


# what represents a number, citation or formula that was left out, also half of it, or an unknown
# word
_MASK = re.compile(
    r"<(?:dig)+>?|<[^\W\d]\w*>|@\w+|\[(?:number|citation|formula|unk)\]", re.IGNORECASE
)


def terms(sentence: str) -> list[Term]:
    """Return the numbers, words and masks of a sentence, in order, without marks.

    Numbers are compared without commas between thousands and without zeros at the end: 1,635 is
    1635, and 0.50 is 0.5. A sign, a unit and a word such as "million" are not part of a number.
    Digits in a word (p53) make no number.
    """
    text = clean(sentence)
    # one token of the same length
    text = _MASK.sub(lambda mask: f"<{'_' * (len(mask[0]) - 2)}>", text)
    found = []
    for start, end in word_spans(text):
        token = lowered(text[start:end]).replace("’", "'")
        if token.startswith("<_"):
            found.append(Term(start, end, ""))
        elif token[0].isdecimal():
            found.append(Term(start, end, _number_key(token), is_number=True))
        elif is_word(token):
            found.append(Term(start, end, token))
    return found


def _number_key(digits: str) -> str:
    digits = re.sub(r",(?=\d{3}(?!\d))", "", digits)
    return digits.rstrip("0").rstrip(".") if re.fullmatch(r"\d+\.\d+", digits) else digits


class Names:
    """Names that texts show, acronyms among them.

    A name is a word of two letters or more that has a capital inside of sentences in at least 90%
    of its occurrences. So a name is known in a summary in lower case too. In German every noun is a
    name.
    """

    CAPITAL = 0.9

    def __init__(self, sentences: Iterable[str]):
        self._with_capital: Counter[str] = Counter()
        self._all: Counter[str] = Counter()
        for sentence in sentences:
            text = clean(sentence)
            for term in terms(sentence)[1:]:
                surface = text[term.start : term.end]
                self._all[term.key] += 1
                self._with_capital[term.key] += surface != lowered(surface)

    def __contains__(self, term: Term) -> bool:
        count = self._with_capital[term.key]
        letters = sum(map(str.isalpha, term.key))
        if term.is_number or letters < 2 or not count:
            return False
        return count >= self.CAPITAL * self._all[term.key]


def names_of(documents: Iterable[Document]) -> Names:
    """Return the names in the texts and references of documents; in titles all words may have
    capitals."""

    def sentences() -> Iterator[str]:
        for document in documents:
            yield from document.sentences
            for reference in document.references:
                yield from reference

    return Names(sentences())


class SourceText:
    """The sentences of a text, to look summaries up in.

    The weight of a word or number is log((L + 1) / L_w), where L_w of L sentences have it: a rare
    one counts more, and no list of function words is needed. One that the text does not have weighs
    like one of a single sentence.

    One sentence carries a sentence of the summary if it has at least half of its weight, and a part
    of it from a quarter on. Of the references' 990 sentences in the test papers of `pmc-sample`,
    the next paper carries 2, and a part of 31; of 500 that are made of halves of two sentences both
    are found 434 times (`tests/evaluation/test_support.py`).
    """

    ALONE, PART = 0.5, 0.25

    def __init__(self, sentences: Iterable[str]):
        self._words: list[dict[str, None]] = []  # of each sentence, in order
        self._sentences_with: defaultdict[str, list[int]] = defaultdict(list)  # by word
        # words side by side in a sentence, marks between them or not
        self.pairs: set[tuple[str, str]] = set()
        for number, sentence in enumerate(sentences):
            found = terms(sentence)
            self.pairs.update(_pairs(found))
            self._words.append(dict.fromkeys(term.key for term in found if term.key))
            for key in self._words[-1]:
                self._sentences_with[key].append(number)

    def has(self, term: Term) -> bool:
        """Return whether a word or number is in the text; a mask always is."""
        return not term.key or term.key in self._sentences_with

    def carriers(self, sentence: Sequence[Term]) -> list[tuple[int, float]]:
        """Find the sentences of the text that carry a summary's sentence: at most four numbers,
        from 0, each with the share of the sentence's weight that it has and those before it have
        not.

        They are chosen one by one: the one that adds the most weight, of equals the shorter and
        then the earlier one, as long as it adds `PART` of the sentence's weight.
        """
        weights = {term.key: self._weight(term.key) for term in sentence if term.key}
        total = sum(weights.values())
        chosen = []
        while weights:
            gains: defaultdict[int, float] = defaultdict(float)
            for key, weight in weights.items():
                for number in self._sentences_with.get(key, ()):
                    gains[number] += weight
            if not gains:
                break
            # Rounding errors must not decide between equal gains.
            best = max(gains, key=lambda n: (round(gains[n], 9), -len(self._words[n]), -n))
            if gains[best] < self.PART * total:
                break
            chosen.append((best, gains[best] / total))
            for key in self._words[best]:
                weights.pop(key, None)
        return chosen

    def _weight(self, key: str) -> float:
        # log((L + 1) / L_w)
        count = len(self._sentences_with.get(key, ()))
        return math.log((len(self._words) + 1) / max(1, count))


def _pairs(found: Sequence[Term]) -> list[tuple[str, str]]:
    """Return the keys of terms side by side, not across a mask."""
    return [(a.key, b.key) for a, b in pairwise(found) if a.key and b.key]


def source_of(document: Document) -> SourceText:
    """Return a document's text: its title, which is sentence 0 if it has one, and its sentences."""
    return SourceText([*filter(None, [document.title]), *document.sentences])


def not_in_text(sentence: Sequence[Term], text: SourceText, names: Names) -> list[tuple[Term, str]]:
    """Return the terms of a summary's sentence that its text does not have, each with "number",
    "name" or "word"."""
    missing = []
    for term in sentence:
        if text.has(term):
            continue
        kind = "name" if term in names else "word"
        missing.append((term, "number" if term.is_number else kind))
    return missing


def support_counts(
    summary: Iterable[str], text: SourceText, names: Names
) -> dict[str, tuple[int, int]]:
    """Count what of a summary its text does not have, each with the count of all of its kind.

    The kinds are "numbers", "names", "words" (names among them) and "pairs", every time that they
    occur, and "carried": sentences that one source sentence carries. summary: its sentences, in any
    case; one without a number and a word does not count.
    """
    counts: dict[str, tuple[int, int]] = {}
    for kind in ("numbers", "names", "words", "pairs", "carried"):
        counts[kind] = (0, 0)

    def count(kind: str, holds: bool) -> None:
        true, total = counts[kind]
        counts[kind] = true + holds, total + 1

    for sentence in map(terms, summary):
        for term in sentence:
            if term.key:
                count("numbers" if term.is_number else "words", not text.has(term))
                if term in names:
                    count("names", not text.has(term))
        for pair in _pairs(sentence):
            count("pairs", pair not in text.pairs)
        if any(term.key for term in sentence):
            carriers = text.carriers(sentence)
            count("carried", bool(carriers) and carriers[0][1] >= text.ALONE)
    return counts
