"""Is the embedding that Read-Again makes of a word's context (15) like the word's own embedding?

    python -m companion.studies.hidden_words trained/read_again --dataset docstrings

A word that encoder and decoder know is hidden: the encoder reads [UNK] at all its places. Two questions follow.

Near: the word's own row of the decoder's table is ranked among all rows by their cosine with p_i. The measure is the
share of the rows that are nearer: 0 for the nearest, a half by chance.

Used alike: the decoder reads the reference up to the hidden word, and then one of several embeddings in its place.
The measure is how far the distributions of the next word are apart (Jensen-Shannon divergence, in nats).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from lib.data.batch import EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.vocabulary import BOS, SPECIALS, UNK
from lib.decoding.run import Run
from lib.intervene import mean_row, read, rows_parser, write_rows
from lib.models.read_again import ReadAgain
from lib.system.command_line import plain_errors
from lib.system.errors import InputError

FREQUENT = 500  # the most frequent words of Y, which are hardly ever unknown, are not hidden
LIKE_FREQUENCY = 50  # a random word is so many ranks of frequency away at most
MEASURES = {
    "word read": "p_i of the place where the encoder reads the word",
    "word hidden": "p_i of the same place, where the encoder reads [UNK]",
    "another hidden word": "p of the next hidden word of the same text",
}
# what the decoder reads instead of the hidden word, and what else it could read there
PAIRS = {
    "p and the word": (0, 1), "another p and the word": (4, 1), "[UNK] and the word": (5, 1),
    "p and a similar word": (0, 2), "another p and a similar word": (4, 2), "p and a random word": (0, 3),
}  # fmt: skip
DIFFERENCES = (
    "another hidden word - word hidden", "another p and the word - p and the word",
    "[UNK] and the word - p and the word", "another p and a similar word - p and a similar word",
    "p and a random word - p and a similar word", "p and a random word - p and the word",
)  # fmt: skip
APART = "Jensen-Shannon divergence of the next words, nats"


def main(arguments: Sequence[str] | None = None) -> None:
    args = rows_parser("companion.studies.hidden_words", __doc__).parse_args(arguments)
    with plain_errors():
        run, documents = read(args)
        write_rows(args, "| what | | mean over documents |", hidden_words(run, documents), len(documents))


def hidden_words(run: Run, documents: Sequence[Document]) -> Iterator[dict]:
    """Yield a row of each of MEASURES (percent), PAIRS (nats) and DIFFERENCES: the mean over documents of the means
    over hidden words, its interval, and the values of all documents. Documents in which fewer than two words can be
    hidden are left out; of PAIRS also those without a hidden word in their reference."""
    if not isinstance(run.model, ReadAgain):
        raise InputError(f"{run.config['paper']} has no embeddings from context: only Read-Again has")
    random, encoded = np.random.default_rng(0), run.encode(documents)
    nearer = [nearer_shares(run.model, document) for document in encoded]
    apart = [divergences(run.model, document, random) for document in encoded]
    if not any(of.size for of in nearer):
        raise InputError("no document has two words that can be hidden")
    values = dict(zip(MEASURES, 100 * np.array([of.mean(1) for of in nearer if of.size]).T))
    values |= zip(PAIRS, np.array([of.mean(1) for of in apart if of.size]).T)
    words = {name: sum(of.shape[1] for of in (nearer if name in MEASURES else apart)) for name in values}
    for name in (*values, *DIFFERENCES):
        first, _, second = name.partition(" - ")
        if first in values:
            minus = values[second] if second else 0
            yield mean_row(name, MEASURES.get(first, APART), values[first] - minus, words=words[first])


@torch.no_grad()
def nearer_shares(model: ReadAgain, document: EncodedDocument, frequent: int = FREQUENT) -> np.ndarray:
    """Shares of the rows that are nearer to each of MEASURES than the word's own, of each word hidden:
    [measures, words]; [measures, 0] where fewer than two words can be hidden.

    frequent: so many words at the beginning of the vocabulary are not hidden. Raises InputError for a model that does
    not embed words by their context.
    """
    if not model.config.copy:
        raise InputError("the model copies no words: it has no embeddings from context")
    model.eval()
    places = _first_places(document, model.config.vocab_size, frequent)
    if len(places) < 2:
        return np.empty((len(MEASURES), 0))
    read, hidden = _embedded(model, [document])[0, places], _hidden(model, document, places)
    words = torch.from_numpy(document.source[places]).long()
    return np.stack([_shares(model, p, words) for p in (read, hidden, hidden.roll(1, 0))])


@torch.no_grad()
def divergences(
    model: ReadAgain, document: EncodedDocument, random: np.random.Generator, frequent: int = FREQUENT
) -> np.ndarray:
    """Jensen-Shannon divergences of next-word distributions for each of PAIRS, after each hidden word that the
    reference has: [pairs, words]; [pairs, 0] where fewer than two words can be hidden."""
    places = _first_places(document, model.config.vocab_size, frequent)
    table, found = model.target_embedding.weight, []
    if len(places) < 2:
        return np.empty((len(PAIRS), 0))
    hidden, reference = _hidden(model, document, places), document.target[:-1].tolist()
    for p, another, word in zip(hidden, hidden.roll(1, 0), document.source[places].tolist()):
        if word not in reference:
            continue
        near = nearest(model, table[[word]], 2)[0][1]  # the first one is the word itself
        ranks = range(max(len(SPECIALS), word - LIKE_FREQUENCY), min(len(table), word + LIKE_FREQUENCY + 1))
        other = random.choice([rank for rank in ranks if rank != word])
        fed = torch.stack([p, table[word], table[near], table[other], another, table[UNK]])
        before = torch.tensor([[BOS, *reference[: reference.index(word)]]])
        found.append(_apart(_next_words(model, _without(document, word), before, fed)))
    return np.array(found).reshape(-1, len(PAIRS)).T


def _next_words(model: ReadAgain, document: EncodedDocument, before: Tensor, fed: Tensor) -> Tensor:
    """Compute the distributions of the word after each of the embeddings [n, e] that follow `before` [1, t]."""
    batch = make_batch([document], model.config.vocab_size)
    _, state = model.decode(before, model.encode(batch))
    state = state.reorder(torch.zeros(len(fed), dtype=torch.long))
    with patch.object(model, "_embed", return_value=fed[:, None]):
        output, state = model.decode(torch.zeros(len(fed), 1, dtype=torch.long), state)
    return model.distribution(output, state, len(document.unknown))


def _apart(P: Tensor) -> list[float]:
    """Jensen-Shannon divergences, in nats, of the rows that PAIRS name."""
    pairs = [(P[i].double(), P[j].double()) for i, j in PAIRS.values()]
    both = [(p, q, (p + q) / 2) for p, q in pairs]
    return [float(torch.xlogy(p, p / m).nansum() + torch.xlogy(q, q / m).nansum()) / 2 for p, q, m in both]


def nearest(model: ReadAgain, embeddings: Tensor, count: int) -> list[list[int]]:
    """Ids of the words of Y whose embeddings are nearest to each of [n, e] by cosine, the nearest first."""
    return (_cosines(model, embeddings).topk(count).indices + len(SPECIALS)).tolist()


def _first_places(document: EncodedDocument, vocab_size: int, frequent: int) -> list[int]:
    words, places = np.unique(document.source, return_index=True)
    known = as_read(document)
    rare = (words >= len(SPECIALS) + frequent) & (words < vocab_size) & (known[places] != UNK)
    return np.sort(places[rare]).tolist()


def _hidden(model: ReadAgain, document: EncodedDocument, places: list[int]) -> Tensor:
    """p of the word at each place, which the encoder does not read: [places, e]."""
    texts = [_without(document, document.source[place]) for place in places]
    return _embedded(model, texts)[torch.arange(len(places)), places]


def _without(document: EncodedDocument, word: int) -> EncodedDocument:
    hidden = np.where(document.source == word, UNK, as_read(document))
    return replace(document, source_ids=hidden.astype(np.int32))


def as_read(document: EncodedDocument) -> np.ndarray:
    """The ids that the encoder reads."""
    return document.source if document.source_ids is None else document.source_ids


def _embedded(model: ReadAgain, documents: Sequence[EncodedDocument]) -> Tensor:
    embedded = model.encode(make_batch(documents, model.config.vocab_size)).embedded
    assert embedded is not None
    return embedded


def _cosines(model: ReadAgain, embeddings: Tensor) -> Tensor:
    """With the words of Y, symbols left out: [n, e] -> [n, Y - 4]."""
    table = model.target_embedding.weight[len(SPECIALS) :]
    return torch.nn.functional.normalize(embeddings, dim=-1) @ torch.nn.functional.normalize(table, dim=-1).T


def _shares(model: ReadAgain, embeddings: Tensor, words: Tensor) -> np.ndarray:
    cosines = _cosines(model, embeddings)
    own = cosines.gather(1, words[:, None] - len(SPECIALS))
    return (cosines > own).sum(1).numpy() / (cosines.shape[1] - 1)


if __name__ == "__main__":
    main()
