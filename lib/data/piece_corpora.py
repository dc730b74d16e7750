"""Steps that corpora in pieces share: pieces learned, summaries in them, splits encoded by several processes."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

from lib.data.batch import EncodedDocument
from lib.data.characters import lowered
from lib.data.options import Options
from lib.data.pieces import Pieces
from lib.data.prepared import LONG, chunked, noted, watched
from lib.data.split import Split
from lib.data.vocabulary import EOS, SENTENCE_END
from lib.system.processes import default_workers, in_processes

Text = TypeVar("Text")


def learn_pieces(
    texts: Iterable[Sequence[str]], options: Options, name: str, progress: bool, kind: str = "unigram"
) -> Pieces:
    """Pieces of the training documents, `options.vocab_size` of them. texts: those of each document.

    With `progress`, what takes long is said: a bar while documents of the corpus `name` are read, then a line.
    """
    with ExitStack() as shown:

        def read() -> Iterator[str]:
            begun = time.monotonic()
            for of_document in watched(texts, f"{name}, train, read for pieces", progress):
                yield from cased(of_document, options)
            if time.monotonic() - begun > LONG:
                shown.enter_context(noted(f"{name}: learning {options.vocab_size:,} pieces", progress))

        return Pieces.train(read(), options.vocab_size, kind=kind)


def cased(texts: Sequence[str], options: Options) -> list[str]:
    """The texts, in small letters where the options say so."""
    return [lowered(text) for text in texts] if options.lower else list(texts)


def summary_pieces(summary: Sequence[str], pieces: Pieces, options: Options) -> list[int]:
    """Pieces of a summary: `<Q>` between sentences, [EOS] after the last, cut to `summary_tokens`."""
    ids = [i for row in pieces.encode(cased(summary, options)) for i in (*row.tolist(), SENTENCE_END)]
    return [*ids[:-1], EOS][: options.summary_tokens]


def encode_split(
    parts: Path,
    name: str,
    texts: Iterable[Text],
    encode: Callable[[list[Text], Pieces], list[EncodedDocument]],
    pieces: Pieces,
) -> Split:
    """Texts of a split, a chunk at a time through `encode` (which must be picklable), in a folder's files."""
    chunks = in_processes(partial(_encode_chunk, encode, pieces.model), chunked(texts), default_workers())
    return Split.write(parts, name, chain.from_iterable(chunks), most=2**31 - 1)


def _encode_chunk(
    encode: Callable[[list[Text], Pieces], list[EncodedDocument]], model: bytes, texts: list[Text]
) -> list[EncodedDocument]:
    return encode(texts, _opened(model))


@cache
def _opened(model: bytes) -> Pieces:
    """The pieces of a SentencePiece model, which a process opens once."""
    return Pieces(model)
