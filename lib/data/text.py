"""Sentences, words, and the vocabulary with copy ids."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from unicodedata import category

from lib.system.files import write_whole

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
    found = _OPENING.match(word)
    return bool(found) and not (cased and (found["first"] or "").islower())


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
    wanted, there = (Counter(pairwise(words)) for words in (summary, paragraph))
    return (wanted & there).total() / wanted.total() if wanted else 0.0


# -------------------------------------------------------------------------------------------------- vocabulary

PAD, UNK, BOS, EOS = range(4)
SPECIALS = ("[PAD]", "[UNK]", "[BOS]", "[EOS]")
# A symbol that some corpora have behind the special ones: windowed attention moves to the next window.
SLIDE, SLIDE_SYMBOL = len(SPECIALS), "[SLIDE]"
# Symbols of clusters of paragraphs: after the title, between paragraphs of a flat sequence, between sentences.
CLUSTER_SYMBOLS = ("<T>", "<P>", "<Q>")
TITLE_END, PARAGRAPH_END, SENTENCE_END = range(len(SPECIALS), len(SPECIALS) + 3)


class Vocabulary:
    """The most frequent words, and ids for the words of one document that are not among them.

    Ids below `len(self)` are the vocabulary's. A document's own unknown words get the ids `len(self) + j` in the
    order in which they occur, so that a pointer can copy them (See et al. 2017).
    """

    def __init__(self, words: Iterable[str]):
        self.words = [*SPECIALS, *words]
        self._ids = {word: i for i, word in enumerate(self.words)}
        if len(self._ids) != len(self.words):
            repeated = next(w for w, n in Counter(self.words).items() if n > 1)
            raise ValueError(f"the word {repeated!r} is twice in the vocabulary")

    @classmethod
    def from_counts(cls, counts: Counter, size: int, symbols: tuple[str, ...] = ()) -> "Vocabulary":
        """The `size` most frequent words behind the special symbols and `symbols`, all counted in; words of equal
        count in alphabetical order."""
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        kept = ranked[: max(0, size - len(SPECIALS) - len(symbols))]
        return cls([*symbols, *(word for word, _ in kept if word not in SPECIALS)])

    def __len__(self) -> int:
        return len(self.words)

    @property
    def identity(self) -> list:
        """All that determines which ids a text gets."""
        return self.words

    def __contains__(self, word: str) -> bool:
        return word in self._ids

    def encode_source(self, tokens: Iterable[str]) -> tuple[list[int], list[str]]:
        """Extended ids of a document's words, and its unknown words in the order of their ids."""
        unknown: dict[str, int] = {}
        size, ids = len(self), self._ids
        extended = [
            ids[t] if t in ids else unknown.setdefault(t, size + len(unknown))
            for t in tokens
        ]  # fmt: skip
        return extended, list(unknown)

    def encode_target(self, tokens: Iterable[str], unknown: list[str]) -> list[int]:
        """Extended ids of a summary: a word in neither the vocabulary nor the source is [UNK]."""
        copies = {word: len(self) + j for j, word in enumerate(unknown)}
        return [self._ids.get(t, copies.get(t, UNK)) for t in tokens]

    def decode(self, ids: Iterable[int], unknown: Sequence[str]) -> list[str]:
        """Words of extended ids, up to the first [EOS]."""
        words = []
        for i in ids:
            if i == EOS:
                break
            words.append(self.words[i] if i < len(self) else unknown[i - len(self)])
        return words

    def text(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """Words up to the first [EOS], set apart by spaces."""
        return " ".join(self.decode(ids, unknown))

    def tokens(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> list[str]:
        """What stands for each id, with the space before it: joined, they are the text."""
        return [f" {self.words[i] if i < len(self) else unknown[i - len(self)]}" for i in ids]

    def by_sentence(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> list[list[int]]:
        """Places of the words of each sentence, which ends at a full stop, a question or an exclamation mark."""
        groups: list[list[int]] = [[]]
        for place, word in enumerate(self.decode(ids, unknown)):
            groups[-1].append(place)
            if word in {".", "?", "!"}:
                groups.append([])
        return [group for group in groups if group]

    def sentences(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> list[str]:
        """Sentences up to the first [EOS]."""
        ids = list(ids)
        texts = (self.text([ids[place] for place in group], unknown) for group in self.by_sentence(ids, unknown))
        return [text for text in texts if text]

    def save(self, path: str | Path) -> None:
        write_whole(path, "".join(f"{word}\n" for word in self.words[len(SPECIALS) :]))

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        return cls(Path(path).read_text(encoding="utf-8").splitlines())
