"""Word vectors, learned or read from a file, and how similar sentences are by them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from lib.data.batch import EncodedDocument
from lib.data.documents import CorpusError
from lib.data.options import words_of
from lib.data.split import Split
from lib.data.vocabulary import EOS, PAD, SLIDE, SPECIALS, Vocabulary


def learn_vectors(
    split: Split, vocab_size: int, width: int = 100, reach: int = 5, limit: int = 20_000
) -> np.ndarray:
    """Word vectors [V, width] from the sources of at most `limit` documents: the positive pointwise
    mutual information of words up to `reach` apart, factorised (Levy and Goldberg 2014). Special
    symbols have zeros."""
    counts = _sparse(torch.zeros(2, 0, dtype=torch.long), torch.zeros(0).double(), vocab_size)
    for pairs in _pairs_of(split, vocab_size, reach, limit):
        counts = (
            counts + _sparse(pairs, torch.ones(pairs.shape[1]).double(), vocab_size)
        ).coalesce()
    counts = (counts + counts.T).coalesce()
    (a, b), n = counts.indices(), counts.values()
    of_word = torch.sparse.sum(counts, 1).to_dense()
    information = torch.log(n * n.sum() / (of_word[a] * of_word[b])).clamp_min(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        matrix = _sparse(counts.indices(), information, vocab_size)
        u, s, _ = torch.svd_lowrank(matrix, q=min(width, vocab_size), niter=4)
    vectors = (u * s.sqrt()).numpy()
    vectors[: SLIDE + 1] = 0
    return vectors


def _sparse(indices: torch.Tensor, values: torch.Tensor, size: int) -> torch.Tensor:
    return torch.sparse_coo_tensor(indices, values, (size, size), check_invariants=True)


def _pairs_of(
    split: Split, vocab_size: int, reach: int, limit: int, chunk: int = 500
) -> Iterator[torch.Tensor]:
    """Yield pairs [2, n] of words of the vocabulary that are at most `reach` places apart in one
    document."""
    gap = np.full(reach, vocab_size)
    for start in range(0, min(limit, len(split)), chunk):
        ids = [
            x
            for i in range(start, min(start + chunk, limit, len(split)))
            for x in (split[i].source, gap)
        ]
        flat = np.concatenate(ids).astype(np.int64)
        pairs = np.concatenate(
            [np.stack([flat[:-o], flat[o:]]) for o in range(1, reach + 1)], axis=1
        )
        yield torch.from_numpy(pairs[:, ((pairs > SLIDE) & (pairs < vocab_size)).all(0)])


def read_vectors(path: str | Path, vocabulary: Vocabulary, limit: int = 200_000) -> np.ndarray:
    """Word vectors [V, width] from the first `limit` lines of a text file (`word x1 x2 ...`, as
    fastText writes); words that it does not have get zeros. Raises CorpusError with file and
    line."""
    ids, vectors = {word: i for i, word in enumerate(vocabulary.words)}, None
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in zip(range(1, limit + 1), lines):
            word, *values = line.rstrip().split(" ")
            if number == 1 and len(values) == 1:
                continue  # how many rows and columns follow
            vectors = np.zeros((len(vocabulary), len(values))) if vectors is None else vectors
            try:
                vectors[ids.get(word, PAD)] = np.array(values, dtype=float).reshape(
                    vectors.shape[1]
                )
            except ValueError:
                raise CorpusError(
                    f"{path}, line {number}: not a word and {vectors.shape[1]} numbers"
                ) from None
    if vectors is None or not vectors[len(SPECIALS) :].any():
        raise CorpusError(
            f"{path}: no vector for any of the {len(vocabulary)} words of the vocabulary"
        )
    vectors[: len(SPECIALS)] = 0
    return vectors


Rows = tuple[np.ndarray, np.ndarray]  # sentences: ids [words] and lengths [sentences]


def similarities(summary: Rows, source: Rows, vectors: np.ndarray) -> np.ndarray:
    """Cosines of the summed vectors of each summary sentence and each source sentence: [S, L].

    Words without a vector count for nothing.
    """
    return _unit(_summed(*summary, vectors)) @ _unit(_summed(*source, vectors)).T


def _unit(rows: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)


def _summed(ids: np.ndarray, lengths: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    known = np.append(vectors, np.zeros((1, vectors.shape[1])), axis=0)
    return np.add.reduceat(known[np.minimum(ids, len(vectors))], np.cumsum(lengths) - lengths)


def target_sentences(document: EncodedDocument, lower: bool) -> np.ndarray:
    """Words of each sentence of a target without [SLIDE]; what was cut off is not counted, nor is
    [EOS]."""
    words = len(document.target) - int(document.target[-1] == EOS)
    ends = np.cumsum(
        [len(words_of(sentence, lower, document.tokenised)) for sentence in document.reference]
    )
    lengths = np.diff(np.minimum(ends, words), prepend=0)
    return lengths[lengths > 0]
