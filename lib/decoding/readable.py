"""Summaries for people: words as the text writes them, capitals, marks without spaces, whole sentences.

Models write what they were trained on: words in lower case and set apart, `<dig>` for a number. Scores are of that.
What is shown has each word in the form in which the text has it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from lib.data.sentences import split_sentences
from lib.data.words import tokenize
from lib.decoding.reading import surfaces

# what corpora write for what they leave out; brackets and quotes as PTB and Gigaword have them
SYMBOLS = {
    "<dig>": "[number]", "<num>": "[number]", "<cit>": "[citation]", "@xcite": "[citation]", "@formula": "[formula]",
    "@cite": "[citation]", "@math": "[formula]", "-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]",
    "-lcb-": "{", "-rcb-": "}", "``": '"', "''": '"',
}  # fmt: skip
_FORMULA = re.compile(r"@x?math\w*")
_HALVES = {("<", "dig"), ("<", ">")}  # of <dig>, as pieces may write it
_NUMBERS = re.compile("<(?:dig)+>?")
_SYMBOL = re.compile(r"\[\w+\]")
_HASHES = re.compile(r"#+(?:[.,:]#+)*")
_END = re.compile(r"(?:[.?!…؟۔।。！？]|\.\.\.)[\"'”’»)\]]*$")


class Forms:
    """Forms in which a text has its words, and which of them it sets apart.

    The form of a word is the most frequent one in the text (of several, one in lower case): between the same
    neighbours, behind the same name (United States), otherwise anywhere. A sentence's first word, and words of a
    sentence in title case or capitals, count where there is no other; they are in lower case then, unless a capital
    or a digit stands inside of them.
    """

    def __init__(self, sentences: Iterable[str], words: Callable[[str], list[str]], lower: bool = True):
        """words: a sentence as a model reads it. lower: whether in lower case; otherwise words are in their form."""
        self.lower = lower
        self._sure: dict[tuple, Counter[str]] = defaultdict(
            Counter
        )  # by word, word before and word, and word and both neighbours
        self._first: dict[str, Counter[str]] = defaultdict(Counter)
        self._apart: dict[tuple[str, str], int] = defaultdict(int)  # above 0: more often apart than together
        for sentence in sentences:
            tokens = words(sentence)
            self._count(tokens, surfaces(sentence, tokens))
        marks = [count for (_, mark), count in self._apart.items() if mark in {",", "."}]
        if sum(marks) > 0:  # the text is tokenised: its spaces say nothing
            self._apart.clear()

    def _count(self, words: list[str], written: list[str]) -> None:
        forms = [surface.strip() for surface in written]
        headline = _is_headline(forms)
        first = next((place for place, form in enumerate(forms) if form[:1].isalnum()), 0)
        for place, (word, form) in enumerate(zip(words, forms)):
            if headline or place <= first:
                self._first[word][_settled(form, headline)] += 1
                continue
            before, after = words[place - 1], words[place + 1] if place + 1 < len(words) else ""
            self._sure[word,][form] += 1
            self._sure[before, word, after][form] += 1
            if place - 1 > first and forms[place - 1].istitle():
                self._sure[before, word][form] += 1
        for (a, b), surface in zip(pairwise(words), written[1:]):
            self._apart[a, b] += 1 if surface.startswith(" ") else -1

    def form(self, before: str, word: str, after: str) -> str:
        """A word of a summary as the text has it, between these neighbours; one that the text does not have as it
        is."""
        if symbol := SYMBOLS.get(word) or ("[formula]" if _FORMULA.fullmatch(word) else ""):
            return symbol
        if _NUMBERS.fullmatch(word):
            return SYMBOLS["<dig>"]
        known = self._sure.get((word,), Counter()) + self._first.get(word, Counter())
        if "#" in word:  # of several numbers, none is known to be meant
            return next(iter(known)) if len(known) == 1 else _HASHES.sub("[number]", word)
        if not self.lower:
            return word
        named = self._sure.get((before, word)) if self._likeliest(before).istitle() else None
        return self._likeliest(word, self._sure.get((before, word, after)) or named)

    def _likeliest(self, word: str, forms: Counter[str] | None = None) -> str:
        """The most frequent of these forms, or of all that the text has; the word itself where it has none."""
        forms = forms or self._sure.get((word,)) or self._first.get(word)
        return max(forms, key=lambda form: (forms[form], form.islower())) if forms else word

    def apart(self, a: str, b: str) -> bool | None:
        """Whether the text sets these two words apart; None: it does not have them beside each other."""
        balance = self._apart.get((a, b))
        return None if balance is None else balance > 0

    def in_sentence(self, before: str, mark: str, after: str) -> bool:
        """Whether the text has this mark inside of a sentence, between these two words."""
        return (before, mark, after) in self._sure


def _is_headline(forms: list[str]) -> bool:
    """Whether a sentence is in title case or in capitals."""
    long = [form for form in forms[1:] if len(form) > 3 and form.isalpha()]
    return len(long) > 1 and sum(form[0].isupper() for form in long) > 0.6 * len(long)


def _settled(form: str, headline: bool) -> str:
    """The form that a word at the start of a sentence has inside of one."""
    inside = form[1:]
    capitals = any(map(str.isupper, inside)) and not (headline and form.isupper())
    return form if capitals or any(map(str.isdigit, inside)) or form == "I" else form.lower()


# ----------------------------------------------------------------------------------------------------------- spaces

_NO_SPACE_BEFORE = frozenset(".,;:?!%)]}…’”»'′″°™®।؟۔、。，；：？！）」")
_WITHOUT_SPACES = re.compile("[\u3040-\u30ff\u3400-\u9fff]")  # Japanese and Chinese
_NO_SPACE_AFTER = frozenset("([{“‘«°~$£€@")
_INSIDE = frozenset("-/^_\u2010\u2011")  # of what is written as one word
_CLOSING = frozenset(".,;:?!%)]")
_CLITIC = re.compile(r"n['’]t|['’](?:s|re|ve|ll|d|m)", re.IGNORECASE)


def spaces(words: list[str]) -> list[bool]:
    """Whether a space stands before each word, by rule. Straight quotes open and close in turn.

    Of 447,123 places between words of `pmc-sample`'s test papers 98.6% are as there (`tests/test_readable.py`).
    """
    before, joins, quoted = [], True, False
    for place, word in enumerate(words):
        neighbours = words[place - 1 : place] + words[place + 1 : place + 2]
        inside = word in _INSIDE and len(neighbours) == 2 and all(map(_is_word, neighbours))
        closes = word in _NO_SPACE_BEFORE or (word == '"' and quoted) or _CLITIC.fullmatch(word)
        letters = place > 0 and all(map(_WITHOUT_SPACES.match, words[place - 1 : place + 1]))
        before.append(not (joins or inside or closes or letters))
        quoted ^= word == '"'
        joins = inside or word in _NO_SPACE_AFTER or (word == '"' and quoted)
    return before


def _is_word(token: str) -> bool:
    return token[-1:].isalnum() or token[-1:] in ("]", "′", "″")


# -------------------------------------------------------------------------------------------------------- summaries


@dataclass(frozen=True)
class Readable:
    """A summary for people: its sentences, and all of its tokens as they stand in them."""

    sentences: list[str]  # whole ones
    tokens: list[list[str]]  # of each sentence, with the space before each; one that was cut stands at the end


def readable(tokens: Sequence[Sequence[str]], forms: Forms, spaced: bool, cut: bool = False) -> Readable:
    """A summary as people write it.

    A last sentence without an end is left off where another one has one; if it is the only one, and `cut`, it ends
    in `…`.

    Args:
        tokens: of each sentence, each with the space before it, as the model writes.
        spaced: whether these spaces are those of a text (pieces); otherwise every token is a word.
        cut: whether the summary has as many words as it may have.
    """
    words = [tokenize("".join(sentence)) if spaced else [token.strip() for token in sentence] for sentence in tokens]
    sentences: list[str] = []
    shown: list[list[str]] = []
    last: list[str] = []
    for sentence, of_sentence, units in zip(tokens, words, _in_form(tokens, words, forms, spaced)):
        units = _with_inner_starts(of_sentence, _without_repeats(of_sentence, units, forms), forms)
        capital = _capitalized(units)
        goes_on = not units or (last[-1:] == ["."] and forms.in_sentence(["", *last][-2], last[-1], of_sentence[0]))
        last = of_sentence or last
        if not sentences or (not goes_on and _ends(sentences[-1], "".join(capital).strip())):
            units = capital
            sentences.append("")
            shown.append([])
        sentences[-1] = f"{sentences[-1]}{''.join(units)}".strip()
        shown[-1] += _by_token(sentence, of_sentence, units) if spaced else units
    return Readable(_finished(sentences, cut), shown)


def _in_form(
    tokens: Sequence[Sequence[str]], words: list[list[str]], forms: Forms, spaced: bool
) -> Iterator[list[str]]:
    """Words of each sentence in their form, each with the space before it."""
    flat = ["", *(word for sentence in words for word in sentence), ""]
    place, initials = 0, _initials(flat)
    for sentence, of_sentence in zip(tokens, words):
        around = range(place + 1, place + 1 + len(of_sentence))
        own = [forms.form(flat[i - 1], flat[i], flat[i + 1]) for i in around]
        by_text = [forms.apart(flat[i - 1], flat[i]) for i in around]
        if spaced:  # the model's own, but for what stands before the sentence, and before marks that close
            model = [surface[:1] == " " for surface in surfaces("".join(sentence), of_sentence)]
            by_text[1:] = [
                space and (told is True or form not in _CLOSING)
                for space, told, form in list(zip(model, by_text, own))[1:]
            ]
        for number, i in enumerate(around[:-1]):
            if spaced and (flat[i], flat[i + 1]) in _HALVES and not by_text[number + 1]:
                own[number : number + 2] = SYMBOLS["<dig>"], ""
        for number, i in enumerate(around):
            if i in initials and by_text[number] is None:
                own[number], by_text[number] = initials[i]
        yield [
            " " * (rule if told is None else told) + form
            for form, told, rule in zip(own, by_text, [own[:1] != ["."], *spaces(own)[1:]])
        ]
        place += len(of_sentence)


def _initials(words: list[str]) -> dict[int, tuple[str, bool]]:
    """Letters that stand one after another with full stops, as in `u . s .`, by their places: the form of each, and
    whether a space stands before it."""
    letters = {i for i, (a, b) in enumerate(pairwise(words)) if len(a) == 1 and a.isalpha() and b == "."}
    several = {i for i in letters if {i - 2, i + 2} & letters}
    latin = {place for i in several if (words[i], words[i + 2]) in _LATIN for place in (i, i + 2)}
    return {i: (words[i] if i in latin else words[i].upper(), i - 2 not in letters) for i in several}


_LATIN = {("e", "g"), ("i", "e")}


def _by_token(tokens: Sequence[str], words: list[str], units: list[str]) -> list[str]:
    """Pieces of a sentence as they stand in its words' forms."""
    text, end = "".join(tokens), 0
    written = [""] * len(text)
    for word, unit in zip(words, units):
        start = text.find(word, end)
        if start < 0:
            return list(tokens)
        form, end = unit.strip(), start + len(word)
        written[start:end] = form if len(form) == len(word) else [form, *[""] * (len(word) - 1)]
        written[start] = unit[: len(unit) - len(form)] + written[start]
    stops = list(accumulate(map(len, tokens), initial=0))
    return ["".join(written[start:stop]) for start, stop in pairwise(stops)]


