"""A vocabulary of SentencePiece pieces, for source and summary alike."""

import io
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from random import Random

import numpy as np
import sentencepiece

from lib.data.documents import CorpusError
from lib.data.vocabulary import CLUSTER_SYMBOLS, EOS, SENTENCE_END, SPECIALS, UNK, Vocabulary
from lib.system.files import write_whole

# How other people's models call the special symbols: those of the ranked WikiSum shards, and
# SentencePiece's own.
_OTHER_NAMES = (("<PAD>", "<pad>"), ("<unk>", "<UNK>"), ("<S>", "<s>"), ("</S>", "</s>"))


# What is learned depends on it in late digits, and so do the pieces: the same number whatever the
# machine.
_THREADS = 2

_SYMBOLS = len(SPECIALS) + len(CLUSTER_SYMBOLS)


class Pieces(Vocabulary):
    """The pieces of a SentencePiece model, after the special symbols and those of clusters (`<T>`,
    `<P>`, `<Q>`).

    The ids are the library's, whatever the model's own are, so that models trained by others can be
    used.
    """

    def __init__(self, model: bytes):
        """model: a serialised SentencePiece model. Raises CorpusError when it is none."""
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise CorpusError("not a SentencePiece model, or a damaged one") from None
        theirs = [self._processor.IdToPiece(i) for i in range(self._processor.GetPieceSize())]
        renamed = {name: ours for ours, names in zip(SPECIALS, _OTHER_NAMES) for name in names}
        renamed[theirs[self._processor.unk_id()]] = SPECIALS[UNK]
        names = [renamed.get(piece, piece) for piece in theirs]
        known = {*SPECIALS, *CLUSTER_SYMBOLS}
        super().__init__([*CLUSTER_SYMBOLS, *(name for name in names if name not in known)])
        self._ours = np.array([self._ids[name] for name in names], dtype=np.int32)
        self._theirs = {int(ours): i for i, ours in enumerate(self._ours)}

    @classmethod
    def train(
        cls, texts: Iterable[str], size: int, most: int = 200_000, kind: str = "unigram"
    ) -> "Pieces":
        """Learn `size` pieces, special symbols counted in, from at most `most` of the texts.

        kind: SentencePiece's model, "unigram" or "bpe" (byte pairs). A small corpus may give fewer
        pieces. Raises CorpusError for texts without letters, or with more of them than pieces.
        """
        out, sample = io.BytesIO(), _sample(texts, most)
        pad, unk, bos, eos = SPECIALS
        try:
            sentencepiece.SentencePieceTrainer.Train(
                sentence_iterator=iter(sample),
                model_writer=out,
                vocab_size=size,
                model_type=kind,
                hard_vocab_limit=False,
                pad_id=0,
                unk_id=1,
                bos_id=2,
                eos_id=3,
                pad_piece=pad,
                unk_piece=unk,
                bos_piece=bos,
                eos_piece=eos,
                control_symbols=list(CLUSTER_SYMBOLS),
                num_threads=_THREADS,
                minloglevel=2,
            )
        except RuntimeError:
            raise CorpusError(
                f"{size} pieces cannot be learned from these texts: they are too few, or have more "
                "different "
                "characters than that. Take more documents, or a larger vocab_size."
            ) from None
        return cls(out.getvalue())

    def __reduce__(self) -> tuple:
        return _opened, (self.model,)

    @property
    def identity(self) -> list:
        return [
            self.words,
            [self._processor.GetScore(i) for i in range(self._processor.GetPieceSize())],
        ]

    def encode(self, texts: list[str]) -> list[np.ndarray]:
        """Ids of each text, without special symbols."""
        return [self.ours(ids) for ids in self._processor.Encode(texts)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return start and end of each piece of a text. The space before a word belongs to its
        first piece."""
        return self._processor.Encode(text, return_type="offset_mapping")["offsets"]

    def are_symbols(self, ids: np.ndarray) -> np.ndarray:
        """Return which ids are special symbols or those of clusters; an unknown piece is none."""
        return (ids < _SYMBOLS) & (ids != UNK)

    def ours(self, theirs: Iterable[int]) -> np.ndarray:
        """The library's ids of the model's own."""
        return self._ours[np.asarray(theirs, dtype=np.int64)]

    def text(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """Plain text up to the first [EOS]; symbols are left out."""
        piece_ids = [self._theirs[i] for i in _until_end(ids) if i >= _SYMBOLS or i == UNK]
        return self._processor.Decode(piece_ids).strip()

    def tokens(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> list[str]:
        return [
            "" if i < _SYMBOLS and i != UNK else self.words[i].replace("\u2581", " ") for i in ids
        ]

    def decode(self, ids: Iterable[int], unknown: Sequence[str]) -> list[str]:
        """Words of ids, up to the first [EOS]. `unknown` is empty: pieces spell every word."""
        return self.text(ids).split()

    def by_sentence(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> list[list[int]]:
        """Return the places of the pieces of each sentence; `<Q>` separates sentences."""
        groups: list[list[int]] = [[]]
        for place, i in enumerate(_until_end(ids)):
            if i == SENTENCE_END:
                groups.append([])
            elif i >= _SYMBOLS or i == UNK:
                groups[-1].append(place)
        return [group for group in groups if group]

    def save(self, path: str | Path) -> None:
        write_whole(path, self.model)

    @classmethod
    def load(cls, path: str | Path) -> "Pieces":
        return cls(Path(path).read_bytes())


@cache
def _opened(model: bytes) -> Pieces:
    """The pieces of a SentencePiece model, which a process opens once."""
    return Pieces(model)


def _sample(texts: Iterable[str], most: int) -> list[str]:
    """Choose at most so many of the texts, each with the same chance (Vitter's algorithm R).

    The choice is always the same; SentencePiece's own differs in every process, whatever its seed.
    """
    random, sample = Random(0), []
    for count, text in enumerate(texts):
        if count < most:
            sample.append(text)
        elif (place := random.randrange(count + 1)) < most:
            sample[place] = text
    return sample


def _until_end(ids: Iterable[int]) -> Iterator[int]:
    """Ids up to the first [EOS]."""
    return takewhile(lambda i: i != EOS, map(int, ids))
