"""Is the embedding that Read-Again makes of a word's context (15) near the word's own embedding?

    python -m companion.studies.hidden_words trained/read_again --dataset docstrings

A word that encoder and decoder know is hidden: the encoder reads [UNK] at all its places. Its own row of the
decoder's table is then ranked among all rows by their cosine with p_i. The measure is the share of the rows that are
nearer: 0 for the nearest, a half by chance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lib.data.batch import EncodedDocument, make_batch
from lib.data.documents import Document
from lib.data.vocabulary import SPECIALS, UNK
from lib.decoding.run import Run
from lib.intervene import mean_row, read, rows_parser, write_rows
from lib.models.read_again import ReadAgain
from lib.system.command_line import plain_errors
from lib.system.errors import InputError

FREQUENT = 500  # the most frequent words of Y, which are hardly ever unknown, are not hidden
MEASURES = {
    "word read": "p_i of the place where the encoder reads the word",
    "word hidden": "p_i of the same place, where the encoder reads [UNK]",
    "another hidden word": "p of the next hidden word of the same text",
}


def main(arguments: Sequence[str] | None = None) -> None:
    args = rows_parser("companion.studies.hidden_words", __doc__).parse_args(arguments)
    with plain_errors():
        run, documents = read(args)
        head = "| embedding | | rows of Y that are nearer than the word's own, percent |"
        write_rows(args, head, hidden_words(run, documents), len(documents))


def hidden_words(run: Run, documents: Sequence[Document]) -> Iterator[dict]:
    """A row of each measure of MEASURES: the mean over documents of the share of rows that are
    nearer, in percent, with its interval, the number of words, and the values of all documents. Documents in which
    fewer than two words can be hidden are left out."""
    if not isinstance(run.model, ReadAgain):
        raise InputError(f"{run.config['paper']} has no embeddings from context: only Read-Again has")
    shares = [nearer_shares(run.model, document) for document in run.encode(documents)]
    shares = [of for of in shares if of.shape[1]]
    if not shares:
        raise InputError("no document has two words that can be hidden")
    for i, (name, what) in enumerate(MEASURES.items()):
        values = 100 * np.array([of[i].mean() for of in shares])
        yield mean_row(name, what, values, 3, words=sum(of.shape[1] for of in shares))


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
    rows = torch.arange(len(places))
    read = _embedded(model, [document])[0, places]
    hidden = _embedded(model, [_without(document, document.source[place]) for place in places])[rows, places]
    words = torch.from_numpy(document.source[places]).long()
    return np.stack([_shares(model, p, words) for p in (read, hidden, hidden.roll(1, 0))])


def nearest(model: ReadAgain, embeddings: Tensor, count: int) -> list[list[int]]:
    """Ids of the words of Y whose embeddings are nearest to each of [n, e] by cosine, the nearest first."""
    return (_cosines(model, embeddings).topk(count).indices + len(SPECIALS)).tolist()


def _first_places(document: EncodedDocument, vocab_size: int, frequent: int) -> list[int]:
    words, places = np.unique(document.source, return_index=True)
    known = _as_read(document)
    rare = (words >= len(SPECIALS) + frequent) & (words < vocab_size) & (known[places] != UNK)
    return np.sort(places[rare]).tolist()


def _without(document: EncodedDocument, word: int) -> EncodedDocument:
    hidden = np.where(document.source == word, UNK, _as_read(document))
    return replace(document, source_ids=hidden.astype(np.int32))


def _as_read(document: EncodedDocument) -> np.ndarray:
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