def _ends(sentence: str, following: str) -> bool:
    """Whether another sentence begins after this one, which may end in an abbreviation or initial."""
    following = _SYMBOL.sub("X", following)
    return not sentence.endswith(".") or len(split_sentences(f"{sentence} {following}")) > len(
        split_sentences(sentence)
    )


_ONCE = frozenset(".,;:%°")


def _without_repeats(words: list[str], units: list[str], forms: Forms) -> list[str]:
    """Units of which a mark that repeats the end of the one before is empty, unless the text repeats it too."""
    return [
        "" if word in _ONCE and before.endswith(word) and forms.apart(before, word) is None else unit
        for before, word, unit in zip(["", *words], words, units)
    ]


def _with_inner_starts(words: list[str], units: list[str], forms: Forms) -> list[str]:
    """Units with a capital behind each full stop that ends a sentence within these words."""
    for place in range(2, len(words)):
        before, mark, word = words[place - 2 : place + 1]
        starts = mark == "." and len(before) > 1 and _NO_NAME.fullmatch(word) and units[place].startswith(" ")
        if starts and not forms.in_sentence(before, mark, word):
            rest = _capitalized(units[place:])
            if _ends("".join(units[:place]).strip(), "".join(rest).strip()):
                units = [*units[:place], *rest]
    return units


_NO_NAME = re.compile(r"(?![^a]$)[^\W\d_]+|[a-z]{3,}(?:-[a-z]+)+")  # a word, or several with hyphens


def _capitalized(units: list[str]) -> list[str]:
    """A sentence's words with a capital at the first, unless that is a letter other than "a" or has a sign in it."""
    starts = (unit.strip()[:1].isalnum() or bool(_SYMBOL.match(unit.strip())) for unit in units)
    place = next((place for place, begins in enumerate(starts) if begins), None)
    if place is None:
        return units
    word = units[place].strip()
    if word.islower() and _NO_NAME.fullmatch(word):
        word = word[0].upper() + word[1:]
    units = [*units[:place], " " * units[place].startswith(" ") + word, *units[place + 1 :]]
    return [" " + units[0].strip(), *units[1:]]


def _finished(sentences: list[str], cut: bool) -> list[str]:
    if not sentences or _END.search(sentences[-1]):
        return sentences
    if any(map(_END.search, sentences[:-1])):
        return sentences[:-1]
    return [*sentences[:-1], sentences[-1] + " …"] if cut else sentences
