"""The vocabulary with copy ids, and the special symbols."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path

from pydantic import Field

from lib.data.sentences import group_words
from lib.system.errors import InputError
from lib.system.files import write_whole

PAD, UNK, BOS, EOS = range(4)
SPECIALS = ("[PAD]", "[UNK]", "[BOS]", "[EOS]")
HOLDS_A_WORD = Field(ge=len(SPECIALS) + 1)  # a vocabulary of the special symbols and a word

# A symbol that some corpora have after the special ones: windowed attention moves to the next
# window.
SLIDE, SLIDE_SYMBOL = len(SPECIALS), "[SLIDE]"
# Symbols of clusters of paragraphs: after the title, between paragraphs of a flat sequence, between
# sentences.
CLUSTER_SYMBOLS = ("<T>", "<P>", "<Q>")
TITLE_END, PARAGRAPH_END, SENTENCE_END = range(len(SPECIALS), len(SPECIALS) + 3)


class Vocabulary:
    """The most frequent words, and ids for the words of one document that are not among them.

    Ids below `len(self)` are the vocabulary's. A document's own unknown words get the ids
    `len(self) + j` in the order in which they occur, so that a pointer can copy them (See et al.
    2017).
    """

    def __init__(self, words: Iterable[str]):
        self.words = [*SPECIALS, *words]
        self._ids = {word: i for i, word in enumerate(self.words)}
        if len(self._ids) != len(self.words):
            raise InputError("a word is twice in the vocabulary")

    @classmethod
    def from_counts(cls, counts: Counter, size: int, symbols: tuple[str, ...] = ()) -> "Vocabulary":
        """The `size` most frequent words after the special symbols and `symbols`, all counted in;
        words of equal count in alphabetical order."""
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        frequent = ranked[: max(0, size - len(SPECIALS) - len(symbols))]
        return cls([*symbols, *(word for word, _ in frequent if word not in SPECIALS)])

    def __len__(self) -> int:
        return len(self.words)

    @property
    def identity(self) -> list:
        """Values that determine which ids a text gets."""
        return self.words

    def __contains__(self, word: str) -> bool:
        return word in self._ids

    def encode_source(self, tokens: Iterable[str]) -> tuple[list[int], list[str]]:
        """Extended ids of a document's words, and its unknown words in the order of their ids."""
        unknown: dict[str, int] = {}
        size, ids = len(self), self._ids
        return [
            ids[t] if t in ids else unknown.setdefault(t, size + len(unknown)) for t in tokens
        ], list(unknown)

    def encode_target(self, tokens: Iterable[str], unknown: list[str]) -> list[int]:
        """Extended ids of a summary: a word in neither the vocabulary nor the source is [UNK]."""
        copies = {word: len(self) + j for j, word in enumerate(unknown)}
        return [self._ids.get(t, copies.get(t, UNK)) for t in tokens]

    def decode(self, ids: Iterable[int], unknown: Sequence[str]) -> list[str]:
        """Words of extended ids, up to the first [EOS]."""
        return [self._word(i, unknown) for i in takewhile(lambda i: i != EOS, ids)]

    def _word(self, i: int, unknown: Sequence[str]) -> str:
        return self.words[i] if i < len(self) else unknown[i - len(self)]

    def text(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """Words up to the first [EOS], set apart by spaces."""
        return " ".join(self.decode(ids, unknown))

    def tokens(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> list[str]:
        """Texts of the ids, each with the space before it: joined, they are the text."""
        return [f" {self._word(i, unknown)}" for i in ids]

    def by_sentence(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> list[list[int]]:
        """Places of the words of each sentence (`split_sentences`)."""
        return group_words(self.decode(ids, unknown))

    def sentences(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> list[str]:
        """Sentences up to the first [EOS]."""
        ids = list(ids)
        texts = (
            self.text([ids[place] for place in group], unknown)
            for group in self.by_sentence(ids, unknown)
        )
        return [text for text in texts if text]

    def save(self, path: str | Path) -> None:
        write_whole(path, "".join(f"{word}\n" for word in self.words[len(SPECIALS) :]))

    @classmethod
    def load(cls, path: str | Path) -> "Vocabulary":
        return cls(Path(path).read_bytes().decode("utf-8").split("\n")[:-1])
