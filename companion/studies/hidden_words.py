"""Is the embedding that Read-Again makes of a word's context (15) like the word's own embedding?

    python -m companion.studies.hidden_words trained/read_again --dataset docstrings

A word that encoder and decoder know is hidden: the encoder reads [UNK] at all its places. The
decoder reads the reference up to the hidden word, and then one of several embeddings in its place.
The measure is how far the distributions of the next word are apart (Jensen-Shannon divergence, in
nats).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lib.data.batch import EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.vocabulary import BOS, SPECIALS, UNK
from lib.decoding.run import Run
from lib.evaluation.interventions import mean_row
from lib.intervene import DocumentOptions, read, write_rows
from lib.models.changes import replaced
from lib.models.read_again import ReadAgain
from lib.system.command_line import Grouped, run_command
from lib.system.errors import InputError

FREQUENT = 500  # the most frequent words of Y, which are hardly ever unknown, are not hidden
# what the decoder reads instead of the hidden word, and what else it could read there
PAIRS = {
    "p and the word": (0, 1), "another p and the word": (3, 1), "[UNK] and the word": (4, 1),
    "p and a similar word": (0, 2), "another p and a similar word": (3, 2),
}  # fmt: skip
DIFFERENCES = (
    "another p and the word - p and the word",
    "[UNK] and the word - p and the word",
    "another p and a similar word - p and a similar word",
)
APART = "Jensen-Shannon divergence of the next words, nats"


def study(run: Path, /, *, documents: Grouped[DocumentOptions]) -> None:
    """Print a table of divergences.

    Args:
        run: the folder of a run of Read-Again.
    """
    opened, texts = read(run, documents)
    rows = hidden_words(opened, texts)
    write_rows(run, documents, "| what | | mean over documents |", rows, len(texts))


def hidden_words(run: Run, documents: Sequence[Document]) -> Iterator[dict]:
    """Yield a row of each of PAIRS and DIFFERENCES: the mean over documents of the means over
    hidden words, its interval, and the values of all documents. Documents in which fewer than two
    words can be hidden are left out, and those without a hidden word in their reference."""
    if not (isinstance(run.model, ReadAgain) and run.model.config.copy):
        raise InputError(f"{run.folder}: only Read-Again with copying has embeddings from context")
    every = [divergences(run.model, document) for document in run.encode(documents)]
    apart = [of_document for of_document in every if of_document.size]
    if not apart:
        raise InputError(
            "no document has two words that can be hidden, one of them in its reference"
        )
    values = dict(zip(PAIRS, np.array([of_document.mean(1) for of_document in apart]).T))
    words = sum(of_document.shape[1] for of_document in apart)
    for name in (*PAIRS, *DIFFERENCES):
        first, _, second = name.partition(" - ")
        yield mean_row(name, APART, values[first] - (values[second] if second else 0), words=words)


@torch.no_grad()
def divergences(
    model: ReadAgain, document: EncodedDocument, frequent: int = FREQUENT
) -> np.ndarray:
    """Jensen-Shannon divergences of next-word distributions for each of PAIRS, after each hidden
    word that the reference has: [pairs, words]; [pairs, 0] where fewer than two words can be
    hidden.

    frequent: so many words at the beginning of the vocabulary are not hidden.
    """
    model.eval()
    places = _first_places(document, model.config.vocab_size, frequent)
    table, found = model.target_embedding.weight, []
    if len(places) < 2:
        return np.empty((len(PAIRS), 0))
    hidden, reference = _hidden(model, document, places), document.target[:-1].tolist()
    for p, another, word in zip(hidden, hidden.roll(1, 0), document.source[places].tolist()):
        if word not in reference:
            continue
        fed = torch.stack([p, table[word], table[most_similar(table, word)], another, table[UNK]])
        before = torch.tensor([[BOS, *reference[: reference.index(word)]]])
        found.append(_apart(_next_words(model, _without(document, word), before, fed)))
    return np.array(found).reshape(-1, len(PAIRS)).T


def _next_words(model: ReadAgain, document: EncodedDocument, before: Tensor, fed: Tensor) -> Tensor:
    """Compute the distributions of the word after each of the embeddings [n, e] that follow
    `before` [1, t]."""
    batch = make_batch([document], model.config.vocab_size)
    _, state = model.decode(before, model.encode(batch))
    state = state.reorder(torch.zeros(len(fed), dtype=torch.long))
    with replaced(model, "_embed", lambda *_: fed[:, None]):
        output, state = model.decode(torch.zeros(len(fed), 1, dtype=torch.long), state)
    return model.distribution(output, state, len(document.unknown))


def _apart(P: Tensor) -> list[float]:
    """Jensen-Shannon divergences, in nats, of the rows that PAIRS name."""
    pairs = [(P[i].double(), P[j].double()) for i, j in PAIRS.values()]
    both = [(p, q, (p + q) / 2) for p, q in pairs]
    return [
        float(torch.xlogy(p, p / m).nansum() + torch.xlogy(q, q / m).nansum()) / 2
        for p, q, m in both
    ]


def most_similar(table: Tensor, word: int) -> int:
    """The id of the other word, no symbol, whose embedding [Y, e] has the largest cosine with that
    of a word."""
    cosines = torch.nn.functional.cosine_similarity(table, table[[word]])
    # the first one is the word itself
    return int(cosines[len(SPECIALS) :].topk(2).indices[1]) + len(SPECIALS)


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


main = partial(run_command, "companion.studies.hidden_words", __doc__, study)

if __name__ == "__main__":
    main()
